# SPDX-License-Identifier: Apache-2.0
"""Tilus IR Structure."""

import dataclasses
from typing import Any

import pytest

from tests.backends.test_registry import REMOVABLE
from tests.promises.due import due, promised
from tests.promises.kernels import Memory, description, function, scaling, tile
from tilekit import drivers, dtypes
from tilekit.ir import func as functions
from tilekit.ir import inst as instructions
from tilekit.ir import prog as programs
from tilekit.ir import stmt as stmts
from tilekit.ir import tensor as tensors
from tilekit.ir.inst import PURE, REGISTRY, Instruction, operand
from tilekit.ir.instructions import generic
from tilekit.ir.prog import Program
from tilekit.ir.tensor import RegisterTensor
from tilekit.ir.tools.instruction_collector import collect_instructions
from tilekit.transforms import dead_code_elimination_pass

FUNCTIONAL = {opcode for opcode, effects in REMOVABLE.items() if effects is PURE}


def options(cls: Any) -> Any:
    """What a dataclass was made with."""
    return cls.__dataclass_params__


# ------------------------------------------------------------------------------------------- programs and functions


def test_a_program_is_a_frozen_dict_of_functions():
    program: Program = scaling()._jit_instance_for(*description()).transpiled_programs[0]
    assert isinstance(program, programs.Program)
    assert isinstance(program.functions, programs.frozendict) and isinstance(program.functions, dict)
    ((name, func),) = program.functions.items()
    assert name == func.name and isinstance(func, functions.Function)
    with pytest.raises(TypeError):
        program.functions["other"] = func
    with pytest.raises(TypeError):
        program.functions |= {}


def test_a_function_has_name_params_body_and_metadata():
    func = scaling()._jit_instance_for(*description()).transpiled_programs[0].function
    assert {"name", "params", "body", "metadata"} <= {field.name for field in dataclasses.fields(func)}
    assert isinstance(func.name, str) and [param.hint for param in func.params] == ["n", "x", "y"]
    assert isinstance(func.body, stmts.Stmt) and isinstance(func.metadata, functions.Metadata)


# ------------------------------------------------------------------------------------------------------- statements


@pytest.mark.parametrize(
    "name",
    [
        *["SeqStmt", "ForStmt", "IfStmt", "WhileStmt", "LetStmt", "InstStmt"],
        pytest.param("ThreadGroupStmt", marks=due(7, "there are no thread groups yet")),
    ],
)
def test_a_statement_is_a_frozen_dataclass(name):
    cls = promised(stmts, name)
    assert issubclass(cls, stmts.Stmt) and options(cls).frozen


def test_no_field_of_a_statement_can_be_set():
    stmt = stmts.SeqStmt(())
    with pytest.raises(dataclasses.FrozenInstanceError):
        stmt.seq = (stmt,)


def test_an_instruction_stands_in_the_tree_inside_an_inst_stmt():
    inst = generic.SyncThreadsInst.create()
    stmt = stmts.InstStmt(inst)
    assert stmt.inst is inst and isinstance(stmt, stmts.Stmt) and not isinstance(inst, stmts.Stmt)


# ----------------------------------------------------------------------------------------------------- instructions


def test_an_instruction_has_an_output_or_none_inputs_and_attributes():
    memory = Memory()
    load = memory.load()
    store = memory.store(load.register_output)
    assert isinstance(load, instructions.Instruction)
    assert isinstance(load.output, RegisterTensor) and load.inputs == (memory.view,)
    assert store.output is None and store.inputs == (memory.view, load.output)
    assert store.attributes.keys() == {"offsets", "dims"}


def test_functional_instructions_are_on_an_explicit_list():
    assert {opcode for opcode, cls in REGISTRY.items() if cls.effects is PURE} == FUNCTIONAL


def test_a_slice_of_registers_is_functional():
    assert generic.SliceRegisterInst.effects is PURE


class Tally(Instruction):
    """Says nothing about its effects, and gives a result."""

    x: RegisterTensor = operand()


class Nothing(Instruction, effects=PURE):
    """On the list, and gives no result."""

    x: RegisterTensor = operand()


def test_the_list_decides_and_not_whether_there_is_an_output():
    memory = Memory()
    load = memory.load()
    kept, removed = Tally(tile(), load.register_output), Nothing(None, load.register_output)
    func = function([memory.made, load, kept, removed], memory.params)
    assert collect_instructions(dead_code_elimination_pass().process_function(func)) == [memory.made, load, kept]


def test_stores_and_barriers_have_side_effects():
    for cls in (generic.StoreGlobalInst, generic.StoreGlobalGenericInst, generic.SyncThreadsInst):
        assert cls.effects is instructions.SIDE


def test_side_effects_outlive_the_whole_pipeline():
    memory = Memory()
    load = memory.load()
    sync = generic.SyncThreadsInst.create
    func = function([memory.made, load, sync(), memory.store(load.register_output), sync()], memory.params)
    optimized = drivers.optimize_program(Program.create({func.name: func})).function
    assert [type(inst) for inst in collect_instructions(optimized)] == [
        generic.LoadGlobalGenericInst,
        generic.SyncThreadsInst,
        generic.StoreGlobalGenericInst,
        generic.SyncThreadsInst,
    ]


# ---------------------------------------------------------------------------------------------------------- tensors


@pytest.mark.parametrize(
    "name",
    [
        *["RegisterTensor", "SharedTensor", "GlobalTensor"],
        pytest.param("TMemoryTensor", marks=due(7, "there is no tensor memory yet")),
    ],
)
def test_a_tensor_class_is_frozen_and_compares_by_identity(name):
    cls = promised(tensors, name)
    assert issubclass(cls, tensors.Tensor) and options(cls).frozen and not options(cls).eq
    assert cls.__eq__ is object.__eq__ and cls.__hash__ is object.__hash__


def test_equal_tensors_are_not_the_same():
    a, b = (RegisterTensor.create(dtypes.float32, [8], name="x") for _ in range(2))
    assert a == a and a != b and len({a, b}) == 2
