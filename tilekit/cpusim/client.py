# SPDX-License-Identifier: Apache-2.0
"""Runs compiled kernels in the simulator's worker process: whatever a kernel does, this process lives.

A launch is stopped softly first, by asking the worker, which then knows the line, and hard if that does not help, by
killing it; the next launch starts a new one. After a launch that failed, nothing of its regions may be copied back:
the kernel stopped somewhere in the middle.

A source that a person edited may leave the process that it ran in with anything changed: memory, descriptors, signal
handlers. It gets a worker of its own, in which nothing else ever runs.
"""

from __future__ import annotations

import contextlib
import json
import math
import mmap
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from tilekit import config
from tilekit.cpusim.memory import Memory, Region, shared_file
from tilekit.diag import KernelError

DEFAULT_TIMEOUT_S = 60.0
TICK_S = 0.25  # how often someone who waits for a launch is told how far it is
SOFT_STOP_S = 0.3  # what an interrupted kernel gets to stop by itself
_LAST_RESORT_S = 5.0  # past the time-out: the worker itself gives up earlier, so only its death is left
_LAST_STEP_S = 0.02  # what a worker whose socket is closed gets to end by itself
_DYING_S = 0.5  # from the end of a worker's socket to the end of the worker
_LAST_WORDS = 500  # bytes
_FILES_AT_ONCE = 64  # descriptors beside one message
_MOST_BYTES = 1 << 29  # of an answer: more than all that a kernel may print
# The status with which the worker ends when a kernel cannot be stopped, or leaves threads or processes (launch.cpp).
_UNSTOPPABLE, _NOT_ALONE = 75, 76
_WORKER = Path(__file__).with_name("worker.py")
# isolated and without site: it needs the standard library alone, and starts in half the time
_COMMAND = (sys.executable, "-I", "-S", str(_WORKER))
_COUNT_BYTES = 8  # of the number of blocks that have ended, in the page shared with the worker

_CODES = {
    "fail": "TK712",
    "deadlock": "TK710",
    "divergence": "TK711",
    "out_of_bounds": "TK702",
    "misaligned": "TK704",
    "segfault": "TK713",
    "division_by_zero": "TK714",
    "stack overflow": "TK715",
    "timeout": "TK703",
    "interrupted": "TK716",
    "race": "TK720",
    "global_race": "TK720",
    "in_flight": "TK721",
    "uninitialized": "TK701",
    "shift": "TK722",
    "died": "TK717",
    "refused": "TK718",
}


@dataclass(frozen=True)
class Scalar:
    """A parameter passed by value: its bytes."""

    value: bytes


@dataclass(frozen=True)
class Pointer:
    """A parameter that points `offset` bytes into one of the launch's regions, at a tensor of `nbytes` bytes.

    `written`: the kernel may write it. `undefined`: it holds nothing yet, so it must be written before it is read.
    """

    region: int
    offset: int
    nbytes: int
    name: str
    written: bool = True
    undefined: bool = False


@dataclass(frozen=True)
class SharedBuffer:
    """A tensor in shared memory: its name and its bytes."""

    name: str
    offset: int
    nbytes: int


Argument: TypeAlias = Scalar | Pointer


@dataclass(frozen=True)
class Check:
    """What check mode needs to know, of a library that was built for it.

    `line_buffers` has for each line of `source.cu` the number of the buffer that its accesses are meant for; -1 for
    any, and -2 for a line that divides in the lanes of a tile, where zero may be a divisor.
    `blocks` are the numbers of the blocks to run, x fastest; none means all. Where it is `strict`, two blocks may not
    write to one place even if they write the same value.
    """

    buffers: Sequence[SharedBuffer] = ()
    line_buffers: Sequence[int] = ()
    blocks: Sequence[int] = ()
    strict: bool = True


@dataclass(frozen=True)
class LaunchRequest:
    """One launch. A `seed` other than 0 draws the order of blocks and threads; a `timeout_s` of 0 means none.

    `edited`: a person has changed its source, so it may do anything. `on_wait` is called every TICK_S in the thread
    that waits, with the blocks that have ended.
    """

    library: Path
    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int = 0
    regions: Sequence[Region] = ()
    arguments: Sequence[Argument] = ()
    timeout_s: float = DEFAULT_TIMEOUT_S
    os_threads: int = field(default_factory=config.available_cpus)
    seed: int = 0
    check: Check | None = None
    edited: bool = False
    on_wait: Callable[[int], None] | None = None


@dataclass(frozen=True)
class LaunchResult:
    """What a launch that went well leaves: kernel seconds, counters of the emulated machine, what it printed."""

    seconds: float
    counters: dict[str, int]
    printed: str


class Simulator:
    """The CPU as a device: a worker process, started at the first launch and again after each death.

    There is a second one while an edited source is at work.
    """

    def __init__(self, runtime: Path) -> None:
        self.runtime = runtime
        self.memory = Memory()
        self._lock = threading.Lock()  # held during a launch
        self._workers: dict[Path | None, _Worker] = {}  # by the edited library that it is for; None: all others
        self._running: _Worker | None = None  # of the latest launch
        self._ended = threading.Event()  # of the latest launch
        self._ended.set()
        _simulators.add(self)

    def run(self, request: LaunchRequest) -> LaunchResult:
        """Run a kernel to its end, or raise what went wrong: a `KernelError`, or the interrupt that reached us."""
        with self._lock:
            worker = self._running = self._ready_worker(request.library if request.edited else None)
            ended = self._ended = threading.Event()
            try:
                answer = self._converse(worker, request)
            finally:
                ended.set()
            try:
                return _result(request, worker, answer)
            except KernelError as error:
                if answer is None or request.edited or error.kind == "segfault":
                    self._end(worker)  # if it lives, then with memory that cannot be trusted
                raise

    def interrupt(self) -> None:
        """Stop the running launch, whose `run` raises a `KernelError` of kind "interrupted"; any thread may call."""
        worker, ended = self._running, self._ended
        if worker is None or ended.is_set():
            return
        worker.ask_to_stop()
        if not ended.wait(SOFT_STOP_S):
            worker.kill()

    def close(self) -> None:
        """End the workers and give the memory back; a later launch starts anew."""
        self.end_workers()
        with self._lock:
            self.memory.close()

    def end_workers(self) -> None:
        """End the workers alone; a later launch starts a new one."""
        with self._lock:
            for worker in list(self._workers.values()):
                self._end(worker)

    @property
    def worker_pid(self) -> int | None:
        """The process that runs kernels that nobody edited, if there is one now."""
        return self._workers[None].process.pid if None in self._workers else None

    def _ready_worker(self, edited: Path | None) -> _Worker:
        for library, worker in list(self._workers.items()):
            if library not in (None, edited) or worker.has_ended():
                self._end(worker)
        if edited not in self._workers:
            self._workers[edited] = _Worker(self.runtime)
        return self._workers[edited]

    def _end(self, worker: _Worker) -> None:
        self._workers = {library: other for library, other in self._workers.items() if other is not worker}
        worker.end()

    def _converse(self, worker: _Worker, request: LaunchRequest) -> dict[str, Any] | None:
        patience = request.timeout_s + _LAST_RESORT_S if request.timeout_s > 0 else None
        try:
            worker.send_launch(request, self.memory.open)
            return worker.receive(patience, request.on_wait)
        except BaseException:  # an interrupt, most likely: whoever leaves early leaves no kernel running behind
            self._stop(worker)
            raise

    def _stop(self, worker: _Worker) -> None:
        stopped = False
        try:
            worker.ask_to_stop()
            stopped = worker.receive(SOFT_STOP_S) is not None
        finally:  # also if a second interrupt comes meanwhile
            if not stopped:
                self._end(worker)

    def _forget(self) -> None:
        """Become a simulator that has not begun: in a forked child, worker and memory are the parent's."""
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._ended.set()
        self.memory = Memory(self.memory.idle_limit)
        for worker in self._workers.values():
            worker.control.close()
            worker.process.returncode = 0  # it is no child of this process: nothing to wait for
        self._workers = {}
        self._running = None


_simulators: weakref.WeakSet[Simulator] = weakref.WeakSet()


def _forget_all() -> None:
    for simulator in _simulators:
        simulator._forget()


os.register_at_fork(after_in_child=_forget_all)


class _Worker:
    """The child process and our end of its socket."""

    def __init__(self, runtime: Path) -> None:
        self.control, theirs = socket.socketpair()
        self.errors = os.memfd_create("tilekit-worker-errors", os.MFD_CLOEXEC)
        counting = shared_file("tilekit-worker-blocks", mmap.PAGESIZE)
        self._finished = mmap.mmap(counting, mmap.PAGESIZE)
        with theirs:
            self.process = subprocess.Popen(
                [*_COMMAND, str(theirs.fileno()), str(runtime.absolute()), str(counting)],
                stdin=subprocess.DEVNULL,
                stdout=self.errors,
                stderr=self.errors,
                pass_fds=[theirs.fileno(), counting],
                start_new_session=True,  # an interrupt of the terminal reaches us alone
            )
        os.close(counting)
        self.began = 0.0  # the launch
        self.asked = False  # to stop the launch
        self.overdue = False  # it did not answer in time
        self.garbled = False  # what came is no answer of the worker's
        self._token = ""  # of the launch: what comes without it was not written by the worker
        self._known: set[int] = set()  # files that it has
        self._pending = bytearray()
        self._sending = threading.Lock()
        self._readable = select.poll()
        self._readable.register(self.control, select.POLLIN)

    def send_launch(self, request: LaunchRequest, open_files: Set[int]) -> None:
        self.asked = False
        self.began = time.monotonic()
        self._token = os.urandom(8).hex()
        closed = list(self._known - open_files)
        self._finished[:_COUNT_BYTES] = bytes(_COUNT_BYTES)
        # a worker that is dead or dying is noticed when it does not answer
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._send_files(request.regions)
            self._known.difference_update(closed)
            self._send({"say": "launch", "token": self._token, "closed": closed, **_to_message(request)})

    def ask_to_stop(self) -> None:
        self.asked = True
        with contextlib.suppress(OSError):
            self._send({"say": "interrupt"})

    def receive(self, seconds: float | None, on_wait: Callable[[int], None] | None = None) -> dict[str, Any] | None:
        """The answer to a launch; None if the worker has ended, did not give it in time, or wrote something else."""
        deadline = math.inf if seconds is None else time.monotonic() + seconds
        begin = 0
        while (end := self._pending.find(b"\n", begin)) < 0:
            begin = len(self._pending)
            left = deadline - time.monotonic()
            if self._readable.poll(max(0.0, min(left, TICK_S)) * 1e3):
                try:
                    data = self.control.recv(1 << 16)
                except ConnectionResetError:
                    return None
                if not data:
                    return None
                self._pending += data
                self.garbled = begin > _MOST_BYTES
                if self.garbled:
                    return None
            elif left <= TICK_S:
                self.overdue = True
                return None
            elif self.has_ended() or self.is_stopped():
                # the socket need not say so: a process that a kernel started may hold it open
                if not self._readable.poll(0):
                    return None
            elif on_wait is not None:
                on_wait(int.from_bytes(self._finished[:_COUNT_BYTES], sys.byteorder))
        line = bytes(self._pending[:end])
        del self._pending[: end + 1]
        answer = _decode(line)
        self.garbled = answer.pop("token", None) != self._token
        return None if self.garbled else answer

    def has_ended(self) -> bool:
        """Whether the process has ended, of itself or not."""
        try:
            return self._is_in(os.WEXITED)
        except ChildProcessError:
            return True  # somebody has waited for it in our stead

    def is_stopped(self) -> bool:
        """Whether a signal has stopped the process, which then waits for another."""
        try:
            return self._is_in(os.WSTOPPED)
        except ChildProcessError:
            return False

    def _is_in(self, state: int) -> bool:
        return os.waitid(os.P_PID, self.process.pid, state | os.WNOHANG | os.WNOWAIT) is not None

    def kill(self) -> None:
        """Kill the process, and with it those that a kernel started in it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def end(self, patience: float = _LAST_STEP_S) -> int | None:
        """See to it that the process has ended, and return its status: minus the signal that killed it.

        None if it lived on for so many seconds after the end of its socket. May be called again.
        """
        if self.process.returncode is None:
            self.control.close()
            deadline = time.monotonic() + patience
            while not (ended := self.has_ended()) and time.monotonic() < deadline:
                time.sleep(1e-3)
            self.kill()
            self.process.wait()
            os.close(self.errors)
            self._finished.close()
            return self.process.returncode if ended else None
        return self.process.returncode

    def last_words(self) -> str:
        """What the process wrote to its standard error, if that is short: the last lines."""
        size = os.fstat(self.errors).st_size
        text = os.pread(self.errors, _LAST_WORDS, max(0, size - _LAST_WORDS)).decode(errors="replace")
        return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text).strip()

    def _send_files(self, regions: Sequence[Region]) -> None:
        new = {region.file.number: region.file for region in regions if region.file.number not in self._known}
        for begin in range(0, len(new), _FILES_AT_ONCE):
            numbers = list(new)[begin : begin + _FILES_AT_ONCE]
            message = _encode({"say": "files", "files": numbers})
            with self._sending:
                sent = socket.send_fds(self.control, [message], [new[number].descriptor for number in numbers])
                self.control.sendall(message[sent:])
            self._known.update(numbers)

    def _send(self, message: dict[str, Any]) -> None:
        with self._sending:
            self.control.sendall(_encode(message))


def _encode(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"


def _decode(line: bytes) -> dict[str, Any]:
    """The object that a line holds; an empty one if it holds anything else."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def _to_message(request: LaunchRequest) -> dict[str, Any]:
    check = request.check or Check()
    return {
        "library": str(request.library.absolute()),
        "kernel": request.kernel,
        "grid": request.grid,
        "block": request.block,
        "shared_bytes": request.shared_bytes,
        "regions": [(region.file.number, region.mapped, region.begin, region.nbytes) for region in request.regions],
        "arguments": [_argument(argument) for argument in request.arguments],
        "timeout_s": request.timeout_s,
        "os_threads": request.os_threads,
        "seed": request.seed,
        "check": request.check is not None,
        "strict": check.strict,
        "edited": request.edited,
        "buffers": [(buffer.offset, buffer.nbytes, buffer.name) for buffer in check.buffers],
        "line_buffers": list(check.line_buffers),
        "blocks": list(check.blocks),
    }


def _argument(argument: Argument) -> tuple[object, ...]:
    match argument:
        case Scalar(value):
            return (value.hex(),)
        case Pointer(region, offset, nbytes, name, written, undefined):
            return (region, offset, nbytes, name, written, undefined)


# ------------------------------------------------------------------------------------------------------------ errors


def _printed(answer: dict[str, Any]) -> str:
    """What a kernel printed, and how much of it there was no room for."""
    lost = answer.get("printed_lost", 0)
    return answer.get("printed", "") + (
        f"\n({lost:,} more calls of printf: no room for what they print)\n" if lost else ""
    )


def _result(request: LaunchRequest, worker: _Worker, answer: dict[str, Any] | None) -> LaunchResult:
    if answer is None:
        raise _death(request, worker)
    if "refused" in answer:
        raise KernelError(
            _CODES["refused"],
            f"the simulator cannot load '{request.kernel}' from {request.library.name}: {answer['refused']}",
            data={"kind": "refused", "kernel": request.kernel},
        )
    if "error" in answer:
        raise _kernel_error(request, answer["error"], _printed(answer))
    return LaunchResult(answer["seconds"], answer["counters"], _printed(answer))


def _kernel_error(request: LaunchRequest, error: dict[str, Any], printed: str) -> KernelError:
    """The error of a kernel; `data` holds all of it, lines being lines of the `source.cu` that it was built from."""
    lines = _source_lines(request.library, [error, *(error[end] for end in ("first", "second") if error[end])])
    line = lines[0]
    tensor = _tensor_name(request, error)
    block, thread = tuple(error["block"]), error["thread"] if error["thread"] >= 0 else None
    notes = [(text, note_line or None) for note_line, text in error["notes"]]
    accesses: dict[str, dict[str, Any] | None] = {"first": None, "second": None}
    if error["first"] is not None:
        for end, at in zip(("first", "second"), lines[1:], strict=True):
            access = accesses[end] = _access(error[end], at)
            notes.append((_describe_access(access), at))
    elif thread is not None:
        notes.append((f"in block {block}, {_thread(thread)}", None))
    place = f" in source.cu line {line}" if line else ""
    return KernelError(
        _CODES[error["kind"]],
        f"kernel '{request.kernel}'{place}: {error['message']}",
        notes=[text if at is None else f"{text} (source.cu line {at})" for text, at in notes],
        help=error["hint"] or None,
        data={
            "kind": error["kind"],
            "kernel": request.kernel,
            "text": error["message"],
            "line": line,
            "tensor": tensor,
            "byte_offset": error["byte_offset"] if tensor is not None or error["is_shared"] else None,
            "index": None,
            "is_shared": error["is_shared"],
            **accesses,
            "hint": error["hint"] or None,
            "block": block,
            "thread": thread,
            "notes": tuple(notes),
            "printed": printed,
        },
    )


def _death(request: LaunchRequest, worker: _Worker) -> KernelError:
    """The error for a worker that did not answer, because it ended or had to be ended."""
    words, stopped = worker.last_words(), worker.is_stopped()
    status = worker.end(0.0 if stopped or worker.overdue or worker.garbled else _DYING_S)
    late = worker.overdue or 0 < request.timeout_s <= time.monotonic() - worker.began
    kind = "died"
    if worker.asked:
        kind, text = "interrupted", "the kernel was interrupted and did not stop by itself: its process was ended"
    elif worker.overdue or (late and status == _UNSTOPPABLE):
        kind = "timeout"
        text = f"the kernel still ran after {request.timeout_s:g} s and did not stop by itself: its process was ended"
    elif worker.garbled:
        text = "the kernel wrote into the simulator's own connection: its process was ended"
    elif stopped:
        text = "the kernel stopped the simulator's process, which was ended"
    else:
        text = f"the simulator's process {_cause(status)}"
    return KernelError(
        _CODES[kind],
        f"kernel '{request.kernel}': {text}",
        notes=[words] if words else [],
        help="the next launch starts a new process" if kind == "died" else None,
        data={"kind": kind, "kernel": request.kernel, "text": text, "line": None},
    )


def _cause(status: int | None) -> str:
    """Why a process is no more that nobody asked to end."""
    match status:
        case None:
            return "closed its connection, and was ended"
        case int() if status == _UNSTOPPABLE:
            return "ended: the kernel had failed, and some of its threads could not be stopped"
        case int() if status == _NOT_ALONE:
            return "ended: the kernel left threads or processes of its own behind"
        case int() if status < 0:
            known = -status in set(signal.Signals)
            return f"was killed by {signal.Signals(-status).name if known else f'signal {-status}'}"
        case _:
            return f"ended with status {status}"


def _tensor_name(request: LaunchRequest, error: dict[str, Any]) -> str | None:
    """The tensor that an error is about, a parameter or one in shared memory."""
    if error["is_shared"]:
        names = [buffer.name for buffer in request.check.buffers] if request.check else []
        index = error["buffer"]
    else:
        names = [argument.name for argument in request.arguments if isinstance(argument, Pointer)]
        index = error["tensor"]
    return names[index] if 0 <= index < len(names) else None


def _access(access: dict[str, Any], line: int | None) -> dict[str, Any]:
    return {"block": tuple(access["block"]), "thread": access["thread"], "verb": access["verb"], "line": line}


def _describe_access(access: dict[str, Any]) -> str:
    return f"{_thread(access['thread'])} of block {access['block']} {access['verb']} it"


def _thread(thread: int) -> str:
    return f"thread {thread} (warp {thread // 32}, lane {thread % 32})"


def _source_lines(library: Path, places: Sequence[dict[str, Any]]) -> list[int | None]:
    """The lines of the .cu file: as given, or of the code at a `pc`, of inlined code the line it was inlined into."""
    found: list[int | None] = [place["line"] or None for place in places]
    unknown = [i for i, place in enumerate(places) if not place["line"] and place["pc"]]
    addr2line = shutil.which("addr2line")
    if not unknown or addr2line is None:
        return found
    # with -a each answer begins with the address
    command = [addr2line, "-a", "-i", "-e", str(library), *(hex(places[i]["pc"]) for i in unknown)]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except subprocess.TimeoutExpired:
        return found
    for i, answer in zip(unknown, re.split(r"^0x[0-9a-f]+$", run.stdout, flags=re.MULTILINE)[1:], strict=False):
        line = re.search(r"\.cu:(\d+)", answer)
        found[i] = int(line[1]) if line else None
    return found
