# SPDX-License-Identifier: Apache-2.0
"""PTX and machine code of a compiled program, for people to look at; a kernel for the CPU has those of its target, too.

Nothing of it is made before somebody asks, and then it is kept beside the program. A machine without a GPU is enough.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property

from tilekit.config import Config
from tilekit.diag.errors import ToolchainError
from tilekit.events import Sink, Stage
from tilekit.runtime import builds, compiled
from tilekit.runtime.compiled import CompiledProgram
from tilekit.runtime.tensors import DeviceKind
from tilekit.target import Target
from tilekit.toolchain import binary, nvdisasm
from tilekit.toolchain.binary import Binary, Figures
from tilekit.toolchain.nvdisasm import Sass

_PTX, _SASS, _LOG = "kernel.ptx", "kernel.sass", "ptxas.txt"
_ON_REQUEST = {
    "why": "it takes about as long as the compile, and is made when it is asked for",
    "help": "tilekit.option.debug.trace_machine_code(), or TL_LOWER_TRACE_MACHINE_CODE=1 in the environment",
}


class MachineCode:
    """What the CUDA compiler makes of the source of a program.

    Each part raises `ToolchainError` where its tool is missing or refuses the source.
    """

    def __init__(self, program: CompiledProgram, target: Target, device: DeviceKind, config: Config) -> None:
        self.program = program
        self.target = target
        self.device = device
        self.config = config

    @property
    def compiler(self) -> str:
        """The name of the compiler that makes it."""
        return self.config.toolchain.value

    @cached_property
    def ptx(self) -> str:
        """The PTX; its `.loc` lines name lines of the source."""
        return self._kept(_PTX, lambda: self._binary.ptx or "")

    @cached_property
    def figures(self) -> Figures:
        """What ptxas says of the kernel."""
        if self.device is DeviceKind.CUDA:
            return binary.figures(self.program.entry.text(compiled.LOG))
        return binary.figures(self._kept(_LOG, lambda: self._binary.log))

    @cached_property
    def sass(self) -> Sass:
        """The machine code, each instruction with its line of the PTX."""
        return nvdisasm.parse(self._kept(_SASS, lambda: nvdisasm.disassemble(self._cubin)))

    def keep_ptx(self, ptx: str) -> None:
        """Take the PTX of the program from whoever has compiled it."""
        self.ptx = self._kept(_PTX, lambda: ptx)

    def tell(self, sink: Sink, *, is_asked: bool = True, is_ptx_told: bool = False) -> None:
        """Tell a sink of PTX, what ptxas says of it, and machine code; why there is none is a note.

        Without `is_asked`, only what costs nothing is told.
        """

        def say(stage: Stage, name: str, before: str, after: str, seconds: float, **notes: object) -> None:
            sink.begin(stage, name, before)
            for key, value in notes.items():
                sink.note(key, value)
            sink.end(stage, name, before, after, max(0.0, seconds))

        if not (is_ptx_told or is_asked):
            if self.device is DeviceKind.CUDA:
                sink.note("ptxas", self._told())
            sink.note("absent", {"stage": Stage.PTX.value, **_ON_REQUEST})
            return
        stage, start = Stage.PTX, time.perf_counter()
        try:
            ptx, figures = self.ptx, self.figures
            if not is_ptx_told:
                say(stage, self.compiler, self.program.source, ptx, time.perf_counter() - start - figures.seconds)
            say(Stage.PTXAS, "ptxas", ptx, ptx, figures.seconds, ptxas=self._told())
            stage, start = Stage.SASS, time.perf_counter()
            if not is_asked:
                sink.note("absent", {"stage": stage.value, **_ON_REQUEST})
                return
            sass = self.sass
            say(stage, "nvdisasm", ptx, sass.text, time.perf_counter() - start, sass=sass)
        except ToolchainError as error:
            sink.note("absent", {"stage": stage.value, "why": error.message, "help": error.diagnostic.help})

    def _told(self) -> dict[str, object]:
        """What ptxas says of the kernel, with all of its shared memory."""
        figures = self.figures
        return {
            "target": self.target.name,
            "registers": figures.registers,
            "shared_bytes": figures.shared_bytes + self.program.manifest.shared_bytes,
            "spill_bytes": figures.spill_bytes,
            "stack_bytes": figures.stack_bytes,
        }

    @property
    def _cubin(self) -> bytes:
        """That which runs, if it was made from these lines of PTX: that of an edit has a mark in it."""
        runs = self.device is DeviceKind.CUDA and not self.program.patched
        return self.program.entry.files[compiled.CUBIN] if runs else self._binary.cubin

    @cached_property
    def _binary(self) -> Binary:
        return builds.compile_cuda(self.program.source, self.target, self.config, keep_ptx=True)

    def _kept(self, name: str, make: Callable[[], str]) -> str:
        by = compiled.toolchain_identity(DeviceKind.CUDA, self.config)
        optimized = str(not self.config.disable_ptxas_opt)
        return self.program.page(name, self.config, make, {"by": by, "ptxas_optimization": optimized})
