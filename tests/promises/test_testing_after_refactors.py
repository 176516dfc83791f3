# SPDX-License-Identifier: Apache-2.0
"""Testing After Refactors."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SMOKE = "tests/kernels/matmul/test_matmul_v2.py"


def recipe(name: str) -> str:
    found = re.search(rf"^{name}:.*\n((?:\t.*\n)*)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    return found.group(1) if found else ""


def test_the_smoke_test_has_its_place():
    assert (ROOT / SMOKE).is_file()


def test_the_smoke_test_runs_before_everything_else():
    assert SMOKE in recipe("smoke")
    assert recipe("test").index("smoke") < recipe("test").index("$(PYTEST)")
