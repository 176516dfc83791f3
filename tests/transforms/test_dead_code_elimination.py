# SPDX-License-Identifier: Apache-2.0
"""Dead-code elimination on IR that is built by hand."""

from collections import Counter

from tilekit import dtypes
from tilekit.ir.func import Function, Metadata
from tilekit.ir.inst import Instruction
from tilekit.ir.instructions.generic import (
    AddInst,
    AllocateRegisterInst,
    AssignInst,
    CastInst,
    ElementwiseUnaryInst,
    GlobalViewInst,
    LoadGlobalInst,
    ReduceInst,
    StoreGlobalInst,
    SyncThreadsInst,
)
from tilekit.ir.prog import Program
from tilekit.ir.stmt import (
    AssignStmt,
    BreakStmt,
    DeclareStmt,
    ForStmt,
    IfStmt,
    InstStmt,
    LetStmt,
    ReturnStmt,
    SeqStmt,
    Stmt,
    WhileStmt,
)
from tilekit.ir.tensor import GlobalLayout, GlobalTensor, RegisterTensor
from tilekit.ir.tools.instruction_collector import collect_instructions
from tilekit.lowir import scalar
from tilekit.transforms.dead_code_elimination import dead_code_elimination_pass

I32, F32 = dtypes.int32, dtypes.float32
ZERO, ONE = scalar.constant(I32, 0), scalar.constant(I32, 1)
TRUE = scalar.constant(dtypes.boolean, True)

n = scalar.var("n", I32)
pointer = scalar.var("p", ~F32)


def function(*body: Stmt | Instruction) -> Function:
    metadata = Metadata.create((ONE, ONE, ONE), (1, 1, 1), tuple(map(scalar.block_idx, range(3))), num_warps=4)
    return Function.create("f", [n, pointer], seq(*body), metadata)


def seq(*body: Stmt | Instruction) -> Stmt:
    return SeqStmt.create([InstStmt(line) if isinstance(line, Instruction) else line for line in body])


def run(func: Function) -> Function:
    return dead_code_elimination_pass()(Program.create({"f": func})).function


def lines(stmt: Stmt | None) -> tuple[Stmt, ...]:
    """The statements of a sequence."""
    assert isinstance(stmt, SeqStmt)
    return stmt.seq


def count(func: Function) -> Counter[type[Instruction]]:
    return Counter(type(inst) for inst in collect_instructions(func))


def tile(value: float = 1.0) -> tuple[RegisterTensor, Instruction]:
    tensor = RegisterTensor.create(F32, (128,))
    return tensor, AllocateRegisterInst.create(tensor, lambda _: value)


def view() -> tuple[GlobalTensor, Instruction]:
    tensor = GlobalTensor.create(F32, GlobalLayout.row_major((n,)))
    return tensor, GlobalViewInst.create(tensor, pointer)


def load(source: GlobalTensor, start: scalar.Expr = ZERO) -> LoadGlobalInst:
    return LoadGlobalInst.create(source, [start], [0], RegisterTensor.create(F32, (128,)))


def store(target: GlobalTensor, value: RegisterTensor, start: scalar.Expr = ZERO) -> StoreGlobalInst:
    return StoreGlobalInst.create(target, value, [start], [0])


def test_a_program_without_dead_code_is_the_same_object():
    g, g_made = view()
    loaded = load(g)
    func = function(g_made, loaded, store(g, loaded.register_output))
    assert run(func) is func


def test_an_empty_program_is_the_same_object():
    func = function()
    assert run(func) is func


def test_a_tile_that_nobody_reads_is_removed():
    _, made = tile()
    assert count(run(function(made, SyncThreadsInst.create()))) == {SyncThreadsInst: 1}


def test_a_dead_reduction_is_removed():
    x, made = tile()
    assert not count(run(function(made, ReduceInst.create(x, 0, "sum"))))


def test_a_chain_of_dead_instructions_is_removed_as_a_whole():
    x, made = tile()
    add = AddInst.create(x, x)
    exp = ElementwiseUnaryInst.create(add.register_output, "exp")
    half = CastInst.create(exp.register_output, RegisterTensor.create(dtypes.float16, (128,)))
    assert not count(run(function(made, add, exp, half)))


def test_a_load_that_nobody_reads_is_removed_with_its_view():
    g, g_made = view()
    assert not count(run(function(g_made, load(g))))


def test_a_store_keeps_what_it_needs():
    g, g_made = view()
    x, made = tile()
    start = scalar.var("start", I32)
    func = function(g_made, made, LetStmt((start,), (scalar.add(n, ONE),), InstStmt(store(g, x, start))))
    assert run(func) is func


def test_a_tile_that_one_of_two_readers_needs_stays():
    g, g_made = view()
    x, made = tile()
    func = run(function(g_made, made, AddInst.create(x, x), store(g, x)))
    assert count(func) == {GlobalViewInst: 1, AllocateRegisterInst: 1, StoreGlobalInst: 1}


def test_an_accumulator_that_only_feeds_itself_is_removed_with_its_loop():
    acc, made = tile()
    loop = ForStmt(scalar.var("i", I32), n, seq(AddInst.create(acc, acc, acc)))
    func = run(function(made, loop, SyncThreadsInst.create()))
    assert count(func) == {SyncThreadsInst: 1}
    assert len(lines(func.body)) == 1


def test_a_tile_written_in_a_loop_and_read_after_it_stays():
    g, g_made = view()
    acc, made = tile()
    x, x_made = tile(2.0)
    loop = ForStmt(scalar.var("i", I32), n, seq(x_made, AddInst.create(acc, x, acc)))
    func = function(g_made, made, loop, store(g, acc))
    assert run(func) is func


def test_a_tile_read_in_the_next_iteration_stays():
    g, g_made = view()
    last, made = tile()
    loaded = load(g)
    body = seq(store(g, last), loaded, AssignInst.create(last, loaded.register_output))
    func = function(g_made, made, ForStmt(scalar.var("i", I32), n, body))
    assert run(func) is func


def test_a_branch_with_nothing_in_it_is_removed():
    x, made = tile()
    branch = IfStmt(scalar.lt(n, ONE), seq(AddInst.create(x, x)), seq(AddInst.create(x, x)))
    assert lines(run(function(made, branch)).body) == ()


def test_a_dead_side_of_a_branch_is_removed():
    x, made = tile()
    branch = IfStmt(scalar.lt(n, ONE), seq(SyncThreadsInst.create()), seq(AddInst.create(x, x)))
    (after,) = lines(run(function(made, branch)).body)
    assert isinstance(after, IfStmt) and after.else_body is None


def test_break_and_return_keep_what_leads_to_them():
    k = scalar.var("k", I32)
    leave = IfStmt(scalar.lt(k, ONE), seq(BreakStmt()))
    quit_ = IfStmt(scalar.lt(n, ONE), seq(ReturnStmt()))
    func = function(LetStmt((k,), (scalar.mul(n, n),), seq(ForStmt(scalar.var("i", I32), n, leave), quit_)))
    assert run(func) is func


def test_a_loop_that_might_not_end_stays():
    func = function(WhileStmt(TRUE, seq()))
    assert run(func) is func


def test_scalars_that_nobody_reads_are_removed():
    used, unused, count_ = (scalar.var(name, I32) for name in ("used", "unused", "count"))
    branch = IfStmt(scalar.lt(used, n), seq(SyncThreadsInst.create()))
    body = LetStmt(
        (used, unused),
        (scalar.add(n, ONE), scalar.add(n, n)),
        seq(DeclareStmt(count_, ZERO), AssignStmt(count_, scalar.add(count_, ONE)), branch),
    )
    (after,) = lines(run(function(body)).body)
    assert isinstance(after, LetStmt) and after.bind_vars == (used,)
    assert lines(after.body) == (branch,)


def test_a_variable_that_decides_something_keeps_its_assignments():
    k = scalar.var("k", I32)
    loop = WhileStmt(scalar.lt(k, n), seq(AssignStmt(k, scalar.add(k, ONE)), SyncThreadsInst.create()))
    func = function(DeclareStmt(k, ZERO), loop)
    assert run(func) is func


def test_the_extents_of_a_view_are_needed_by_its_readers():
    length = scalar.var("length", I32)
    g = GlobalTensor.create(F32, GlobalLayout.row_major((length,)))
    x, made = tile()
    inner = seq(GlobalViewInst.create(g, pointer), made, store(g, x))
    func = function(LetStmt((length,), (scalar.mul(n, n),), inner))
    assert run(func) is func
