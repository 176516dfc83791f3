# SPDX-License-Identifier: Apache-2.0
"""Dead-code elimination on IR that is built by hand: an example of a test of a pass.

Where a program is easier to read as text, `dead_code_elimination.tile` has it.
"""

from collections import Counter

import pytest

from tilekit import dtypes
from tilekit.ir.func import Function, Metadata
from tilekit.ir.inst import Instruction
from tilekit.ir.instructions.elementwise import AddInst, CastInst, MulInst
from tilekit.ir.instructions.memory import GlobalViewInst, LoadGlobalInst, StoreGlobalInst
from tilekit.ir.instructions.reduce import ReduceInst
from tilekit.ir.instructions.register import AllocateRegisterInst, AssignInst
from tilekit.ir.instructions.sync import SyncThreadsInst
from tilekit.ir.stmt import ForStmt, IfStmt, InstStmt, SeqStmt, Stmt
from tilekit.ir.tensor import GlobalLayout, GlobalTensor, RegisterTensor
from tilekit.ir.tools.instruction_collector import collect_instructions
from tilekit.lowir import scalar
from tilekit.transforms import dead_code_elimination_pass

F32, I32 = dtypes.float32, dtypes.int32
N, X = scalar.var("n", I32), scalar.var("x", ~F32)
ONE = scalar.constant(I32, 1)
VIEW = GlobalTensor.create(F32, GlobalLayout.row_major([N]), name="gx")
MAKE_VIEW = GlobalViewInst.create(VIEW, X)


def tile(dtype: dtypes.DataType = F32) -> RegisterTensor:
    return RegisterTensor.create(dtype, [64])


def load() -> LoadGlobalInst:
    return LoadGlobalInst.create(VIEW, [ONE], [0], tile())


def store(x: RegisterTensor) -> StoreGlobalInst:
    return StoreGlobalInst.create(VIEW, x, [ONE], [0])


def zeros() -> AllocateRegisterInst:
    return AllocateRegisterInst.create(tile(), lambda axes: scalar.constant(F32, 0.0))


def seq(*parts: Instruction | Stmt) -> SeqStmt:
    return SeqStmt(tuple(InstStmt(part) if isinstance(part, Instruction) else part for part in parts))


def kernel(*parts: Instruction | Stmt) -> Function:
    indices = [scalar.block_idx(axis) for axis in range(3)]
    metadata = Metadata.create([ONE, ONE, ONE], [1, 1, 1], indices, num_warps=2)
    return Function.create("kernel", [N, X], seq(*parts), metadata)


def after(func: Function) -> Function:
    return dead_code_elimination_pass().process_function(func)


def test_a_chain_that_nobody_uses_is_removed():
    used = load()
    unused = AddInst.create(used.register_output, used.register_output)
    half = CastInst.create(unused.register_output, tile(dtypes.float16))
    func = kernel(MAKE_VIEW, used, unused, half, store(used.register_output))
    before, left = (Counter(map(type, collect_instructions(f))) for f in (func, after(func)))
    assert before - left == {AddInst: 1, CastInst: 1}


def test_a_load_that_nobody_uses_is_removed():
    used = load()
    writes = store(used.register_output)
    assert collect_instructions(after(kernel(MAKE_VIEW, load(), used, writes))) == [MAKE_VIEW, used, writes]


def test_a_reduction_that_nobody_uses_is_removed():
    used = load()
    total = ReduceInst.create(used.register_output, [0], "sum", keepdim=False)
    assert collect_instructions(after(kernel(MAKE_VIEW, used, total))) == []


def test_stores_and_barriers_stay():
    used = load()
    parts = [MAKE_VIEW, used, SyncThreadsInst.create(), store(used.register_output), SyncThreadsInst.create()]
    assert collect_instructions(after(kernel(*parts))) == parts


def test_every_writer_of_a_tile_that_is_read_stays():
    total, more = zeros(), load()
    again = AssignInst.create(total.register_output, more.register_output)
    branch = IfStmt(scalar.lt(N, ONE), seq(again))
    writes = store(total.register_output)
    func = kernel(MAKE_VIEW, total, more, branch, writes)
    assert after(func) is func


def test_an_accumulator_keeps_its_loop_only_if_it_is_read():
    total, more = zeros(), load()
    added = AddInst.create(total.register_output, more.register_output, total.register_output)
    loop = ForStmt(scalar.var("i", I32), N, seq(more, added))
    writes = store(total.register_output)
    read = kernel(MAKE_VIEW, total, loop, writes)
    assert after(read) is read
    assert collect_instructions(after(kernel(MAKE_VIEW, total, loop))) == []


@pytest.mark.parametrize("of", [AddInst, MulInst])
def test_a_function_without_dead_code_comes_back_itself(of):
    used = load()
    result = of.create(used.register_output, used.register_output)
    func = kernel(MAKE_VIEW, used, result, store(result.register_output))
    assert after(func) is func
