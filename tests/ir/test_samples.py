# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest

from tilekit.ir.inst import REGISTRY
from tilekit.ir.text import parser
from tilekit.ir.tools import collect_instructions, verify

FOLDER = Path(__file__).parent / "samples"
SAMPLES = sorted(FOLDER.glob("*.tile"))


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_sample_verifies_and_prints_as_it_is_written(path):
    text = path.read_text()
    prog = parser.parse_program(text)
    verify(prog)
    comment, _, program = text.partition("\n")
    assert comment.startswith("# ")
    assert str(prog) + "\n" == program


@pytest.mark.parametrize("opcode", REGISTRY)
def test_every_instruction_has_a_sample_that_uses_it(opcode):
    prog = parser.parse_program((FOLDER / f"{opcode}.tile").read_text())
    assert any(isinstance(inst, REGISTRY[opcode]) for inst in collect_instructions(prog.function))
