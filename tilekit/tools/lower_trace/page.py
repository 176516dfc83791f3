# SPDX-License-Identifier: Apache-2.0
"""The page of a run: the viewer, then the lines of the journal, in one file that needs nothing else.

While a run goes on the page only grows, by one chunk for each finished step, so that what a killed process leaves opens
too; at the end a compact page takes its place in one step. The browser makes everything of the journal.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import os
import zlib
from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template

from tilekit.tools.lower_trace import files

_STATIC = Path(__file__).parents[2] / "static"
_GROWN = '<script type="application/json" data-tk="j">[{}]</script>\n'
_COMPACT = '<script type="application/octet-stream" data-tk="z">{}</script>\n'
# nothing is fetched, and no script or style counts but the two that are written here
_POLICY = "default-src 'none'; script-src '{script}'; style-src '{style}'; base-uri 'none'; form-action 'none'"
_FRAME = "width:100%;height:560px;border:1px solid rgba(128,128,128,.4);border-radius:6px"
_PAGE = Template("""\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="$policy">
<meta name="viewport" content="width=device-width">
<title>$title</title>
<style>$style</style>
<noscript>This page draws itself with a script; <code>tilekit trace view</code> prints the same as text.</noscript>
<script type="module">$script</script>
""")


class GrowingPage:
    """The page of a run that goes on: everything that was added stands in the file when `add` returns.

    Parameters
    ----------
    file
        Where the page is; a file that is there is replaced.
    title
        What the browser calls it.
    """

    def __init__(self, file: Path, title: str) -> None:
        self._title = title
        self._file = file
        head, draft = _head(title), files.draft_of(file)
        # unbuffered, so that a process that is forked has nothing to write; closed by `compact` or `close`
        self._stream = open(draft, "wb", buffering=0)  # noqa: SIM115
        try:
            self._write(head)
            os.replace(draft, file)  # it is never there without its viewer
        except BaseException:
            draft.unlink(missing_ok=True)
            raise

    def add(self, lines: Sequence[str]) -> None:
        """Write lines of the journal, as one chunk."""
        if lines:
            self._write(_GROWN.format(_inert(",".join(lines))).encode())

    def compact(self, journal: str) -> None:
        """Put the compact page of the whole journal in place of the grown one."""
        self.close()
        draft = files.draft_of(self._file)
        try:
            draft.write_bytes(render([journal], self._title))
            os.replace(draft, self._file)
        finally:
            draft.unlink(missing_ok=True)

    def close(self) -> None:
        """Leave the page as it has grown."""
        self._stream.close()

    def _write(self, content: bytes) -> None:
        while content:
            content = content[self._stream.write(content) :]


def render(journals: Sequence[str], title: str) -> bytes:
    """The compact page of one journal, or of several beside each other; the same journals make the same bytes.

    Parameters
    ----------
    journals
        The text of each.
    title
        What the browser calls the page.
    """
    return (
        _head(title)
        + "".join(_COMPACT.format(base64.b64encode(deflated(journal)).decode()) for journal in journals).encode()
    )


def deflated(journal: str) -> bytes:
    """A journal as the viewer unpacks it."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return deflate.compress(journal.encode()) + deflate.flush()


def _head(title: str) -> bytes:
    script, style = _viewer("report.js"), _viewer("report.css")
    policy = _POLICY.format(script=_digest(script), style=_digest(style))
    return _PAGE.substitute(policy=policy, title=escape(title), style=style, script=script).encode()


@functools.cache
def _viewer(name: str) -> str:
    """A built file; no string in it ends the element that it stands in, as the bundler sees to."""
    file = _STATIC / name
    if not file.exists():
        raise ImportError(f"tilekit/static/{name} is missing: in a clone, run make widgets")
    return file.read_text("utf-8")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _inert(json: str) -> str:
    """JSON in which no text is a tag."""
    return json.replace("<", "\\u003c")


class Framed:
    """The viewer as the value of a cell: a page within the page, which needs no kernel and no widget.

    Parameters
    ----------
    journals
        The text of each journal.
    title
        What it is called.
    summary
        The same in a line, for those who see no more than that.
    """

    def __init__(self, journals: Sequence[str], title: str, summary: str) -> None:
        self._journals = tuple(journals)
        self._title = title
        self._summary = summary

    def __repr__(self) -> str:
        return self._summary

    def _repr_html_(self) -> str:
        page = escape(render(self._journals, self._title).decode())
        frame = (
            f'<iframe srcdoc="{page}" sandbox="allow-scripts" title="{escape(self._title)}" style="{_FRAME}"></iframe>'
        )
        return f"<div>{escape(self._summary)}</div>{frame}"
