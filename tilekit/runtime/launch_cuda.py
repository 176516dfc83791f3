# SPDX-License-Identifier: Apache-2.0
"""Launching a cubin by the driver API, in torch's primary context and on torch's current stream.

A launch costs a few microseconds of Python: the arguments are packed into one buffer made at loading, and the list of
pointers into it is made once. For whoever launches with the same arguments again and again, `CudaKernel.pack` packs
them for good. Nothing waits for the GPU, so a fault inside a kernel shows in a later call; whoever wants to know now
calls `synchronize`.

What a kernel prints the driver writes to the standard output of this process when somebody waits for the GPU. So the
launch of a kernel that prints waits for its end, and collects it: see `CudaKernel`.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from tilekit import target as targets
from tilekit.diag import ArgumentError, KernelError, LaunchError
from tilekit.runtime import device, driver, tensors
from tilekit.runtime.device import Gpu
from tilekit.runtime.driver import DriverError
from tilekit.runtime.launch import LAUNCHED, NOTHING_LAUNCHED, LaunchStats
from tilekit.runtime.manifest import Manifest
from tilekit.runtime.packing import Packer
from tilekit.runtime.stdout import Collecting
from tilekit.target import MAX_GRID, Suffix, Target

_STATIC_SHARED_LIMIT = 48 * 1024  # above it, a kernel must ask for dynamic shared memory


class Context:
    """The primary context of one GPU: the one that torch uses."""

    def __init__(self, index: int) -> None:
        found = device.require()
        if not 0 <= index < len(found.gpus):
            raise LaunchError("TK630", f"there is no GPU {index}: this machine has {len(found.gpus)}")
        self.gpu = found.gpus[index]
        self.api: Any = driver.binding()
        self.last_kernel = "a kernel"
        self._fault: DriverError | None = None
        handle = self.ask("cuDeviceGet", index)
        self.handle = self.ask("cuDevicePrimaryCtxRetain", handle)
        self.address = int(self.handle)
        self.success = self.api.CUresult.CUDA_SUCCESS
        self.launch: Callable[..., tuple[Any, ...]] = self.api.cuLaunchKernel
        self.streams: dict[int, Any] = {}
        # then some context that is current is this one, most often, and a launch need not ask
        self.is_alone = len(found.gpus) == 1

    def ask(self, call: str, *arguments: Any) -> Any:
        """Call the driver and unpack its answer; a refusal or a fault is an error in words."""
        try:
            return driver.check(self.api, call, getattr(self.api, call)(*arguments))
        except DriverError as error:
            self.fail(error, f"{self.gpu}")

    def fail(self, error: DriverError, who: str) -> NoReturn:
        """Tell a refused call from a lost context; the second is explained once, then only named."""
        if not error.is_fault:
            raise LaunchError("TK628", f"{who}: {error}") from error
        told, self._fault = self._fault is not None, error
        if told:
            raise KernelError("TK629", f"{self.gpu} has faulted before: restart the kernel", data={"kind": error.name})
        raise KernelError(
            "TK629",
            f"{self.last_kernel} faulted on {self.gpu}: {error.text}",
            notes=["the CUDA context of this process is poisoned: no GPU work and no CUDA tensor can be used any more"],
            help="restart the kernel; on the CPU the same call shows the line",
            data={"kind": error.name, "kernel": self.last_kernel},
        ) from error

    def is_current(self) -> bool:
        return int(self.api.cuCtxGetCurrent()[1]) == self.address

    def __enter__(self) -> Context:
        self.ask("cuCtxPushCurrent", self.handle)
        return self

    def __exit__(self, *_: object) -> None:
        self.api.cuCtxPopCurrent()

    def stream(self, raw: int) -> Any:
        """What the driver takes for a stream, made once."""
        found = self.streams.get(raw)
        if found is None:
            found = self.streams[raw] = self.api.CUstream(raw)
        return found


@functools.cache
def context(index: int) -> Context:
    """The context of this GPU, kept for the process."""
    return Context(index)


def synchronize(index: int) -> None:
    """Wait for everything on this GPU; a fault of any kernel since the last time is raised here."""
    there = context(index)
    with there:
        there.ask("cuCtxSynchronize")


class DeviceMemory:
    """Bytes on a GPU, given back when nobody holds them any more."""

    def __init__(self, there: Context, nbytes: int) -> None:
        self.nbytes = nbytes
        self.address = int(there.ask("cuMemAlloc", nbytes))
        weakref.finalize(self, _give_back, there, self.address).atexit = False  # the process takes all with it


def _give_back(there: Context, address: int) -> None:
    """Waits for the kernels that use it; a lost context has nothing to give back to."""
    there.api.cuCtxPushCurrent(there.handle)
    there.api.cuMemFree(address)
    there.api.cuCtxPopCurrent()


class Arguments:
    """The packed arguments of a launch, and the list of pointers into them that `cuLaunchKernel` reads."""

    def __init__(self, packer: Packer) -> None:
        buffer = (ctypes.c_char * max(packer.size, 1))()
        base = ctypes.addressof(buffer)
        self._slots = (ctypes.c_void_p * max(len(packer.offsets), 1))(*(base + at for at in packer.offsets))
        self.address = ctypes.addressof(self._slots)
        self.reference = ctypes.byref(self._slots)
        self.write: Callable[[Sequence[Any]], None] = functools.partial(packer.pack_into, buffer)


@dataclass(frozen=True, slots=True)
class Packed:
    """A launch whose arguments are packed for good: nobody writes to them again, so threads may share it."""

    there: Context
    index: int
    kernel: str
    function: Any
    arguments: Arguments
    shape: tuple[int, ...]

    def on(self, raw: int) -> tuple[Any, ...]:
        """What `cuLaunchKernelEx` takes on this stream; it must not outlive `self`."""
        config = driver.CUlaunchConfig(*self.shape, raw)
        return ctypes.byref(config), self.function, self.arguments.reference, None


class CudaKernel:
    """A compiled kernel, loaded on each GPU when it is first launched there.

    With `prints`, a launch waits for the GPU and tells what was printed: the last megabyte, which is what the driver
    keeps. While a graph is captured nobody may wait, and where standard output is closed nothing is printed at all:
    then a launch tells nothing, and what a captured kernel prints goes to standard output by itself.
    """

    def __init__(self, manifest: Manifest, cubin: bytes, *, prints: bool = False) -> None:
        self.manifest = manifest
        self._cubin = cubin
        self._prints = prints
        self._pointers = tuple(i for i, param in enumerate(manifest.params) if param.is_pointer)
        self._packer = Packer(manifest.kernel, manifest.params, manifest.lent)
        self._is_plain = not prints and not manifest.workspaces
        # workspaces, by GPU and stream: launches on one stream follow each other, those on others do not
        self._workspaces: dict[tuple[int, int], list[DeviceMemory]] = {}
        # The driver reads the arguments before it returns, but lets go of the GIL: hence the lock.
        self._lock = threading.Lock()
        self._arguments = Arguments(self._packer)
        self._functions: dict[int, tuple[Context, Any]] = {}
        self._integers = manifest.integers

    def launch(self, arguments: Sequence[Any], *, gpu: int | None = None, stream: int | None = None) -> LaunchStats:
        """Start the kernel; pointers are CUDA tensors or addresses.

        `gpu` is where the first tensor lives and `stream` torch's current one, unless they are given.
        """
        self._packer.check_count(arguments)
        index = self._gpu_of(arguments) if gpu is None else gpu
        if 0 in self.manifest.extents(arguments):
            return NOTHING_LAUNCHED
        return self.start(self._addresses(arguments, index), index, stream)

    def start(self, values: list[Any], index: int, stream: int | None = None) -> LaunchStats:
        """Start the kernel on GPU `index`; `values` are numbers of the right types, and addresses on that GPU."""
        there, function = self._functions.get(index) or self._load(index)
        grid = self._extents(values)
        if 0 in grid:
            return NOTHING_LAUNCHED
        raw = current_stream(index) if stream is None else stream
        on = there.streams.get(raw) or there.stream(raw)
        if self._is_plain and there.is_alone:
            self._enqueue(there, function, grid, on, values)
            return LAUNCHED
        if there.is_current():
            return self._start(there, function, grid, on, values, (index, raw))
        with there:  # as below, or another GPU is current
            return self._start(there, function, grid, on, values, (index, raw))

    def pack(self, values: Sequence[Any], index: int) -> Packed | None:
        """The launch that `start` makes of these values, to be made often; None if each one takes more than that."""
        there, function = self._functions.get(index) or self._load(index)
        grid = self._extents(values)
        if not self._is_plain or 0 in grid:
            return None
        arguments = Arguments(self._packer)
        arguments.write(values)
        shape = (*grid, self.manifest.block, 1, 1, self.manifest.shared_bytes)
        return Packed(there, index, self.manifest.kernel, function, arguments, shape)

    def _extents(self, values: Sequence[Any]) -> tuple[int, int, int]:
        """The grid; `extents` has words for what is wrong with one, and takes its time."""
        try:
            x, y, z = self.manifest.grid_function(*[values[i] for i in self._integers])
        except ZeroDivisionError:
            return self.manifest.extents(values)
        if 0 < x <= MAX_GRID[0] and 0 < y <= MAX_GRID[1] and 0 < z <= MAX_GRID[2]:
            return x, y, z
        return self.manifest.extents(values)

    def _lend(self, there: Context, sizes: Sequence[int], where: tuple[int, int]) -> list[int]:
        """The addresses of workspaces at least so large; clean ones are zero, as every launch leaves them."""
        with self._lock:
            kept = self._workspaces.setdefault(where, [])
            for number, (workspace, nbytes) in enumerate(zip(self.manifest.workspaces, sizes, strict=True)):
                if number < len(kept) and kept[number].nbytes >= nbytes:
                    continue
                memory = DeviceMemory(there, nbytes)
                if workspace.clean:
                    there.ask("cuMemsetD8Async", memory.address, 0, nbytes, there.stream(where[1]))
                kept[number : number + 1] = [memory]
            return [memory.address for memory in kept]

    def interrupt(self) -> None:
        """Nothing stops a launch on a GPU from within its process: it runs to its end."""

    def _start(
        self,
        there: Context,
        function: Any,
        grid: tuple[int, int, int],
        stream: Any,
        values: list[Any],
        where: tuple[int, int],
    ) -> LaunchStats:
        if self.manifest.workspaces:
            values += self._lend(there, self.manifest.workspace_bytes(values), where)
        if not self._prints or int(there.ask("cuStreamIsCapturing", stream)):
            self._enqueue(there, function, grid, stream, values)
            return LAUNCHED
        prints = Collecting()
        try:
            with prints:
                self._enqueue(there, function, grid, stream, values)
                there.ask("cuCtxSynchronize")
        except KernelError as error:
            error.data["printed"] = prints.text
            raise
        except BaseException:
            sys.stdout.write(prints.text)
            raise
        return LaunchStats(printed=prints.text)

    def _enqueue(
        self, there: Context, function: Any, grid: tuple[int, int, int], stream: Any, values: list[Any]
    ) -> None:
        manifest, arguments = self.manifest, self._arguments
        shape = (function, *grid, manifest.block, 1, 1, manifest.shared_bytes, stream, arguments.address, 0)
        with self._lock:
            arguments.write(values)
            answer = there.launch(*shape)
            if answer[0] != there.success and not there.is_current():
                with there:  # a thread in which torch has not yet worked
                    answer = there.launch(*shape)
        if answer[0] != there.success:
            try:
                driver.check(there.api, "cuLaunchKernel", answer)
            except DriverError as error:
                where = f"{manifest.kernel} (grid {grid}, {manifest.block} threads, {manifest.shared_bytes} bytes)"
                there.fail(error, where)
        there.last_kernel = manifest.kernel

    def _gpu_of(self, arguments: Sequence[Any]) -> int:
        for i in self._pointers:
            get_device = getattr(arguments[i], "get_device", None)
            if get_device is not None:
                found = get_device()
                return found if found >= 0 else self._refuse(i, arguments[i])
        torch = sys.modules.get("torch")
        return torch.cuda.current_device() if torch is not None else 0

    def _addresses(self, arguments: Sequence[Any], index: int) -> list[Any]:
        """The arguments with every tensor replaced by its address, checked to be on this GPU."""
        values = list(arguments)
        for i in self._pointers:
            argument = values[i]
            if type(argument) is int:
                continue
            get_device = getattr(argument, "get_device", None)
            if get_device is None or get_device() != index:
                self._refuse(i, argument)
            values[i] = argument.data_ptr()
        return values

    def _refuse(self, i: int, argument: Any) -> NoReturn:
        param = self.manifest.params[i]
        where = f"is on {tensors.facts(argument).device}" if tensors.is_tensor(argument) else "is no tensor"
        raise ArgumentError(
            "TK622", f"{self.manifest.kernel}: {param.name} {where}, and the kernel is launched on a GPU"
        )

    def _load(self, index: int) -> tuple[Context, Any]:
        there = context(index)
        check_fits(self.manifest, there.gpu)
        needed = self.manifest.shared_bytes
        with there:
            module = there.ask("cuModuleLoadData", self._cubin)
            function = there.ask("cuModuleGetFunction", module, self.manifest.kernel.encode())
            if needed > _STATIC_SHARED_LIMIT:
                attribute = there.api.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
                there.ask("cuFuncSetAttribute", function, attribute, needed)
        self._functions[index] = (there, function)
        return there, function


def check_fits(manifest: Manifest, gpu: Gpu) -> None:
    """Refuse to load what this GPU cannot run: a cubin runs on its own generation only, with `a` on its own model."""
    built_for = targets.parse(manifest.target)
    if not runs_on(built_for, gpu.capability):
        raise LaunchError(
            "TK627",
            f"{manifest.kernel} is compiled for {built_for}, which {gpu} does not run",
            help=f"compile it for {targets.best_for(gpu.capability)}, or pass CPU tensors to run it on the CPU",
        )
    needed, limit = manifest.shared_bytes, gpu.shared_memory_per_block
    if needed > limit:
        raise LaunchError("TK628", f"{manifest.kernel} needs {needed} bytes of shared memory, and {gpu} has {limit}")


def runs_on(built_for: Target, capability: tuple[int, int]) -> bool:
    """Whether a cubin for this target is loaded by a GPU of this capability."""
    match built_for.suffix:
        case Suffix.ARCH:
            return capability == built_for.capability
        case Suffix.NONE | Suffix.FAMILY:
            return capability[0] == built_for.capability[0] and capability >= built_for.capability


def current_stream(index: int) -> int:
    """torch's current stream on this GPU; where torch is not in use, or knows no GPU, the default stream."""
    return stream_getter()(index) if "torch" in sys.modules else 0


@functools.cache
def stream_getter() -> Callable[[int], int]:
    import torch

    return getattr(torch._C, "_cuda_getCurrentRawStream", lambda index: 0)
