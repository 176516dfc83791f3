# SPDX-License-Identifier: Apache-2.0
"""The fourth notebook: a pass of one's own, which is wrong, found, mended and kept as a test."""

import pathlib
import re
import subprocess
import sys
import textwrap

from tests import filecheck

NOTEBOOKS = pathlib.Path(__file__).parents[2] / "notebooks"


def test_the_pass_changes_a_cached_kernel_is_found_wrong_and_mended(tmp_path: pathlib.Path):
    command = [sys.executable, "execute.py", "04_own_pass.ipynb", "--html", str(tmp_path / "page.html")]
    done = subprocess.run(command, cwd=NOTEBOOKS, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.findall(r"^In\[(\d+)\]\n(.*?)(?=^In\[|^\nThe whole notebook|\Z)", done.stdout, re.MULTILINE | re.DOTALL)
    said = {int(number): textwrap.dedent(text) for number, text in found}
    custom = "custom passes: load_once after copy_elimination"
    assert custom not in said[2]
    assert said[2].endswith("True\n")
    assert custom in said[4]
    assert said[4].endswith("True\n")
    assert "right: False" in said[5]
    assert said[6].startswith("load_once is the first step that makes Update wrong")
    assert said[7].strip().endswith("it replaces the one of this name")
    assert said[8].count("right: True") == 2 and "False" not in said[8]
    (case,) = filecheck.cases_of("load_once", said[9])
    assert case.passes == ("load_once",)
    assert any(kind.endswith("LINE") and line == "t: f32[32] = mul(left, left)" for kind, line in case.checks)
    assert said[10] == "no longer: load_once after copy_elimination\n"
