# SPDX-License-Identifier: Apache-2.0
"""A driver API that remembers what it was asked: for what must hold on machines without a GPU."""

import ctypes
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any


class CUresult(IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_NO_DEVICE = 100
    CUDA_ERROR_INVALID_CONTEXT = 201
    CUDA_ERROR_ILLEGAL_ADDRESS = 700
    CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803


class CUdevice_attribute(IntEnum):
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97


class CUfunction_attribute(IntEnum):
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8


@dataclass
class FakeDriver:
    """GPUs by compute capability; `answers` overrides the status of a call by name."""

    version: int = 13000
    capabilities: list[tuple[int, int]] = field(default_factory=lambda: [(9, 0)])
    answers: dict[str, CUresult] = field(default_factory=dict)
    current: int = 0x1000
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    # (function, grid, block, shared, stream, first eight bytes of every parameter, context)
    launches: list[tuple[Any, ...]] = field(default_factory=list)
    parameters: int = 0
    # what C code prints whenever somebody waits for a GPU
    prints: str = ""
    capturing: set[int] = field(default_factory=set)

    CUresult = CUresult
    CUdevice_attribute = CUdevice_attribute
    CUfunction_attribute = CUfunction_attribute
    CUstream = int

    def answer(self, call: str, *values: Any) -> tuple[Any, ...]:
        status = self.answers.get(call, CUresult.CUDA_SUCCESS)
        return (status, *values)

    def cuGetErrorName(self, status: int) -> tuple[Any, ...]:
        return CUresult.CUDA_SUCCESS, self.CUresult(status).name.encode()

    def cuGetErrorString(self, status: int) -> tuple[Any, ...]:
        return CUresult.CUDA_SUCCESS, {700: b"an illegal memory access was encountered"}.get(status, b"it went wrong")

    def cuDriverGetVersion(self) -> tuple[Any, ...]:
        return self.answer("cuDriverGetVersion", self.version)

    def cuInit(self, flags: int) -> tuple[Any, ...]:
        return self.answer("cuInit")

    def cuDeviceGetCount(self) -> tuple[Any, ...]:
        return self.answer("cuDeviceGetCount", len(self.capabilities))

    def cuDeviceGet(self, index: int) -> tuple[Any, ...]:
        return self.answer("cuDeviceGet", index)

    def cuDeviceGetName(self, size: int, device: int) -> tuple[Any, ...]:
        return self.answer("cuDeviceGetName", f"Fake {device}".encode().ljust(size, b"\0"))

    def cuDeviceTotalMem(self, device: int) -> tuple[Any, ...]:
        return self.answer("cuDeviceTotalMem", 80 << 30)

    def cuDeviceGetAttribute(self, attribute: CUdevice_attribute, device: int) -> tuple[Any, ...]:
        values = {75: self.capabilities[device][0], 76: self.capabilities[device][1], 16: 132, 97: 232448}
        return self.answer("cuDeviceGetAttribute", values[attribute])

    def cuDevicePrimaryCtxRetain(self, device: int) -> tuple[Any, ...]:
        return self.answer("cuDevicePrimaryCtxRetain", 0x1000 + device)

    def cuCtxGetCurrent(self) -> tuple[Any, ...]:
        return self.answer("cuCtxGetCurrent", self.current)

    def cuCtxPushCurrent(self, context: int) -> tuple[Any, ...]:
        self.calls.append(("push", self.current, context))
        self.current = context
        return self.answer("cuCtxPushCurrent")

    def cuCtxPopCurrent(self) -> tuple[Any, ...]:
        popped = self.current
        _, self.current, _ = next(call for call in reversed(self.calls) if call[0] == "push" and call[2] == popped)
        return self.answer("cuCtxPopCurrent", popped)

    def cuStreamIsCapturing(self, stream: int) -> tuple[Any, ...]:
        return self.answer("cuStreamIsCapturing", int(stream in self.capturing))

    def cuCtxSynchronize(self) -> tuple[Any, ...]:
        self.calls.append(("synchronize", self.current))
        ctypes.CDLL(None).printf(b"%s", self.prints.encode())
        return self.answer("cuCtxSynchronize")

    def cuModuleLoadData(self, image: bytes) -> tuple[Any, ...]:
        self.calls.append(("load", self.current, image))
        return self.answer("cuModuleLoadData", "module")

    def cuModuleGetFunction(self, module: str, name: bytes) -> tuple[Any, ...]:
        return self.answer("cuModuleGetFunction", name.decode())

    def cuFuncSetAttribute(self, function: str, attribute: CUfunction_attribute, value: int) -> tuple[Any, ...]:
        self.calls.append(("attribute", function, attribute, value))
        return self.answer("cuFuncSetAttribute")

    def cuLaunchKernel(
        self,
        function: str,
        x: int,
        y: int,
        z: int,
        bx: int,
        by: int,
        bz: int,
        shared: int,
        stream: int,
        slots: int,
        extra: int,
    ) -> tuple[Any, ...]:
        if not 0x1000 <= self.current < 0x1000 + len(self.capabilities):
            return (CUresult.CUDA_ERROR_INVALID_CONTEXT,)
        pointers = (ctypes.c_void_p * self.parameters).from_address(slots)
        values = tuple(ctypes.string_at(pointer or 0, 8) for pointer in pointers)
        self.launches.append((function, (x, y, z), (bx, by, bz), shared, stream, values, self.current))
        return self.answer("cuLaunchKernel")

    def cuLaunchKernelEx(self, config: Any, function: str, slots: Any, extra: None) -> CUresult:
        all_of_it = config._obj
        assert extra is None and all_of_it.attrs is None and all_of_it.numAttrs == 0
        *shape, stream = [getattr(all_of_it, name) for name, _ in all_of_it._fields_[:8]]
        return self.cuLaunchKernel(function, *shape, stream or 0, ctypes.addressof(slots._obj), 0)[0]
