# SPDX-License-Identifier: Apache-2.0
"""The simulator and its check mode are the same whichever C++ compiler $CXX names."""

import os
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tilekit.toolchain import host

HERE = Path(__file__).parent


@pytest.mark.slow
@pytest.mark.parametrize("name", ["g++", "clang++", "ziglang"])
@pytest.mark.parametrize("file", ["test_check.py", "test_reports.py", "test_kernels.py"])
def test_another_compiler_makes_the_same_simulator(name, file):
    usual = host.find_compiler()
    is_here = find_spec(name) if name == "ziglang" else shutil.which(name)
    command = f"{sys.executable} -m ziglang c++" if name == "ziglang" else str(is_here)
    if not is_here or (usual is not None and shlex.join(usual.command) == command):
        pytest.skip(f"no {name} here beside the usual compiler")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--no-header", "--tb=short", str(HERE / file)],
        cwd=HERE.parents[1],
        env={**os.environ, "CXX": command},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout[-6000:]
