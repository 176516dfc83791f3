# SPDX-License-Identifier: Apache-2.0
"""Small scripts, fresh at every call, so that nothing in memory remembers them; and IR made by hand."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import tilekit
from tilekit import dtypes, float32, int32
from tilekit.ir.func import Function, Metadata
from tilekit.ir.inst import Instruction
from tilekit.ir.instructions.memory import GlobalViewInst, LoadGlobalInst, StoreGlobalInst
from tilekit.ir.stmt import InstStmt, SeqStmt, Stmt
from tilekit.ir.tensor import GlobalLayout, GlobalTensor, RegisterTensor
from tilekit.jit.kernel import Kernel
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Var
from tilekit.utils import cdiv

SCHEDULES = (64, 128, 256)


def scaling(factor: float = 2.0) -> Any:
    """`y = factor * x`."""

    class Scale(tilekit.Script):
        def __call__(self, n: int32, x: ~float32, y: ~float32):
            self.attrs.blocks = [cdiv(n, 128)]
            self.attrs.warps = 1
            start = self.blockIdx.x * 128
            gx = self.global_view(x, dtype=float32, shape=[n])
            gy = self.global_view(y, dtype=float32, shape=[n])
            tile = self.load_global(gx, offsets=[start], shape=[128])
            self.store_global(gy, tile * factor, offsets=[start])

    return Scale()


def doubling(pinned: dict[str, Any] | None = None) -> Any:
    """`y = x + x`, with a choice of block sizes that `pinned` may take away."""

    @tilekit.autotune("block", SCHEDULES)
    class Double(tilekit.Script):
        debug_schedule = pinned

        def __init__(self, block: int):
            super().__init__()
            self.block = block

        def __call__(self, n: int32, x: ~float32, y: ~float32):
            self.attrs.blocks = [cdiv(n, self.block)]
            self.attrs.warps = 1
            start = self.blockIdx.x * self.block
            gx = self.global_view(x, dtype=float32, shape=[n])
            gy = self.global_view(y, dtype=float32, shape=[n])
            tile = self.load_global(gx, offsets=[start], shape=[self.block])
            self.store_global(gy, tile + tile, offsets=[start])

    return Double()


def description(n: int = 1000) -> tuple[Any, ...]:
    """Arguments of these scripts, without data."""
    vector = tilekit.spec(float32, (n,))
    return n, vector, vector


def compiled(script: Any) -> Kernel:
    """The kernel that the script gives for the CPU."""
    script.compile(*description(), device="cpu")
    return script.kernels[-1]


def programs(cache: Path) -> list[Path]:
    """The folders of the compiled programs in a cache."""
    folder = cache / "programs"
    return sorted(entry for entry in folder.iterdir() if entry.is_dir()) if folder.is_dir() else []


# ------------------------------------------------------------------------------------------------------- IR by hand


def function(body: Sequence[Instruction | Stmt], params: Iterable[Var] = (), warps: int = 1) -> Function:
    """A kernel of one block that runs these instructions and statements in order."""
    seq = SeqStmt.create([InstStmt(item) if isinstance(item, Instruction) else item for item in body])
    one = scalar.constant(dtypes.int32, 1)
    indices = [scalar.block_idx(axis) for axis in range(3)]
    metadata = Metadata.create([one] * 3, [1, 1, 1], indices, warps)
    return Function.create("kernel", tuple(params), seq, metadata)


class Memory:
    """A pointer parameter `x`, its length `n`, and the view of it."""

    def __init__(self) -> None:
        self.n = scalar.var("n", dtypes.int32)
        self.x = scalar.var("x", ~float32)
        self.params = (self.n, self.x)
        self.view = GlobalTensor.create(float32, GlobalLayout.row_major([self.n]), name="gx")
        self.made = GlobalViewInst.create(self.view, self.x)

    def load(self, offset: int = 0, size: int = 32) -> LoadGlobalInst:
        tile = RegisterTensor.create(float32, [size])
        return LoadGlobalInst.create(self.view, [scalar.constant(dtypes.int32, offset)], [0], tile)

    def store(self, tile: RegisterTensor, offset: int = 0) -> StoreGlobalInst:
        return StoreGlobalInst.create(self.view, tile, [scalar.constant(dtypes.int32, offset)], [0])


def tile(size: int = 32) -> RegisterTensor:
    return RegisterTensor.create(float32, [size])
