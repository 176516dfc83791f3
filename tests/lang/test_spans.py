# SPDX-License-Identifier: Apache-2.0
"""Every part of a kernel knows its line, and nothing that is printed depends on where the kernel stands."""

import textwrap

import pytest

from tests.lang.cells import cell, function_of
from tilekit import transforms
from tilekit.dtypes import float32
from tilekit.ir import stmt as stmts
from tilekit.ir.inst import Instruction
from tilekit.ir.prog import Program
from tilekit.ir.stmt import Stmt
from tilekit.ir.text import parser, printer
from tilekit.ir.tools.instruction_collector import collect
from tilekit.jit.spec import TensorSpec

KERNEL = """
class Kernel(tilus.Script):
    def scaled(self, tile, k):
        tile = tile * k  # LINE scaled
        return tile

    def __call__(self, n: int32, p: ~float32, q: ~float32):
        self.attrs.blocks = [cdiv(n, 8)]
        self.attrs.warps = 1
        at = self.blockIdx.x * 8  # LINE at
        gp = self.global_view(p, dtype=float32, shape=[n])  # LINE gp
        gq = self.global_view(q, dtype=float32, shape=[n])  # LINE gq
        x = self.load_global(gp, offsets=[at], shape=[8])  # LINE x
        total = self.register_tensor(dtype=float32, shape=[8], init=0.0)  # LINE total
        k = 0
        for i in range(n):  # LINE for
            total = total + x * i  # LINE sum
            if i > 3:  # LINE if
                k = k + 1  # LINE k
            else:
                total = self.scaled(total, 2.0)  # LINE call
        while k > 2:  # LINE while
            k -= 3  # LINE down
        self.store_global(gq, total + k, offsets=[at])  # LINE store
"""


def _function(text: str = KERNEL):
    handle = cell(text)["Kernel"]()
    return function_of(handle, 64, TensorSpec(float32, (64,)), TensorSpec(float32, (64,))), handle.sources


def _line_of(mark: str, text: str = KERNEL) -> int:
    lines = text.strip("\n").splitlines()
    return 1 + next(number for number, line in enumerate(lines) if line.endswith(f"# LINE {mark}"))


def _statements(func) -> list[Stmt]:
    return [stmt for stmt in collect(func, Stmt) if not isinstance(stmt, stmts.SeqStmt)]


def test_every_statement_and_instruction_knows_its_line():
    func, sources = _function()
    located = [*_statements(func), *collect(func, Instruction), func]
    assert all(node.span is not None for node in located)
    assert all(sources.locate(node.span).text_line.strip() for node in located)
    by_kind = {type(node).__name__: sources.locate(node.span).line for node in located}
    assert by_kind["ForStmt"] == _line_of("for")
    assert by_kind["WhileStmt"] == _line_of("while")
    assert by_kind["IfStmt"] == _line_of("if")
    assert by_kind["StoreGlobalInst"] == _line_of("store")
    assert by_kind["LoadGlobalInst"] == _line_of("x")


def test_what_a_helper_emits_knows_its_line_and_its_caller():
    func, sources = _function()
    (inst,) = [i for i in collect(func, Instruction) if i.span.function == "Kernel.scaled" and i.opcode == "mul"]
    assert sources.locate(inst.span).line == _line_of("scaled")
    (caller,) = inst.span.callers()
    assert (caller.function, sources.locate(caller).line) == ("Kernel.__call__", _line_of("call"))


def test_spans_cover_the_expression_that_made_the_instruction():
    func, sources = _function()
    (add,) = [
        i for i in collect(func, Instruction) if i.opcode == "add" and sources.locate(i.span).line == _line_of("sum")
    ]
    place = sources.locate(add.span)
    assert place.text_line[place.col : place.end_col] == "total + x * i"


@pytest.mark.parametrize(
    "moved",
    [
        "\n\n\n" + KERNEL,
        "# a comment\nother = 3\n" + KERNEL,
        "if True:\n" + textwrap.indent(KERNEL, "    "),
        "def make():\n" + textwrap.indent(KERNEL, "    ") + "\n    return Kernel\n\nKernel = make()\n",
    ],
    ids=["blank lines above", "code above", "indented", "in a function"],
)
def test_where_the_class_stands_changes_no_printed_ir(moved):
    here, _ = _function()
    there, sources = _function(moved)
    assert printer.print_function(there) == printer.print_function(here)
    lines = [(node.span.function, node.span.line) for node in _statements(here)]
    assert [(node.span.function, node.span.line) for node in _statements(there)] == lines
    # and yet the place that is shown is the present one
    (store,) = [node for node in collect(there, Instruction) if node.opcode == "store_global"]
    assert sources.locate(store.span).text_line.endswith("# LINE store")


def test_comments_and_blank_lines_between_statements_change_no_printed_ir():
    here, _ = _function()
    there, _ = _function(KERNEL.replace("        k = 0\n", "\n        # how often\n        k = 0\n\n"))
    assert printer.print_function(there) == printer.print_function(here)


def test_spans_survive_the_passes():
    func, sources = _function()
    prog = Program.create({func.name: func})
    for transform in transforms.get_default_passes():
        prog = transform(prog)
    lines = {sources.locate(inst.span).line for inst in collect(prog.function, Instruction) if inst.span is not None}
    assert all(inst.span is not None for inst in collect(prog.function, Instruction))
    assert {_line_of(mark) for mark in ("x", "sum", "scaled", "store")} <= lines
    assert all(node.span is not None for node in _statements(prog.function))


def test_names_of_the_user_are_the_names_of_the_ir():
    text = printer.print_function(_function()[0])
    for name in ("gp: ", "gq: ", "x: ", "total: ", "at: ", "k: ", "for i in "):
        assert name in text


def test_a_script_called_like_a_word_of_python_is_read_back():
    handle = cell(KERNEL.replace("class Kernel", "class Async"))["Async"]()
    printed = str(handle._jit_instance_for(64, *[TensorSpec(float32, (64,))] * 2).transpiled_programs[0])
    assert "def async_(" in printed
    assert str(parser.parse_program(printed)) == printed
