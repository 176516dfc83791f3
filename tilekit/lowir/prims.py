# SPDX-License-Identifier: Apache-2.0
"""The functions that generated code may call: one row for each, with the types it takes.

The bodies are in `tk/*.h`; only the types are known here. A row whose C++ function is a template on the result names
the result in its spelling, `tk::cast<half>`. Every row compiles for every target from `target` on, and on the CPU
unless it says otherwise.
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

    @property
    def pure(self) -> bool:
        """Whether it gives a value and does nothing else, whichever threads call it."""
        return self.header in ("core.h", "integer.h", "cast.h", "math.h")

    def accepts(self, args: Sequence[Type]) -> bool:
        """Whether it can be called with arguments of these types; a raw address takes any pointer."""
        return len(args) == len(self.params) and all(map(_fits, args, self.params))

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.params))})"


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


def _rows() -> Iterator[Primitive]:
    for t in SCALARS:
        yield Primitive(f"tk::shared_ptr<{cxx.type_name(t)}>", (dtypes.int32,), PointerType(t), "core.h")
    for t in INTEGERS:
        yield Primitive("tk::floordiv", (t, t), t, "integer.h")
        yield Primitive("tk::floormod", (t, t), t, "integer.h")
        for name in ("add", "sub", "mul"):
            yield Primitive(f"tk::{name}", (t, t), t, "integer.h")
    for to in SCALARS:
        for source in SCALARS:
            yield Primitive(f"tk::cast<{cxx.type_name(to)}>", (source,), to, "cast.h")
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
    return all(row.pure for name in calls for row in _TABLE[name])


def lookup(name: str, args: Sequence[Type]) -> Primitive:
    """The row of a function for arguments of these types."""
    rows = _TABLE.get(name, ())
    for row in rows:
        if row.accepts(args):
            return row
    given = ", ".join(map(str, args))
    raise CodegenError(
        "TK404", f"there is no {name} of ({given})", notes=[f"there is {row}" for row in rows[:8]], data={"name": name}
    )


def call(name: str, *args: Expr | int) -> Call:
    """A call of a function of the table; Python integers become int32."""
    values = tuple(scalar.as_expr(arg, dtypes.int32) for arg in args)
    row = lookup(name, [scalar.dtype_of(value) for value in values])
    return Call(_function_var(row), values)


def shared_ptr(dtype: DataType, byte_offset: Expr | int) -> Call:
    """A pointer into the block's shared memory, some bytes from its start."""
    return call(f"tk::shared_ptr<{cxx.type_name(dtype)}>", byte_offset)


def load_global(nbytes: int, registers: Expr, pointer: Expr, mask: Expr | None = None) -> Call:
    """Read some bytes of global memory, aligned to their number, into registers; zeros where the mask is false."""
    if mask is None:
        return call(f"tk::load_global_{nbytes}", registers, pointer)
    return call(f"tk::load_global_or_zero_{nbytes}", registers, pointer, mask)


def store_global(nbytes: int, pointer: Expr, registers: Expr) -> Call:
    """Write some bytes of registers to global memory, aligned to their number."""
    return call(f"tk::store_global_{nbytes}", pointer, registers)


def shfl_xor(value: Expr, mask: Expr | int) -> Call:
    """The value of the lane whose number differs in the bits of `mask`."""
    return call("tk::shfl_xor", value, mask)


def syncthreads() -> Call:
    """Wait for every thread of the block."""
    return call("__syncthreads")


@cache
def _function_var(row: Primitive) -> Var:
    return Var(None, types.function(row.params, row.result), row.name)
