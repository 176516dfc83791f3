# SPDX-License-Identifier: Apache-2.0
import dataclasses

import pytest
from hypothesis import given, settings

from tests.ir.strategies import programs
from tests.ir.tools.programs import one_line, program, refusal
from tilekit import dtypes
from tilekit.ir.inst import Instruction
from tilekit.ir.instructions.elementwise import AddInst
from tilekit.ir.instructions.memory import LoadGlobalInst, StoreGlobalGenericInst
from tilekit.ir.instructions.register import AllocateRegisterInst
from tilekit.ir.prog import Program
from tilekit.ir.stmt import ForStmt, InstStmt, SeqStmt, Stmt, TensorItemPtrStmt
from tilekit.ir.tensor import GlobalLayout, GlobalTensor
from tilekit.ir.tools import collect, rewrite, verify
from tilekit.lowir import scalar


@settings(max_examples=30)
@given(programs())
def test_random_program_is_accepted(prog):
    verify(prog)


A = "a: f32[32] = register_tensor(init=f32(0.0))"
HOLLOW = "a: f32[32] = register_tensor()"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        # tiles
        (
            [HOLLOW, "b: f32[32] = add(a, a)"],
            "line 2: a is read before it is written; it is made here, without a value (line 1)",
        ),
        (
            [HOLLOW, "if n < i32(3):", f"    {A[0]} = register_tensor(init=f32(1.0))", "b: f32[32] = add(a, a)"],
            "line 4: a is read before it is written; it is made here, without a value (line 1)",
        ),
        (
            [HOLLOW, "for i in range(n):", "    a = register_tensor(init=f32(1.0))", "b: f32[32] = add(a, a)"],
            "line 4: a is read before it is written; it is made here, without a value (line 1)",
        ),
        (
            ["if n < i32(3):", f"    {A}", "b: f32[32] = add(a, a)"],
            "line 3: a is not defined on every path that leads here; it is defined here (line 2)",
        ),
        (
            ["while True:", "    if n < i32(3):", "        break", f"    {A}", "    break", "b: f32[32] = add(a, a)"],
            "line 6: a is not defined on every path that leads here; it is defined here (line 4)",
        ),
        # scalars
        (["k: i32", "j: i32 = k"], "line 2: k is read before it is written"),
        (["if n < i32(3):", "    k: i32 = n", "j: i32 = k"], "line 3: k is used, but not declared before"),
        (["for i in range(n):", "    pass", "j: i32 = i"], "line 3: i is used, but not declared before"),
        (
            ["with scope:", "    k: Let[i32] = n", "    sync()", "j: i32 = k"],
            "line 4: k is used, but not declared before",
        ),
        (["n = i32(1)"], "line 1: n cannot be assigned: it is a parameter"),
        (["for i in range(n):", "    i = i32(1)"], "line 2: i cannot be assigned: it is the variable of a loop"),
        (["k: Let[i32] = n", "k = i32(1)"], "line 2: k cannot be assigned: it is a name for one value"),
        (["if n < i32(3):", "    k: i32 = n", "k = n"], "line 3: k is assigned, but not declared before"),
        (["k: i32 = n", "k: i32 = n"], "line 2: k is declared twice"),
        (["k: i32 = n", "for k in range(n):", "    pass"], "line 2: k is declared twice"),
        (["k: i32 = i64(n)"], "line 1: k is int32, but its value is int64"),
        (["k: i32 = n", "k = i64(n)"], "line 2: k is int32, but its value is int64"),
        (["k: Let[f32] = n"], "line 1: k is float32, but its value is int32"),
        # control flow
        (["break"], "line 1: break stands outside of a loop"),
        (["for i in range(f32(n)):", "    pass"], "line 1: the extent of a loop must be an integer, got float32"),
        (
            ["for i in range(n, unroll=0):", "    pass"],
            "line 1: a loop unrolls by a positive factor, or by -1 for all of it, not by 0",
        ),
        (["if n:", "    pass"], "line 1: a condition must be bool, got int32"),
        (["while n:", "    pass"], "line 1: a condition must be bool, got int32"),
        (
            ["while True:", "    sync()"],
            "line 1: this loop never ends: its condition always holds, and nothing leaves it",
        ),
        (
            ["k: i32 = n", "while k < n:", "    while True:", "        break"],
            "line 2: this loop never ends: nothing in it changes its condition, and nothing leaves it",
        ),
        # size
        (
            ["a: f32[1024, 8192] = register_tensor()"],
            "line 1: a takes 1048576 bytes in each of 32 threads, and a thread has 524288",
        ),
        # what differs between threads
        (
            ["if thread_idx < i32(8):", "    sync()"],
            "line 1: thread_idx differs from thread to thread, and every number is the same in all of them",
        ),
        (["k: i32 = thread_idx + n"], "line 1: thread_idx differs from thread to thread"),
        (["for i in range(thread_idx):", "    sync()"], "line 1: thread_idx differs from thread to thread"),
        (["while thread_idx < n:", "    sync()"], "line 1: thread_idx differs from thread to thread"),
        (
            [A, "store_global_generic(a, ptr=x, axes=[i], offset=i64(thread_idx))"],
            "line 2: thread_idx differs from thread to thread",
        ),
        (["g: Global[f32[thread_idx]] = global_view(ptr=x)"], "line 1: thread_idx differs from thread to thread"),
        # instructions
        ([A, "b: f32[16] = add(a, a)"], "line 2: the result is float32[32], but out is float32[16]"),
        ([A, "b: i32[32] = add(a, a)"], "line 2: the result is float32[32], but out is int32[32]"),
        ([A, "b: f32[1] = reduce(a, dims=[0], op='sum')"], "line 2: the result is float32[], but out is float32[1]"),
        (
            [A, "b: f32[()] = reduce(a, dims=[1], op='sum')"],
            "line 2: sum: dim=[1] are not distinct dimensions of a rank-1 tile",
        ),
        (
            [A, "b: bool[()] = reduce(a, dims=[0], op='any')"],
            "line 2: any needs a boolean tile, got float32; compare it with 0",
        ),
        (
            [A, "b: f32[16] = assign(a)"],
            "line 2: cannot assign a float32[32] tile to a float32[16] tile; shape and dtype",
        ),
        (["a: f32[32] = register_tensor(init=n)"], "line 1: a tile of float32 cannot be filled with int32"),
        (
            [A, "store_global_generic(a, ptr=x, axes=[i], offset=i64(i), mask=i)"],
            "line 2: a mask must be bool, got int32",
        ),
        (
            [A, "store_global_generic(a, ptr=x, axes=[i], offset=f32(i))"],
            "line 2: an offset must be an integer, got float32",
        ),
        (
            [A, "store_global_generic(a, ptr=x, axes=[i], offset=i)"],
            "line 2: offset of store_global_generic must be int64, got int32",
        ),
        (
            [A, "store_global_generic(a, ptr=x, axes=[i, j], offset=i64(i))"],
            "line 2: store_global_generic binds 2 variables, but its tile has 1 dimensions",
        ),
        (["g: Global[f32[n]] = global_view(ptr=n)"], "line 1: global_view needs a pointer, got a int32 scalar"),
        (["g: Global[f32[f32(n)]] = global_view(ptr=x)"], "line 1: extent of g must be an integer, got float32"),
        (
            ["g: Global[f32[n]] @ strides(f32(n)) = global_view(ptr=x)"],
            "line 1: stride of g must be an integer, got float32",
        ),
        (["g: Global[f32[n]] @ strides(n, n) = global_view(ptr=x)"], "line 1: g has 1 extents and 2 strides"),
        # layouts
        (["a: f32[64] @ spatial(64) = register_tensor()"], "line 1: the layout of a is for 64 threads, but 32 run it"),
    ],
)
def test_broken_rule_is_named_at_its_line(lines, message):
    assert one_line(refusal(program(*lines))).startswith(message)


@pytest.mark.parametrize(
    "lines",
    [
        [
            HOLLOW,
            "if n < i32(3):",
            "    a = register_tensor(init=f32(1.0))",
            "else:",
            "    return",
            "b: f32[32] = add(a, a)",
        ],
        ["for i in range(i32(2)):", f"    {A}", "b: f32[32] = add(a, a)"],
        ["while True:", f"    {A}", "    break", "b: f32[32] = add(a, a)"],
        ["while True:", f"    {A}", "    if n < i32(3):", "        break", "b: f32[32] = add(a, a)"],
        ["k: i32", "if n < i32(3):", "    k = i32(1)", "else:", "    k = i32(2)", "j: i32 = k"],
        ["for i in range(n):", "    pass", "for i in range(n):", "    pass"],
        ["return", "k: i32 = n"],
        ["while n < i32(3):", "    if n == i32(1):", "        break"],
        ["while n < i32(3):", "    for i in range(n):", "        return"],
        ["k: i32 = n", "while k < i32(3):", "    if n > i32(0):", "        k = k + i32(1)"],
        ["while False:", "    sync()"],
        ["a: f32[1024, 4096] = register_tensor()"],
    ],
)
def test_what_holds_on_every_path_is_accepted(lines):
    verify(program(*lines))


# ------------------------------------------------------------------------- what no text says, because it does not parse


def test_tile_that_nothing_defines_is_refused():
    prog = program(A, "b: f32[32] = add(a, a)")
    missing = prog.with_function(prog.function.with_body(InstStmt(collect(prog, AddInst)[0])))
    assert one_line(refusal(missing)) == "line 2: a is used before it is defined"


def test_name_of_the_function_must_be_the_one_that_the_program_knows():
    prog = Program.create({"g": program("pass").function})
    assert refusal(prog).message == "the program knows function f by another name, g"


def _grid(*blocks: int) -> tuple[scalar.Expr, ...]:
    return tuple(map(scalar.int32, blocks))


def changed(**changes) -> Program:
    return Program.create({"f": program("pass").function.replace(**changes)})


def test_name_of_a_function_must_be_an_identifier():
    prog = Program.create({"1f": program("pass").function.replace(name="1f")})
    assert refusal(prog).message == "'1f' cannot be the name of a function"


def test_parameter_stands_once():
    n = scalar.var("n", dtypes.int32)
    assert refusal(changed(params=(n, n))).message == "n is declared twice"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_warps": 0}, "a kernel has 1 to 32 warps, not 0"),
        ({"num_warps": 33}, "a kernel has 1 to 32 warps, not 33"),
        ({"cluster_blocks": (1, 0, 1)}, "the cluster along y must be a positive number, got 0"),
        ({"cluster_blocks": (3, 3, 1)}, "a cluster has at most 8 blocks, not 9"),
        ({"grid_blocks": _grid(1, 70000, 1)}, "the grid along y has 70000 blocks, not 0 to 65535"),
        ({"grid_blocks": _grid(1, 1, -1)}, "the grid along z has -1 blocks, not 0 to 65535"),
        ({"param2divisibility": {scalar.var("k", dtypes.int32): 2}}, "a divisor is given for k, which is no parameter"),
    ],
)
def test_launch_facts_must_make_sense(change, message):
    func = program("pass").function
    assert refusal(changed(metadata=dataclasses.replace(func.metadata, **change))).message == message


def test_divisor_must_be_positive():
    func = program("pass").function
    metadata = dataclasses.replace(func.metadata, param2divisibility={func.params[0]: 0})
    assert (
        refusal(Program.create({"f": func.with_metadata(metadata)})).message
        == "the divisor of n must be positive, got 0"
    )


@pytest.mark.parametrize(
    ("extent", "message"),
    [
        (scalar.var("k", dtypes.int32), "the grid along y uses k, which is no parameter"),
        (scalar.block_idx(0), "the grid along y uses block_idx_x, which is no parameter"),
        (scalar.constant(dtypes.float32, 1), "the grid along y must be an integer, got float32"),
    ],
)
def test_grid_is_made_of_parameters(extent, message):
    metadata = program("pass").function.metadata
    x, _, z = metadata.grid_blocks
    assert refusal(changed(metadata=dataclasses.replace(metadata, grid_blocks=(x, extent, z)))).message == message


def test_statement_of_an_unknown_class_is_refused():
    @dataclasses.dataclass(frozen=True, eq=False)
    class EvaluateStmt(Stmt):
        pass

    assert refusal(changed(body=SeqStmt((EvaluateStmt(),)))).message == "EvaluateStmt is no statement of the tile IR"


def test_instruction_without_an_opcode_of_its_own_is_refused():
    class LonelyInst(Instruction):
        pass

    message = "LonelyInst is no instruction: it has no opcode of its own"
    assert refusal(changed(body=InstStmt(LonelyInst(None)))).message == message


def test_operands_of_two_types_are_refused():
    prog = program(A, "b: f16[32] = register_tensor(init=f16(0.0))", "c: f32[32] = add(a, a)")
    (add,) = collect(prog, AddInst)
    b = collect(prog, AllocateRegisterInst)[1].output
    mixed = rewrite(prog, {add: add.replace(y=b)})
    assert one_line(refusal(mixed)).startswith("line 3: + needs tiles of one dtype, got float32 and float16; cast one")


def test_bound_variable_must_be_new():
    prog = program(A, "store_global_generic(a, ptr=x, axes=[i], offset=i64(i))")
    (store,) = collect(prog, StoreGlobalGenericInst)
    n = prog.function.params[0]
    again = rewrite(prog, {store: store.replace(axes=(n,), offset=scalar.cast(n, dtypes.int64))})
    assert one_line(refusal(again)) == "line 2: n is declared twice"


def test_one_offset_for_each_dimension():
    prog = program("g: Global[f32[n]] = global_view(ptr=x)", "a: f32[32] = load_global(g, offsets=[n], dims=[0])")
    (load,) = collect(prog, LoadGlobalInst)
    n = prog.function.params[0]
    wrong = rewrite(prog, {load: load.replace(offsets=(n, n))})
    message = "line 2: load_global needs one offset per dimension: the tensor has 1, got 2 offsets"
    assert one_line(refusal(wrong)) == message


def test_loop_that_counts_with_a_parameter_is_refused():
    prog = program("for i in range(n):", "    pass")
    loop = collect(prog, ForStmt)[0]
    n = prog.function.params[0]
    assert one_line(refusal(rewrite(prog, {loop: loop.replace(iter_var=n)}))) == "line 1: n is declared twice"


def test_loop_counts_in_the_type_of_its_extent():
    prog = program("for i in range(n):", "    pass")
    loop = collect(prog, ForStmt)[0]
    wide = rewrite(prog, {loop: loop.replace(iter_var=scalar.var("i", dtypes.int64))})
    assert one_line(refusal(wide)) == "line 1: i is int64, but counts to an extent of int32"


def test_error_without_a_place_still_says_what_is_wrong():
    view = GlobalTensor.create(dtypes.float32, GlobalLayout((), ()), name="g")
    load = LoadGlobalInst(None, view, (), ())
    assert refusal(changed(body=InstStmt(load))).message == "g is used before it is defined"


# ------------------------------------------------------------------------------- shared memory, copies, elements, dots

S = "s: Shared[f32[4, 32]] = shared_tensor()"
Z = "z: f32[4, 32] = register_tensor(init=f32(0.0))"
G = "g: Global[f32[n, n]] = global_view(ptr=x)"
ROW = "r: Shared[f32[32]] = slice_shared(s, offsets=[n, i32(0)], dims=[1])"
HALF = "h: f16[4, 32] = register_tensor(init=f16(0.0))"
AFTER = "is used after its memory was freed; it is freed here"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([S, "free_shared(s)", "y: f32[4, 32] = load_shared(s)"], f"line 3: s {AFTER} (line 2)"),
        ([S, "free_shared(s)", "free_shared(s)"], f"line 3: s {AFTER} (line 2)"),
        ([S, ROW, "free_shared(s)", "y: f32[32] = load_shared(r)"], f"line 4: r {AFTER} (line 3)"),
        ([S, "free_shared(s)", "v: Item[f32] = s[i32(0), n]"], f"line 3: s {AFTER} (line 2)"),
        ([S, "if n == i32(1):", "    free_shared(s)", "print_tensor(s, msg='s')"], f"line 4: s {AFTER} (line 3)"),
        (
            [S, "for i in range(n):", "    print_tensor(s, msg='s')", "    free_shared(s)"],
            f"line 3: s {AFTER} (line 4)",
        ),
        (
            [
                S,
                "while n < i32(9):",
                "    if n == i32(1):",
                "        free_shared(s)",
                "        break",
                "free_shared(s)",
            ],
            f"line 6: s {AFTER} (line 4)",
        ),
        ([S, ROW, "free_shared(r)"], "line 3: r cannot be freed: it shows memory of s, free that"),
        (
            [S, "r: Shared[f32[2, 32]] = slice_shared(s, offsets=[i32(3), i32(0)], dims=[0, 1])"],
            "line 2: a slice takes elements 3 to 4 of dimension 0, which has only 4",
        ),
        (
            [S, "r: Shared[f32[32]] = slice_shared(s, offsets=[i32(-1), i32(0)], dims=[1])"],
            "line 2: a slice takes element -1 of dimension 0, which has only 4",
        ),
        (
            [S, "r: Shared[f32[64]] = slice_shared(s, offsets=[n, i32(0)], dims=[1])"],
            "line 2: a slice of 64 elements does not fit in dimension 1, which has 32",
        ),
        (
            [S, "r: Shared[f32[32, 5]] = permute_shared(s, dims=[1, 0])"],
            "line 2: the view is float32[32, 4], but its tensor is float32[32, 5]",
        ),
        (
            [S, "r: Shared[f32[4, 32]] = permute_shared(s, dims=[1, 1])"],
            "line 2: permute: dims=[1, 1] do not name each dimension of a shared float32[4, 32] tensor once; "
            "give the numbers 0 to 1 in their new order",
        ),
        (
            [S, "r: Shared[f32[129]] = reshape_shared(s)"],
            "line 2: reshape_shared: shape [129] has 129 elements, a shared float32[4, 32] tensor has 128",
        ),
        (
            [S, "y: f32[32, 4] = load_shared(s)"],
            "line 2: load_shared: the tile has shape [32, 4], the shared tensor [4, 32]; "
            "give a slice of the shared tensor that has the shape of the tile",
        ),
        (
            [S, HALF, "store_shared(s, h)"],
            "line 3: store_shared: the tile is float16, the shared tensor float32; cast the tile: .to(float32)",
        ),
        (
            [G, "s: Shared[f16[4, 32]] = shared_tensor()", "copy_async(s, g, offsets=[n, n], dims=[0, 1])"],
            "line 3: copy_async: the shared tensor is float16, the tensor in global memory float32; "
            "a copy converts nothing: give both one dtype",
        ),
        (
            [G, S, "copy_async(s, g, offsets=[n, n], dims=[0])"],
            "line 3: copy_async: a tile of 2 dimensions cannot run along 1 dimensions of the tensor; "
            "give dims=, the tensor dimension that each tile dimension runs along",
        ),
        (
            [G, S, "copy_async(s, g, offsets=[n, n], dims=[0, 1], evict='evict_frist')"],
            "line 3: there is no eviction priority called 'evict_frist'; did you mean 'evict_first'?",
        ),
        (
            ["copy_async_wait_group(n=-1)"],
            "line 1: copy_async_wait_group cannot leave -1 groups; 0 waits for all",
        ),
        (
            [HALF, "d: f32[4, 4] = dot(h, h, None)"],
            "line 2: dot of [4, 32] and [4, 32]: 32 columns do not meet 4 rows; transpose one of them",
        ),
        (
            [HALF, "t: f16[32, 4] = transpose(h)", "d: i32[4, 4] = dot(h, t, None)"],
            "line 3: no matrix instruction sums up products of float16 in int32; "
            "sum up in float32 or float16, then cast the result",
        ),
        (
            ["h: i32[4, 4] = register_tensor(init=i32(0))", "d: i32[4, 4] = dot(h, h, None)"],
            "line 2: no matrix instruction multiplies int32; "
            "cast the operands to one of float16, bfloat16, tfloat32, float32, int8",
        ),
        (
            ["k: i32 = n", "w: Global[f32[n, k]] = global_tensor(requires_clean=False)"],
            "line 2: the size of the workspace w uses k, which is no parameter; "
            "it is made before the launch: compute it from parameters, as self.attrs.blocks is",
        ),
        (
            [
                "s: Shared[i32[4]] = shared_tensor()",
                "p: Item[~i32] = ~s[n]",
                "q: ~i32 = p",
                "lock_semaphore(ptr=q, value=n)",
            ],
            "line 4: lock_semaphore needs a semaphore in global memory: nobody else sees shared memory; "
            "make it with self.global_tensor(int32, […], requires_clean=True)",
        ),
        ([G, "v: Item[i32] = g[n, n]"], "line 2: v is int32, but the element makes it float32"),
        ([G, "v: Item[~f16] = ~g[n, n]"], "line 2: v is ~float16, but the element makes it ~float32"),
        (
            [G, "v: Item[f32] = g[n]"],
            "line 2: an element of g needs one offset per dimension: the tensor has 2, got 1 offsets",
        ),
        ([A, "v: Item[f32] = a[()]"], "line 2: a has 32 elements: only a tile of one is read as a number"),
        (
            ["a: f32[1] = register_tensor()", "v: Item[f32] = a[()]"],
            "line 2: a is read before it is written; it is made here, without a value (line 1)",
        ),
        ([G, "v: Item[f32] = g[n, n]", "v = f32(1.0)"], "line 3: v cannot be assigned: it is the value of an element"),
        (
            ["a: f32[64] = register_tensor()", "annotate_layout(a, layout=spatial(64))"],
            "line 2: the layout of a is for 64 threads, but 32 run it",
        ),
        (
            [S, "annotate_layout(s, layout=shared_row_major(32, 4))"],
            "line 2: a layout of shape [32, 4] cannot hold a shared float32[4, 32] tensor",
        ),
        (
            [S, "annotate_layout(s, layout=local(4, 32))"],
            "line 2: annotate_layout: a shared float32[4, 32] tensor needs a shared layout, got local(4, 32)",
        ),
        (
            ["lock_semaphore(ptr=x, value=n)"],
            "line 1: lock_semaphore needs a pointer to an int32, got ~float32; "
            "make the semaphores an int32 tensor, s, and give ~s[i] as s[i].item_ptr()",
        ),
        (
            ["printf(fmt='%d %d', args=[n])"],
            "line 1: printf: the format '%d %d' has places for 2 numbers, got 1",
        ),
        (["printf(fmt='%f', args=[n])"], "line 1: printf: %f in '%f' cannot print int32; write %d"),
        (
            [A, "print_tensor(a, msg='a', fmt='%s')"],
            "line 2: print_tensor: %s in '%s' prints no number; "
            "use %d for integers, %f, %e or %g for floats, %p for pointers, %% for a percent sign",
        ),
        (
            ["a: f32[2, 16] = register_tensor(init=f32(0.0))", "b: f32[32] = squeeze(a, dims=[0])"],
            "line 2: squeeze: dimension 0 of a float32[2, 16] tile has 2 elements, not 1",
        ),
        (
            [A, "b: f32[1, 32, 1] = unsqueeze(a, dims=[0, 0])"],
            "line 2: unsqueeze: dim=[0, 0] are not distinct dimensions of the result, which has 3",
        ),
        ([A, "b: f32[31] = reshape(a)"], "line 2: reshape: shape [31] has 31 elements, a float32[32] tile has 32"),
        (
            ["a: f32[32] @ spatial(32) = register_tensor(init=f32(0.0))", "b: f16[32] @ spatial(32) = view(a)"],
            "line 2: view: a thread holds 32 bits of the tile, and 16 of the result",
        ),
        ([A, "b: i32[4, 8] = view(a)"], "line 2: view: the shape [32] becomes [4, 8] only with a layout"),
        (
            [A, HALF, "slice_assign(h, a, offsets=[n, i32(0)], dims=[1])"],
            "line 3: cannot assign a float32[32] tile to a part of a float16[4, 32] tile; cast it: .to(float16)",
        ),
        (["assume(cond=n)"], "line 1: assume needs a condition, got int32; compare it: self.assume(n % 16 == 0)"),
    ],
)
def test_wrong_use_of_memory_and_tiles_is_named(lines, message):
    assert one_line(refusal(program(*lines))) == message


@pytest.mark.parametrize(
    "lines",
    [
        [Z, "for i in range(n):", f"    {S}", "    store_shared(s, z)", "    free_shared(s)"],
        [Z, S, "if n == i32(1):", "    free_shared(s)", "    return", "store_shared(s, z)", "free_shared(s)"],
        [S, "for i in range(n):", "    if i == i32(3):", "        free_shared(s)", "        return", "free_shared(s)"],
        [Z, S, "free_shared(s)", "s = shared_tensor()", "store_shared(s, z)"],
        ["a: f32[4] = register_tensor()", "annotate_layout(a, layout=local(4).replicated(num_workers=32))"],
    ],
)
def test_right_use_of_memory_is_accepted(lines):
    verify(program(*lines))


def test_address_of_a_tile_is_refused():
    prog = program(A, "g: Global[f32[n]] = global_view(ptr=x)", "p: Item[~f32] = ~g[n]")
    (item,) = collect(prog, TensorItemPtrStmt)
    (tile,) = [inst.output for inst in collect(prog, AllocateRegisterInst)]
    wrong = rewrite(prog, {item: item.replace(tensor=tile)})
    assert one_line(refusal(wrong)) == "line 3: a lies in registers, which have no address"
