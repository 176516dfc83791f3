# SPDX-License-Identifier: Apache-2.0
"""Which tests run where: by default, on request, and where something is missing."""

import pathlib
from collections import defaultdict

import pytest

pytest_plugins = ["pytester"]

ROOT = pathlib.Path(__file__).parents[2]

TESTS = """
import pytest

def test_plain(): pass
@pytest.mark.gpu
def test_gpu(): pass
@pytest.mark.browser
def test_browser(): pass
@pytest.mark.nvcc
def test_nvcc(): pass
@pytest.mark.slow
@pytest.mark.parametrize("n", range(40))
def test_slow(n): pass
"""


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    """Run the tests above, with our conftest, on a machine that has nothing; return {outcome: [test or reason]}."""
    pytester.makepyfile(TESTS)
    for name in ("CI", "CHROMIUM", "TILEKIT_REQUIRE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "/nowhere")

    def run(*arguments: str, **environment: str) -> dict[str, list[str]]:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        own = ["-p", "tests.conftest", "-p", "no:cacheprovider", "-c", str(ROOT / "pyproject.toml"), "--rootdir=."]
        result = pytester.inline_run(*own, *arguments, pytester.path)
        outcomes: dict[str, list[str]] = defaultdict(list)
        for report in result.getreports("pytest_runtest_logreport"):
            assert isinstance(report, pytest.TestReport)
            if report.skipped:
                assert isinstance(report.longrepr, tuple)
                outcomes["skipped"].append(report.longrepr[2])
            elif report.failed:
                outcomes["failed"].append(report.location[2])
            elif report.when == "call":
                outcomes["passed"].append(report.location[2])
        return outcomes

    return run


def test_neither_gpu_nor_slow_tests_run_unasked_and_what_is_missing_is_skipped_with_its_reason(run):
    outcomes = run()
    assert outcomes["passed"] == ["test_plain"]
    assert outcomes["failed"] == []
    assert outcomes["skipped"] == [
        "Skipped: no nvcc on the PATH",
        "Skipped: no Chromium here (Debian: chromium, or set CHROMIUM=)",
    ]


def test_a_missing_browser_fails_in_ci(run):
    assert run(CI="true")["failed"] == ["test_browser"]


def test_a_required_tier_does_not_skip(run):
    assert run(TILEKIT_REQUIRE="nvcc")["failed"] == ["test_nvcc"]


def test_a_tenth_of_the_slow_tests_is_chosen_by_seed(run):
    def chosen(seed: int) -> list[str]:
        return run("-m", "slow", "--slow-sample=0.1", f"--slow-seed={seed}")["passed"]

    assert len(chosen(1)) == 4
    assert chosen(1) == chosen(1) != chosen(2)
