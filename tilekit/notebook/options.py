# SPDX-License-Identifier: Apache-2.0
"""The options on the first line of a `%%tilus` cell."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tilekit import dtypes, target
from tilekit.diag import Located, Location, Span, TilekitError, errors, suggest
from tilekit.jit.spec import TensorSpec
from tilekit.target import Target

MAGIC = "%%tilus"

HELP = """\
%%tilus [--target NAME] [--args VALUES] [--check] [--bench] [--help]

Runs the cell as an ordinary one in which `import tilus` means tilekit, and shows one line for each kernel
that it compiles: target, device, passes, registers, shared memory, spills, compile time and run time.

  --target NAME   the instruction set to compile for, such as sm_80, sm_89 or sm_90a; by default that of
                  the GPU, or sm_90a where there is none. With CPU tensors the kernel runs on the CPU.
  --args VALUES   compile the cell's kernel for these arguments without data, without launching and without a
                  GPU: numbers, and tensors as dtype[shape], for example --args "8192, f16[8192, 8192]"
  --check         what the cell runs on the CPU runs in check mode: races, copies that nobody waited for, reads of
                  what was never written and accesses outside of tensors are errors with their lines
  --bench         when the cell is done, measure the kernel that it launched last on the same arguments, as
                  kernel.bench() does; against peers, and at a rate, if the cell says so in these names:
                      against = {"torch": torch.matmul}
                      flops = lambda a, b: 2 * a.shape[0] * a.shape[1] * b.shape[1]
  --help          show this text
"""

NAMES = ("--target", "--args", "--check", "--bench", "--help")
# what a cell may say to `--bench`, by the names of the arguments of `kernel.bench`
BENCH_NAMES = ("against", "flops")


@dataclass(frozen=True)
class FirstLine:
    """The line of a magic in a cell, and where a person sees it."""

    text: str
    cell: str
    number: int

    def placed(self, error: TilekitError, at: Span) -> TilekitError:
        """An error that has no other place, shown at this stretch of the line."""
        if error.located(at).diagnostic.at is at:
            end = min(at.end_col, len(self.text))
            place = Location("", self.cell, self.number, at.col, self.number, end, self.text)
            error.sources = Located({at: place})
        return error

    @property
    def span(self) -> Span:
        return Span(self.text.split()[0], 0, 0, 0, len(self.text))


@dataclass(frozen=True)
class Options:
    """What the first line asks for, and where `--args` and `--bench` stand in it."""

    target: Target | None = None
    args: tuple[Any, ...] | None = None
    args_at: Span | None = None
    help: bool = False
    check: bool = False
    bench_at: Span | None = None


@dataclass(frozen=True)
class Word:
    """A word of the line without its quotes, and the columns that it takes with them."""

    text: str
    begin: int
    end: int
    magic: str

    @property
    def span(self) -> Span:
        return Span(self.magic, 0, self.begin, 0, self.end)


# letters and quoted stretches in any mixture; a quote that nothing closes is a word too, and refused
_WORD = re.compile(r"""(?:[^\s"']|"[^"]*"|'[^']*'|["'].*$)+""")
_QUOTED = re.compile(r"""(["'])(.*?)\1""")


def words(line: str) -> Iterator[Word]:
    """The words behind the magic; quotes keep spaces together."""
    magic, *others = _WORD.finditer(line)
    for found in others:
        word = Word(_QUOTED.sub(r"\2", found[0]), found.start(), found.end(), magic[0])
        if set(_QUOTED.sub("", found[0])) & {'"', "'"}:
            raise refusal("a quote is not closed", word)
        yield word


def parse(line: str) -> Options:
    """Read the first line, or say what is wrong with it."""
    chosen: Target | None = None
    arguments: tuple[Any, ...] | None = None
    arguments_at: Span | None = None
    bench_at: Span | None = None
    wants_help = wants_check = False
    rest = words(line)
    for word in rest:
        name, equals, tail = word.text.partition("=")
        match name:
            case "--help" if not equals:
                wants_help = True
            case "--check" if not equals:
                wants_check = True
            case "--bench" if not equals:
                bench_at = word.span
            case "--target":
                chosen = _target(value_of(word, equals, tail, rest, "the name of a target, such as sm_90a"))
            case "--args":
                value = value_of(word, equals, tail, rest, 'values, such as "8192, f16[8192, 64]"')
                arguments, arguments_at = _arguments(value), value.span
            case _:
                near = suggest(name, NAMES)
                hint = f"did you mean {near}?" if near else "%%tilus --help lists the options"
                raise refusal(f"%%tilus has no option {word.text}", word, hint)
    return Options(chosen, arguments, arguments_at, wants_help, wants_check, bench_at)


def value_of(word: Word, equals: str, tail: str, rest: Iterator[Word], what: str) -> Word:
    """What an option is given: behind an equals sign, or as the next word."""
    if equals:
        return Word(tail, word.end - len(tail), word.end, word.magic)
    value = next(rest, None)
    if value is None or value.text.startswith("--"):
        raise refusal(f"{word.text} needs {what}", word)
    return value


def refusal(message: str, at: Word, help: str | None = None) -> errors.LanguageError:
    return errors.LanguageError("TK802", message, at=at.span, help=help)


def _target(word: Word) -> Target:
    try:
        return target.parse(word.text)
    except TilekitError as error:
        raise error.located(word.span) from None


def _arguments(word: Word) -> tuple[Any, ...]:
    try:
        return parse_arguments(word.text)
    except TilekitError as error:
        raise error.located(word.span) from None


_TENSOR = re.compile(r"(?P<dtype>\w+)\s*\[(?P<shape>[^\]]*)\]$")


def parse_arguments(text: str) -> tuple[Any, ...]:
    """Numbers, strings, and tensors as dtype[shape], separated by commas."""
    parts = [part.strip() for part in re.split(r",(?![^\[]*\])", text)]
    return tuple(_argument(part) for part in parts if part)


def _argument(part: str) -> Any:
    tensor = _TENSOR.match(part)
    if tensor is not None:
        extents = [extent.strip() for extent in tensor["shape"].split(",") if extent.strip()]
        if not all(extent.isdecimal() for extent in extents):
            raise errors.LanguageError("TK802", f"the shape in {part!r} must be numbers")
        return TensorSpec(dtypes.parse(tensor["dtype"]), tuple(map(int, extents)))
    try:
        return ast.literal_eval(part)
    except (ValueError, SyntaxError):
        example = 'for example --args "8192, f16[8192, 64]"'
        raise errors.LanguageError("TK802", f"{part!r} is neither a number nor dtype[shape]", help=example) from None
