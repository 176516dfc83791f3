# SPDX-License-Identifier: Apache-2.0
"""Runs a kernel that nobody has seen run yet in a process of its own: whatever it does, no tensor here is harmed.

A GPU that faults takes every context of its process with it, and a kernel that does not end cannot be stopped from
within. So the first launch of an edited source, of a candidate, and of anything after a fault goes to a child process
(`gpu_worker.py`), which works on copies of the tensors and dies in our stead. Tensors travel by CUDA IPC; where an
allocation has no handle for that (expandable segments, cudaMallocAsync), through a file in memory. What the kernel
wrote comes back only after it ended well and wrote nowhere else.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import mmap
import os
import signal
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tilekit.diag import ArgumentError, KernelError, LaunchError
from tilekit.runtime import driver, gpu_worker, launch_cuda, tensors
from tilekit.runtime.benchmark import FLUSH_BYTES
from tilekit.runtime.driver import DriverError
from tilekit.runtime.gpu_process import GpuProcess
from tilekit.runtime.launch import NOTHING_LAUNCHED, LaunchStats
from tilekit.runtime.launch_cpu import merge
from tilekit.runtime.launch_cuda import Context
from tilekit.runtime.manifest import Manifest, Param
from tilekit.runtime.packing import Packer, scalar_bytes
from tilekit.runtime.tensors import DeviceKind, TensorFacts

T = TypeVar("T")

STARTUP_S = 60.0  # a context takes 0.2 s, and much longer on a machine that is busy
_WAY_BACK_S = 60.0  # for the copies; a child that takes longer is not coming back
_PAGE = mmap.PAGESIZE
_UNHARMED = "it ran in a process of its own: no tensor has changed, and the GPU goes on working"


@dataclass(frozen=True)
class Times:
    """The seconds of each run; of a hopeless kernel there are only a few."""

    seconds: tuple[float, ...]
    hopeless: bool = False


class GpuChild:
    """A process for launches on one GPU, started at the first, kept warm, and replaced when it has died."""

    def __init__(self, index: int) -> None:
        self.index = index
        self._lock = threading.Lock()  # held during a launch
        self._worker: GpuProcess | None = None
        self._can_map = True
        self._stopping = threading.Lock()
        self._stoppable: GpuProcess | None = None  # while its death harms nobody
        _children.add(self)

    def run(
        self, manifest: Manifest, cubin: bytes, arguments: Sequence[Any], timeout_s: float | None = None
    ) -> LaunchStats:
        """Run the kernel to its end; whatever goes wrong is an error, and then no tensor has changed.

        The parameters that the manifest says are written come back. Without a time-out, only an interrupt ends a
        kernel that does not end by itself.
        """
        ran = self._run(manifest, cubin, arguments, lambda worker, launch: self._converse(worker, launch, timeout_s))
        return NOTHING_LAUNCHED if ran is None else ran

    def time(
        self,
        manifest: Manifest,
        cubin: bytes,
        arguments: Sequence[Any],
        *,
        repeat: int,
        warmup: int = 0,
        leader: float | None = None,
        timeout_s: float | None = None,
    ) -> Times:
        """Time the kernel on copies of the arguments, each run with a cold L2 cache; nothing comes back.

        Parameters
        ----------
        repeat
            How many runs; fewer of a kernel that takes long.
        warmup
            Runs before these, which do not count.
        leader
            The seconds of the best one so far: a kernel that is far behind runs only a few times.
        timeout_s
            For the first run, and for each of the others.
        """

        def converse(worker: GpuProcess, launch: _Launch) -> Times:
            launch.asked = {"times": repeat, "warmup": warmup, "leader": leader, "flush": FLUSH_BYTES}
            answer = self._begun(worker, launch, timeout_s, warmup + repeat)
            if (worker.ask({"say": "drop"}, _WAY_BACK_S)) is None:
                raise self._death(launch, worker, _WAY_BACK_S)
            return Times(tuple(answer["times"]), answer["hopeless"])

        ran = self._run(manifest, cubin, arguments, converse)
        return Times((0.0,)) if ran is None else ran

    def _run(
        self,
        manifest: Manifest,
        cubin: bytes,
        arguments: Sequence[Any],
        converse: Callable[[GpuProcess, _Launch], T],
    ) -> T | None:
        """What comes of talking about a launch; None where the grid has no blocks."""
        Packer(manifest.kernel, manifest.params).check_count(arguments)
        grid = manifest.extents(arguments)
        seen = [self._look(manifest, *given) for given in zip(manifest.params, arguments, strict=True)]
        there = launch_cuda.context(self.index)
        launch_cuda.check_fits(manifest, there.gpu)
        if 0 in grid:
            return None
        with self._lock:
            launch_cuda.synchronize(self.index)  # what the tensors shall hold is in them
            launch = _Launch(there, manifest, cubin, arguments, seen, grid)
            try:
                return converse(self._ready(), launch)
            except BaseException:  # also an interrupt: whoever leaves early leaves no kernel running behind
                self._end()
                raise
            finally:
                launch.close()

    def interrupt(self) -> None:
        """Stop the running launch, whose `run` raises a `KernelError` of kind "interrupted"; any thread may call."""
        with self._stopping:
            if self._stoppable is not None:
                self._stoppable.interrupted = True
                self._stoppable.process.kill()

    def close(self) -> None:
        """End the process and give its GPU memory back; a later launch starts a new one."""
        with self._lock:
            self._end()

    @property
    def pid(self) -> int | None:
        """The process, if there is one now."""
        return None if self._worker is None else self._worker.process.pid

    def _look(self, manifest: Manifest, param: Param, argument: Any) -> TensorFacts | None:
        """The facts of what a pointer parameter is given; None for a scalar."""
        if not param.is_pointer:
            return None
        if not tensors.is_tensor(argument):
            what = f"the address {argument}" if isinstance(argument, int) else f"a {type(argument).__name__}"
            raise ArgumentError(
                "TK622",
                f"{manifest.kernel}: {param.name} is {what}, and this launch needs a tensor",
                help="it runs in a process of its own, which gets copies of tensors: an address has no size",
            )
        found = tensors.facts(argument)
        if found.device.kind is not DeviceKind.CUDA or found.device.index != self.index:
            where = f"{param.name} is on {found.device}"
            raise ArgumentError("TK622", f"{manifest.kernel}: {where}, and the kernel is launched on cuda:{self.index}")
        return found

    def _converse(self, worker: GpuProcess, launch: _Launch, timeout_s: float | None) -> LaunchStats:
        begin = time.perf_counter()
        answer = self._begun(worker, launch, timeout_s)
        with _uninterrupted():
            done = launch.take_back(worker)
        if done is None:
            raise self._death(launch, worker, _WAY_BACK_S, "its results were being copied: tensors may be half written")
        if done["say"] == "failed":
            raise _failure(launch, done)
        seconds = answer["seconds"]
        return LaunchStats(seconds, time.perf_counter() - begin - seconds, printed=worker.printed())

    def _begun(self, worker: GpuProcess, launch: _Launch, timeout_s: float | None, times: int = 0) -> dict[str, Any]:
        """Have the kernel run, and hear how that ended; it ended well, and wrote nowhere but into the copies."""
        waited = timeout_s
        with self._stopping:
            self._stoppable = worker
        try:
            answer = launch.begin(worker, by_handle=self._can_map)
            if answer is not None and answer["say"] == "unmapped":
                self._can_map = False
                answer = launch.begin(worker, by_handle=False)
            if answer is not None and answer["say"] == "started":
                answer = worker.receive(waited)
            if answer is not None and answer["say"] == "ran":
                waited = None if timeout_s is None else timeout_s + times * min(timeout_s, 2 * answer["seconds"])
                answer = worker.receive(waited)
        finally:
            with self._stopping:
                self._stoppable = None
        if answer is None or worker.interrupted:
            raise self._death(launch, worker, waited)
        if answer["say"] == "failed":
            raise _failure(launch, answer)
        for number, (before, after) in enumerate(answer["strays"]):
            if before is not None or after is not None:
                raise launch.stray(number, before, after)
        return answer

    def _ready(self) -> GpuProcess:
        if self._worker is not None and self._worker.process.poll() is not None:
            self._end()
        if self._worker is None:
            there = launch_cuda.context(self.index)
            uuid = there.ask("cuDeviceGetUuid", there.ask("cuDeviceGet", self.index))
            self._worker = GpuProcess(gpu_worker.uuid_of(there.api, uuid))
            answer = self._worker.receive(STARTUP_S)
            if answer is None or answer["say"] != "ready":
                words = self._worker.last_words() if answer is None else f"{answer['call']}: {answer['text']}"
                raise LaunchError(
                    "TK719", f"the process for launches on {there.gpu} does not start", notes=[words] if words else []
                )
        return self._worker

    def _end(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.end()

    def _death(self, launch: _Launch, worker: GpuProcess, seconds: float | None, harm: str = _UNHARMED) -> KernelError:
        """Why there was no answer."""
        self._worker = None
        words, status = worker.last_words(), worker.end()
        if worker.interrupted:
            return launch.error("TK716", "interrupted", "it was interrupted", [harm])
        if worker.overdue:
            text = f"it still ran after {seconds:g} s, and its process was ended"
            return launch.error("TK703", "timeout", text, [harm])
        cause = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        notes = [harm, words] if words else [harm]
        return launch.error("TK719", "died", f"the process that it ran in {cause}", notes)

    def _forget(self) -> None:
        """In a forked child: the worker is the parent's, and ends when the parent alone lets go of it."""
        worker, self._worker, self._stoppable = self._worker, None, None
        self._lock, self._stopping = threading.Lock(), threading.Lock()
        if worker is not None:
            worker.control.close()
            worker.process.returncode = 0  # it is no child of this process: nothing to wait for


_children: weakref.WeakSet[GpuChild] = weakref.WeakSet()


def _forget_all() -> None:
    for child in _children:
        child._forget()


os.register_at_fork(after_in_child=_forget_all)


def _failure(launch: _Launch, answer: dict[str, Any]) -> KernelError | LaunchError:
    """What the driver said: of a kernel, that it faulted; of anything else, that it was refused."""
    error = DriverError(answer["call"], answer["name"], answer["text"])
    if error.is_fault or answer["stage"] == "kernel":
        return launch.error("TK629", error.name, f"it faulted on {launch.there.gpu}: {error.text}", [_UNHARMED])
    room = "its process needs room for copies of the tensors: torch.cuda.empty_cache() makes some"
    return LaunchError(
        "TK628",
        f"{launch.manifest.kernel}: {error}",
        help=room if error.name == "CUDA_ERROR_OUT_OF_MEMORY" else None,
        data={"kind": error.name},
    )


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """An interrupt that comes meanwhile takes effect afterwards: results are written whole, or not at all."""
    if threading.current_thread() is not threading.main_thread():  # no other thread is interrupted
        yield
        return
    came: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler if handler is not None else signal.SIG_DFL)
        if came:
            signal.raise_signal(signal.SIGINT)


# ------------------------------------------------------------------------------------------------------ launches


@dataclass(frozen=True)
class _Region:
    """A range of addresses that parameters touch; `handle` is its allocation's, `offset` where it begins there."""

    begin: int
    end: int
    handle: str | None
    offset: int

    @property
    def nbytes(self) -> int:
        return self.end - self.begin

    def to_message(self) -> dict[str, Any]:
        phase = self.begin % gpu_worker.ALIGNMENT
        return {"nbytes": self.nbytes, "phase": phase, "handle": self.handle, "offset": self.offset}


class _Launch:
    """One launch as the child hears of it, and the file through which the rest goes."""

    def __init__(
        self,
        there: Context,
        manifest: Manifest,
        cubin: bytes,
        arguments: Sequence[Any],
        seen: Sequence[TensorFacts | None],
        grid: tuple[int, int, int],
    ) -> None:
        self.there = there
        self.manifest = manifest
        self.cubin = cubin
        self.seen = seen
        self.scalars = [
            "" if param.is_pointer else scalar_bytes(manifest.kernel, param, argument).hex()
            for param, argument in zip(manifest.params, arguments, strict=True)
        ]
        self.grid = grid
        self.asked: dict[str, Any] = {}  # what the message says beside
        self.workspace_bytes = manifest.workspace_bytes(arguments)
        # those of the tensors, then those of the workspaces
        self.regions: list[_Region] = []
        self.handles: dict[int, str] = {}  # of allocations, by their first address
        self.pages: mmap.mmap | None = None

    def begin(self, worker: GpuProcess, by_handle: bool) -> dict[str, Any] | None:
        """Send it and hear how it begins."""
        self.close()
        windows = merge(found.window for found in self.seen if found is not None)
        at = _pages(len(self.cubin))
        self.regions = []
        for begin, end in windows:
            handle, offset = self._handle(begin, end) if by_handle else (None, 0)
            if handle is None:
                offset, at = at, at + _pages(end - begin)
            self.regions.append(_Region(begin, end, handle, offset))
        given = tuple(self.regions)
        for nbytes in self.workspace_bytes:  # the file holds zeros there
            self.regions.append(_Region(0, nbytes, None, at))
            at += _pages(nbytes)
        descriptor = os.memfd_create("tilekit-launch", os.MFD_CLOEXEC)
        try:
            os.ftruncate(descriptor, at)
            self.pages = mmap.mmap(descriptor, at)
            self.pages[: len(self.cubin)] = self.cubin
            self._copy((region, 0, region.nbytes) for region in given)
            return worker.ask(self._message(), None, descriptor)
        finally:
            os.close(descriptor)

    def take_back(self, worker: GpuProcess) -> dict[str, Any] | None:
        """Have what was written copied over the tensors."""
        written: list[tuple[int, int, int]] = []
        for param, found in zip(self.manifest.params, self.seen, strict=True):
            if found is not None and param.written and found.nbytes:
                number, region = self._find(found)
                written.append((number, found.window[0] - region.begin, found.nbytes))
        answer = worker.ask({"say": "give back", "windows": written}, _WAY_BACK_S)
        if answer is not None and answer["say"] == "done":
            self._copy(((self.regions[number], begin, size) for number, begin, size in written), back=True)
        return answer

    def stray(self, number: int, before: int | None, after: int | None) -> KernelError:
        """The error of a kernel that wrote beside a region: named after the tensor at that end of it."""
        region = self.regions[number]
        if number >= self.tensor_regions:
            workspace = self.manifest.workspaces[number - self.tensor_regions]
            byte = -before if before is not None else region.nbytes + (after or 0)
            text = f"it writes outside of the workspace {workspace.name}, of {region.nbytes} bytes, at byte {byte}"
            return self.error("TK702", "out_of_bounds", text, [_UNHARMED], tensor=workspace.name, byte_offset=byte)
        if before is not None:
            end, edge, address = 0, region.begin, region.begin - before
        else:
            end, edge, address = 1, region.end, region.end + (after or 0)
        param, found = next(
            (param, found)
            for param, found in zip(self.manifest.params, self.seen, strict=True)
            if found is not None and found.window[end] == edge
        )
        element = (address - found.pointer) // found.dtype.nbytes
        shape = ", ".join(map(str, found.shape))
        return self.error(
            "TK702",
            "out_of_bounds",
            f"it writes outside of {param.name}, a {found.dtype}[{shape}], at element {element}",
            [_UNHARMED],
            tensor=param.name,
            index=(element,),
            byte_offset=address - found.window[0],
            shape=found.shape,
        )

    def error(self, code: str, kind: str, text: str, notes: Sequence[str], **data: object) -> KernelError:
        name = self.manifest.kernel
        about = {"kind": kind, "kernel": name, "text": text, **data}
        return KernelError(
            code,
            f"kernel '{name}': {text}",
            notes=notes,
            help="on the CPU the same call shows the line" if code in ("TK629", "TK702") else None,
            data=about,
        )

    def close(self) -> None:
        if self.pages is not None:
            self.pages.close()
            self.pages = None

    def _message(self) -> dict[str, Any]:
        manifest = self.manifest
        return {
            "say": "launch",
            "kernel": manifest.kernel,
            "binary": len(self.cubin),
            "grid": self.grid,
            "block": manifest.block,
            "shared_bytes": manifest.shared_bytes,
            **self.asked,
            "regions": [region.to_message() for region in self.regions],
            "arguments": [
                *(
                    (scalar,) if found is None else self._pointer(found)
                    for found, scalar in zip(self.seen, self.scalars, strict=True)
                ),
                *((number, 0) for number in range(self.tensor_regions, len(self.regions))),
            ],
        }

    @property
    def tensor_regions(self) -> int:
        """How many of the regions are those of tensors."""
        return len(self.regions) - len(self.workspace_bytes)

    def _pointer(self, found: TensorFacts) -> tuple[int, int]:
        number, region = self._find(found)
        return number, found.pointer - region.begin

    def _find(self, found: TensorFacts) -> tuple[int, _Region]:
        begin, end = found.window
        return next(
            (number, region)
            for number, region in enumerate(self.regions[: self.tensor_regions])
            if region.begin <= begin and end <= region.end and (begin < end or region.begin == begin)
        )

    def _handle(self, begin: int, end: int) -> tuple[str | None, int]:
        """The IPC handle of the allocation around these addresses, if there is one, and where they begin in it."""
        if begin == end:
            return None, 0
        api = self.there.api
        try:
            with self.there:
                first, size = driver.check(api, "cuMemGetAddressRange", api.cuMemGetAddressRange(begin))
                base = int(first)
                if base not in self.handles:
                    handle = driver.check(api, "cuIpcGetMemHandle", api.cuIpcGetMemHandle(base))
                    self.handles[base] = gpu_worker.handle_bytes(handle).hex()
        except DriverError as error:
            if error.is_fault:
                self.there.fail(error, self.manifest.kernel)
            return None, 0
        return (self.handles[base], begin - base) if end <= base + size else (None, 0)

    def _copy(self, parts: Iterator[tuple[_Region, int, int]], back: bool = False) -> None:
        """Copy what has no handle between the tensors and the file."""
        assert self.pages is not None
        base = ctypes.addressof(ctypes.c_char.from_buffer(self.pages))
        with self.there:
            for region, begin, nbytes in parts:
                if region.handle is not None or nbytes == 0:
                    continue
                host, device = base + region.offset + begin, region.begin + begin
                if back:
                    self.there.ask("cuMemcpyHtoD", device, host, nbytes)
                else:
                    self.there.ask("cuMemcpyDtoH", host, device, nbytes)


def _pages(nbytes: int) -> int:
    return max(1, -(-nbytes // _PAGE)) * _PAGE


@functools.cache
def child(index: int) -> GpuChild:
    """The child of this process for a GPU, kept warm."""
    return GpuChild(index)
