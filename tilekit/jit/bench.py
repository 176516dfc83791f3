# SPDX-License-Identifier: Apache-2.0
"""A kernel beside its peers: right first, then timed in turn, size after size; what is done stays if it is interrupted.

Nothing that is measured writes the person's tensors: what a kernel writes is copied for each program.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tilekit.diag import errors
from tilekit.diag.errors import ArgumentError, KernelError, TilekitError
from tilekit.jit import agreement, contestants, durations, progress
from tilekit.jit.benched import Bench, Row
from tilekit.jit.contestants import Peer, Subject
from tilekit.jit.kernel import Kernel
from tilekit.jit.progress import Underway
from tilekit.runtime import benchmark, launch_cuda
from tilekit.runtime.benchmark import Batch, Timer, Timing
from tilekit.runtime.conditions import Watch
from tilekit.runtime.tensors import DeviceKind

Amount: TypeAlias = "float | Callable[..., float] | None"
Sizes: TypeAlias = "Sequence[Any] | Mapping[str, Any] | None"
Resolve: TypeAlias = Callable[[Sequence[Any]], Subject]

_EXAMPLE = "bench(sizes=[256, 512], make=lambda n: (n, torch.randn(n), torch.empty(n)))"


@dataclass(frozen=True)
class Asked:
    """What a person wants to know; see `InstantiatedScript.bench`."""

    against: Mapping[str, Peer] = field(default_factory=dict[str, Peer])
    flops: Amount = None
    bytes: Amount = None
    tolerance: float | None = None
    even_if_wrong: bool = False
    rounds: int = benchmark.ROUNDS


@dataclass(frozen=True)
class Size:
    """One set of arguments: what it is called, its number if it is one, and what makes it."""

    label: str
    number: float | None
    make: Callable[[], Any]


def sizes_of(script: str, args: Sequence[Any], sizes: Sizes, make: Callable[..., Any] | None) -> list[Size]:
    """The sets of arguments that are asked for."""
    if sizes is None:
        if make is not None:
            raise _refused(script, "make belongs to sizes", _EXAMPLE)
        return [Size("", None, lambda: tuple(args))]
    if args:
        raise _refused(script, "it takes either arguments or sizes, not both")
    if isinstance(sizes, str) or not isinstance(sizes, (Sequence, Mapping)) or not len(sizes):
        raise _refused(
            script, f"sizes is a list of sizes, or a mapping from names to arguments, not {sizes!r}", _EXAMPLE
        )
    if isinstance(sizes, Mapping):
        if make is not None:
            raise _refused(script, "a mapping of sizes says itself how they are made, so make has no place")
        return [Size(str(label), None, made if callable(made) else _constant(made)) for label, made in sizes.items()]
    if make is None:
        raise _refused(script, "sizes need make, which gives the arguments for one of them", _EXAMPLE)
    return [_sized(size, make) for size in sizes]


def _constant(value: Any) -> Callable[[], Any]:
    return lambda: value


def _sized(size: Any, make: Callable[..., Any]) -> Size:
    if isinstance(size, tuple):
        return Size("×".join(map(str, size)), None, lambda: make(*size))
    number = float(size) if isinstance(size, (int, float)) else None
    return Size(str(size), number, lambda: make(size))


def _refused(script: str, why: str, help: str | None = None) -> ArgumentError:
    return errors.ArgumentError("TK643", f"{script} cannot be measured so: {why}", help=help)


def bench(script: str, resolve: Resolve, sizes: Sequence[Size], asked: Asked) -> Bench:
    """Measure the kernel at every size; see `InstantiatedScript.bench`."""
    if not isinstance(asked.rounds, int) or asked.rounds < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise _refused(script, f"rounds is how often each program takes its turn, not {asked.rounds!r}")
    if not isinstance(asked.against, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise _refused(
            script, f"against is a mapping from names to peers, not {asked.against!r}", 'against={"torch": torch.add}'
        )
    for name in ("flops", "bytes", "tolerance"):
        value = getattr(asked, name)
        if not (value is None or _is_amount(value) or (name != "tolerance" and callable(value))):
            raise _refused(script, f"{name} is a number from 0 on, not {value!r}")
    found = Bench(script)
    with _Shown(script, len(sizes)) as shown:
        for size in sizes:
            shown.begin(size.label)
            one = _OneSize(found, size, asked, shown)
            try:
                one.measure(resolve)
            except TilekitError as error:
                if not _is_interrupt(error):
                    raise (error.noted(f"at size {size.label}") if size.label else error) from error.__cause__
                stopped: BaseException = error
            except KeyboardInterrupt as stop:
                stopped = stop
            else:
                continue
            if not found.rows:
                raise stopped
            found.notes.append(f"interrupted{f' at {size.label}' if size.label else ''}: what was done is here")
            break
    return found


def _is_amount(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0


def _is_interrupt(error: BaseException) -> bool:
    return isinstance(error, KernelError) and error.kind == "interrupted"


# ------------------------------------------------------------------------------------------------------------- one size


@dataclass
class _Program:
    """One of those that are compared: its row, its arguments, what calls it on them, and how that went."""

    row: Row
    values: Sequence[Any]
    call: Callable[[], Any]
    batches: list[Batch] = field(default_factory=list[Batch])


class _OneSize:
    """The comparison for one set of arguments, and what came of it so far."""

    def __init__(self, found: Bench, size: Size, asked: Asked, shown: _Shown) -> None:
        self._found = found
        self._size = size
        self._asked = asked
        self._shown = shown
        self._rows: list[Row] = []

    def measure(self, resolve: Resolve) -> None:
        try:
            made = self._size.make()
        except Exception as error:
            raise _refused(self._found.script, f"make fails: {words(error)}", _EXAMPLE) from error
        subject = resolve(tuple(made) if isinstance(made, (tuple, list)) else (made,))
        device = subject.kernel.machine.device
        watch = Watch(device)
        timer = benchmark.timer(device, watch=watch)
        self._found.describe(subject.kernel)
        try:
            with _as_before(subject.kernel):
                ours = self._ours(subject)
                peers = [self._peer(subject, *named) for named in self._asked.against.items()]
                self._rows = [ours.row, *(row for row, _ in peers)]
                programs = self._right(subject, ours, [peer for _, peer in peers if peer is not None], timer)
                self._time(programs, timer)
                self._found.floor = self._found.floor or timer.floor()
        finally:
            # of a size in which nothing was timed yet there is nothing to keep
            if any(row.timing for row in self._rows):
                self._found.rows += [row for row in self._rows if row.timing or row.failed]
                self._found.conditions.append(watch.conditions)

    def _row(self, subject: Subject, name: str, *, ours: bool = False) -> Row:
        flops, nbytes = (self._amount(subject, what) for what in ("flops", "bytes"))
        if flops is None and nbytes is None:
            nbytes = subject.nbytes
        schedule = dict(subject.kernel.schedule) if ours else {}
        return Row(self._size.label, self._size.number, name, ours, schedule, flops, nbytes)

    def _amount(self, subject: Subject, what: str) -> float | None:
        value: Amount = getattr(self._asked, what)
        try:
            return None if value is None else subject.amount(value)
        except Exception as error:
            raise _refused(self._found.script, f"{what} fails: {words(error)}") from error

    # ------------------------------------------------------------------------------------------------------ right first

    def _ours(self, subject: Subject) -> _Program:
        """Our kernel, launched once as by any call: where checks are wanted, they run."""
        kernel, values = subject.kernel, subject.private()
        launched = subject.launched_of(values)
        kernel.launch(launched)
        if kernel.machine.device.kind is DeviceKind.CUDA:
            launch_cuda.synchronize(kernel.machine.device.index)
        runner = kernel.load()
        name = f"{kernel.script} (edited)" if kernel.patched else kernel.script
        return _Program(self._row(subject, name, ours=True), values, lambda: runner.launch(launched))

    def _peer(self, subject: Subject, name: str, peer: Peer) -> tuple[Row, _Program | None]:
        row = self._row(subject, name)
        try:
            values = subject.private()
            return row, _Program(row, values, subject.call(peer, values))
        except Exception as error:
            row.failed = words(error)
            return row, None

    def _right(self, subject: Subject, ours: _Program, peers: Sequence[_Program], timer: Timer) -> list[_Program]:
        """Those that may be timed: who gives other results than the first peer does may not."""
        results: list[tuple[_Program, Mapping[str, Any]]] = [(ours, subject.outputs(ours.values))]
        for peer in peers:
            try:
                results.append((peer, subject.results(peer.call(), peer.values)))
                timer.wait()
            except Exception as error:
                self._fail(peer, error)
        results = [(program, result) for program, result in results if not program.row.failed]
        if len(results) == 1:
            self._found.note("results compared with nothing")
            return [ours]
        allowed = self._asked.tolerance
        if allowed is None:
            allowed = agreement.tolerance(list(results[0][1].values()), subject.inputs(subject.args))
        named, reference = self._reference(subject, *results[1], allowed)
        self._found.note(f"results compared with {named}")
        for program, result in results:
            self._judge(program, contestants.compare(result, reference, allowed), named)
        return [program for program, _ in results if not program.row.failed]

    def _reference(
        self, subject: Subject, peer: _Program, results: Mapping[str, Any], allowed: float
    ) -> tuple[str, Mapping[str, Any]]:
        """A peer's results from the same arguments in float64, if it can do that and means the same; else these."""
        name = peer.row.name
        try:
            values = subject.private(wide=True)
            wide = subject.results(subject.call(self._asked.against[name], values)(), values)
        except Exception:
            return name, results  # most programs know the types that they were written for, and no others
        is_same = contestants.are_wide(wide) and not contestants.compare(results, wide, allowed).difference
        return (f"{name} in float64", wide) if is_same else (name, results)

    def _judge(self, program: _Program, found: agreement.Agreement, named: str) -> None:
        row = program.row
        row.relative_error = found.relative_error
        if not found.difference:
            return
        if self._asked.even_if_wrong:
            self._found.note(f"{row.name} differs from {named}: {found.difference}")
        elif row.is_ours:
            raise errors.KernelError(
                "TK645",
                f"{row.name} differs from {named}: {found.difference}",
                help="tolerance=… if rounding explains it; even_if_wrong=True times it all the same",
                data={"kind": "wrong_result", "relative_error": found.relative_error},
            )
        else:
            row.failed = f"differs from {named}: {found.difference}"

    # ----------------------------------------------------------------------------------------------------------- timing

    def _time(self, programs: Sequence[_Program], timer: Timer) -> None:
        calls: dict[str, int] = {}
        known: dict[str, _Program] = {}
        for number, program in enumerate(programs):
            name = str(number)
            try:
                calls[name] = benchmark.calls_in_a_batch(benchmark.glance(program.call, timer), timer)
                known[name] = program
            except Exception as error:
                self._fail(program, error)
        launches = {name: program.call for name, program in known.items()}
        turns = benchmark.in_turn(launches, timer, calls, rounds=self._asked.rounds)
        for done, (name, batch) in enumerate(turns, start=1):
            program = known[name]
            if isinstance(batch, Exception):
                self._fail(program, batch)
                continue
            program.batches.append(batch)
            program.row.timing = Timing(tuple(program.batches))
            self._shown.step(done / (self._asked.rounds * len(known)))

    def _fail(self, program: _Program, error: Exception) -> None:
        """A peer that fails is a row with its error; ours is an error."""
        if program.row.is_ours or _is_interrupt(error):
            raise error
        program.row.failed, program.row.timing = words(error), None


def words(error: BaseException) -> str:
    """What went wrong, in one line."""
    text = error.message if isinstance(error, TilekitError) else str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    kind = "" if isinstance(error, TilekitError) else f"{type(error).__name__}: "
    return f"{kind}{lines[0] if lines else 'no reason given'}"[:200]


@contextlib.contextmanager
def _as_before(kernel: Kernel) -> Iterator[None]:
    """The last call is the person's, not one of ours."""
    history = kernel.history
    arguments, run = history.arguments, history.last_run
    try:
        yield
    finally:
        history.arguments, history.last_run = arguments, run or history.last_run


# ------------------------------------------------------------------------------------------------------------- progress


@dataclass(frozen=True)
class Benching(Underway):
    """How far a measurement is."""

    script: str
    size: str
    done: float
    seconds: float

    @property
    def share(self) -> float:
        return self.done

    @property
    def words(self) -> str:
        at = f" at {self.size}" if self.size else ""
        left = f", about {durations.left(self.seconds / self.share * (1 - self.share))} left" if self.share else ""
        return f"{self.script}: measuring{at}{left}"


class _Shown(contextlib.AbstractContextManager["_Shown"]):
    """Tells how far it is, once it has taken a while."""

    def __init__(self, script: str, sizes: int) -> None:
        self._script = script
        self._sizes = sizes
        self._size = ""
        self._number = -1
        self._begin = time.perf_counter()
        self._is_shown = False

    def begin(self, size: str) -> None:
        self._size = size
        self._number += 1
        self.step(0.0)

    def step(self, share: float) -> None:
        """So much of this size is done."""
        seconds = time.perf_counter() - self._begin
        if self._is_shown or seconds >= progress.PATIENCE_S:
            self._is_shown = True
            progress.tell(Benching(self._script, self._size, (self._number + share) / self._sizes, seconds))

    def __exit__(self, *_: object) -> None:
        if self._is_shown:
            progress.tell(None)
