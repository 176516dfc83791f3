# SPDX-License-Identifier: Apache-2.0
"""The verifier finds nothing in the kernels of the project: what it refuses is wrong for certain."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.check.originals import ORIGINALS
from tilekit.ir.tools import verify


@pytest.mark.parametrize("name", ORIGINALS)
def test_a_kernel_that_is_right_is_accepted(name):
    original = ORIGINALS[name]
    programs = original.handle()._jit_instance_for(*original.arguments()).transpiled_programs
    for prog in programs:
        verify(prog)
    assert programs


@pytest.mark.slow
def test_every_schedule_of_every_kernel_is_accepted():
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "tests.check.only_verified", "--tb=short"]
    folders = ["tests/kernels", "-m", "not gpu and not slow"]
    root = Path(__file__).parent.parent.parent
    run = subprocess.run([*command, *folders], cwd=root, capture_output=True, text=True)
    assert run.returncode == 0 and "failed" not in run.stdout, run.stdout[-6000:]
    assert int(run.stdout.split("verified ")[1].split()[0]) > 500
