# SPDX-License-Identifier: Apache-2.0
"""A kernel that does wrong is stopped with the tensor, the place in it, and the line."""

import numpy as np
import pytest

from tilekit.diag import KernelError
from tilekit.ir import evaluator
from tilekit.ir.evaluator import Memory, scheduler
from tilekit.ir.evaluator.scheduler import Barrier
from tilekit.ir.text import parser


def mistake(args, *lines: str, params: str, grid="i32(1)", **options) -> KernelError:
    header = f"@kernel(\n    grid=[{grid}, i32(1), i32(1)],\n    warps=1,\n)\ndef f({params}):\n"
    prog = parser.parse_program(header + "".join(f"    {line}\n" for line in lines))
    with pytest.raises(KernelError) as error:
        evaluator.run(prog, args, **options)
    return error.value


def line_of(error: KernelError) -> int:
    assert error.diagnostic.at is not None
    return error.diagnostic.at.line


STORE = "store_global_generic(a, ptr=x, axes=[i], offset=i64(i) + i64(n))"
ONES = "a: f32[8] = register_tensor(init=f32(1.0))"


def test_store_past_the_end_is_named_with_its_element():
    x = np.zeros(10, np.float32)
    error = mistake([4, x], ONES, STORE, params="n: i32, x: ~f32")
    assert error.message == "a[6] writes element 10 of x, which has 10 (block [0, 0, 0])"
    assert line_of(error) == 2
    facts = {"kind": "out_of_bounds", "tensor": "x", "index": (6,), "offset": 10, "block": (0, 0, 0)}
    assert error.data == facts
    assert not x.any()


def test_load_before_the_beginning_is_named_with_its_element():
    lines = ["b: f32[2, 4] = load_global_generic(ptr=x + i32(2), axes=[i, j], offset=i64(j - i * n))"]
    error = mistake([3, np.zeros(10, np.float32)], *lines, params="n: i32, x: ~f32")
    assert error.message == "b[1, 0] reads element -1 of x, which has 10 (block [0, 0, 0])"


def test_argument_ends_where_its_view_ends():
    x = np.zeros(100, np.float32)
    error = mistake([0, x[10:15]], ONES, STORE, params="n: i32, x: ~f32")
    assert error.message == "a[5] writes element 5 of x, which has 5 (block [0, 0, 0])"


def test_pointer_in_a_variable_remembers_its_argument():
    x = np.zeros(100, np.float32)
    lines = [ONES, "p: ~f32 = x", "if n == i32(0):", "    p = y + i32(1)", STORE.replace("ptr=x", "ptr=p")]
    error = mistake([0, x[:50], x[40:44]], *lines, params="n: i32, x: ~f32, y: ~f32")
    assert error.message == "a[3] writes element 4 of y, which has 4 (block [0, 0, 0])"


def test_index_past_two_to_the_31_does_not_wrap():
    lines = [
        "g: Global[f32[n, n]] = global_view(ptr=x)",
        "a: f32[1, 4] = load_global(g, offsets=[n - i32(1), block_idx_x], dims=[0, 1])",
    ]
    n = 70_000
    error = mistake([n, np.zeros(4, np.float32)], *lines, params="n: i32, x: ~f32", grid="n", blocks=[(5, 0, 0)])
    assert error.data["offset"] == (n - 1) * n + 5
    assert error.data["block"] == (5, 0, 0)


def test_access_to_an_empty_array_is_out_of_bounds():
    error = mistake([0, np.zeros(0, np.float32)], ONES, STORE, params="n: i32, x: ~f32")
    assert error.message == "a[0] writes element 0 of x, which has 0 (block [0, 0, 0])"


def test_address_between_two_elements_is_misaligned():
    x = Memory.empty(64)
    lines = ['p: ~f32 = cast(cast(x, "i64") + i64(2), "~f32")', ONES, STORE.replace("ptr=x", "ptr=p")]
    error = mistake([0, x], *lines, params="n: i32, x: ~f32")
    assert error.message == "a writes float32 at an address that is no multiple of its size (block [0, 0, 0])"
    assert error.kind == "misaligned"


def test_address_of_nobody_is_out_of_bounds():
    lines = [ONES, STORE.replace("ptr=x", 'ptr=cast(i64(n), "~f32")')]
    error = mistake([64, np.zeros(4, np.float32)], *lines, params="n: i32, x: ~f32")
    assert error.message == "address 0x40 belongs to no parameter (block [0, 0, 0])"


def test_storing_what_was_never_written_is_named():
    lines = ["a: f32[8] = register_tensor()", "b: f32[8] = register_tensor()", "a = add(a, b)", STORE]
    error = mistake([0, np.zeros(8, np.float32)], *lines, params="n: i32, x: ~f32")
    assert error.message == "a[0] is stored, but was never written (block [0, 0, 0])"
    assert line_of(error) == 4
    assert error.data == {"kind": "uninitialized", "tensor": "a", "index": (0,), "block": (0, 0, 0)}


def test_undefined_elements_are_followed_one_by_one():
    """A hole in memory that was never written goes with the elements, and hurts only if it is stored."""
    x, y = Memory.empty(32), np.zeros(8, np.float32)
    x.written[:12] = True
    lines = [
        "a: f32[8] = load_global_generic(ptr=x, axes=[i], offset=i64(i))",
        "b: f32[8] = add(a, a)",
        "store_global_generic(b, ptr=y, axes=[i], offset=i64(i), mask=i < n)",
    ]
    params = "n: i32, x: ~f32, y: ~f32"
    assert mistake([4, x, y], *lines, params=params).data["index"] == (3,)
    evaluator.run(parser.parse_program(_text(params, lines)), [3, x, y])
    x.written[12:] = True
    evaluator.run(parser.parse_program(_text(params, lines)), [8, x, y])


def _text(params, lines):
    header = f"@kernel(\n    grid=[i32(1), i32(1), i32(1)],\n    warps=1,\n)\ndef f({params}):\n"
    return header + "".join(f"    {line}\n" for line in lines)


def test_hole_in_one_row_makes_that_rows_sum_a_hole():
    x, y = Memory.empty(32), np.zeros(2, np.float32)
    x.written[:20] = True
    lines = [
        "a: f32[2, 4] = load_global_generic(ptr=x, axes=[i, j], offset=i64(i * i32(4) + j))",
        "s: f32[2] = reduce(a, dims=[1], op='sum')",
        "store_global_generic(s, ptr=y, axes=[i], offset=i64(i))",
    ]
    assert mistake([x, y], *lines, params="x: ~f32, y: ~f32").data["index"] == (1,)


def test_store_fills_the_hole_that_a_load_finds():
    x = Memory.empty(32)
    lines = [ONES, STORE, "b: f32[8] = load_global_generic(ptr=x, axes=[i], offset=i64(i))", STORE.replace("(a", "(b")]
    evaluator.run(parser.parse_program(_text("n: i32, x: ~f32", lines)), [0, x])
    assert x.written.all()
    assert (x.buffer.view(np.float32) == 1).all()


def test_slices_of_a_memory_are_the_same_memory():
    whole = Memory.empty(48)
    evaluator.run(parser.parse_program(_text("n: i32, x: ~f32", [ONES, STORE])), [0, whole[16:]])
    assert not whole.written[:16].any()
    assert whole.written[16:].all()


def test_scalar_without_a_value_cannot_be_branched_on():
    lines = ["k: i32", "if k < n:", "    return"]
    error = mistake([0], *lines, params="n: i32")
    assert (error.message, error.kind) == ("k is read before it is written (block [0, 0, 0])", "uninitialized")
    assert line_of(error) == 2


@pytest.mark.parametrize("body", ["pass", "sync()"])
def test_endless_loop_is_stopped_at_its_line(body):
    lines = ["k: i32 = n", "while n < i32(3):", f"    {body}"]
    error = mistake([0], *lines, params="n: i32", step_limit=1000)
    assert (error.message, error.kind) == ("the kernel did not end within 1000 steps (block [0, 0, 0])", "timeout")
    assert line_of(error) in (2, 3)


# ---------------------------------------------------------------------------------------------------------- scheduling


class Walker:
    """A thread group made of Python: it meets the others at a barrier so many times."""

    def __init__(self, name, barrier, meetings, log):
        self.name, self.barrier, self.meetings, self.log = name, barrier, meetings, log
        self.steps = 0

    def run(self):
        for meeting in range(self.meetings):
            self.steps += 1
            self.log.append((self.name, meeting))
            yield from self.barrier.wait()
        self.barrier.leave()

    def stuck(self):
        return KernelError("TK710", f"{self.name} waits", data={"kind": "deadlock"})


@pytest.mark.parametrize("seed", range(5))
def test_groups_meet_at_a_barrier_before_any_goes_on(seed):
    log, barrier = [], Barrier(groups=3)
    scheduler.run_all([[Walker(name, barrier, 4, log) for name in "abc"]], seed)
    assert [sorted(log[n : n + 3]) for n in range(0, 12, 3)] == [[(name, n) for name in "abc"] for n in range(4)]


def test_group_that_has_ended_is_not_waited_for():
    log, barrier = [], Barrier(groups=2)
    scheduler.run_all([[Walker("a", barrier, 1, log), Walker("b", barrier, 5, log)]], seed=1)
    assert len(log) == 6


def test_groups_that_wait_for_nobody_are_a_deadlock():
    missing = Barrier(groups=3)
    with pytest.raises(KernelError, match=r"[ab] waits"):
        scheduler.run_all([[Walker(name, missing, 1, []) for name in "ab"]], seed=1)


def test_block_that_waits_lets_later_blocks_run():
    log = []
    gate = Barrier(groups=scheduler.RESIDENT_BLOCKS)
    blocks = [[Walker(number, gate, 1, log)] for number in range(scheduler.RESIDENT_BLOCKS)]
    scheduler.run_all(blocks, seed=1)
    assert len(log) == scheduler.RESIDENT_BLOCKS
