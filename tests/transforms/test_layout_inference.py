# SPDX-License-Identifier: Apache-2.0
import pytest

from tilekit import dtypes
from tilekit.diag.errors import LayoutError
from tilekit.events import Null
from tilekit.ir.func import Function, Metadata
from tilekit.ir.instructions.generic import (
    AddInst,
    AllocateRegisterInst,
    AllocateSharedInst,
    AssignInst,
    PermuteSharedInst,
    ReduceInst,
)
from tilekit.ir.layout import ops
from tilekit.ir.stmt import InstStmt, SeqStmt
from tilekit.ir.tensor import RegisterTensor, SharedTensor
from tilekit.ir.text import parser
from tilekit.ir.tools import collect_instructions
from tilekit.lowir import scalar
from tilekit.transforms import layout_inference_pass
from tilekit.transforms.layout_inference import infer_layouts

BOTH_SUMS = """
@kernel(grid=[i32(1), i32(1), i32(1)], warps=4, divisibility={p: 16})
def f(p: ~f32):
    g: Global[f32[i32(64), i32(64)]] = global_view(ptr=p)
    h: Global[f32[i32(64)]] = global_view(ptr=p)
    x: f32[64, 64] = load_global(g, offsets=[i32(0), i32(0)], dims=[0, 1])
    rows: f32[64] = reduce(x, dims=[1], op='sum')
    columns: f32[64] = reduce(x, dims=[0], op='sum')
    both: f32[64] = add(rows, columns)
    store_global(h, both, offsets=[i32(0)], dims=[0])
"""


def parse(text: str) -> Function:
    return parser.parse_program(text).function


def function(*instructions) -> Function:
    one = scalar.constant(dtypes.int32, 1)
    metadata = Metadata.create((one, one, one), (1, 1, 1), tuple(map(scalar.block_idx, range(3))), 4)
    return Function.create("f", [], SeqStmt.create([InstStmt(inst) for inst in instructions]), metadata)


def tile(*shape: int, layout=None, name="") -> RegisterTensor:
    return RegisterTensor.create(dtypes.float32, shape, layout, name=name)


CROSSED = """
@kernel(grid=[i32(1), i32(1), i32(1)], warps=4)
def f():
    s: Shared[f16[32, 32]] = shared_tensor()
    v: Shared[f16[32, 32]] = permute_shared(s, dims=[1, 0])
    annotate_layout(s, layout=shared_row_major(32, 32))
    annotate_layout(v, layout=shared_row_major(32, 32))
"""


def test_a_conflict_names_both_tensors_and_tells_how_each_came_by_its_layout():
    with pytest.raises(LayoutError) as caught:
        infer_layouts(parse(CROSSED))
    error = caught.value
    assert error.code == "TK310"
    assert error.diagnostic.at is not None and error.diagnostic.at.line == 2
    assert error.message == (
        "s (shared f16[32, 32]) and v (shared f16[32, 32]) do not lie where permute_shared needs them: "
        "a view must lie as the tensor does whose dimensions it shows in another order"
    )
    notes = [(text, place.line if place else None) for text, place in error.diagnostic.notes]
    assert notes == [
        ("s (shared f16[32, 32]) was laid out as shared_row_major(32, 32) by annotate_layout, as the kernel says", 3),
        ("v (shared f16[32, 32]) was laid out as shared_row_major(32, 32) by annotate_layout, as the kernel says", 4),
    ]
    assert error.diagnostic.help is not None


def test_the_help_of_a_conflict_helps():
    infer_layouts(parse(CROSSED.replace("    annotate_layout(v, layout=shared_row_major(32, 32))\n", "")))


def opcodes(func: Function) -> list[str]:
    return [inst.opcode for inst in collect_instructions(func)]


PASSAGE = ["shared_tensor", "store_shared", "sync", "load_shared", "free_shared"]


def test_tiles_that_cannot_meet_meet_through_shared_memory_the_smaller_one_moving():
    before = parse(BOTH_SUMS)
    after = infer_layouts(before).func
    reduce = opcodes(before).index("reduce")
    assert opcodes(after) == [*opcodes(before)[: reduce + 1], *PASSAGE, *opcodes(before)[reduce + 1 :]]
    (memory,) = (inst.shared_output for inst in collect_instructions(after) if isinstance(inst, AllocateSharedInst))
    assert (memory.name, memory.shape) == ("rows_moved", (64,))


def test_tiles_that_can_meet_as_they_are_need_no_shared_memory():
    func = infer_layouts(parse(BOTH_SUMS.replace("add(rows, columns)", "add(rows, rows)"))).func
    assert not set(PASSAGE) & set(opcodes(func))


def test_given_layouts_stay_and_a_copy_moves():
    x, y = tile(8, layout=ops.local(8) * ops.replicated(num_workers=128), name="x"), tile(8, name="y")
    z = tile(8, layout=ops.replicated(num_workers=16) * ops.spatial(8), name="z")
    func = function(AllocateRegisterInst.create(x, lambda _: 0.0), AssignInst.create(y, x), AssignInst.create(z, y))
    after = infer_layouts(func).func
    assert opcodes(after) == ["register_tensor", *PASSAGE, "assign", "assign"]
    tiles = {t.name: t.layout for inst in collect_instructions(after) for t in inst.register_tensors if t in (x, z)}
    assert tiles == {"x": x.layout, "z": z.layout}


def test_an_annotation_for_other_threads_is_refused():
    text = """
@kernel(grid=[i32(1), i32(1), i32(1)], warps=4)
def f():
    x: f32[64] = register_tensor(init=f32(0.0))
    annotate_layout(x, layout=spatial(32).local(2))
"""
    with pytest.raises(LayoutError) as caught:
        infer_layouts(parse(text))
    assert caught.value.code == "TK303"
    assert caught.value.diagnostic.at is not None and caught.value.diagnostic.at.line == 2


DOT = """
@kernel(grid=[i32(1), i32(1), i32(1)], warps=4, divisibility={p: 16})
def f(p: ~f16):
    g: Global[f16[i32(64), i32(64)]] = global_view(ptr=p)
    sa: Shared[f16[64, 64]] = shared_tensor()
    sb: Shared[f16[64, 64]] = shared_tensor()
    copy_async(sa, g, offsets=[i32(0), i32(0)], dims=[0, 1])
    copy_async(sb, g, offsets=[i32(0), i32(0)], dims=[0, 1])
    copy_async_wait_all()
    sync()
    a: f16[64, 64] = load_shared(sa)
    b: f16[64, 64] = load_shared(sb)
    d: f32[64, 64] = dot(a, b, None)
    p16: f16[64, 64] = cast(d)
    e: f32[64, 64] = dot(p16, b, None)
    store_global(h, e, offsets=[i32(0), i32(0)], dims=[0, 1])
"""


def layouts_of(text: str) -> dict[str, str]:
    return {choice.tensor.name: str(choice.layout) for choice in infer_layouts(parse(text)).trail}


def one_dot() -> str:
    lines = DOT.splitlines(keepends=True)
    return "".join(line for line in lines if "p16" not in line and "store" not in line)


def test_the_warps_of_a_dot_share_both_sides_of_it():
    assert layouts_of(one_dot())["d"] == "spatial(2, 2).local(2, 1).column_local(2, 4).spatial(8, 4).local(1, 2)"


def test_operands_of_a_dot_lie_in_shared_memory_so_that_their_matrices_meet_in_no_bank():
    found = layouts_of(one_dot())
    assert found["sa"] == found["sb"] == "shared_row_major_swizzle([64, 64], 2)"


def test_shared_tensors_too_say_who_chose_their_layout_and_why():
    trail = {choice.tensor.name: choice for choice in infer_layouts(parse(one_dot())).trail}
    assert trail["sa"].why == "so that no two threads want one bank at a time"
    assert [t.name for t in trail["sa"].after] == ["a"]
    assert trail["d"].who.opcode == "dot" and trail["d"].after == ()


def test_no_two_warps_compute_the_same_of_an_operand():
    text = DOT.replace("    store_global(h, e, offsets=[i32(0), i32(0)], dims=[0, 1])\n", "")
    trail = {choice.tensor.name: choice.layout for choice in infer_layouts(parse(text)).trail}
    assert trail["p16"].num_replicas == 1
    assert trail["d"] == trail["p16"]


def test_a_function_whose_layouts_are_known_is_left_alone():
    func = infer_layouts(parse(BOTH_SUMS.replace("add(rows, columns)", "add(rows, rows)"))).func
    assert infer_layouts(func).func is func


def test_every_tile_gets_a_layout_for_the_threads_of_the_kernel():
    func = infer_layouts(parse(BOTH_SUMS.replace("add(rows, columns)", "add(rows, rows)"))).func
    for inst in collect_instructions(func):
        for tensor in inst.register_tensors:
            assert tensor.layout.spatial_size == 128


def test_the_sum_of_a_row_and_a_column_lies_where_both_are_held():
    x, rows, columns = tile(64, 64), tile(64, 1), tile(1, 64)
    func = function(
        AllocateRegisterInst.create(x, lambda axes: scalar.cast(axes[0], dtypes.float32)),
        ReduceInst.create(x, 1, "sum", True, rows),
        ReduceInst.create(x, 0, "sum", True, columns),
        AddInst.create(rows, columns),
    )
    layouts = {str(choice.layout) for choice in infer_layouts(func).trail if choice.tensor.shape == (64, 64)}
    assert len(layouts) == 1


def test_choices_are_noted_with_the_tiles_of_the_result():
    notes = {}

    class Sink(Null):
        def note(self, key, value):
            notes[key] = value

    prog = layout_inference_pass()(
        parser.parse_program(BOTH_SUMS.replace("add(rows, columns)", "add(rows, rows)")), Sink()
    )
    trail = notes["layouts"]["f"]
    tensors = {t for inst in collect_instructions(prog.function) for t in inst.register_tensors}
    assert {choice.tensor for choice in trail} == tensors
    assert all(choice.tensor.layout == choice.layout for choice in trail)
    first = trail[0]
    assert (first.tensor.name, first.who.opcode, first.after) == ("x", "load_global", ())


MATMUL = """
@kernel(grid=[i32(1), i32(1), i32(1)], warps=4, divisibility={p: 16})
def f(p: ~f16, q: ~f32):
    g: Global[f16[i32(64), i32(64)]] = global_view(ptr=p)
    h: Global[f32[i32(64), i32(64)]] = global_view(ptr=q)
    sa: Shared[f16[2, 64, 64]] = shared_tensor()
    sb: Shared[f16[64, 64]] = shared_tensor()
    copy_async(sb, g, offsets=[i32(0), i32(0)], dims=[0, 1])
    stage: Shared[f16[64, 64]] = slice_shared(sa, offsets=[i32(0), i32(0), i32(0)], dims=[1, 2])
    copy_async(stage, g, offsets=[i32(0), i32(0)], dims=[0, 1])
    a: f16[64, 64] = load_shared(stage)
    b: f16[64, 64] = load_shared(sb)
    d: f32[64, 64] = dot(a, b, None)
    store_global(h, d, offsets=[i32(0), i32(0)], dims=[0, 1])
"""


@pytest.mark.parametrize(
    "annotation",
    [
        "annotate_layout(sa, layout=shared_row_major(2, 64, 64))",
        "annotate_layout(sb, layout=shared_row_major(64, 64))",
        "annotate_layout(sb, layout=shared_column_major(64, 64))",
    ],
)
def test_where_a_shared_tensor_lies_decides_nothing_about_the_tiles_of_a_dot(annotation):
    free = layouts_of(MATMUL)
    placed = layouts_of(MATMUL + f"    {annotation}\n")
    assert {name: placed[name] for name in "abd"} == {name: free[name] for name in "abd"}
    assert "moved" not in " ".join(placed)


def moves(text: str) -> list[str]:
    """The tensors through which tiles go, in the order of the kernel."""
    found = [
        inst.shared_output.name
        for inst in collect_instructions(infer_layouts(parse(text)).func)
        if inst.opcode == "shared_tensor"
    ]
    return [name for name in found if name.endswith("_moved")]


CHAIN = """
@kernel(grid=[i32(1), i32(1), i32(1)], warps=4, divisibility={p: 16})
def f(p: ~f16, q: ~f32):
    g: Global[f16[i32(64), i32(64)]] = global_view(ptr=p)
    h: Global[f32[i32(64), i32(64)]] = global_view(ptr=q)
    x: f16[64, 64] = load_global(g, offsets=[i32(0), i32(0)], dims=[0, 1])
    y: f16[64, 64] = load_global(g, offsets=[i32(0), i32(0)], dims=[0, 1])
    d: f32[64, 64] = dot(x, y, None)
    t: f16[64, 64] = cast(d)
    u: f16[64, 64] = transpose(t)
    e: f32[64, 64] = dot(LEFT, RIGHT, None)
    store_global(h, e, offsets=[i32(0), i32(0)], dims=[0, 1])
"""


@pytest.mark.parametrize(
    ("left", "right", "moved"),
    [("t", "t", ["t_moved"]), ("x", "x", ["x_moved"]), ("u", "y", ["t_moved"]), ("x", "u", ["t_moved"])],
)
def test_one_use_of_a_tile_goes_through_shared_memory_where_two_dots_want_it_elsewhere(left, right, moved):
    assert moves(CHAIN.replace("LEFT", left).replace("RIGHT", right)) == moved


def test_a_reshape_that_no_layout_has_goes_through_shared_memory():
    text = """
@kernel(grid=[i32(1), i32(1), i32(1)], warps=4, divisibility={p: 16})
def f(p: ~f32, q: ~f32):
    g: Global[f32[i32(32), i32(48)]] = global_view(ptr=p)
    h: Global[f32[i32(3), i32(512)]] = global_view(ptr=q)
    x: f32[32, 48] = load_global(g, offsets=[i32(0), i32(0)], dims=[0, 1])
    y: f32[3, 512] = reshape(x)
    store_global(h, y, offsets=[i32(0), i32(0)], dims=[0, 1])
"""
    after = infer_layouts(parse(text)).func
    assert [code for code in opcodes(after) if "shared" in code or code == "reshape"] == [
        "shared_tensor",
        "store_shared",
        "reshape_shared",
        "load_shared",
        "free_shared",
    ]


def test_a_tile_that_the_user_placed_badly_moves_together_with_those_it_meets():
    text = MATMUL.replace("load_shared(sb)", "load_global(g, offsets=[i32(0), i32(0)], dims=[0, 1])")
    assert moves(text + "    annotate_layout(b, layout=local(4, 1).spatial(16, 8).local(1, 8))\n")


def test_help_does_not_speak_of_annotations_where_there_are_none():
    rows = ops.shared_row_major(32, 32)
    s, v = (SharedTensor.create(dtypes.float16, (32, 32), rows) for _ in range(2))
    with pytest.raises(LayoutError) as caught:
        infer_layouts(function(AllocateSharedInst.create(s), PermuteSharedInst.create(s, (1, 0), v)))
    assert caught.value.diagnostic.help == "move one of them through shared memory: store_shared, sync, load_shared"
