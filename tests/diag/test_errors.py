# SPDX-License-Identifier: Apache-2.0
import pickle
import re
import traceback

import pytest

from tests.diag.cell import Cell
from tilekit import diag
from tilekit.diag import catalog
from tilekit.diag.span import Span

KERNEL = """\
class Softmax:
    def __call__(self, x, y):
        z = x + y
        return z
"""


@pytest.fixture
def cell():
    return Cell(KERNEL, "Softmax.__call__")


def test_an_error_says_what_is_wrong_where(cell):
    error = diag.LanguageError("TK204", "cannot add f16[4] to f16[8]", at=cell.span("x + y"))
    assert str(error) == "TK204 in Softmax.__call__, 1 line below its def: cannot add f16[4] to f16[8]"
    assert str(error.with_sources(cell.sources)) == (
        "TK204 in Softmax.__call__, Cell In[2], line 3: cannot add f16[4] to f16[8]\n    z = x + y\n        ^^^^^"
    )
    assert error.to_text().startswith("LanguageError TK204 in Softmax.__call__, Cell In[2], line 3: cannot add")


def test_a_traceback_names_the_class_once(cell):
    error = diag.LanguageError("TK204", "cannot add", at=cell.span("x + y")).with_sources(cell.sources)
    assert traceback.format_exception_only(error)[0].startswith(
        "tilekit.diag.LanguageError: TK204 in Softmax.__call__, Cell In[2], line 3: cannot add\n"
    )


def test_ipython_gets_the_short_form(cell):
    error = diag.LanguageError("TK204", "cannot add", at=cell.span("x + y")).with_sources(cell.sources)
    assert [_without_color(line) for line in error._render_traceback_()] == [
        "LanguageError TK204 in Softmax.__call__, Cell In[2], line 3: cannot add",
        "    z = x + y",
        "        ^^^^^",
    ]


def _without_color(line):
    for code in ("\x1b[0m", "\x1b[1;31m", "\x1b[1m", "\x1b[1;34m", "\x1b[1;32m", "\x1b[2m"):
        line = line.replace(code, "")
    assert "\x1b" not in line
    return line


def test_what_a_kernel_did_is_a_sentence_that_opens_to_its_notes(cell):
    accesses = [{"thread": 3, "block": (0, 0, 0), "verb": "writes"}, {"thread": 4, "block": (0, 0, 0), "verb": "reads"}]
    error = diag.KernelError(
        "TK720",
        "race",
        at=cell.span("x + y"),
        notes=[("thread 3 writes it\nsource.cu line 7: <s>", cell.span("z")), "thread 4 reads it"],
        help="self.sync() is missing",
        data={"first": accesses[0], "second": accesses[1]},
    ).with_sources(cell.sources)
    head, details = re.split("<details [^>]*>", error._repr_html_())
    assert "race" in head and "self.sync() is missing" in head and "thread 3" not in head
    assert "the two accesses: thread 3 writes, then thread 4 reads</summary>" in details
    assert "source.cu line 7: &lt;s&gt;" in details
    assert error.text_notes() == (
        "  note: thread 3 writes it (Cell In[2], line 3)\n"
        "      z = x + y\n"
        "      ^\n"
        "      source.cu line 7: <s>\n"
        "  note: thread 4 reads it"
    )
    whole = [_without_color(line) for line in error._render_traceback_()]
    assert whole == error.to_text().split("\n")
    error.in_notebook = True
    short = [_without_color(line) for line in error._render_traceback_()]
    assert set(re.findall(r"\x1b\[[\d;]*m", "".join(error._render_traceback_()))) == {"\x1b[1m", "\x1b[0m"}
    assert "\n".join([*short[:-1], error.text_notes(), short[-1]]) == error.to_text()
    accesses[1]["block"] = (0, 1, 0)
    assert error.notes_title == (
        "the two accesses: thread 3 of block (0, 0, 0) writes, then thread 4 of block (0, 1, 0) reads"
    )


def test_an_unplaced_error_takes_the_first_place_it_is_given(cell):
    error = diag.LanguageError("TK204", "cannot add").located(cell.span("x + y"))
    assert error.located(cell.span("z = x + y")).diagnostic.at == cell.span("x + y")
    assert str(diag.LanguageError("TK204", "cannot add")) == "TK204: cannot add"


def test_notes_are_added_in_order(cell):
    error = diag.LanguageError("TK204", "cannot add", notes=["first", ("second", cell.span("x + y"))]).noted("third")
    assert [text for text, _ in error.diagnostic.notes] == ["first", "second", "third"]


@pytest.mark.parametrize("name", [name for name in diag.__all__ if name.endswith("Error")])
def test_every_error_pickles_with_its_lines(name, cell):
    error = getattr(diag, name)(
        "TK204", "no", at=cell.span("x + y"), notes=[("see", cell.span("z"))], help="do", data={"kind": "deadlock"}
    )
    error.with_sources(cell.sources)
    shown = error.to_text()
    copy = pickle.loads(pickle.dumps(error))
    cell.forget()
    assert type(copy) is type(error)
    assert copy.to_text() == shown
    assert (copy.diagnostic, copy.data) == (error.diagnostic, error.data)


def test_a_kernel_error_says_its_kind():
    assert diag.KernelError("TK204", "stuck", data={"kind": "deadlock"}).kind == "deadlock"
    assert diag.KernelError("TK204", "stuck").kind == ""


def test_a_code_outside_the_catalog_is_refused():
    with pytest.raises(KeyError, match="TK000 is not in"):
        diag.LanguageError("TK000", "no")


def test_codes_are_unique_and_titles_have_no_period():
    blocks = [block for block in vars(catalog).values() if isinstance(block, dict) and block is not catalog.TITLES]
    blocks = [block for block in blocks if all(str(key).startswith("TK") for key in block)]
    assert sum(map(len, blocks)) == len(catalog.TITLES)
    for code, title in catalog.TITLES.items():
        assert re.fullmatch(r"TK[1-9]\d\d", code)
        assert title and title == title.strip(" .")


def test_each_block_holds_its_hundred():
    for digit, block in enumerate(
        (
            catalog.LANGUAGE,
            catalog.TYPES_AND_SHAPES,
            catalog.LAYOUT,
            catalog.CODEGEN,
            catalog.TOOLCHAIN,
            catalog.ARGUMENTS_AND_LAUNCH,
            catalog.SIMULATOR_AND_RUNTIME,
            catalog.NOTEBOOK,
            catalog.CONFIGURATION_AND_CACHE,
        ),
        start=1,
    ):
        assert {code[2] for code in block} <= {str(digit)}


def test_a_span_knows_its_callers_and_what_it_covers():
    outer = Span("K.__call__", 9, 4, 9, 20)
    middle = Span("K.helper", 3, 4, 3, 9, outer)
    inner = Span("K.deeper", 1, 4, 1, 9, middle)
    assert inner.callers() == (middle, outer)
    assert Span("f", 1, 4, 1, 9).through(Span("f", 3, 0, 3, 2)) == Span("f", 1, 4, 3, 2)
    with pytest.raises(ValueError, match="no span covers both f and g"):
        Span("f", 1, 4, 1, 9).through(Span("g", 3, 0, 3, 2))
