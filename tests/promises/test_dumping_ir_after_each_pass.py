# SPDX-License-Identifier: Apache-2.0
"""Dumping IR after each pass."""

import re

import pytest

from tests.promises.kernels import compiled, programs, scaling
from tilekit import config, option
from tilekit.events import Stage
from tilekit.ir.prog import Program
from tilekit.ir.text import parser
from tilekit.ir.tools.equality import structurally_equal


def dumped(folder):
    """The dumped texts in the order of the numbers that their names begin with; the first is what came in."""
    files = [file for file in folder.iterdir() if re.match(r"\d+_", file.name)]
    return [file.read_text() for file in sorted(files, key=lambda file: int(file.name.partition("_")[0]))]


def passes(kernel, stage):
    return [step for step in kernel.trace.steps if step.stage is stage]


def test_nothing_is_dumped_unless_asked_for(cache):
    compiled(scaling())
    (program,) = programs(cache)
    assert not (program / "ir").exists() and not (program / "module" / "ir").exists()


def test_calling_dump_ir_before_a_kernel_is_enough():
    option.debug.dump_ir()
    assert config.resolve().dump_ir
    option.debug.dump_ir(False)
    assert not config.resolve().dump_ir


@pytest.mark.parametrize(("stage", "folder"), [(Stage.TILE, "ir"), (Stage.HIDET, "module/ir")], ids=["tile", "hidet"])
def test_the_ir_after_each_pass_is_dumped(stage, folder, cache):
    option.debug.dump_ir()
    kernel = compiled(scaling())
    (program,) = programs(cache)
    steps = passes(kernel, stage)
    assert dumped(program / folder) == [steps[0].before_text, *(step.after_text for step in steps)]


def test_a_dumped_program_reads_back(cache):
    option.debug.dump_ir()
    kernel = compiled(scaling())
    (program,) = programs(cache)
    for text, step in zip(dumped(program / "ir")[1:], passes(kernel, Stage.TILE), strict=True):
        assert isinstance(step.after, Program) and structurally_equal(parser.parse_program(text), step.after)


def test_a_kernel_that_was_compiled_before_is_dumped_too(cache):
    compiled(scaling())
    option.debug.dump_ir()
    compiled(scaling())
    assert [program for program in programs(cache) if (program / "ir").is_dir() and (program / "module/ir").is_dir()]
