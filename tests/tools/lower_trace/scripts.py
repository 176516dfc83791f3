# SPDX-License-Identifier: Apache-2.0
"""Scripts that are traced, in this process and in others."""

import os
import pathlib
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).parents[3]

SCRIPT = """\
import sys
import tilekit
from tilekit import float32, int32


def scaling(factor, name="Scale"):
    class Scale(tilekit.Script):
        def __call__(self, n: int32, x: ~float32, y: ~float32):
            self.attrs.blocks = [1]
            self.attrs.warps = 1
            gx = self.global_view(x, dtype=float32, shape=[n])
            gy = self.global_view(y, dtype=float32, shape=[n])
            self.store_global(gy, self.load_global(gx, offsets=[0], shape=[32]) * factor, offsets=[0])

    Scale.__name__ = Scale.__qualname__ = name
    return Scale()


def compile(handle):
    vector = tilekit.spec(float32, (1000,))
    handle.compile(1000, vector, vector, target="sm_80", device="cpu")
    return handle.kernels[-1]


"""


def environment(**variables: str) -> dict[str, str]:
    """That of a process which is told nothing of the trace but these."""
    kept = {name: value for name, value in os.environ.items() if "LOWER_TRACE" not in name and name != "COLUMNS"}
    return {**kept, "PYTHONPATH": str(ROOT), **variables}


def run(folder: pathlib.Path, body: str, *, name: str = "my_script", **variables: str) -> subprocess.CompletedProcess:
    """Run a script in a folder, with these variables; it must go well."""
    file = folder / f"{name}.py"
    file.write_text(SCRIPT + textwrap.dedent(body))
    return run_file(file, **variables)


def run_file(file: pathlib.Path, **variables: str) -> subprocess.CompletedProcess:
    """Run a script in its folder, with these variables; it must go well."""
    command = [sys.executable, str(file)]
    done = subprocess.run(command, cwd=file.parent, env=environment(**variables), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done
