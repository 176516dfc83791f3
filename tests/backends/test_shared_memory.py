# SPDX-License-Identifier: Apache-2.0
"""Where shared buffers lie: live ones never overlap, and memory that is used again is never raced for."""

import itertools
import random

import pytest

from tilekit.backends.shared_memory import Branch, Buffer, Leave, Loop, Step, lifetimes, plan

ALIGNMENTS = (128, 256, 512, 1024)


class RandomProgram:
    """Steps in nested loops and branches; what is begun in a body is ended there, later outside, or never."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.count = 0
        self.tree = self.body(3, (), in_loop=False)

    def buffer(self) -> Buffer:
        return Buffer(self.random.randint(1, 40) * 100, self.random.choice(ALIGNMENTS))

    def step(self, **what) -> Step:
        self.count += 1
        return Step(self.count, barrier=self.random.random() < 0.15, settles=self.random.random() < 0.1, **what)

    def body(self, depth: int, outer: tuple[Buffer, ...], *, in_loop: bool) -> list:
        nodes: list = []
        here: list[Buffer] = []
        for _ in range(self.random.randint(1, 6)):
            known = (*outer, *here)
            match self.random.randint(0, 7):
                case 0 | 1:
                    here.append(self.buffer())
                    nodes.append(self.step(begins=(here[-1],)))
                case 2 if here:
                    nodes.append(self.step(ends=(here.pop(self.random.randrange(len(here))),)))
                case 3:
                    private = self.buffer()
                    nodes.append(self.step(begins=(private,), touches=(private,), ends=(private,)))
                case 4 if depth:
                    nodes.append(Loop(self.body(depth - 1, known, in_loop=True)))
                case 5 if depth:
                    bodies = [self.body(depth - 1, known, in_loop=in_loop) for _ in range(2)]
                    nodes.append(Branch(tuple(bodies)))
                case 6 if in_loop and self.random.random() < 0.3:
                    nodes.append(Branch(([Leave(kernel=False)], [])))
                case _ if known:
                    nodes.append(self.step(touches=(self.random.choice(known),)))
                case _:
                    nodes.append(self.step())
        return nodes

    def run(self, tree, seen) -> bool:
        """Execute once, with random decisions; whether a loop was left."""
        for node in tree:
            match node:
                case Step():
                    seen(node)
                case Loop():
                    for _ in range(self.random.randint(0, 3)):
                        if self.run(node.body, seen):
                            seen(Step("left", ends=tuple(ended(node.body))))
                            break
                case Branch():
                    if self.run(self.random.choice(node.bodies), seen):
                        return True
                case Leave():
                    return True
        return False


def ended(tree):
    """The buffers that a tree ends: whoever leaves it early will not touch them any more."""
    for node in tree:
        match node:
            case Step():
                yield from node.ends
            case Loop():
                yield from ended(node.body)
            case Branch():
                for body in node.bodies:
                    yield from ended(body)


def overlap(a, b, offsets):
    return offsets[a] < offsets[b] + b.nbytes and offsets[b] < offsets[a] + a.nbytes


@pytest.mark.parametrize("seed", range(150))
def test_buffers_that_live_at_the_same_time_never_overlap(seed):
    program = RandomProgram(seed)
    offsets = plan(program.tree).offsets
    for _ in range(5):
        live: set[Buffer] = set()

        def look(step, live=live):
            live |= set(step.begins)
            for buffer in step.begins:
                for other in live - {buffer}:
                    assert not overlap(buffer, other, offsets)
            live -= set(step.ends)

        program.run(program.tree, look)


@pytest.mark.parametrize("seed", range(150))
def test_no_thread_writes_what_another_may_still_read(seed):
    program = RandomProgram(seed)
    found = plan(program.tree)
    for _ in range(5):
        # the buffers accessed since the last barrier, each with the number of its present life
        used: set[tuple[Buffer, int]] = set()
        life: dict[Buffer, int] = {}

        def look(step, used=used, life=life):
            for buffer in step.begins:
                life[buffer] = life.get(buffer, 0) + 1
            if step.owner in found.barriers:
                used.clear()
            for buffer in step.touches:
                for other, lived in used:
                    same = other is buffer and lived == life[buffer]
                    assert same or not overlap(buffer, other, found.offsets)
            if step.barrier or step.settles:
                used.clear()
            if not step.settles:
                used |= {(buffer, life[buffer]) for buffer in step.touches}

        program.run(program.tree, look)


@pytest.mark.parametrize("seed", range(50))
def test_every_buffer_lies_on_its_alignment_and_inside_what_is_asked_for(seed):
    found = plan(RandomProgram(seed).tree)
    for buffer, offset in found.offsets.items():
        assert offset % buffer.alignment == 0
        assert offset + buffer.nbytes <= found.nbytes


def begin(name, *buffers):
    return Step(name, begins=buffers)


def touch(name, *buffers):
    return Step(name, touches=buffers)


def end(name, *buffers):
    return Step(name, ends=buffers)


def private(name, buffer):
    return Step(name, begins=(buffer,), touches=(buffer,), ends=(buffer,), barrier=True)


SYNC = Step("sync", settles=True)


def test_the_first_place_that_is_free_is_taken():
    a, b, c, d = Buffer(256), Buffer(512), Buffer(128), Buffer(128)
    tree = [begin(1, a), begin(2, b), end(3, a), begin(4, c), begin(5, d), touch(6, b, c, d)]
    assert plan(tree).offsets == {a: 0, b: 256, c: 0, d: 128}


def test_a_buffer_that_a_loop_reads_lives_through_all_its_rounds():
    a, b = Buffer(128), Buffer(128)
    tree = [begin(1, a), Loop([touch(2, a), begin(3, b), touch(4, b), end(5, b)]), end(6, a)]
    assert not overlap(a, b, plan(tree).offsets)


def test_a_buffer_ended_under_a_condition_in_a_loop_lives_to_the_end_of_the_loop():
    a, b = Buffer(128), Buffer(128)
    tree = [begin(1, a), Loop([Branch(([end(2, a)], [])), begin(3, b), end(4, b)])]
    assert not overlap(a, b, plan(tree).offsets)


def test_a_buffer_that_nothing_ends_lives_to_the_end():
    a, b = Buffer(128), Buffer(128)
    assert lifetimes([begin(1, a), touch(2, a), begin(3, b)])[a] == (0, 3)
    assert not overlap(a, b, plan([begin(1, a), touch(2, a), begin(3, b)]).offsets)


def test_memory_used_again_needs_a_barrier():
    a, b = Buffer(128), Buffer(128)
    tree = [begin(1, a), touch(2, a), end(3, a), begin(4, b), touch(5, b)]
    assert plan(tree).barriers == {5}


def test_a_barrier_that_stands_already_is_enough():
    a, b = Buffer(128), Buffer(128)
    tree = [begin(1, a), touch(2, a), SYNC, end(3, a), begin(4, b), touch(5, b)]
    assert plan(tree).barriers == frozenset()


def test_a_barrier_on_one_of_two_ways_is_not_enough():
    a, b = Buffer(128), Buffer(128)
    tree = [begin(1, a), touch(2, a), Branch(([SYNC], [])), end(3, a), begin(4, b), touch(5, b)]
    assert plan(tree).barriers == {5}


def test_other_memory_needs_no_barrier():
    a, b = Buffer(128), Buffer(128)
    tree = [begin(1, a), begin(2, b), touch(3, a), touch(4, b)]
    assert plan(tree).barriers == frozenset()


def test_a_workspace_in_a_loop_waits_for_the_round_before():
    w = Buffer(128)
    assert plan([Loop([private(1, w)])]).barriers == {1}
    assert plan([private(1, w)]).barriers == frozenset()


def test_a_loop_that_synchronizes_anyway_needs_no_other_barrier():
    w = Buffer(128)
    assert plan([Loop([private(1, w), SYNC])]).barriers == frozenset()


def test_two_large_workspaces_in_one_place_wait_for_each_other():
    found = plan([private(1, Buffer(4096)), private(2, Buffer(3000))])
    assert found.barriers == {2} and found.nbytes == 4096


def test_small_workspaces_lie_apart_and_need_no_barrier():
    a, b, c = Buffer(128), Buffer(64), Buffer(256)
    found = plan([Loop([private(1, a), private(2, b), private(3, c)])])
    assert found.barriers == frozenset()
    assert not any(overlap(x, y, found.offsets) for x, y in itertools.combinations((a, b, c), 2))


def test_many_small_workspaces_share_what_there_is_for_them():
    found = plan([private(number, Buffer(1024)) for number in range(100)])
    assert found.nbytes <= 10 * 1024


def test_workspaces_lie_behind_the_tensors():
    a, w = Buffer(1024), Buffer(128)
    assert plan([private(1, w), begin(2, a), touch(3, a)]).offsets == {a: 0, w: 1024}


def test_what_is_allocated_anew_in_each_round_waits_for_the_last():
    a = Buffer(128)
    tree = [Loop([begin(1, a), touch(2, a), SYNC, touch(3, a), end(4, a)])]
    assert plan(tree).barriers == {2}
