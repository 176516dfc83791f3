# SPDX-License-Identifier: Apache-2.0
"""For tests of kernels: decorators that run a test only where the GPU it needs is present."""

from __future__ import annotations

import functools
import unittest
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from tilekit import target
from tilekit.runtime import device

P = ParamSpec("P")
R = TypeVar("R")


def gpu_target() -> target.Target | None:
    """The target of the GPU that torch uses now; None where there is none that kernels can run on."""
    gpus = device.survey().gpus
    if not gpus:
        return None
    import torch

    return target.best_for(gpus[torch.cuda.current_device()].capability) if torch.cuda.is_available() else None


def _needs(needed: target.Target) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator: the test is skipped, with the reason, where no GPU runs code for `needed`."""

    def decorate(test: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(test)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
            # looked up when the test runs, so that collecting tests imports no torch
            here = gpu_target()
            if here is None:
                why = device.survey().problem or "there is none here"
                raise unittest.SkipTest(f"needs a GPU that runs {needed}; {why}")
            if not here.supports(needed):
                raise unittest.SkipTest(f"needs a GPU that runs {needed}; the one here is {here}")
            return test(*args, **kwargs)

        return guarded

    return decorate


class requires:
    """Decorators by the least GPU that a test needs: `@requires.nvgpu_sm90`."""

    nvgpu_sm80 = staticmethod(_needs(target.SM80))
    nvgpu_sm90 = staticmethod(_needs(target.SM90))
    nvgpu_sm90a = staticmethod(_needs(target.SM90A))
    nvgpu_sm100 = staticmethod(_needs(target.SM100))
    nvgpu_sm100a = staticmethod(_needs(target.SM100A))
