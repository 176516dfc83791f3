# SPDX-License-Identifier: Apache-2.0
"""The third notebook: three bugs, each found at its line, and mended."""

import pathlib
import re
import subprocess
import sys

import nbformat

NOTEBOOKS = pathlib.Path(__file__).parents[2] / "notebooks"
NAME = "03_find_the_bug.ipynb"


def lines(cell: int, text: str) -> int:
    """The line of the only place in a code cell, counted from 1, that has this text."""
    codes = [cell for cell in nbformat.read(NOTEBOOKS / NAME, as_version=4).cells if cell.cell_type == "code"]
    (line,) = [number for number, row in enumerate(codes[cell - 1].source.splitlines(), start=1) if text in row]
    return line


def test_each_bug_is_found_at_its_line_and_each_mended_kernel_is_clean_and_right(tmp_path: pathlib.Path):
    page = tmp_path / "bugs.html"
    command = [sys.executable, "execute.py", NAME, "--html", str(page)]
    done = subprocess.run(command, cwd=NOTEBOOKS, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    said = {int(part[0]): part[1] for part in re.findall(r"^In\[(\d+)\]\n(.*?)(?=^In\[|\Z)", done.stdout, re.M | re.S)}
    found = {cell: re.search(r"KernelError TK\d+ in (\w+).*line (\d+): (.*)", text) for cell, text in said.items()}
    bugs = {cell: match.groups() for cell, match in found.items() if match}
    assert [(name, re.split("[,:]", what)[0]) for name, _, what in bugs.values()] == [
        ("Transpose", "race"),
        ("RowSums", "read before the copy into it has arrived"),
        ("Dot", "deadlock"),
    ]
    at = ["store_shared(", "load_shared(", "lock_semaphore("]
    assert [int(line) for _, line, _ in bugs.values()] == [
        lines(cell, text) for cell, text in zip(bugs, at, strict=True)
    ]
    for cell in bugs:
        assert re.search(r"checked all \d+ blocks, seed 0: nothing wrong", said[cell + 1])
        assert "torch: True" in said[cell + 1] and "torch: False" not in done.stdout
    assert len(set(re.findall(r"checked all 5 blocks, (seed \d): nothing wrong", said[max(said)]))) == 4
    assert page.read_text().count("the two accesses: ") == 2
