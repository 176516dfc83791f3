# SPDX-License-Identifier: Apache-2.0
"""Testing Passes."""

from collections import Counter
from pathlib import Path

import tilekit
from tests.promises.kernels import Memory, description, doubling, scaling
from tilekit import dtypes
from tilekit.ir.func import Function, Metadata
from tilekit.ir.instructions.elementwise import AddInst, CastInst, ElementwiseUnaryInst
from tilekit.ir.instructions.register import AllocateRegisterInst
from tilekit.ir.prog import Program
from tilekit.ir.stmt import InstStmt, SeqStmt
from tilekit.ir.tensor import RegisterTensor
from tilekit.ir.tools.instruction_collector import collect_instructions
from tilekit.ir.tools.verifier import verify
from tilekit.jit.instance import JitInstance
from tilekit.lowir import scalar
from tilekit.transforms import dead_code_elimination_pass

TESTS = Path(__file__).parents[1]


def by_hand() -> Function:
    """Fills a tile, adds it to itself, stores the sum, and casts it for nobody."""
    memory = Memory()
    fill = AllocateRegisterInst.create(
        RegisterTensor.create(dtypes.float32, [32]), lambda axes: scalar.cast(axes[0], dtypes.float32)
    )
    add = AddInst.create(fill.register_output, fill.register_output)
    half = CastInst.create(add.register_output, RegisterTensor.create(dtypes.float16, [32]))
    root = ElementwiseUnaryInst.create(half.register_output, "sqrt")
    store = memory.store(add.register_output)
    one = scalar.constant(dtypes.int32, 1)
    metadata = Metadata.create([one, one, one], [1, 1, 1], [scalar.block_idx(axis) for axis in range(3)], 1)
    body = SeqStmt(tuple(InstStmt(inst) for inst in (memory.made, fill, add, half, root, store)))
    return Function.create("by_hand", memory.params, body, metadata)


def test_ir_is_built_by_create_and_verifies():
    func = by_hand()
    verify(Program.create({func.name: func}))


def test_the_test_of_dead_code_elimination_is_an_example():
    example = (TESTS / "transforms" / "test_dead_code_elimination.py").read_text()
    for word in ("Function.create(", "SeqStmt", "InstStmt(", "Inst.create("):
        assert word in example


def test_collect_instructions_counts_by_type_after_a_pass():
    before = by_hand()
    after = dead_code_elimination_pass().process_function(before)
    gone = Counter(map(type, collect_instructions(before))) - Counter(map(type, collect_instructions(after)))
    assert gone == {CastInst: 1, ElementwiseUnaryInst: 1}


def test_jit_instance_for_gives_the_program_without_compiling(cache):
    script = scaling()
    assert isinstance(script, tilekit.InstantiatedScript)
    instance = script._jit_instance_for(*description())
    assert isinstance(instance, JitInstance)
    assert isinstance(instance.transpiled_programs[0], Program)
    assert script.kernels == [] and not cache.exists()


def test_there_is_a_transpiled_program_for_every_schedule():
    script = doubling()
    instance = script._jit_instance_for(*description())
    texts = [str(program) for program in instance.transpiled_programs]
    assert len(set(texts)) == len(script.schedules)
