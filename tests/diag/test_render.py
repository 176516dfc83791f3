# SPDX-License-Identifier: Apache-2.0
"""What a person sees, letter by letter."""

import re
from html.parser import HTMLParser

import pytest

from tests.diag.cell import Cell
from tilekit.diag import Diagnostic, Span, render


def shown(cell, piece, end=None, message="no", **more):
    return render.text(Diagnostic("TK204", message, cell.span(piece, end), **more), cell.sources, "LayoutError")


@pytest.mark.parametrize(
    ("line", "piece", "excerpt", "carets"),
    [
        ("    y = x + 1", "x", "y = x + 1", "    ^"),
        ("    y = x + 1  # why", "x + 1", "y = x + 1  # why", "    ^^^^^"),
        ("    größe = x + 1", "x", "größe = x + 1", "        ^"),
        ("    y = f('日本', x)", "x", "y = f('日本', x)", "              ^"),
        ("    y = f('日本', x)", "'日本'", "y = f('日本', x)", "      ^^^^^^"),
        ("    y = f('e\u0301', x)", "x", "y = f('e\u0301', x)", "           ^"),
        ("\ty = x + 1", "x", "y = x + 1", "    ^"),
        ("    y =\tx + 1", "x", "y = x + 1", "    ^"),
        ("    y,\tz = x", "z", "y,  z = x", "    ^"),
    ],
)
def test_carets_stand_under_the_exact_columns(line, piece, excerpt, carets):
    cell = Cell(f"def kernel():\n{line}\n", "kernel")
    assert shown(cell, piece) == f"LayoutError TK204 in kernel, Cell In[2], line 2: no\n    {excerpt}\n    {carets}"


def test_a_span_over_several_lines_marks_the_first_and_names_the_last():
    cell = Cell("def kernel():\n    y = f(\n        x,  # the tile\n    )\n", "kernel")
    assert shown(cell, "f(", end=")") == (
        "LayoutError TK204 in kernel, Cell In[2], line 2: no\n    y = f(\n        ^^ ... through line 4"
    )


def test_a_span_of_nothing_gets_one_caret():
    cell = Cell("def kernel():\n    y = x\n", "kernel")
    at = cell.span("x")
    empty = Span(at.function, at.line, at.col, at.line, at.col)
    assert render.text(Diagnostic("TK204", "no", empty), cell.sources).endswith("    y = x\n        ^")


def test_notes_point_at_their_lines_and_help_comes_last():
    cell = Cell("def kernel():\n    y = load()\n    z = x + y\n", "kernel")
    text = shown(
        cell,
        "x + y",
        message="cannot add f16[4] to f16[8]",
        notes=(("this operand was made here", cell.span("load()")), ("shapes must be equal", None)),
        help="unsqueeze the smaller tile",
    )
    assert text == (
        "LayoutError TK204 in kernel, Cell In[2], line 3: cannot add f16[4] to f16[8]\n"
        "    z = x + y\n"
        "        ^^^^^\n"
        "  note: this operand was made here (Cell In[2], line 2)\n"
        "      y = load()\n"
        "          ^^^^^^\n"
        "  note: shapes must be equal\n"
        "  help: unsqueeze the smaller tile"
    )


def test_an_inlined_helper_shows_who_called_it():
    helper = Cell("class K:\n    def scale(self, x):\n        return x * self.factr\n", "K.scale")
    kernel = Cell("def kernel(self):\n    y = 1\n    z = self.scale(y)\n", "kernel")
    kernel.sources.register("K.scale", helper.sources._codes["K.scale"])
    at = helper.span("self.factr", caller=kernel.span("self.scale(y)"))
    text = render.text(Diagnostic("TK204", "no", at), kernel.sources)
    assert text == (
        f"TK204 in K.scale, {helper.filename}, line 3: no\n"
        "    return x * self.factr\n"
        "               ^^^^^^^^^^\n"
        "  note: called from kernel, Cell In[2], line 3\n"
        "      z = self.scale(y)\n"
        "          ^^^^^^^^^^^^^"
    )


def test_further_lines_of_a_message_are_indented():
    assert render.text(Diagnostic("TK204", "two lines\nof text", help="and\nhelp")) == (
        "TK204: two lines\n    of text\n  help: and\n    help"
    )


def test_a_function_nobody_registered_is_placed_by_its_def():
    for line, words in ((0, "at its def"), (1, "1 line below its def"), (5, "5 lines below its def")):
        assert render.text(Diagnostic("TK204", "no", Span("f", line, 0, line, 1))) == f"TK204 in f, {words}: no"


def test_a_line_that_is_gone_leaves_the_header():
    cell = Cell("def kernel():\n    y = x\n", "kernel")
    text = shown(cell, "x")
    cell.forget()
    assert shown(cell, "x") == text.split("\n")[0]


def test_lines_are_those_of_the_cell_as_it_is_now():
    source = "@decorate(\n    1,\n)\ndef kernel():\n    y = x\n"
    cell = Cell(source, "kernel")
    at = cell.span("x")
    diagnostic = Diagnostic("TK204", "no", at)
    assert "Cell In[2], line 5" in render.text(diagnostic, cell.sources)
    cell.run("# a line more\n\n" + source)
    assert "Cell In[2], line 7" in render.text(diagnostic, cell.sources)
    assert render.text(diagnostic, cell.sources).endswith("    y = x\n        ^")


class _Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.text = ""
        self.tags = []
        self.attributes = set()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data):
        self.text += data


def test_html_reads_as_the_text_and_carries_its_own_style():
    cell = Cell("def kernel():\n    y = '<script>' < x & 1\n", "kernel")
    diagnostic = Diagnostic(
        "TK204", "cannot add <f16> & 'x' to \"y\"", cell.span("x & 1"), (("see <here>", cell.span("y")),), "use <b>"
    )
    html = render.html(diagnostic, cell.sources, "LayoutError")
    reader = _Reader()
    reader.feed(html)
    assert reader.text == render.text(diagnostic, cell.sources, "LayoutError")
    assert set(reader.tags) == {"pre", "span"}
    assert reader.attributes == {"style"}


def test_ansi_reads_as_the_text_and_every_color_is_closed():
    cell = Cell("def kernel():\n    y = x\n", "kernel")
    diagnostic = Diagnostic("TK204", "no", cell.span("x"), (("see", cell.span("y")),), "do")
    painted = render.ansi(diagnostic, cell.sources, "LayoutError")
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == render.text(diagnostic, cell.sources, "LayoutError")
    for line in painted.split("\n"):
        assert line.count("\x1b[0m") * 2 == line.count("\x1b[")
