# SPDX-License-Identifier: Apache-2.0
"""The kernels of the project are right, and check mode says so, in whatever order threads and blocks run."""

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KERNELS = sorted(path.relative_to(ROOT) for path in (ROOT / "tests" / "kernels").rglob("test_*.py"))
SEEDS = range(10)


def run_checked(seeds: Iterable[int], *arguments: str) -> int:
    """Run tests with every CPU launch checked in the order of each seed, and return how many runs there were."""
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "tests.check.under_check", "--tb=short"]
    run = subprocess.run(
        [*command, *arguments],
        cwd=ROOT,
        env={**os.environ, "CHECK_SEEDS": ",".join(map(str, seeds))},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout[-6000:]
    found = re.search(r"^checked \d+ programs in \d+ launches by (\d+) runs$", run.stdout, re.MULTILINE)
    assert found is not None, run.stdout[-6000:]
    return int(found[1])


def test_some_kernels_are_found_right():
    files = ("test_softmax.py", "matmul/test_matmul_v5.py", "attention/test_flash_attention.py")
    choice = "large_values or (matmul_v5 and bfloat16) or split_bfloat16"
    assert run_checked([1], "-m", "not gpu", "-k", choice, *(f"tests/kernels/{file}" for file in files)) > 2


@pytest.mark.slow
@pytest.mark.parametrize("file", [*KERNELS, Path("tests/check/elsewhere.py")], ids=str)
def test_every_kernel_is_found_right(file):
    assert run_checked(SEEDS, "-m", "not gpu", str(file)) >= len(SEEDS)
