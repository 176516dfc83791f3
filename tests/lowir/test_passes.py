# SPDX-License-Identifier: Apache-2.0
import pytest

from tests.lowir.kernels import lines_of
from tilekit.diag import CodegenError
from tilekit.dtypes import boolean, float32, int32, int64
from tilekit.events import Null, Stage
from tilekit.lowir import passes, prims, printer, scalar
from tilekit.lowir.build import ALL, KernelBuilder


def i32(number):
    return scalar.constant(int32, number)


def module_of(write, *params):
    builder = KernelBuilder(128)
    write(builder)
    return builder.finish("k", params)


def optimized(write, *params):
    return lines_of(printer.print_module(passes.optimize(module_of(write, *params))))


@pytest.fixture
def y():
    return scalar.var("y", ~float32)


class Heard(Null):
    def __init__(self):
        self.begun, self.ends, self.failed = [], [], []

    def begin(self, stage, name, before):
        assert stage is Stage.HIDET
        self.begun.append((name, before))

    def end(self, stage, name, before, after, seconds):
        self.ends.append((name, before, after, seconds))

    def fail(self, stage, name, error):
        self.failed.append((name, error))


@pytest.fixture
def n():
    return scalar.var("n", int32)


def test_a_pass_that_changes_nothing_gives_the_same_module(n, y):
    def write(b):
        with b.instruction(0, "store"), b.for_range("i", n) as i, b.if_then(scalar.lt(i, n)):
            b.buffer_store(y, i, scalar.constant(float32, 1))

    module, heard = module_of(write, n, y), Heard()
    assert passes.optimize(module, heard) is module
    assert [(name, before is after) for name, before, after, _ in heard.ends] == [
        ("simplify", True),
        ("remove_unused", True),
    ]


def test_every_pass_is_told_with_what_it_changed(n, y):
    def write(b):
        b.let("unused", n)
        with b.for_range("i", 1) as i:
            b.buffer_store(y, i, scalar.constant(float32, 1))

    module, heard = module_of(write, n, y), Heard()
    result, ends = passes.optimize(module, heard), heard.ends
    assert heard.begun == [("simplify", module), ("remove_unused", ends[0][2])]
    assert ends[0][1] is module and ends[-1][2] is result and ends[0][2] is ends[1][1]
    assert all(before is not after and seconds > 0 for _, before, after, seconds in ends)
    assert lines_of(printer.print_module(module))[0] == "int32_t unused = n;"  # the input is as it was


def test_a_pass_that_raises_is_told_with_what_it_died_of(n, y):
    error = ValueError()

    def die(function):
        raise error

    module, heard = module_of(lambda b: b.let("unused", n), n, y), Heard()
    with pytest.raises(ValueError) as raised:
        passes.optimize(module, heard, (passes.Pass("die", die),))
    assert raised.value is error
    assert (heard.begun, heard.ends, heard.failed) == ([("die", module)], [], [("die", error)])


def test_loops_of_one_iteration_are_their_body(y):
    def write(b):
        with b.for_range("i", scalar.constant(int64, 1), ALL) as i, b.for_range("j", 4) as j:
            b.buffer_store(y, scalar.add(i, scalar.cast(j, int64)), scalar.constant(float32, 1))
        with b.for_range("i", 0):
            b.buffer_store(y, 9, scalar.constant(float32, 1))

    assert optimized(write, y) == ["for (int32_t j = 0; j < 4; ++j) {", "  y[(int64_t)j] = 1.0f;", "}"]


def test_a_loop_that_is_left_by_break_stays(n, y):
    def write(b):
        with b.for_range("i", 1):
            with b.if_then(scalar.lt(n, i32(3))):
                b.break_()
            b.buffer_store(y, 0, scalar.constant(float32, 1))

    assert optimized(write, n, y)[0] == "for (int32_t i = 0; i < 1; ++i) {"


def test_decided_branches_vanish(n, y):
    def write(b):
        with b.if_then(scalar.constant(boolean, True)):
            b.buffer_store(y, 0, scalar.constant(float32, 1))
        with b.otherwise():
            b.ret()
        with b.for_range("i", 1) as i, b.if_then(scalar.lt(i, i32(0))):
            b.ret()
        with b.if_then(scalar.lt(n, i32(3))):
            b.let("unused", n)
        with b.otherwise():
            b.buffer_store(y, 1, scalar.constant(float32, 2))

    assert optimized(write, n, y) == ["y[0] = 1.0f;", "if (!(n < 3)) {", "  y[1] = 2.0f;", "}"]


def test_what_nothing_reads_is_removed_with_what_it_needed(n):
    def write(b):
        first = b.let("first", scalar.add(n, i32(1)))
        second = b.declare(scalar.var("second", int32), first)
        b.assign(second, scalar.mul(first, first))
        b.register_array("registers", float32, 4)

    assert optimized(write, n) == []


def test_what_other_threads_take_part_in_is_not_removed(n):
    def write(b):
        b.let("unused", prims.shfl_xor(n, 1))
        b.evaluate(prims.syncthreads())

    assert optimized(write, n) == ["tk::shfl_xor(n, 1);", "__syncthreads();"]


def test_comments_alone_do_not_keep_a_branch(n):
    def write(b):
        with b.if_then(scalar.lt(n, i32(3))):
            b.comment("nothing happens")

    assert optimized(write, n) == []


def test_a_register_index_may_not_depend_on_the_thread(n):
    def write(b):
        with b.instruction(7, "a[...]"):
            a = b.register_array("a", float32, 4)
            lane = b.let("lane", scalar.mod(scalar.thread_idx(), i32(4)))
            b.store(a, scalar.add(lane, i32(0)), scalar.constant(float32, 1))

    with pytest.raises(CodegenError, match="register array a is indexed by lane, and lane depends on the") as caught:
        passes.optimize(module_of(write, n))
    assert caught.value.data["origin"] == 7


@pytest.mark.parametrize(
    "either",
    [scalar.logical_or, scalar.logical_and, lambda known, e: scalar.where(known, known, e)],
    ids=["or", "and", "where"],
)
def test_an_exchange_may_not_stand_where_a_thread_can_leave_it_out(either):
    def write(b):
        with b.instruction(7, "any"):
            known = b.let("known", scalar.lt(scalar.thread_idx(), i32(4)))
            b.assign(known, either(known, prims.shfl_xor(known, 1)))
            b.evaluate(prims.call("__syncthreads_or", scalar.cast(known, int32)))

    with pytest.raises(CodegenError, match="is not evaluated by every thread, and others wait for it") as caught:
        passes.optimize(module_of(write))
    assert caught.value.data["origin"] == 7


def test_an_exchange_may_stand_first():
    def write(b):
        known = b.let("known", scalar.lt(scalar.thread_idx(), i32(4)))
        b.assign(known, scalar.logical_or(prims.shfl_xor(known, 1), known))
        b.evaluate(prims.call("__syncthreads_or", scalar.cast(known, int32)))

    assert optimized(write)[1] == "known = tk::shfl_xor(known, 1) || known;"


def test_a_register_index_may_not_count_to_the_thread(y):
    def write(b):
        a = b.register_array("a", float32, 4)
        with b.for_range("i", scalar.thread_idx()) as i:
            b.buffer_store(y, 0, b.load(a, i))

    with pytest.raises(CodegenError, match="i depends on the thread"):
        passes.optimize(module_of(write, y))
