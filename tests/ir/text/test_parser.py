# SPDX-License-Identifier: Apache-2.0
import pytest

from tilekit.diag import LanguageError
from tilekit.diag.span import Span
from tilekit.ir.text import parser
from tilekit.ir.tools import collect_instructions

HEADER = """\
@kernel(
    grid=[i32(1), i32(1), i32(1)],
    warps=1,
)
def f(n: i32, x: ~f32):
    a: f32[32] = register_tensor(init=f32(0.0))
"""


def complaint(text: str) -> str:
    with pytest.raises(LanguageError) as error:
        parser.parse_program(text)
    assert error.value.code == "TK190"
    help = error.value.diagnostic.help
    return error.value.message.removeprefix("tile IR, ") + (f" | {help}" if help else "")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("b: f32[32] = ad(a, a)", "line 7, column 18: there is no instruction 'ad' | did you mean add?"),
        ("b: f32[32] = add(a)", "line 7, column 18: add takes 2 tensors, got 1"),
        ("b: f32[32] = add(a, aa)", "line 7, column 25: aa is not defined before this line | did you mean a?"),
        ("b: f32[32] = add(a, n)", "line 7, column 25: expected a tensor, but n is a scalar"),
        ("b: f32[] = add(a, a)", "line 7, column 12: invalid syntax"),
        ("b: f99[32] = add(a, a)", "line 7, column 8: there is no type 'f99'"),
        ("b: ~f32[32] = add(a, a)", "line 7, column 8: expected the type of a tensor: f32[8, 16] or"),
        ("b: f32[n] = add(a, a)", "line 7, column 12: expected an integer, got n"),
        ("b: f32[32] @ locl(32) = add(a, a)", "line 7, column 8: no layout constructor 'locl' in locl(32): there are"),
        ("b: f32[32] @ local(16) = add(a, a)", "line 7, column 8: a layout of shape [16] cannot hold [32]"),
        ("a: f32[32] = add(a, a)", "line 7, column 5: a already has a type"),
        ("b = add(a, a)", "line 7, column 5: b is not defined before this line"),
        ("a = n", "line 7, column 9: expected an instruction: a tensor gets a value from nothing else"),
        ("n: f32 = f32(1.0)", "line 7, column 5: n already has another type"),
        ("k: Let[i32]", "line 7, column 5: expected a value: name: Let[type] = value"),
        ("k: i32 = m + n", "line 7, column 14: m is not defined before this line"),
        ("k: i32 = n + a", "line 7, column 18: expected a scalar, but a is a tensor"),
        ("k: i32 = n + 1", "line 7, column 14: '1' is not the text of a scalar expression"),
        ("k: i32 = n + i64(1)", "line 7, column 14: + needs operands of one type, not int32 and int64"),
        ("k: i32 = i8(1000)", "line 7, column 14: int8 holds -128 to 127: 1000 does not fit"),
        ("block_idx_x: i32 = n", "line 7, column 5: block_idx_x cannot be declared: it is a coordinate that every"),
        ("s: f32[()] = reduce(a, dims=[0])", "line 7, column 18: reduce needs op="),
        ("s: f32[()] = reduce(a, dims=[0], opp='sum')", "line 7, column 42: reduce takes no opp= | did you mean op?"),
        ("s: f32[()] = reduce(a, dims=[n], op='sum')", "line 7, column 34: there is no type 'n'"),
        ("s: f32[()] = reduce(a, dims=[a.b], op='sum')", "line 7, column 34: dims= takes no a.b"),
        ("s: f32[()] = reduce(a, dims=[1 + 1], op='sum')", "line 7, column 34: expected plain data for dims="),
        ("for i in n:", "line 7, column 5: expected an instruction or a statement of the tile IR"),
        ("for i in range(n, n):", "line 7, column 14: expected range(extent)"),
        ("for i in range(n, unroll=n):", "line 7, column 30: expected an integer, got n"),
        ("for i, j in range(n):", "line 7, column 9: expected a name, got (i, j)"),
        ("import os", "line 7, column 5: expected an instruction or a statement of the tile IR"),
        ("v: Item[f32] = n", "line 7, column 20: expected an element of a tensor, g[i, j], or its address, ~g[i, j]"),
        ("v: Item[f32]", "line 7, column 5: expected an element of a tensor, g[i, j], or its address, ~g[i, j]"),
        ("v: Item[i32] = n[()]", "line 7, column 20: expected a tensor, but n is a scalar"),
        ("v: Item[f32] = b[n]", "line 7, column 20: b is not defined before this line"),
        ("v: Item[~f32] = ~a[()]", "line 7, column 22: a lies in registers, which have no address"),
        ("v: Item[f33] = a[()]", "line 7, column 13: there is no type 'f33'"),
        ("s: Shared[f32[n]] = shared_tensor()", "line 7, column 19: expected an integer, got n"),
        (
            "s: Shared[f32[32]] @ local(32) = shared_tensor()",
            "line 7, column 8: local(32) is the layout of a register tensor, not of a shared tensor",
        ),
        (
            "b: f32[32] @ shared_row_major(32) = add(a, a)",
            "line 7, column 8: shared_row_major(32) is the layout of a shared tensor, not of a register tensor",
        ),
        ("s: Shared[f32[8]] @ shared_row_major(4, 2) = shared_tensor()", "line 7, column 8: a layout of shape [4, 2]"),
        ("return n", "line 7, column 5: expected an instruction or a statement of the tile IR"),
    ],
)
def test_bad_line_is_named_with_what_was_expected(line, message):
    body = f"    {line}\n" + ("        pass\n" if line.endswith(":") else "")
    assert complaint(HEADER + body).startswith(message)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("x = 1", "line 1, column 1: expected a function: @kernel(…) and def name(…):"),
        ("def f():\n    pass", "line 1, column 1: expected @kernel(grid=…, warps=…) before the function"),
        ("@kernel(warps=1)\ndef f():\n    pass", "line 1, column 2: @kernel needs grid="),
        ("@kernel(grid=[1], warps=1, wraps=2)\ndef f():\n    pass", "line 1, column 34: @kernel takes no wraps="),
        (
            "@kernel(grid=[i32(1)], warps=1)\ndef f():\n    pass",
            "line 1, column 14: expected a list of 3, one for each",
        ),
        (
            "@kernel(grid=[i32(1), i32(1), i32(1)], warps=True)\ndef f():\n    pass",
            "line 1, column 46: expected an integer, got True",
        ),
        (
            "@kernel(grid=[i32(1), i32(1), i32(1)], warps=1)\ndef f(n):\n    pass",
            "line 2, column 7: parameter n needs a type: n: i32",
        ),
        (
            "@kernel(grid=[i32(1), i32(1), i32(1)], warps=1, divisibility={m: 4})\ndef f(n: i32):\n    pass",
            "line 1, column 63: m is not defined before this line",
        ),
        (
            "@kernel(grid=[i32(1), i32(1), i32(1)], warps=1, analysis=[n < 4])\ndef f(n: i32):\n    pass",
            "line 1, column 59: expected a fact: i % 4 == 0, 0 <= i, or 0 <= i <= 12",
        ),
        (
            "@kernel(grid=[i32(1), i32(1), i32(1)], warps=1, divisibility=[n])\ndef f(n: i32):\n    pass",
            "line 1, column 62: expected {parameter: divisor, …}",
        ),
        ("def f(:", "line 1, column 7: invalid syntax"),
        (HEADER + HEADER, "line 11, column 1: there is already a function f"),
    ],
)
def test_bad_header_is_named_with_what_was_expected(header, message):
    assert complaint(header).startswith(message)


def test_lines_of_the_text_become_spans():
    (inst,) = collect_instructions(parser.parse_function("# a comment\n" + HEADER))
    assert inst.span == Span("f", line=1, col=17, end_line=1, end_col=47)


def test_names_of_the_text_become_names_of_tensors_and_variables():
    func = parser.parse_function(HEADER)
    (inst,) = collect_instructions(func)
    assert inst.register_output.name == "a"
    assert [param.hint for param in func.params] == ["n", "x"]
