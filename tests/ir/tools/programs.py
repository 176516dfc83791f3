# SPDX-License-Identifier: Apache-2.0
"""Small programs in text, and what the verifier says about them."""

import pytest

from tilekit.diag import VerificationError
from tilekit.ir.prog import Program
from tilekit.ir.text import parser
from tilekit.ir.tools import verify

HEADER = """\
@kernel(
    grid=[i32(1), i32(1), i32(1)],
    warps=1,
)
def f(n: i32, x: ~f32):
"""


def program(*lines: str) -> Program:
    """A kernel of one warp and one block with this body."""
    return parser.parse_program(HEADER + "".join(f"    {line}\n" for line in lines))


def refusal(prog: Program) -> VerificationError:
    """The error of a program that the verifier refuses."""
    with pytest.raises(VerificationError) as error:
        verify(prog)
    return error.value


def one_line(error: VerificationError) -> str:
    """The message with the line it points at, notes and help behind it."""
    found = error.diagnostic
    assert found.at is not None
    notes = [f"; {note} (line {at.line})" for note, at in found.notes if at is not None]
    return f"line {found.at.line}: {found.message}" + "".join(notes) + (f"; {found.help}" if found.help else "")
