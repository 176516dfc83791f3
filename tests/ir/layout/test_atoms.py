# SPDX-License-Identifier: Apache-2.0
import itertools
import math
import re

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from tests.ir.layout.strategies import places
from tilekit.dtypes import bfloat16, float16, float32, int8, int32, tfloat32
from tilekit.ir.layout import atoms, mapping, ops
from tilekit.ir.layout.ops import (
    LayoutOperationError,
    column_local,
    conflicts,
    local,
    replicated,
    shared_column_major,
    shared_layout,
    shared_row_major,
    shared_row_major_swizzle,
    spatial,
)
from tilekit.lowir import prims

some = settings(max_examples=30, deadline=None)
TYPES = [(float16, float32), (float16, float16), (bfloat16, float32), (tfloat32, float32), (int8, int32)]
ALL = [make(1) for make in atoms.ATOMIC_MMA_CONFIGS]


# ---------------------------------------------------------------- fragments
# Element i of lane l, as the instruction set manual has it: group = l >> 2, inside = l % 4.


def two_blocks_a(packed):
    def place(group, inside, i):
        word, part = divmod(i, packed)
        return group + 8 * (word % 2), inside * packed + part + 4 * packed * (word // 2)

    return place


def two_blocks_b(packed):
    def place(group, inside, i):
        word, part = divmod(i, packed)
        return inside * packed + part + 4 * packed * word, group

    return place


FRAGMENTS = {
    "m16n8k16": (two_blocks_a(2), two_blocks_b(2)),
    "m16n8k8": (two_blocks_a(1), two_blocks_b(1)),
    "m16n8k32": (two_blocks_a(4), two_blocks_b(4)),
    "m16n8k16 i8": (
        lambda group, inside, i: (group + (8 if i >= 4 else 0), inside * 4 + (i & 3)),
        lambda group, inside, i: (inside * 4 + i, group),
    ),
    "m8n8k16": (
        lambda group, inside, i: (group, inside * 4 + i),
        lambda group, inside, i: (inside * 4 + i, group),
    ),
}


def accumulator(group, inside, i):
    return group + (8 if i >= 2 else 0), inside * 2 + (i & 1)


def fragments(atom):
    shape = atom.name.split("_")[0]
    a, b = FRAGMENTS["m16n8k16 i8" if atom.name == "m16n8k16_i8_i32" else shape]
    return a, b, accumulator


def held(place, registers):
    return {(lane, i): place(lane >> 2, lane % 4, i) for lane in range(32) for i in range(registers)}


@pytest.mark.parametrize("atom", ALL, ids=lambda atom: atom.name)
def test_lanes_hold_what_the_instruction_set_says(atom):
    for layout, place, registers in zip(
        (atom.la, atom.lb, atom.lc), fragments(atom), (atom.m * atom.k, atom.k * atom.n, atom.m * atom.n), strict=True
    ):
        assert places(layout) == held(place, registers // 32)
    assert (atom.la.shape, atom.lb.shape, atom.lc.shape) == ((atom.m, atom.k), (atom.k, atom.n), (atom.m, atom.n))


@pytest.mark.parametrize("atom", ALL, ids=lambda atom: atom.name)
def test_atoms_are_named_after_shape_and_types(atom):
    names = {float16: "f16", bfloat16: "bf16", tfloat32: "tf32", int8: "i8", float32: "f32", int32: "i32"}
    assert atom.name == f"m{atom.m}n{atom.n}k{atom.k}_{names[atom.operand_type]}_{names[atom.acc_type]}"


def test_every_atom_has_a_device_function_and_the_other_way_round():
    assert sorted(atom.name for atom in ALL) == sorted(prims.MMA_KINDS)


@pytest.mark.parametrize("vec_k", [2, 3, 4])
@pytest.mark.parametrize("make", atoms.ATOMIC_MMA_CONFIGS, ids=lambda make: make.__name__)
def test_wider_atoms_hold_neighbors_along_k(make, vec_k):
    atom, one = make(vec_k), make(1)
    assert (atom.m, atom.n, atom.k) == (one.m, one.n, one.k)
    assert atom.la.shape == (atom.m, atom.k * vec_k)
    assert atom.lb.shape == (atom.k * vec_k, atom.n)
    assert atom.lc == one.lc
    assert ops.vector_extent(atom.la, 1) == ops.vector_extent(atom.lb, 0) == atom.packed * vec_k


def test_atoms_for_types_begin_with_the_one_that_does_the_most():
    assert [atom.name for atom in atoms.atoms_for(int8, int32)] == [
        "m16n8k32_i8_i32",
        "m16n8k16_i8_i32",
        "m8n8k16_i8_i32",
    ]
    for operand, acc in TYPES:
        found = atoms.atoms_for(operand, acc)
        assert atoms.AtomicMmaConfig.from_dtypes(operand, acc) == found[0]
        work = [atom.m * atom.n * atom.k for atom in found]
        assert work == sorted(work, reverse=True)


# ---------------------------------------------------------------- dots


def random_operands(m, n, k):
    generator = np.random.default_rng()
    return generator.integers(-8, 8, (m, k)), generator.integers(-8, 8, (k, n))


def registers_of(tile, layout):
    """What each thread has: (threads, registers)."""
    thread, register = np.meshgrid(np.arange(layout.spatial_size), np.arange(layout.local_size), indexing="ij")
    index = [mapping.evaluate(terms, thread=thread, local=register) for terms in mapping.index_terms(layout)]
    return tile[tuple(index)]


def fragment_registers(plan, start, layout):
    """The elements of a fragment in a thread's registers: 32-bit registers, `register_stride` elements apart."""
    packed = plan.atom.packed
    words = layout.local_size // plan.atom.vec_k // packed
    return [start + word * plan.register_stride + part for word in range(words) for part in range(packed)]


def multiply(plan, a, b, d):
    """Do what the plan's calls do: d += a * b, all arrays of (threads, registers)."""
    a_place, b_place, d_place = fragments(plan.atom)
    lane = np.arange(32)
    for call in plan.calls:
        dm, dn, am, ak, bk, bn = call.strides
        for mi, ni, ki in itertools.product(*map(range, call.repeat)):
            a_registers = fragment_registers(plan, call.a + mi * am + ki * ak, plan.atom.la)
            b_registers = fragment_registers(plan, call.b + ki * bk + ni * bn, plan.atom.lb)
            d_first = call.d + mi * dm + ni * dn
            for warp in range(0, len(d), 32):
                left = np.zeros((plan.atom.m, plan.atom.k), dtype=int)
                right = np.zeros((plan.atom.k, plan.atom.n), dtype=int)
                for i, register in enumerate(a_registers):
                    left[a_place(lane >> 2, lane % 4, i)] = a[warp : warp + 32, register]
                for i, register in enumerate(b_registers):
                    right[b_place(lane >> 2, lane % 4, i)] = b[warp : warp + 32, register]
                product = left @ right
                for i in range(plan.atom.lc.local_size):
                    d[warp : warp + 32, d_first + i] += product[d_place(lane >> 2, lane % 4, i)]


def check_plan(operand, acc, la, lb, lc):
    plan = atoms.plan_dot(operand, acc, la, lb, lc)
    a, b = random_operands(*lc.shape, la.shape[1])
    d = np.zeros((lc.spatial_size, lc.local_size), dtype=int)
    multiply(plan, registers_of(a, la), registers_of(b, lb), d)
    assert np.array_equal(d, registers_of(a @ b, lc))
    return plan


@some
@given(st.data())
def test_planned_dot_multiplies(data):
    make = data.draw(st.sampled_from(atoms.ATOMIC_MMA_CONFIGS))
    atom = make(data.draw(st.integers(1, 4)))
    warps = data.draw(st.tuples(st.sampled_from([1, 2]), st.sampled_from([1, 2, 3])))
    repeat = data.draw(st.tuples(*[st.integers(1, 3)] * 3))
    try:
        config = atoms.mma_dot_config(atom, warps, repeat)
    except LayoutOperationError:  # too many registers
        reject()
    plan = check_plan(atom.operand_type, atom.acc_type, config.la, config.lb, config.lc)
    # several small instructions may be one large one
    assert plan.atom.m * plan.atom.n * plan.atom.k >= atom.m * atom.n * atom.k
    steps = sum(math.prod(call.repeat) for call in plan.calls)
    assert steps * plan.atom.m * plan.atom.n * plan.atom.k * math.prod(warps) == config.m * config.n * config.k


def test_resolved_dot_is_one_call():
    config = atoms.resolve_dot_config(float16, float32, m=128, n=128, k=32, num_warps=4)
    (call,) = atoms.plan_dot(float16, float32, config.la, config.lb, config.lc).calls
    assert (call.d, call.a, call.b, call.repeat) == (0, 0, 0, (4, 8, 2))
    assert call.strides == (32, 4, 16, 8, 32, 4)


def test_dot_of_registers_in_another_order_is_planned_too():
    atom = atoms.m16n8k16_f16_f32()
    orders = [[0, 1], [1, 0]]
    for of_a, of_b, of_c in itertools.product(orders, repeat=3):
        la = local(2, 3, ranks=of_a) * atom.la
        lb = local(3, 2, ranks=of_b) * atom.lb
        lc = local(2, 2, ranks=of_c) * atom.lc
        (call,) = check_plan(float16, float32, la, lb, lc).calls
        assert call.repeat == (2, 2, 3)


def test_registers_at_uneven_strides_take_several_calls():
    atom = atoms.m16n8k16_f16_f32()
    rows = ops.register_layout([4, 2], [2, 2, 2], [], [1, 2, 0])  # the low bit of the row above the column
    calls = check_plan(float16, float32, local(4, 1) * atom.la, local(1, 2) * atom.lb, rows * atom.lc).calls
    assert [call.repeat for call in calls] == [(2, 2, 1)] * 2


def test_operands_held_by_more_threads_than_need_them_are_fine():
    config = atoms.mma_dot_config(atoms.m16n8k16_f16_f32(1), (2, 2), (1, 2, 2))
    atom = atoms.m16n8k16_f16_f32(1)
    everywhere = replicated(*ops.divide(config.lb, atom.lb).shape, num_workers=4)
    with pytest.raises(LayoutOperationError, match="a warp lacks a part of the second operand"):
        # which register it is would depend on the warp
        atoms.plan_dot(float16, float32, config.la, everywhere * atom.lb, config.lc)
    alone = atoms.mma_dot_config(atom, (4, 1), (1, 2, 2))
    check_plan(float16, float32, alone.la, replicated(2, 2, num_workers=4) * atom.lb, alone.lc)


def test_result_of_a_dot_is_the_first_operand_of_the_next():
    scores = atoms.resolve_dot_config(float16, float32, m=64, n=32, k=64, warp_m=4, warp_n=1)
    values = atoms.resolve_dot_config(float16, float32, m=64, n=64, k=32, warp_m=4, warp_n=1)
    assert scores.lc == values.la


@some
@given(st.data())
def test_operands_for_a_known_accumulator_are_those_of_the_config(data):
    operand, acc = data.draw(st.sampled_from(TYPES))
    atom = atoms.AtomicMmaConfig.from_dtypes(operand, acc)
    repeat = data.draw(st.tuples(*[st.integers(1, 3)] * 3))
    config = atoms.mma_dot_config(atom, data.draw(st.sampled_from([(1, 1), (2, 2), (4, 1), (1, 3)])), repeat)
    assert atoms.operand_layouts(operand, acc, config.lc, config.k) == (config.la, config.lb)


def test_block_is_atom_times_warps_times_repeat():
    atom = atoms.m16n8k16_f16_f32(2)
    config = atoms.mma_dot_config(atom, (2, 4), (3, 1, 2))
    assert (config.m, config.n, config.k, config.num_warps) == (96, 32, 64, 8)
    assert config.la.shape == (96, 64)
    assert config.lb.shape == (64, 32)
    assert config.lc.shape == (96, 32)
    assert {layout.spatial_size for layout in (config.la, config.lb, config.lc)} == {256}
    assert config.lc == spatial(2, 4).local(3, 1) * atom.lc
    assert config.la == ops.reduce(spatial(2, 4), [1], keepdims=True).local(3, 2) * atom.la
    assert config.lb == ops.reduce(spatial(2, 4), [0], keepdims=True).local(2, 1) * atom.lb
    assert config.lb_T == ops.permute(config.lb, [1, 0])
    assert (config.operand_dtype, config.accumulator_dtype) == (float16, float32)
    assert config.registers == (96 * 64 // 2 // 2 + 64 * 32 // 4 // 2 + 96 * 32 // 8) // 32


def test_registers_count_words_of_both_operands_and_the_accumulator():
    config = atoms.mma_dot_config(atoms.m16n8k16_f16_f32(), (1, 1), (1, 1, 1))
    assert config.registers == 4 + 2 + 4
    config = atoms.mma_dot_config(atoms.m16n8k16_f16_f16(), (1, 1), (1, 1, 1))
    assert config.registers == 4 + 2 + 2


def test_dot_of_too_many_registers_is_refused_but_can_be_resolved():
    with pytest.raises(LayoutOperationError, match="takes 292 registers of each thread, and fewer than 224 can be"):
        atoms.mma_dot_config(atoms.m16n8k16_f16_f32(), (1, 1), (4, 13, 2))
    config = atoms.resolve_dot_config(float16, float32, m=128, n=128, k=32, num_warps=1)
    assert config.registers >= atoms.MAX_REGISTERS


@some
@given(st.data())
def test_resolved_dot_takes_the_fewest_registers(data):
    operand, acc = data.draw(st.sampled_from(TYPES))
    m, n, k = (data.draw(st.sampled_from([16, 32, 64, 96, 128])) for _ in range(3))
    warps = data.draw(st.sampled_from([1, 2, 4, 6, 8]))
    every = [(along_m, warps // along_m) for along_m in range(1, warps + 1) if warps % along_m == 0]
    found = []
    for atom, (along_m, along_n) in itertools.product(atoms.atoms_for(operand, acc), every):
        if m % (along_m * atom.m) == 0 and n % (along_n * atom.n) == 0 and k % atom.k == 0:
            rows, columns = m // along_m, n // along_n
            bits = (rows + columns) * k * operand.nbits + rows * columns * acc.nbits
            found.append(bits // 32 // 32)
    if not found:
        with pytest.raises(LayoutOperationError, match=f"no dot of {m} x {n} x {k}"):
            atoms.resolve_dot_config(operand, acc, m=m, n=n, k=k, num_warps=warps)
        return
    config = atoms.resolve_dot_config(operand, acc, m=m, n=n, k=k, num_warps=warps)
    assert (config.m, config.n, config.k, config.num_warps) == (m, n, k, warps)
    assert config.registers == min(found)


def test_warps_can_be_given_along_m_and_n():
    config = atoms.resolve_dot_config(float16, float32, m=64, n=64, k=16, warp_m=1, warp_n=4)
    assert config.lc == spatial(1, 4).local(4, 2) * atoms.m16n8k16_f16_f32().lc
    same = atoms.resolve_dot_config(float16, float32, m=64, n=64, k=16, warp_m=1, warp_n=4, num_warps=4)
    assert same == config


def test_small_integer_tiles_take_a_smaller_instruction():
    config = atoms.resolve_dot_config(int8, int32, m=8, n=8, k=16, num_warps=1)
    assert config.lc == atoms.m8n8k16_i8_i32().lc
    config = atoms.resolve_dot_config(int8, int32, m=16, n=8, k=48, num_warps=1)
    assert config.la == local(1, 3) * atoms.m16n8k16_i8_i32().la


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: atoms.atoms_for(float32, float32), "no mma multiplies float32 and accumulates in float32: there are"),
        (lambda: atoms.m16n8k16_f16_f32(5), "vec_k is 5: it must be from 1 to 4"),
        (
            lambda: atoms.resolve_dot_config(float16, float32, m=16, n=8, k=16, num_warps=2),
            "no dot of 16 x 8 x 16 in float16: 2 warps, along m and n, must divide it into multiples of 16 x 8 x 16",
        ),
        (
            lambda: atoms.resolve_dot_config(float16, float32, m=16, n=8, k=16),
            "a dot needs num_warps, or both warp_m and warp_n",
        ),
        (
            lambda: atoms.resolve_dot_config(float16, float32, m=16, n=8, k=16, num_warps=2, warp_m=2, warp_n=2),
            "num_warps is 2, but warp_m * warp_n is 4",
        ),
        (
            lambda: atoms.resolve_dot_config(float16, float32, m=16, n=8, k=16, num_warps=0),
            "num_warps [0] must have positive extents",
        ),
        (
            lambda: atoms.resolve_dot_config(float16, float32, m=16, n=8, k=16, warp_m=1, warp_n=-1),
            "warp_n [-1] must have positive extents",
        ),
        (
            lambda: atoms.operand_layouts(float16, float32, spatial(32, 8), 16),
            "no dot of float16 over k = 16 accumulates in spatial(32, 8): k must be a multiple of 16, and the layout a "
            "multiple of local(2, 1).spatial(8, 4).local(1, 2)",
        ),
        (
            lambda: atoms.operand_layouts(float16, float32, atoms.m16n8k16_f16_f32().lc, 24),
            "no dot of float16 over k = 24 accumulates",
        ),
        (
            lambda: atoms.plan_dot(float16, float32, spatial(16, 16), spatial(16, 8), spatial(16, 8)),
            "no mma instruction has operands and an accumulator that they are made of",
        ),
        (
            lambda: atoms.plan_dot(float16, float32, spatial(16, 16), spatial(8, 8), spatial(16, 8)),
            "no dot multiplies shapes [16, 16] and [8, 8] to [16, 8]",
        ),
    ],
)
def test_dots_that_do_not_exist_are_refused(make, message):
    with pytest.raises(LayoutOperationError, match=re.escape(message)):
        make()


def test_operand_that_other_warps_hold_is_refused():
    config = atoms.mma_dot_config(atoms.m16n8k16_f16_f32(), (2, 1), (1, 1, 1))
    wrong = column_local(1, 1) * ops.compose(replicated(num_workers=2) * local(2, 1), atoms.m16n8k16_f16_f32().la)
    check_plan(float16, float32, config.la, config.lb, config.lc)
    with pytest.raises(LayoutOperationError, match="a warp lacks a part of the first operand that its result needs"):
        atoms.plan_dot(float16, float32, wrong, config.lb, config.lc)


# ---------------------------------------------------------------- matrices


def load_matrices(access, memory, shared, start):
    """What threads get from ldmatrix: lane 4 * r + c of a warp the c-th 4 bytes of the r-th row of each matrix."""
    threads, width = access.rows.spatial_size, access.row_size
    index = mapping.index_terms(access.rows)
    result = np.full((threads, access.instructions * access.registers), -1)
    lane = np.arange(32)
    per_word = 4 // access.atom.nbytes
    for warp, instruction in itertools.product(range(0, threads, 32), range(access.instructions)):
        where = [mapping.evaluate(terms, thread=warp + lane, local=instruction * width) for terms in index]
        address = np.zeros(32, dtype=int) + shared(*where, start=start)
        for matrix in range(access.count):
            rows = np.array([memory[address[8 * matrix + row] + np.arange(width)] for row in range(8)])
            for part in range(per_word):
                if access.atom.trans:
                    got = rows[lane % 4 * 2 + part, lane // 4]
                else:
                    got = rows[lane // 4, lane % 4 * per_word + part]
                register = instruction * access.registers + matrix * access.atom.layout.local_size + part
                result[warp : warp + 32, register] = got
    return result


def check_matrices(reg, shared, nbytes, start=0):
    access = atoms.matrix_access(reg, shared, nbytes)
    assert access is not None
    memory = np.random.default_rng().integers(0, 1 << 30, start + shared.count_size() * 2)
    tile = memory[np.zeros(shared.shape, dtype=int) + shared(*np.indices(shared.shape), start=start)]
    assert np.array_equal(load_matrices(access, memory, shared, start), registers_of(tile, reg))
    return access


def dots(operand, acc, m=64, n=64, k=64, warps=4):
    return atoms.resolve_dot_config(operand, acc, m=m, n=n, k=k, num_warps=warps)


@pytest.mark.parametrize(("operand", "acc"), [(float16, float32), (tfloat32, float32), (int8, int32)])
@pytest.mark.parametrize("swizzled", [False, True])
def test_first_operand_is_loaded_from_rows_along_k(operand, acc, swizzled):
    config = dots(operand, acc)
    shared = shared_row_major_swizzle([64, 64], operand.nbytes) if swizzled else shared_row_major(64, 64)
    access = check_matrices(config.la, shared, operand.nbytes)
    assert access.suffix == "x4"
    extra = conflicts(shared, access.rows, operand.nbytes, access.row_size)
    assert (extra == 0) == swizzled


@pytest.mark.parametrize(("operand", "acc"), [(float16, float32), (tfloat32, float32), (int8, int32)])
def test_second_operand_is_loaded_from_rows_along_k(operand, acc):
    config = dots(operand, acc)
    shared = shared_row_major_swizzle([64, 64], operand.nbytes).transpose()
    access = check_matrices(config.lb, shared, operand.nbytes)
    assert access.suffix == "x4"
    assert conflicts(shared, access.rows, operand.nbytes, access.row_size) == 0


def test_second_operand_of_two_bytes_is_loaded_from_rows_along_n_too():
    config = dots(float16, float32)
    shared = shared_row_major_swizzle([64, 64], 2)
    access = check_matrices(config.lb, shared, 2)
    assert access.suffix == "x4_trans"
    assert conflicts(shared, access.rows, 2, 8) == 0
    assert atoms.matrix_access(dots(int8, int32).lb, shared_row_major_swizzle([64, 64], 1), 1) is None
    assert atoms.matrix_access(dots(tfloat32, float32).lb, shared_row_major(64, 64), 4) is None


def test_first_operand_of_two_bytes_is_loaded_from_rows_along_m_too():
    access = check_matrices(dots(float16, float32).la, shared_row_major_swizzle([64, 64], 2).transpose(), 2)
    assert access.suffix == "x4_trans"


@pytest.mark.parametrize(("columns", "suffix"), [(8, "x1"), (16, "x2"), (24, "x1"), (32, "x4"), (48, "x2"), (64, "x4")])
def test_as_many_matrices_as_divide_a_warps_are_loaded_together(columns, suffix):
    reg = local(1, columns // 8).spatial(8, 4).local(1, 2)
    access = check_matrices(reg, shared_row_major_swizzle([8, columns], 2), 2)
    assert access.suffix == suffix
    assert access.instructions * access.count == columns // 8


def test_result_of_a_dot_is_stored_in_matrices():
    config = dots(float16, float16, n=32)
    shared = shared_row_major_swizzle([64, 32], 2)
    access = check_matrices(config.lc, shared, 2)
    assert conflicts(shared, access.rows, 2, 8) == 0


@pytest.mark.parametrize("stage", [0, 1, 2])
def test_stage_of_a_stack_is_loaded_where_it_lies(stage):
    stack = shared_row_major_swizzle([3, 64, 64], 2)
    check_matrices(dots(float16, float32).la, stack.slice([1, 2]), 2, start=stack.linear(stage, 0, 0))


def test_half_of_a_swizzled_tile_is_loaded_where_it_lies():
    whole = shared_row_major_swizzle([64, 64], 2)
    part = shared_layout([64, 32], [64, 32], [64, 1], whole.optional_swizzle)
    check_matrices(dots(float16, float32, k=32).la, part, 2, start=whole.linear(0, 32))


def test_matrices_lie_in_any_two_dimensions():
    reg = ops.unsqueeze(dots(float16, float32).la, [0])
    assert check_matrices(reg, shared_row_major_swizzle([1, 64, 64], 2), 2).suffix == "x4"
    reg = ops.unsqueeze(dots(float16, float32).la, [1])
    assert check_matrices(reg, shared_row_major(64, 1, 64), 2).suffix == "x4"


@pytest.mark.parametrize(
    ("reg", "shared", "nbytes"),
    [
        (spatial(8, 4).local(1, 2), shared_layout([8, 8], [8, 8], [12, 1]), 2),
        (spatial(8, 4).local(1, 2), shared_row_major(8, 8), 4),
        (spatial(8, 4).local(1, 2), shared_row_major(8, 8), 8),
        (spatial(4, 8).local(2, 1), shared_row_major(8, 8), 2),
        (spatial(8, 4).local(1, 4), shared_column_major(8, 16), 1),
        (spatial(32).local(2), shared_row_major(64), 2),
    ],
)
def test_tiles_that_are_not_made_of_rows_of_16_bytes_have_no_matrices(reg, shared, nbytes):
    assert atoms.matrix_access(reg, shared, nbytes) is None


# ---------------------------------------------------------------- plain tiles


@some
@given(st.data())
def test_default_layout_holds_vectors_and_busies_every_thread(data):
    shape = tuple(data.draw(st.lists(st.sampled_from([1, 2, 4, 8, 16, 24, 32, 64]), min_size=1, max_size=3)))
    dtype = data.draw(st.sampled_from([int8, float16, float32]))
    warps = data.draw(st.sampled_from([1, 2, 4]))
    layout = atoms.default_register_layout(warps, dtype, shape)
    assert layout.shape == shape
    assert layout.spatial_size == warps * 32
    per_thread = max(math.prod(shape) // (warps * 32), 1)
    vector = math.gcd(per_thread, 16 // dtype.nbytes, shape[-1])
    assert layout.local_size % vector == 0
    assert vector == 1 or ops.vector_extent(layout, len(shape) - 1) % vector == 0
    if math.prod(shape) >= warps * 32 and all(extent & (extent - 1) == 0 for extent in shape):
        assert layout.num_replicas == 1


def test_default_layouts_that_a_person_can_check():
    assert atoms.default_register_layout(4, float16, [128, 32]) == local(4, 1).spatial(32, 4).local(1, 8)
    assert atoms.default_register_layout(1, float32, [32]) == spatial(32)
    assert atoms.default_register_layout(1, float16, [128], vector_size=2) == local(2).spatial(32).local(2)
    with pytest.raises(LayoutOperationError, match=re.escape("vectors of 3 elements do not divide the last extent")):
        atoms.default_register_layout(1, float16, [128], vector_size=3)
    with pytest.raises(LayoutOperationError, match="a tile of no dimension has no vectors"):
        atoms.default_register_layout(1, float16, [])
