# SPDX-License-Identifier: Apache-2.0
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ir.strategies import programs
from tests.lowir import expressions
from tilekit import dtypes
from tilekit.ir.func import Function, Metadata
from tilekit.ir.inst import REGISTRY, Instruction, operand, static
from tilekit.ir.instructions.register import AllocateRegisterInst
from tilekit.ir.prog import Program
from tilekit.ir.stmt import DeclareStmt, ForStmt, IfStmt, InstStmt, LetStmt, SeqStmt, Stmt
from tilekit.ir.tensor import RegisterTensor
from tilekit.ir.text import parser
from tilekit.ir.tools import collect
from tilekit.ir.tools.equality import structurally_equal
from tilekit.lowir import scalar


def program(*lines: Stmt, params=()) -> Program:
    one = scalar.constant(dtypes.int32, 1)
    indices = [scalar.block_idx(axis) for axis in range(3)]
    metadata = Metadata.create((one, one, one), (1, 1, 1), indices, num_warps=1)
    return Program.create({"f": Function.create("f", params, SeqStmt.create(lines), metadata)})


def assert_round_trips(prog: Program) -> None:
    text = str(prog)
    again = parser.parse_program(text)
    assert str(again) == text
    assert structurally_equal(prog, again)
    assert structurally_equal(again, prog)


@settings(max_examples=60)
@given(programs())
def test_random_program_reads_back_as_itself(prog):
    assert_round_trips(prog)


@settings(max_examples=40)
@given(st.data(), st.sampled_from(expressions.SCALARS))
def test_every_number_reads_back_as_itself(data, dtype):
    number = data.draw(expressions.numbers(dtype))
    tile = RegisterTensor.create(dtype, (4,), name="x")
    inst = AllocateRegisterInst.create(tile, lambda _: scalar.constant(dtype, number))
    (again,) = collect(parser.parse_program(str(program(InstStmt(inst)))), AllocateRegisterInst)
    assert again.init is not None
    value = scalar.constant_value(again.init)
    assert type(value) is type(number)
    if isinstance(value, float) and (value == 0 or math.isnan(value)):
        assert repr(value) == repr(number)
    else:
        assert value == number


def test_functions_of_a_program_are_told_apart():
    first, second = (program().function.replace(name=name) for name in ("first", "second"))
    assert_round_trips(Program.create({"first": first, "second": second}))


def test_variable_that_two_loops_share_stays_one_variable():
    i, three = scalar.var("i", dtypes.int32), scalar.constant(dtypes.int32, 3)
    prog = program(ForStmt(i, three, SeqStmt(())), ForStmt(i, three, SeqStmt(())))
    assert_round_trips(prog)
    first, second = collect(parser.parse_program(str(prog)), ForStmt)
    assert first.iter_var is second.iter_var


def test_axes_of_one_instruction_may_be_called_as_those_of_another_but_not_as_a_loop():
    tiles = [RegisterTensor.create(dtypes.int32, (4,), name=name) for name in "ab"]
    first, second = (AllocateRegisterInst.create(tile, lambda axes: axes[0]) for tile in tiles)
    loop = ForStmt(scalar.var("i", dtypes.int32), scalar.constant(dtypes.int32, 2), InstStmt(second))
    alone = program(InstStmt(first), InstStmt(second))
    assert str(alone).count("register_tensor(axes=[i], init=i)") == 2
    assert str(program(InstStmt(first), loop)).count("register_tensor(axes=[i_1], init=i_1)") == 2
    assert_round_trips(program(InstStmt(first), loop))


def test_let_that_ends_before_its_block_does_is_shown_as_a_scope():
    x, one = scalar.var("x", dtypes.int32), scalar.constant(dtypes.int32, 1)
    let = LetStmt((x,), (one,), SeqStmt(()))
    declare = DeclareStmt(scalar.var("y", dtypes.int32), one)
    assert "with scope:\n        x: Let[i32] = i32(1)\n    y: i32 = i32(1)" in str(program(let, declare))
    assert "\n    y: i32 = i32(1)\n    x: Let[i32] = i32(1)" in str(program(declare, let))
    assert_round_trips(program(let, declare))


@pytest.mark.parametrize("depth", [1, 40])
def test_deep_chain_of_branches_prints_flat(depth):
    n = scalar.var("n", dtypes.int32)
    chain: Stmt | None = None
    for number in range(depth):
        chain = IfStmt(scalar.eq(n, scalar.constant(dtypes.int32, number)), SeqStmt(()), chain)
    assert chain is not None
    prog = program(chain, params=[n])
    assert max(len(line) - len(line.lstrip()) for line in str(prog).splitlines()) == 8
    assert_round_trips(prog)


def test_plain_data_of_every_kind_reads_back():
    class DataInst(Instruction, opcode="data_for_this_test"):
        x: RegisterTensor = operand()
        parts: tuple[RegisterTensor, ...] = operand()
        number: float = static()
        numbers: tuple[tuple[int, ...], ...] = static()
        kind: dtypes.DataType = static()
        case: dtypes.Kind | None = static(default=None)
        text: str = static(default="plain")

    try:
        x = RegisterTensor.create(dtypes.float32, (4,), name="x")
        fill = InstStmt(AllocateRegisterInst.create(x, lambda _: scalar.constant(dtypes.float32, 0)))
        for number in (0.5, -0.0, float("nan"), float("-inf"), 1e300):
            plain = DataInst(None, x, (x, x), number, ((1, -2), ()), dtypes.bfloat16)
            assert_round_trips(program(fill, InstStmt(plain)))
            assert_round_trips(program(fill, InstStmt(plain.replace(case=dtypes.Kind.UINT, text='a "b" é\n'))))
        assert "data_for_this_test(x, [x, x], number=1e+300, numbers=[[1, -2], []], kind=bf16)" in str(
            program(fill, InstStmt(plain))
        )
    finally:
        del REGISTRY["data_for_this_test"]
