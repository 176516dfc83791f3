# SPDX-License-Identifier: Apache-2.0
import math
import subprocess

import pytest

from tests.lowir.kernels import Known, lines_of
from tilekit import dtypes
from tilekit.cpusim.build import INCLUDE
from tilekit.diag import CodegenError
from tilekit.dtypes import boolean, float16, float32, float64, int8, int32, int64, uint8, uint32
from tilekit.lowir import cxx, names, prims, printer, scalar
from tilekit.lowir.build import ALL, KernelBuilder
from tilekit.lowir.nodes import BlackBoxStmt, Function, HVoidType, IRModule, Stmt
from tilekit.toolchain import host


def i32(number):
    return scalar.constant(int32, number)


def printed(write, *, params=(), read_only=(), knowledge=None, num_threads=128):
    """The source of a kernel whose body `write(builder)` writes."""
    builder = KernelBuilder(num_threads, knowledge)
    write(builder)
    return printer.print_module(builder.finish("k", params, read_only=read_only))


def text_of(e, knowledge=None):
    """How an expression is printed."""
    (line,) = lines_of(printed(lambda b: b.let("x", e), knowledge=knowledge))
    return line.partition(" = ")[2].removesuffix(";")


@pytest.fixture
def n():
    return scalar.var("n", int32)


@pytest.fixture
def m():
    return scalar.var("m", int32)


# ---------------------------------------------------------------------------------------------------------- the kernel


def test_a_kernel_reads_like_prose(n):
    x, y = scalar.var("x", ~float16), scalar.var("y", ~float32)

    def write(b):
        with b.instruction(0, "gx = global_view(x, shape=[n])"):
            tid = b.let("tid", scalar.thread_idx())
            base = b.let("base", scalar.add(scalar.mul(scalar.block_idx(0), i32(1024)), scalar.mul(tid, i32(8))))
        with b.instruction(1, "a = load_global(gx)"):
            a = b.register_array("a", float16, 8)
            with b.if_then(scalar.le(scalar.add(base, i32(8)), n)):
                b.evaluate(prims.load_global(16, b.registers(a), b.address(x, base)))
            with b.otherwise(), b.for_range("i", 8, ALL) as i:
                b.store(a, i, b.buffer_load(x, scalar.add(base, i)))
        with b.instruction(2, "s = sum(a)"):
            s = b.declare(scalar.var("s", float32), scalar.constant(float32, 0))
            with b.for_range("i", 8, ALL) as i:
                b.assign(s, scalar.add(s, scalar.cast(b.load(a, i), float32)))
            b.buffer_store(y, tid, scalar.call("exp", [s]))

    source = printed(write, params=[n, x, y], read_only=[x])
    assert (
        source.text
        == """\
#include <tk/tk.h>

extern "C" __global__ void __launch_bounds__(128)
k(int32_t n, const half *x, float *y)
{
  // gx = global_view(x, shape=[n])
  int32_t tid = threadIdx.x;
  int32_t base = (int)blockIdx.x * 1024 + tid * 8;
  // a = load_global(gx)
  half a[8];
  if (base + 8 <= n) {
    tk::load_global_16(a, &x[base]);
  } else {
    #pragma unroll
    for (int32_t i = 0; i < 8; ++i) {
      a[i] = x[base + i];
    }
  }
  // s = sum(a)
  float s = 0.0f;
  #pragma unroll
  for (int32_t i = 0; i < 8; ++i) {
    s += tk::cast<float>(a[i]);
  }
  y[tid] = tk::exp(s);
}
TK_KERNEL(k)
"""
    )
    origins = [None] * 5 + [0] * 3 + [1] * 10 + [2] * 7 + [None] * 2
    assert list(source.lines) == origins


def test_a_line_knows_its_instruction_inside_and_after_nested_ones(n):
    def write(b):
        with b.instruction(0, "for i in range(n)"), b.for_range("i", n) as i:
            with b.instruction(1, "inner"):
                b.let("x", i)
            b.let("y", i)
        b.let("z", n)

    source = printed(write)
    by_line = dict(zip(map(str.strip, source.text.splitlines()), source.lines, strict=True))
    assert by_line["for (int32_t i = 0; i < n; ++i) {"] == 0
    assert by_line["int32_t x = i;"] == 1
    assert by_line["int32_t y = i;"] == 0
    assert by_line["int32_t z = n;"] is None


def test_else_branches_chain(n):
    def write(b):
        with b.if_then(scalar.lt(n, i32(1))):
            b.ret()
        with b.otherwise(), b.if_then(scalar.lt(n, i32(2))):
            b.ret()

    expected = ["if (n < 1) {", "  return;", "} else if (n < 2) {", "  return;", "}"]
    assert lines_of(printed(write)) == expected


def test_loops_say_how_they_unroll(n):
    def write(b):
        for unroll in (None, ALL, 4):
            with b.for_range("i", n, unroll) as i, b.while_loop(scalar.lt(i, n)):
                b.break_()

    lines = [line for line in lines_of(printed(write)) if not line.startswith(" ")]
    assert lines[0] == "for (int32_t i = 0; i < n; ++i) {"
    assert [line for line in lines if line.startswith("#")] == ["#pragma unroll", "#pragma unroll 4"]


def test_pointers_computed_from_read_only_ones_are_const_too(n):
    x, y = scalar.var("x", ~float16), scalar.var("y", ~float16)

    def write(b):
        p = b.let("p", scalar.add(x, n))
        b.let("q", scalar.cast(b.address(p, n), ~int8))
        b.let("r", scalar.add(y, n))

    source = printed(write, params=[n, x, y], read_only=[x])
    assert "k(int32_t n, const half *x, half *y)" in source.text
    assert lines_of(source) == [
        "const half *p = x + n;",
        "const int8_t *q = (const int8_t *)&p[n];",
        "half *r = y + n;",
    ]
    assert "__restrict__" not in source.text


# ---------------------------------------------------------------------------------------------------------- expressions


def test_parentheses_stand_where_precedence_or_readers_want_them(n, m):
    plus = scalar.add(n, m)
    assert text_of(scalar.sub(n, scalar.sub(m, n))) == "n - (m - n)"
    assert text_of(scalar.sub(scalar.sub(n, m), n)) == "n - m - n"
    assert text_of(scalar.mul(plus, m)) == "(n + m) * m"
    assert text_of(scalar.shl(plus, m)) == "(n + m) << m"
    assert text_of(scalar.bitwise_and(plus, m)) == "(n + m) & m"
    assert text_of(scalar.bitwise_or(scalar.bitwise_or(n, m), n)) == "n | m | n"
    small, large = scalar.lt(n, m), scalar.lt(m, n)
    assert text_of(scalar.logical_or(scalar.logical_and(small, large), small)) == "(n < m && m < n) || n < m"
    assert text_of(scalar.logical_not(small)) == "!(n < m)"
    assert text_of(scalar.neg(scalar.neg(n))) == "-(-n)"
    assert text_of(scalar.add(n, scalar.where(small, n, m))) == "n + (n < m ? n : m)"
    assert text_of(scalar.sub(n, i32(-3))) == "n - (-3)"


def test_divisions_are_calls_until_proven_plain(n):
    quotient, remainder = scalar.floordiv(n, i32(32)), scalar.mod(n, i32(32))
    assert text_of(quotient) == "tk::floordiv(n, 32)"
    assert text_of(remainder) == "tk::floormod(n, 32)"
    known = Known()
    known.learn(n, 0, 100)
    assert text_of(quotient, known) == "n / 32"
    assert text_of(remainder, known) == "n % 32"
    assert text_of(scalar.floordiv(scalar.sub(n, i32(1)), i32(32)), known) == "tk::floordiv(n - 1, 32)"
    assert text_of(scalar.floordiv(n, n), known) == "tk::floordiv(n, n)", "it may be zero"
    assert text_of(scalar.c_div(n, i32(32))) == "n / 32"
    tid = scalar.floordiv(scalar.thread_idx(), i32(32))
    assert text_of(tid, Known()) == "(int)threadIdx.x / 32"


def test_sums_in_registers_wrap_unless_they_are_proven_to_fit(n):
    unsigned, known = scalar.var("u", uint32), Known()
    known.learn(n, -100, 100)

    def write(b):
        a, c = b.register_array("a", int32, 4), b.register_array("c", uint32, 4)
        b.store(a, 0, scalar.add(scalar.mul(n, n), b.load(a, 1)), wraps=True)
        b.store(a, 2, scalar.neg(b.load(a, scalar.add(n, i32(1)))), wraps=True)
        b.store(a, 3, scalar.add(b.load(a, 0), n))
        b.store(c, 0, scalar.mul(unsigned, unsigned), wraps=True)

    assert lines_of(printed(write, knowledge=known))[2:] == [
        "a[0] = tk::add(n * n, a[1]);",
        "a[2] = tk::negate(a[n + 1]);",
        "a[3] = a[0] + n;",
        "c[0] = u * u;",
    ]


def test_numbers_are_bare_where_the_other_side_types_them(n):
    wide, narrow, unsigned = scalar.var("w", int64), scalar.var("b", int8), scalar.var("u", uint32)
    assert text_of(scalar.mul(wide, scalar.constant(int64, 4))) == "w * 4"
    assert text_of(scalar.add(wide, scalar.constant(int64, 2**40))) == "w + int64_t(1099511627776ll)"
    assert text_of(scalar.minimum(wide, scalar.constant(int64, 4))) == "tk::minimum(w, int64_t(4))"
    assert text_of(scalar.add(unsigned, scalar.constant(uint32, 2**32 - 1))) == "u + 4294967295u"
    assert text_of(scalar.shl(scalar.constant(int64, 1), wide)) == "int64_t(1) << w"
    assert text_of(scalar.add(narrow, scalar.constant(int8, 1))) == "(int8_t)(b + 1)"
    assert text_of(scalar.lt(scalar.mul(narrow, narrow), narrow)) == "(int8_t)(b * b) < b"
    assert text_of(scalar.constant(int64, 7)) == "7"


@pytest.mark.parametrize(
    ("dtype", "value", "text"),
    [
        (boolean, True, "true"),
        (int32, -5, "-5"),
        (int32, -(2**31), "(-2147483647 - 1)"),
        (int64, -(2**63), "int64_t(-9223372036854775807ll - 1)"),
        (int64, 3, "int64_t(3)"),
        (uint8, 200, "uint8_t(200)"),
        (uint32, 3, "3u"),
        (dtypes.uint64, 2**64 - 1, "uint64_t(18446744073709551615ull)"),
        (float32, 0.1, "0.1f"),
        (float32, 1e30, "1e+30f"),
        (float32, -0.0, "-0.0f"),
        (float32, math.inf, "tk::infinity<float>()"),
        (float16, -math.inf, "-tk::infinity<half>()"),
        (dtypes.bfloat16, math.nan, "tk::nan<nv_bfloat16>()"),
        (float16, 0.5, "half(0.5f)"),
        (float64, 0.1, "0.1"),
    ],
)
def test_literals_have_exactly_their_type(dtype, value, text):
    assert cxx.literal(dtype, dtypes.convert(value, dtype)) == text


def test_casts_are_cs_own_only_where_c_means_the_same(n):
    half, single, flag = scalar.var("h", float16), scalar.var("f", float32), scalar.lt(n, i32(3))
    assert text_of(scalar.cast(n, int64)) == "(int64_t)n"
    assert text_of(scalar.cast(n, float32)) == "(float)n"
    assert text_of(scalar.cast(flag, int32)) == "(int32_t)(n < 3)"
    assert text_of(scalar.cast(single, int32)) == "tk::cast<int32_t>(f)"
    assert text_of(scalar.cast(half, float32)) == "tk::cast<float>(h)"
    assert text_of(scalar.cast(single, float64)) == "(double)f"


def test_a_dtype_without_cpp_type_is_refused():
    with pytest.raises(CodegenError, match="float8_e4m3 has no type in generated code"):
        printed(lambda b: b.declare(scalar.var("x", dtypes.float8_e4m3)))
    with pytest.raises(CodegenError, match=r"there is no tk::exp of \(float8_e4m3\)"):
        x = scalar.var("x", dtypes.float8_e4m3)
        printed(lambda b: b.let("y", scalar.call("exp", [x])))


# ---------------------------------------------------------------------------------------------------------------- names


def test_words_of_cpp_and_cuda_are_not_names():
    for word in ("register", "float", "half", "threadIdx", "tk", "linux", "TK_DEVICE", "INT32_MAX"):
        (line,) = lines_of(printed(lambda b, word=word: b.declare(scalar.var(word, int32))))
        assert line == f"int32_t {word}_1;"


@pytest.mark.skipif(host.find_compiler() is None, reason="no C++ compiler here")
def test_no_macro_of_the_headers_is_a_name():
    command = [*host.require_compiler().command, "-std=c++17", "-x", "c++", f"-I{INCLUDE}", "-dM", "-E", "-"]
    made = subprocess.run(command, input="#include <tk/tk.h>", capture_output=True, text=True, check=True)
    macros = [line.split(" ")[1] for line in made.stdout.splitlines()]
    seen = [macro for macro in macros if macro.isidentifier() and macro == names.legal(macro)]
    assert "NULL" in seen and [macro for macro in seen if not names.is_reserved(macro)] == []


def test_two_variables_of_one_name_are_told_apart_only_where_both_are_visible():
    def write(b):
        first, second = scalar.var("x", int32), scalar.var("x", int32)
        b.declare(first, i32(1))
        b.declare(second, first)
        for _ in range(2):
            with b.for_range("i", 3) as i, b.for_range("i", 3) as j:
                b.assign(second, scalar.add(i, j))

    lines = [line.strip() for line in lines_of(printed(write))]
    assert lines[:2] == ["int32_t x = 1;", "int32_t x_1 = x;"]
    assert lines.count("for (int32_t i = 0; i < 3; ++i) {") == lines.count("x_1 = i + i_1;") == 2


@pytest.mark.parametrize(
    ("name", "expected"),
    [("größe", "gruf6udfe"), ("a.b", "a_b"), ("__x", "_x"), ("_X", "v_X"), ("2x", "v2x"), ("", "v"), ("x", "x")],
)
def test_names_become_identifiers(name, expected):
    assert names.legal(name) == expected


def test_a_comment_may_hold_braces_and_lines():
    def write(b):
        with b.instruction(0, "a = {}\nb = {0}"):
            b.comment("inside {}")
            b.ret()

    source = printed(write)
    assert lines_of(source) == ["// a = {}", "// b = {0}", "// inside {}", "return;"]
    assert set(source.lines[5:9]) == {0}


def test_an_unknown_statement_is_refused():
    class Strange(Stmt):
        pass

    function = Function("k", [], Strange(), HVoidType(), "cuda_kernel", {"cuda.block_dim": 32})
    with pytest.raises(CodegenError, match="does not know the statement Strange"):
        printer.print_module(IRModule({"k": function}))
    raw = Function("k", [], BlackBoxStmt("raw text"), HVoidType(), "cuda_kernel", {"cuda.block_dim": 32})
    with pytest.raises(CodegenError, match="does not know the statement BlackBoxStmt"):
        printer.print_module(IRModule({"k": raw}))
