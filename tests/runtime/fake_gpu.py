# SPDX-License-Identifier: Apache-2.0
"""A GPU whose memory is this machine's and whose binaries are Python: for two processes that share allocations.

A binary is the text of a function `kernel(gpu)`. It reaches its parameters by `gpu.array(i, n)` and `gpu.number(i)`,
and may `raise Fault()` or `raise Endless()`. Run as a script it is a GPU worker, as `gpu_worker.py` is with the real
driver; the environment variable FAKE_GPU holds what the driver answers there, by call.
"""

import ctypes
import importlib.util
import itertools
import json
import mmap
import os
import socket
import struct
import sys
import time
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any

from tests.runtime.fake_driver import FakeDriver

UUID = bytes(range(16))


class CUresult(IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_NO_DEVICE = 100
    CUDA_ERROR_INVALID_HANDLE = 400
    CUDA_ERROR_NOT_READY = 600
    CUDA_ERROR_ILLEGAL_ADDRESS = 700
    CUDA_ERROR_UNKNOWN = 999


class Fault(Exception):
    """The kernel does what a GPU faults on."""

    def __init__(self, status: CUresult = CUresult.CUDA_ERROR_ILLEGAL_ADDRESS) -> None:
        self.status = status


class Endless(Exception):
    """The kernel goes on for ever."""


class Plain:
    """The binding's object for some plain bytes."""

    size = 64

    def __init__(self, content: bytes = b"") -> None:
        self.memory = ctypes.create_string_buffer(content, self.size)

    def getPtr(self) -> int:
        return ctypes.addressof(self.memory)


class Uuid(Plain):
    size = 16


@dataclass
class Allocation:
    """Memory that another process can map: an anonymous file."""

    nbytes: int
    descriptor: int = field(init=False)
    pages: mmap.mmap = field(init=False)
    address: int = field(init=False)

    def __post_init__(self) -> None:
        self.descriptor = os.memfd_create("fake-gpu", 0)
        os.ftruncate(self.descriptor, self.nbytes)
        self.pages = mmap.mmap(self.descriptor, self.nbytes)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.pages))


@dataclass
class FakeGpu(FakeDriver):
    """One GPU, as one process sees it."""

    uuid: bytes = UUID
    allocations: list[Allocation] = field(default_factory=list)
    mappings: dict[int, mmap.mmap] = field(default_factory=dict)
    live: dict[int, Any] = field(default_factory=dict)  # what cuMemAlloc gave
    status: CUresult = CUresult.CUDA_SUCCESS  # of the kernel
    slow_s: float = 0.0  # for a copy within the GPU
    elapsed_ms: float = 1.5  # between any two events
    slots: int = 0
    grid: tuple[int, int, int] = (0, 0, 0)
    opened: int = 0
    given: int = 0

    CUresult = CUresult
    CUipcMemHandle = Plain

    # ------------------------------------------------------------------------------ what a kernel may ask

    def array(self, i: int, n: int, at: int = 0, kind: Any = ctypes.c_float) -> Any:
        """`n` elements behind the i-th parameter, from the `at`-th on."""
        return (kind * n).from_address(self.number(i, "Q") + at * ctypes.sizeof(kind))

    def number(self, i: int, code: str = "i") -> Any:
        pointer = (ctypes.c_void_p * (i + 1)).from_address(self.slots)[i]
        return struct.unpack(code, ctypes.string_at(pointer or 0, struct.calcsize(code)))[0]

    # ------------------------------------------------------------------------------ memory

    def allocate(self, nbytes: int) -> Allocation:
        self.allocations.append(Allocation(nbytes))
        return self.allocations[-1]

    def cuDeviceGetUuid(self, device: int) -> tuple[Any, ...]:
        return self.answer("cuDeviceGetUuid", Uuid(self.uuid))

    def cuCtxSetCurrent(self, context: int) -> tuple[Any, ...]:
        self.current = context
        return self.answer("cuCtxSetCurrent")

    def cuMemGetAddressRange(self, address: int) -> tuple[Any, ...]:
        for found in self.allocations:
            if found.address <= address < found.address + found.nbytes:
                return self.answer("cuMemGetAddressRange", found.address, found.nbytes)
        return (CUresult.CUDA_ERROR_INVALID_VALUE, 0, 0)

    def cuIpcGetMemHandle(self, base: int) -> tuple[Any, ...]:
        found = next(found for found in self.allocations if found.address == base)
        self.given += 1  # no two handles are the same
        content = struct.pack("<IIQI", os.getpid(), found.descriptor, found.nbytes, self.given)
        return self.answer("cuIpcGetMemHandle", Plain(content))

    def cuIpcOpenMemHandle(self, handle: Plain, flags: int) -> tuple[Any, ...]:
        status = self.answer("cuIpcOpenMemHandle", 0)
        if status[0]:
            return status
        pid, descriptor, nbytes = struct.unpack("<IIQ", handle.memory.raw[:16])
        file = os.open(f"/proc/{pid}/fd/{descriptor}", os.O_RDWR)
        pages = mmap.mmap(file, nbytes)
        os.close(file)
        address = ctypes.addressof(ctypes.c_char.from_buffer(pages))
        self.mappings[address] = pages
        self.opened += 1
        return CUresult.CUDA_SUCCESS, address

    def cuIpcCloseMemHandle(self, address: int) -> tuple[Any, ...]:
        self.mappings.pop(address).close()
        return self.answer("cuIpcCloseMemHandle")

    def cuMemAlloc(self, nbytes: int) -> tuple[Any, ...]:
        memory = ctypes.create_string_buffer(nbytes)
        self.live[ctypes.addressof(memory)] = memory
        return self.answer("cuMemAlloc", ctypes.addressof(memory))

    def cuMemFree(self, address: int) -> tuple[Any, ...]:
        del self.live[address]
        return self.answer("cuMemFree")

    def cuMemcpyHtoD(self, to: int, source: int, nbytes: int) -> tuple[Any, ...]:
        return self.copy("cuMemcpyHtoD", to, source, nbytes)

    def cuMemcpyDtoH(self, to: int, source: int, nbytes: int) -> tuple[Any, ...]:
        return self.copy("cuMemcpyDtoH", to, source, nbytes)

    def cuMemcpyDtoD(self, to: int, source: int, nbytes: int) -> tuple[Any, ...]:
        if self.slow_s:
            ctypes.memmove(to, source, nbytes // 2)
            time.sleep(self.slow_s)
        return self.copy("cuMemcpyDtoD", to, source, nbytes)

    def copy(self, call: str, to: int, source: int, nbytes: int) -> tuple[Any, ...]:
        self.calls.append((call, nbytes))
        status = self.answer(call)
        if not status[0]:
            ctypes.memmove(to, source, nbytes)
        return status

    # ------------------------------------------------------------------------------ kernels

    def cuModuleLoadData(self, image: bytes) -> tuple[Any, ...]:
        if b".visible .entry flush" in image:
            self.calls.append(("compile",))
            return self.answer(
                "cuModuleLoadData", {"kernel": lambda gpu: gpu.calls.append(("flush", gpu.number(1, "Q")))}
            )
        names: dict[str, Any] = {"Fault": Fault, "Endless": Endless, "CUresult": CUresult, "ctypes": ctypes}
        exec(image.decode(), names)
        return self.answer("cuModuleLoadData", names)

    def cuModuleGetFunction(self, module: Any, name: bytes) -> tuple[Any, ...]:
        return self.answer("cuModuleGetFunction", module["kernel"])

    def cuModuleUnload(self, module: Any) -> tuple[Any, ...]:
        return self.answer("cuModuleUnload")

    def cuEventCreate(self, flags: int) -> tuple[Any, ...]:
        return self.answer("cuEventCreate", "event")

    def cuEventDestroy(self, event: str) -> tuple[Any, ...]:
        return self.answer("cuEventDestroy")

    def cuEventRecord(self, event: str, stream: int) -> tuple[Any, ...]:
        return self.answer("cuEventRecord")

    def cuEventQuery(self, event: str) -> tuple[Any, ...]:
        return (self.status,)

    def cuEventElapsedTime(self, begin: str, end: str) -> tuple[Any, ...]:
        return self.answer("cuEventElapsedTime", self.elapsed_ms)

    # ------------------------------------------------------------------------------ timing

    def cuStreamCreate(self, flags: int) -> tuple[Any, ...]:
        return self.answer("cuStreamCreate", 7)

    def cuStreamDestroy(self, stream: int) -> tuple[Any, ...]:
        return self.answer("cuStreamDestroy")

    def cuStreamWaitValue32(self, stream: int, address: int, value: int, flags: int) -> tuple[Any, ...]:
        self.calls.append(("gate", ctypes.c_uint32.from_address(address).value))
        return self.answer("cuStreamWaitValue32")

    def cuMemHostAlloc(self, nbytes: int, flags: int) -> tuple[Any, ...]:
        return self.cuMemAlloc(nbytes)

    def cuMemHostGetDevicePointer(self, address: int, flags: int) -> tuple[Any, ...]:
        return self.answer("cuMemHostGetDevicePointer", address)

    def cuMemFreeHost(self, address: int) -> tuple[Any, ...]:
        return self.cuMemFree(address)

    def cuMemsetD8(self, address: int, value: int, nbytes: int) -> tuple[Any, ...]:
        ctypes.memset(address, value, nbytes)
        return self.answer("cuMemsetD8")

    def cuLaunchKernel(self, function: Any, x: int, y: int, z: int, *more: Any) -> tuple[Any, ...]:
        *_, slots, _ = more
        self.slots, self.grid = slots, (x, y, z)
        status = self.answer("cuLaunchKernel")
        if status[0]:
            return status
        try:
            function(self)
        except Fault as fault:
            self.status = fault.status
        except Endless:
            self.status = CUresult.CUDA_ERROR_NOT_READY
        sys.stdout.flush()
        return status


def main() -> None:
    # the file without the package around it starts in a tenth of the time
    location = Path(__file__).parents[2] / "tilekit" / "runtime" / "gpu_worker.py"
    spec = importlib.util.spec_from_file_location("gpu_worker", location)
    assert spec is not None and spec.loader is not None
    gpu_worker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(gpu_worker)
    told = json.loads(os.environ.get("FAKE_GPU", "{}"))
    gpu = FakeGpu(capabilities=[(8, 0), (9, 0)], slow_s=told.pop("slow_s", 0.0))
    first = itertools.chain([bytes(16)], itertools.repeat(UUID))  # there is another GPU before ours
    gpu.cuDeviceGetUuid = lambda device: (CUresult.CUDA_SUCCESS, Uuid(next(first)))  # type: ignore[method-assign]
    gpu.answers = {call: CUresult(status) for call, status in told.items()}
    gpu_worker.serve(gpu, socket.socket(fileno=int(sys.argv[1])), bytes.fromhex(sys.argv[2]))


if __name__ == "__main__":
    main()
