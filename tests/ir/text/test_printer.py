# SPDX-License-Identifier: Apache-2.0
import ast
import dataclasses

from hypothesis import given, settings

from tests.ir.strategies import programs
from tilekit import dtypes
from tilekit.diag.span import Span
from tilekit.ir.layout import ops
from tilekit.ir.text import parser, printer
from tilekit.ir.text.names import Names
from tilekit.ir.tools import collect_instructions, rewrite

TEXT = """\
@kernel(
    grid=[(n + i32(255)) // i32(256), i32(1), i32(1)],
    warps=4,
)
def double(n: i32, x: ~f32):
    g: Global[f32[n]] = global_view(ptr=x)
    a: f32[256] = load_global(g, offsets=[block_idx_x * i32(256)], dims=[0])
    b: f32[256] = add(a, a)
    b = add(b, a)
    store_global(g, b, offsets=[block_idx_x * i32(256)], dims=[0])"""


def changed(before: str, after: str) -> list[str]:
    return [line for line in after.splitlines() if line not in before.splitlines()]


@settings(max_examples=30)
@given(programs())
def test_every_line_of_a_random_program_is_python(prog):
    ast.parse(str(prog))


@settings(max_examples=30)
@given(programs())
def test_there_is_one_place_for_each_line(prog):
    text, spans = str(prog), prog.line_spans()
    assert len(text.splitlines()) == len(spans)
    assert text == printer.print_function(prog.function)


def test_layout_changes_no_other_line_than_the_one_that_makes_the_tile():
    prog = parser.parse_program(TEXT)
    tile = collect_instructions(prog.function)[2].register_output
    laid_out = tile.replace(optional_layout=ops.local(2).spatial(128))
    after = str(rewrite(prog, {tile: laid_out}))
    assert changed(TEXT, after) == ["    b: f32[256] @ local(2).spatial(128) = add(a, a)"]


def test_names_that_two_tensors_want_get_a_number():
    prog = parser.parse_program(TEXT)
    tile = collect_instructions(prog.function)[1].register_output
    renamed = rewrite(prog, {tile: tile.replace(name="b")})
    assert changed(TEXT, str(renamed))[:2] == [
        "    b: f32[256] = load_global(g, offsets=[block_idx_x * i32(256)], dims=[0])",
        "    b_1: f32[256] = add(b, b)",
    ]


def test_names_that_python_reserves_get_an_underscore():
    prog = parser.parse_program(TEXT)
    tile = collect_instructions(prog.function)[2].register_output
    text = str(rewrite(prog, {tile: tile.replace(name="lambda")}))
    assert "    lambda_: f32[256] = add(a, a)\n    lambda_ = add(lambda_, a)" in text


def test_instruction_alone_reads_as_in_its_function_but_for_its_layout():
    prog = parser.parse_program(TEXT.replace("b: f32[256]", "b: f32[256] @ local(2).spatial(128)"))
    names = Names.of_function(prog.function)
    _, _, first, second, store = collect_instructions(prog.function)
    assert printer.print_instruction(first, names) == "b: f32[256] = add(a, a)"
    assert printer.print_instruction(first, names, layouts=True) == "b: f32[256] @ local(2).spatial(128) = add(a, a)"
    assert printer.print_instruction(second, names) == "b = add(b, a)"
    assert printer.print_instruction(store, names).startswith("store_global(g, b, ")


def test_names_of_instructions_that_the_function_does_not_have_are_made_up():
    names = Names.of_function(parser.parse_program(TEXT).function)
    foreign = collect_instructions(parser.parse_program(TEXT).function)[2]
    assert printer.print_instruction(foreign, names) == "b_1: f32[256] = add(a_1, a_1)"


def test_text_holds_no_span():
    prog = parser.parse_program(TEXT)
    body = prog.function.body.replace(span=Span("Secret.__call__", 17, 4, 17, 9))
    assert str(prog.with_function(prog.function.with_body(body))) == TEXT


def test_lines_know_where_they_come_from():
    spans = parser.parse_program(TEXT).line_spans()
    assert [None if span is None else span.line for span in spans] == [None, None, None, None, 0, 1, 2, 3, 4, 5]


def test_facts_about_variables_that_are_gone_are_not_printed():
    func = parser.parse_function(TEXT)
    gone = parser.parse_function(TEXT).params[0]
    metadata = dataclasses.replace(func.metadata, param2divisibility={gone: 4, func.params[0]: 8})
    assert "divisibility={n: 8}" in printer.print_function(func.with_metadata(metadata))


def test_integer_types_of_a_tile_are_short():
    assert printer.print_type(dtypes.bfloat16) == "bf16"
    assert printer.print_type(~dtypes.uint8) == "~u8"
