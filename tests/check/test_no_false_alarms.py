# SPDX-License-Identifier: Apache-2.0
"""The kernels of tests/kernels are right, and check mode says so, in whatever order threads and blocks run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
KERNELS = sorted(path.relative_to(ROOT) for path in (ROOT / "tests" / "kernels").rglob("test_*.py"))
SEEDS = range(10)


def run_checked(file: Path, seed: int, *choice: str) -> str:
    """Run the tests of one file with every CPU launch checked, and return what pytest said."""
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "tests.check.under_check", "--tb=short"]
    run = subprocess.run(
        [*command, str(file), *choice],
        cwd=ROOT,
        env={**os.environ, "CHECK_SEED": str(seed)},
        capture_output=True,
        text=True,
    )
    nothing_to_run = 5
    assert run.returncode in (0, nothing_to_run), run.stdout[-6000:]
    return run.stdout


@pytest.mark.parametrize(
    ("file", "choice"),
    [
        ("test_softmax.py", "large_values"),
        ("matmul/test_matmul_v4.py", "bfloat16"),
        ("matmul/test_matmul_v5.py", "bfloat16"),
        ("attention/test_flash_attention.py", "split_bfloat16"),
    ],
)
def test_some_kernels_are_found_right(file, choice):
    said = run_checked(Path("tests/kernels", file), 1, "-m", "not gpu and not slow", "-k", choice)
    assert " passed" in said


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("file", KERNELS, ids=str)
def test_every_kernel_is_found_right(file, seed):
    run_checked(file, seed, "-m", "not gpu and not slow")
