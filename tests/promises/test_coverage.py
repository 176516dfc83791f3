# SPDX-License-Identifier: Apache-2.0
"""Each sentence of the promises has a test, and each test a sentence."""

import ast
import importlib
import re
from pathlib import Path

import pytest

from tests.promises import coverage
from tests.promises.lower_trace import coverage as coverage_of_trace

HERE = Path(__file__).parent
# by the folder of the tests: of the compiler, and of the trace
PAGES = {HERE: coverage.COVERAGE, HERE / "lower_trace": coverage_of_trace.COVERAGE}
FILES = [file for folder in PAGES for file in sorted(folder.glob("test_*.py")) if file != Path(__file__)]
SENTENCES = [
    (folder, heading, number, kept)
    for folder, page in PAGES.items()
    for heading, all_of in page.items()
    for number, kept in all_of.items()
]


def module_of(file: Path) -> str:
    return ".".join(file.relative_to(HERE.parents[1]).with_suffix("").parts)


def marks_of(file: Path) -> dict[Path, list[pytest.Mark]]:
    """The tests of a file, with the marks of each and of its cases."""
    module = importlib.import_module(module_of(file))
    found: dict[Path, list[pytest.Mark]] = {}
    for name, value in vars(module).items():
        if name.startswith("test_"):
            marks = list(getattr(value, "pytestmark", []))
            cases = [case for mark in marks if mark.name == "parametrize" for case in mark.args[1]]
            found[file / name] = [*marks, *(m for case in cases for m in getattr(case, "marks", ()))]
    return found


TESTS = {test: marks for file in FILES for test, marks in marks_of(file).items()}


def place_of(test: str, folder: Path) -> Path:
    """The file and the name of a test that a page names."""
    file, _, name = test.partition("::")
    return (HERE.parent if "/" in file else folder) / file / name


def is_there(test: Path) -> bool:
    """Whether there is such a test, here or in another folder."""
    if test in TESTS:
        return True
    if test.is_relative_to(HERE) or not test.parent.exists():
        return False
    tree = ast.parse(test.parent.read_text())
    return any(isinstance(node, ast.FunctionDef) and node.name == test.name for node in tree.body)


def shown(part: object) -> str:
    return part.name if isinstance(part, Path) else str(part)[:40]


@pytest.mark.parametrize(("folder", "heading", "number", "kept"), SENTENCES, ids=shown)
def test_each_sentence_has_a_test_or_a_reason(folder, heading, number, kept):
    if isinstance(kept, str):
        assert kept
    else:
        assert kept and [test for test in kept if not is_there(place_of(test, folder))] == []


def test_each_test_holds_a_sentence():
    claimed = {place_of(test, folder) for folder, _, _, kept in SENTENCES if not isinstance(kept, str) for test in kept}
    assert TESTS.keys() - claimed == set()


def test_no_number_is_left_out():
    for page in PAGES.values():
        for heading, sentences in page.items():
            assert list(sentences) == list(range(1, len(sentences) + 1)), heading


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_file_is_named_by_a_heading(file):
    page = PAGES[file.parent]
    heading = (importlib.import_module(module_of(file)).__doc__ or "").removesuffix(".")
    assert heading in page
    claimed = [test for kept in page[heading].values() if not isinstance(kept, str) for test in kept]
    assert any(test.startswith(f"{file.name}::") for test in claimed)


def test_what_is_not_due_says_its_step():
    expected = [(test, mark) for test, marks in TESTS.items() for mark in marks if mark.name in ("xfail", "skip")]
    assert [test for test, mark in expected if mark.kwargs.get("strict") is not True] == []
    assert [test for test, mark in expected if not re.match(r"step [2-7]: \w", mark.kwargs["reason"])] == []
