# SPDX-License-Identifier: Apache-2.0
"""What counts as a mistake, where one could see it either way."""

from pathlib import Path

import pytest
import torch

import tilekit as tilus
from tests.check.case import line_of
from tests.kernels.test_softmax import SOFTMAX
from tilekit import config, float32, int32
from tilekit.diag import KernelError
from tilekit.jit import session, unwritten


class Overlapping(tilus.Script):
    """Blocks that also write the first half of the next one's part; `y` is `x`, plus what each block adds."""

    def __call__(self, added_ptr: ~float32, x_ptr: ~float32, y_ptr: ~float32):
        self.attrs.blocks = [3]
        self.attrs.warps = 2
        at = self.blockIdx.x * 64
        added = self.load_global(
            self.global_view(added_ptr, dtype=float32, shape=[3]), offsets=[self.blockIdx.x], shape=[1]
        )
        x = self.load_global(self.global_view(x_ptr, dtype=float32, shape=[256]), offsets=[at], shape=[128])
        self.store_global(self.global_view(y_ptr, dtype=float32, shape=[256]), x + added, offsets=[at])


@pytest.fixture
def sampling():
    config.set_session_default("cpu.check_blocks", 8)
    yield
    config.clear_session_defaults()


def test_blocks_that_write_the_same_value_are_launched_and_told_when_asked(sampling):
    handle, x, y = Overlapping(), torch.randn(256), torch.zeros(256)
    same, other = torch.zeros(3), torch.tensor([0.0, 0.0, 1.0])
    handle(same, x, y)
    assert torch.equal(y, x)
    assert "checked all 3 blocks" in handle.last.summary()
    with pytest.raises(KernelError, match="two blocks write the same value") as caught:
        handle.check(same, x, y)
    assert caught.value.kind == "global_race" and caught.value.data["tensor"] == "y_ptr"
    with session.checking(), pytest.raises(KernelError, match="two blocks write the same value"):
        handle(same, x, y)

    class Again(Overlapping):
        pass

    y.zero_()
    with pytest.raises(KernelError, match="a write after a write"):
        Again()(other, x, y)
    assert not y.any()


class Rows(tilus.Script):
    """A tile of four rows, of which the first `rows` are written, one after the other."""

    def __call__(self, rows: int32, x_ptr: ~float32, y_ptr: ~float32):
        self.attrs.blocks = [2]
        self.attrs.warps = 1
        gx = self.global_view(x_ptr, dtype=float32, shape=[2, 4, 64])
        gy = self.global_view(y_ptr, dtype=float32, shape=[2, 4, 64])
        tile = self.register_tensor(dtype=float32, shape=[4, 64])
        tile[0] = self.load_global(gx, offsets=[self.blockIdx.x, 0, 0], shape=[64], dims=[2])
        for i in self.range(1, rows):
            tile[i] = self.load_global(gx, offsets=[self.blockIdx.x, i, 0], shape=[64], dims=[2])
        self.store_global(gy, tile * 2.0, offsets=[self.blockIdx.x, 0, 0], dims=[1, 2])


def test_a_register_tile_that_was_written_in_part_is_not_used():
    handle, x, y = Rows(), torch.randn(2, 4, 64), torch.zeros(2, 4, 64)
    assert handle.check(4, x, y).blocks == 2
    with session.checking():
        handle(4, x, y)
    assert torch.equal(y, 2 * x)
    with pytest.raises(KernelError, match=r"\[3, 0\] is stored, but was never written") as caught:
        handle.check(3, x, y)
    error = caught.value
    assert (error.kind, error.data["index"], error.data["block"]) == ("uninitialized", (3, 0), (0, 0, 0))
    assert "write every element first" in error.data["hint"]
    source = Path(__file__).read_text().splitlines()
    assert "self.store_global(gy, tile" in source[line_of(error) - 1]
    y.fill_(7.0)
    with session.checking(), pytest.raises(KernelError):
        handle(3, x, y)
    assert (y == 7.0).all()


def test_only_kernels_that_write_tiles_in_parts_pay_for_it():
    handle, x = SOFTMAX[torch.float32], torch.randn(4, 64)
    handle.compile(4, 64, x, torch.empty_like(x))
    assert not unwritten.fills_in_parts(handle.last.program)
    rows = Rows()
    rows.compile(4, x, x)
    assert unwritten.fills_in_parts(rows.last.program)


def test_the_look_at_register_tiles_is_a_short_one(monkeypatch):
    """It ends by the clock and by the size of the tensors; what it did not see is not told."""
    handle, x, y = Rows(), torch.randn(2, 4, 64), torch.zeros(2, 4, 64)
    for limit, value in (("BUDGET_S", 0.0), ("LARGEST_BYTES", 100)):
        with monkeypatch.context() as patch:
            patch.setattr(unwritten, limit, value)
            assert handle.check(3, x, y).blocks == 2
    with pytest.raises(KernelError):
        handle.check(3, x, y)


class Steps(tilus.Script):
    """Adds `step` until it is past 100; block 1 waits for what block 0 hands on."""

    def __call__(self, step: int32, given: int32, x_ptr: ~int32):
        self.attrs.blocks = [2]
        self.attrs.warps = 2
        turns = self.global_tensor(dtype=int32, shape=[3], requires_clean=True)
        gx = self.global_view(x_ptr, dtype=int32, shape=[2])
        i: int32 = 0
        while i < 100:
            i = i + step
        if self.blockIdx.x == 0:
            self.release_semaphore(turns[2].item_ptr(), given)
        else:
            self.lock_semaphore(turns[2].item_ptr(), 1)
            self.release_semaphore(turns[2].item_ptr(), 0)
        self.store_global(gx, self.register_tensor(dtype=int32, shape=[1], init=i), offsets=[self.blockIdx.x])


@pytest.fixture(params=["launched", "checked"])
def run(request):
    """A launch, or a check, that must fail: the error and the text of its line."""

    def fail(handle, *arguments):
        with pytest.raises(KernelError) as caught:
            (handle if request.param == "launched" else handle.check)(*arguments)
        return caught.value, Path(__file__).read_text().splitlines()[line_of(caught.value) - 1]

    return fail


def test_a_loop_without_end_is_named_at_its_line(run):
    config.set_session_default("cpu.timeout", 0.5)
    try:
        error, line = run(Steps(), 0, 1, torch.zeros(2, dtype=torch.int32))
    finally:
        config.clear_session_defaults()
    assert error.kind == "timeout"
    assert "while i < 100" in line or "i = i + step" in line


def test_a_deadlock_says_who_waits_where_for_what(run):
    x = torch.zeros(2, dtype=torch.int32)
    Steps()(7, 1, x)
    assert x.tolist() == [105, 105]
    error, line = run(Steps(), 7, 5, x)
    assert (error.kind, error.data["block"], error.data["tensor"]) == ("deadlock", (1, 0, 0), "turns")
    assert "self.lock_semaphore" in line
    assert "thread 0 waits for element 2 of 'turns' to become 1, and it is 5" in str(error)
    assert "threads 1-63 wait in __syncthreads(), where 63 of 64 threads are" in str(error)
