# SPDX-License-Identifier: Apache-2.0
"""Kernels as HTML that reads without styles."""

import html
import random
import re
from html.parser import HTMLParser

import pytest

from tests.notebook.cells import CALL, VECTOR_ADD, Notebook
from tilekit.events import Stage
from tilekit.jit import tables
from tilekit.notebook import static
from tilekit.notebook.static import Row, changed_rows
from tilekit.runtime.launch import COUNTERS, LaunchStats
from tilekit.textdiff import Kind
from tilekit.transforms.recorder import Recorder


class Reader(HTMLParser):
    """Checks that elements are closed in order, and gathers what a host that strips everything would leave."""

    def __init__(self, text: str):
        super().__init__()
        self.open: list[str] = []
        self.attributes: set[str] = set()
        self.elements: set[str] = set()
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.elements.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def numbers(rng: random.Random, count: int) -> list[str]:
    return [str(rng.randrange(12)) for _ in range(count)]


@pytest.fixture
def rng() -> random.Random:
    return random.Random()


def test_a_kernel_is_static_html(notebook: Notebook):
    ran = notebook.ran(f"%%tilus\n{VECTOR_ADD}{CALL}")
    reader = Reader(ran.html)
    assert reader.elements <= {
        "style", "div", "details", "summary", "b", "span", "table", "thead", "tbody", "tr", "th", "td", "pre", "del",
        "ins",
    }  # fmt: skip
    assert reader.attributes <= {"style", "class"}
    assert "url(" not in ran.html


def test_a_kernel_opens_to_what_its_last_run_counted(notebook: Notebook):
    ran = notebook.ran(f"%%tilus\n{VECTOR_ADD}{CALL}add.last")
    counted = ran.value.last_run.counted
    assert counted.startswith("4 blocks, 256 threads")
    assert f"<b>last run</b> {tables.muted(counted)}" in ran.html
    counters = {**dict.fromkeys(COUNTERS, 0), "blocks": 1200, "shared_bytes": 64}
    assert LaunchStats(counters=counters).counted == (
        "1,200 blocks, 64 bytes of shared memory accessed, 0 bank conflicts"
    )
    assert LaunchStats().counted == ""


def test_without_styles_it_says_all_that_changed_and_the_whole_source(notebook: Notebook):
    ran = notebook.ran(f"%%tilus\n{VECTOR_ADD}{CALL}add")
    kernel = ran.value.last
    bare = re.sub(r"<(/?\w+)[^>]*>", r"<\1>", ran.html).replace("<b>", "").replace("</b>", "")
    assert kernel.source.rstrip() in html.unescape(re.sub(r"<[^>]*>", "", bare))
    for step in kernel.trace.changed:
        before, after = step.before_text.splitlines(), step.after_text.splitlines()
        for row in changed_rows(before, after):
            if row.kind is not Kind.SAME and row.before is not None:
                assert f"<del>- {html.escape(row.before)}</del>" in bare
            if row.kind is not Kind.SAME and row.after is not None:
                assert f"<ins>+ {html.escape(row.after)}</ins>" in bare


def test_while_the_cell_runs_there_is_nothing_to_open(notebook: Notebook):
    handle = notebook.ran(f"%%tilus\n{VECTOR_ADD}{CALL}add").value
    assert "<details" not in static.kernel_line(handle.last)


def test_rows_hold_every_changed_line_and_lose_none(rng):
    for _ in range(200):
        before, after = numbers(rng, rng.randrange(40)), numbers(rng, rng.randrange(40))
        rows = changed_rows(before, after)
        assert sum((row.before is not None) + row.folded for row in rows) == len(before)
        assert sum((row.after is not None) + row.folded for row in rows) == len(after)
        assert all(row.before == row.after for row in rows if row.kind is Kind.SAME)
        assert any(row.kind is not Kind.SAME for row in rows) == (before != after)


def test_unchanged_lines_far_from_a_change_are_folded():
    before = [f"line {i}" for i in range(30)]
    after = [*before[:15], "line fifteen", *before[16:]]
    rows = changed_rows(before, after)
    assert rows[0] == Row(None, None, folded=12)
    assert rows[1:4] == [Row(line, line) for line in before[12:15]]
    assert (rows[4].before, rows[4].after) == ("line 15", "line fifteen")
    assert rows[-1] == Row(None, None, folded=11)
    assert len(rows) == 9


def test_a_fold_is_never_as_short_as_what_it_hides():
    before = [str(i) for i in range(9)]
    after = ["x", *before[1:8], "y"]
    assert all(row.folded == 0 for row in changed_rows(before, after))


def test_what_differs_in_a_line_is_marked():
    recorder = Recorder()
    recorder.end(Stage.TILE, "declare_to_let", "i: i32 = a < b", "i: Let[i32] = a < b", 0.001)
    page = re.sub(r' style="[^"]*"', "", static.passes(recorder))
    assert "<del>- i: i32 = a &lt; b</del>" in page
    assert "<ins>+ i: <b>Let[</b>i32<b>]</b> = a &lt; b</ins>" in page


def test_no_more_rows_than_a_page_can_bear():
    recorder = Recorder()
    for number in range(3):
        recorder.end(Stage.TILE, f"pass_{number}", "\n".join(f"{number} {i}" for i in range(300)),
                     "\n".join(f"{number + 1} {i}" for i in range(300)), 0.001)  # fmt: skip
    page = static.passes(recorder)
    assert page.count("<ins") == static.MAX_ROWS
    assert "and 200 rows more" in page
    assert "and 300 rows more" in page


def test_a_pass_that_failed_says_why():
    recorder = Recorder()
    recorder.fail(Stage.TILE, "layout_inference", ValueError("a < b"))
    assert "layout_inference · failed: ValueError: a &lt; b" in static.passes(recorder)


def test_handles_kernels_and_traces_have_displays_of_their_own(notebook: Notebook):
    notebook.ran(f"%%tilus\n{VECTOR_ADD}{CALL}")
    format_ = notebook.shell.display_formatter.format
    handle = notebook.shell.user_ns["add"]
    for thing in (handle, handle.last, handle.trace):
        data, _ = format_(thing)
        assert "<b>layout_inference</b>" in data["text/html"]
        Reader(data["text/html"])
    assert "source.cu" in format_(handle.last)[0]["text/html"]
    lines = format_(handle.trace)[0]["text/plain"].splitlines()
    assert [line.split()[2].partition("#")[0] for line in lines if line.startswith("Tile IR")] == [
        step.name for step in handle.trace.steps if step.stage in (Stage.VERIFY, Stage.TILE)
    ]
