# SPDX-License-Identifier: Apache-2.0
"""What a kernel is compiled for, and what the cache has for it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tilekit.config import Config
from tilekit.runtime import compiled
from tilekit.runtime.tensors import Device, DeviceKind
from tilekit.target import Target

if TYPE_CHECKING:
    from tilekit.runtime.compiled import CompiledProgram
    from tilekit.transforms.custom import Pipeline


@dataclass(frozen=True)
class Machine:
    """Where a kernel runs, with which instruction set, under which options; equal ones have the same kernels.

    `pipeline` is the one that a person has changed, None the default one.
    """

    device: Device
    target: Target
    config: Config
    pipeline: Pipeline | None = None

    @property
    def terms(self) -> tuple[Target, DeviceKind, Config]:
        """What compilers ask, in their order."""
        return self.target, self.device.kind, self.config

    @property
    def pipeline_key(self) -> str:
        """The key of a person's changes to the passes; empty where there are none."""
        return "" if self.pipeline is None else self.pipeline.key

    def now(self) -> Machine:
        """The same with its pipeline as it is now: somebody may have changed a pass since it was looked at."""
        return self if self.pipeline is None else replace(self, pipeline=self.pipeline.now())

    def options(self) -> dict[str, str]:
        """What a compile for it depends on beside the program."""
        return compiled.options_of(*self.terms, self.pipeline_key)

    def find(self, text: str) -> CompiledProgram | None:
        """The program with this text, if it was compiled for such a machine before."""
        return compiled.find(text, *self.terms, self.pipeline_key)
