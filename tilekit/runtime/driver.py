# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's driver API, called by ctypes: what a launch asks, each answer checked, faults told from refusals.

It has the names and the answers of `cuda.bindings.driver`, which knows every function that there is and takes longer
to import than all else that a cached kernel waits for.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from ctypes import POINTER, c_char, c_char_p, c_int, c_size_t, c_ubyte, c_uint, c_void_p
from enum import IntEnum
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


class CUresult(IntEnum):
    """The status that is no error; the driver itself names the others."""

    CUDA_SUCCESS = 0


class CUdevice_attribute(IntEnum):
    """What is asked of a GPU, as CUDA numbers it."""

    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97


class CUfunction_attribute(IntEnum):
    """What is set of a kernel, as CUDA numbers it."""

    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8


class CUuuid(ctypes.Structure):
    """Sixteen bytes that name a GPU in every process."""

    _fields_ = (("bytes", c_char * 16),)

    def getPtr(self) -> int:
        return ctypes.addressof(self)


class CUipcMemHandle(ctypes.Structure):
    """What another process maps an allocation by."""

    _fields_ = (("reserved", c_char * 64),)

    def getPtr(self) -> int:
        return ctypes.addressof(self)


class CUlaunchConfig(ctypes.Structure):
    """A launch but for the function and its arguments."""

    _fields_ = (
        ("gridDimX", c_uint),
        ("gridDimY", c_uint),
        ("gridDimZ", c_uint),
        ("blockDimX", c_uint),
        ("blockDimY", c_uint),
        ("blockDimZ", c_uint),
        ("sharedMemBytes", c_uint),
        ("hStream", c_void_p),
        ("attrs", c_void_p),
        ("numAttrs", c_uint),
    )


_FILLED = type(POINTER(c_int))
_TEXT = POINTER(c_char * 128)
# What each function takes; a POINTER is filled by the driver: it comes back beside the status, and no caller passes it.
# A `c_void_p` that comes back stays one, for `cuLaunchKernel`.
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "cuGetErrorName": (c_int, POINTER(c_char_p)),
    "cuGetErrorString": (c_int, POINTER(c_char_p)),
    "cuDriverGetVersion": (POINTER(c_int),),
    "cuInit": (c_uint,),
    "cuDeviceGetCount": (POINTER(c_int),),
    "cuDeviceGet": (POINTER(c_int), c_int),
    "cuDeviceGetName": (_TEXT, c_int, c_int),
    "cuDeviceGetPCIBusId": (_TEXT, c_int, c_int),
    "cuDeviceGetUuid": (POINTER(CUuuid), c_int),
    "cuDeviceGetAttribute": (POINTER(c_int), c_int, c_int),
    "cuDeviceTotalMem": (POINTER(c_size_t), c_int),
    "cuDevicePrimaryCtxRetain": (POINTER(c_size_t), c_int),
    "cuCtxGetCurrent": (POINTER(c_size_t),),
    "cuCtxPushCurrent": (c_void_p,),
    "cuCtxPopCurrent": (POINTER(c_size_t),),
    "cuCtxSynchronize": (),
    "cuStreamIsCapturing": (c_void_p, POINTER(c_int)),
    "cuMemAlloc": (POINTER(c_size_t), c_size_t),
    "cuMemFree": (c_size_t,),
    "cuMemsetD8Async": (c_size_t, c_ubyte, c_size_t, c_void_p),
    "cuMemcpyHtoD": (c_size_t, c_void_p, c_size_t),
    "cuMemcpyDtoH": (c_void_p, c_size_t, c_size_t),
    "cuMemGetAddressRange": (POINTER(c_size_t), POINTER(c_size_t), c_size_t),
    "cuIpcGetMemHandle": (POINTER(CUipcMemHandle), c_size_t),
    "cuModuleLoadData": (POINTER(c_void_p), c_char_p),
    "cuModuleGetFunction": (POINTER(c_void_p), c_void_p, c_char_p),
    "cuFuncSetAttribute": (c_void_p, c_int, c_int),
}
# those whose first version is still there under the plain name
_SECOND_VERSIONS = {
    "cuDeviceGetUuid",
    "cuDeviceTotalMem",
    "cuCtxPushCurrent",
    "cuCtxPopCurrent",
    "cuMemAlloc",
    "cuMemFree",
    "cuMemcpyHtoD",
    "cuMemcpyDtoH",
    "cuMemGetAddressRange",
}


class Driver:
    """The functions of a `libcuda`, each made when it is first asked for; they answer (status, value, …).

    But `cuLaunchKernelEx` is the bare function, for launches that are prepared: it takes what `ctypes` need not convert
    (`byref`, `c_void_p`, None) and answers the status alone.
    """

    CUresult = CUresult
    CUdevice_attribute = CUdevice_attribute
    CUfunction_attribute = CUfunction_attribute
    CUstream = c_void_p

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name == "cuLaunchKernel":
            made = _launch(self._library["cuLaunchKernel"])
        elif name == "cuLaunchKernelEx":
            made = self._library["cuLaunchKernelEx"]
        elif name in _FUNCTIONS:
            made = _function(self._library, f"{name}_v2" if name in _SECOND_VERSIONS else name, _FUNCTIONS[name])
        else:
            raise AttributeError(name)
        self.__dict__[name] = made
        return made


def _launch(function: Any) -> Callable[..., tuple[Any, ...]]:
    """`cuLaunchKernel`, of which each launch waits: its pointers come as `c_void_p`, so that types need no checking."""

    def launch(
        kernel: c_void_p,
        x: int,
        y: int,
        z: int,
        block_x: int,
        block_y: int,
        block_z: int,
        shared_bytes: int,
        stream: c_void_p,
        slots: int,
        _extra: int,
    ) -> tuple[int]:
        pointers = c_void_p(slots)
        return (function(kernel, x, y, z, block_x, block_y, block_z, shared_bytes, stream, pointers, None),)

    return launch


def _function(library: ctypes.CDLL, symbol: str, kinds: tuple[Any, ...]) -> Callable[..., tuple[Any, ...]]:
    answers = [number for number, kind in enumerate(kinds) if isinstance(kind, _FILLED)]
    directions = tuple((2 if number in answers else 1,) for number in range(len(kinds)))
    made: Any = ctypes.CFUNCTYPE(c_int, *kinds)((symbol, library), directions)
    made.errcheck = lambda status, _, given: (status, *(_value(given[number]) for number in answers))
    return made


def _value(answer: Any) -> Any:
    return answer if isinstance(answer, (ctypes.Structure, c_void_p)) else answer.value


@functools.cache
def binding() -> Driver | None:
    """The driver of this machine, if there is one; it starts nothing on a GPU."""
    try:
        return Driver(ctypes.CDLL("libcuda.so.1"))
    except OSError:
        return None


def check(api: Any, call: str, answer: tuple[Any, ...]) -> Any:
    """Unpack an answer of the driver, (status, value, …), or raise what the status says."""
    status, *values = answer
    if status != api.CUresult.CUDA_SUCCESS:
        (_, name), (_, text) = api.cuGetErrorName(status), api.cuGetErrorString(status)
        raise DriverError(
            call, name.decode() if name else f"status {status}", text.decode() if text else "unknown error"
        )
    return values[0] if len(values) == 1 else tuple(values)
