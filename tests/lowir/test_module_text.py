# SPDX-License-Identifier: Apache-2.0
import pytest

from tilekit.dtypes import boolean, float32, int32
from tilekit.lowir import module_text, printer, scalar
from tilekit.lowir.build import KernelBuilder


def one(number=1):
    return scalar.constant(float32, number)


@pytest.fixture
def module():
    """Two instructions, the second one with a branch inside of a loop, in a loop of the kernel."""
    n, y, flag = scalar.var("n", int32), scalar.var("y", ~float32), scalar.var("flag", boolean)
    b = KernelBuilder(128)
    with b.instruction(0, "first {}"):
        b.buffer_store(y, 0, one())
    with b.at(1), b.for_range("i", n) as i:
        with b.instruction(2, "second\nin two lines"), b.for_range("j", n):
            with b.if_then(flag):
                b.buffer_store(y, i, one(2))
            with b.otherwise():
                b.buffer_store(y, i, one(3))
        b.buffer_store(y, i, one(4))
    return b.finish("k", [n, y, flag])


def test_the_text_of_hidet_ir_names_the_statements(module):
    text = module_text.to_text(module)
    assert "for i in range(n):" in text and "y[i] = 2.0f" in text and "// first" in text
    assert "kind:" not in text and "\0" not in text


def test_the_text_is_what_hidet_prints(module):
    hidets = [line for line in str(module).splitlines() if "# kind:" not in line]
    assert module_text.to_text(module).splitlines() == hidets


def test_each_line_knows_its_statement_and_the_number_of_its_instruction(module):
    lines = {line.text.strip(): line for line in module_text.to_lines(module)}
    assert lines["y[0] = 1.0f"].origin == lines["// first { }"].origin == 0
    assert lines["for i in range(n):"].origin == lines["y[i] = 4.0f"].origin == 1
    inner = ["// second", "// in two lines", "for j in range(n):", "if flag", "y[i] = 2.0f", "else", "y[i] = 3.0f"]
    assert [lines[text].origin for text in inner] == [2] * len(inner)
    assert lines["else"].stmt is lines["if flag"].stmt and lines["// in two lines"].stmt is lines["// second"].stmt
    assert lines["def k("].stmt is None


def test_the_lines_of_the_source_print_the_same_statements_in_the_same_order(module):
    def order(statements):
        return list(dict.fromkeys(stmt for stmt in statements if stmt is not None))

    source = printer.print_module(module)
    assert len(source.statements) == len(source.lines) == len(source.text.splitlines())
    shown = order(line.stmt for line in module_text.to_lines(module))
    # a mark without text is no line of the source
    assert order(source.statements) == [stmt for stmt in shown if getattr(stmt, "text", "said")]
    by_statement = {line.stmt: line.origin for line in module_text.to_lines(module)}
    told = [(by_statement[s], n) for s, n in zip(source.statements, source.lines, strict=True) if s is not None]
    assert all(ours == theirs for ours, theirs in told)
