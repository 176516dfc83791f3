# SPDX-License-Identifier: Apache-2.0
"""Kernels whose generated source, or tile IR after a pass, somebody has edited in a file."""

import contextlib
import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch

import tilekit
from tests.caches import new_cache
from tilekit import config, drivers, float32, int32
from tilekit.cache import programs
from tilekit.diag import TilekitError, ToolchainError
from tilekit.jit import observer
from tilekit.jit.kernel import Kernel
from tilekit.jit.observer import Identity
from tilekit.runtime import compiled, edited
from tilekit.runtime.tensors import DeviceKind
from tilekit.target import SM90A
from tilekit.tools.lower_trace.edit_sink import EditSink
from tilekit.tools.lower_trace.edit_table import Policy
from tilekit.tools.lower_trace.edits import EditConflict, EditStore


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = new_cache(tmp_path_factory.mktemp("edited") / "cache")
    tilekit.option.cache_dir(folder)
    yield folder
    config.clear_session_defaults()


@dataclass
class Trace:
    """Runs that keep what they generate where people edit it."""

    root: Path
    policy: Policy = Policy.REGENERATE
    said: list[str] = field(default_factory=list[str])
    sinks: list[EditSink] = field(default_factory=list[EditSink])

    @contextmanager
    def on(self) -> Iterator[None]:
        """A run: what was said and decided before is forgotten."""
        store = EditStore(self.root)
        self.said, self.sinks = [], []

        def sink(kernel: Identity) -> EditSink:
            self.sinks.append(EditSink(store.folder(kernel), self.policy, say=self.said.append))
            return self.sinks[-1]

        observer.listen(sink)
        try:
            yield
        finally:
            observer.unlisten(sink)

    @property
    def working(self) -> Path:
        return self.root / "codegen.cpp"

    def tile(self, name: str) -> Path:
        """The working copy behind the tile pass of this name."""
        (found,) = self.root.glob(f"ir/??_{name}.tir")
        return found


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    return Trace(tmp_path / "traced")


def times(factor: float, name: str = "Times") -> tilekit.InstantiatedScript:
    """What running a cell again does: a new class of the same name."""

    class Times(tilekit.Script):
        def __call__(self, n: int32, x_ptr: ~float32):
            self.attrs.blocks = [1]
            self.attrs.warps = 4
            g = self.global_view(x_ptr, dtype=float32, shape=[n])
            x = self.load_global(g, offsets=[0], shape=[128])
            self.store_global(g, x * factor, offsets=[0])

    Times.__name__ = Times.__qualname__ = name
    return Times()


def ran(trace: Trace | None, factor: float = 2.0, name: str = "Times") -> tuple[Kernel, float]:
    """The kernel of a new run, and what it makes of 1."""
    handle = times(factor, name)
    x = torch.ones(100)
    with contextlib.nullcontext() if trace is None else trace.on():
        handle(100, x)
    return handle.last, float(x[0])


def edit(file: Path, old: str, new: str) -> str:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    return file.read_text()


# ----------------------------------------------------------------------------------------------------- the source


def test_case_17_an_edited_kernel_runs_and_says_so(trace: Trace) -> None:
    kernel, value = ran(trace)
    assert (value, kernel.patched, kernel.edit_state) == (2.0, False, "clean")
    factor = float(random.randint(3, 90))
    text = edit(trace.working, "2.0f", f"{factor}f")
    kernel, value = ran(trace)
    assert (value, kernel.patched, kernel.edit_state, kernel.source) == (factor, True, "PATCHED", text)
    assert "PATCHED" in kernel.summary()
    assert trace.said == [f"PATCHED from {trace.working}"]


@pytest.mark.parametrize(
    ("factor", "policy", "state", "patched"),
    [
        (5.0, Policy.REGENERATE, "CONFLICT", False),
        (5.0, Policy.KEEP, "KEPT", True),
        (7.0, Policy.REGENERATE, "clean", False),  # just what was typed
    ],
)
def test_case_19_20_24_a_kernel_says_what_became_of_an_edit(
    trace: Trace, factor: float, policy: Policy, state: str, patched: bool
) -> None:
    ran(trace)
    trace.working.write_text(ran(None, 7.0)[0].source)
    trace.policy = policy
    kernel, value = ran(trace, factor)
    assert (value, kernel.patched, kernel.edit_state) == (7.0 if patched else factor, patched, state)
    assert (state in kernel.summary()) == (state != "clean")
    assert kernel.metadata["edit_state"] == state


def test_case_22_a_kernel_is_compiled_from_the_merged_text(trace: Trace) -> None:
    ran(trace)
    edit(trace.working, "#include <tk/tk.h>", "// seen by a person\n#include <tk/tk.h>")
    trace.policy = Policy.MERGE
    kernel, value = ran(trace, 5.0)
    assert (value, kernel.patched, kernel.edit_state) == (5.0, True, "MERGED")
    assert kernel.source.startswith("// seen by a person") and "5.0f" in kernel.source


def test_case_25_a_conflict_that_is_an_error_compiles_nothing(trace: Trace) -> None:
    ran(trace)
    typed = edit(trace.working, "2.0f", "7.0f")
    trace.policy = Policy.ERROR
    with pytest.raises(EditConflict, match=str(trace.working)):
        ran(trace, 5.0)
    assert trace.working.read_text() == typed


def compile_for(trace: Trace, device: DeviceKind) -> compiled.CompiledProgram:
    """A compile for a device that need not be here."""
    handle = times(2.0)
    handle.compile(128, tilekit.spec(float32, (128,)))
    program = handle.last.program
    with trace.on():
        identity = Identity("Times", "", "sm_90a", device.value)
        with observer.listening(identity, cached=False) as sinks:
            return drivers.build_program(program, SM90A, device, config.resolve(), sinks)


@pytest.mark.parametrize("device", [DeviceKind.CPU, DeviceKind.CUDA], ids=lambda device: device.value)
def test_case_46_what_the_compiler_refuses_is_named_by_file_and_line(trace: Trace, device: DeviceKind) -> None:
    compile_for(trace, device)
    file = trace.working
    text = edit(file, "2.0f", "nothing_of_this_name")
    file.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    line = next(number for number, line in enumerate(text.split("\n"), 1) if "nothing_of_this_name" in line)
    with pytest.raises(ToolchainError) as caught:
        compile_for(trace, device)
    assert f"{file} line {line}: " in str(caught.value)
    assert (str(file), line) in [(found.file, found.line) for found in caught.value.data["messages"]]
    assert f"PATCHED from {file}" in trace.said


@pytest.mark.parametrize("device", [DeviceKind.CPU, DeviceKind.CUDA], ids=lambda device: device.value)
def test_case_47_the_binary_of_an_edit_carries_its_mark(trace: Trace, device: DeviceKind) -> None:
    name = {DeviceKind.CPU: compiled.LIBRARY, DeviceKind.CUDA: compiled.CUBIN}[device]
    assert b"tilekit: patched" not in compile_for(trace, device).entry.files[name]
    file = trace.working
    text = edit(file, "2.0f", "7.0f")
    assert edited.mark(text).encode() in compile_for(trace, device).entry.files[name]


def test_case_47_an_edit_is_in_the_cache_for_nobody_but_its_author(trace: Trace) -> None:
    ran(trace)
    edit(trace.working, "2.0f", "7.0f")
    first, value = ran(trace)
    assert (value, first.metadata["patched"]) == (7.0, True)
    other, value = ran(None)
    assert (value, other.metadata["patched"], other.edit_state) == (2.0, False, "clean")
    again, value = ran(trace)
    assert (value, again.metadata["patched"], again.cached) == (7.0, True, True)
    assert again.metadata["edited"] == str(trace.working)
    assert first.compiled.entry.key == again.compiled.entry.key != other.compiled.entry.key


def test_case_48_an_edit_of_one_kernel_is_none_of_another(trace: Trace) -> None:
    names = ["First", "Second"]
    run_both(trace, names)
    (file,) = trace.root.glob("Second-*/codegen.cpp")
    edit(file, "2.0f", "7.0f")
    for _ in range(3):
        first, second = run_both(trace, names)
        assert (first[1], first[0].edit_state) == (2.0, "clean")
        assert (second[1], second[0].edit_state) == (7.0, "PATCHED")
        assert trace.said == [f"PATCHED from {file}"]


@pytest.mark.parametrize("policy", list(Policy), ids=lambda policy: policy.value)
def test_an_edit_of_a_class_is_none_of_one_that_encloses_another_value(trace: Trace, policy: Policy) -> None:
    trace.policy = policy
    run_factors(trace, [2.0, 3.0])
    (beside,) = trace.root.glob("Times-*/codegen.cpp")
    first, second = random.sample(range(4, 90), 2)
    edit(trace.working, "2.0f", f"{first}.0f")
    assert run_factors(trace, [2.0, 3.0]) == {2.0: first, 3.0: 3.0}
    edit(beside, "3.0f", f"{second}.0f")
    for factors in ([2.0, 3.0], [3.0, 2.0], [3.0], [3.0, 2.0, 4.0]):
        expected = {2.0: first, 3.0: second, 4.0: 4.0}
        assert run_factors(trace, factors) == {factor: expected[factor] for factor in factors}
    assert not list(trace.root.rglob("*.bak"))


def test_an_edit_of_a_class_is_none_of_one_that_encloses_another_function(trace: Trace) -> None:
    def two() -> float:
        return 2.0

    def three() -> float:
        return 3.0

    def both() -> list[float]:
        values = list[float]()
        with trace.on():
            for factor in (two, three):
                x = torch.ones(100)
                asking(factor)(100, x)
                values.append(float(x[0]))
        return values

    assert both() == [2.0, 3.0]
    edit(trace.working, "2.0f", "7.0f")
    assert both() == both() == [7.0, 3.0]


def asking(factor: Callable[[], float]) -> tilekit.InstantiatedScript:
    class Asking(tilekit.Script):
        def __call__(self, n: int32, x_ptr: ~float32):
            self.attrs.blocks = [1]
            self.attrs.warps = 4
            g = self.global_view(x_ptr, dtype=float32, shape=[n])
            self.store_global(g, self.load_global(g, offsets=[0], shape=[128]) * factor(), offsets=[0])

    return Asking()


def run_factors(trace: Trace, factors: list[float]) -> dict[float, float]:
    """What classes of one name make of 1 in one run, by what each encloses."""
    found = dict[float, float]()
    with trace.on():
        for factor in factors:
            x = torch.ones(100)
            times(factor)(100, x)
            found[factor] = float(x[0])
    return found


def run_both(trace: Trace, names: list[str]) -> list[tuple[Kernel, float]]:
    """Two kernels in one run."""
    found: list[tuple[Kernel, float]] = []
    with trace.on():
        for name in names:
            handle, x = times(2.0, name), torch.ones(100)
            handle(100, x)
            found.append((handle.last, float(x[0])))
    return found


def test_case_49_a_file_that_was_only_touched_changes_nothing(trace: Trace) -> None:
    before, _ = ran(trace)
    os.utime(trace.working)
    edit(trace.working, "\n", "\r\n")
    after, value = ran(trace)
    assert (value, after.edit_state, trace.said) == (2.0, "clean", [])
    assert after.compiled.entry.key == before.compiled.entry.key
    assert after.compiled.entry.files[compiled.LIBRARY] == before.compiled.entry.files[compiled.LIBRARY]


def test_case_50_an_edit_is_spoken_of_each_time_and_used_only_where_it_is_traced(trace: Trace) -> None:
    ran(trace)
    edit(trace.working, "2.0f", "7.0f")
    for _ in range(3):
        ran(trace)
        assert trace.said == [f"PATCHED from {trace.working}"]
        assert ran(None)[1] == 2.0


# ---------------------------------------------------------------------------------------- the tile IR after a pass


def test_case_51_the_passes_go_on_with_an_edited_program(trace: Trace) -> None:
    ran(trace)
    file = trace.tile("layout_inference")
    factor = float(random.randint(3, 90))
    text = edit(file, "f32(2.0)", f"f32({factor})")
    kernel, value = ran(trace)
    assert (value, kernel.patched, kernel.edit_state) == (factor, True, "PATCHED")
    assert trace.said[0] == f"PATCHED from {file}"
    assert kernel.metadata["edited_passes"] == (file.stem,)
    assert f"{factor}f" in kernel.source
    # what comes later saw the edit, what came before did not
    assert f"f32({factor})" in trace.tile("lower_load_store").read_text()
    assert "f32(2.0)" in trace.tile("analyze_scalar").read_text()
    steps = {step.name: step for step in kernel.trace.steps}
    assert steps["edit_of_layout_inference"].after_text.strip() == text.strip()


def test_case_51_the_key_holds_the_edited_program(trace: Trace) -> None:
    ran(trace)
    file = trace.tile("layout_inference")
    keys = set[str]()
    for factor in (3.0, 4.0, 3.0):
        file.write_text(file.with_name(f"{file.name}.original").read_text().replace("f32(2.0)", f"f32({factor})"))
        kernel, value = ran(trace)
        assert value == factor
        assert b"tilekit: patched" in kernel.compiled.entry.files[compiled.LIBRARY]
        assert f"edited = edits/{file.name}\n" in kernel.compiled.entry.text(programs.OPTIONS)
        keys.add(kernel.compiled.entry.key)
    assert len(keys) == 2 and kernel.cached
    assert ran(None)[1] == 2.0


def test_case_51_a_text_that_does_not_parse_is_named_by_line_and_column(trace: Trace) -> None:
    ran(trace)
    file = trace.tile("layout_inference")
    edit(file, "mul(x, t)", "mul(x, nothing)")
    line = next(number for number, line in enumerate(file.read_text().split("\n"), 1) if "nothing" in line)
    kernel, value = ran(trace)
    assert (value, kernel.patched, kernel.edit_state) == (2.0, False, "UNREADABLE")
    said, shown, caret = trace.said
    column = shown.index("nothing") - 3
    assert said.startswith(f"UNREADABLE {file} does not parse: line {line}, column {column}: ")
    assert "delete the file to go back" in said and "edit UNREADABLE" in kernel.summary()
    assert caret.index("^") == shown.index("nothing")


def test_case_51_a_program_that_breaks_a_rule_is_an_error_that_names_the_file(trace: Trace) -> None:
    ran(trace)
    file = trace.tile("layout_inference")
    edit(file, "warps=4", "warps=2")
    with pytest.raises(TilekitError) as caught:
        ran(trace)
    assert str(file) in str(caught.value) and "delete the file to go back" in str(caught.value)
    file.unlink()
    assert ran(trace)[1] == 2.0


@pytest.mark.parametrize(
    ("policy", "value", "state"),
    [(Policy.REGENERATE, 5.0, "CONFLICT"), (Policy.KEEP, 7.0, "KEPT"), (Policy.MERGE, 5.0, "MERGED")],
)
def test_case_51_an_edited_program_has_the_table_of_an_edited_source(
    trace: Trace, policy: Policy, value: float, state: str
) -> None:
    ran(trace)
    file = trace.tile("layout_inference")
    if policy is Policy.MERGE:
        edit(file, "def times(", "# seen by a person\ndef times(")
    else:
        edit(file, "f32(2.0)", "f32(7.0)")
    trace.policy = policy
    kernel, found = ran(trace, 5.0)
    assert (found, kernel.edit_state) == (value, state)
    assert any(line.startswith(f"{state} ") and str(file) in line for line in trace.said)
    assert (file.with_name(f"{file.name}.bak").exists()) == (policy is not Policy.KEEP)


def test_case_51_an_edited_program_keeps_the_places_of_the_cell(trace: Trace) -> None:
    kernel, _ = ran(trace)
    edit(trace.tile("layout_inference"), "f32(2.0)", "f32(7.0)")
    edited, _ = ran(trace)
    line = next(number for number, text in enumerate(edited.source.split("\n"), 1) if "7.0f" in text)
    assert edited.span_of_line(line) == kernel.span_of_line(line) is not None


@pytest.mark.parametrize("parameters", ["n: i32, m: i32, ", "m: i64, ", ""])
def test_case_51_an_edited_program_is_called_as_before(trace: Trace, parameters: str) -> None:
    ran(trace)
    file = trace.tile("layout_inference")
    edit(file, "n: i32, ", parameters)
    edit(file, "f32[n]", "f32[i32(100)]")
    with pytest.raises(TilekitError) as caught:
        ran(trace)
    said = str(caught.value)
    assert "cannot be called in place of times(int32, ~float32)" in said and str(file) in said


def test_case_51_a_conflict_of_an_edited_program_may_be_an_error(trace: Trace) -> None:
    ran(trace)
    file = trace.tile("layout_inference")
    edit(file, "f32(2.0)", "f32(7.0)")
    trace.policy = Policy.ERROR
    with pytest.raises(EditConflict) as caught:
        ran(trace, 5.0)
    assert f"{file} was edited, and what layout_inference made has changed since" in str(caught.value)
    assert "f32(7.0)" in file.read_text()


def test_case_51_a_merge_that_does_not_parse_is_a_conflict(trace: Trace) -> None:
    ran(trace)
    file = trace.tile("layout_inference")
    edit(file, "@kernel(", "@colonel(")
    trace.policy = Policy.MERGE
    kernel, value = ran(trace, 5.0)
    assert (value, kernel.patched, kernel.edit_state) == (5.0, False, "CONFLICT")
    both = file.with_name(f"{file.name}.conflict").read_text()
    assert "@colonel(" in both and "f32(5.0)" in both
    assert "@colonel(" in file.with_name(f"{file.name}.bak").read_text()
