# SPDX-License-Identifier: Apache-2.0
"""What is left of an executed notebook in a file that nobody runs, on a page that takes everything but text away."""

from html import escape
from html.parser import HTMLParser

import nbformat
import pytest
from nbclient import NotebookClient
from nbconvert import HTMLExporter

from tests.notebook.cells import CALL, VECTOR_ADD

_GONE = {"script", "style", "svg", "title"}
_FORGOTTEN = {"style", "class", "id"}


class Sanitizer(HTMLParser):
    """Keeps elements and text; takes away scripts, styles, pictures, and the attributes that these use."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _GONE:
            self._inside.append(tag)
        elif not self._inside:
            kept = "".join(f' {name}="{escape(value or "")}"' for name, value in attrs if name not in _FORGOTTEN)
            self.parts.append(f"<{tag}{kept}>")

    def handle_endtag(self, tag: str) -> None:
        if tag in _GONE and tag in self._inside:
            self._inside.remove(tag)
        elif not self._inside:
            self.parts.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        if not self._inside:
            self.parts.append(escape(data, quote=False))


def sanitized(page: str) -> str:
    sanitizer = Sanitizer()
    sanitizer.feed(page)
    sanitizer.close()
    return "".join(sanitizer.parts)


def words(page: str) -> str:
    """The text alone."""
    reader = HTMLParser()
    found: list[str] = []
    reader.handle_data = found.append  # type: ignore[method-assign]
    reader.feed(page)
    reader.close()
    return "".join(found)


@pytest.fixture(scope="module")
def saved() -> nbformat.NotebookNode:
    """A notebook whose kernel is shown with its bar, its trace and its source."""
    cells = ["%load_ext tilekit", f"%%tilus\n{VECTOR_ADD}{CALL}", "print(add.last.source)", "add.trace"]
    page = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(page, timeout=120, extra_arguments=["--IPKernelApp.log_level=ERROR"]).execute()
    return nbformat.reads(nbformat.writes(page), as_version=4)


def without(page: nbformat.NotebookNode, *cells: int) -> nbformat.NotebookNode:
    return nbformat.v4.new_notebook(cells=[cell for index, cell in enumerate(page.cells) if index not in cells])


def test_a_page_without_kernel_styles_and_scripts_says_what_the_author_saw(saved):
    source = "".join(output["text"] for output in saved.cells[2].outputs).rstrip()
    page, _ = HTMLExporter().from_notebook_node(without(saved, 2, 3))
    left = sanitized(page)
    assert not any(f"<{tag}" in left for tag in _GONE) and "style=" not in left and "class=" not in left
    text = words(left)
    assert "VectorAdd sm_90a · CPU simulator · " in text
    assert source in text
    assert "<del>- " in left and "<ins>+ " in left


def test_a_trace_says_its_passes_on_such_a_page(saved):
    page, _ = HTMLExporter().from_notebook_node(without(saved, 0, 1, 2))
    left = sanitized(page)
    assert "passes changed the program" in words(left)
    assert "<b>layout_inference</b>" in left
    assert "<del>- " in left and "<ins>+ " in left


def test_panels_add_nothing_that_needs_a_kernel_to_the_outputs_that_are_read(saved):
    """The static copy and the panel are outputs of their own, so that a reader without a kernel meets the copy."""
    for cell in (saved.cells[1], saved.cells[3]):
        copy, panel = (output["data"] for output in cell.outputs)
        assert set(copy) == {"text/plain", "text/html"}
        assert set(panel) == {"text/plain", "application/vnd.jupyter.widget-view+json"}
