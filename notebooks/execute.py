# SPDX-License-Identifier: Apache-2.0
"""Run a notebook in a kernel of its own, print what each cell says, and keep the whole as an HTML file.

    python notebooks/execute.py notebooks/01_hello.ipynb --html build/hello.html

The HTML file is complete in itself. Fails, after writing it, at the first cell that fails.
"""

import argparse
import pathlib
import re
import sys
import textwrap

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbconvert import HTMLExporter

COLOR = re.compile(r"\x1b\[[0-9;]*m")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("notebook", type=pathlib.Path)
    parser.add_argument("--html", type=pathlib.Path, required=True, help="where to write the page")
    parser.add_argument("--timeout", type=int, default=600, metavar="S", help="seconds that one cell may take")
    options = parser.parse_args()

    notebook = nbformat.read(options.notebook, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=options.timeout,
        store_widget_state=False,  # a page with widget state but no widgets shows blanks
        extra_arguments=["--IPKernelApp.log_level=ERROR"],  # loopback needs no warning about encryption
        resources={"metadata": {"path": str(options.notebook.parent)}},
        on_cell_executed=lambda cell, **_: print(said_by(cell), end="", flush=True),
    )
    try:
        client.execute()
        status = 0
    except CellExecutionError:
        status = 1

    options.html.parent.mkdir(parents=True, exist_ok=True)
    options.html.write_text(as_html(notebook), encoding="utf-8")
    print(f"\nThe whole notebook, with the passes of each kernel: {options.html.resolve()}")
    return status


def said_by(cell: nbformat.NotebookNode) -> str:
    """The text of a code cell's outputs, under the cell's number."""
    texts = [text for output in cell.get("outputs", []) if (text := plain_text(output).strip("\n"))]
    if not texts:
        return ""
    return f"In[{cell.execution_count}]\n" + textwrap.indent("\n".join(texts), "  ") + "\n"


def plain_text(output: nbformat.NotebookNode) -> str:
    match output.output_type:
        case "stream":
            return output.text
        case "error":
            return COLOR.sub("", "\n".join(output.traceback))
        case _ if "application/vnd.jupyter.widget-view+json" in output.data:
            return ""  # a live panel: the lines above it say the same
        case _:
            return output.data.get("text/plain", "")


def as_html(notebook: nbformat.NotebookNode) -> str:
    exporter = HTMLExporter(exclude_input_prompt=False)
    # these scripts would come from the network; the notebooks need none of them
    exporter.require_js_url = exporter.mathjax_url = exporter.jquery_url = exporter.mermaid_js_url = ""
    page, _ = exporter.from_notebook_node(notebook)
    return page


if __name__ == "__main__":
    sys.exit(main())
