# SPDX-License-Identifier: Apache-2.0
"""Each sentence of the promises has a test, and each test a sentence."""

import importlib
import re
from pathlib import Path

import pytest

from tests.promises.coverage import COVERAGE

FILES = [file for file in sorted(Path(__file__).parent.glob("test_*.py")) if file != Path(__file__)]
SENTENCES = [(heading, number, kept) for heading, all_of in COVERAGE.items() for number, kept in all_of.items()]


def marks_of(file: Path) -> dict[str, list[pytest.Mark]]:
    """The tests of a file, with the marks of each and of its cases."""
    module = importlib.import_module(f"tests.promises.{file.stem}")
    found: dict[str, list[pytest.Mark]] = {}
    for name, value in vars(module).items():
        if name.startswith("test_"):
            marks = list(getattr(value, "pytestmark", []))
            cases = [case for mark in marks if mark.name == "parametrize" for case in mark.args[1]]
            found[f"{file.name}::{name}"] = [*marks, *(m for case in cases for m in getattr(case, "marks", ()))]
    return found


TESTS = {name: marks for file in FILES for name, marks in marks_of(file).items()}


@pytest.mark.parametrize(("heading", "number", "kept"), SENTENCES, ids=lambda part: str(part)[:40])
def test_each_sentence_has_a_test_or_a_reason(heading, number, kept):
    if isinstance(kept, str):
        assert kept
    else:
        assert kept and [test for test in kept if test not in TESTS] == []


def test_each_test_holds_a_sentence():
    claimed = {test for _, _, kept in SENTENCES if not isinstance(kept, str) for test in kept}
    assert TESTS.keys() - claimed == set()


def test_no_number_is_left_out():
    for heading, sentences in COVERAGE.items():
        assert list(sentences) == list(range(1, len(sentences) + 1)), heading


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_file_is_named_by_a_heading(file):
    heading = (importlib.import_module(f"tests.promises.{file.stem}").__doc__ or "").removesuffix(".")
    assert heading in COVERAGE
    claimed = [test for kept in COVERAGE[heading].values() if not isinstance(kept, str) for test in kept]
    assert any(test.startswith(f"{file.name}::") for test in claimed)


def test_what_is_not_due_says_its_step():
    expected = [(test, mark) for test, marks in TESTS.items() for mark in marks if mark.name in ("xfail", "skip")]
    assert [test for test, mark in expected if mark.kwargs.get("strict") is not True] == []
    assert [test for test, mark in expected if not re.match(r"step [2-7]: \w", mark.kwargs["reason"])] == []
