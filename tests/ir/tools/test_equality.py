# SPDX-License-Identifier: Apache-2.0
import dataclasses
import re

import pytest
from hypothesis import given, settings

from tests.ir.strategies import programs
from tilekit.ir.instructions.elementwise import AddInst
from tilekit.ir.stmt import SeqStmt
from tilekit.ir.text import parser
from tilekit.ir.tools import collect, rewrite
from tilekit.ir.tools.equality import structurally_equal

TEXT = """\
@kernel(
    grid=[n, i32(1), i32(1)],
    warps=4,
    divisibility={n: 16},
    analysis=[
        0 <= k,
    ],
)
def f(n: i32, m: i32, x: ~f32):
    g: Global[f32[n]] = global_view(ptr=x)
    a: f32[256] @ local(2).spatial(128) = register_tensor(axes=[i], init=f32(i * n))
    b: f32[256] = register_tensor(init=f32(0.0))
    k: i32 = i32(0)
    while k < n:
        k = k + i32(1)
        for j in range(m, unroll=2):
            if j == k:
                break
            else:
                b = add(a, b)
    with scope:
        t: Let[i32] = k + n
        c: f32[1] = reduce(a, dims=[0], op='max', keepdim=True)
    s: Shared[f32[2, 256]] @ shared_row_major(2, 256) = shared_tensor()
    r: Shared[f32[256]] = slice_shared(s, offsets=[m % i32(2), i32(0)], dims=[1])
    copy_async(r, g, offsets=[m], dims=[0], evict='evict_first')
    v: Item[f32] = c[()]
    w: Item[f32] = s[i32(0), m]
    o: Item[~f32] = ~g[m]
    q: Item[~f32] = ~g[i32(3)]
    printf(fmt='%f %f %p %p', args=[v, w, o, q])
    store_global(g, b, offsets=[n], dims=[0])
"""


def equal(one: str, other: str) -> bool:
    return structurally_equal(parser.parse_program(one), parser.parse_program(other))


@settings(max_examples=30)
@given(programs())
def test_program_equals_itself(prog):
    assert structurally_equal(prog, prog)


@pytest.mark.parametrize("name", list("nmxgabkjitcsrvwoq"))
def test_names_make_no_difference(name):
    renamed = re.sub(rf"\b{name}\b", "other", TEXT)
    assert renamed != TEXT
    assert equal(TEXT, renamed)
    assert equal(renamed, TEXT)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("def f(", "def g("),
        ("n: i32, m: i32", "m: i32, n: i32"),
        ("x: ~f32", "x: ~f16"),
        ("grid=[n,", "grid=[m,"),
        ("warps=4", "warps=2"),
        ("warps=4", "cluster=[2, 1, 1],\n    warps=4"),
        ("divisibility={n: 16}", "divisibility={n: 8}"),
        ("divisibility={n: 16}", "divisibility={m: 16}"),
        ("0 <= k", "k <= 0"),
        ("0 <= k", "1 <= k"),
        ("0 <= k", "0 <= k <= 9"),
        ("0 <= k", "k % 2 == 0, 0 <= k"),
        ("Global[f32[n]]", "Global[f32[m]]"),
        ("Global[f32[n]]", "Global[f32[n]] @ strides(i64(2))"),
        ("local(2).spatial(128)", "spatial(128).local(2)"),
        ("@ local(2).spatial(128) ", ""),
        ("f32(i * n)", "f32(i * m)"),
        ("f32(i * n)", "f32(n * i)"),
        ("f32(0.0)", "f32(-0.0)"),
        ("b: f32[256]", "b: f32[1, 256]"),
        ("k: i32 = i32(0)", "k: i32"),
        ("k = k + i32(1)", "k = k + i32(2)"),
        ("k < n", "k < m"),
        ("range(m, unroll=2)", "range(n, unroll=2)"),
        ("range(m, unroll=2)", "range(m, unroll='all')"),
        ("range(m, unroll=2)", "range(m)"),
        ("j == k", "j == n"),
        ("break", "return"),
        ("break", "pass"),
        ("add(a, b)", "add(b, a)"),
        ("add(a, b)", "sub(a, b)"),
        ("b = add(a, b)", "d: f32[256] = add(a, b)"),
        ("with scope", "if n == m"),
        ("t: Let[i32] = k + n", "t: Let[i32] = n + k"),
        ("op='max'", "op='min'"),
        ("keepdim=True", "keepdim=1"),
        ("store_global(g, b", "store_global(g, a"),
        ("offsets=[n]", "offsets=[m]"),
        ("Shared[f32[2, 256]] @ shared_row_major(2, 256)", "Shared[f32[2, 256]]"),
        ("shared_row_major(2, 256)", "shared_column_major(2, 256)"),
        ("[m % i32(2), i32(0)]", "[m % i32(2), i32(1)]"),
        (", evict='evict_first'", ""),
        (", evict='evict_first'", ", evict='evict_first', check_bounds=False"),
        ("= c[()]", "= c[n]"),
        ("s[i32(0), m]", "s[i32(1), m]"),
        ("s[i32(0), m]", "s[i32(0), n]"),
        ("~g[m]", "~g[n]"),
        ("q: Item[~f32] = ~g", "q: Item[f32] = g"),
        ("[v, w, o, q]", "[w, v, o, q]"),
        ("[v, w, o, q]", "[v, w, q, o]"),
        ("%f %f", "%f %g"),
    ],
)
def test_every_other_change_makes_a_difference(old, new):
    assert old in TEXT
    assert not equal(TEXT, TEXT.replace(old, new))
    assert not equal(TEXT.replace(old, new), TEXT)


def test_spans_and_sequences_inside_sequences_make_no_difference():
    func = parser.parse_function("# further down\n\n" + TEXT)
    assert isinstance(func.body, SeqStmt)
    first, *rest = func.body.seq
    nested = func.with_body(SeqStmt((SeqStmt((first, SeqStmt(()))), SeqStmt(tuple(rest)))))
    assert structurally_equal(nested, parser.parse_function(TEXT))


def test_two_tensors_are_not_one():
    two, one = (
        TEXT.replace("(init=f32(0.0))", f"()\n    {second} = register_tensor()") for second in ("d: f32[256]", "b")
    )
    assert not equal(two, one)
    assert not equal(one, two)


def test_facts_about_variables_that_are_gone_make_no_difference():
    func = parser.parse_function(TEXT)
    other = parser.parse_function(TEXT)
    facts = {**func.metadata.param2divisibility, other.params[1]: 4}
    known = func.with_metadata(dataclasses.replace(func.metadata, param2divisibility=facts))
    assert structurally_equal(known, other)
    assert structurally_equal(other, known)


def test_parts_are_equal_only_if_they_mean_the_same_tensors():
    add, same = (collect(parser.parse_function(TEXT), AddInst)[0] for _ in range(2))
    assert structurally_equal(add, add.replace(span=None))
    assert not structurally_equal(add, rewrite(add, {add.x: add.y}))
    assert not structurally_equal(add, same)
