# SPDX-License-Identifier: Apache-2.0
"""What the instructions of the tensor core and of ldmatrix hold where, and tiles made of them.

An atom is the part of a tile that the 32 threads of a warp handle with one instruction. A layout that is a product
`outer * atom` says in `outer` which warp handles which atoms, and in which order its registers hold them.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilekit import dtypes
from tilekit.dtypes import DataType
from tilekit.ir.layout import digits, mapping, ops, shapes
from tilekit.ir.layout.banks import WARP_SIZE
from tilekit.ir.layout.digits import Digit, Place, Replica
from tilekit.ir.layout.ops import column_local, column_spatial, local, spatial
from tilekit.ir.layout.register_layout import RegisterLayout, from_digits
from tilekit.ir.layout.shapes import LayoutOperationError
from tilekit.ir.layout.shared_layout import VECTOR_NBYTES, SharedLayout

MAX_REGISTERS = 224
"""Registers of a thread that the operands and the accumulator of a dot may take together."""


@dataclass(frozen=True)
class AtomicMmaConfig:
    """One mma instruction: `d[m, n] += a[m, k] * b[k, n]`, and the layouts of its operands and of its accumulator.

    `name` is the kind that the device functions `tk::mma_...` and `tk::mma_tile_...` are called by.

    With `vec_k` above 1 the layouts are those of as many instructions, of the extent `k * vec_k`, in which a thread
    holds `vec_k` times as many neighbors along k: what it loads at once is that much longer. Which k an instruction
    takes is the same for both operands, so the sum is the same.
    """

    name: str
    m: int
    n: int
    k: int
    vec_k: int
    la: RegisterLayout
    lb: RegisterLayout
    lc: RegisterLayout
    operand_type: DataType
    acc_type: DataType

    @property
    def packed(self) -> int:
        """How many neighbors along k an instruction takes from a thread in one 32-bit register."""
        return 32 // self.operand_type.nbits

    @staticmethod
    def from_dtypes(operand_type: DataType, acc_type: DataType) -> AtomicMmaConfig:
        """The instruction that does the most at once for these types."""
        return atoms_for(operand_type, acc_type)[0]


_ROWS_8 = spatial(8, 4).local(1, 2)
_ROWS_16 = local(2, 1).spatial(8, 4).local(1, 2)
MAX_VEC_K = 4


def m16n8k16_f16_f32(vec_k: int = 1) -> AtomicMmaConfig:
    return _blocks_of_16_bytes("m16n8k16_f16_f32", vec_k, dtypes.float16, dtypes.float32)


def m16n8k16_f16_f16(vec_k: int = 1) -> AtomicMmaConfig:
    return _blocks_of_16_bytes("m16n8k16_f16_f16", vec_k, dtypes.float16, dtypes.float16)


def m16n8k16_bf16_f32(vec_k: int = 1) -> AtomicMmaConfig:
    return _blocks_of_16_bytes("m16n8k16_bf16_f32", vec_k, dtypes.bfloat16, dtypes.float32)


def m16n8k8_tf32_f32(vec_k: int = 1) -> AtomicMmaConfig:
    return _blocks_of_16_bytes("m16n8k8_tf32_f32", vec_k, dtypes.tfloat32, dtypes.float32)


def m16n8k32_i8_i32(vec_k: int = 1) -> AtomicMmaConfig:
    return _blocks_of_16_bytes("m16n8k32_i8_i32", vec_k, dtypes.int8, dtypes.int32)


def m16n8k16_i8_i32(vec_k: int = 1) -> AtomicMmaConfig:
    return _one_block_along_k("m16n8k16_i8_i32", vec_k, local(2, 1).spatial(8, 4), _ROWS_16)


def m8n8k16_i8_i32(vec_k: int = 1) -> AtomicMmaConfig:
    return _one_block_along_k("m8n8k16_i8_i32", vec_k, spatial(8, 4), _ROWS_8)


def _blocks_of_16_bytes(name: str, vec_k: int, operand_type: DataType, acc_type: DataType) -> AtomicMmaConfig:
    """Operands of two blocks of 16 bytes along k, and two of 8 rows in `a`: the rows first, then along k."""
    packed = 32 // operand_type.nbits
    along_k = packed * _checked(vec_k)
    la = column_local(2, 2).spatial(8, 4).local(1, along_k)
    lb = local(2, 1).column_spatial(4, 8).local(along_k, 1)
    return AtomicMmaConfig(name, 16, 8, 8 * packed, vec_k, la, lb, _ROWS_16, operand_type, acc_type)


def _one_block_along_k(name: str, vec_k: int, rows: RegisterLayout, lc: RegisterLayout) -> AtomicMmaConfig:
    along_k = 4 * _checked(vec_k)
    la, lb = rows.local(1, along_k), column_spatial(4, 8).local(along_k, 1)
    return AtomicMmaConfig(name, lc.shape[0], 8, 16, vec_k, la, lb, lc, dtypes.int8, dtypes.int32)


def _checked(vec_k: int) -> int:
    if not 1 <= vec_k <= MAX_VEC_K:
        raise LayoutOperationError(f"vec_k is {vec_k}: it must be from 1 to {MAX_VEC_K}")
    return vec_k


ATOMIC_MMA_CONFIGS: tuple[Callable[..., AtomicMmaConfig], ...] = (
    m16n8k16_f16_f32,
    m16n8k16_f16_f16,
    m16n8k16_bf16_f32,
    m16n8k8_tf32_f32,
    m16n8k32_i8_i32,
    m16n8k16_i8_i32,
    m8n8k16_i8_i32,
)
"""Every mma instruction there is a device function for; of several for the same types the one that does the most."""


@functools.cache
def _atoms(vec_k: int) -> tuple[AtomicMmaConfig, ...]:
    return tuple(make(vec_k) for make in ATOMIC_MMA_CONFIGS)


def atoms_for(operand_type: DataType, acc_type: DataType, vec_k: int = 1) -> list[AtomicMmaConfig]:
    """The mma instructions for these types, the one that does the most at once first."""
    atoms = _atoms(vec_k)
    found = [atom for atom in atoms if (atom.operand_type, atom.acc_type) == (operand_type, acc_type)]
    if not found:
        known = sorted({f"{atom.operand_type} with {atom.acc_type}" for atom in atoms})
        raise LayoutOperationError(
            f"no mma multiplies {operand_type} and accumulates in {acc_type}: there are {', '.join(known)}"
        )
    return found


@dataclass(frozen=True)
class BlockMmaConfig:
    """The layouts of the operands and of the accumulator of a dot by all warps of a thread group."""

    operand_dtype: DataType
    accumulator_dtype: DataType
    m: int
    n: int
    k: int
    num_warps: int
    la: RegisterLayout
    lb: RegisterLayout
    lc: RegisterLayout

    @property
    def lb_T(self) -> RegisterLayout:
        """The layout of the second operand before it is transposed, of shape (n, k)."""
        return ops.permute(self.lb, [1, 0])

    @property
    def registers(self) -> int:
        """The 32-bit registers that a thread needs for both operands and the accumulator."""
        operands = (self.la.local_size + self.lb.local_size) * self.operand_dtype.nbits
        return (operands + self.lc.local_size * self.accumulator_dtype.nbits) // 32


def mma_dot_config(
    atomic_mma: AtomicMmaConfig, warp_spatial: tuple[int, int], warp_repeat: tuple[int, int, int]
) -> BlockMmaConfig:
    """The dot in which `warp_spatial` warps along m and n repeat the instruction along m, n and k."""
    config = _block(atomic_mma, warp_spatial, warp_repeat)
    if config.registers >= MAX_REGISTERS:
        raise LayoutOperationError(
            f"a dot of {config.m} x {config.n} x {config.k} by {config.num_warps} warps takes {config.registers} "
            f"registers of each thread, and fewer than {MAX_REGISTERS} can be: use more warps, or a smaller tile"
        )
    return config


def _block(atom: AtomicMmaConfig, warps: tuple[int, int], repeat: tuple[int, int, int]) -> BlockMmaConfig:
    shapes.extents("warp_spatial", warps)
    repeat_m, repeat_n, repeat_k = shapes.extents("warp_repeat", repeat)
    warps_m, warps_n = warps
    lc = spatial(*warps).local(repeat_m, repeat_n) * atom.lc
    la, lb = _operands(atom, spatial(*warps).local(repeat_m, repeat_n), repeat_k)
    return BlockMmaConfig(
        atom.operand_type,
        atom.acc_type,
        m=warps_m * repeat_m * atom.m,
        n=warps_n * repeat_n * atom.n,
        k=repeat_k * atom.vec_k * atom.k,
        num_warps=warps_m * warps_n,
        la=la,
        lb=lb,
        lc=lc,
    )


def _operands(atom: AtomicMmaConfig, outer: RegisterLayout, repeat_k: int) -> tuple[RegisterLayout, RegisterLayout]:
    """The layouts of the operands where the warps hold the accumulator in `outer * atom.lc`."""
    rows, columns = ops.reduce(outer, [1], keepdims=True), ops.reduce(outer, [0], keepdims=True)
    return rows * local(1, repeat_k) * atom.la, local(repeat_k, 1) * columns * atom.lb


def dot_configs(
    operand_dtype: DataType, acc_dtype: DataType, m: int, n: int, k: int, warps: Iterable[tuple[int, int]]
) -> list[BlockMmaConfig]:
    """The dots of m x n x k by one of `warps` along m and n, the one that takes the fewest registers first."""
    found: list[BlockMmaConfig] = []
    for atom, (warps_m, warps_n) in itertools.product(atoms_for(operand_dtype, acc_dtype), warps):
        if m % (atom.m * warps_m) == 0 and n % (atom.n * warps_n) == 0 and k % atom.k == 0:
            repeat = (m // atom.m // warps_m, n // atom.n // warps_n, k // atom.k)
            found.append(_block(atom, (warps_m, warps_n), repeat))
    return sorted(found, key=lambda config: config.registers)


@functools.lru_cache(maxsize=1024)
def resolve_dot_config(
    operand_dtype: DataType,
    acc_dtype: DataType,
    *,
    m: int,
    n: int,
    k: int,
    num_warps: int | None = None,
    warp_m: int | None = None,
    warp_n: int | None = None,
) -> BlockMmaConfig:
    """The dot of m x n x k with the fewest registers, by `num_warps`, or by `warp_m` along m and `warp_n` along n.

    Of several with as few, the one with the most warps along m.
    """
    shapes.extents("m, n, k", (m, n, k))
    warps = _warps(num_warps, warp_m, warp_n)
    found = dot_configs(operand_dtype, acc_dtype, m, n, k, warps)
    if found:
        return found[0]
    count = warps[0][0] * warps[0][1]
    atoms = " or ".join(f"{a.m} x {a.n} x {a.k}" for a in atoms_for(operand_dtype, acc_dtype))
    raise LayoutOperationError(
        f"no dot of {m} x {n} x {k} in {operand_dtype}: {count} warps, along m and n, "
        f"must divide it into multiples of {atoms}"
    )


def _warps(num_warps: int | None, warp_m: int | None, warp_n: int | None) -> list[tuple[int, int]]:
    given = {"num_warps": num_warps, "warp_m": warp_m, "warp_n": warp_n}
    for what, value in given.items():
        if value is not None:
            shapes.extents(what, [value])
    match num_warps, warp_m, warp_n:
        case None, int(), int():
            return [(warp_m, warp_n)]
        case int(), None, None:
            return [(num_warps // along_n, along_n) for along_n in range(1, num_warps + 1) if num_warps % along_n == 0]
        case int(), int(), int() if num_warps == warp_m * warp_n:
            return [(warp_m, warp_n)]
        case int(), int(), int():
            raise LayoutOperationError(f"num_warps is {num_warps}, but warp_m * warp_n is {warp_m * warp_n}")
        case _:
            raise LayoutOperationError("a dot needs num_warps, or both warp_m and warp_n")


def operand_layouts(
    operand_dtype: DataType, acc_dtype: DataType, lc: RegisterLayout, k: int
) -> tuple[RegisterLayout, RegisterLayout]:
    """The layouts of the operands of a dot over `k` whose accumulator lies in `lc`."""
    for atom in atoms_for(operand_dtype, acc_dtype):
        outer = _quotient(lc, atom.lc)
        if outer is not None and k % atom.k == 0:
            return _operands(atom, outer, k // atom.k)
    atoms = atoms_for(operand_dtype, acc_dtype)
    raise LayoutOperationError(
        f"no dot of {operand_dtype} over k = {k} accumulates in {lc}: "
        f"k must be a multiple of {' or '.join(str(a.k) for a in atoms)}, "
        f"and the layout a multiple of {' or '.join(str(a.lc) for a in atoms)}"
    )


@dataclass(frozen=True)
class DotCall:
    """A call of the tile function of a dot: first registers, repeats, strides between instructions, all in elements."""

    d: int
    a: int
    b: int
    repeat: tuple[int, int, int]
    """Along m, n and k."""
    strides: tuple[int, int, int, int, int, int]
    """Of d along m and n, of a along m and k, of b along k and n."""


@dataclass(frozen=True)
class DotPlan:
    """How each thread multiplies the registers that it has, `d += a * b`, with k ascending."""

    atom: AtomicMmaConfig
    calls: tuple[DotCall, ...]

    @property
    def register_stride(self) -> int:
        """The elements of an operand from one 32-bit register that an instruction takes to the next."""
        return self.atom.packed * self.atom.vec_k


@functools.lru_cache(maxsize=1024)
def plan_dot(
    operand_dtype: DataType, acc_dtype: DataType, la: RegisterLayout, lb: RegisterLayout, lc: RegisterLayout
) -> DotPlan:
    """The plan of a dot of operands in `la` and `lb` that accumulates in `lc`."""
    if len(la.shape) != 2 or len(lb.shape) != 2 or lc.shape != (la.shape[0], lb.shape[1]) or la.shape[1] != lb.shape[0]:
        raise LayoutOperationError(
            f"no dot multiplies shapes {list(la.shape)} and {list(lb.shape)} to {list(lc.shape)}"
        )
    why = "no mma instruction has operands and an accumulator that they are made of"
    for vec_k in range(1, MAX_VEC_K + 1):
        for atom in atoms_for(operand_dtype, acc_dtype, vec_k):
            outer = [_quotient(layout, part) for layout, part in ((la, atom.la), (lb, atom.lb), (lc, atom.lc))]
            if None in outer:
                continue
            plan = _planned(atom, *(layout for layout in outer if layout is not None))
            if isinstance(plan, DotPlan):
                return plan
            why = plan
    raise LayoutOperationError(f"no dot multiplies {la} and {lb} to {lc}: {why}")


def _planned(atom: AtomicMmaConfig, a: RegisterLayout, b: RegisterLayout, c: RegisterLayout) -> DotPlan | str:
    """The plan for operands and accumulator that hold atoms in these layouts, or why there is none."""
    # One register for each instruction of a warp: atoms along m, along n, and along k.
    instructions = ops.concat(c, local(a.shape[1]))
    a_atom = mapping.local_map(instructions, ops.unsqueeze(a, [1]))
    b_atom = mapping.local_map(instructions, ops.unsqueeze(ops.permute(b, [1, 0]), [0]))
    if a_atom is None or b_atom is None:
        return f"a warp lacks a part of the {'first' if a_atom is None else 'second'} operand that its result needs"
    repeat_k, vec_k = a.shape[1], atom.vec_k
    index = [
        instructions.get_global(local_index=register, spatial_index=0) for register in range(instructions.local_size)
    ]
    rows, columns = (sorted({place[dim] for place in index}) for dim in (0, 1))
    extents = (len(rows), len(columns), repeat_k * vec_k)
    d_at, a_at, b_at = (np.zeros(extents, dtype=np.int64) for _ in range(3))
    for register, (i, j, block) in enumerate(index):
        for step in range(vec_k):
            at = rows.index(i), columns.index(j), block * vec_k + step
            d_at[at] = register // repeat_k * atom.lc.local_size
            a_at[at] = mapping.evaluate(a_atom, local=register) * atom.la.local_size + step * atom.packed
            b_at[at] = mapping.evaluate(b_atom, local=register) * atom.lb.local_size + step * atom.packed
    return DotPlan(atom, tuple(_calls(d_at, a_at, b_at)))


@functools.lru_cache(maxsize=1024)
def _quotient(layout: RegisterLayout, atom: RegisterLayout) -> RegisterLayout | None:
    try:
        return ops.divide(layout, atom)
    except LayoutOperationError:
        return None


Table = np.ndarray[Any, np.dtype[np.int64]]


def _calls(*tables: Table) -> Iterator[DotCall]:
    """Calls that take the registers in `tables` for each step along m, n and k, as large as even strides allow."""
    blocks: list[list[slice]] = []
    for axis, extent in enumerate(tables[0].shape):
        sizes = [size for size in range(extent, 0, -1) if extent % size == 0]
        size = next(size for size in sizes if all(_is_even(table, axis, size) for table in tables))
        blocks.append([slice(start, start + size) for start in range(0, extent, size)])
    for m, n, k in itertools.product(*blocks):
        d, a, b = (table[m, n, k] for table in tables)
        yield DotCall(
            *(int(table[0, 0, 0]) for table in (d, a, b)),
            repeat=(m.stop - m.start, n.stop - n.start, k.stop - k.start),
            strides=(_step(d, 0), _step(d, 1), _step(a, 0), _step(a, 2), _step(b, 2), _step(b, 1)),
        )


def _is_even(table: Table, axis: int, size: int) -> bool:
    """Whether any `size` neighbors along `axis`, from a multiple on, lie at one stride, everywhere the same."""
    runs = np.moveaxis(table, axis, -1).reshape(-1, size)
    return np.unique(np.diff(runs, axis=-1)).size <= 1


def _step(table: Table, axis: int) -> int:
    """The distance of neighbors along `axis`, 0 where there are none."""
    steps = np.diff(table, axis=axis)
    return int(steps.flat[0]) if steps.size else 0


@dataclass(frozen=True)
class MatrixAtom:
    """What each thread holds of one 8 x 8 matrix of ldmatrix or stmatrix, whose rows are 16 bytes of shared memory.

    The rows are along the second dimension of `layout`. With `trans` a thread holds neighbors of a column, which only
    elements of 2 bytes can be.
    """

    nbytes: int
    trans: bool
    layout: RegisterLayout


MATRIX_ATOMS = (
    MatrixAtom(1, trans=False, layout=spatial(8, 4).local(1, 4)),
    MatrixAtom(2, trans=False, layout=spatial(8, 4).local(1, 2)),
    MatrixAtom(4, trans=False, layout=spatial(8, 4)),
    MatrixAtom(2, trans=True, layout=column_spatial(4, 8).local(2, 1)),
)


@dataclass(frozen=True)
class MatrixAccess:
    """How warps load or store a tile in matrices, `count` of them with one instruction.

    Instruction `i` handles the registers from `i * registers` on. In `rows` a thread has, in the first of its
    registers from `i * row_size` on, the element where the row begins whose address it gives to instruction `i`.
    """

    atom: MatrixAtom
    count: int
    rows: RegisterLayout

    @property
    def row_size(self) -> int:
        """The elements of a row."""
        return VECTOR_NBYTES // self.atom.nbytes

    @property
    def registers(self) -> int:
        """The elements that a thread gets from one instruction."""
        return self.count * self.atom.layout.local_size

    @property
    def instructions(self) -> int:
        """How many instructions each warp needs."""
        return self.rows.local_size // self.row_size

    @property
    def suffix(self) -> str:
        """`x4_trans`: what the device function's name ends with."""
        return f"x{self.count}" + ("_trans" if self.atom.trans else "")


@functools.lru_cache(maxsize=1024)
def matrix_access(reg: RegisterLayout, shared: SharedLayout, nbytes: int) -> MatrixAccess | None:
    """How to move a tile of elements of `nbytes` between registers in `reg` and shared memory in `shared` in matrices.

    None if the tile is not made of matrices, or if their rows are not 16 bytes side by side, the first at a multiple.
    """
    row_size = VECTOR_NBYTES // nbytes if nbytes in (1, 2, 4) else 0
    for atom, (across, along) in itertools.product(MATRIX_ATOMS, itertools.permutations(range(len(reg.shape)), 2)):
        if atom.nbytes != nbytes:
            continue
        outer = _quotient(reg, _placed(atom.layout, len(reg.shape), across, along))
        if outer is None:
            continue
        for count in (4, 2, 1):
            rows = _rows(reg, outer, across, along, row_size, count)
            if rows is not None and mapping.shared_vector_extent(rows, shared) % row_size == 0:
                return MatrixAccess(atom, count, rows)
    return None


def _placed(layout: RegisterLayout, rank: int, across: int, along: int) -> RegisterLayout:
    """A layout of two dimensions as one of `rank` dimensions, two of which they are."""
    if across > along:
        layout, across, along = ops.permute(layout, [1, 0]), along, across
    return ops.unsqueeze(layout, [dim for dim in range(rank) if dim not in (across, along)])


def _rows(
    reg: RegisterLayout, outer: RegisterLayout, across: int, along: int, row_size: int, count: int
) -> RegisterLayout | None:
    """Who gives the address of which row, where a warp's matrices are in `outer`, `count` to an instruction."""
    if outer.local_size % count != 0:
        return None
    inside = [extent // by for extent, by in zip(reg.shape, outer.shape, strict=True)]
    matrices = [digit.part(inside[digit.dim], digit.extent) for digit in outer.local_digits]
    warps = [p.part(inside[p.dim], p.extent) if isinstance(p, Digit) else p for p in outer.spatial_digits]
    together = digits.read(matrices, 1, count)
    apart = digits.read(matrices, count, outer.local_size // count)
    if together is None or apart is None:
        return None
    lanes: list[Place] = [
        Replica(WARP_SIZE // (8 * count)),
        *(digit.part(stride, extent) for digit, stride, extent in together),
        Digit(across, 1, 8),
    ]
    registers = [*(digit.part(stride, extent) for digit, stride, extent in apart), Digit(along, 1, row_size)]
    return from_digits(reg.shape, [*warps, *lanes], registers)


def default_register_layout(
    num_warps: int, dtype: DataType, shape: Sequence[int], vector_size: int | None = None
) -> RegisterLayout:
    """Vectors of up to 16 bytes along the last dimension, neighbors to neighboring threads.

    Parameters
    ----------
    vector_size
        The elements of a vector, a divisor of the last extent; given none, as many as fit in 16 bytes, divide the last
        extent, and leave no thread idle.
    """
    shape = shapes.extents("shape", shape)
    (threads,) = (warps * WARP_SIZE for warps in shapes.extents("num_warps", [num_warps]))
    if not shape:
        raise LayoutOperationError("a tile of no dimension has no vectors")
    if vector_size is None:
        vector_size = math.gcd(max(math.prod(shape) // threads, 1), max(128 // dtype.nbits, 1), shape[-1])
    if vector_size < 1 or shape[-1] % vector_size != 0:
        raise LayoutOperationError(f"vectors of {vector_size} elements do not divide the last extent of {list(shape)}")
    vectors = ops.auto_local_spatial(threads, [*shape[:-1], shape[-1] // vector_size])
    return vectors * local(*[1] * (len(shape) - 1), vector_size)
