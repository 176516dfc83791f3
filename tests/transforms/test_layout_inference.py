# SPDX-License-Identifier: Apache-2.0
import pytest

from tilekit import dtypes
from tilekit.diag.errors import LayoutError
from tilekit.diag.span import Span
from tilekit.events import Null
from tilekit.ir.func import Function, Metadata
from tilekit.ir.instructions.generic import AddInst, AllocateRegisterInst, AssignInst, ReduceInst
from tilekit.ir.layout import ops
from tilekit.ir.stmt import InstStmt, SeqStmt
from tilekit.ir.tensor import RegisterTensor
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


def test_a_conflict_names_both_tiles_and_tells_how_each_came_by_its_layout():
    with pytest.raises(LayoutError) as caught:
        infer_layouts(parse(BOTH_SUMS))
    error = caught.value
    assert error.code == "TK310"
    assert error.diagnostic.at is not None and error.diagnostic.at.line == 4
    assert error.message.startswith("x (f32[64, 64]) and rows (f32[64]) do not lie where reduce needs them: ")
    notes = [(text, place.line if place else None) for text, place in error.diagnostic.notes]
    assert notes == [
        (
            "x (f32[64, 64]) was laid out as local(8, 1).spatial(8, 16).local(1, 4) by load_global, "
            "for accesses of 16 bytes along dimension 1",
            3,
        ),
        (
            "rows (f32[64]) was laid out as replicated(num_workers=8).spatial(16).local(4) by add, "
            "to suit columns (f32[64])",
            6,
        ),
        (
            "columns (f32[64]) was laid out as replicated(num_workers=8).spatial(16).local(4) by reduce, "
            "to suit x (f32[64, 64])",
            5,
        ),
    ]
    assert error.diagnostic.help is not None


def test_the_help_of_a_conflict_helps():
    again = "    x: f32[64, 64] = load_global(g, offsets=[i32(0), i32(0)], dims=[0, 1])\n"
    text = BOTH_SUMS.replace("columns: f32[64] = reduce(x", "columns: f32[64] = reduce(x2")
    infer_layouts(parse(text.replace(again, again + again.replace("x:", "x2:"))))


def test_a_conflict_of_given_layouts_says_that_they_were_given():
    x, y = tile(8, layout=ops.local(8) * ops.replicated(num_workers=128), name="x"), tile(8, name="y")
    z = tile(8, layout=ops.replicated(num_workers=16) * ops.spatial(8), name="z")
    span = Span("f", 3, 4, 3, 9)
    func = function(
        AllocateRegisterInst.create(x, lambda _: 0.0),
        AssignInst.create(y, x).replace(span=span),
        AssignInst.create(z, y).replace(span=span),
    )
    with pytest.raises(LayoutError) as caught:
        infer_layouts(func)
    assert caught.value.diagnostic.at is span
    assert any("it was given with the tile" in text for text, _ in caught.value.diagnostic.notes)


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
