# SPDX-License-Identifier: Apache-2.0
"""Every instruction is complete: this names what a new one still lacks."""

from pathlib import Path

import pytest

from tilekit.backends import codegen, registry
from tilekit.ir import inst, instructions
from tilekit.ir.inst import Effects, Instruction
from tilekit.lang import methods
from tilekit.lang.methods import KernelMethods

SAMPLES = Path(__file__).parents[1] / "ir" / "samples"
CLASSES = sorted(inst.REGISTRY.values(), key=lambda cls: cls.opcode)
assert codegen and instructions

# gone before code is generated: passes turn them into their generic forms
LOWERED = {"load_global", "store_global"}


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.opcode)
def test_an_instruction_says_what_it_is(cls):
    assert (cls.__doc__ or "").strip()
    assert "create" in vars(cls), "create() checks and builds it"


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.opcode)
def test_an_instruction_has_an_emitter(cls):
    known = registry.emitted()
    assert cls.opcode in LOWERED or any(base in known for base in cls.__mro__)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.opcode)
def test_an_instruction_has_a_meaning_in_numpy(cls):
    assert cls.execute is not Instruction.execute


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.opcode)
def test_an_instruction_has_a_sample(cls):
    assert (SAMPLES / f"{cls.opcode}.tile").is_file(), f"write tests/ir/samples/{cls.opcode}.tile"


def test_the_instructions_without_side_effects_are_these():
    """The allow-list of what may be removed when nobody uses the result; whoever adds to it adds here."""
    removable = {cls.opcode for cls in CLASSES if cls.effects is not Effects.SIDE}
    print(sorted(removable))
    assert removable == {
        "add",
        "assign",
        "binary",
        "cast",
        "div",
        "global_view",
        "load_global",
        "load_global_generic",
        "mul",
        "reduce",
        "register_tensor",
        "sub",
        "unary",
        "where",
    }


@pytest.mark.parametrize("name", methods.names())
def test_a_method_of_the_language_has_a_docstring(name):
    method = getattr(KernelMethods, name)
    assert (method.__doc__ or "").strip().endswith((".", "`", ")", "one."))
