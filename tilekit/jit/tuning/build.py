# SPDX-License-Identifier: Apache-2.0
"""Many programs compiled at a time, by spawned processes, or by whatever executor one is given.

A job travels as the printed program with the places of its lines; a folder of the cache is the result, so an answer is
only how it went. The processes start without the person's script, never import torch, do not hear an interrupt, and end
with this process, however it ends. One that dies costs the program that it was at.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import importlib
import itertools
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path
from typing import TYPE_CHECKING

from tilekit.cache.programs import ProgramCache, ProgramEntry
from tilekit.config import Config
from tilekit.diag import errors
from tilekit.diag.errors import CodegenError, TilekitError, ToolchainError
from tilekit.diag.span import Span
from tilekit.runtime import compiled
from tilekit.runtime.tensors import DeviceKind
from tilekit.target import Target

if TYPE_CHECKING:
    from tilekit.jit.tuning.elsewhere import Ran, Trial

# what a compile may need: hidet and the compiler of the toolchain at their largest
WORKER_BYTES = 1 << 30
# jobs that are compiled or wait for it, for each process, before anybody does something else than making more of them
_AHEAD = 2


@dataclass(frozen=True)
class Job:
    """One program to compile.

    `travels` says that the answer's reader may not see the cache of who compiles. With a `trial`, it is timed as well,
    where there is a GPU.
    """

    text: str
    spans: Sequence[Span | None]
    target: Target
    device: DeviceKind
    config: Config
    travels: bool = False
    trial: Trial | None = None


@dataclass(frozen=True)
class Answer:
    """How it went; `files` are those of the cache entry, where they must travel, and `ran` how the trial went."""

    seconds: float
    error: TilekitError | None = None
    key: str = ""
    files: Mapping[str, bytes] | None = None
    ran: Ran | None = None


def compile_program(job: Job) -> Answer:
    """Compile into the cache: what a process does for another one."""
    drivers = importlib.import_module("tilekit.drivers")
    begin = time.perf_counter()
    try:
        folder: Path = drivers.build_text(job.text, job.target, job.device, job.config, job.spans)
    except TilekitError as error:
        return Answer(time.perf_counter() - begin, error)
    except RecursionError:
        return Answer(time.perf_counter() - begin, errors.too_deep())
    except Exception as error:  # a fault of ours, which shall cost no more than this candidate
        return Answer(time.perf_counter() - begin, _fault(error))
    seconds = time.perf_counter() - begin
    if not job.travels:
        return Answer(seconds)
    entry = ProgramCache(job.config.cache_dir, job.config.cache_limit).lookup(folder.name)
    if entry is None:
        return Answer(seconds, key=folder.name)
    return Answer(seconds, key=folder.name, files=entry.files, ran=_try(job.trial, entry))


def _try(trial: Trial | None, entry: ProgramEntry) -> Ran | None:
    if trial is None:
        return None
    elsewhere = importlib.import_module("tilekit.jit.tuning.elsewhere")  # it knows GPUs; other jobs need none
    return elsewhere.run(trial, compiled.of_entry(entry, cached=False).manifest, entry.files[compiled.CUBIN])


def compile_all(
    jobs: Iterable[tuple[int, Job]], workers: int, executor: Executor | None = None
) -> Iterator[tuple[int, Answer]]:
    """Compile jobs as they come, by number; the answers come as they are done. Stopping early stops the processes.

    Parameters
    ----------
    jobs
        What the cache does not have. Making them may take its time: the first ones are compiled meanwhile, and their
        answers come before the others are made, as long as the processes have enough to do.
    workers
        How many processes there are at most. A single job is done here.
    executor
        Who compiles in place of processes of our own.
    """
    if executor is not None:
        yield from ((number, answer or Answer(0.0, _died())) for number, answer in _done(executor, jobs, {}))
        return
    coming = iter(jobs)
    first = list(itertools.islice(coming, 2))
    if len(first) < 2:
        yield from ((number, compile_program(job)) for number, job in first)
        return
    lost: dict[int, Job] = {}
    with _processes(workers) as pool:
        for number, answer in _done(pool, itertools.chain(first, coming), lost, _AHEAD * workers):
            if answer is not None:
                del lost[number]
                yield number, answer
    # a process has died, and with it its pool: each alone shows whose fault it was
    for number, job in lost.items():
        with _processes(1) as pool:
            ((_, answer),) = _done(pool, [(number, job)], {})
        yield number, answer or Answer(0.0, _died())


def workers_for(jobs: int, limit: int | None) -> int:
    """How many processes to start."""
    chosen = min(jobs, limit or jobs, _available_bytes() // WORKER_BYTES)
    return max(chosen, 1)


def _done(
    executor: Executor, jobs: Iterable[tuple[int, Job]], under_way: dict[int, Job], ahead: int | None = None
) -> Iterator[tuple[int, Answer | None]]:
    """The answers as they come; None where the process died, of this job or of another one.

    None comes before all jobs are made, unless so many as `ahead` wait for who compiles.
    """
    numbers: dict[Future[Answer], int] = {}
    refused: list[int] = []
    try:
        for number, job in jobs:
            under_way[number] = job
            try:
                numbers[executor.submit(compile_program, job)] = number
            except BrokenProcessPool:
                refused.append(number)
            while ahead is not None and (done := [future for future in numbers if future.done()]):
                if len(numbers) - len(done) < ahead:
                    break
                yield numbers.pop(done[0]), _answer(done[0])
        for future in concurrent.futures.as_completed(numbers):
            yield numbers[future], _answer(future)
        yield from ((number, None) for number in refused)
    finally:
        for future in numbers:
            future.cancel()


def _answer(future: Future[Answer]) -> Answer | None:
    """What was answered; None where the process died."""
    try:
        return future.result()
    except BrokenProcessPool:
        return None


def _fault(error: Exception) -> CodegenError:
    *_, last = traceback.extract_tb(error.__traceback__)
    where = f"{Path(last.filename).name}:{last.lineno}"
    return CodegenError(
        "TK409", f"the compiler failed, which is its own fault: {type(error).__name__}: {error} ({where})"
    )


def _died() -> ToolchainError:
    return ToolchainError(
        "TK509",
        "the process that compiled it died",
        help="where memory is short, fewer at a time may help: tilekit.option.parallel_workers(1)",
    )


# --------------------------------------------------------------------------------------------------------- processes


@contextlib.contextmanager
def _processes(count: int) -> Iterator[Executor]:
    """A pool whose processes are gone when the block is left, also in the middle of their work."""
    spawning = _Spawning()
    pool = ProcessPoolExecutor(count, mp_context=spawning, initializer=_begin)
    finished = False
    try:
        yield pool
        finished = True
    finally:
        if not finished:
            for process in spawning.started:
                process.kill()
        pool.shutdown(cancel_futures=True)


class _Process(SpawnProcess):
    """A new Python that does not run the script again from which this one was started: it needs nothing of it."""

    def start(self) -> None:
        main = sys.modules["__main__"]
        sys.modules["__main__"] = types.ModuleType("__main__")
        try:
            super().start()
        finally:
            sys.modules["__main__"] = main


class _Spawning(SpawnContext):
    """Remembers the processes that it has started."""

    def __init__(self) -> None:
        super().__init__()
        self.started: list[_Process] = []

    def Process(self, *args: object, **kwargs: object) -> _Process:  # type: ignore[override]
        process = _Process(*args, **kwargs)  # pyright: ignore[reportArgumentType]
        self.started.append(process)
        return process


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    importlib.import_module("tilekit.drivers")  # while its first job is still made


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _available_bytes() -> int:
    """The memory that is free, also by the limit of a container; much, where nobody says."""
    free = [_meminfo(), _cgroup_room()]
    return min((nbytes for nbytes in free if nbytes is not None), default=1 << 62)


def _meminfo() -> int | None:
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    return None


def _cgroup_room(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """What a container may still take; files that it has only read count as free."""
    with contextlib.suppress(OSError, ValueError, KeyError):
        stat = dict(line.split() for line in (root / "memory.stat").read_text().splitlines())
        used = int((root / "memory.current").read_text()) - int(stat["inactive_file"])
        return int((root / "memory.max").read_text()) - used
    return None
