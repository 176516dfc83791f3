# SPDX-License-Identifier: Apache-2.0
"""The pages of `docs/` keep their word."""

import pathlib
import re
import subprocess
import sys

import pytest

from tilekit.toolchain import host

ROOT = pathlib.Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))


@pytest.mark.skipif(host.find_compiler() is None, reason="no C++ compiler here")
@pytest.mark.parametrize("check", ["instruction_and_emitter", "tile_pass"])
def test_the_code_on_the_pages_runs(check):
    command = f"from tests.repository import pages; pages.{check}()"
    done = subprocess.run([sys.executable, "-c", command], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_that_a_page_names_is_there(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    named = re.findall(r"`((?:tilekit|tests|notebooks)/[\w./]+)`|\]\(([\w./-]+)\)", text)
    gone = [path or link for path, link in named if not ((ROOT / path) if path else (page.parent / link)).exists()]
    invented = {"tilekit/transforms/fold_casts.py", "tests/transforms/fold_casts.tile"}
    assert set(gone) <= invented
