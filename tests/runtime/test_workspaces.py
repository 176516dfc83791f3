# SPDX-License-Identifier: Apache-2.0
"""Workspaces: memory that a launch lends to a kernel, on the CPU, and on a GPU that only remembers."""

import ctypes
import random
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

import tilekit as tilus
from tests.runtime.fake_driver import FakeDriver
from tilekit import float32, int32
from tilekit.diag import CacheError, KernelError
from tilekit.runtime import device, driver, launch_cuda
from tilekit.runtime.launch_cuda import CudaKernel
from tilekit.runtime.manifest import Manifest, Param, Workspace

MANIFEST = Manifest(
    kernel="lent",
    params=(Param("n", "int32"), Param("y", "~float32", written=True)),
    grid=("n", "1", "1"),
    block=32,
    shared_bytes=0,
    target="sm_90a",
    workspaces=(Workspace("turns", "n * 4", clean=True), Workspace("sums", "n * n * 4", clean=False)),
)

# ------------------------------------------------------------------------------------------------------ the manifest


def test_a_manifest_comes_back_as_it_was_written() -> None:
    assert Manifest.from_json(MANIFEST.to_json()) == MANIFEST


def test_sizes_are_whole_units_of_128_bytes_and_never_nothing() -> None:
    n = random.randint(1, 1000)
    assert MANIFEST.workspace_bytes([n, None]) == (-(-n * 4 // 128) * 128, -(-n * n * 4 // 128) * 128)
    assert MANIFEST.workspace_bytes([0, None]) == (128, 128)


@pytest.mark.parametrize("nbytes", ["open('x')", "m * 4", "n ** 2"])
def test_a_size_that_does_more_than_count_is_refused(nbytes: str) -> None:
    with pytest.raises(CacheError):
        Manifest.from_json(MANIFEST.to_json().replace("n * n * 4", nbytes))


# ----------------------------------------------------------------------------------------------------------- the CPU


class Turns(tilus.Script):
    """Blocks one after the other, by a semaphore that is zero before and, if it `returns`, after."""

    def __init__(self, returns: bool) -> None:
        super().__init__()
        self.returns = returns

    def __call__(self, n: int32, y: ~int32, z: ~float32):  # type: ignore[no-untyped-def]
        self.attrs.blocks = [n]
        self.attrs.warps = 1
        turns = self.global_tensor(dtype=int32, shape=[1], requires_clean=True)
        scratch = self.global_tensor(dtype=float32, shape=[n, 32], requires_clean=False)
        row = self.blockIdx.x
        found = self.load_global(scratch, offsets=[row, 0], shape=[32], dims=[1])
        gz = self.global_view(z, dtype=float32, shape=[n, 32])
        self.store_global(gz, found, offsets=[row, 0], dims=[1])
        gy = self.global_view(y, dtype=int32, shape=[1])
        self.lock_semaphore(turns[0].item_ptr(), row)
        self.store_global(gy, self.load_global(gy, offsets=[0], shape=[1]) * 3 + row, offsets=[0])
        after: int32 = row + 1
        if self.returns and after == n:
            after = 0
        self.release_semaphore(turns[0].item_ptr(), after)


def test_a_clean_workspace_is_zero_at_every_launch() -> None:
    kernel, y, wanted = Turns(True), torch.zeros(1, dtype=torch.int32), 0
    for n in (5, 9, 2):
        kernel(n, y, torch.zeros(n, 32))
        for row in range(n):
            wanted = wanted * 3 + row
    assert int(y) == wanted


def test_a_workspace_that_nobody_wrote_shows_it() -> None:
    z = torch.zeros(4, 32)
    Turns(True)(4, torch.zeros(1, dtype=torch.int32), z)
    assert z.isnan().all()


class Gathered(tilus.Script):
    """Each block has a row of its own in a workspace, and the last to come adds them all."""

    def __call__(self, n: int32, y: ~float32):  # type: ignore[no-untyped-def]
        blocks = self.gridDim.x
        rows = self.global_tensor(dtype=float32, shape=[self.gridDim.y, blocks, 32], requires_clean=False)
        turns = self.global_tensor(dtype=int32, shape=[blocks + 1], requires_clean=True)
        self.attrs.blocks = [tilus.utils.cdiv(n, 32), 1]
        self.attrs.warps = 1
        row = self.blockIdx.x
        ones = self.register_tensor(dtype=float32, shape=[1, 1, 32], init=1.0)
        self.store_global(rows, ones, offsets=[0, row, 0])
        self.lock_semaphore(turns[blocks].item_ptr(), row)
        if row == blocks - 1:
            total = self.register_tensor(dtype=float32, shape=[1, 1, 32], init=0.0)
            for k in range(blocks):
                total += self.load_global(rows, offsets=[0, k, 0], shape=[1, 1, 32])
            gy = self.global_view(y, dtype=float32, shape=[1, 1, 32])
            self.store_global(gy, total, offsets=[0, 0, 0])
            self.release_semaphore(turns[blocks].item_ptr(), 0)
        else:
            self.release_semaphore(turns[blocks].item_ptr(), row + 1)


def test_a_workspace_may_be_as_large_as_the_grid() -> None:
    n, y = random.randint(40, 300), torch.zeros(32)
    kernel = Gathered()
    kernel(n, y)
    assert torch.equal(y, torch.full((32,), float(-(-n // 32))))
    assert "nothing wrong" in str(kernel.check(n, y))


def test_a_clean_workspace_that_is_left_dirty_is_an_error_and_nothing_changes() -> None:
    y = torch.zeros(1, dtype=torch.int32)
    with pytest.raises(KernelError) as caught:
        Turns(False)(3, y, torch.zeros(3, 32))
    assert caught.value.code == "TK707"
    assert caught.value.data["tensor"] == "turns"
    assert caught.value.message == "kernel 'turns_kernel': turns must be left zero, and element 0 is not"
    assert re.match(r"TK707 in Turns.__call__, .*test_workspaces.py, line \d+: kernel", str(caught.value))
    assert "turns = self.global_tensor(" in str(caught.value)
    assert int(y) == 0


# ------------------------------------------------------------------------------------------------------------- a GPU


@dataclass
class LendingDriver(FakeDriver):
    """A driver with memory; it remembers what was set to zero."""

    live: dict[int, Any] = field(default_factory=dict)
    zeroed: list[tuple[int, int, int]] = field(default_factory=list)

    def cuMemAlloc(self, nbytes: int) -> tuple[Any, ...]:
        memory = ctypes.create_string_buffer(nbytes)
        self.live[ctypes.addressof(memory)] = memory
        return self.answer("cuMemAlloc", ctypes.addressof(memory))

    def cuMemFree(self, address: int) -> tuple[Any, ...]:
        del self.live[address]
        return self.answer("cuMemFree")

    def cuMemsetD8Async(self, address: int, byte: int, nbytes: int, stream: int) -> tuple[Any, ...]:
        assert byte == 0
        self.zeroed.append((address, nbytes, stream))
        return self.answer("cuMemsetD8Async")


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[LendingDriver]:
    api = LendingDriver(parameters=4)
    monkeypatch.setattr(driver, "binding", lambda: api)
    monkeypatch.setattr(device, "survey", lambda: device.look(api))
    launch_cuda.context.cache_clear()
    yield api
    launch_cuda.context.cache_clear()


def lent(fake: LendingDriver) -> list[tuple[int, int]]:
    """The addresses of both workspaces in each launch."""
    return [tuple(struct.unpack("<Q", value)[0] for value in launch[5][2:]) for launch in fake.launches]


def test_workspaces_follow_the_arguments_and_are_kept(fake: LendingDriver) -> None:
    kernel = CudaKernel(MANIFEST, b"cubin")
    for n in (100, 7, 100):
        kernel.launch([n, 4096], gpu=0, stream=5)
    assert len(set(lent(fake))) == 1 and set(lent(fake)[0]) == set(fake.live)
    assert [len(fake.live[address]) for address in lent(fake)[0]] == [512, 40064]


def test_only_a_clean_workspace_is_set_to_zero_and_only_when_it_is_new(fake: LendingDriver) -> None:
    kernel = CudaKernel(MANIFEST, b"cubin")
    for _ in range(3):
        kernel.launch([100, 4096], gpu=0, stream=5)
    assert fake.zeroed == [(lent(fake)[0][0], 512, 5)]


def test_one_that_is_too_small_is_given_back(fake: LendingDriver) -> None:
    kernel = CudaKernel(MANIFEST, b"cubin")
    kernel.launch([10, 4096], gpu=0, stream=5)
    kernel.launch([1000, 4096], gpu=0, stream=5)
    assert set(fake.live) == set(lent(fake)[1])
    assert [nbytes for _, nbytes, _ in fake.zeroed] == [128, 4096]


def test_launches_on_two_streams_share_nothing(fake: LendingDriver) -> None:
    kernel = CudaKernel(MANIFEST, b"cubin")
    kernel.launch([10, 4096], gpu=0, stream=5)
    kernel.launch([10, 4096], gpu=0, stream=6)
    first, second = lent(fake)
    assert not set(first) & set(second)


def test_memory_goes_when_the_kernel_goes(fake: LendingDriver) -> None:
    kernel = CudaKernel(MANIFEST, b"cubin")
    kernel.launch([10, 4096], gpu=0, stream=5)
    del kernel
    assert not fake.live
