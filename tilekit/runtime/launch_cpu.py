# SPDX-License-Identifier: Apache-2.0
"""Launching a kernel on the CPU simulator: its tensors travel to the worker process and back by memory window.

A window is the range of bytes that a parameter touches. Windows that overlap become one region of shared memory, at
their true offsets, so that a call in place or with overlapping views means what it means on a GPU. Every window is
copied in, for a kernel may leave parts of its outputs alone; the windows of written parameters are copied out, and
only after the kernel came to its end.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import math
import random
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tilekit import config
from tilekit.cpusim.build import Runtime, build_runtime
from tilekit.cpusim.client import (
    DEFAULT_TIMEOUT_S,
    Check,
    LaunchRequest,
    LaunchResult,
    Pointer,
    Scalar,
    SharedBuffer,
    Simulator,
)
from tilekit.cpusim.memory import Region
from tilekit.diag import ArgumentError, ConfigError, KernelError
from tilekit.runtime import tensors
from tilekit.runtime.launch import NOTHING_LAUNCHED, CheckStats, LaunchStats, OnWait
from tilekit.runtime.manifest import Manifest, Param
from tilekit.runtime.packing import Packer, scalar_bytes
from tilekit.runtime.tensors import CPU, TensorFacts
from tilekit.toolchain.host import HostCompiler

# what fills memory that holds nothing yet: a not-a-number in every float type
UNWRITTEN = 0xFF


class CpuDevice:
    """The CPU as a device of this process: the simulator, and the library that it runs on."""

    def __init__(self, cache_dir: Path, compiler: HostCompiler) -> None:
        self.cache_dir = cache_dir
        self.compiler = compiler
        self.runtime: Runtime = self._build()
        self._untold = self.runtime.seconds
        self.simulator = Simulator(self.runtime.library)
        self.lock = threading.Lock()  # one launch at a time, its copies included: they share the pool of regions

    def ready(self) -> Simulator:
        """The simulator; if someone deleted the cache, its library is built again, for a worker may have to start."""
        if not self.runtime.library.exists():
            self.runtime = self._build()
        return self.simulator

    def _build(self) -> Runtime:
        """The runtime in the cache, or of this process alone where the cache cannot be written."""
        try:
            return build_runtime(self.cache_dir, self.compiler)
        except ConfigError:
            return build_runtime(config.private_folder(), self.compiler)

    def build_seconds(self) -> float:
        """What building the runtime took; told once, to the kernel that had to wait for it."""
        taken, self._untold = self._untold, 0.0
        return taken

    def interrupt(self) -> None:
        """Stop the running launch, from another thread."""
        self.simulator.interrupt()


@functools.cache
def cpu_device(cache_dir: Path, compiler: HostCompiler) -> CpuDevice:
    """The device of this process for a cache folder; the first call may build the runtime, and start no worker."""
    return CpuDevice(cache_dir, compiler)


class CpuKernel:
    """A compiled kernel: `library` is where its `lib.so` lies, `content` what is in it, should the file change."""

    def __init__(
        self,
        manifest: Manifest,
        library: Path,
        content: bytes,
        device: CpuDevice,
        line_buffers: Sequence[int] | None = None,
        *,
        edited: bool = False,
    ) -> None:
        # of a library that was built for check mode, for each line of the source the number of the tensor in
        # `manifest.shared` that it accesses; None for a library of the other kind
        self.line_buffers = line_buffers
        self.manifest = manifest
        self.device = device
        self.edited = edited  # a person has changed its source, so it may do anything
        self._library = library
        self._content = content
        # the file of the library as it was when its bytes were right
        self._looked_at: tuple[int, int, int] | None = None
        self._packer = Packer(manifest.kernel, manifest.params)

    def launch(
        self,
        arguments: Sequence[Any],
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        os_threads: int | None = None,
        seed: int = 0,
        sample: int | None = None,
        keep: bool = True,
        strict: bool = True,
        on_wait: OnWait | None = None,
    ) -> LaunchStats:
        """Run the kernel to its end; whatever it does wrong is a KernelError, and then no tensor has changed.

        Of a library that was built for check mode, `sample` is the number of blocks to run, None for all; without
        `keep`, no tensor changes; without `strict`, blocks may write the same value to one place. `on_wait` is called
        now and then in this thread, with the blocks that have ended and how many there are.
        """
        self._packer.check_count(arguments)
        grid = self.manifest.extents(arguments)
        seen = [self._look(param, argument) for param, argument in zip(self.manifest.params, arguments, strict=True)]
        if 0 in grid:
            return NOTHING_LAUNCHED
        with self.device.lock, _Regions(self.device, [found for found in seen if found is not None]) as regions:
            begin = time.perf_counter()
            regions.copy_in()
            lent = self._lend(arguments, regions)
            copied_in = time.perf_counter()
            count = math.prod(grid)
            blocks = () if sample is None else choose_blocks(grid, sample, seed)
            ran = len(blocks) or count
            request = LaunchRequest(
                library=self._present_library(),
                kernel=self.manifest.kernel,
                grid=grid,
                block=(self.manifest.block, 1, 1),
                shared_bytes=self.manifest.shared_bytes,
                regions=regions.regions,
                arguments=[*self._arguments(arguments, seen, regions), *lent],
                timeout_s=timeout_s,
                os_threads=os_threads or config.available_cpus(),
                seed=seed,
                check=None if self.line_buffers is None else self._check(blocks, strict=strict),
                edited=self.edited,
                on_wait=None if on_wait is None else lambda finished: on_wait(finished, ran),
            )
            try:
                result = self._run(request)
            except KernelError as error:
                self._explain(error, seen)
                raise
            ended = time.perf_counter()
            if not blocks:
                self._check_clean(lent, regions)
            if keep:
                written = (found for param, found in zip(self.manifest.params, seen, strict=True) if param.written)
                regions.copy_out(written)
            copying = (copied_in - begin) + (time.perf_counter() - ended)
        checked = None
        if self.line_buffers is not None:
            numbers = tuple(blocks) if ran < count else ()
            checked = CheckStats(ran, count, seed, result.seconds, result.counters, numbers)
        return LaunchStats(result.seconds, copying, result.counters, result.printed, checked)

    def _check(self, blocks: Sequence[int], *, strict: bool) -> Check:
        buffers = [SharedBuffer(place.name, place.offset, place.nbytes) for place in self.manifest.shared]
        return Check(buffers, self.line_buffers or (), blocks, strict)

    def _look(self, param: Param, argument: Any) -> TensorFacts | None:
        """The facts of what a pointer parameter is given; None for a scalar."""
        if not param.is_pointer:
            return None
        if not tensors.is_tensor(argument):
            what = f"the address {argument}" if isinstance(argument, int) else f"a {type(argument).__name__}"
            raise ArgumentError(
                "TK622",
                f"{self.manifest.kernel}: {param.name} is {what}, and on the CPU a pointer must be given as a tensor",
                help="the kernel runs in a process of its own, which sees the tensors that it is given and no more",
            )
        found = tensors.facts(argument)
        if found.device != CPU:
            where = f"{param.name} is on {found.device}"
            raise ArgumentError("TK622", f"{self.manifest.kernel}: {where}, and the kernel is launched on the CPU")
        if param.written and not found.writable:
            raise ArgumentError(
                "TK624",
                f"{self.manifest.kernel} writes {param.name}, and that array is read-only",
                help="pass a copy of it",
            )
        return found

    def _arguments(
        self, arguments: Sequence[Any], seen: Sequence[TensorFacts | None], regions: _Regions
    ) -> list[Scalar | Pointer]:
        return [
            Scalar(scalar_bytes(self.manifest.kernel, param, argument))
            if found is None
            else regions.pointer(param.name, found, written=param.written)
            for param, argument, found in zip(self.manifest.params, arguments, seen, strict=True)
        ]

    def _lend(self, arguments: Sequence[Any], regions: _Regions) -> list[Pointer]:
        """Memory for the workspaces of a launch: zeros, or what shows where nobody has written."""
        sizes = zip(self.manifest.workspaces, self.manifest.workspace_bytes(arguments), strict=True)
        return [regions.lend(workspace.name, size, 0 if workspace.clean else UNWRITTEN) for workspace, size in sizes]

    def _check_clean(self, lent: Sequence[Pointer], regions: _Regions) -> None:
        """Refuse a kernel that leaves something in a workspace which the next launch expects to hold zeros."""
        for workspace, pointer in zip(self.manifest.workspaces, lent, strict=True):
            left = bytes(regions.regions[pointer.region].view) if workspace.clean else b""
            if left.count(0) != len(left):
                first = next(number for number, byte in enumerate(left) if byte)
                raise KernelError(
                    "TK707",
                    f"kernel '{self.manifest.kernel}': {workspace.name} must be left zero, and byte {first} is not",
                    help="the kernel must set every element that it writes to 0 again before it ends",
                    data={
                        "kind": "unclean",
                        "kernel": self.manifest.kernel,
                        "tensor": workspace.name,
                        "byte_offset": first,
                    },
                )

    def _run(self, request: LaunchRequest) -> LaunchResult:
        try:
            return self.device.ready().run(request)
        except KernelError as error:
            if error.kind != "refused" or (library := self._present_library()) == request.library:
                raise
        # somebody deleted the library in this moment, or wrote to it; nothing has run
        return self.device.ready().run(replace(request, library=library))

    def _present_library(self) -> Path:
        """Where the library lies now; one that is gone, or not as it was, is written again, outside of the cache."""
        if not self._is_as_written():
            if self._library.exists():
                # a worker may have loaded it, and is killed where it looks at a part that is no longer there
                self.device.simulator.end_workers()
            self._library = Path(tempfile.mkdtemp(dir=config.private_folder())) / self._library.name
            self._library.write_bytes(self._content)
        return self._library

    def _is_as_written(self) -> bool:
        """Whether the library's file holds its bytes; they are read again where the file has changed since."""
        with contextlib.suppress(OSError):
            found = self._library.stat()
            state = (found.st_ino, found.st_size, found.st_mtime_ns)
            if state != self._looked_at and self._library.read_bytes() == self._content:
                self._looked_at = state
            return state == self._looked_at
        return False

    def _explain(self, error: KernelError, seen: Sequence[TensorFacts | None]) -> None:
        """Say what the tensor is that the kernel mishandled: the simulator knows bytes only."""
        name = error.data.get("tensor")
        for param, found in zip(self.manifest.params, seen, strict=True):
            if found is not None and param.name == name and not error.data["is_shared"]:
                error.data["shape"] = found.shape
                error.data["index"] = _index(found, error.data.get("byte_offset"))
                error.noted(f"{name} is {found.dtype}[{', '.join(map(str, found.shape))}], {found.nbytes} bytes")


def _index(found: TensorFacts, offset: object) -> tuple[int, ...] | None:
    """The index of the element of a contiguous tensor that a byte belongs to; outside of it, the first digit is."""
    if not isinstance(offset, int) or not found.shape or not found.nbytes or not found.contiguous:
        return None
    element = offset // found.dtype.nbytes
    index: list[int] = []
    for extent in reversed(found.shape[1:]):
        element, digit = divmod(element, extent)
        index.append(digit)
    return (element, *reversed(index))


def choose_blocks(grid: Sequence[int], count: int, seed: int) -> list[int]:
    """Numbers of blocks to check, x fastest: the corners of the grid, which differ most, and others by the seed."""
    total = math.prod(grid)
    corners = sorted({x + grid[0] * (y + grid[1] * z) for x, y, z in itertools.product(*({0, n - 1} for n in grid))})
    if count >= total:
        return list(range(total))
    others = random.Random(seed)
    chosen = set(corners if count >= len(corners) else others.sample(corners, count))
    while len(chosen) < count:
        chosen.add(others.randrange(total))
    return sorted(chosen)


@dataclass
class _Group:
    """Windows that overlap, as one range of addresses and the region that stands for it."""

    begin: int
    end: int
    region: Region

    @property
    def address(self) -> int:
        """Where the region lies in this process."""
        return ctypes.addressof(ctypes.c_char.from_buffer(self.region.file.pages)) + self.region.begin


class _Regions(contextlib.AbstractContextManager["_Regions"]):
    """The regions of one launch; leaving gives them back to the pool."""

    def __init__(self, device: CpuDevice, seen: Sequence[TensorFacts]) -> None:
        self._memory = device.simulator.memory
        self._groups: list[_Group] = []
        self._lent: list[Region] = []
        try:
            for begin, end in merge(found.window for found in seen):
                self._groups.append(_Group(begin, end, self._memory.allocate(end - begin, begin)))
        except BaseException:
            self.__exit__()
            raise

    @property
    def regions(self) -> list[Region]:
        return [*(group.region for group in self._groups), *self._lent]

    def lend(self, name: str, nbytes: int, byte: int) -> Pointer:
        """A region of our own, full of one byte, for a workspace."""
        region = self._memory.allocate(nbytes)
        self._lent.append(region)
        ctypes.memset(ctypes.addressof(ctypes.c_char.from_buffer(region.view)), byte, nbytes)
        return Pointer(len(self.regions) - 1, 0, nbytes, name, undefined=byte == UNWRITTEN)

    def pointer(self, name: str, found: TensorFacts, *, written: bool) -> Pointer:
        """The argument for a tensor: where its first element lies; its window is what the kernel may touch."""
        number, group = self._find(found)
        return Pointer(number, found.window[0] - group.begin, found.nbytes, name, written)

    def copy_in(self) -> None:
        for group in self._groups:
            ctypes.memmove(group.address, group.begin, group.end - group.begin)

    def copy_out(self, seen: Iterator[TensorFacts | None]) -> None:
        for found in seen:
            if found is not None and found.nbytes:
                _, group = self._find(found)
                begin, end = found.window
                ctypes.memmove(begin, group.address + (begin - group.begin), end - begin)

    def _find(self, found: TensorFacts) -> tuple[int, _Group]:
        begin, end = found.window
        return next(
            (number, group)
            for number, group in enumerate(self._groups)
            if group.begin <= begin and end <= group.end and (begin < end or group.begin == begin)
        )

    def __exit__(self, *_: object) -> None:
        while self._groups:
            self._memory.release(self._groups.pop().region)
        while self._lent:
            self._memory.release(self._lent.pop())


def merge(windows: Iterator[tuple[int, int]]) -> list[tuple[int, int]]:
    """Unite the windows that share bytes; those that only touch stay apart, each with its own guard page."""
    merged: list[tuple[int, int]] = []
    for begin, end in sorted(set(windows)):
        if merged and begin < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged
