# SPDX-License-Identifier: Apache-2.0
"""The page of a run as a file: what it lets a browser do, how it grows, and how it stands in a cell."""

import base64
import hashlib
import html
import json
import re
import zlib
from pathlib import Path

import pytest

from tilekit.tools.lower_trace import page, session
from tilekit.tools.lower_trace.page import Framed, GrowingPage
from tilekit.tools.lower_trace.settings import Settings

LINES = ['{"k":"text","id":"a","data":"</script><b>"}', '{"k":"end"}']
JOURNAL = "".join(f"{line}\n" for line in LINES)


@pytest.fixture
def viewer(monkeypatch):
    """Stands for what the bundler makes, which need not have run."""
    monkeypatch.setattr(page, "_viewer", {"report.js": "draw();", "report.css": "b{}"}.__getitem__)


def packed(content: str) -> list[str]:
    found = re.findall(r'<script type="application/octet-stream" data-tk="z">(.*)</script>', content)
    return [zlib.decompress(base64.b64decode(each), -zlib.MAX_WBITS).decode() for each in found]


def test_a_browser_may_run_the_viewer_and_nothing_else(viewer):
    content = page.render([JOURNAL], "a <b>&\"'").decode()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="(.*)"', content)
    assert policy is not None
    digests = [base64.b64encode(hashlib.sha256(text).digest()).decode() for text in (b"draw();", b"b{}")]
    assert re.findall(r"'sha256-(.*?)'", policy[1]) == digests
    assert "default-src 'none'" in policy[1] and "unsafe" not in policy[1]
    assert "<title>a &lt;b&gt;&amp;&quot;&#x27;</title>" in content


def test_a_page_grows_by_chunks_that_no_text_ends_and_becomes_compact(viewer, tmp_path):
    file = tmp_path / "report.html"
    growing = GrowingPage(file, "work")
    head = file.read_text()
    growing.add([])
    assert file.read_text() == head
    growing.add(LINES[:1])
    growing.add(LINES[1:])
    grown = file.read_text()
    assert grown.startswith(head)
    chunks = re.findall(r'<script type="application/json" data-tk="j">(.*?)</script>\n', grown.removeprefix(head))
    assert [entry for chunk in chunks for entry in json.loads(chunk)] == [json.loads(line) for line in LINES]
    growing.compact(JOURNAL)
    assert file.read_bytes() == page.render([JOURNAL], "work")
    assert packed(file.read_text()) == [JOURNAL]
    assert list(tmp_path.iterdir()) == [file]


def test_what_cannot_be_made_compact_stays_as_it_has_grown(viewer, tmp_path, monkeypatch):
    growing = GrowingPage(tmp_path / "report.html", "work")
    growing.add(LINES)
    grown = (tmp_path / "report.html").read_bytes()

    def refuse(*_: object):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", refuse)
    with pytest.raises(OSError, match="No space left"):
        growing.compact(JOURNAL)
    assert (tmp_path / "report.html").read_bytes() == grown
    assert list(tmp_path.iterdir()) == [tmp_path / "report.html"]


def test_several_journals_stand_in_one_page(viewer):
    assert packed(page.render([JOURNAL, "{}\n"], "both").decode()) == [JOURNAL, "{}\n"]


def test_a_viewer_that_was_not_built_says_how_it_is(monkeypatch, tmp_path):
    monkeypatch.setattr(page, "_STATIC", tmp_path)
    page._viewer.cache_clear()
    with pytest.raises(ImportError, match=r"tilekit/static/report\.js is missing: in a clone, run make widgets"):
        page.render([JOURNAL], "work")


def test_case_87_a_trace_is_a_page_within_a_cell(viewer):
    shown = Framed([JOURNAL], "a 'title'", "2 kernels traced <here>")
    assert repr(shown) == "2 kernels traced <here>"
    content = shown._repr_html_()
    assert content.startswith("<div>2 kernels traced &lt;here&gt;</div>")
    source = re.search(r'<iframe srcdoc="([^"]*)" sandbox="allow-scripts" ', content)
    assert source is not None
    assert html.unescape(source[1]) == page.render([JOURNAL], "a 'title'").decode()


def test_a_trace_that_heard_nothing_shows_nothing(viewer, tmp_path):
    assert repr(session.Session(Settings(session.TraceMode.HTML, tmp_path)).show()) == "nothing was traced"
