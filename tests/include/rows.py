# SPDX-License-Identifier: Apache-2.0
"""For each function of `prims.py` the kernels that call it, with random operands.

A call's arrays come back changed; what two machines leave in them can be compared.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.include import sources
from tests.include.arrays import aligned, floats, integers, ulps
from tests.include.fragments import FRAGMENTS, magnitudes
from tests.include.sources import HEADER, kernel
from tilekit import dtypes
from tilekit.dtypes import DataType, VoidType
from tilekit.lowir import cxx, prims
from tilekit.lowir.prims import Primitive

COUNT = 1024
BLOCK = 128
WIDTH = 8  # of the groups that shuffles keep to


@dataclass(frozen=True)
class Call:
    """One launch that calls a function, or several that only make sense together."""

    rows: tuple[str, ...]
    source: str
    kernel: str
    args: tuple[Any, ...]
    options: dict[str, int] = field(default_factory=dict)
    magnitude: np.ndarray | None = None  # of an mma: what the last array's differences are to be seen against

    def run(self, machine: Any) -> list[np.ndarray]:
        """The arrays after a launch on a machine, which get copies."""
        args = [aligned(arg) if isinstance(arg, np.ndarray) else arg for arg in self.args]
        machine.run(self.source, self.kernel, args, **self.options)
        return [arg for arg in args if isinstance(arg, np.ndarray)]

    def difference(self, found: Sequence[np.ndarray], other: Sequence[np.ndarray]) -> float:
        """The largest between two machines' arrays: of floats in units in the last place; of the sums of an mma in the
        unit in the last place of the sum of all magnitudes; of integers by how much they differ."""
        if self.magnitude is not None and found[-1].dtype.kind == "f":
            unit = np.finfo(found[-1].dtype).eps * self.magnitude
            return float((np.abs(found[-1].astype(np.float64) - other[-1].astype(np.float64)) / unit).max())
        return max(_difference(x, y) for x, y in zip(found, other, strict=True))


def _difference(x: np.ndarray, y: np.ndarray) -> float:
    if x.dtype.kind in "biu":
        return float(np.abs(x.astype(object) - y.astype(object)).max(initial=0))
    if (np.isnan(x) != np.isnan(y)).any():
        return float("inf")
    return float(ulps(x, y).max(initial=0))


def rows_of(call: Call) -> list[Primitive]:
    """The rows that a call is of."""
    return [row for row in prims.PRIMITIVES if str(row) in call.rows]


def calls(rng: np.random.Generator) -> Iterator[Call]:
    """Calls of every row, those of one source after each other."""
    groups: defaultdict[str, list[Primitive]] = defaultdict(list)
    for row in prims.PRIMITIVES:
        groups[_group(row)].append(row)
    for group, rows in groups.items():
        yield from _MAKERS.get(group, _values)(rows, rng)


def _group(row: Primitive) -> str:
    """Rows that one source calls: by header, and of functions of values also by what they take first."""
    if row.name.startswith("tk::shared_ptr"):
        return "shared_ptr"
    if isinstance(row.result, VoidType):
        return row.name if row.name.startswith("tk::view") else row.header
    return f"{row.header} {row.params[0]}"


# ------------------------------------------------------------------------------------------------- functions of values


def _values(rows: Sequence[Primitive], rng: np.random.Generator) -> Iterator[Call]:
    text = HEADER + "\n".join(_value_kernel(f"call_{i}", row) for i, row in enumerate(rows))
    for i, row in enumerate(rows):
        operands = [_operand(t, row, k, rng) for k, t in enumerate(row.params)]
        assert isinstance(row.result, DataType)
        out = np.zeros(COUNT, dtypes.numpy_dtype(row.result))
        yield Call((str(row),), text, f"call_{i}", (*operands, out), {"grid": COUNT // BLOCK, "block": BLOCK})


def _value_kernel(name: str, row: Primitive) -> str:
    assert isinstance(row.result, DataType)
    params = ", ".join(f"{cxx.type_name(t)} *x{k}" for k, t in enumerate(row.params))
    arguments = ", ".join(f"x{k}[i]" for k in range(len(row.params)))
    return kernel(
        name,
        f"{params}, {cxx.type_name(row.result)} *out",
        ["int32_t i = blockIdx.x * blockDim.x + threadIdx.x;", f"out[i] = {row.name}({arguments});"],
    )


def _operand(dtype: Any, row: Primitive, index: int, rng: np.random.Generator) -> np.ndarray:
    if row.header == "warp.h" and index == 1:
        return rng.integers(0, 32, COUNT).astype(np.int32)
    if row.header == "warp.h" and index == 2:
        return np.full(COUNT, WIDTH, np.int32)
    if row.header == "sync.h":  # in a block none of the predicates holds, all do, or any
        kind = rng.permutation(COUNT // BLOCK)[:, None] % 3
        return np.where(kind == 2, rng.integers(0, 2, (len(kind), BLOCK)), kind).astype(np.int32).ravel()
    numpy = dtypes.numpy_dtype(dtype)
    if dtype.is_boolean():
        return rng.integers(0, 2, COUNT).astype(np.bool_)
    if dtype.is_integer():
        return integers(numpy, COUNT, rng)[:COUNT]
    values = floats(numpy, COUNT, rng)[:COUNT]
    return dtypes.quantize(values, dtype) if dtype is dtypes.tfloat32 else values


# ----------------------------------------------------------------------------------------------------------- memory


def _shared_pointers(rows: Sequence[Primitive], rng: np.random.Generator) -> Iterator[Call]:
    """Each thread leaves a value for the thread at the other end of the block."""
    names = [row.name.removeprefix("tk::shared_ptr<").removesuffix(">") for row in rows]
    text = HEADER + "\n".join(
        kernel(
            f"call_{i}",
            f"{name} *x",
            [
                "int32_t i = threadIdx.x;",
                f"*tk::shared_ptr<{name}>(i * sizeof({name})) = x[i];",
                "__syncthreads();",
                f"x[i] = *tk::shared_ptr<{name}>((127 - i) * sizeof({name}));",
            ],
        )
        for i, name in enumerate(names)
    )
    for i, row in enumerate(rows):
        assert isinstance(row.result, dtypes.PointerType) and isinstance(row.result.base, DataType)
        x = _operand(row.result.base, row, 0, rng)[:128]
        yield Call((str(row),), text, f"call_{i}", (x,), {"block": 128, "shared_bytes": 1024})


def _views(rows: Sequence[Primitive], rng: np.random.Generator) -> Iterator[Call]:
    body = ["uint32_t bits[2];", "tk::view<8>(bits, x + threadIdx.x);", "out[threadIdx.x] = bits[1];"]
    text = HEADER + kernel("call_0", "double *x, uint32_t *out", body)
    yield Call(_names(rows), text, "call_0", (floats(np.float64, 32, rng)[:32], np.zeros(32, np.uint32)))


def _global_vectors(rows: Sequence[Primitive], rng: np.random.Generator) -> Iterator[Call]:
    for size in sources.VECTOR_BYTES:
        x = rng.integers(0, 256, (BLOCK, size), np.uint8)
        for name, functions in {"copy": ("load_global_", "store_global_"), "masked": ("load_global_or_zero_",)}.items():
            used = _names(row for row in rows if row.name in [f"tk::{function}{size}" for function in functions])
            args = (np.int32(BLOCK), x, np.zeros_like(x))
            yield Call(used, sources.vectors(), f"{name}_{size}", args, {"block": BLOCK})


def _shared_vectors(rows: Sequence[Primitive], rng: np.random.Generator) -> Iterator[Call]:
    for size in sources.VECTOR_BYTES:
        used = _names(row for row in rows if row.name.endswith(f"_{size}"))
        x = rng.integers(0, 256, (32, size), np.uint8)
        args = (rng.permutation(32).astype(np.int32), x, np.zeros_like(x))
        yield Call(used, sources.shared_vectors(), f"shared_{size}", args, {"shared_bytes": 32 * size})


def _matrices(rows: Sequence[Primitive], rng: np.random.Generator) -> Iterator[Call]:
    for row in rows:
        name = row.name.removeprefix("tk::")
        count = sources.MATRIX_FORMS[name.partition("_")[2]]
        at = rng.permutation(sources.MATRIX_ELEMENTS // 8)[:32].astype(np.int32) * 8
        shared = rng.integers(0, 65536, sources.MATRIX_ELEMENTS).astype(np.uint16)
        registers = rng.integers(0, 2**32, (count, 32), np.uint32)
        load = name.startswith("ld")
        args = (at, shared, registers) if load else (at, registers, shared)
        text = sources.matrix_loads() if load else sources.matrix_stores()
        yield Call((str(row),), text, name, args, {"shared_bytes": shared.nbytes})


def _copies(rows: Sequence[Primitive], rng: np.random.Generator) -> Iterator[Call]:
    waits = _names(row for row in rows if not row.name.removesuffix("_evict_first")[-1].isdigit())
    for row in rows:
        if str(row) in waits:
            continue
        name = row.name.removeprefix("tk::")
        size = int(name.removesuffix("_evict_first").rpartition("_")[2])
        x = rng.integers(0, 256, (128, size), np.uint8)
        options = {"block": 64, "shared_bytes": 128 * size}
        yield Call((str(row), *waits), sources.copies(), name, (x, np.zeros_like(x)), options)


# ------------------------------------------------------------------------------------------------------ tensor cores


def _multiplications(rows: Sequence[Primitive], rng: np.random.Generator) -> Iterator[Call]:
    for row in rows:
        kind = row.name.removeprefix("tk::mma_").removeprefix("tile_")
        f = FRAGMENTS[kind]
        tiles = f.tiles() if "tile" in row.name else {"one": f.one()}
        for name, tile in tiles.items():
            if f.sums is np.int32:
                matrices = tile.random(f, lambda shape: rng.integers(-128, 128, shape))
            else:
                matrices = tile.random(f, rng.standard_normal)
            lanes = tile.spread(f, *matrices)
            magnitude = tile.spread(f, *matrices[:2], magnitudes(*matrices))[2]
            yield Call((str(row),), sources.multiplications(kind), name, tuple(lanes), magnitude=magnitude)


# ----------------------------------------------------------------------------------------------------------- waiting


def _barriers(rows: Sequence[Primitive], rng: np.random.Generator) -> Iterator[Call]:
    args = (np.zeros(128, np.int32),)
    yield Call(_names(rows), sources.barriers(), "barriers", args, {"block": 128, "shared_bytes": 512})


def _semaphores(rows: Sequence[Primitive], rng: np.random.Generator) -> Iterator[Call]:
    turn = rng.permutation(20).astype(np.int32)
    args = (turn, np.zeros(1, np.int32), rng.integers(0, 2**32, 64, np.uint32))
    yield Call(_names(rows), sources.semaphores(), "turns", args, {"grid": 20, "block": 64})


def _names(rows: Iterator[Primitive] | Sequence[Primitive]) -> tuple[str, ...]:
    return tuple(map(str, rows))


_MAKERS: dict[str, Callable[[Sequence[Primitive], np.random.Generator], Iterator[Call]]] = {
    "shared_ptr": _shared_pointers,
    "tk::view": _views,
    "memory.h": _global_vectors,
    "shared.h": _shared_vectors,
    "matrix.h": _matrices,
    "mma.h": _multiplications,
    "async.h": _copies,
    "sync.h": _barriers,
    "semaphore.h": _semaphores,
}
