# SPDX-License-Identifier: Apache-2.0
"""Programs in printed form that say, in comments, which passes to run on them and what must come out.

# RUN: declare_to_let, let_propagation      (or `default`: the whole pipeline)
# CHECK: text          in the output, below the last text that was found
# CHECK-NOT: text      nowhere in the output
"""

import re
from pathlib import Path

import pytest

from tilekit import transforms
from tilekit.ir.text import parser
from tilekit.ir.tools import verify

TILES = sorted(Path(__file__).parent.glob("*.tile"))


def passes_of(text: str) -> list[transforms.Pass]:
    (names,) = re.findall(r"^ *# RUN: (.*)$", text, re.MULTILINE)
    if names == "default":
        return transforms.get_default_passes()
    return [getattr(transforms, f"{name}_pass")() for name in names.split(", ")]


@pytest.mark.parametrize("path", TILES, ids=lambda path: path.stem)
def test_tile_file_keeps_what_its_comments_say(path):
    text = path.read_text()
    prog = parser.parse_program(text)
    verify(prog)
    passes = passes_of(text)
    after = transforms.run_passes(prog, passes, check=True)
    printed = re.sub(" +", " ", str(after))
    position = 0
    for wanted in re.findall(r"^ *# CHECK: (.*)$", text, re.MULTILINE):
        found = printed.find(wanted, position)
        assert found >= 0, f"not found, or not below what came before it: {wanted}\n\n{after}"
        position = found + len(wanted)
    for unwanted in re.findall(r"^ *# CHECK-NOT: (.*)$", text, re.MULTILINE):
        assert unwanted not in printed, f"found: {unwanted}\n\n{after}"


def test_every_pass_has_a_tile_file():
    assert {each.name for each in transforms.get_default_passes()} <= {path.stem for path in TILES}
