# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's driver API, by cuda.bindings: loaded when somebody asks, each answer checked, faults told from refusals."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

# After one of these the context is lost: every later call in this process fails, whatever it does.
FAULTS = frozenset(
    {
        "CUDA_ERROR_ECC_UNCORRECTABLE",
        "CUDA_ERROR_NVLINK_UNCORRECTABLE",
        "CUDA_ERROR_CONTAINED",
        "CUDA_ERROR_ILLEGAL_ADDRESS",
        "CUDA_ERROR_LAUNCH_TIMEOUT",
        "CUDA_ERROR_ASSERT",
        "CUDA_ERROR_HARDWARE_STACK_ERROR",
        "CUDA_ERROR_ILLEGAL_INSTRUCTION",
        "CUDA_ERROR_MISALIGNED_ADDRESS",
        "CUDA_ERROR_INVALID_ADDRESS_SPACE",
        "CUDA_ERROR_INVALID_PC",
        "CUDA_ERROR_LAUNCH_FAILED",
        "CUDA_ERROR_TENSOR_MEMORY_LEAK",
    }
)


class DriverError(Exception):
    """The driver answered something else than success; `name` is the status, as CUDA spells it."""

    def __init__(self, call: str, name: str, text: str) -> None:
        super().__init__(f"{call}: {name}, {text}")
        self.call = call
        self.name = name
        self.text = text

    @property
    def is_fault(self) -> bool:
        return self.name in FAULTS


@functools.cache
def binding() -> Any | None:
    """The module `cuda.bindings.driver` if it and the driver are there; loads the driver, starts nothing on a GPU."""
    try:
        ctypes.CDLL("libcuda.so.1")  # where no driver is, nobody waits for the binding, which starts processes to load
        from cuda.bindings import driver  # pyright: ignore[reportMissingImports, reportAttributeAccessIssue]

        driver.cuDriverGetVersion()  # the first call loads the library
    except (ImportError, RuntimeError, OSError):
        return None
    return driver


def check(api: Any, call: str, answer: tuple[Any, ...]) -> Any:
    """Unpack an answer of the binding, (status, value, …), or raise what the status says."""
    status, *values = answer
    if status != api.CUresult.CUDA_SUCCESS:
        _, text = api.cuGetErrorString(status)
        raise DriverError(
            call, api.CUresult(status).name, text.decode() if isinstance(text, bytes) else "unknown error"
        )
    return values[0] if len(values) == 1 else tuple(values)
