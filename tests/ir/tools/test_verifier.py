# SPDX-License-Identifier: Apache-2.0
import dataclasses

import pytest
from hypothesis import given, settings

from tests.ir.strategies import programs
from tilekit import dtypes
from tilekit.diag import VerificationError
from tilekit.ir.inst import Instruction
from tilekit.ir.instructions.elementwise import AddInst
from tilekit.ir.instructions.memory import LoadGlobalInst, StoreGlobalGenericInst
from tilekit.ir.instructions.register import AllocateRegisterInst
from tilekit.ir.prog import Program
from tilekit.ir.stmt import ForStmt, InstStmt, SeqStmt, Stmt
from tilekit.ir.tensor import GlobalLayout, GlobalTensor
from tilekit.ir.text import parser
from tilekit.ir.tools import collect, rewrite, verify
from tilekit.lowir import scalar

HEADER = """\
@kernel(
    grid=[i32(1), i32(1), i32(1)],
    warps=1,
)
def f(n: i32, x: ~f32):
"""


def program(*lines: str) -> Program:
    return parser.parse_program(HEADER + "".join(f"    {line}\n" for line in lines))


def refusal(prog: Program) -> VerificationError:
    with pytest.raises(VerificationError) as error:
        verify(prog)
    return error.value


def one_line(error: VerificationError) -> str:
    """The message with the line it points at, notes and help behind it."""
    found = error.diagnostic
    assert found.at is not None
    notes = [f"; {note} (line {at.line})" for note, at in found.notes if at is not None]
    return f"line {found.at.line}: {found.message}" + "".join(notes) + (f"; {found.help}" if found.help else "")


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
