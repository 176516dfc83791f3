# SPDX-License-Identifier: Apache-2.0
"""What counts as a mistake, where one could see it either way."""

import pytest
import torch

import tilekit as tilus
from tilekit import config, float32
from tilekit.diag import KernelError
from tilekit.jit import session


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
