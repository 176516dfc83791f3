# SPDX-License-Identifier: Apache-2.0
"""Kernels with a mistake are diagnosed with its kind at its line, and the kernels that they are edits of are clean."""

import importlib
import re
from pathlib import Path

import pytest

from tests.check.case import Broken, kind_of, line_of
from tests.check.originals import ORIGINALS
from tilekit import config
from tilekit.diag import TilekitError

FOLDER = Path(__file__).parent
CASES: dict[str, tuple[Broken, ...]] = {
    path.stem: importlib.import_module(f"tests.check.broken.{path.stem}").CASES
    for path in sorted((FOLDER / "broken").glob("*.py"))
}
# kind of mistake -> kind of the error that reports it
LISTED = dict(re.findall(r"^\| `(\w+)` \|.*\| (\w+) \| [a-z, ]+ \|$", (FOLDER / "KINDS.md").read_text(), re.MULTILINE))
ELSEWHERE = {
    f"{case.name}, right": case.original
    for cases in CASES.values()
    for case in cases
    if case.original not in ORIGINALS.values()
}


def marks(name: str, case: Broken) -> list[pytest.MarkDecorator]:
    """One mistake of each kind is tried every time, the others are slow."""
    return [] if case is CASES[name.partition("-")[0]][0] else [pytest.mark.slow]


NAMED = {f"{kind}-{case.name}": case for kind, cases in CASES.items() for case in cases}
each_case = pytest.mark.parametrize("case", NAMED.values(), ids=NAMED)


@pytest.mark.parametrize("case", [pytest.param(case, id=name, marks=marks(name, case)) for name, case in NAMED.items()])
def test_a_mistake_is_named_at_its_line(case, monkeypatch):
    if case.kind == "timeout":
        monkeypatch.setitem(config._session, "cpu.timeout", 3.0)
    handle, args = case.handle(), case.call()
    if case.source:
        case.patch(handle, args)
    with pytest.raises(TilekitError) as caught:
        handle.check(*args, blocks="all", seed=0)
    error = caught.value
    assert kind_of(error) == case.kind, error.to_text()
    assert line_of(error) in case.lines, error.to_text()


@pytest.mark.parametrize("name", [*ORIGINALS, *ELSEWHERE])
def test_without_the_mistake_nothing_is_found(name):
    original = {**ORIGINALS, **ELSEWHERE}[name]
    original.handle().check(*original.arguments(), blocks="all", seed=0)


def test_every_kind_of_the_list_is_broken_in_at_least_three_ways():
    assert LISTED.keys() == CASES.keys()
    for kind, cases in CASES.items():
        assert len({case.name for case in cases}) >= 3, kind
        assert {case.kind for case in cases} == {LISTED[kind]}, kind


@each_case
def test_a_case_is_an_edit_of_a_kernel_that_is_right(case):
    plain = re.sub(r"  # <- (or )?here$", "", case.text, flags=re.MULTILINE)
    assert (plain != case.original.text) == bool(case.script)
    assert case.script or case.source or case.arguments
    assert case.lines
    compile(case.text, case.name, "exec")
