# SPDX-License-Identifier: Apache-2.0
"""Runs the code on the pages that say how to add things, best in a process of its own: what it registers stays."""

import re
import sys
import tempfile
from pathlib import Path
from types import ModuleType

import numpy as np

from tests import filecheck
from tilekit import drivers, target, transforms
from tilekit.config import Config
from tilekit.ir import evaluator
from tilekit.ir.prog import Program
from tilekit.ir.text import parser
from tilekit.ir.tools import verify
from tilekit.runtime.tensors import DeviceKind

DOCS = Path(__file__).parents[2] / "docs"

FLIP = """
@kernel(grid=[i32(1), i32(1), i32(1)], warps=2)
def flip(p: ~f32, q: ~f32):
    g: Global[f32[i32(6), i32(80)]] = global_view(ptr=p)
    h: Global[f32[i32(6), i32(80)]] = global_view(ptr=q)
    x: f32[6, 80] = load_global(g, offsets=[i32(0), i32(0)], dims=[0, 1])
    y: f32[6, 80] = flip(x, dim=1)
    z: f32[6, 80] = flip(y, dim=0)
    store_global(h, z, offsets=[i32(0), i32(0)], dims=[0, 1])
"""


def blocks(page: str, language: str = "") -> list[str]:
    """The code blocks of a page in one language."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", (DOCS / page).read_text(), re.MULTILINE | re.DOTALL)
    return [text for written_in, text in fenced if written_in == language]


def run(*pages: str) -> ModuleType:
    """A module with the Python of these pages in it, one block after the other."""
    module = sys.modules["page"] = ModuleType("page")
    for page in pages:
        for block in blocks(page, "python"):
            exec(compile(block, page, "exec"), vars(module))
    return module


def instruction_and_emitter() -> None:
    """The instruction is read and printed, and means the same in the evaluator and in the simulator."""
    run("adding-an-instruction.md", "adding-an-emitter.md")
    prog = parser.parse_program(FLIP)
    verify(prog)
    assert str(parser.parse_program(str(prog))) == str(prog)
    for launch in (_evaluate, _simulate):
        x, y = np.random.default_rng().random((6, 80), np.float32), np.zeros((6, 80), np.float32)
        launch(prog, [x, y])
        assert np.array_equal(y, x[::-1, ::-1]), launch.__name__


def _evaluate(prog: Program, args: list[np.ndarray]) -> None:
    evaluator.run(prog, args)


def _simulate(prog: Program, args: list[np.ndarray]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        config = Config(cache_dir=Path(folder))
        drivers.build_program(prog, target.DEFAULT, DeviceKind.CPU, config).load(DeviceKind.CPU, config).launch(args)


def tile_pass() -> None:
    """The pass does what the page's own file says, alone and within the pipeline."""
    fold = run("adding-a-pass.md").fold_casts_pass()
    (text,) = blocks("adding-a-pass.md")
    (case,) = filecheck.cases_of("page", text)
    case.run({"fold_casts": fold, "dead_code_elimination": transforms.dead_code_elimination_pass()})
    prog = fold(parser.parse_program(text))
    assert fold(prog) is prog
    transforms.run_passes(prog, transforms.get_default_passes(), check=True)
