# SPDX-License-Identifier: Apache-2.0
"""`%%tilus_pass`: a cell that defines a pass of a person's own, which every compile of the session then runs."""

from __future__ import annotations

import ast
import builtins
import dataclasses
import importlib
import inspect
import types
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilekit import dtypes
from tilekit.diag import errors, suggest
from tilekit.diag.errors import TilekitError
from tilekit.diag.span import Span
from tilekit.jit import pipelines, session
from tilekit.notebook import imports, options
from tilekit.notebook.options import FirstLine, Word

if TYPE_CHECKING:  # the compiler comes with the first pass
    from tilekit.transforms import Pass
    from tilekit.transforms.custom import Change

NAME = "tilus_pass"

HELP = """\
%%tilus_pass --after PASS | --before PASS | --replace PASS [--off] [--help]
%tilus_pass [--list] [--off [PASS]] [--without PASS] [--help]

The cell defines a pass over the tile IR, a subclass of Pass, which every compile of this session runs from then on,
also of kernels that are in the cache. Running the cell again replaces it by its name. What it changed is shown in the
panel of passes below the next cell that uses a kernel; errors are shown at the cell's own lines.

The names of docs/adding-a-pass.md need no import: Pass, IRRewriter, IRVisitor, collect_instructions, the instructions,
the statements, scalar, the types of numbers.

  --after PASS    run it after each pass of this name; where one runs several times, NAME#2 is the second
  --before PASS   run it before
  --replace PASS  run it in its place
  --off           take the cell's pass out again; as %tilus_pass --off PASS, that of this name, and alone, all of them
  --without PASS  leave a pass of the compiler out
  --list          show the pipeline, with the names that the options take
  --help          show this text
"""

OPTIONS = ("--after", "--before", "--replace", "--without", "--off", "--list", "--help")
_PLACES = ("--after", "--before", "--replace")
# the options behind which a pass is named
NAMING = (*_PLACES, "--without", "--off")


@dataclass(frozen=True)
class Wish:
    """What the line asks for; `place` is the option that says where, with what it names."""

    place: tuple[str, Word] | None = None
    without: Word | None = None
    off: tuple[str, Span] | None = None
    listed: bool = False
    help: bool = False


def parse(line: str) -> Wish:
    """Read the line, or say what is wrong with it."""
    wish = Wish()
    rest = options.words(line)
    for word in rest:
        name, equals, tail = word.text.partition("=")
        if name in (*_PLACES, "--without"):
            named = options.value_of(word, equals, tail, rest, "the name of a pass, such as layout_inference")
            if name == "--without":
                wish = dataclasses.replace(wish, without=named)
            elif wish.place is not None:
                raise options.refusal(
                    "a pass stands in one place", word, f"it is said to stand {wish.place[0]} already"
                )
            else:
                wish = dataclasses.replace(wish, place=(name, named))
        elif name == "--off":
            wish = dataclasses.replace(wish, off=(tail, word.span))
        elif wish.off is not None and not wish.off[0] and not name.startswith("--"):
            wish = dataclasses.replace(wish, off=(name, word.span))
        elif name == "--list" and not equals:
            wish = dataclasses.replace(wish, listed=True)
        elif name == "--help" and not equals:
            wish = dataclasses.replace(wish, help=True)
        else:
            near = suggest(name, OPTIONS)
            hint = f"did you mean {near}?" if near else f"%{NAME} --help lists the options"
            raise options.refusal(f"%{NAME} has no option {word.text}", word, hint)
    return wish


def of_line(wish: Wish) -> str:
    """Do what the line asks for without a cell; what to print."""
    if wish.place is not None:
        message = f"{wish.place[0]} is for a cell that defines a pass: %%{NAME}"
        raise errors.LanguageError("TK802", message, at=wish.place[1].span)
    said: list[str] = []
    if wish.off is not None:
        said.append(_taken_out(*wish.off))
    if wish.without is not None:
        said.append(_left_out(wish.without))
    return "\n".join([*said, *([] if said else [shown()])])


def run(shell: Any, line: str, body: str | None, place: Place) -> str:
    """The magic: run a cell and take the pass that it defines, or do what the line asks for; what to print.

    Raises
    ------
    TilekitError
        Placed at the line of the magic. What the cell itself raises goes through as it is.
    """
    __tracebackhide__ = True  # what the cell raises is shown from the cell on
    text = f"{'%' if body is None else '%%'}{NAME} {line}".rstrip()
    first_line = FirstLine(text, place.cell, place.number)
    try:
        wish = parse(text)
        if wish.help:
            return HELP
        if body is None:
            return of_line(wish)
        said = of_cell(wish, _defined(shell, body, place), first_line.span)
        return f"{said}\n{shown()}" if wish.listed else said
    except TilekitError as error:
        if error.sources is not None:  # of the cell itself
            raise
        raise first_line.placed(error, error.diagnostic.at or first_line.span) from None


@dataclass(frozen=True)
class Place:
    """Where the magic stands: what its cell is called, its number, its text, and the number of the magic's line."""

    cell: str
    execution: int
    text: str
    number: int


def _defined(shell: Any, body: str, place: Place) -> list[type]:
    """Run the cell's body in its own lines, and give the classes that it defines."""
    __tracebackhide__ = True
    filename = shell.compile.cache(place.text, place.execution, raw_code=place.text)
    # as many lines above it as there are in the cell
    source = "\n" * place.number + shell.transform_cell(body)
    try:
        parsed = shell.compile.ast_parse(source, filename)
    except SyntaxError as error:
        raise _no_python(error, source.splitlines(), place.cell) from None
    tree = imports.rewrite_imports(shell.transform_ast(parsed))
    bring_names(tree, shell.user_ns)
    exec(shell.compile(tree, filename, "exec"), shell.user_ns)
    names = [statement.name for statement in tree.body if isinstance(statement, ast.ClassDef)]
    return [cls for name in names if isinstance(cls := shell.user_ns.get(name), type)]


def _no_python(error: SyntaxError, lines: Sequence[str], cell: str) -> TilekitError:
    number, begin = error.lineno or 1, (error.offset or 1) - 1
    line = lines[number - 1] if number <= len(lines) else ""
    where = FirstLine(line, cell, number)
    at = Span(NAME, number, begin, number, max(begin + 1, min(error.end_offset or 0, len(line))))
    return where.placed(errors.LanguageError("TK804", f"the cell does not parse: {error.msg}"), at)


def of_cell(wish: Wish, defined: Sequence[type], at: Span) -> str:
    """Take the pass that a cell has defined; what to print."""
    own = _made(defined, at)
    if wish.off is not None:
        return _taken_out(wish.off[0] or own.name, wish.off[1])
    if wish.place is None:
        hint = f"say --after layout_inference, or --before or --replace; %{NAME} --list shows the passes"
        raise errors.LanguageError("TK802", f"where shall {own.name} run?", at=at, help=hint)
    custom = importlib.import_module("tilekit.transforms.custom")
    option, named = wish.place
    change: Change = getattr(custom, option.removeprefix("--"))(named.text, own)
    others = [each for each in session.standing_changes() if each.own is None or each.own.name != own.name]
    replaced = len(others) < len(session.standing_changes())
    _stand([*others, change], named.span)
    also = "; it replaces the one of this name" if replaced else ""
    return f"{own.name} runs {change.where.value} {change.name} in every compile from now on{also}"


def shown() -> str:
    """The pipeline with a person's changes: a pass a line, theirs with a star."""
    custom = importlib.import_module("tilekit.transforms.custom")
    lines = [f"{'*' if isinstance(each, custom.Custom) else ' '} {each.name}" for each in _pipeline()]
    return "\n".join([*lines, *(f"changed: {change}" for change in session.pipeline_changes())])


def names() -> list[str]:
    """The names of the passes, each once."""
    return list(dict.fromkeys(each.name for each in _pipeline()))


def _pipeline() -> list[Pass]:
    transforms = importlib.import_module("tilekit.transforms")
    return transforms.Pipeline(session.pipeline_changes()).applied_to(transforms.get_default_passes())


def _taken_out(name: str, at: Span) -> str:
    """Take out the changes of this name, a person's pass or one that is left out; all of them without a name."""
    standing = session.standing_changes()
    gone = [each for each in standing if name in ("", each.name if each.own is None else each.own.name)]
    if name and not gone:
        there = ", ".join(each.name if each.own is None else each.own.name for each in standing)
        hint = f"there are {there}" if there else "there is none"
        raise errors.PassError("TK412", f"no change to the pipeline is called {name}", at=at, help=hint)
    _stand([each for each in standing if each not in gone], at)
    return "\n".join(f"no longer: {each}" for each in gone) or "the pipeline is the default one"


def _left_out(named: Word) -> str:
    change = importlib.import_module("tilekit.transforms.custom").without(named.text)
    _stand([*(each for each in session.standing_changes() if each != change), change], named.span)
    return f"{named.text} is left out of every compile from now on"


def _stand(changes: Sequence[Change], at: Span) -> None:
    try:
        pipelines.stand(changes)
    except TilekitError as error:
        raise error.located(at) from None


def _made(defined: Sequence[type], at: Span) -> Pass:
    """An object of the one pass among the classes of a cell."""
    base = importlib.import_module("tilekit.transforms").Pass
    passes = [cls for cls in defined if issubclass(cls, base)]
    last = [cls for cls in passes if not any(cls in other.__mro__[1:] for other in passes)]
    if len(last) != 1:
        names = ", ".join(cls.__name__ for cls in last) or "none"
        hint = "a pass is a class: class MyPass(Pass), with def process_function(self, func)"
        raise errors.LanguageError("TK803", f"the cell must define one pass, and it defines {names}", at=at, help=hint)
    try:
        return last[0]()
    except TypeError as error:
        message, hint = f"{last[0].__name__}() fails: {error}", "give its fields defaults: they are its options"
        raise errors.LanguageError("TK803", message, at=at, help=hint) from None


# ---------------------------------------------------------------------------------------------------- names in scope


def bring_names(tree: ast.AST, namespace: dict[str, Any]) -> None:
    """Give a cell the names of the compiler that it uses and that mean nothing yet."""
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for name, value in _scope().items():
        if name in used and name not in namespace and not hasattr(builtins, name):
            namespace[name] = value


def _scope() -> Mapping[str, Any]:
    """What the page on passes names, by the names that it has there."""
    found: dict[str, Any] = {"Counter": Counter, "dataclass": dataclass}
    found |= {name: value for name, value in vars(dtypes).items() if isinstance(value, dtypes.DataType)}
    for module in ("ir.stmt", "ir.tensor", "ir.inst", "ir.func", "ir.prog"):
        found |= _classes(importlib.import_module(f"tilekit.{module}"))
    found |= {cls.__name__: cls for cls in importlib.import_module("tilekit.ir.inst").REGISTRY.values()}
    for module in ("ir.tools", "ir.functors", "transforms"):
        public = importlib.import_module(f"tilekit.{module}")
        found |= {name: getattr(public, name) for name in public.__all__}
    scalar = importlib.import_module("tilekit.lowir.scalar")
    return {**found, "scalar": scalar, "Expr": scalar.Expr, "Var": scalar.Var}


def _classes(module: types.ModuleType) -> dict[str, Any]:
    return {name: cls for name, cls in inspect.getmembers(module, inspect.isclass) if cls.__module__ == module.__name__}
