# SPDX-License-Identifier: Apache-2.0
"""Random kernels as Python source, with arguments for them: what a person could write, and what nobody would.

Every element that a kernel stores is decided to the last bit, so that machines can be compared: floats are only summed
where they are small whole numbers, and functions that libraries round differently come last, marked as `rough`. What
has no meaning (division by zero, shifts by more than the width) is avoided, and every block writes elements of its own.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from tests.lang.cells import cell
from tilekit import dtypes

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
NAMES = (*INTEGERS, *FLOATS, "boolean")

EXTENTS = (1, 2, 3, 4, 5, 7, 8, 8, 12, 16, 16, 24, 32, 33, 40, 64, 96, 100, 128, 256)
MAX_ELEMENTS = 4096
MAX_ELEMENTS_PER_THREAD = 64


@dataclass(frozen=True)
class Tile:
    """A name in the kernel that holds a tile."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    # the bound of small whole numbers; None where any value may stand
    bound: int | None = None
    # whether the sign of a zero is known: that of a sum depends on the order
    signs_zeros: bool = True

    @property
    def is_float(self) -> bool:
        return self.dtype in FLOATS


@dataclass(frozen=True)
class Scalar:
    """An expression of the kernel that is a number: as it is written, and its type."""

    text: str
    dtype: str


@dataclass(frozen=True)
class Param:
    """A parameter of `__call__` and its argument."""

    name: str
    type: str
    argument: Any
    # of an output: how far two machines may lie apart, relative and absolute; None if not at all
    tolerance: tuple[float, float] | None = None


@dataclass(frozen=True)
class RandomKernel:
    """The text of a kernel, and what makes fresh arguments for it."""

    text: str
    params: tuple[Param, ...]

    def handle(self) -> Any:
        names = {name: getattr(dtypes, name) for name in NAMES}
        return cell(self.text, **names)["Kernel"]()

    def arguments(self) -> list[Any]:
        """Copies of the arguments; tensors that overlap still do."""
        copies: dict[int, torch.Tensor] = {}
        return [_copied(param.argument, copies) for param in self.params]


def _copied(argument: Any, copies: dict[int, torch.Tensor]) -> Any:
    if not isinstance(argument, torch.Tensor):
        return argument
    storage = argument.untyped_storage()
    if storage.data_ptr() not in copies:
        copies[storage.data_ptr()] = torch.frombuffer(bytearray(storage.tolist()), dtype=torch.uint8)
    return (
        copies[storage.data_ptr()]
        .view(argument.dtype)
        .as_strided(argument.shape, argument.stride(), argument.storage_offset())
    )


def random_kernel(seed: int, *, fused: bool = False) -> RandomKernel:
    """The kernel of a seed; if products may be `fused` with sums, as on a GPU, none is rounded."""
    return _Writer(random.Random(seed), fused).kernel()


# ------------------------------------------------------------------------------------------------------- the values


def torch_dtype(name: str) -> torch.dtype:
    return getattr(torch, "bool" if name == "boolean" else name)


def tensor_of(values: Sequence[Any], dtype: str) -> torch.Tensor:
    """A tensor with memory of its own that starts where a vector may."""
    return torch.tensor(values, dtype=torch_dtype(dtype))


def any_values(dice: random.Random, dtype: str, count: int) -> list[Any]:
    """Values of every size, the special ones often."""
    ours = getattr(dtypes, dtype)
    if ours.is_boolean():
        return [dice.random() < 0.5 for _ in range(count)]
    if ours.is_integer():
        special = [ours.min_value, ours.max_value, 0, 1, ours.max_value // 2, max(ours.min_value, -1)]
        return [
            dice.choice(special) if dice.random() < 0.2 else dice.randint(ours.min_value, ours.max_value)
            for _ in range(count)
        ]
    special = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -0.5, ours.max_value]
    special += [ours.min_value, ours.smallest_normal, ours.smallest_subnormal]
    special += [127.0, 128.0, 2.0**31, -(2.0**63), 2.0**64]
    return [
        dice.choice(special) if dice.random() < 0.3 else dice.gauss(0, 1) * 10 ** dice.uniform(-4, 6)
        for _ in range(count)
    ]


def small_values(dice: random.Random, count: int, bound: int) -> list[int]:
    return [dice.randint(0 if bound == 1 else -bound, bound) for _ in range(count)]


def poison(dice: random.Random, dtype: str, count: int) -> torch.Tensor:
    """What an output holds before the kernel: whoever leaves an element alone must leave this."""
    return tensor_of(any_values(dice, dtype, count), dtype)


# ------------------------------------------------------------------------------------------------------- the kernels


@dataclass
class _Scope:
    """What the next statement may use."""

    tiles: list[Tile] = field(default_factory=list)
    # integers that stay small, in any type
    integers: list[Scalar] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)

    def inner(self) -> _Scope:
        return _Scope(list(self.tiles), list(self.integers), list(self.conditions))


class _Writer:
    """Writes one kernel."""

    def __init__(self, dice: random.Random, fused: bool) -> None:
        self.dice = dice
        self.fused = fused
        self.params: list[Param] = []
        # inputs, by their number, whose memory an output has too
        self.overlapped: set[int] = set()
        self.lines: list[str] = []
        self.indent = 2
        self.numbers = itertools.count()
        self.scope = _Scope()
        self.warps = dice.choice((1, 1, 2, 3, 4, 4, 5, 8))
        self.grid = [dice.choice((1, 1, 2, 3)) for _ in range(dice.choice((1, 1, 2, 3)))]
        self.base = self.tile_shape()

    # ------------------------------------------------------------------------------------------------ small choices

    def maybe(self, share: float = 0.5) -> bool:
        return self.dice.random() < share

    def fresh(self, prefix: str) -> str:
        return f"{prefix}{next(self.numbers)}"

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def tile_shape(self) -> tuple[int, ...]:
        limit = min(MAX_ELEMENTS, MAX_ELEMENTS_PER_THREAD * 32 * self.warps)
        while True:
            shape = tuple(self.dice.choice(EXTENTS) for _ in range(self.dice.choice((1, 2, 2, 3))))
            if math.prod(shape) <= limit:
                return shape

    def related_shape(self) -> tuple[int, ...]:
        """A shape that the base shape can be broadcast with."""
        shape = self.base[self.dice.choice((0, 0, 0, len(self.base) - 1)) :]
        return tuple(1 if self.maybe(0.15) else extent for extent in shape)

    # --------------------------------------------------------------------------------------------------- parameters

    def param(self, prefix: str, type_: str, argument: Any, tolerance: tuple[float, float] | None = None) -> str:
        name = self.fresh(prefix)
        self.params.append(Param(name, type_, argument, tolerance))
        return name

    def number(self, value: int) -> str:
        """A whole number, as a literal, a parameter, or a sum of both."""
        if self.maybe():
            return str(value)
        dtype = self.dice.choice(("int32", "int32", "int64"))
        shift = self.dice.choice((0, 0, 1, -3))
        name = self.param("n", dtype, value - shift)
        return name if shift == 0 else f"{name} + {shift}" if shift > 0 else f"{name} - {-shift}"

    def offset(self) -> str:
        """Any position, negative ones too."""
        choices: list[Callable[[], str]] = [
            lambda: "0",
            lambda: str(self.dice.choice((-5, -1, 1, 2, 7, 16))),
            lambda: f"self.blockIdx.x * {self.dice.choice((1, 4, 16, 30))} - {self.dice.choice((0, 0, 3, 16))}",
            lambda: self.number(self.dice.randint(-9, 9)),
        ]
        if self.scope.integers:
            choices.append(lambda: f"{self.dice.choice(self.scope.integers).text} * {self.dice.choice((1, 2, 8))}")
        return self.dice.choice(choices)()

    def integer(self) -> str:
        """A small integer that is known when the kernel runs."""
        known = [integer.text for integer in self.scope.integers]
        return self.dice.choice([*known, "self.blockIdx.x", str(self.dice.randint(-4, 9))])

    def condition(self) -> str:
        """A run-time truth value."""
        compare = self.dice.choice(("<", "<=", "==", "!=", ">", ">="))
        simple = f"{self.dice.choice(self.scope.integers).text} {compare} {self.integer()}"
        if self.maybe(0.3):
            return f"{simple} {self.dice.choice(('and', 'or'))} {self.dice.choice(self.scope.conditions)}"
        return f"not ({simple})" if self.maybe(0.2) else simple

    # -------------------------------------------------------------------------------------------------------- tiles

    def add(self, dtype: str, shape: Sequence[int], text: str, **facts: Any) -> Tile:
        tile = Tile(self.fresh("t"), dtype, tuple(shape), **facts)
        self.line(f"{tile.name} = {text}")
        self.scope.tiles.append(tile)
        return tile

    def pick(self, suits: Callable[[Tile], bool] = lambda tile: True) -> Tile | None:
        found = [tile for tile in self.scope.tiles if suits(tile)]
        return self.dice.choice(found) if found else None

    def pick_beside(self, tile: Tile, suits: Callable[[Tile], bool] = lambda tile: True) -> Tile | None:
        """A tile of the same dtype that broadcasts with this one."""
        return self.pick(lambda other: other.dtype == tile.dtype and _common(tile, other) is not None and suits(other))

    def literal(self, dtype: str) -> str:
        """A Python number for a tile of this dtype."""
        if dtype == "boolean":
            return self.dice.choice(("True", "False"))
        if dtype in FLOATS:
            return self.dice.choice(("0.1", "-2.0", "3", "0.0", "-0.0", "1e-3", "float('inf')", "float('nan')"))
        return str(self.dice.choice((0, 1, 2, 7, 100) if dtype.startswith("u") else (0, 1, -1, 3, -100)))

    def load(self) -> None:
        dtype, shape = self.dice.choice(NAMES), self.related_shape()
        is_small = dtype != "boolean" and self.maybe()
        view, rank = self.view(dtype, shape, is_small)
        tensor, dims = view
        text = f"self.load_global({tensor}, offsets=[{', '.join(self.offset() for _ in range(rank))}], "
        text += f"shape={list(shape)}{dims})"
        self.add(dtype, shape, text, bound=8 if is_small else None)

    def view(self, dtype: str, shape: tuple[int, ...], is_small: bool) -> tuple[tuple[str, str], int]:
        """A view of a new input, whose box of `shape` may stick out of it; the text of `dims`; the view's rank."""
        rank = len(shape) + self.dice.choice((0, 0, 0, 1))
        dims = self.dice.sample(range(rank), len(shape)) if self.maybe(0.4) else list(range(rank - len(shape), rank))
        extents = [self.dice.choice((1, 2, 5)) for _ in range(rank)]
        for extent, dim in zip(shape, dims, strict=True):
            extents[dim] = max(extent + self.dice.choice((0, 0, 0, 3, -1, 16)), 1)
        strides: list[int] | None = None
        lowest, highest = 0, math.prod(extents) - 1
        if self.maybe(0.4):
            strides = self.strides(extents)
            reach = [(extent - 1) * stride for extent, stride in zip(extents, strides, strict=True)]
            lowest, highest = sum(min(r, 0) for r in reach), sum(max(r, 0) for r in reach)
        count = highest - lowest + 1
        values = small_values(self.dice, count, 8) if is_small else any_values(self.dice, dtype, count)
        if is_small and dtype.startswith("u"):
            values = [abs(value) for value in values]
        pointer = self.param("in_", f"~{dtype}", self.placed(values, dtype))
        moved = pointer if lowest == 0 else f"{pointer} + {self.number(-lowest)}"
        name = self.fresh("g")
        text = f"{name} = self.global_view({moved}, dtype={dtype}, shape=[{', '.join(map(self.number, extents))}]"
        text += "" if strides is None else f", strides=[{', '.join(map(self.number, strides))}]"
        self.line(f"{text})")
        return (name, "" if dims == list(range(rank - len(shape), rank)) and self.maybe() else f", dims={dims}"), rank

    def strides(self, extents: Sequence[int]) -> list[int]:
        """Strides in any order, with gaps, some of them negative or zero."""
        strides = [0] * len(extents)
        stride = 1
        for dim in self.dice.sample(range(len(extents)), len(extents)) if self.maybe() else range(len(extents))[::-1]:
            if self.maybe(0.1):
                continue
            strides[dim] = -stride if self.maybe(0.15) else stride
            stride *= extents[dim] + self.dice.choice((0, 0, 1, 16 - extents[dim] % 16))
            if stride > 4 * MAX_ELEMENTS:
                break
        return strides

    def placed(self, values: Sequence[Any], dtype: str) -> torch.Tensor:
        """A tensor of these values, sometimes at an address that suits no vector."""
        shift = self.dice.choice((0, 0, 0, 1, 3))
        return tensor_of([*([0] * shift), *values], dtype)[shift:]

    def filled(self) -> None:
        dtype, shape = self.dice.choice(NAMES), self.related_shape()
        if self.maybe(0.3):
            init = self.literal(dtype)
        else:
            axes = ["i", "j", "k"][: len(shape)]
            init = f"lambda {', '.join(axes)}: {self.position_value(dtype, axes)}"
        self.add(dtype, shape, f"self.register_tensor(dtype={dtype}, shape={list(shape)}, init={init})")

    def position_value(self, dtype: str, axes: Sequence[str]) -> str:
        def leaf() -> str:
            return self.dice.choice((*axes, *axes, f"({self.integer()})", f"({self.integer()})"))

        def whole() -> str:
            narrow = self.dice.choice(INTEGERS)
            small = f"{narrow}(int64({leaf()}))"  # a literal below zero is no unsigned number, an expression wraps
            return self.dice.choice(
                (
                    f"({leaf()} * {self.dice.randint(-3, 9)} + {leaf()})",
                    f"({leaf()} - {leaf()}) // {self.dice.choice((2, 3, -4, 8))}",
                    f"({leaf()} - {self.dice.randint(0, 50)}) % {self.dice.choice((2, 5, 8, -3))}",
                    f"max({leaf()}, {leaf()})",
                    f"({small} * {narrow}({self.dice.randint(0, 120)}) + {narrow}(77))",
                    f"({small} - {narrow}(3) >> {narrow}({self.dice.randint(0, 7)}))",
                    f"({leaf()} if {leaf()} < {leaf()} else {leaf()} + 1)",
                )
            )

        if dtype == "boolean":
            return f"float32({whole()}) {self.dice.choice(('<', '==', '>='))} {leaf()}"
        if dtype in FLOATS:
            return f"float32({whole()}) * {self.dice.choice(('0.5', '-3') if self.fused else ('0.5', '0.1', '-3'))}"
        return f"{dtype}(int64({whole()}))"

    def unary(self) -> None:
        x = self.pick()
        if x is None:
            return
        if x.dtype == "boolean":
            self.add("boolean", x.shape, f"not {x.name}")
            return
        names = ["-", "abs", *(["square"] if self.multiplies(x, x) else [])]
        names += ["round", "sqrt"] if x.is_float and x.signs_zeros else ["round"] if x.is_float else []
        name = self.dice.choice(names)
        bound = None if x.bound is None or name == "sqrt" else x.bound**2 if name == "square" else x.bound
        text = f"-{x.name}" if name == "-" else f"self.{name}({x.name})"
        if name == "-" and x.dtype.startswith("u"):
            bound = None
        self.add(x.dtype, x.shape, text, bound=bound, signs_zeros=x.signs_zeros)

    def binary(self) -> None:
        x = self.pick(lambda tile: tile.dtype != "boolean")
        if x is None:
            return
        y = self.pick_beside(x) if self.maybe(0.8) else None
        right = self.scalar_for(x) if y is None else y.name
        shape = x.shape if y is None else _common(x, y)
        assert shape is not None
        signs = x.signs_zeros and (y is None or y.signs_zeros)
        operators = ["+", "-", "max", "min", *(["*"] if self.multiplies(x, y) else [])]
        if not x.is_float:
            operators += ["//", "%", "<<", ">>", "&", "|", "^"]
        elif signs:
            operators.append("/")
        operator = self.dice.choice(operators)
        bound = None
        if x.bound is not None and y is not None and y.bound is not None and not x.dtype.startswith("u"):
            bound = {"+": x.bound + y.bound, "-": x.bound + y.bound, "*": x.bound * y.bound}.get(operator)
        left = x.name
        if operator in ("//", "%"):
            right = f"({right} | 1)"
            if y is None:
                right = str(self.dice.choice((1, 3, 7, 16)))
        elif operator in ("<<", ">>"):
            nbits = getattr(dtypes, x.dtype).nbits
            right = f"({right} & {nbits - 1})" if y is not None else str(self.dice.randint(0, nbits - 1))
        elif y is None and self.maybe():
            left, right = right, left
        if operator in ("max", "min"):
            name = "maximum" if operator == "max" else "minimum"
            self.add(x.dtype, shape, f"self.{name}({left}, {right})", signs_zeros=signs)
            return
        self.add(x.dtype, shape, f"{left} {operator} {right}", bound=bound, signs_zeros=signs)

    def multiplies(self, x: Tile, y: Tile | None) -> bool:
        """Whether every machine agrees about the product."""
        if not self.fused or not x.is_float:
            return True
        known = x.bound is not None and y is not None and y.bound is not None
        return known and x.bound * y.bound <= 2 ** getattr(dtypes, x.dtype).mantissa_nbits

    def operator(self, x: Tile) -> str:
        """An operator that a tile is changed with, whatever stands on its other side."""
        return self.dice.choice("+-" if self.fused and x.is_float else "+-*")

    def scalar_for(self, tile: Tile) -> str:
        """A number beside a tile: a literal, or a run-time scalar that its dtype takes."""
        if self.maybe() or not self.scope.integers:
            return self.literal(tile.dtype)
        return f"{tile.dtype}({self.dice.choice(self.scope.integers).text})"

    def comparison(self) -> None:
        x = self.pick()
        if x is None:
            return
        y = self.pick_beside(x) if self.maybe(0.8) else None
        operators = ["==", "!="] if x.dtype == "boolean" else ["<", "<=", "==", "!=", ">", ">="]
        if x.dtype == "boolean":
            operators += ["&", "|", "^"] if y is not None else []
        right = self.scalar_for(x) if y is None else y.name
        shape = x.shape if y is None else _common(x, y)
        assert shape is not None
        self.add("boolean", shape, f"{x.name} {self.dice.choice(operators)} {right}")

    def choice(self) -> None:
        condition = self.pick(lambda tile: tile.dtype == "boolean")
        x = None if condition is None else self.pick(lambda tile: _common(tile, condition) is not None)
        if condition is None or x is None:
            return
        shape = _common(x, condition)
        assert shape is not None
        y = self.pick(lambda tile: tile.dtype == x.dtype and _common(replace(x, shape=shape), tile) is not None)
        other = y.name if y is not None and self.maybe(0.8) else self.scalar_for(x)
        if y is not None and other == y.name:
            shape = _common(replace(x, shape=shape), y)
        first, second = (x.name, other) if self.maybe(0.8) else (other, x.name)
        signs = x.signs_zeros and (y is None or y.signs_zeros)
        self.add(x.dtype, shape or (), f"self.where({condition.name}, {first}, {second})", signs_zeros=signs)

    def cast(self) -> None:
        x = self.pick()
        if x is None:
            return
        dtype = self.dice.choice(NAMES)
        keeps = x.bound is not None and x.bound <= 100 and dtype != "boolean" and not dtype.startswith("u")
        text = f"{x.name}.to({dtype})" if self.maybe() else f"self.cast({x.name}, {dtype})"
        if dtype == x.dtype:
            return
        self.add(dtype, x.shape, text, bound=x.bound if keeps else None, signs_zeros=x.signs_zeros)

    def reduction(self) -> None:
        x = self.pick(lambda tile: len(tile.shape) > 0)
        if x is None:
            return
        dims = sorted(self.dice.sample(range(len(x.shape)), self.dice.randint(1, len(x.shape))))
        keepdim = self.maybe()
        count = math.prod(x.shape[dim] for dim in dims)
        operators = ["any", "all"] if x.dtype == "boolean" else ["max", "min"]
        is_exact = x.bound is not None and x.bound * count < 2**24
        if is_exact or (not x.is_float and x.dtype != "boolean"):
            operators += ["sum", "sum"]
        operator = self.dice.choice(operators)
        shape = tuple(1 if d in dims else extent for d, extent in enumerate(x.shape) if keepdim or d not in dims)
        if len(dims) == len(x.shape) and self.maybe():
            along = ""
        else:
            shown = [dim - len(x.shape) if self.maybe(0.2) else dim for dim in dims]
            along = f", dim={shown[0] if len(shown) == 1 and self.maybe() else shown}"
        text = f"self.{operator}({x.name}{along}{', keepdim=True' if keepdim else ''})"
        bound = x.bound * count if x.bound is not None and operator == "sum" else x.bound
        signs = x.signs_zeros and operator != "sum"
        self.add(x.dtype, shape, text, bound=bound, signs_zeros=signs or not x.is_float)

    def in_place(self) -> None:
        x = self.pick(lambda tile: tile.dtype != "boolean" and len(tile.shape) > 0)
        y = None if x is None else self.pick_beside(x, lambda tile: _common(x, tile) == x.shape)
        if x is None or y is None:
            return
        self.line(f"{x.name} {self.operator(x)}= {y.name}")
        self.forget(x, y)

    def into(self) -> None:
        """Write a tile that is there already, by `out=` or `assign`; it may be an operand too."""
        out = self.pick(lambda tile: tile.dtype != "boolean" and len(tile.shape) > 0)
        x = None if out is None else self.pick_beside(out, lambda tile: _common(out, tile) == out.shape)
        if out is None or x is None:
            return
        y = self.pick_beside(out, lambda tile: _common(out, tile) == out.shape) or x
        condition = self.pick(lambda tile: tile.dtype == "boolean" and _common(out, tile) == out.shape)
        full = f"{x.name} + self.register_tensor(dtype={out.dtype}, shape={list(out.shape)}, init=0)"
        forms = [f"self.assign({out.name}, {x.name if x.shape == out.shape else full})"]
        if _common(x, y) == out.shape:
            forms += [f"self.{name}({x.name}, {y.name}, out={out.name})" for name in ("add", "maximum", "minimum")]
        if condition is not None:
            forms.append(f"self.where({condition.name}, {out.name}, {y.name}, out={out.name})")
        if x.shape == out.shape and not out.dtype.startswith("u"):
            forms.append(f"self.abs({x.name}, out={out.name})")
        if 1 in out.shape:
            dim = out.shape.index(1)
            forms.append(f"self.max({out.name}, dim={dim}, keepdim=True, out={out.name})")
        self.line(self.dice.choice(forms))
        self.forget(out, x, y)

    def again(self) -> None:
        """A second name for a tile, one of which may be written later."""
        x = self.pick()
        if x is not None:
            self.add(x.dtype, x.shape, x.name, bound=x.bound, signs_zeros=x.signs_zeros)

    def helper(self) -> None:
        x = self.pick(lambda tile: tile.dtype != "boolean" and len(tile.shape) > 0)
        if x is None:
            return
        if self.maybe():
            self.line(f"self.doubled({x.name})")
            self.forget(x)
        else:
            self.add(x.dtype, x.shape, f"self.mixed({x.name}, {self.integer()})", signs_zeros=x.signs_zeros)

    def forget(self, tile: Tile, *others: Tile) -> None:
        """A tile holds something else now."""
        changed = replace(tile, bound=None, signs_zeros=all(other.signs_zeros for other in (tile, *others)))
        self.scope.tiles[self.scope.tiles.index(tile)] = changed

    # -------------------------------------------------------------------------------------------------- control flow

    STATEMENTS = (load, load, filled, unary, binary, binary, binary, comparison, choice, cast, cast, *[reduction] * 2)

    WRITES = (in_place, into, again, helper)

    def statement(self, depth: int) -> None:
        write = self.dice.choice(
            (*self.STATEMENTS, *self.WRITES, *((_Writer.loop, _Writer.branch) if depth < 2 else ()))
        )
        if write in (_Writer.loop, _Writer.branch):
            write(self, depth)  # type: ignore[call-arg]
        else:
            write(self)  # type: ignore[call-arg]

    def block(self, depth: int, count: int) -> list[Tile]:
        """Some statements one level deeper; the tiles that they leave, which are gone afterwards."""
        outer = self.scope
        self.scope = outer.inner()
        self.indent += 1
        for _ in range(count):
            self.statement(depth + 1)
        made = [tile for tile in self.scope.tiles if tile not in outer.tiles]
        return made

    def carried(self) -> list[Tile]:
        """Tiles that a loop or branch is going to rebind."""
        found = [tile for tile in self.scope.tiles if len(tile.shape) > 0 and tile.name.startswith("t")]
        return self.dice.sample(found, min(len(found), self.dice.choice((1, 1, 2))))

    def rebind(self, carried: Sequence[Tile]) -> None:
        for tile in carried:
            if all(t.name != tile.name for t in self.scope.tiles):
                continue
            other = self.pick(lambda t, tile=tile: t.dtype == tile.dtype and _common(t, tile) == tile.shape)
            if other is None:
                continue
            if tile.dtype == "boolean":
                self.line(f"{tile.name} = {tile.name} ^ {other.name}")
            elif self.maybe(0.3):
                self.line(f"{tile.name} = self.maximum({other.name}, {tile.name})")
            else:
                self.line(f"{tile.name} = {tile.name} {self.operator(tile)} {other.name}")

    def close(self, outer: _Scope, changed: Sequence[Tile]) -> None:
        """Back to the outer scope, in which what was carried is known less well."""
        self.indent -= 1
        names = {tile.name for tile in changed}
        self.scope = outer
        outer.tiles[:] = [
            replace(tile, bound=None, signs_zeros=False) if tile.name in names else tile for tile in outer.tiles
        ]

    def changed_inside(self, outer: _Scope) -> list[Tile]:
        """Tiles of the outer scope that are not what they were."""
        now = {tile.name: tile for tile in self.scope.tiles}
        return [tile for tile in outer.tiles if now[tile.name] != tile]

    def loop(self, depth: int) -> None:
        outer, carried = self.scope, self.carried()
        outer.tiles[:] = [replace(t, bound=None, signs_zeros=False) if t in carried else t for t in outer.tiles]
        carried = [tile for tile in outer.tiles if tile.name in {t.name for t in carried}]
        counter, limits = self.fresh("k"), self.limits()
        is_while = self.maybe(0.2)
        if is_while:
            self.line(f"{counter}: int32 = {self.dice.randint(0, 9)}")
            self.line(f"while {counter} > 0:")
        else:
            self.line(f"for {counter} in {limits}:")
        self.indent += 1
        if is_while:
            self.line(f"{counter} = {counter} // 2")
        if self.maybe(0.2):
            self.line(f"if {counter} == {self.integer()}:")
            self.line(f"    {self.dice.choice(('break', 'continue'))}")
        self.indent -= 1
        outer.integers.append(Scalar(counter, "int32"))
        self.block(depth, self.dice.randint(1, 4))
        self.rebind(carried)
        changed = [*carried, *self.changed_inside(outer)]
        self.close(outer, changed)
        outer.integers.pop()

    def limits(self) -> str:
        start, stop, step = self.dice.randint(-3, 3), self.dice.randint(-2, 7), self.dice.choice((1, 1, 2, 3, -1, -2))
        if step < 0:
            start, stop = stop, start
        form = self.dice.choice(("range({stop})", "range({start}, {stop})", "range({start}, {stop}, {step})"))
        if self.maybe(0.2):
            form = "self.range({start}, {stop}, {step}, unroll={unroll})"
        unroll = self.dice.choice(("'all'", "2", "None"))
        if step < 0 and "step" not in form:
            start, stop = stop, start
        return form.format(start=self.number(start), stop=self.number(stop), step=step, unroll=unroll)

    def branch(self, depth: int) -> None:
        outer, carried = self.scope, self.carried()
        self.line(f"if {self.condition()}:")
        self.block(depth, self.dice.randint(1, 3))
        self.rebind(carried)
        changed = [*carried, *self.changed_inside(outer)]
        self.close(outer, changed)
        if self.maybe():
            self.line("else:")
            self.block(depth, self.dice.randint(1, 2))
            self.rebind(carried)
            changed = [*carried, *self.changed_inside(outer)]
            self.close(outer, changed)

    # --------------------------------------------------------------------------------------------------------- output

    def store(self, tile: Tile, tolerance: tuple[float, float] | None = None) -> None:
        """Store a tile where no other block does; a part of it may stick out of the tensor."""
        blocks = math.prod(self.grid)
        dims = list(range(1, len(tile.shape) + 1))
        if self.maybe(0.3):
            self.dice.shuffle(dims)
        extents = [blocks] + [1] * len(tile.shape)
        offsets = ["bid"] + ["0"] * len(tile.shape)
        for extent, dim in zip(tile.shape, dims, strict=True):
            extents[dim] = max(extent + self.dice.choice((0, 0, 0, 3, -1, 5)), 1)
            offsets[dim] = self.dice.choice(("0", "0", "0", "1", "-1"))
        strides = list(itertools.accumulate([1, *extents[:0:-1]], lambda a, b: a * b))[::-1]
        is_strided = self.maybe(0.3)
        if is_strided:
            pad = self.dice.choice((1, 3, 16))
            strides = [stride * pad if dim == 0 else stride for dim, stride in enumerate(strides)]
        count = sum((extent - 1) * stride for extent, stride in zip(extents, strides, strict=True)) + 1
        argument = self.output(tile.dtype, count, alone=tolerance is not None)
        pointer = self.param("out_", f"~{tile.dtype}", argument, tolerance)
        view = self.fresh("g")
        shape = ", ".join(map(self.number, extents))
        given = f", strides=[{', '.join(map(self.number, strides))}]" if is_strided else ""
        self.line(f"{view} = self.global_view({pointer}, dtype={tile.dtype}, shape=[{shape}]{given})")
        self.line(f"self.store_global({view}, {tile.name}, offsets=[{', '.join(offsets)}], dims={dims})")

    def output(self, dtype: str, count: int, *, alone: bool) -> torch.Tensor:
        """Memory to store into; where there is one block, sometimes that of an input, in place or beside it."""
        shared = [i for i, param in enumerate(self.params) if i not in self.overlapped and param.type == f"~{dtype}"]
        shared = [i for i in shared if self.params[i].name.startswith("in_")]
        if alone or not shared or math.prod(self.grid) > 1 or self.maybe():
            shift = self.dice.choice((0, 0, 0, 1))
            return poison(self.dice, dtype, count + shift)[shift:]
        number = self.dice.choice(shared)
        self.overlapped.add(number)
        values = self.params[number].argument
        begin, shift = (self.dice.choice((0, 0, 1, 16)) for _ in range(2))
        memory = poison(self.dice, dtype, max(begin + len(values), shift + count))
        memory[begin : begin + len(values)] = values
        self.params[number] = replace(self.params[number], argument=memory[begin : begin + len(values)])
        return memory[shift : shift + count]

    def rough(self) -> None:
        """A function or a sum that machines round differently, stored at once."""
        x = self.pick(lambda tile: tile.is_float and tile.bound is not None and tile.bound <= 64)
        if x is None:
            return
        eps = getattr(dtypes, x.dtype).eps
        name = self.dice.choice(("exp", "exp2", "sin", "cos", "log", "rsqrt", "sum"))
        if name == "sum":
            text, shape = f"self.sum({x.name} * 0.37, dim=0, keepdim=True)" if x.shape else "", (1, *x.shape[1:])
            if not x.shape:
                return
            tolerance = (4 * eps, 32 * 64 * x.shape[0] * max(dtypes.float32.eps, 0.0 if x.dtype != "float64" else eps))
        else:
            text, shape = f"self.{name}(self.abs({x.name}) * 0.1 + 0.25)", x.shape
            tolerance = (8 * eps, 8 * eps)
        tile = Tile(self.fresh("rough"), x.dtype, shape)
        self.line(f"{tile.name} = {text}")
        self.store(tile, tolerance)

    def kernel(self) -> RandomKernel:
        grid = [self.number(extent) for extent in self.grid]
        head = [
            f"self.attrs.blocks = [{', '.join(grid)}]",
            f"self.attrs.warps = {self.warps}",
            "bid = (self.blockIdx.z * self.gridDim.y + self.blockIdx.y) * self.gridDim.x + self.blockIdx.x",
        ]
        for text in head:
            self.line(text)
        for dtype in (self.dice.choice(INTEGERS), "int32"):
            name = self.param("s", dtype, self.dice.randint(0 if dtype.startswith("u") else -3, 9))
            # a signed and an unsigned integer of 64 bits have no common type
            self.scope.integers.append(Scalar(f"int64({name})" if dtype == "uint64" else name, dtype))
        flag = self.param("flag", "boolean", self.maybe())
        self.scope.conditions.append(flag)
        self.load()
        for _ in range(self.dice.randint(4, 14)):
            self.statement(0)
        self.line("self.sync()")  # an output may lie where an input does
        for tile in self.dice.sample(self.scope.tiles, min(len(self.scope.tiles), 6)):
            self.store(tile)
        self.rough()
        params = ", ".join(f"{param.name}: {param.type}" for param in self.params)
        return RandomKernel(_TEXT.format(params=params, body="\n".join(self.lines)), tuple(self.params))


_TEXT = """\
class Kernel(tilus.Script):
    def doubled(self, x: RegisterTensor):
        x += x

    def mixed(self, x: RegisterTensor, n: int32):
        y = x
        y += x
        if n > 1:
            y = y - x
            return_it = y + y
        else:
            return_it = x
        return return_it + y

    def __call__(self, {params}):
{body}
"""


def _common(x: Tile, y: Tile) -> tuple[int, ...] | None:
    """The shape that two tiles broadcast to, if they do and it is not too large."""
    try:
        shape = tuple(torch.broadcast_shapes(x.shape, y.shape))
    except RuntimeError:
        return None
    return shape if math.prod(shape) <= MAX_ELEMENTS else None
