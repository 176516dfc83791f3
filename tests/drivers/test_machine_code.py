# SPDX-License-Identifier: Apache-2.0
"""PTX, the figures of ptxas and machine code: for who traces, and nobody else pays for it."""

import dataclasses
from pathlib import Path

import pytest

import tilekit as tilus
from tests.kernels.first import first_kernel
from tilekit import config, drivers, float32, int32, target
from tilekit.diag import ToolchainError
from tilekit.events import Edited, Null, Stage
from tilekit.runtime import machine_code
from tilekit.runtime.tensors import DeviceKind
from tilekit.toolchain import nvdisasm, nvrtc, toolkit
from tilekit.utils import cdiv

pytest.importorskip("cuda.bindings.nvrtc", reason="needs pip install 'tilekit[cuda]'")

needs_nvdisasm = pytest.mark.skipif(toolkit.nvdisasm() is None, reason="needs pip install nvidia-cuda-nvdisasm")
MACHINE = [Stage.PTX, Stage.PTXAS, Stage.SASS]


class Triple(tilus.Script):
    def __call__(self, n: int32, x_ptr: ~float32):
        self.attrs.blocks = [cdiv(n, 128)]
        self.attrs.warps = 1
        shared = self.shared_tensor(dtype=float32, shape=[128])
        g = self.global_view(x_ptr, dtype=float32, shape=[n])
        self.store_shared(shared, self.load_global(g, offsets=[self.blockIdx.x * 128], shape=[128]))
        self.sync()
        self.store_global(g, self.load_shared(shared) * 3.0, offsets=[self.blockIdx.x * 128])


@pytest.fixture(scope="module")
def program():
    return first_kernel(Triple(), (1000, tilus.spec(float32, (1000,))), "sm_80").program


@pytest.fixture
def settings(tmp_path: Path):
    return dataclasses.replace(config.resolve(), cache_dir=tmp_path)


class Tracer(Null):
    traces = True

    def __init__(self, edit=None):
        self.steps, self.notes, self.edit = [], {}, edit

    def end(self, stage, name, before, after, seconds):
        self.steps.append((stage, before, after, seconds))

    def note(self, key, value):
        self.notes[key] = value

    def codegen(self, text):
        return None if self.edit is None else Edited(self.edit(text), "a test")

    @property
    def stages(self):
        return [stage for stage, *_ in self.steps if stage in (*MACHINE, Stage.HOST)]

    def made(self, stage):
        return next(step for step in self.steps if step[0] is stage)


def build(program, device, settings, *sinks):
    return drivers.build_program(program, target.SM80, device, settings, sinks)


@pytest.mark.parametrize("device", [DeviceKind.CPU, DeviceKind.CUDA])
def test_an_ordinary_compile_makes_nothing_to_look_at(program, settings, device, monkeypatch):
    asked = []
    compile = nvrtc.compile
    monkeypatch.setattr(
        nvrtc, "compile", lambda *a, options, **k: asked.append(options) or compile(*a, options=options, **k)
    )
    monkeypatch.setattr(machine_code, "MachineCode", None)
    monkeypatch.setattr(drivers, "MachineCode", None)
    made = build(program, device, settings, Null())
    assert [options.keep_ptx for options in asked] == [False] * (device is DeviceKind.CUDA)
    assert not (settings.cache_dir / "pages").exists()
    assert not [name for name in made.entry.files if "ptx" in name]


def test_a_trace_of_a_kernel_for_a_gpu_has_the_ptx_of_its_compile_and_what_ptxas_said(program, settings, monkeypatch):
    monkeypatch.setattr(nvdisasm, "disassemble", None)
    tracer = Tracer()
    made = build(program, DeviceKind.CUDA, settings, tracer)
    assert tracer.stages == [Stage.PTX, Stage.PTXAS]
    _, source, ptx, seconds = tracer.made(Stage.PTX)
    assert source == made.source and ".visible .entry triple_kernel(" in ptx and 0 < seconds < 60
    _, before, after, seconds = tracer.made(Stage.PTXAS)
    assert before is after and before == ptx and 0 < seconds < 60
    figures = tracer.notes["ptxas"]
    assert (figures["registers"], figures["target"]) == (made.facts.registers, "sm_80")
    assert (figures["shared_bytes"], figures["spill_bytes"], figures["stack_bytes"]) == (512, 0, 0)
    assert (
        tracer.notes["absent"]["stage"] == "sass" and "TL_LOWER_TRACE_MACHINE_CODE=1" in tracer.notes["absent"]["help"]
    )


def test_a_trace_of_a_kernel_for_the_cpu_compiles_nothing_more_unless_it_is_asked_to(program, settings, monkeypatch):
    monkeypatch.setattr(nvrtc, "compile", None)
    tracer = Tracer()
    build(program, DeviceKind.CPU, settings, tracer)
    assert tracer.stages == [Stage.HOST]
    assert tracer.notes["absent"]["stage"] == "ptx" and "ptxas" not in tracer.notes


@needs_nvdisasm
def test_a_kernel_for_the_cpu_shows_the_machine_code_of_its_target_when_it_is_asked_for(program, settings, monkeypatch):
    asking = dataclasses.replace(settings, trace_machine_code=True)
    tracer = Tracer()
    build(program, DeviceKind.CPU, asking, tracer)
    assert tracer.stages == [Stage.HOST, *MACHINE]
    _, ptx, sass, _ = tracer.made(Stage.SASS)
    assert "mul.f32" in ptx and "FMUL" in sass and "absent" not in tracer.notes
    assert tracer.notes["ptxas"]["registers"] > 0

    # and then it is kept: no tool runs for who looks again
    monkeypatch.setattr(nvrtc, "compile", None)
    monkeypatch.setattr(nvdisasm, "disassemble", None)
    again = Tracer()
    build(program, DeviceKind.CPU, asking, again)
    assert again.stages == MACHINE
    assert [again.made(stage)[1:3] for stage in MACHINE] == [tracer.made(stage)[1:3] for stage in MACHINE]


@needs_nvdisasm
@pytest.mark.parametrize("device", [DeviceKind.CPU, DeviceKind.CUDA])
def test_the_machine_code_of_an_edit_is_that_of_the_edited_source(program, settings, device):
    asking = dataclasses.replace(settings, trace_machine_code=True)
    tracer = Tracer(lambda text: text.replace("3.0f", "5.0f"))
    build(program, device, asking, tracer)
    _, source, ptx, _ = [step for step in tracer.steps if step[0] is Stage.PTX][-1]
    assert "5.0f" in source and "0f40A00000" in ptx
    assert [step[0] for step in tracer.steps[-3:]] == MACHINE


def test_a_missing_tool_ends_the_trace_in_a_sentence_and_not_the_compile(program, settings, monkeypatch):
    def missing(*_, **__):
        raise ToolchainError("TK502", "NVRTC is not installed", help="pip install 'tilekit[cuda]'")

    monkeypatch.setattr(nvrtc, "compile", missing)
    tracer = Tracer()
    made = build(program, DeviceKind.CPU, dataclasses.replace(settings, trace_machine_code=True), tracer)
    assert made.source and tracer.stages == [Stage.HOST]
    said = {"stage": "ptx", "why": "NVRTC is not installed", "help": "pip install 'tilekit[cuda]'"}
    assert tracer.notes["absent"] == said


def test_source_that_is_for_the_cpu_alone_has_no_ptx_and_the_trace_says_why(program, settings):
    tracer = Tracer(
        lambda text: text.replace("{\n", "{\n  std::atexit(nullptr);\n", 1).replace("<tk", "<cstdlib>\n#include <tk")
    )
    build(program, DeviceKind.CPU, dataclasses.replace(settings, trace_machine_code=True), tracer)
    assert tracer.notes["absent"]["stage"] == "ptx" and "source.cu line" in tracer.notes["absent"]["why"]


@needs_nvdisasm
def test_a_kernel_shows_its_ptx_and_its_machine_code(program):
    handle = Triple()
    handle.compile(1000, tilus.spec(float32, (1000,)), device="cpu")
    assert handle.ptx == handle.last.ptx and "mul.f32" in handle.ptx
    assert handle.sass == handle.last.sass and "FMUL" in handle.sass
