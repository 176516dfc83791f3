# SPDX-License-Identifier: Apache-2.0
"""Runs the code on the pages that say how to add things, best in a process of its own: what it registers stays."""

import contextlib
import re
import sys
import tempfile
from pathlib import Path
from types import ModuleType

import numpy as np
import torch

import tilekit
from tests import filecheck
from tilekit import bfloat16, drivers, float16, float32, target, transforms
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


class Convert(tilekit.Script):
    """A kernel with casts to fold."""

    def __call__(self, x_ptr: ~float16, y_ptr: ~bfloat16):
        self.attrs.blocks = [1]
        self.attrs.warps = 1
        x = self.global_view(x_ptr, dtype=float16, shape=[32])
        y = self.global_view(y_ptr, dtype=bfloat16, shape=[32])
        wide = self.cast(self.load_global(x, offsets=[0], shape=[32]), dtype=float32)
        self.store_global(y, self.cast(wide, dtype=bfloat16), offsets=[0])


def run(*pages: str, **names: object) -> ModuleType:
    """A module with these names and the Python of these pages in it, one block after the other."""
    module = sys.modules["page"] = ModuleType("page")
    vars(module).update(names)
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
    """The pass does what the page's own file says, alone, within the pipeline, and for a kernel of somebody's own."""
    kernel, x, y = Convert(), torch.randn(32, dtype=torch.float16), torch.zeros(32, dtype=torch.bfloat16)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        page = run("adding-a-pass.md", kernel=kernel, x=x, y=y)
        (saved,) = filecheck.cases(Path(folder))
    fold = page.fold_casts_pass()
    (text,) = blocks("adding-a-pass.md")
    (case,) = filecheck.cases_of("page", text)
    case.run({"fold_casts": fold, "dead_code_elimination": transforms.dead_code_elimination_pass()})
    prog = fold(parser.parse_program(text))
    assert fold(prog) is prog
    transforms.run_passes(prog, transforms.get_default_passes(), check=True)

    assert torch.equal(y, x.to(torch.bfloat16))
    assert "custom passes: fold_casts after copy_elimination, without bound_aware_simplify" in kernel.last.summary()
    saved.run({"fold_casts": fold})
    assert "visit_CastInst" in kernel.trace.step("fold_casts").diff()
