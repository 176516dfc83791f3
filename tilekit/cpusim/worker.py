# SPDX-License-Identifier: Apache-2.0
"""The simulator's child process: receives launches, runs them in libtkcpu.so, and sends back what happened.

It is started as a script, with the number of its socket, the path of the library and the descriptor of a page in which
it counts the blocks that have ended. It imports the standard library alone, so that it starts quickly. On the socket it
reads one JSON object a line, some with file descriptors beside them, and answers each launch with one line. Anything
that arrives during a launch interrupts it, and so does the end of the other side. It ends when the other side has
closed the socket.
"""

from __future__ import annotations

import contextlib
import ctypes as c
import json
import os
import resource
import socket
import sys
from collections import deque
from typing import Any

GUARD = 64 << 20  # bytes on either side of a region that fault; the runtime calls accesses there out of bounds
PAGE = 4096
SLOT = 64  # every parameter begins at a multiple of this

# The names of tk_kind, in its order.
KINDS = (
    "",
    "fail",
    "deadlock",
    "divergence",
    "out_of_bounds",
    "misaligned",
    "segfault",
    "division_by_zero",
    "stack overflow",
    "timeout",
    "interrupted",
    "race",
    "global_race",
    "in_flight",
    "uninitialized",
    "shift",
)

# ---------------------------------------------------------------------------- tk/cpu/abi.h, for ctypes


class Dim3(c.Structure):
    _fields_ = [("x", c.c_uint32), ("y", c.c_uint32), ("z", c.c_uint32)]

    def to_list(self) -> list[int]:
        return [self.x, self.y, self.z]


class Image(c.Structure):
    _fields_ = [("base", c.c_void_p), ("text", c.c_void_p), ("text_end", c.c_void_p)]


class Region(c.Structure):
    _fields_ = [("mapped", c.c_void_p), ("begin", c.c_void_p), ("end", c.c_void_p), ("mapped_end", c.c_void_p)]


class Tensor(c.Structure):
    _fields_ = [
        ("begin", c.c_void_p),
        ("bytes", c.c_uint64),
        ("name", c.c_char_p),
        ("written", c.c_int32),
        ("undefined", c.c_int32),
    ]


class Buffer(c.Structure):
    _fields_ = [("offset", c.c_uint32), ("bytes", c.c_uint32), ("name", c.c_char_p)]


class Launch(c.Structure):
    _fields_ = [
        ("kernel", c.c_void_p),
        ("arguments", c.c_void_p),
        ("image", Image),
        ("grid", Dim3),
        ("block", Dim3),
        ("shared_bytes", c.c_uint32),
        ("os_threads", c.c_int32),
        ("seed", c.c_uint64),
        ("timeout_s", c.c_double),
        ("control", c.c_int32),
        ("regions", c.c_int32),
        ("region", c.c_void_p),
        ("tensors", c.c_int32),
        ("tensor", c.c_void_p),
        ("check", c.c_int32),
        ("strict", c.c_int32),
        ("edited", c.c_int32),
        ("buffers", c.c_int32),
        ("buffer", c.c_void_p),
        ("lines", c.c_int32),
        ("line_buffer", c.c_void_p),
        ("blocks", c.c_uint64),
        ("block_number", c.c_void_p),
        ("finished", c.c_void_p),
    ]


class Note(c.Structure):
    _fields_ = [("line", c.c_int32), ("text", c.c_char * 240)]


class Access(c.Structure):
    _fields_ = [
        ("line", c.c_int32),
        ("pc", c.c_uint64),
        ("block", Dim3),
        ("thread", c.c_int32),
        ("writes", c.c_int32),
        ("verb", c.c_char * 32),
    ]

    def to_dict(self) -> dict[str, Any]:
        return {
            "line": self.line,
            "pc": self.pc,
            "block": self.block.to_list(),
            "thread": self.thread,
            "verb": self.verb.decode(),
        }


class Error(c.Structure):
    _fields_ = [
        ("kind", c.c_int32),
        ("line", c.c_int32),
        ("pc", c.c_uint64),
        ("tensor", c.c_int32),
        ("byte_offset", c.c_int64),
        ("block", Dim3),
        ("thread", c.c_int32),
        ("notes", c.c_int32),
        ("note", Note * 16),
        ("is_shared", c.c_int32),
        ("buffer", c.c_int32),
        ("accesses", c.c_int32),
        ("first", Access),
        ("second", Access),
        ("hint", c.c_char * 240),
        ("message", c.c_char * 480),
    ]


COUNTERS = (
    "blocks",
    "threads",
    "switches",
    "collectives",
    "barriers",
    "mma",
    "copies",
    "copy_bytes",
    "shared_bytes",
    "bank_conflicts",
)


class Counters(c.Structure):
    _fields_ = [(name, c.c_uint64) for name in COUNTERS]


class Result(c.Structure):
    _fields_ = [
        ("seconds", c.c_double),
        ("counters", Counters),
        ("error", Error),
        ("printed", c.c_void_p),
        ("printed_bytes", c.c_uint64),
        ("printed_lost", c.c_uint64),
    ]


# ---------------------------------------------------------------------------- memory

PROT_NONE, PROT_READ_WRITE = 0, 3
MAP_SHARED, MAP_PRIVATE, MAP_FIXED, MAP_ANONYMOUS, MAP_NORESERVE = 0x01, 0x02, 0x10, 0x20, 0x4000
MAP_FAILED = c.c_void_p(-1).value

libc = c.CDLL(None, use_errno=True)
libc.mmap.restype = c.c_void_p
libc.mmap.argtypes = [c.c_void_p, c.c_size_t, c.c_int, c.c_int, c.c_int, c.c_long]
libc.munmap.argtypes = [c.c_void_p, c.c_size_t]
libc.dlclose.argtypes = [c.c_void_p]


def map_pages(address: int, size: int, protection: int, flags: int, descriptor: int) -> int:
    found = libc.mmap(address, size, protection, flags, descriptor, 0)
    if found == MAP_FAILED:
        raise OSError(c.get_errno(), f"mmap of {size} bytes: {os.strerror(c.get_errno())}")
    return found


class SharedFile:
    """A file of the client's, mapped between guard pages."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.size = 0
        self.address = 0

    def map(self, size: int) -> int:
        """The address of its first `size` bytes; the page after them is a guard page."""
        if size != self.size:
            self.unmap()
            anonymous = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
            self.address = map_pages(0, size + 2 * GUARD, PROT_NONE, anonymous, -1) + GUARD
            self.size = size
            map_pages(self.address, size, PROT_READ_WRITE, MAP_SHARED | MAP_FIXED, self.descriptor)
        return self.address

    def unmap(self) -> None:
        if self.size:
            libc.munmap(self.address - GUARD, self.size + 2 * GUARD)
            self.size = 0

    def close(self) -> None:
        self.unmap()
        os.close(self.descriptor)


# ---------------------------------------------------------------------------- launches


class Refused(Exception):
    """A launch that cannot begin, and why."""


class Library:
    """A compiled kernel's library, loaded."""

    def __init__(self, path: str, runtime: c.CDLL) -> None:
        try:
            self.handle = c.CDLL(path)
        except OSError as error:
            raise Refused(str(error)) from error
        self.runtime = runtime
        self.entries: dict[str, tuple[int, Image]] = {}

    def entry(self, kernel: str) -> tuple[int, Image]:
        """The address of a kernel's entry point, and where the library lies."""
        if kernel not in self.entries:
            try:
                function = self.handle[f"{kernel}__tk"]
            except AttributeError as error:
                raise Refused(f"it has no kernel '{kernel}': does the source end with TK_KERNEL({kernel})?") from error
            address = c.cast(function, c.c_void_p).value or 0
            image = Image()
            self.runtime.tk_image_of(c.c_void_p(address), c.byref(image))
            self.entries[kernel] = (address, image)
        return self.entries[kernel]

    def close(self) -> None:
        libc.dlclose(self.handle._handle)


class Simulator:
    """The loaded runtime, kernels and files; `run` is one launch."""

    def __init__(self, runtime: str, control: int, finished: int) -> None:
        self.runtime = c.CDLL(runtime, mode=c.RTLD_GLOBAL)
        self.control = control
        # a page that the other side reads: how many blocks of the running launch have ended
        self.finished = map_pages(0, PAGE, PROT_READ_WRITE, MAP_SHARED, finished)
        self.libraries: dict[str, tuple[tuple[int, int], Library]] = {}
        self.files: dict[int, SharedFile] = {}
        self.result = Result()

    def run(self, request: dict[str, Any]) -> dict[str, Any]:
        for number in request["closed"]:
            if number in self.files:
                self.files.pop(number).close()
        regions = (Region * len(request["regions"]))(*map(self.region, request["regions"]))
        pointers = [argument for argument in request["arguments"] if len(argument) > 1]
        tensors = (Tensor * len(pointers))()
        for tensor, (region, offset, nbytes, name, written, undefined) in zip(tensors, pointers, strict=True):
            tensor.begin, tensor.bytes, tensor.name = regions[region].begin + offset, nbytes, name.encode()
            tensor.written, tensor.undefined = written, undefined
        buffers = (Buffer * len(request["buffers"]))()
        for buffer, (offset, nbytes, name) in zip(buffers, request["buffers"], strict=True):
            buffer.offset, buffer.bytes, buffer.name = offset, nbytes, name.encode()
        line_buffers = (c.c_int16 * len(request["line_buffers"]))(*request["line_buffers"])
        blocks = (c.c_uint64 * len(request["blocks"]))(*request["blocks"])
        values = iter(tensors)
        arguments = pack(
            [
                bytes.fromhex(argument[0]) if len(argument) == 1 else next(values).begin.to_bytes(8, sys.byteorder)
                for argument in request["arguments"]
            ]
        )
        entry, image = self.library(request["library"]).entry(request["kernel"])
        launch = Launch(
            kernel=entry,
            arguments=c.addressof(arguments),
            image=image,
            grid=Dim3(*request["grid"]),
            block=Dim3(*request["block"]),
            shared_bytes=request["shared_bytes"],
            os_threads=request["os_threads"],
            seed=request["seed"],
            timeout_s=request["timeout_s"],
            control=self.control,
            regions=len(regions),
            region=c.addressof(regions),
            tensors=len(tensors),
            tensor=c.addressof(tensors),
            check=request["check"],
            strict=request["strict"],
            edited=request["edited"],
            buffers=len(buffers),
            buffer=c.addressof(buffers),
            lines=len(line_buffers),
            line_buffer=c.addressof(line_buffers),
            blocks=len(blocks),
            block_number=c.addressof(blocks),
            finished=self.finished,
        )
        self.runtime.tk_launch_kernel(c.byref(launch), c.byref(self.result))
        return self.outcome()

    def region(self, description: list[int]) -> Region:
        number, mapped, begin, nbytes = description
        address = self.files[number].map(mapped)
        return Region(address, address + begin, address + begin + nbytes, address + mapped)

    def library(self, path: str) -> Library:
        try:
            status = os.stat(path)
        except OSError as error:
            raise Refused(str(error)) from error
        version = (status.st_ino, status.st_mtime_ns)
        known, library = self.libraries.get(path, (None, None))
        if library is None or known != version:
            if library is not None:
                library.close()  # the loader would give the old one again
            library = Library(path, self.runtime)
            self.libraries[path] = (version, library)
        return library

    def outcome(self) -> dict[str, Any]:
        result = self.result
        answer: dict[str, Any] = {
            "seconds": result.seconds,
            "counters": {name: getattr(result.counters, name) for name in COUNTERS},
            "printed": c.string_at(result.printed, result.printed_bytes).decode(errors="replace"),
            "printed_lost": result.printed_lost,
        }
        error = result.error
        if error.kind:
            answer["error"] = {
                "kind": KINDS[error.kind],
                "message": error.message.decode(errors="replace"),
                "line": error.line,
                "pc": error.pc,
                "tensor": error.tensor,
                "byte_offset": error.byte_offset,
                "block": error.block.to_list(),
                "thread": error.thread,
                "notes": [[note.line, note.text.decode(errors="replace")] for note in error.note[: error.notes]],
                "is_shared": bool(error.is_shared),
                "buffer": error.buffer,
                "first": error.first.to_dict() if error.accesses == 2 else None,
                "second": error.second.to_dict() if error.accesses else None,
                "hint": error.hint.decode(),
            }
        return answer


def pack(values: list[bytes]) -> c.Array[c.c_void_p]:
    """A `void**` whose pointers lead to copies of these values."""
    sizes = [-(-max(len(value), 1) // SLOT) * SLOT for value in values]
    storage = c.create_string_buffer(sum(sizes) + SLOT)
    at = -(-c.addressof(storage) // SLOT) * SLOT
    pointers = (c.c_void_p * max(len(values), 1))()
    for i, (value, size) in enumerate(zip(values, sizes, strict=True)):
        c.memmove(at, value, len(value))
        pointers[i] = at
        at += size
    pointers.storage = storage  # type: ignore[attr-defined]  # lives as long as the pointers into it
    return pointers


# ---------------------------------------------------------------------------- the conversation


class Conversation:
    """The socket as lines, with the descriptors that came beside them."""

    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.pending = b""
        self.descriptors: deque[int] = deque()

    def read(self) -> dict[str, Any] | None:
        """The next line; None when the other side is gone."""
        while b"\n" not in self.pending:
            data, descriptors, _, _ = socket.recv_fds(self.control, 1 << 16, 64)
            if not data:
                return None
            self.pending += data
            self.descriptors.extend(descriptors)
        line, self.pending = self.pending.split(b"\n", 1)
        return json.loads(line)

    def write(self, message: dict[str, Any]) -> None:
        self.control.sendall(json.dumps(message).encode() + b"\n")


# What a kernel may take: memory, beside the stacks of its threads, and bytes written to any one file.
MEMORY_SHARE = 0.75
STACKS = 28000 * (128 << 10)  # the most that the runtime maps; most of them are never touched
WRITTEN = 1 << 20
MUCH = 1 << 46  # where the system does not say how much there is
SIGINT, PR_SET_CHILD_SUBREAPER = 2, 36


def confine() -> None:
    """See to it that a kernel that takes too much, or goes wrong, costs this process and no other."""
    libc.signal(SIGINT, None)  # without Python's handler: it would answer in the middle of a report
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)  # what a kernel starts stays in sight, whatever it does
    with open("/proc/meminfo") as file:
        available = next((int(line.split()[1]) << 10 for line in file if line.startswith("MemAvailable")), MUCH)
    limits = (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, WRITTEN),
        (resource.RLIMIT_DATA, STACKS + int(MEMORY_SHARE * available)),
    )
    for limit, most in limits:
        _, hard = resource.getrlimit(limit)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(limit, (most, most))
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # where memory runs out all the same, the system ends this process first


def main() -> None:
    confine()
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    conversation = Conversation(control)
    simulator = Simulator(sys.argv[2], control.fileno(), int(sys.argv[3]))
    while (message := conversation.read()) is not None:
        match message["say"]:
            case "files":
                for number in message["files"]:
                    simulator.files[number] = SharedFile(conversation.descriptors.popleft())
            case "launch":
                try:
                    answer = {"error": INTERRUPTED} if conversation.pending else simulator.run(message)
                except Refused as refusal:
                    answer = {"refused": str(refusal)}
                conversation.write({"token": message["token"], **answer})
            case _:  # an interrupt that came too late
                pass


# What a launch is told that was interrupted before it began.
INTERRUPTED = {
    "kind": "interrupted",
    "message": "the kernel was interrupted before it began",
    "line": 0,
    "pc": 0,
    "tensor": -1,
    "byte_offset": 0,
    "block": [0, 0, 0],
    "thread": -1,
    "notes": [],
    "is_shared": False,
    "buffer": -1,
    "first": None,
    "second": None,
    "hint": "",
}

if __name__ == "__main__":
    main()
