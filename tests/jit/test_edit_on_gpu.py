# SPDX-License-Identifier: Apache-2.0
"""Edits on a GPU that go wrong, through the calls that the notebook makes: each costs a sentence."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import tilekit as tilus
from tilekit import config, float32, int32
from tilekit.diag import KernelError

pytestmark = pytest.mark.gpu

N = 1 << 20
STOP_S, NEXT_S = 2.0, 3.0
CHECK_S = 2.5


class Half(tilus.Script):
    def __init__(self, salt: int):
        super().__init__()
        self.salt = salt

    def __call__(self, n: int32, y_ptr: ~float32, x_ptr: ~float32):
        self.attrs.blocks = [(n + 127) // 128]
        self.attrs.warps = 4
        at = self.blockIdx.x * 128
        x = self.global_view(x_ptr, dtype=float32, shape=[n])
        y = self.global_view(y_ptr, dtype=float32, shape=[n])
        self.store_global(y, self.load_global(x, offsets=[at], shape=[128]) * 0.5, offsets=[at])


class Case:
    """A kernel that ran, its tensors, others around them in the same allocation, and what they all held."""

    def __init__(self, salt: int) -> None:
        self.around = torch.randn(6, N, device="cuda")
        self.y, self.x = self.around[1], self.around[4]
        self.handle: Any = Half(salt)
        self.handle(N, self.y, self.x)
        self.kernel = self.handle.last
        self.held = self.around.cpu()
        # the child is warm, as it is after the first edit of a session
        self.kernel.recompile(self.source.replace("0.5f", "(0.25f + 0.25f)"))
        assert self.kernel.compare().same
        self.assert_untouched()

    @property
    def source(self) -> str:
        return self.kernel.generated.source

    def edit(self, old: str, new: str) -> None:
        assert old in self.source
        self.kernel.recompile(self.source.replace(old, new, 1))

    def assert_untouched(self) -> None:
        assert torch.equal(self.around.cpu(), self.held)

    def assert_next_launch_is_quick(self) -> None:
        """Of the same kernel, mended; which also goes to the child first."""
        self.assert_untouched()
        self.edit("0.5f", "2.0f")
        begin = time.monotonic()
        self.handle(N, self.y, self.x)
        torch.cuda.synchronize()
        took = time.monotonic() - begin
        print(f"the next launch took {took:.3f} s")
        assert took < NEXT_S
        assert torch.equal(self.y, 2.0 * self.x)


@pytest.fixture
def case(request: pytest.FixtureRequest) -> Case:
    return Case(abs(hash(request.node.name)) % 10_000)


WAYS: dict[str, Callable[[Case], object]] = {
    "a call": lambda case: case.handle(N, case.y, case.x),
    "the panel": lambda case: case.kernel.compare(),
}
ENDLESS = "while (*(const volatile float *)x_ptr == *(const volatile float *)x_ptr) {}"
WRONG = {"far outside": "y_ptr[(1ll << 40) + ", "one element before": "y_ptr[-1 + "}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("wrong", WRONG)
def test_an_edit_that_writes_outside_costs_a_sentence(case: Case, way: str, wrong: str) -> None:
    case.edit("y_ptr[", WRONG[wrong])
    with pytest.raises(KernelError) as caught:
        WAYS[way](case)
    print(caught.value.message)
    assert caught.value.message.count("\n") == 0
    case.assert_next_launch_is_quick()


@pytest.fixture
def checking() -> Iterator[None]:
    config.set_session_default("cpu.check_blocks", 8)
    yield
    config.clear_session_defaults()


@pytest.mark.parametrize("way", WAYS)
def test_an_edit_is_checked_on_the_cpu_before_it_is_launched(checking: None, case: Case, way: str) -> None:
    case.edit("y_ptr[", WRONG["one element before"])
    begin = time.monotonic()
    with pytest.raises(KernelError) as caught:
        WAYS[way](case)
    took = time.monotonic() - begin
    print(f"refused after {took:.3f} s: {caught.value.to_text()}")
    assert took < CHECK_S
    assert caught.value.kind == "out_of_bounds" and caught.value.data["checked"]
    assert caught.value.diagnostic.at is not None and "check_blocks(0)" in (caught.value.diagnostic.help or "")
    case.assert_next_launch_is_quick()
    assert case.kernel.sample.startswith("checked blocks 0, ")


def test_an_endless_edit_stops_at_the_interrupt_of_its_cell(case: Case) -> None:
    case.edit("{\n", f"{{\n  {ENDLESS}\n")
    pressed: list[float] = []

    def press() -> None:
        pressed.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Timer(1.0, press).start()
    with pytest.raises(KeyboardInterrupt):
        case.handle(N, case.y, case.x)
    took = time.monotonic() - pressed[0]
    print(f"stopped {took:.3f} s after the interrupt")
    assert took < STOP_S
    case.assert_next_launch_is_quick()


def test_an_endless_edit_of_a_panel_stops_when_asked(case: Case) -> None:
    case.edit("{\n", f"{{\n  {ENDLESS}\n")
    pressed: list[float] = []

    def press() -> None:
        pressed.append(time.monotonic())
        case.kernel.interrupt()

    threading.Timer(1.0, press).start()
    with pytest.raises(KernelError) as caught:
        case.kernel.compare()
    took = time.monotonic() - pressed[0]
    print(f"stopped {took:.3f} s after it was asked")
    assert took < STOP_S
    assert caught.value.kind == "interrupted"
    case.assert_next_launch_is_quick()
