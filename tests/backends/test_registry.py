# SPDX-License-Identifier: Apache-2.0
"""Every instruction is complete: this names what a new one still lacks."""

from pathlib import Path

import pytest

from tests.ir import strategies
from tilekit.backends import registry
from tilekit.backends.emitters import cuda
from tilekit.ir import instructions
from tilekit.ir.inst import PURE, READS, REGISTRY, SIDE, Instruction
from tilekit.ir.instructions import generic
from tilekit.ir.surface import Surface
from tilekit.lang import methods
from tilekit.lang.methods import KernelMethods

SAMPLES = Path(__file__).parents[1] / "ir" / "samples"
CLASSES = sorted(REGISTRY.values(), key=lambda cls: cls.opcode)

# What may be removed when nobody uses its result. That is said twice, by the class and here, so that nobody says it by
# mistake: whoever adds such an instruction adds it here.
REMOVABLE = {
    **dict.fromkeys(["add", "sub", "mul", "div", "unary", "binary", "cast", "where", "reduce"], PURE),
    **dict.fromkeys(["assign", "global_view", "register_tensor"], PURE),
    **dict.fromkeys(["dot", "transpose", "squeeze", "unsqueeze", "reshape", "view"], PURE),
    **dict.fromkeys(["slice_register", "slice_assign"], PURE),
    **dict.fromkeys(["shared_tensor", "slice_shared", "permute_shared", "reshape_shared", "global_tensor"], PURE),
    **dict.fromkeys(["load_global", "load_global_generic", "load_shared"], READS),
}

# gone before code is generated: passes turn them into their generic forms
LOWERED = {"load_global", "store_global", "copy_async", "assume"}


@pytest.mark.parametrize("package", [instructions, cuda], ids=lambda package: package.__name__)
def test_a_file_of_instructions_or_emitters_is_imported(package):
    files = {file.stem for file in Path(package.__file__).parent.glob("*.py")} - {"__init__", "generic"}
    assert files == set(package.__all__), f"import every file in {package.__file__}"


def test_methods_belong_to_the_language():
    missing = [cls.__name__ for cls in Surface.__subclasses__() if not issubclass(KernelMethods, cls)]
    assert not missing, f"make these bases of KernelMethods in tilekit/lang/methods.py: {missing}"


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.opcode)
def test_an_instruction_says_what_it_is(cls):
    assert (cls.__doc__ or "").strip()
    assert "create" in vars(cls), "create() checks and builds it"


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.opcode)
def test_an_instruction_has_an_emitter(cls):
    has_one = any(base in registry.emitted() for base in cls.__mro__)
    assert has_one or cls.opcode in LOWERED, f"write @emitter({cls.__name__}) in tilekit/backends/emitters/cuda/"


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.opcode)
def test_an_instruction_has_a_meaning_in_numpy(cls):
    assert cls.execute is not Instruction.execute, f"write execute() of {cls.__name__}"


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.opcode)
def test_an_instruction_has_a_sample(cls):
    assert (SAMPLES / f"{cls.opcode}.tile").is_file(), f"write tests/ir/samples/{cls.opcode}.tile"


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.opcode)
def test_an_instruction_stands_in_random_programs(cls):
    assert cls.opcode in strategies.INSTRUCTIONS, f"add {cls.opcode!r} to INSTRUCTIONS of tests/ir/strategies.py"


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.opcode)
def test_an_instruction_can_be_imported_with_all_others(cls):
    name = cls.__name__
    assert getattr(generic, name, None) is cls and name in generic.__all__, f"add {name} to {generic.__file__}"


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.opcode)
def test_what_may_be_removed_is_on_the_list(cls):
    assert REMOVABLE.get(cls.opcode, SIDE) is cls.effects, f"say the effects of {cls.opcode!r} in REMOVABLE above too"


@pytest.mark.parametrize("name", methods.names())
def test_a_method_of_the_language_has_a_docstring(name):
    method = getattr(KernelMethods, name)
    assert (method.__doc__ or "").strip().endswith((".", "`", ")", "one."))
