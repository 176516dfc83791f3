# SPDX-License-Identifier: Apache-2.0
"""What the programs of a specialization were made from decides whether they are made again."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

import tilekit
from tests.caches import new_cache, options_kept
from tilekit import config, float32, target
from tilekit.jit import session

VALUE = 1.0


def for_target() -> float:
    return 80.0 if tilekit.get_current_target().name == "sm_80" else 90.0


class Fills(tilekit.Script):
    """Fills with a number that something outside of it decides."""

    def __call__(self, x: ~float32):
        self.attrs.blocks = [1]
        self.attrs.warps = 1
        gx = self.global_view(x, dtype=float32, shape=[32])
        self.store_global(gx, self.register_tensor(dtype=float32, shape=[32], init=self.number()), offsets=[0])


class Global(Fills):
    def number(self):
        return VALUE


class ByTarget(Fills):
    def number(self):
        return for_target()


class Untracked(Fills):
    def number(self):
        return getattr(tilekit, "no_such_name", VALUE)


@contextmanager
def option(name: str, value: object) -> Iterator[None]:
    with options_kept():
        config.set_session_default(name, value)
        yield


@pytest.fixture(autouse=True)
def cache(tmp_path: Path) -> Iterator[Path]:
    folder = new_cache(tmp_path / "cache")
    with option("cache_dir", folder):
        yield folder


def filled(handle) -> float:
    x = torch.empty(32)
    handle(x)
    return x[7].item()


def test_a_script_that_asks_for_the_target_is_transpiled_for_each():
    handle = ByTarget()
    for name, number in (("sm_80", 80.0), ("sm_90a", 90.0), ("sm_80", 80.0)):
        with session.default_target(target.parse(name)):
            assert filled(handle) == number


def test_what_is_not_tracked_is_transpiled_again_in_each_cell_and_keeps_its_kernel_if_nothing_changed(monkeypatch):
    handle = Untracked()
    assert filled(handle) == 1.0
    kernel = handle.last
    session.begin_cell()
    assert filled(handle) == 1.0 and handle.last is kernel
    monkeypatch.setattr("tests.jit.test_instance.VALUE", 2.0)
    session.begin_cell()
    assert filled(handle) == 2.0


def test_after_a_change_nothing_of_before_is_written_as_what_is_now(cache, monkeypatch):
    handle = Global()
    assert filled(handle) == 1.0
    monkeypatch.setattr("tests.jit.test_instance.VALUE", 2.0)
    with option("bench_repeat", 7):  # with other options it is another kernel
        assert filled(handle) == 2.0
        shutil.rmtree(cache / "programs")
        shutil.rmtree(cache / "specializations")
        assert filled(handle) == 2.0
    assert filled(handle) == 1.0  # outside of cells, a kernel stays what it was
    now = handle.jit_instances[next(iter(handle.jit_instances))].restart(config.resolve())
    written = {path.parent.name: path.read_text() for path in cache.glob("specializations/*/0.txt")}
    assert "2.0" in written.pop(now.key)
    assert all("1.0" in text for text in written.values())
