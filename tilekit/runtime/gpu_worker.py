# SPDX-License-Identifier: Apache-2.0
"""The child process in which a kernel runs that nobody has seen run yet: what it breaks is this process's own.

It is started as a script, with the number of its socket and the UUID of its GPU, and imports the standard library and
NVIDIA's driver API alone. On the socket it reads one JSON object a line, a launch with the descriptor of a file beside
it, in which the binary lies and the tensors that cannot be mapped.

A launch works on copies. The tensors of the other process are mapped, copied, and unmapped before the kernel begins: a
mapping can be written, and spans everything that the allocator has put into the same block. Around each copy lie guard
bytes, which tell a kernel that wrote outside. Only when the other side, having heard that all went well, says so, the
copies go back. While a kernel runs, anything that arrives, and the end of the other side, ends this process.

A launch may ask to be timed. Then the kernel runs once as any other, and if that went well several times more: all runs
are queued behind a gate in the stream before the first begins, so that no host is waited for, and before each of them a
kernel of ours reads so much memory that the L2 cache holds nothing else. Reading leaves nothing to be written back.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import json
import mmap
import os
import select
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from typing import Any

GUARD = 256 << 10  # bytes before and after each copy
ALIGNMENT = 4096  # a copy lies where its original does, modulo this: no access is more aligned
SLOT = 16  # bytes from one parameter to the next
_STATIC_SHARED_LIMIT = 48 * 1024
_HANDLE = 64  # bytes of an IPC handle
_QUICK_LOOKS = 200  # at the running kernel, before looking every millisecond
_FEW = 3  # runs after which a hopeless kernel is known
_HOPELESS = 2.0  # times as slow at its best as what is the best so far
_BATCH = 32  # runs in the queue at a time; the driver lets a thousand commands wait
_LONG_ENOUGH = 0.5  # seconds of runs, after which there are no more batches
_FLUSH_BLOCKS, _FLUSH_THREADS = 1024, 256
# Reads `count` times 16 bytes. They are zero, which only we know: a sum that is not would be stored.
_FLUSH = b"""
.version 7.0
.target sm_80
.address_size 64
.visible .entry flush(.param .u64 data, .param .u64 count)
{
  .reg .pred %past, %stores;
  .reg .b32 %block, %threads, %thread, %blocks, %sum, %a, %b, %c, %d;
  .reg .b64 %data, %count, %at, %step, %address;
  ld.param.u64 %data, [data];
  ld.param.u64 %count, [count];
  mov.u32 %block, %ctaid.x;
  mov.u32 %threads, %ntid.x;
  mov.u32 %thread, %tid.x;
  mov.u32 %blocks, %nctaid.x;
  cvt.u64.u32 %at, %thread;
  mad.wide.u32 %at, %block, %threads, %at;
  mul.wide.u32 %step, %blocks, %threads;
  mov.u32 %sum, 0;
next:
  setp.ge.u64 %past, %at, %count;
  @%past bra done;
  shl.b64 %address, %at, 4;
  add.u64 %address, %address, %data;
  ld.global.v4.u32 {%a, %b, %c, %d}, [%address];
  or.b32 %a, %a, %b;
  or.b32 %c, %c, %d;
  or.b32 %sum, %sum, %a;
  or.b32 %sum, %sum, %c;
  add.u64 %at, %at, %step;
  bra next;
done:
  setp.ne.u32 %stores, %sum, 0;
  @%stores st.global.u32 [%data], %sum;
  ret;
}
"""


class Failure(Exception):
    """The driver answered something else than success; `stage` is what was being done."""

    def __init__(self, call: str, name: str, text: str) -> None:
        super().__init__(f"{call}: {name}, {text}")
        self.call = call
        self.name = name
        self.text = text
        self.stage = ""


class Gpu:
    """One GPU by the driver API, each answer checked."""

    def __init__(self, api: Any, uuid: bytes) -> None:
        self.api = api
        self.ask("cuInit", 0)
        for index in range(self.ask("cuDeviceGetCount")):
            device = self.ask("cuDeviceGet", index)
            if uuid_of(api, self.ask("cuDeviceGetUuid", device)) == uuid:
                break
        else:
            raise Failure("cuDeviceGetUuid", "CUDA_ERROR_NO_DEVICE", f"no GPU here has the UUID {uuid.hex()}")
        self.ask("cuCtxSetCurrent", self.ask("cuDevicePrimaryCtxRetain", device))

    @functools.cached_property
    def flush(self) -> Any:
        """The kernel that leaves a cold L2 cache; the driver compiles it, so it is loaded once."""
        return self.ask("cuModuleGetFunction", self.ask("cuModuleLoadData", _FLUSH), b"flush")

    def ask(self, call: str, *arguments: Any) -> Any:
        status, *values = getattr(self.api, call)(*arguments)
        if status != self.api.CUresult.CUDA_SUCCESS:
            raise self.failure(call, status)
        return values[0] if len(values) == 1 else tuple(values)

    def failure(self, call: str, status: Any) -> Failure:
        _, text = self.api.cuGetErrorString(status)
        return Failure(call, self.api.CUresult(status).name, text.decode() if isinstance(text, bytes) else "unknown")

    def open(self, handle: bytes) -> int:
        """Map an allocation of the other process."""
        theirs = self.api.CUipcMemHandle()
        ctypes.memmove(theirs.getPtr(), handle, _HANDLE)
        return int(self.ask("cuIpcOpenMemHandle", theirs, 1))


def uuid_of(api: Any, uuid: Any) -> bytes:
    """The bytes of the binding's object."""
    return ctypes.string_at(uuid.getPtr(), 16)


def handle_bytes(handle: Any) -> bytes:
    """The bytes of the binding's object; its fields have had different names."""
    return ctypes.string_at(handle.getPtr(), _HANDLE)


# ------------------------------------------------------------------------------------------------------- copies


class Guard:
    """The bytes that lie around each copy: random, so that hardly any kernel writes the very same."""

    def __init__(self) -> None:
        self.pattern = ctypes.create_string_buffer(os.urandom(GUARD), GUARD)
        self.found = ctypes.create_string_buffer(GUARD)

    def put(self, gpu: Gpu, begin: int) -> None:
        gpu.ask("cuMemcpyHtoD", begin, ctypes.addressof(self.pattern), GUARD)

    def changes(self, gpu: Gpu, begin: int) -> list[int]:
        """The first and the last byte that is not what was put there; nothing if all are."""
        gpu.ask("cuMemcpyDtoH", ctypes.addressof(self.found), begin, GUARD)
        wanted, found = self.pattern.raw, self.found.raw
        if found == wanted:
            return []
        first = next(i for i in range(GUARD) if found[i] != wanted[i])
        return [first, next(i for i in reversed(range(GUARD)) if found[i] != wanted[i])]


class Copy:
    """Memory of our own for one region of the other process's, between guards."""

    def __init__(self, gpu: Gpu, guard: Guard, region: dict[str, Any]) -> None:
        self.gpu = gpu
        self.guard = guard
        self.nbytes: int = region["nbytes"]
        self.handle: str | None = region["handle"]
        self.offset: int = region["offset"]  # in the allocation of the handle; without one, in the file
        self.base = int(gpu.ask("cuMemAlloc", GUARD + ALIGNMENT + self.nbytes + GUARD))
        self.begin = self.base + GUARD + (region["phase"] - self.base - GUARD) % ALIGNMENT
        guard.put(gpu, self.begin - GUARD)
        guard.put(gpu, self.begin + self.nbytes)

    def fetch(self, begin_of: dict[str | None, int]) -> None:
        """Copy the original, given where each allocation is mapped, and under None the file."""
        if self.nbytes:
            call = "cuMemcpyHtoD" if self.handle is None else "cuMemcpyDtoD"
            self.gpu.ask(call, self.begin, begin_of[self.handle] + self.offset, self.nbytes)

    def give_back(self, begin_of: dict[str | None, int], begin: int, nbytes: int) -> None:
        """Copy some bytes of it over those of the original."""
        if nbytes:
            call = "cuMemcpyDtoH" if self.handle is None else "cuMemcpyDtoD"
            self.gpu.ask(call, begin_of[self.handle] + self.offset + begin, self.begin + begin, nbytes)

    def strays(self) -> tuple[int | None, int | None]:
        """How many bytes before its beginning, and behind its end, the kernel wrote at the nearest."""
        before = self.guard.changes(self.gpu, self.begin - GUARD)
        after = self.guard.changes(self.gpu, self.begin + self.nbytes)
        return GUARD - before[1] if before else None, after[0] if after else None

    def free(self) -> None:
        self.gpu.ask("cuMemFree", self.base)


class File:
    """The file of one launch: the binary, and the tensors that cannot be mapped."""

    def __init__(self, descriptor: int) -> None:
        self.pages = mmap.mmap(descriptor, 0)
        os.close(descriptor)

    @property
    def address(self) -> int:
        return ctypes.addressof(ctypes.c_char.from_buffer(self.pages))

    def read(self, size: int) -> bytes:
        return self.pages[:size]

    def close(self) -> None:
        self.pages.close()


# ------------------------------------------------------------------------------------------------------ launches


class Launch:
    """One launch, from the copies that it works on to their way back."""

    def __init__(self, gpu: Gpu, guard: Guard, message: dict[str, Any], file: File) -> None:
        self.gpu = gpu
        self.guard = guard
        self.message = message
        self.file = file
        self.copies: list[Copy] = []

    def fetch(self) -> None:
        """Make the copies; afterwards nothing of the other process's is mapped any more."""
        handles = {region["handle"] for region in self.message["regions"]}
        with self.mapped(handles) as begin_of:
            for region in self.message["regions"]:
                self.copies.append(Copy(self.gpu, self.guard, region))
                self.copies[-1].fetch(begin_of)
            self.gpu.ask("cuCtxSynchronize")

    def run(self, conversation: Conversation) -> dict[str, Any]:
        """Run the kernel on the copies, and say how long it took and where it wrote outside of them."""
        message, ask, api = self.message, self.gpu.ask, self.gpu.api
        module = ask("cuModuleLoadData", self.file.read(message["binary"]))
        function = ask("cuModuleGetFunction", module, message["kernel"].encode())
        if message["shared_bytes"] > _STATIC_SHARED_LIMIT:
            attribute = api.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            ask("cuFuncSetAttribute", function, attribute, message["shared_bytes"])
        begin, end = ask("cuEventCreate", 0), ask("cuEventCreate", 0)
        slots = Slots([self.value(argument) for argument in message["arguments"]])
        conversation.write({"say": "started"})
        shape = (*message["grid"], message["block"], 1, 1, message["shared_bytes"])
        ask("cuEventRecord", begin, 0)
        ask("cuLaunchKernel", function, *shape, 0, slots.address, 0)
        with at("kernel"):
            ask("cuEventRecord", end, 0)
            self.wait(end, conversation)
            ask("cuCtxSynchronize")  # also writes what the kernel printed
        seconds = ask("cuEventElapsedTime", begin, end) / 1e3
        ctypes.CDLL(None).fflush(None)
        strays = [copy.strays() for copy in self.copies]
        ended = {"say": "ended", "seconds": seconds, "strays": strays}
        if "times" in message and not any(end is not None for pair in strays for end in pair):
            conversation.write({"say": "ran", "seconds": seconds})
            bench = Bench(self.gpu, message["flush"], lambda event: self.wait(event, conversation))
            with at("kernel"):
                ended |= self.time(
                    bench, seconds, lambda on: ask("cuLaunchKernel", function, *shape, on, slots.address, 0)
                )
            bench.close()
        ask("cuEventDestroy", begin)
        ask("cuEventDestroy", end)
        ask("cuModuleUnload", module)
        return ended

    def time(self, bench: Bench, first: float, start: Callable[[Any], None]) -> dict[str, Any]:
        """The seconds of several runs, few of a kernel that cannot be the best; `first` are those of the run before."""
        wanted: int = self.message["times"]
        leader: float | None = self.message["leader"]
        bench.runs(start, min(self.message["warmup"], int(_LONG_ENOUGH / max(first, 1e-9))))
        seconds = bench.runs(start, min(_FEW, wanted))
        hopeless = leader is not None and min(seconds) > _HOPELESS * leader
        while not hopeless and len(seconds) < wanted and sum(seconds) < _LONG_ENOUGH:
            fitting = int((_LONG_ENOUGH - sum(seconds)) / max(min(seconds), 1e-9)) + 1
            seconds += bench.runs(start, min(_BATCH, wanted - len(seconds), fitting))
        return {"times": seconds, "hopeless": hopeless}

    def wait(self, event: Any, conversation: Conversation) -> None:
        api = self.gpu.api
        for look in itertools.count():
            (status,) = api.cuEventQuery(event)
            if status == api.CUresult.CUDA_SUCCESS:
                return
            if status != api.CUresult.CUDA_ERROR_NOT_READY:
                raise self.gpu.failure("cuEventQuery", status)
            if conversation.is_readable(0 if look < _QUICK_LOOKS else 1):
                os.kill(os.getpid(), signal.SIGKILL)  # an orderly end would wait for the kernel

    def give_back(self, windows: list[list[int]]) -> None:
        """Write these bytes of the regions, (region, begin, size), where they came from."""
        handles = {self.copies[region].handle for region, _, _ in windows}
        with self.mapped(handles) as begin_of:
            for region, begin, nbytes in windows:
                self.copies[region].give_back(begin_of, begin, nbytes)
            self.gpu.ask("cuCtxSynchronize")

    def close(self) -> None:
        while self.copies:
            self.copies.pop().free()

    def value(self, argument: list[Any]) -> bytes:
        """The bytes of an argument: (hex,) as they are, (region, offset) an address."""
        if len(argument) == 1:
            return bytes.fromhex(argument[0])
        region, offset = argument
        return (self.copies[region].begin + offset).to_bytes(8, sys.byteorder)

    @contextlib.contextmanager
    def mapped(self, handles: set[str | None]) -> Iterator[dict[str | None, int]]:
        """Where each allocation begins while it is mapped; None stands for the file, which always is."""
        begin_of: dict[str | None, int] = {None: self.file.address}
        with contextlib.ExitStack() as mappings:
            with at("map"):
                for handle in sorted(handle for handle in handles if handle is not None):
                    begin_of[handle] = self.gpu.open(bytes.fromhex(handle))
                    mappings.callback(self.gpu.ask, "cuIpcCloseMemHandle", begin_of[handle])
            yield begin_of


class Bench:
    """Times runs that begin with a cold L2 cache and wait for no host."""

    def __init__(self, gpu: Gpu, flush_bytes: int, wait: Callable[[Any], None]) -> None:
        self.gpu = gpu
        self.wait = wait  # for an event
        self.stream = gpu.ask("cuStreamCreate", 1)  # it waits for no other stream
        self.memory = int(gpu.ask("cuMemAlloc", flush_bytes))
        gpu.ask("cuMemsetD8", self.memory, 0, flush_bytes)
        self.slots = Slots([value.to_bytes(8, sys.byteorder) for value in (self.memory, flush_bytes // 16)])
        self.flush = gpu.flush  # loaded now: behind the gate it might wait for what waits there
        self.gate = int(gpu.ask("cuMemHostAlloc", 4, 2))  # the GPU may look at it
        self.gate_there = int(gpu.ask("cuMemHostGetDevicePointer", self.gate, 0))

    def runs(self, start: Callable[[Any], None], count: int) -> list[float]:
        """The seconds of each run."""
        if count == 0:
            return []
        ask = self.gpu.ask
        events = [(ask("cuEventCreate", 0), ask("cuEventCreate", 0)) for _ in range(count)]
        gate = ctypes.c_uint32.from_address(self.gate)
        gate.value = 0
        ask("cuStreamWaitValue32", self.stream, self.gate_there, 1, 1)  # until it is 1
        try:
            for begin, end in events:
                ask(
                    "cuLaunchKernel", self.flush, _FLUSH_BLOCKS, 1, 1, _FLUSH_THREADS, 1, 1, 0,
                    self.stream, self.slots.address, 0,
                )  # fmt: skip
                ask("cuEventRecord", begin, self.stream)
                start(self.stream)
                ask("cuEventRecord", end, self.stream)
        finally:
            gate.value = 1
        self.wait(events[-1][1])
        seconds = [ask("cuEventElapsedTime", begin, end) / 1e3 for begin, end in events]
        for pair in events:
            for event in pair:
                ask("cuEventDestroy", event)
        return seconds

    def close(self) -> None:
        self.gpu.ask("cuMemFreeHost", self.gate)
        self.gpu.ask("cuMemFree", self.memory)
        self.gpu.ask("cuStreamDestroy", self.stream)


class Slots:
    """The parameters of a kernel in memory, and the list of pointers to them."""

    def __init__(self, values: list[bytes]) -> None:
        self.storage = ctypes.create_string_buffer(b"".join(value.ljust(SLOT, b"\0") for value in values))
        base = ctypes.addressof(self.storage)
        self.pointers = (ctypes.c_void_p * max(len(values), 1))(*[base + SLOT * i for i in range(len(values))])
        self.address = ctypes.addressof(self.pointers)


@contextlib.contextmanager
def at(stage: str) -> Iterator[None]:
    """Say of a failure at what stage it came."""
    try:
        yield
    except Failure as failure:
        failure.stage = stage
        raise


# ---------------------------------------------------------------------------------------------- the conversation


class Conversation:
    """The socket as lines, with the descriptors that came beside them."""

    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.pending = b""
        self.descriptors: list[int] = []
        self.poll = select.poll()
        self.poll.register(control, select.POLLIN)

    def read(self) -> dict[str, Any] | None:
        """The next line; None when the other side is gone."""
        while b"\n" not in self.pending:
            data, descriptors, _, _ = socket.recv_fds(self.control, 1 << 16, 4)
            if not data:
                return None
            self.pending += data
            self.descriptors.extend(descriptors)
        line, self.pending = self.pending.split(b"\n", 1)
        return json.loads(line)

    def write(self, message: dict[str, Any]) -> None:
        self.control.sendall(json.dumps(message).encode() + b"\n")

    def is_readable(self, milliseconds: int) -> bool:
        return bool(self.pending or self.poll.poll(milliseconds))


def serve(api: Any, control: socket.socket, uuid: bytes) -> None:
    """Answer launches until the other side closes the socket."""
    conversation = Conversation(control)
    try:
        gpu, guard = Gpu(api, uuid), Guard()
        conversation.write({"say": "ready"})
        while (message := conversation.read()) is not None:
            file = File(conversation.descriptors.pop(0))
            answer(conversation, Launch(gpu, guard, message, file))
            file.close()
    except Failure as failure:
        # whatever state the context is in now: the other side starts another process
        conversation.write({"say": "failed", **vars(failure)})
    except (BrokenPipeError, ConnectionResetError):
        pass


def answer(conversation: Conversation, launch: Launch) -> None:
    try:
        launch.fetch()
    except Failure as failure:
        if failure.stage != "map":
            raise
        conversation.write({"say": "unmapped", "why": str(failure)})
        return
    conversation.write(launch.run(conversation))
    verdict = conversation.read()
    if verdict is None:  # the kernel wrote where it should not
        return
    if verdict["say"] == "give back":
        launch.give_back(verdict["windows"])
    launch.close()
    conversation.write({"say": "done"})


def main() -> None:
    from cuda.bindings import driver  # pyright: ignore[reportMissingImports, reportAttributeAccessIssue]

    serve(driver, socket.socket(fileno=int(sys.argv[1])), bytes.fromhex(sys.argv[2]))


if __name__ == "__main__":
    main()
