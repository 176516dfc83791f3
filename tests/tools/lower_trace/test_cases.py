# SPDX-License-Identifier: Apache-2.0
"""Each case that the trace has to satisfy is held by a test, which is named by its number."""

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parents[2]
CASES = range(1, 102)

# each number in the name of a test stands for the case of that number, and `13_to_46` for all from the one to the other
_NAME = re.compile(r"test_case_((?:\d+_|to_)+)")


def numbers_of(name: str) -> set[int]:
    found = _NAME.match(name)
    if found is None:
        return set()
    numbers: set[int] = set()
    for first, last in re.findall(r"(\d+)_(?:to_(\d+)_)?", found[1]):
        numbers.update(range(int(first), int(last or first) + 1))
    return numbers


def functions_of(file: Path) -> list[str]:
    tree = ast.parse(file.read_text())
    return [node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def held() -> set[int]:
    names = [name for file in TESTS.rglob("test_*.py") for name in functions_of(file)]
    return {number for name in names for number in numbers_of(name)}


def test_a_name_says_its_numbers():
    assert numbers_of("test_case_04_a_pass_that_hands_on") == {4}
    assert numbers_of("test_case_35_37_marks_of_other_systems") == {35, 37}
    assert numbers_of("test_case_13_to_16_51_rows") == {13, 14, 15, 16, 51}
    assert numbers_of("test_case_10_of_40_cuts") == {10}
    assert numbers_of("test_the_case_04") == set()


def test_every_case_has_a_test_and_every_test_a_case():
    assert sorted(set(CASES) ^ held()) == []
