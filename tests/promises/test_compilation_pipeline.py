# SPDX-License-Identifier: Apache-2.0
"""Compilation Pipeline."""

import re

import pytest

from tests.promises.due import due
from tests.promises.kernels import Memory, description, function, scaling, tile
from tilekit import config, drivers, option, target
from tilekit.backends import codegen
from tilekit.diag import VerificationError
from tilekit.events import Null, Stage
from tilekit.ir import tools
from tilekit.ir.prog import Program
from tilekit.ir.tools.verifier import verify
from tilekit.lowir.nodes import IRModule
from tilekit.runtime.tensors import DeviceKind
from tilekit.toolchain.host import HostCompiler
from tilekit.transforms import get_default_passes


class Watcher(Null):
    """Notes what begins, in order."""

    def __init__(self):
        self.seen: list[tuple[Stage, str]] = []

    def begin(self, stage: Stage, name: str, before: object):
        self.seen.append((stage, name))

    @property
    def stages(self) -> list[Stage]:
        found = [stage for stage, _ in self.seen]
        return [stage for i, stage in enumerate(found) if found[i - 1 : i] != [stage]]

    def names(self, wanted: Stage) -> list[str]:
        return [name for stage, name in self.seen if stage is wanted]


@pytest.fixture
def watcher():
    return Watcher()


@pytest.fixture
def program() -> Program:
    return scaling()._jit_instance_for(*description()).transpiled_programs[0]


def build(program, *sinks, device=DeviceKind.CPU):
    return drivers.build_program(program, target.SM80, device, config.resolve(), sinks)


def test_build_program_takes_six_steps_in_order(program, watcher, monkeypatch):
    build_kernel = HostCompiler.build_kernel

    def verified(prog):
        watcher.begin(Stage.VERIFY, "verify", prog)
        verify(prog)

    def compiled(compiler, *args, **kwargs):
        watcher.begin(Stage.HOST, "compile", args)
        return build_kernel(compiler, *args, **kwargs)

    monkeypatch.setattr(drivers, "verify", verified)
    monkeypatch.setattr(HostCompiler, "build_kernel", compiled)
    build(program, watcher)
    order = [Stage.VERIFY, Stage.TILE, Stage.LOWER, Stage.HIDET, Stage.CODEGEN, Stage.HOST]
    assert [stage for stage in watcher.stages if stage in order] == order


def test_a_program_that_breaks_a_rule_meets_no_pass(watcher):
    memory = Memory()
    func = function([memory.made, memory.store(tile())], memory.params)
    bad = Program.create({func.name: func})
    with pytest.raises(VerificationError):
        tools.verify(bad)
    with pytest.raises(VerificationError):
        build(bad, watcher)
    assert watcher.stages == [Stage.VERIFY]


def test_optimize_program_runs_the_default_passes(program, watcher):
    optimized = drivers.optimize_program(program, [watcher])
    assert watcher.names(Stage.TILE) == [each.name for each in get_default_passes()]
    for each in get_default_passes():
        program = each(program)
    assert str(optimized) == str(program)


def test_generate_ir_module_lowers_to_hidet_ir(program):
    lowered = codegen.generate_ir_module(drivers.optimize_program(program), target.SM80)
    assert isinstance(lowered.module, IRModule)
    assert type(lowered.module).__module__ == "hidet.ir.module"
    assert lowered.module.functions.keys() == {"scale_kernel"}


def test_optimize_ir_module_runs_passes_over_hidet_ir(program, watcher):
    lowered = codegen.generate_ir_module(drivers.optimize_program(program), target.SM80)
    assert isinstance(drivers.optimize_ir_module(lowered.module, [watcher]), IRModule)
    assert watcher.names(Stage.HIDET) != []
    assert {stage for stage, _ in watcher.seen} == {Stage.HIDET}


def test_the_source_is_cuda_c(program):
    source = build(program).source
    assert re.search(r'^extern "C" __global__ void .*\nscale_kernel\(int32_t n, ', source, re.MULTILINE)


def test_a_library_is_compiled_for_the_cpu(program):
    built = build(program)
    assert built.entry.files["module/lib.so"].startswith(b"\x7fELF")
    assert built.entry.path("module/lib.so").is_file()


@pytest.mark.nvcc
@due(7, "nvcc makes a cubin, and the launcher that export ships is not there yet")
def test_a_library_is_compiled_by_nvcc_for_whoever_asks(program):
    option.toolchain("nvcc")
    built = build(program, device=DeviceKind.CUDA)
    assert "module/lib.so" in built.entry.files
