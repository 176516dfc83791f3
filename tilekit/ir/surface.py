# SPDX-License-Identifier: Apache-2.0
"""What the methods of the kernel language share: emitting an instruction, and making tiles of scalars."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from tilekit import dtypes
from tilekit.diag import errors, suggest
from tilekit.ir.inst import Instruction
from tilekit.ir.tensor import GlobalTensor, RegisterTensor, SharedTensor, Tensor
from tilekit.lowir import functions, scalar
from tilekit.lowir.scalar import Expr

Number: TypeAlias = int | float | bool | Expr | dtypes.Literal


class Surface:
    """The part of `self` that a mixin of methods may use; the front end supplies both."""

    def _emit(self, inst: Instruction) -> Any:
        """Append the instruction to the kernel and return its output."""
        raise errors.LanguageError("TK101", "tile instructions only work inside a kernel's __call__ or its methods")

    def _fill(self, value: Number, like: RegisterTensor) -> RegisterTensor:
        """A tile without dimensions that holds `value` in the dtype of `like`."""
        raise errors.LanguageError("TK101", "tile instructions only work inside a kernel's __call__ or its methods")

    def _expand(self, expr: Expr) -> Expr:
        """The expression with every variable that has one value replaced by it, as a launch can compute it."""
        raise errors.LanguageError("TK101", "tile instructions only work inside a kernel's __call__ or its methods")

    def _tile(self, op: str, x: object) -> None:
        if not isinstance(x, RegisterTensor):
            raise errors.LanguageError(
                "TK215", f"{op} needs a register tensor, got {describe(x)}", help=_instead(op, x)
            )

    def _shared(self, op: str, x: object) -> None:
        if not isinstance(x, SharedTensor):
            raise errors.LanguageError(
                "TK215",
                f"{op} needs a shared tensor, got {describe(x)}",
                help="make one with self.shared_tensor(dtype=…, shape=…)",
            )

    def _global(self, op: str, x: object) -> None:
        if not isinstance(x, GlobalTensor):
            raise errors.LanguageError(
                "TK215", f"{op} needs a global tensor, got {describe(x)}", help="make one with self.global_view"
            )

    def _tiles(
        self, op: str, x: RegisterTensor | Number, y: RegisterTensor | Number
    ) -> tuple[RegisterTensor, RegisterTensor]:
        """Both operands as tiles: a scalar takes the dtype of the other side."""
        if isinstance(x, RegisterTensor):
            return x, y if isinstance(y, RegisterTensor) else self._fill(y, x)
        self._tile(op, x if isinstance(x, Tensor) else y)
        assert isinstance(y, RegisterTensor)
        return self._fill(x, y), y


def typed(value: Number, dtype: dtypes.DataType) -> Expr:
    """A number or an expression as an expression of this dtype."""
    if not isinstance(value, (Expr, dtypes.Literal)) and not hasattr(value, "__float__"):
        raise errors.LanguageError("TK215", f"{describe(value)} is no number")
    if isinstance(value, (Expr, dtypes.Literal)):
        expr = scalar.as_expr(value)
        given = scalar.dtype_of(expr)
        if isinstance(given, dtypes.DataType) and given.is_float() and not dtype.is_float():
            raise errors.LanguageError(
                "TK212", f"the scalar is {given} and the tile is {dtype}", help=f"cast the tile, or write {dtype}(…)"
            )
        return scalar.cast(expr, dtype)
    if isinstance(value, float) and not dtype.is_float():
        raise errors.LanguageError(
            "TK212", f"{value} is a float and the tile is {dtype}", help="cast the tile, or write an integer"
        )
    return scalar.constant(dtype, value)


def require(what: str, name: str, table: Iterable[str]) -> None:
    """Refuse a name that is not in a table."""
    if name in table:
        return
    near = suggest(name, table)
    raise errors.LanguageError(
        "TK102",
        f"there is no {what} called {name!r}",
        help=f"did you mean {near!r}?" if near else f"there are {', '.join(table)}",
    )


# operations on tiles that Python has for numbers, beside those of its math module
_OF_NUMBERS = {"abs": "abs(a)", "maximum": "max(a, b)", "minimum": "min(a, b)", "+": "a + b"}


def _instead(op: str, value: object) -> str | None:
    """What to write where a tile is wanted and something else is given."""
    if isinstance(value, GlobalTensor):
        return "load it first: self.load_global(…)"
    if isinstance(value, SharedTensor):
        return "load it first: self.load_shared(…)"
    if not isinstance(value, (bool, int, float, Expr, dtypes.Literal)):
        return None
    dtype = scalar.dtype_of(scalar.as_expr(value))
    if isinstance(dtype, dtypes.PointerType):
        return "load it first: self.load_global(self.global_view(…), …)"
    of_numbers = f"math.{op}(a)" if op in functions.MATH else _OF_NUMBERS.get(op)
    tile = f"self.register_tensor(dtype={dtype}, shape=[…], init=a)"
    return f"write {of_numbers} for a number, {tile} for a tile of it" if of_numbers else f"make a tile of it: {tile}"


def describe(value: object) -> str:
    """A value in the words of an error message."""
    if isinstance(value, RegisterTensor):
        return f"{_a(value.dtype.name)}{list(value.shape)} tile"
    if isinstance(value, SharedTensor):
        return f"a shared {value.dtype}{list(value.shape)} tensor"
    if isinstance(value, GlobalTensor):
        return f"a global {value.dtype} tensor"
    if isinstance(value, Expr):
        constant = scalar.constant_value(value)
        dtype = scalar.dtype_of(value)
        return f"a run-time {dtype}" if constant is None else f"{dtype}({constant})"
    if value is None:
        return "None"
    if type(value).__repr__ is object.__repr__:
        return f"an object of {type(value).__name__}"
    text = repr(value)
    return f"{text if len(text) <= 60 else 'a value'} of type {type(value).__name__}"


def _a(noun: str) -> str:
    return f"an {noun}" if noun.startswith("i") else f"a {noun}"


def result_tile(dtype: dtypes.DataType, shape: tuple[int, ...], output: RegisterTensor | None) -> RegisterTensor:
    """The tile to write: the given one, if the result fits into it, or a new one."""
    if output is None:
        return RegisterTensor.create(dtype, shape)
    if output.dtype is not dtype or output.shape != shape:
        raise errors.LanguageError(
            "TK213", f"the result is {dtype}{list(shape)}, but out is {output.dtype}{list(output.shape)}"
        )
    return output


def index(what: str, value: object) -> Expr:
    """An integer or an integer expression as an index; a number is an int32."""
    if isinstance(value, bool) or not isinstance(value, (int, Expr)):
        raise errors.LanguageError("TK215", f"{what} needs integers or integer expressions, got {describe(value)}")
    expr = value if isinstance(value, Expr) else scalar.as_expr(value, dtypes.int32)
    if not scalar.is_integer(scalar.dtype_of(expr)):
        raise errors.LanguageError("TK215", f"{what} needs integers or integer expressions, got {describe(value)}")
    # positions may lie below zero, and no type holds both those and what only uint64 holds
    return scalar.cast(expr, dtypes.int64) if scalar.dtype_of(expr) is dtypes.uint64 else expr


def size(what: str, value: object) -> Expr:
    """An extent: an integer that is not negative, or an integer expression."""
    expr = index(what, value)
    known = scalar.constant_value(expr)
    if known is not None and known < 0:
        raise errors.LanguageError("TK104", f"{what} cannot be negative, got {known}")
    return expr


def check_offsets(op: str, rank: int, offsets: Sequence[Expr]) -> None:
    """Refuse offsets that are not one integer for each of the `rank` dimensions of a tensor."""
    if len(offsets) != rank:
        raise errors.LanguageError(
            "TK213", f"{op} needs one offset per dimension: the tensor has {rank}, got {len(offsets)} offsets"
        )
    for start in offsets:
        if not scalar.is_integer(kind := scalar.dtype_of(start)):
            raise errors.LanguageError("TK215", f"{op}: an offset must be an integer, got {kind}")


def check_dims(op: str, rank: int, dims: Sequence[int], tile_rank: int) -> None:
    """Refuse dims that are not one dimension of a rank-`rank` tensor for each of the `tile_rank` of a tile."""
    if len(dims) != tile_rank:
        raise errors.LanguageError(
            "TK213",
            f"{op}: a tile of {tile_rank} dimensions cannot run along {len(dims)} dimensions of the tensor",
            help="give dims=, the tensor dimension that each tile dimension runs along",
        )
    if len(set(dims)) != len(dims) or not all(0 <= d < rank for d in dims):
        raise errors.LanguageError(
            "TK213", f"{op}: dims={list(dims)} are not distinct dimensions of a rank-{rank} tensor"
        )


def axes(what: str, dims: int | Sequence[int], rank: int) -> list[int]:
    """One dimension or several of a tensor of `rank`, counted from the end if negative."""
    given: list[object] = [dims] if isinstance(dims, int) else list(dims)
    found: list[int] = []
    for dim in given:
        if isinstance(dim, bool) or not isinstance(dim, int):
            raise errors.LanguageError(
                "TK106" if isinstance(dim, Expr) else "TK215",
                f"{what} needs integers known at compile time, got {describe(dim)}",
            )
        found.append(dim + rank if dim < 0 else dim)
    return found


def last_dims(rank: int, tile_rank: int, dims: Sequence[int] | None) -> list[int]:
    """The dimensions of a tensor that a tile runs along: those given, counted from the end if negative, or the last."""
    if dims is not None:
        return axes("dims", dims, rank)
    if tile_rank > rank:
        raise errors.LanguageError("TK213", f"a tile of {tile_rank} dimensions does not fit in a tensor of {rank}")
    return list(range(rank - tile_rank, rank))


def same_dtype(op: str, x: RegisterTensor, y: RegisterTensor) -> None:
    if x.dtype is not y.dtype:
        raise errors.LanguageError(
            "TK212",
            f"{op} needs tiles of one dtype, got {x.dtype} and {y.dtype}",
            help=f"cast one of them, for example with .to({x.dtype})",
        )


def broadcast_shapes(op: str, *tiles: RegisterTensor) -> tuple[int, ...]:
    """The common shape by NumPy's rules."""
    rank = max(len(tile.shape) for tile in tiles)
    common = [1] * rank
    for tile in tiles:
        for dim, extent in enumerate(tile.shape, start=rank - len(tile.shape)):
            if extent == 1 or common[dim] == extent:
                continue
            if common[dim] != 1:
                shapes = " and ".join(str(list(t.shape)) for t in tiles)
                raise errors.LanguageError(
                    "TK213",
                    f"{op} cannot broadcast {shapes}: {common[dim]} is not {extent}",
                    help="each dimension must be equal or 1, counted from the last",
                )
            common[dim] = extent
    return tuple(common)
