# SPDX-License-Identifier: Apache-2.0
"""The simulator and its check mode are the same whichever C++ compiler $CXX names."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tilekit.toolchain import host

HERE = Path(__file__).parent


@pytest.mark.slow
@pytest.mark.parametrize("name", ["g++", "clang++"])
@pytest.mark.parametrize("file", ["test_check.py", "test_reports.py", "test_kernels.py"])
def test_another_compiler_makes_the_same_simulator(name, file):
    path, usual = shutil.which(name), host.find_compiler()
    if path is None or (usual is not None and usual.command == (path,)):
        pytest.skip(f"no {name} here beside the usual compiler")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--no-header", "--tb=short", str(HERE / file)],
        cwd=HERE.parents[1],
        env={**os.environ, "CXX": path},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout[-6000:]
