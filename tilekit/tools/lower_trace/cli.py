# SPDX-License-Identifier: Apache-2.0
"""`tilekit trace …`: the journals of traced runs, in a terminal and for scripts.

Exit codes: 0 all is well, the same, or found; 1 it is not; 2 it could not be told. With `--json` there is one JSON
document on stdout, whose form `docs/trace.md` describes.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import runpy
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tilekit import textdiff
from tilekit.diag import TilekitError
from tilekit.tools.lower_trace import meant, plain, queries, settings, shelf, terminal
from tilekit.tools.lower_trace.console import Console, Style
from tilekit.tools.lower_trace.journal import Compile
from tilekit.tools.lower_trace.meant import TraceError
from tilekit.tools.lower_trace.plain import Beside
from tilekit.tools.lower_trace.queries import Blame, Found, Place

if TYPE_CHECKING:
    from tilekit.jit.arguments import JitKey
    from tilekit.jit.bisected import Bisection
    from tilekit.jit.instantiated import InstantiatedScript

SAME, DIFFERS, ERROR = 0, 1, 2
INTERRUPTED = 130  # as every shell says it

_WHERE = "a journal, the folder of a run, of a script or of all traces, or a page; `:0` behind it is its first compile"
_STEP = "`17`, `name`, `name#2` or `phase/name`"


def main(arguments: Sequence[str]) -> int:
    """Do what a command line asks; the exit code."""
    options = _parser().parse_args(arguments)
    try:
        return options.do(options)
    except TilekitError as error:
        print(error.to_ansi() if sys.stderr.isatty() else error.to_text(), file=sys.stderr)
    except BrokenPipeError:
        # whoever reads has read enough, and is not to hear of it when stdout is flushed either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return SAME
    except OSError as error:
        print(f"tilekit trace: {error.filename or ''}: {error.strerror or error}", file=sys.stderr)
    except KeyboardInterrupt:
        return INTERRUPTED
    return ERROR


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tilekit trace", description="Look at traced compiles.")
    verbs = parser.add_subparsers(dest="verb", required=True)

    def verb(name: str, do: Callable[[argparse.Namespace], int], about: str, *, json: bool = True) -> Any:
        made = verbs.add_parser(name, help=about, description=f"{about[:1].upper()}{about[1:]}.")
        made.set_defaults(do=do)
        if json:
            made.add_argument("--json", action="store_true", help="print one JSON document")
        return made

    def where(parser: Any, name: str = "where", *, nargs: str | None = "?") -> None:
        parser.add_argument(name, nargs=nargs, help=f"{_WHERE}; by default the newest run here")

    def kernel(parser: Any) -> None:
        parser.add_argument("--kernel", metavar="PATTERN", help="only kernels of such a name, as `matmul*`")

    made = verb("view", _view, "browse the steps of a run; where there is no terminal, list them")
    where(made)
    kernel(made)
    made = verb("render", _render, "make the page of a run from its journal; of several runs, one page", json=False)
    where(made, nargs="*")
    made.add_argument("-o", "--output", type=Path, help="the file; by default report.html beside the only journal")
    made = verb("diff", _diff, "compare two runs or compiles step by step, or two steps")
    where(made, "a", nargs=None)
    where(made, "b")
    kernel(made)
    step = f"compare what this step made: {_STEP}; two of them are compared with each other"
    made.add_argument("--step", action="append", default=[], help=step)
    made.add_argument("--context", type=_count, default=terminal.CONTEXT, help="lines around each change")
    made = verb("find", _find, "say which steps have a text in what they made")
    made.add_argument("text", help="looked for in each line, in capital letters or not")
    where(made)
    kernel(made)
    made = verb("blame", _blame, "say of each line of what a step made which step made it")
    made.add_argument("step", help=_STEP)
    where(made)
    kernel(made)
    made.add_argument("--line", type=int, help="only this line, counted from 1")
    made = verb("rerun", _rerun, "run a step again by itself, on what it was given", json=False)
    made.add_argument("step", help=_STEP)
    where(made)
    kernel(made)
    made = verb("bisect", _bisect, "run a script, and name the first step that makes each of its kernels wrong")
    kernel(made)
    made.add_argument("--seed", type=int, default=0, help="draws the order of threads and blocks")
    made.add_argument("--blocks", type=_blocks, default=64, help='how many blocks of a grid run, or "all"')
    made.add_argument("script", type=Path)
    made.add_argument("arguments", nargs=argparse.REMAINDER, help="what the script finds in sys.argv[1:]")
    made = verb("gc", _gc, "remove the oldest runs; edited sources stay")
    made.add_argument("folder", nargs="?", type=Path, help="the folder of a script, or of all traces")
    made.add_argument(
        "--keep", type=_count, default=shelf.KEEP_RUNS, metavar="RUNS", help="how many runs of a script stay"
    )
    made.add_argument(
        "--limit", type=_count, default=shelf.KEEP_BYTES, metavar="BYTES", help="and how many bytes of them"
    )
    made.add_argument("--dry-run", action="store_true", help="list what would go, and remove nothing")
    return parser


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 on")
    return int(text)


def _blocks(text: str) -> int | str:
    return text if text == "all" else _count(text)


# ----------------------------------------------------------------------------------------------------------- the verbs


def _view(options: argparse.Namespace) -> int:
    place = _place(options)
    if options.json:
        return _said(
            {"run": plain.of_run(place.run), "compiles": [plain.of_compile(each) for each in place.compiles]}, SAME
        )
    if sys.stdin.isatty() and sys.stdout.isatty():
        view = importlib.import_module("tilekit.tools.lower_trace.view")
        if view.can_browse():
            view.browse(place, meant.linked_step(options.where, place))
            return SAME
    console = Console(sys.stdout)
    for compile in place.compiles:
        console.heading(terminal.summary(compile))
        for step in compile.steps:
            console.text(plain.line_of(step))
    return SAME


def _place(options: argparse.Namespace) -> Place:
    """The compiles that a command line is about."""
    (place,) = meant.of_kernels(options.kernel, meant.located(options.where)[1])
    return place


def _render(options: argparse.Namespace) -> int:
    found = [meant.located(where) for where in options.where or [None]]
    if options.output is None and len(found) > 1:
        raise TraceError("TK432", "a page of several runs belongs to none of them", help="name it: -o page.html")
    output: Path = options.output or found[0][0].with_name(shelf.PAGE)
    # it needs the built viewer, which nothing else here does
    page = importlib.import_module("tilekit.tools.lower_trace.page")
    title = ", ".join(dict.fromkeys(place.run.head.script for _, place in found))
    output.write_bytes(page.render([_whole_lines(file) for file, _ in found], title))
    print(output)
    return SAME


def _whole_lines(file: Path) -> str:
    """The text of a journal, without a last line that was torn."""
    return file.read_text().rpartition("\n")[0] + "\n"


def _diff(options: argparse.Namespace) -> int:
    a = meant.located(options.a)[1]
    if len(options.step) > 2 or (options.b is None and len(options.step) != 2):
        raise TraceError(
            "TK432", "a diff is of two runs, or of two steps", help="tilekit trace diff RUN --step 3 --step 17"
        )
    b = a if options.b is None else meant.located(options.b)[1]
    a, b = meant.of_kernels(options.kernel, a, b)
    if options.step:
        return _diff_of_steps((a, options.step[0]), (b, options.step[-1]), options)
    return _diff_of_runs(a, b, options)


def _diff_of_steps(a: tuple[Place, str], b: tuple[Place, str], options: argparse.Namespace) -> int:
    one, other = meant.one_step(*a), meant.one_step(*b)
    before, after = plain.lines_made(a[0].run, one), plain.lines_made(b[0].run, other)
    code = SAME if before == after else DIFFERS
    added, removed = textdiff.counts(before, after)
    lines = textdiff.unified(before, after, options.context)
    if options.json:
        data = {"a": plain.of_step(one), "b": plain.of_step(other), "added": added, "removed": removed, "diff": lines}
        return _said({"same": code == SAME, **data}, code)
    console = Console(sys.stdout)
    console.heading(
        f"{one.index:02d} {one.phase}/{one.title} → {other.index:02d} {other.phase}/{other.title}  +{added} -{removed}"
    )
    _print_diff(console, lines)
    return code


def _diff_of_runs(a: Place, b: Place, options: argparse.Namespace) -> int:
    alone = len(a.compiles) == len(b.compiles) == 1
    pairs = [(a.compiles[0], b.compiles[0])] if alone else queries.compiles_beside(a.compiles, b.compiles)
    found = [Beside((a.run, b.run), *pair) for pair in pairs]
    code = SAME if all(pair.is_same for pair in found) else DIFFERS
    if options.json:
        data = [plain.of_pair(pair, options.context) for pair in found]
        return _said({"same": code == SAME, "a": plain.of_run(a.run), "b": plain.of_run(b.run), "compiles": data}, code)
    console = Console(sys.stdout)
    for pair in found:
        _print_pair(console, pair, options.context)
    return code


def _print_pair(console: Console, pair: Beside, context: int) -> None:
    """Each step of two compiles, and what is different where they part."""
    if pair.a is None or pair.b is None:
        compile, side = (pair.a, "a") if pair.a is not None else (pair.b, "b")
        assert compile is not None
        console.heading(f"{_named(compile)} · only in {side}")
        return
    console.heading(f"{_named(pair.b)} · {'same' if pair.is_same else 'different'}")
    for each in pair.steps:
        mark = "=" if each.is_same else "a" if each.b is None else "b" if each.a is None else "≠"
        console.text(f"  {mark} {queries.key_of(each.step)}", Style.PLAIN if mark == "=" else Style.PLACE)
    if pair.parted is not None:
        console.heading(f"they part in {queries.key_of(pair.parted.step)}")
        _print_diff(console, pair.diff(context))


def _named(compile: Compile) -> str:
    return " · ".join(filter(None, [terminal.name_of(compile), compile.target])) or "passes called by hand"


def _print_diff(console: Console, lines: Sequence[str]) -> None:
    for line in lines:
        console.text(line, terminal.STYLES.get(line[:1], Style.PLAIN))


def _find(options: argparse.Namespace) -> int:
    place = _place(options)
    found = [queries.find(place.run, compile, options.text) for compile in place.compiles]
    code = SAME if any(found) else DIFFERS
    if options.json:
        return _said(
            {"text": options.text, "found": code == SAME, "compiles": [plain.of_found(each) for each in found]}, code
        )
    console = Console(sys.stdout)
    for each in found:
        console.heading(_named(each.compile))
        for line in _told(each):
            console.text(f"  {line}")
    return code


def _told(found: Found) -> list[str]:
    if not found:
        return ["no step has it"]
    told = ["the program has it before any step"] if found.is_original else []
    if found.first is not None and found.last is not None:
        told += [f"first  {plain.line_of(found.first)}", f"last   {plain.line_of(found.last)}"]
    return told if found.gone is None else [*told, f"gone   {plain.line_of(found.gone)}"]


def _blame(options: argparse.Namespace) -> int:
    place = _place(options)
    step = meant.one_step(place, options.step)
    made = Blame(place.run, place.run.compiles[step.c]).of(step) if step.after is not None else None
    if made is None:
        raise TraceError("TK432", f"{step.phase}/{step.title} made nothing: it {step.status.value}")
    lines = plain.lines_made(place.run, step)
    rows = list(zip(range(1, len(lines) + 1), lines, made, strict=True))
    if options.line is not None:
        rows = [row for row in rows if row[0] == options.line]
        if not rows:
            raise TraceError(
                "TK432", f"{step.phase}/{step.title} made {len(made)} lines, so there is no line {options.line}"
            )
    if options.json:
        data = [{"line": n, "text": text, "step": None if who is None else plain.of_step(who)} for n, text, who in rows]
        return _said({"step": plain.of_step(step), "lines": data}, SAME)
    console = Console(sys.stdout)
    width = max((len(plain.short(who)) for _, _, who in rows), default=0)
    for number, text, who in rows:
        console.text(f"{plain.short(who):{width}} {number:5}  {text}")
    return SAME


def _rerun(options: argparse.Namespace) -> int:
    place = _place(options)
    step = meant.one_step(place, options.step)
    # it brings the compiler, which nothing else here needs
    rerun = importlib.import_module("tilekit.tools.lower_trace.rerun").rerun
    sys.stdout.write(rerun(place.run, place.run.compiles[step.c], step))
    return SAME


def _bisect(options: argparse.Namespace) -> int:
    script: Path = options.script
    if not script.is_file():
        raise TraceError("TK431", f"there is no file {script}")
    # they bring the compiler, which nothing else here needs
    observer = importlib.import_module("tilekit.jit.observer")
    aliases = importlib.import_module("tilekit.aliases")
    as_edited = importlib.import_module("tilekit.tools.lower_trace.session").as_edited
    found: list[Bisection] = []
    seen: set[tuple[InstantiatedScript, JitKey]] = set()

    def called(handle: InstantiatedScript, kind: JitKey, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        if (handle, kind) in seen or not settings.matches(handle.script_name, options.kernel or "*"):
            return
        seen.add((handle, kind))
        found.append(handle.bisect(*args, blocks=options.blocks, seed=options.seed, **kwargs))
        if not options.json:
            print(found[-1], flush=True)

    aliases.install_as_tilus()
    sys.argv = [str(script), *options.arguments]
    sys.path.insert(0, str(script.resolve().parent))
    try:
        # what the script prints is not the answer
        out = sys.stderr if options.json else sys.stdout
        with as_edited(), observer.calls_told_to(called), redirect_stdout(out):
            runpy.run_path(str(script), run_name="__main__")
    except TilekitError:
        if all(each.is_good for each in found):
            raise
        # a kernel that is wrong has stopped the script
    except SystemExit as ended:
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
        if ended.code not in (None, 0) and all(each.is_good for each in found):
            raise TraceError("TK434", f"{script} gave up by itself") from None
    except Exception as error:
        if all(each.is_good for each in found):
            sys.stderr.writelines(traceback.format_exception(type(error), error, _frames_of(script, error)))
            return ERROR
    if not found:
        raise TraceError("TK432", f"{script} called no kernel{f' like {options.kernel}' if options.kernel else ''}")
    code = SAME if all(each.is_good for each in found) else DIFFERS
    return _said({"kernels": [each.to_json() for each in found]}, code) if options.json else code


def _frames_of(script: Path, error: BaseException) -> TracebackType | None:
    """Where a script raised something, without those who ran it; a script that does not parse has not begun."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename != str(script):
        frames = frames.tb_next
    return frames


def _gc(options: argparse.Namespace) -> int:
    folder: Path = options.folder or settings.resolve().folder
    if options.folder is not None and not folder.is_dir():
        raise TraceError("TK431", f"there is no folder {folder}")
    gone = [info for home in meant.homes(folder) for info in shelf.expired(home, options.keep, options.limit)]
    sizes = [info.nbytes() for info in gone]
    if not options.dry_run:
        shelf.remove(gone)
        for home in {info.path.parent.parent for info in gone}:
            shelf.write_index(home)
    if options.json:
        data = [{"path": str(info.path), "bytes": size} for info, size in zip(gone, sizes, strict=True)]
        return _said({"dry_run": options.dry_run, "removed": data, "bytes": sum(sizes)}, SAME)
    for info, size in zip(gone, sizes, strict=True):
        print(f"{info.path}  {size:,} bytes")
    print(f"{len(gone)} runs {'would go' if options.dry_run else 'removed'}, {sum(sizes):,} bytes")
    return SAME


def _said(data: Mapping[str, Any], code: int) -> int:
    print(json.dumps({"schema": plain.SCHEMA, **data}, indent=2))
    return code
