# SPDX-License-Identifier: Apache-2.0
"""Where shared buffers lie, and where a barrier must stand because two of them lie in the same place.

A kernel is seen as a tree of steps. A buffer lives from the step that begins it to the last one that touches or ends
it, around every loop that it is carried through; one that nothing ends lives on to the end of the kernel. Each takes
the lowest place that no buffer living at the same time has (first fit, in the order in which they begin).

Memory that is used again is a hazard: a slow thread may still read the old buffer when a fast one writes the new one.
Kernels see separate buffers and cannot know, so the barrier is ours; it is asked for only where none stands already on
the way from the last access to the old buffer. Small buffers that live for one step only share memory with nobody, as
long as there are few of them: then the barriers inside other steps are enough, and each of them costs more than the
bytes.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

# the boundary that the widest accesses and most copies want
ALIGNMENT = 128

# how large a buffer of one step may be to have memory of its own, and how much all of them
SMALL, ALL_SMALL = 2048, 8192


@dataclass(frozen=True, eq=False)
class Buffer:
    """Bytes of shared memory that are allocated at once."""

    nbytes: int
    alignment: int = ALIGNMENT
    name: str = ""


@dataclass(frozen=True, eq=False)
class Step:
    """What one instruction does to buffers.

    `barrier` says that every thread waits for all others in it, before which it touches nothing but what it begins;
    `settles` says that they wait for each other at its end.
    """

    owner: Hashable
    begins: tuple[Buffer, ...] = ()
    touches: tuple[Buffer, ...] = ()
    ends: tuple[Buffer, ...] = ()
    barrier: bool = False
    settles: bool = False


@dataclass(frozen=True, eq=False)
class Loop:
    """A body that runs any number of times."""

    body: Tree


@dataclass(frozen=True, eq=False)
class Branch:
    """One of several bodies runs."""

    bodies: tuple[Tree, ...]


@dataclass(frozen=True, eq=False)
class Leave:
    """The end of the innermost loop, or of the kernel."""

    kernel: bool


Tree = Sequence["Step | Loop | Branch | Leave"]


@dataclass(frozen=True)
class Plan:
    """The first byte of each buffer, the owners of steps that a barrier must precede, and the bytes in all."""

    offsets: dict[Buffer, int]
    barriers: frozenset[Hashable]
    nbytes: int


def plan(tree: Tree) -> Plan:
    """Place every buffer that a step begins."""
    offsets = _first_fit(_apart(lifetimes(tree)))
    nbytes = max((offset + buffer.nbytes for buffer, offset in offsets.items()), default=0)
    return Plan(offsets, _Hazards(offsets).run(tree), nbytes)


# ------------------------------------------------------------------------------------------------------------ lifetimes


@dataclass(eq=False)
class _Span:
    """The first and the last number of the steps in a loop."""

    first: int
    last: int = -1


@dataclass
class _Events:
    """Where a buffer begins, and where it is used or ended: numbers of steps with the loops around them."""

    begins: list[tuple[int, tuple[_Span, ...]]] = field(default_factory=list[tuple[int, tuple[_Span, ...]]])
    uses: list[tuple[int, tuple[_Span, ...]]] = field(default_factory=list[tuple[int, tuple[_Span, ...]]])
    ended: bool = False


def lifetimes(tree: Tree) -> dict[Buffer, tuple[int, int]]:
    """The first and the last step, by their numbers, of the life of each buffer, in the order of the first."""
    events: dict[Buffer, _Events] = {}
    last = _number(tree, 0, (), events)
    lives = {buffer: _life(found, last) for buffer, found in events.items() if found.begins}
    return dict(sorted(lives.items(), key=lambda item: item[1][0]))


def _number(tree: Tree, at: int, loops: tuple[_Span, ...], events: dict[Buffer, _Events]) -> int:
    """Number the steps from `at` on and note what they do; the number after the last one."""
    for node in tree:
        match node:
            case Step():
                for buffer in node.begins:
                    events.setdefault(buffer, _Events()).begins.append((at, loops))
                for buffer in (*node.touches, *node.ends):
                    events.setdefault(buffer, _Events()).uses.append((at, loops))
                for buffer in node.ends:
                    events[buffer].ended = True
                at += 1
            case Loop():
                span = _Span(at)
                at = _number(node.body, at, (*loops, span), events)
                span.last = at - 1
            case Branch():
                for body in node.bodies:
                    at = _number(body, at, loops, events)
            case Leave():
                pass
    return at


def _life(events: _Events, end: int) -> tuple[int, int]:
    first = min(at for at, _ in events.begins)
    begun_in = [span for _, loops in events.begins for span in loops]
    if not events.ended:
        # what a round leaves behind may be read in the next one
        return min([first, *(span.first for span in begun_in)]), end
    last = max(at for at, _ in (*events.begins, *events.uses))
    for at, loops in events.uses:
        around = [span for span in loops if not all(span in begun for _, begun in events.begins)]
        carried = [span for span in loops for begun_at, begun in events.begins if span in begun and at < begun_at]
        for span in (*around, *carried):
            last = max(last, span.last)
        for span in carried:
            first = min(first, span.first)
    return first, last


def _apart(lives: dict[Buffer, tuple[int, int]]) -> dict[Buffer, tuple[int, int]]:
    """The lives with those of small buffers of one step prolonged over all others, and placed after them."""
    small = [buffer for buffer, (first, last) in lives.items() if first == last and buffer.nbytes <= SMALL]
    room = ALL_SMALL
    kept: dict[Buffer, tuple[int, int]] = {}
    for buffer in small:
        if buffer.nbytes <= room:
            room -= buffer.nbytes
            kept[buffer] = 0, max(last for _, last in lives.values())
    return {**{buffer: life for buffer, life in lives.items() if buffer not in kept}, **kept}


def _first_fit(lives: dict[Buffer, tuple[int, int]]) -> dict[Buffer, int]:
    offsets: dict[Buffer, int] = {}
    for buffer, (first, last) in lives.items():
        taken = sorted(
            (offset, offset + other.nbytes)
            for other, offset in offsets.items()
            if lives[other][0] <= last and first <= lives[other][1]
        )
        at = 0
        for begin, end in taken:
            if at + buffer.nbytes <= begin:
                break
            at = max(at, -(-end // buffer.alignment) * buffer.alignment)
        offsets[buffer] = at
    return offsets


# -------------------------------------------------------------------------------------------------------------- hazards

# a buffer that some thread may still be using, and whether that was before it was begun anew
_Used = frozenset[tuple[Buffer, bool]]


class _Hazards:
    """Follows, along every path, which buffers were accessed since the last barrier."""

    def __init__(self, offsets: dict[Buffer, int]) -> None:
        self.offsets = offsets
        self.barriers: set[Hashable] = set()
        self.left: list[list[_Used]] = []

    def run(self, tree: Tree) -> frozenset[Hashable]:
        self.follow(tree, frozenset())
        return frozenset(self.barriers)

    def follow(self, tree: Tree, used: _Used | None) -> _Used | None:
        """What is in use after the steps; None where the end is never reached."""
        for node in tree:
            if used is None:
                return None
            match node:
                case Step():
                    used = self.step(node, used)
                case Branch():
                    used = _joined([self.follow(body, used) for body in node.bodies])
                case Loop():
                    used = self.loop(node, used)
                case Leave():
                    if not node.kernel:
                        self.left[-1].append(used)
                    return None
        return used

    def step(self, step: Step, used: _Used) -> _Used:
        used = frozenset((buffer, stale or buffer in step.begins) for buffer, stale in used)
        if step.owner in self.barriers or any(self.clash(buffer, used) for buffer in step.touches):
            self.barriers.add(step.owner)
            used = frozenset()
        if step.settles:
            return frozenset()
        if step.barrier:
            used = frozenset()
        return used | {(buffer, False) for buffer in step.touches}

    def clash(self, buffer: Buffer, used: _Used) -> bool:
        """Whether a thread may still use the memory of `buffer` as it was before."""
        begin = self.offsets[buffer]
        end = begin + buffer.nbytes
        return any(
            self.offsets[other] < end and begin < self.offsets[other] + other.nbytes
            for other, stale in used
            if stale or other is not buffer
        )

    def loop(self, loop: Loop, before: _Used) -> _Used | None:
        """Rounds start with what any round before left in use."""
        entry: _Used | None = before
        while True:
            assert entry is not None
            self.left.append([])
            after = self.follow(loop.body, entry)
            left = self.left.pop()
            again = _joined([entry, after])
            if again == entry:
                return _joined([entry, after, *left])
            entry = again


def _joined(states: Sequence[_Used | None]) -> _Used | None:
    reached = [state for state in states if state is not None]
    return frozenset[tuple[Buffer, bool]]().union(*reached) if reached else None
