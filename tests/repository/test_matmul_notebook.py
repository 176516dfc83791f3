# SPDX-License-Identifier: Apache-2.0
"""The second notebook: from a naive matmul to several blocks for one tile."""

import pathlib
import re
import subprocess
import sys

NOTEBOOKS = pathlib.Path(__file__).parents[2] / "notebooks"


def test_every_step_of_the_matmul_agrees_with_torch(tmp_path: pathlib.Path):
    command = [sys.executable, "execute.py", "02_matmul.ipynb", "--html", str(tmp_path / "matmul.html")]
    done = subprocess.run(command, cwd=NOTEBOOKS, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    agreements = re.findall(r"(\d) .* agrees with torch: (\w+)", done.stdout)
    assert [step for step, _ in agreements] == ["1", "2", "3", "3", "4", "5", "6", "6"]
    assert {agrees for _, agrees in agreements} == {"True"}
    assert "mma" in done.stdout.rpartition("bank_conflicts")[0]
