# SPDX-License-Identifier: Apache-2.0
"""What every file of the repository owes its reader."""

import pathlib
from collections.abc import Iterator

import nbformat
import pytest

ROOT = pathlib.Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").rglob("*.ipynb"))
COMMENT = {".py": "#", ".h": "//", ".hpp": "//", ".cpp": "//", ".cu": "//", ".ts": "//", ".mjs": "//"}
NOT_OURS = {".git", ".venv", "build", "dist", "node_modules", "artifacts", "__pycache__", ".hypothesis", "shared"}


def files(folder: pathlib.Path = ROOT) -> Iterator[pathlib.Path]:
    for entry in sorted(folder.iterdir()):
        if entry.name in NOT_OURS:
            continue
        if entry.is_dir():
            yield from files(entry)
        else:
            yield entry


def test_every_source_file_names_its_license_in_its_first_line():
    sources = [file for file in files() if file.suffix in COMMENT]
    assert len(sources) > 10
    without = []
    for file in sources:
        first = file.read_text().splitlines()[:1]
        if first != [f"{COMMENT[file.suffix]} SPDX-License-Identifier: Apache-2.0"]:
            without.append(str(file.relative_to(ROOT)))
    assert without == []


def test_the_license_is_apache_2():
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License\n" in text and "Version 2.0, January 2004" in text and "END OF TERMS AND CONDITIONS" in text


def test_there_is_a_notebook_to_begin_with():
    assert "01_hello.ipynb" in [file.name for file in NOTEBOOKS]


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.name)
def test_a_notebook_is_kept_without_outputs(file: pathlib.Path):
    notebook = nbformat.read(file, as_version=4)
    nbformat.validate(notebook)
    assert "widgets" not in notebook.metadata
    assert notebook.metadata.kernelspec.name == "python3"
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert cell.outputs == [] and cell.execution_count is None, cell.source
