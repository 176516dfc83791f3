# SPDX-License-Identifier: Apache-2.0
"""A GPU made of Python on which schedules can be tuned: NVRTC gives the text of a Python kernel for each of them."""

import concurrent.futures
import re
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from typing import Any

import numpy as np
import pytest

import tilekit
from tests.runtime.fake_gpu import FakeGpu
from tests.runtime.test_gpu_child import FakeTensor, binary, install
from tilekit import float32, int32
from tilekit.diag import ToolchainError
from tilekit.jit.tuning import build
from tilekit.runtime import launch_cuda
from tilekit.toolchain import nvrtc
from tilekit.toolchain.binary import Binary
from tilekit.utils import cdiv


class Tensor(FakeTensor):
    """A CUDA tensor of this process, with what is remembered of arguments."""

    base = None

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self.values.__array_interface__

    def __getattr__(self, name: str) -> Any:
        if name in ("shape", "dtype", "strides", "nbytes"):
            return getattr(self.values, name)
        raise AttributeError(name)

    def get_device(self) -> int:
        return 0

    def data_ptr(self) -> int:
        return self.facts.pointer


# what a schedule does on this GPU, by its block; the others take as many milliseconds as a hundredth of their block
HABITS = {
    77: "raise Fault()",
    88: "raise Endless()",
    99: "gpu.array(1, 1, -1)[0] = 1.25",
    800: "gpu.elapsed_ms = 0.4",
}
REFUSED = 55


def doubling(*blocks: int) -> Any:
    """`y = x + x`, with these block sizes to choose from."""

    @tilekit.autotune("block", list(blocks))
    class Double(tilekit.Script):
        def __init__(self, block: int):
            super().__init__()
            self.block = block

        def __call__(self, n: int32, x: ~float32, y: ~float32):
            self.attrs.blocks = [cdiv(n, self.block)]
            self.attrs.warps = 1
            self.static_assert(self.block != 300, "not so many")
            start = self.blockIdx.x * self.block
            gx = self.global_view(x, dtype=float32, shape=[n])
            gy = self.global_view(y, dtype=float32, shape=[n])
            tile = self.load_global(gx, offsets=[start], shape=[self.block])
            self.store_global(gy, tile + tile, offsets=[start])

    return Double()


DOUBLES = """
n = gpu.number(0)
for i in range(n):
    gpu.array(2, n)[i] = 2 * gpu.array(1, n)[i]
"""


def compile_python(source: str, *_: Any, **__: Any) -> Binary:
    """In place of NVRTC: a kernel that doubles, slowly or badly as its block wants it."""
    block = int(re.search(r"blockIdx\.x \* (\d+)", source)[1])  # type: ignore[index]
    if block == REFUSED:
        raise ToolchainError("TK501", "too many registers")
    habit = HABITS.get(block, f"gpu.elapsed_ms = {block / 100}")
    return Binary(binary(f"{habit}\n{DOUBLES}"), "", 32 + block % 7, 0, 0, 0, 0.0, nvrtc.version())


class AtOnce(Executor):
    """Runs what it is given in this process, in order: other processes would not know of the GPU."""

    def submit(self, run: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(run(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGpu]:
    launch_cuda.context.cache_clear()
    monkeypatch.setattr(nvrtc, "compile", compile_python)
    monkeypatch.setattr(nvrtc, "version", lambda: "NVRTC of Python")
    monkeypatch.setattr(build, "_processes", lambda count: AtOnce())
    monkeypatch.setattr(concurrent.futures, "as_completed", list)  # in order
    yield install(monkeypatch)
    launch_cuda.context.cache_clear()


class Call:
    """Tensors on that GPU, and the arguments of a call."""

    def __init__(self, gpu: FakeGpu, n: int) -> None:
        self.gpu = gpu
        self.memory = gpu.allocate(1 << 16)
        self.x, self.y = Tensor(self.memory, n), Tensor(self.memory, n, at=8192)
        self.x.values[:] = np.random.randn(n)
        self.arguments = (n, self.x, self.y)

    def is_right(self) -> bool:
        return np.array_equal(self.y.values, 2 * self.x.values)
