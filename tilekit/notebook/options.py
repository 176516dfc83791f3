# SPDX-License-Identifier: Apache-2.0
"""The options on the first line of a `%%tilus` cell."""

from __future__ import annotations

import argparse
import ast
import re
import shlex
from dataclasses import dataclass
from typing import Any, NoReturn

from tilekit import dtypes, target
from tilekit.diag import errors
from tilekit.jit.spec import TensorSpec
from tilekit.target import Target

HELP = """\
%%tilus [--target NAME] [--args VALUES] [--help]

Runs the cell as an ordinary one in which `import tilus` means tilekit, and shows one line for each kernel
that it compiles: target, device, passes, registers, shared memory, spills, compile time and run time.

  --target NAME   the instruction set to compile for, such as sm_80, sm_89 or sm_90a; by default that of
                  the GPU, or sm_90a where there is none. With CPU tensors the kernel runs on the CPU.
  --args VALUES   compile the cell's kernel for these arguments without data, without launching and without a
                  GPU: numbers, and tensors as dtype[shape], for example --args "8192, f16[8192, 8192]"
  --help          show this text
"""

NAMES = ("--target", "--args", "--help")


@dataclass(frozen=True)
class Options:
    """What the first line asks for."""

    target: Target | None = None
    args: tuple[Any, ...] | None = None
    help: bool = False


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise errors.LanguageError("TK802", f"%%tilus: {message}", help="%%tilus --help lists the options")


def parse(line: str) -> Options:
    """Read the first line, or say what is wrong with it."""
    parser = _Parser(prog="%%tilus", add_help=False, allow_abbrev=False)
    parser.add_argument("--target")
    parser.add_argument("--args")
    parser.add_argument("--help", action="store_true")
    try:
        words = shlex.split(line)
    except ValueError as problem:
        parser.error(f"{problem} in {line!r}")
    found = parser.parse_args(words)
    return Options(
        target=None if found.target is None else target.parse(found.target),
        args=None if found.args is None else parse_arguments(found.args),
        help=found.help,
    )


_TENSOR = re.compile(r"(?P<dtype>\w+)\s*\[(?P<shape>[^\]]*)\]\s*$")


def parse_arguments(text: str) -> tuple[Any, ...]:
    """Numbers, strings, and tensors as dtype[shape], separated by commas."""
    parts = [part.strip() for part in re.split(r",(?![^\[]*\])", text)]
    return tuple(_argument(part) for part in parts if part)


def _argument(part: str) -> Any:
    tensor = _TENSOR.match(part)
    if tensor is not None:
        extents = [extent.strip() for extent in tensor["shape"].split(",") if extent.strip()]
        if not all(extent.isdecimal() for extent in extents):
            raise errors.LanguageError("TK802", f"--args: the shape in {part!r} must be numbers")
        return TensorSpec(dtypes.parse(tensor["dtype"]), tuple(map(int, extents)))
    try:
        return ast.literal_eval(part)
    except (ValueError, SyntaxError):
        raise errors.LanguageError(
            "TK802", f"--args: {part!r} is neither a number nor dtype[shape]", help='for example --args "8192, f16[8192, 64]"'
        ) from None
