# SPDX-License-Identifier: Apache-2.0
"""Tips."""

import concurrent.futures
import importlib
import multiprocessing.process
import shutil
from dataclasses import dataclass

import pytest
import torch

from tests.promises.kernels import SCHEDULES, compiled, description, doubling, programs, scaling
from tests.promises.processes import Copy, Counts
from tests.promises.reload import Folder
from tilekit import config, option, utils
from tilekit.cache import fingerprint
from tilekit.cache.fingerprint import Stages, stages
from tilekit.toolchain.host import BuildResult, HostCompiler


def doubled(script):
    """Whether the script doubles a vector."""
    x, y = torch.randn(1000), torch.empty(1000)
    script(1000, x, y)
    return torch.equal(y, x + x)


@pytest.fixture
def runtime(cache):
    """The simulator as it is already built in this machine's cache; only a cache without one takes seconds."""
    option.cache_dir(config.default_cache_dir())
    built = config.resolve().cache_dir / "cpusim"
    built.mkdir(parents=True, exist_ok=True)
    cache.mkdir()
    (cache / "cpusim").symlink_to(built)
    option.cache_dir(cache)


# --------------------------------------------------------------------------------------------------- the directory


def test_the_directory_may_be_deleted_between_any_two_calls(cache, runtime):
    script = scaling()
    assert doubled(script)
    shutil.rmtree(cache)
    assert doubled(script)
    assert doubled(scaling())


def test_a_deleted_program_is_generated_again(cache):
    source = compiled(scaling()).source
    shutil.rmtree(cache)
    assert not compiled(scaling()).cached
    (program,) = programs(cache)
    assert (program / "module" / "source.cu").read_text() == source


def test_a_rerun_after_a_deletion_writes_the_source_again(cache, runtime):
    script = scaling()
    assert doubled(script)
    shutil.rmtree(cache / "programs")
    assert doubled(script)
    assert [(program / "module" / "source.cu").is_file() for program in programs(cache)] == [True]


# ---------------------------------------------------------------------------------------------------- debug_schedule


@pytest.mark.parametrize("block", SCHEDULES)
def test_debug_schedule_compiles_that_one_alone(cache, block):
    script = doubling(pinned={"block": block})
    instance = script.compile(*description(), device="cpu")
    assert script.schedules == [{"block": block}]
    assert len(instance.transpiled_programs) == len(programs(cache)) == 1
    assert dict(script.kernels[-1].schedule) == {"block": block}


# ------------------------------------------------------------------------------------------------------ fingerprints

BACK_END = [
    "backends/codegen.py",
    "backends/emitters/cuda/memory.py",
    "transforms/dead_code_elimination.py",
    "lowir/printer.py",
    "include/tk/tk.h",
]
FRONT_END = ["lang/transpiler.py", "lang/statements.py"]


@pytest.fixture
def keys_only(monkeypatch):
    """What is compiled does not matter, only whether it is: the C++ compiler makes an empty library."""

    def build_kernel(compiler, source, library, include):
        library.write_bytes(b"")
        return BuildResult(0.0, "")

    monkeypatch.setattr(HostCompiler, "build_kernel", build_kernel)


@pytest.fixture
def copied(tmp_path, keys_only):
    """The compiler's own files, where they may be edited."""
    return Copy(tmp_path)


@pytest.fixture
def seen(copied, cache, monkeypatch):
    """The compiler as it is in the copy at this moment, as a new process would see it."""
    monkeypatch.setattr(fingerprint, "compiler", lambda root: stages(copied.package, root))


@pytest.mark.parametrize("edited", BACK_END)
def test_an_edit_behind_the_ir_gives_programs_another_key(copied, seen, edited):
    compiled(scaling())
    assert compiled(scaling()).cached
    copied.edit(edited)
    assert not compiled(scaling()).cached


@pytest.mark.parametrize("edited", FRONT_END)
def test_an_edit_before_the_ir_makes_specializations_stale_and_programs_not(copied, seen, edited, transpiled):
    compiled(scaling())
    assert transpiled.by(lambda: compiled(scaling())) == 0
    copied.edit(edited)
    assert transpiled.by(lambda: compiled(scaling())) == 1
    assert compiled(scaling()).cached


def test_what_comes_before_the_ir_is_not_in_the_key_of_a_program(copied, cache):
    before = stages(copied.package, cache)
    for name in FRONT_END:
        copied.edit(name)
    assert stages(copied.package, cache).backend == before.backend


def test_a_key_has_the_fingerprint_of_the_back_end(cache, monkeypatch):
    kernel = compiled(scaling())
    ours = fingerprint.compiler(cache)
    monkeypatch.setattr(fingerprint, "compiler", lambda root: Stages(ours.frontend, "another compiler"))
    other = compiled(scaling())
    assert other.source == kernel.source
    assert not other.cached and len(programs(cache)) == 2


def test_a_key_has_the_fingerprint_of_the_front_end(cache, transpiled, monkeypatch):
    ours = fingerprint.compiler(cache)
    compiled(scaling())
    assert transpiled.by(lambda: compiled(scaling())) == 0
    monkeypatch.setattr(fingerprint, "compiler", lambda root: Stages("another compiler", ours.backend))
    assert transpiled.by(lambda: compiled(scaling())) == 1


@dataclass(frozen=True)
class Runs:
    first: Counts
    second: Counts
    edited: Counts
    compiler_files: int


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Runs:
    """Three processes: with an empty cache, with the same again, and after an edit of one header."""
    copy = Copy(tmp_path_factory.mktemp("compiler"))
    first, second = copy.compile(), copy.compile()
    copy.edit("include/tk/math.h")
    return Runs(first, second, copy.compile(), len(copy.sources))


def test_another_process_finds_the_programs_of_the_same_compiler(runs):
    assert (runs.first.cached, runs.second.cached, runs.edited.cached) == ([False] * 2, [True] * 2, [False] * 2)


def test_hashes_of_files_are_persisted(runs):
    assert runs.first.read != []
    assert runs.second.read == []


def test_a_process_validates_the_metadata_of_a_file_once_for_both_stages(runs):
    assert max(runs.second.looked.values()) == 1


def test_only_a_changed_file_is_read(runs):
    assert runs.edited.read == ["include/tk/math.h"]


def test_only_changed_directories_are_hashed_again(runs):
    # the file, the three folders above it, keys, and the files of the new entries
    assert runs.edited.digests < runs.compiler_files / 2


# ---------------------------------------------------------------------------------------------------------- workers


@pytest.fixture
def started(monkeypatch) -> list[object]:
    """The processes started in the test."""
    found: list[object] = []
    start = multiprocessing.process.BaseProcess.start

    def watched(process):
        found.append(process)
        start(process)

    monkeypatch.setattr(multiprocessing.process.BaseProcess, "start", watched)
    return found


def test_what_is_in_the_cache_starts_no_worker(started):
    compiled(doubling())
    assert started
    started.clear()
    assert compiled(doubling()).cached
    assert started == []


def test_three_schedules_start_at_most_three_workers(cache, started):
    option.parallel_workers(8)
    compiled(doubling())
    assert 0 < len(started) <= len(SCHEDULES) == len(programs(cache))


@pytest.mark.parametrize(("workers", "jobs", "started"), [(8, 3, [3]), (2, 3, [2]), (8, 0, [])])
def test_a_pool_has_no_more_workers_than_jobs(workers, jobs, started, monkeypatch):
    pools = []

    class Pool(concurrent.futures.ThreadPoolExecutor):
        def __init__(self, max_workers, mp_context):
            pools.append(max_workers)
            super().__init__(max_workers)

    monkeypatch.setattr(concurrent.futures, "ProcessPoolExecutor", Pool)
    option.parallel_workers(workers)
    assert utils.parallel_map(abs, range(jobs)) == list(range(jobs))
    assert pools == started


# -------------------------------------------------------------------------------------------------- specializations


class Transpiled:
    """Counts how often something is transpiled."""

    def __init__(self):
        self.count = 0

    def by(self, action):
        before = self.count
        action()
        return self.count - before


@pytest.fixture
def transpiled(monkeypatch) -> Transpiled:
    counter = Transpiled()
    transpiler = importlib.import_module("tilekit.lang.transpiler")
    transpile = transpiler.transpile

    def counted(*args, **kwargs):
        counter.count += 1
        return transpile(*args, **kwargs)

    monkeypatch.setattr(transpiler, "transpile", counted)
    return counter


@pytest.fixture
def folder(tmp_path, keys_only) -> Folder:
    return Folder(tmp_path)


def test_a_specialization_is_transpiled_once(folder, transpiled):
    assert transpiled.by(lambda: compiled(folder.load())) == 1
    assert transpiled.by(lambda: compiled(folder.load())) == 0


PARTS = {
    "user code": ("- 11.0", "- 12.0"),
    "a global": ("FACTOR = 2.0", "FACTOR = 4.0"),
    "a closure value": ("captured=5.0", "captured=6.0"),
    "an inherited method": ("return 3.0", "return 4.0"),
    "an external helper": ("value + 1.0", "value + 2.0"),
    "an input": ("block=128", "block=64"),
}


@pytest.mark.parametrize(("old", "new"), PARTS.values(), ids=PARTS)
def test_each_part_of_a_key_changes_the_program(folder, old, new):
    before = compiled(folder.load()).source
    folder.edit(old, new)
    assert compiled(folder.load()).source != before


@pytest.mark.parametrize(("old", "new"), PARTS.values(), ids=PARTS)
def test_a_key_covers(folder, old, new, transpiled):
    compiled(folder.load())
    assert transpiled.by(lambda: compiled(folder.load())) == 0
    folder.edit(old, new)
    assert transpiled.by(lambda: compiled(folder.load())) == 1


UNSUPPORTED = {
    "an opaque object": ("tile = tile + self.offset()", "tile = tile + opaque.value"),
    "an import": ("return value + 1.0", "import math; return value + math.floor(1.5)"),
    "reflection": ("tile + self.offset()", 'tile + getattr(self, "off" + "set")()'),
}


@pytest.mark.parametrize(("old", "new"), UNSUPPORTED.values(), ids=UNSUPPORTED)
def test_what_cannot_be_tracked_is_transpiled_again(folder, old, new, transpiled):
    compiled(folder.load())
    assert transpiled.by(lambda: compiled(folder.load())) == 0
    folder.edit(old, new)
    compiled(folder.load())
    assert transpiled.by(lambda: compiled(folder.load())) == 1


@pytest.mark.parametrize(("old", "new"), UNSUPPORTED.values(), ids=UNSUPPORTED)
def test_what_is_transpiled_again_still_finds_its_program(folder, old, new):
    folder.edit(old, new)
    assert not compiled(folder.load()).cached
    assert compiled(folder.load()).cached
