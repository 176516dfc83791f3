# SPDX-License-Identifier: Apache-2.0
"""The functions that generated code may call: one row for each, with the types it takes.

The bodies are in `tk/*.h`; only the types are known here. A row whose C++ function is a template on the result names
the result in its spelling, `tk::cast<half>`; one that is a template on numbers is one row for all of them, and says how
many there are. Every row compiles for every target from `target` on, and on the CPU unless it says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from tilekit import dtypes
from tilekit.diag.errors import CodegenError
from tilekit.dtypes import DataType, PointerType, VoidType
from tilekit.lowir import cxx, scalar, types
from tilekit.lowir.functions import FUNCTIONS, Domain
from tilekit.lowir.nodes import Call, Expr, Var
from tilekit.lowir.types import Type


@dataclass(frozen=True)
class Primitive:
    """One function at one list of types."""

    name: str  # how it is spelled in C++
    params: tuple[Type, ...]
    result: Type | VoidType
    header: str
    target: str = "sm_80"  # the first that has it
    on_cpu: bool = True
    template_numbers: int = 0  # how many a call must name in `<...>`

    @property
    def pure(self) -> bool:
        """Whether it gives a value and does nothing else, whichever threads call it."""
        return self.header in ("core.h", "integer.h", "cast.h", "math.h")

    def accepts(self, args: Sequence[Type]) -> bool:
        """Whether it can be called with arguments of these types; a raw address takes any pointer."""
        return len(args) == len(self.params) and all(map(_fits, args, self.params))

    def __str__(self) -> str:
        numbers = f"<{self.template_numbers} numbers>" if self.template_numbers else ""
        return f"{self.name}{numbers}({', '.join(map(str, self.params))})"


def _fits(arg: Type, param: Type) -> bool:
    return arg == param or (param == dtypes.void_p and isinstance(arg, PointerType))


INTEGERS = (
    *(dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64),
    *(dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64),
)
FLOATS = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
NUMBERS = (*INTEGERS, *FLOATS)
SCALARS = (*NUMBERS, dtypes.boolean)

_DOMAINS = {Domain.FLOAT: FLOATS, Domain.INT: INTEGERS, Domain.NUMBER: NUMBERS}

# functions of the scalar language that are C's own operators
_OPERATORS = ("c_div", "c_mod")

ACCESS_BYTES = (1, 2, 4, 8, 16)
MATRIX_COUNTS = (1, 2, 4)
COPY_BYTES = (4, 8, 16)

MMA_KINDS = (
    *("m16n8k16_f16_f32", "m16n8k16_f16_f16", "m16n8k16_bf16_f32", "m16n8k8_tf32_f32"),
    *("m16n8k32_i8_i32", "m16n8k16_i8_i32", "m8n8k16_i8_i32"),
)
"""What `mma` and `mma_tile` multiply: shape, operand type, accumulator type."""


def _rows() -> Iterator[Primitive]:
    for t in (*SCALARS, dtypes.tfloat32):
        yield Primitive(f"tk::shared_ptr<{cxx.type_name(t)}>", (dtypes.int32,), PointerType(t), "core.h")
    yield Primitive("tk::view", (dtypes.void_p, dtypes.void_p), dtypes.void, "memory.h", template_numbers=1)
    for t in INTEGERS:
        yield Primitive("tk::floordiv", (t, t), t, "integer.h")
        yield Primitive("tk::floormod", (t, t), t, "integer.h")
        for name in ("add", "sub", "mul"):
            yield Primitive(f"tk::{name}", (t, t), t, "integer.h")
        yield Primitive("tk::negate", (t,), t, "integer.h")
    for to in SCALARS:
        for source in SCALARS:
            yield Primitive(f"tk::cast<{cxx.type_name(to)}>", (source,), to, "cast.h")
    for t in SCALARS:
        yield Primitive(f"tk::cast<{cxx.type_name(dtypes.tfloat32)}>", (t,), dtypes.tfloat32, "cast.h")
        yield Primitive(f"tk::cast<{cxx.type_name(t)}>", (dtypes.tfloat32,), t, "cast.h")
    for name, function in FUNCTIONS.items():
        if name not in _OPERATORS:
            for t in _DOMAINS[function.domain]:
                result = dtypes.boolean if function.tests else t
                yield Primitive(f"tk::{name}", (t,) * function.arity, result, "math.h")
    for t in FLOATS:
        yield Primitive("tk::fma", (t, t, t), t, "math.h")
    for nbytes in ACCESS_BYTES:
        yield Primitive(f"tk::load_global_{nbytes}", (dtypes.void_p, dtypes.void_p), dtypes.void, "memory.h")
        masked = (dtypes.void_p, dtypes.void_p, dtypes.boolean)
        yield Primitive(f"tk::load_global_or_zero_{nbytes}", masked, dtypes.void, "memory.h")
        yield Primitive(f"tk::store_global_{nbytes}", (dtypes.void_p, dtypes.void_p), dtypes.void, "memory.h")
    yield from _shared_memory_rows()
    for t in SCALARS:
        for name in ("idx", "up", "down", "xor"):
            yield Primitive(f"tk::shfl_{name}", (t, dtypes.int32), t, "warp.h")
            yield Primitive(f"tk::shfl_{name}", (t, dtypes.int32, dtypes.int32), t, "warp.h")
    yield Primitive("tk::ballot", (dtypes.boolean,), dtypes.uint32, "warp.h")
    yield Primitive("__syncthreads", (), dtypes.void, "sync.h")
    for name in ("or", "and", "count"):
        yield Primitive(f"__syncthreads_{name}", (dtypes.int32,), dtypes.int32, "sync.h")
    yield Primitive("__syncwarp", (), dtypes.void, "sync.h")
    yield Primitive("tk::bar_sync", (dtypes.int32, dtypes.int32), dtypes.void, "sync.h")


def _shared_memory_rows() -> Iterator[Primitive]:
    void, address = dtypes.void, dtypes.void_p
    for nbytes in ACCESS_BYTES:
        yield Primitive(f"tk::load_shared_{nbytes}", (address, address), void, "shared.h")
        yield Primitive(f"tk::store_shared_{nbytes}", (address, address), void, "shared.h")
    for trans in ("", "_trans"):
        for count in MATRIX_COUNTS:
            yield Primitive(f"tk::ldmatrix_x{count}{trans}", (address, address), void, "matrix.h")
            yield Primitive(f"tk::stmatrix_x{count}{trans}", (address, address), void, "matrix.h", target="sm_90")
    for kind in MMA_KINDS:
        yield Primitive(f"tk::mma_{kind}", (address,) * 4, void, "mma.h")
        yield Primitive(f"tk::mma_tile_{kind}", (address,) * 3, void, "mma.h", template_numbers=11)
    for hint in ("", "_evict_first"):
        for nbytes in COPY_BYTES:
            yield Primitive(f"tk::cp_async_{nbytes}{hint}", (address, address), void, "async.h")
            masked = (address, address, dtypes.boolean)
            yield Primitive(f"tk::cp_async_or_zero_{nbytes}{hint}", masked, void, "async.h")
    yield Primitive("tk::cp_async_commit_group", (), void, "async.h")
    yield Primitive("tk::cp_async_wait_group", (), void, "async.h", template_numbers=1)
    yield Primitive("tk::cp_async_wait_all", (), void, "async.h")
    for name in ("lock_semaphore", "release_semaphore"):
        yield Primitive(f"tk::{name}", (PointerType(dtypes.int32), dtypes.int32), void, "semaphore.h")


PRIMITIVES: tuple[Primitive, ...] = tuple(_rows())


def _by_name() -> dict[str, tuple[Primitive, ...]]:
    table: dict[str, tuple[Primitive, ...]] = {}
    for row in PRIMITIVES:
        table[row.name] = (*table.get(row.name, ()), row)
    return table


_TABLE = _by_name()


def is_pure(e: Expr) -> bool:
    """Whether evaluating an expression does nothing but give a value, whoever else evaluates it."""
    calls = (part.func_var.name or "" for part in scalar.walk(e) if isinstance(part, Call))
    return all(row.pure for name in calls for row in _rows_of(name))


def _rows_of(name: str) -> tuple[Primitive, ...]:
    """The rows of a function by its spelling in a call, which of a template on numbers has the numbers in it."""
    family, _, numbers = name.partition("<")
    count = numbers.count(",") + 1
    return _TABLE.get(name) or tuple(row for row in _TABLE.get(family, ()) if row.template_numbers == count)


def lookup(name: str, args: Sequence[Type]) -> Primitive:
    """The row of a function for arguments of these types."""
    rows = _rows_of(name)
    for row in rows:
        if row.accepts(args) and ("<" in name or not row.template_numbers):
            return row
    given = ", ".join(map(str, args))
    raise CodegenError(
        "TK404", f"there is no {name} of ({given})", notes=[f"there is {row}" for row in rows[:8]], data={"name": name}
    )


def call(name: str, *args: Expr | int) -> Call:
    """A call of a function of the table; Python integers become int32."""
    values = tuple(scalar.as_expr(arg, dtypes.int32) for arg in args)
    row = lookup(name, [scalar.dtype_of(value) for value in values])
    return Call(_function_var(row, name), values)


def shared_ptr(dtype: DataType, byte_offset: Expr | int) -> Call:
    """A pointer into the block's shared memory, some bytes from its start."""
    return call(f"tk::shared_ptr<{cxx.type_name(dtype)}>", byte_offset)


def view(nbytes: int, registers: Expr, others: Expr) -> Call:
    """Set registers to the bits of others, which may be of another type."""
    return call(f"tk::view<{nbytes}>", registers, others)


def load_global(nbytes: int, registers: Expr, pointer: Expr, mask: Expr | None = None) -> Call:
    """Read some bytes of global memory, aligned to their number, into registers; zeros where the mask is false."""
    if mask is None:
        return call(f"tk::load_global_{nbytes}", registers, pointer)
    return call(f"tk::load_global_or_zero_{nbytes}", registers, pointer, mask)


def store_global(nbytes: int, pointer: Expr, registers: Expr) -> Call:
    """Write some bytes of registers to global memory, aligned to their number."""
    return call(f"tk::store_global_{nbytes}", pointer, registers)


def load_shared(nbytes: int, registers: Expr, pointer: Expr) -> Call:
    """Read some bytes of shared memory, aligned to their number, into registers."""
    return call(f"tk::load_shared_{nbytes}", registers, pointer)


def store_shared(nbytes: int, pointer: Expr, registers: Expr) -> Call:
    """Write some bytes of registers to shared memory, aligned to their number."""
    return call(f"tk::store_shared_{nbytes}", pointer, registers)


def ldmatrix(count: int, registers: Expr, row: Expr, *, trans: bool = False) -> Call:
    """Read 1, 2 or 4 matrices of 8 rows of 16 bytes; lane 8 q + r brings the address of row r of matrix q."""
    return call(f"tk::ldmatrix_x{count}{'_trans' if trans else ''}", registers, row)


def stmatrix(count: int, row: Expr, registers: Expr, *, trans: bool = False) -> Call:
    """Write what `ldmatrix` reads (sm_90)."""
    return call(f"tk::stmatrix_x{count}{'_trans' if trans else ''}", row, registers)


def mma(kind: str, d: Expr, a: Expr, b: Expr, c: Expr) -> Call:
    """d = a * b + c, one instruction of a kind of `MMA_KINDS`; d and c may be the same registers."""
    return call(f"tk::mma_{kind}", d, a, b, c)


@dataclass(frozen=True)
class MmaTile:
    """MI x NI x KI instructions, and the elements from one fragment to the next in the registers of a lane.

    `ar` and `br` are the elements from one 32-bit register of a fragment to the next, by default without a gap.
    """

    mi: int
    ni: int
    ki: int
    dm: int
    dn: int
    am: int
    ak: int
    bk: int
    bn: int
    ar: int | None = None
    br: int | None = None


def mma_tile(kind: str, tile: MmaTile, d: Expr, a: Expr, b: Expr) -> Call:
    """d += a * b of a whole tile, k ascending: one call, however many instructions it is."""
    per_register = _OPERANDS_PER_REGISTER[kind.split("_")[1]]
    t = tile
    ar = per_register if t.ar is None else t.ar
    br = per_register if t.br is None else t.br
    numbers = (t.mi, t.ni, t.ki, t.dm, t.dn, t.am, t.ak, t.bk, t.bn, ar, br)
    return call(f"tk::mma_tile_{kind}<{', '.join(map(str, numbers))}>", d, a, b)


_OPERANDS_PER_REGISTER = {"f16": 2, "bf16": 2, "tf32": 1, "i8": 4}


def cp_async(nbytes: int, shared: Expr, source: Expr, mask: Expr | None = None, *, evict_first: bool = False) -> Call:
    """Begin to copy 4, 8 or 16 bytes of global memory to shared memory; zeros where the mask is false."""
    hint = "_evict_first" if evict_first else ""
    if mask is None:
        return call(f"tk::cp_async_{nbytes}{hint}", shared, source)
    return call(f"tk::cp_async_or_zero_{nbytes}{hint}", shared, source, mask)


def cp_async_commit_group() -> Call:
    """Close the group of the copies begun since the last one."""
    return call("tk::cp_async_commit_group")


def cp_async_wait_group(under_way: int) -> Call:
    """Wait until at most so many of this thread's latest groups are under way."""
    return call(f"tk::cp_async_wait_group<{under_way}>")


def cp_async_wait_all() -> Call:
    """Wait for every copy of this thread, committed or not."""
    return call("tk::cp_async_wait_all")


def lock_semaphore(semaphore: Expr, value: Expr | int) -> Call:
    """Wait, as a block, until a semaphore in global memory has a value."""
    return call("tk::lock_semaphore", semaphore, value)


def release_semaphore(semaphore: Expr, value: Expr | int) -> Call:
    """Give, as a block, a semaphore in global memory a value, after all that the block did before."""
    return call("tk::release_semaphore", semaphore, value)


def shfl_xor(value: Expr, mask: Expr | int) -> Call:
    """The value of the lane whose number differs in the bits of `mask`."""
    return call("tk::shfl_xor", value, mask)


def syncthreads() -> Call:
    """Wait for every thread of the block."""
    return call("__syncthreads")


@cache
def _function_var(row: Primitive, name: str) -> Var:
    return Var(None, types.function(row.params, row.result), name)
