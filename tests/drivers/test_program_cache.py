# SPDX-License-Identifier: Apache-2.0
"""What a compile takes from the cache, and what it may not."""

import dataclasses
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import tilekit
from tests.caches import new_cache
from tilekit import config, drivers, target
from tilekit.events import Null
from tilekit.jit import observer
from tilekit.runtime.tensors import DeviceKind

TEMPLATE = """
import tilekit as tilus
from tilekit import float32, int32


class Scale(tilus.Script):
    def __call__(self, n: int32, x_ptr: ~float32):
        self.attrs.blocks = [(n + 255) // 256]
        self.attrs.warps = 4
        g = self.global_view(x_ptr, dtype=float32, shape=[n])
        at = self.blockIdx.x * 256
        x = self.load_global(g, offsets=[at], shape=[256])
        self.store_global(g, x * {factor}, offsets=[at])
"""


CALL = """
import torch

x = torch.ones(100)
handle = Scale()
handle(100, x)
assert (x == 2).all()
print(handle.last.cached)
"""


@pytest.fixture
def scale(tmp_path):
    """Makes a fresh class from the text above, in a file of its own; a new process could not tell the difference."""
    count = 0

    def make(factor: float = 2.0, before: str = ""):
        nonlocal count
        count += 1
        path = tmp_path / f"kernel_{count}.py"
        path.write_text(before + TEMPLATE.format(factor=factor))
        names: dict = {}
        exec(compile(path.read_text(), str(path), "exec"), names)
        return names["Scale"]()

    return make


@pytest.fixture(autouse=True)
def cache(tmp_path):
    folder = new_cache(tmp_path / "cache")
    tilekit.option.cache_dir(folder)
    yield folder
    config.clear_session_defaults()


def run(handle) -> bool:
    """Run it, and say whether its program came from the cache."""
    x = torch.randn(1000)
    expected = x * 2
    handle(1000, x)
    assert torch.equal(x, expected)
    return handle.last.cached


def entry(cache: Path) -> Path:
    (only,) = (folder for folder in (cache / "programs").iterdir() if not folder.name.startswith("."))
    return only


def contents(folder: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_the_same_program_is_compiled_once(scale):
    assert not run(scale())
    assert run(scale())


def test_lines_above_the_kernel_do_not_matter(scale):
    assert not run(scale())
    assert run(scale(before="\n\n# a comment\nx = 3\n"))


def test_a_changed_constant_is_another_program(scale):
    assert not run(scale())
    other = scale(factor=3.0)
    x = torch.ones(10)
    other(10, x)
    assert not other.last.cached
    assert torch.equal(x, torch.full((10,), 3.0))


def test_an_entry_can_be_read_by_a_person(scale, cache):
    run(scale())
    folder = entry(cache)
    names = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert {"program.txt", "options.txt", "manifest.json", "module/source.cu", "module/lines.json"} <= names
    assert "def scale(n: i32, x_ptr: ~f32):" in (folder / "program.txt").read_text()
    assert "scale_kernel(int32_t n, float *x_ptr)" in (folder / "module/source.cu").read_text()
    assert "target = sm_90a" in (folder / "options.txt").read_text()


@pytest.mark.parametrize("damage", ["module/lib.so", "module/source.cu", "manifest.json", "entry.json"])
def test_damage_is_a_miss(scale, cache, damage):
    run(scale())
    (entry(cache) / damage).write_bytes(b"garbage")
    assert not run(scale())
    assert run(scale())


def test_the_folder_may_be_deleted_between_two_calls(scale, cache):
    handle = scale()
    run(handle)
    shutil.rmtree(cache)
    assert not run(scale())
    shutil.rmtree(cache / "programs")
    run(handle)
    assert run(scale()), "the handle has written what it holds"


def test_targets_and_devices_share_nothing(scale):
    handle = scale()
    program = handle._jit_instance_for(1000, torch.empty(1000)).transpiled_programs[0]
    settings = config.resolve()
    for name in ("sm_80", "sm_90a"):
        for _ in range(2):
            made = drivers.build_program(program, target.parse(name), DeviceKind.CPU, settings)
            assert made.manifest.target == name
    assert sorted(p.name for p in settings.cache_dir.iterdir() if p.name == "programs")
    assert len([p for p in (settings.cache_dir / "programs").iterdir() if not p.name.startswith(".")]) == 2


class Tracer(Null):
    traces = True

    def __init__(self):
        self.passes, self.ends = [], []

    def end(self, stage, name, before, after, seconds):
        self.passes.append(name)

    def done(self, error):
        self.ends.append(error)


@pytest.fixture
def tracer():
    """Hears of every compile, whether the cache has the program or not."""
    tracer = Tracer()

    def listener(identity):
        return tracer

    observer.listen(listener)
    yield tracer
    observer.unlisten(listener)


def test_who_traces_sees_the_passes_of_a_cached_program_which_stays_as_it_is(scale, cache, tracer):
    assert not run(scale())
    seen, before = list(tracer.passes), contents(entry(cache))
    assert run(scale())
    assert tracer.passes[len(seen) :] == [name for name in seen if name in tracer.passes[len(seen) :]]
    assert {"verify", "layout_inference", "print_module"} <= set(tracer.passes[len(seen) :])
    assert contents(entry(cache)) == before


def test_a_sink_is_told_when_its_compile_is_done(scale, tracer, monkeypatch):
    run(scale())
    assert tracer.ends == [None]
    died = RuntimeError()

    def die(*_):
        raise died

    monkeypatch.setattr(drivers, "optimize_program", die)
    with pytest.raises(RuntimeError):
        run(scale(3.0))
    assert tracer.ends == [None, died]


def test_dumps_are_written_when_they_are_asked_for(scale):
    handle = scale()
    program = handle._jit_instance_for(1000, torch.empty(1000)).transpiled_programs[0]
    settings = dataclasses.replace(config.resolve(), dump_ir=True)
    made = drivers.build_program(program, target.DEFAULT, DeviceKind.CPU, settings)
    assert any(name.startswith("ir/") and "layout_inference" in name for name in made.entry.files)


def test_a_new_process_finds_what_another_compiled(tmp_path, cache):
    script = tmp_path / "script.py"
    script.write_text(TEMPLATE.format(factor=2.0) + CALL)
    answers = []
    for _ in range(2):
        command = [sys.executable, str(script)]
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, env={**_environment(), "TILEKIT_CACHE_DIR": str(cache)}
        )
        answers.append(done.stdout.strip())
    assert answers == ["False", "True"]


def _environment() -> dict:
    return {**os.environ, "PYTHONPATH": str(Path(tilekit.__file__).parents[1])}
