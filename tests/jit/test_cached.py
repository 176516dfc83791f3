# SPDX-License-Identifier: Apache-2.0
"""What a change costs: which of the three stores misses, and that an error still names the line as it is now."""

import linecache
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from tests.caches import in_force, new_cache
from tests.promises.processes import Copy
from tilekit import cache as caches
from tilekit import config, option
from tilekit.cache import fingerprint
from tilekit.cache.fingerprint import stages
from tilekit.diag import KernelError
from tilekit.runtime import launch_cpu
from tilekit.toolchain.host import HostCompiler, require_compiler

HELPERS = """\
def larger(value):
    return value + 1.0
"""

KERNEL = """\
import cached_helpers
import tilekit
from tilekit import float32, int32
from tilekit.utils import cdiv

FACTOR = 2.0
UNRELATED = 1


class Base(tilekit.Script):
    def offset(self):
        return 3.0


def script(block=128, captured=5.0):
    class Scale(Base):
        def __init__(self, block):
            super().__init__()
            self.block = block

        def __call__(self, n: int32, x: ~float32, y: ~float32):
            self.attrs.blocks = [cdiv(n, self.block)]
            self.attrs.warps = 1
            self.assume(n > 0 and n % 4 == 0)
            start = self.blockIdx.x * self.block
            gx = self.global_view(x, dtype=float32, shape=[n])
            gy = self.global_view(y, dtype=float32, shape=[n + 4000000])
            tile = self.load_global(gx, offsets=[start], shape=[self.block])
            tile = tile * FACTOR + captured - 11.0
            tile = tile + self.offset() + cached_helpers.larger(10.0)
            self.store_global(gy, tile, offsets=[start + 3000000])  # planted

    return Scale(block)
"""


class Files:
    """The kernel and its helper as files; every load is what a new process would see."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.texts = {"cached_helpers": HELPERS, "cached_kernel": KERNEL}

    def replace(self, old: str, new: str) -> None:
        (name,) = (name for name, text in self.texts.items() if old in text)
        assert self.texts[name].count(old) == 1
        self.texts[name] = self.texts[name].replace(old, new)

    def load(self):
        try:
            for name, text in self.texts.items():
                module = sys.modules[name] = ModuleType(name)
                module.__file__ = str(self.folder / f"{name}.py")
                Path(module.__file__).write_text(text)
                linecache.cache.pop(module.__file__, None)
                exec(compile(text, module.__file__, "exec"), module.__dict__)
            return module.script()
        finally:
            for name in self.texts:
                sys.modules.pop(name, None)

    @property
    def planted_line(self) -> int:
        lines = self.texts["cached_kernel"].splitlines()
        return next(number for number, line in enumerate(lines, 1) if line.endswith("# planted"))


@pytest.fixture(scope="module")
def compiler(tmp_path_factory) -> Copy:
    return Copy(tmp_path_factory.mktemp("compiler"))


@pytest.fixture(scope="module")
def filled(tmp_path_factory, compiler) -> Path:
    """A cache in which the kernel is, to be copied."""
    folder = new_cache(tmp_path_factory.mktemp("filled") / "cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fingerprint, "compiler", lambda root: stages(compiler.package, root))
        option.cache_dir(folder)
        run(Files(tmp_path_factory.mktemp("files")))
    config.clear_session_defaults()
    return folder


@pytest.fixture
def cache(tmp_path, filled, compiler, monkeypatch):
    monkeypatch.setattr(fingerprint, "compiler", lambda root: stages(compiler.package, root))
    # one worker runs the kernels of all these caches
    device = launch_cpu.cpu_device(filled, require_compiler())
    monkeypatch.setattr(launch_cpu, "cpu_device", lambda root, compiler: device)
    folder = tmp_path / "cache"
    shutil.copytree(filled, folder, symlinks=True)
    with in_force(folder):
        yield folder


@pytest.fixture
def files(tmp_path) -> Files:
    return Files(tmp_path)


def run(files: Files, target: str | None = None):
    """Run the kernel into its planted error; it must name the line where the file has it now."""
    handle = files.load()
    handle.use_target(target)
    x, y = torch.randn(100), torch.empty(100)
    with pytest.raises(KernelError) as caught:
        handle(100, x, y)
    error = caught.value
    location = error.sources.locate(error.diagnostic.at)
    assert (Path(location.filename).name, location.line) == ("cached_kernel.py", files.planted_line), error.to_text()
    return handle


def entries(cache: Path) -> list[set[str]]:
    """The keys in `scripts/`, `programs/` and `specializations/`."""
    patterns = ("scripts/*/*", "programs/*", "specializations/*")
    return [{path.name for path in cache.glob(pattern)} for pattern in patterns]


def misses(cache: Path, before: list[set[str]]) -> tuple[int, ...]:
    return tuple(len(now - then) for now, then in zip(entries(cache), before, strict=True))


SCRIPT_CHANGES = {
    "a constant": ("- 11.0", "- 12.0"),
    "a schedule value": ("block=128", "block=64"),
    "a helper": ("value + 1.0", "value + 2.0"),
    "a global": ("FACTOR = 2.0", "FACTOR = 4.0"),
    "a closure value": ("captured=5.0", "captured=6.0"),
    "an inherited method": ("return 3.0", "return 4.0"),
}


@pytest.mark.parametrize("change", SCRIPT_CHANGES)
def test_a_change_of_what_the_kernel_means_misses_everywhere(cache, files, change):
    before = entries(cache)
    files.replace(*SCRIPT_CHANGES[change])
    handle = files.load()
    said = caches.explain(handle, 100, torch.empty(100), torch.empty(100))
    assert not said.hit and not said.transpiled and not said.compiled
    assert EXPLAINED[change] in str(said)
    assert not run(files).last.cached
    assert misses(cache, before) == (1, 1, 1)


EXPLAINED = {
    "a constant": "changed: function Scale.__call__",
    "a schedule value": "'block': int 128]] → list [dict [str 'block': int 64]]",
    "a helper": "changed: function larger",
    "a global": "changed: global FACTOR: float 2.0 → float 4.0",
    "a closure value": "changed: closure value captured: float 5.0 → float 6.0",
    "an inherited method": "changed: function Base.offset",
}


SPACE_CHANGES = {
    "nothing": ("UNRELATED = 1", "UNRELATED = 1"),
    "a comment in unrelated code": ("UNRELATED = 1", "UNRELATED = 1  # as ever"),
    "unrelated code": ("UNRELATED = 1", "UNRELATED = 2"),
    "a blank line above the kernel": ("class Base(", "\n\n\nclass Base("),
    "a comment in the kernel": ("            start =", "            # where the block begins\n\n            start ="),
}


@pytest.mark.parametrize("change", SPACE_CHANGES)
def test_what_means_nothing_misses_nowhere(cache, files, change):
    before = entries(cache)
    files.replace(*SPACE_CHANGES[change])
    assert caches.explain(files.load(), 100, torch.empty(100), torch.empty(100)).hit
    assert run(files).last.cached
    assert misses(cache, before) == (0, 0, 0)


def test_a_kernel_moved_to_another_file_misses_nowhere(cache, files, tmp_path):
    before = entries(cache)
    files.folder = tmp_path / "elsewhere"
    files.folder.mkdir()
    assert run(files).last.cached
    assert misses(cache, before) == (0, 0, 0)


COMPILER_CHANGES = {
    "lang/transpiler.py": (1, 0, 1),
    "ir/text/printer.py": (1, 1, 1),
    "backends/emitters/cuda/memory.py": (0, 1, 0),
    "include/tk/tk.h": (0, 1, 0),
    "transforms/dead_code_elimination.py": (0, 1, 0),
    "notebook/magic.py": (0, 0, 0),
}


@pytest.mark.parametrize(("file", "expected"), COMPILER_CHANGES.items(), ids=COMPILER_CHANGES)
def test_a_change_of_the_compiler_misses_where_its_stage_ends(cache, files, compiler, file, expected):
    before, place = entries(cache), compiler.package / file
    text = place.read_text() if place.exists() else None
    try:
        compiler.edit(file)
        said = caches.explain(files.load(), 100, torch.empty(100), torch.empty(100))
        assert (said.transpiled, said.compiled) == (not expected[2], not expected[1])
        assert ("the compiler's front end" in str(said)) == bool(expected[2])
        assert ("the compiler's back end" in str(said)) == bool(expected[1])
        run(files)
        assert misses(cache, before) == expected
    finally:
        place.unlink() if text is None else place.write_text(text)


def test_another_version_of_the_toolchain_misses_in_programs_alone(cache, files, monkeypatch):
    before = entries(cache)
    identity = HostCompiler.identity.fget
    monkeypatch.setattr(HostCompiler, "identity", property(lambda compiler: f"{identity(compiler)} newer"))
    said = caches.explain(files.load(), 100, torch.empty(100), torch.empty(100))
    assert said.transpiled and not said.compiled and "changed: the toolchain" in str(said)
    run(files)
    assert misses(cache, before) == (0, 1, 0)


def test_another_target_misses_in_scripts_and_programs(cache, files):
    before = entries(cache)
    said = caches.explain(files.load(), 100, torch.empty(100), torch.empty(100), target="sm_80")
    assert "changed: target: sm_90a → sm_80" in str(said)
    run(files, target="sm_80")
    assert misses(cache, before) == (1, 1, 0)


def test_another_option_misses_in_programs_alone(cache, files):
    before = entries(cache)
    option.debug.disable_ptxas_opt()
    assert "changed: ptxas_optimization: True → False" in str(
        caches.explain(files.load(), 100, torch.empty(100), torch.empty(100))
    )
    run(files)
    assert misses(cache, before) == (0, 1, 0)


UNTRACKED = {
    "an opaque object": ("captured=5.0):", "captured=5.0, lock=__import__('threading').Lock()):", "an object of type"),
    "an import in a helper": ("return value + 1.0", "import math; return value + math.floor(1.5)", "imports"),
    "reflection": ("self.offset()", 'getattr(self, "off" + "set")()', "calls getattr"),
}


@pytest.mark.parametrize("change", UNTRACKED)
def test_what_cannot_be_tracked_is_transpiled_again_and_still_finds_its_program(cache, files, change):
    old, new, reason = UNTRACKED[change]
    files.replace(old, new)
    if change == "an opaque object":
        files.replace("captured - 11.0", "captured - (11.0 if lock else 0.0)")
    before = entries(cache)
    said = caches.explain(files.load(), 100, torch.empty(100), torch.empty(100))
    assert said.untracked is not None and reason in said.untracked and said.compiled
    assert "transpiled in every process" in str(said) and not said.hit
    for _ in range(2):
        assert run(files).last.cached
    assert misses(cache, before)[1:] == (0, 0)


def test_a_call_with_everything_cached_needs_no_transpiler(cache, files, monkeypatch):
    monkeypatch.setitem(sys.modules, "tilekit.lang.transpiler", None)
    monkeypatch.setitem(sys.modules, "tilekit.drivers", None)
    monkeypatch.setitem(sys.modules, "tilekit.ir.tools.assumptions", None)
    assert run(files).last.cached
    with pytest.raises(KernelError, match=r"TK706 .*, line \d+"):
        files.load()(99, torch.empty(100), torch.empty(100))


def test_check_mode_of_a_cached_kernel_needs_no_compiler_of_tiles(cache, files, monkeypatch):
    monkeypatch.setitem(sys.modules, "tilekit.drivers", None)
    last = run(files).last
    assert last.cached
    with pytest.raises(KernelError, match=r"TK702 .*, line \d+"):
        last.check()


def test_damage_anywhere_is_at_most_a_compile(cache, files):
    reference = run(files).last.source
    for folder in ("specializations", "programs", "compiler", "scripts"):
        for place in sorted(path for path in (cache / folder).rglob("*") if path.is_file()):
            content = place.read_bytes()
            place.write_bytes(content[: len(content) // 2])
        assert run(files).last.source == reference
    for place in sorted((cache / "specializations").glob("*/*")):
        place.write_bytes((cache / "specializations").glob("*/*.txt").__next__().read_bytes())
    assert run(files).last.source == reference
    assert run(files).last.cached


def test_a_cache_that_cannot_be_written_runs_every_kernel(files, tmp_path, cache, monkeypatch):
    (tmp_path / "file").write_text("")
    option.cache_dir(tmp_path / "file" / "cache")
    with pytest.warns(UserWarning, match="TK911"):
        assert not run(files).last.cached


def test_a_page_about_a_compile_is_made_once(cache, files, monkeypatch):
    made = []

    def make(recorder):
        made.append(len(recorder.steps))
        return "what the passes did"

    kernel = run(files).last
    assert [kernel.page("a.html", make) for _ in range(2)] == ["what the passes did"] * 2
    assert len(made) == 1 and made[0] > 5
    monkeypatch.setitem(sys.modules, "tilekit.drivers", None)
    assert run(files).last.page("a.html", make) == "what the passes did"
    assert len(made) == 1
