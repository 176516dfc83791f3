# SPDX-License-Identifier: Apache-2.0
"""PTX and machine code of a compiled program, for people to look at; a kernel for the CPU has those of its target, too.

Nothing of it is made before somebody asks, and then it is kept beside the program. A machine without a GPU is enough.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from tilekit.config import Config, Toolchain
from tilekit.cpusim.build import INCLUDE
from tilekit.runtime import compiled
from tilekit.runtime.compiled import CompiledProgram
from tilekit.runtime.tensors import DeviceKind
from tilekit.target import Target
from tilekit.toolchain import binary, nvcc, nvdisasm, nvrtc
from tilekit.toolchain.binary import Binary, Figures, Options
from tilekit.toolchain.nvdisasm import Sass

_PTX, _SASS, _LOG = "kernel.ptx", "kernel.sass", "ptxas.txt"


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

    @property
    def _cubin(self) -> bytes:
        """That which runs, if it was made from these lines of PTX: that of an edit has a mark in it."""
        runs = self.device is DeviceKind.CUDA and not self.program.patched
        return self.program.entry.files[compiled.CUBIN] if runs else self._binary.cubin

    @cached_property
    def _binary(self) -> Binary:
        module = nvcc if self.config.toolchain is Toolchain.NVCC else nvrtc
        return module.compile(
            self.program.source, self.target, include=INCLUDE, options=options(self.config, keep_ptx=True)
        )

    def _kept(self, name: str, make: Callable[[], str]) -> str:
        by = compiled.toolchain_identity(DeviceKind.CUDA, self.config)
        optimized = str(not self.config.disable_ptxas_opt)
        return self.program.page(name, self.config, make, {"by": by, "ptxas_optimization": optimized})


def options(config: Config, *, keep_ptx: bool = False) -> Options:
    """How a CUDA compiler is called."""
    return Options(config.cache_dir / "headers", not config.disable_ptxas_opt, keep_ptx)
