# SPDX-License-Identifier: Apache-2.0
"""Tiles in layouts drawn at random travel through shared memory, in parts and turned, and arrive as they were."""

import math
import random

import numpy as np
import pytest

from tilekit import config, drivers, target
from tilekit.dtypes import numpy_dtype, parse
from tilekit.ir.layout import ops, shared_layout
from tilekit.ir.layout.digits import Digit, Replica
from tilekit.ir.layout.register_layout import RegisterLayout, from_digits
from tilekit.ir.layout.shared_layout import Mode, SharedLayout, Swizzle
from tilekit.ir.text import parser
from tilekit.ir.tools import verify
from tilekit.runtime.tensors import DeviceKind

WARPS = 2
THREADS = 32 * WARPS


class Random:
    """Shapes and layouts by seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def extent(self) -> int:
        return self.random.choice([1, 2, 4, 8, 8, 16, 32, 64, 3, 6, 12, 24])

    def shape(self) -> list[int]:
        while True:
            shape = [self.extent() for _ in range(self.random.choice([1, 2, 2, 2, 3]))]
            if 16 <= math.prod(shape) <= 4096:
                return shape

    def digits(self, shape: list[int]) -> list[Digit]:
        """All digits of an index, dimension by dimension, the least significant first."""
        found: list[Digit] = []
        for dim, extent in enumerate(shape):
            stride = 1
            while stride < extent:
                rest = extent // stride
                factor = self.random.choice([f for f in range(2, rest + 1) if rest % f == 0])
                found.append(Digit(dim, stride, factor))
                stride *= factor
        return found

    def registers(self, shape: list[int]) -> RegisterLayout:
        spatial: list[Digit | Replica] = []
        local: list[Digit] = []
        free = THREADS
        for digit in self.random.sample(found := self.digits(shape), len(found)):
            if free % digit.extent == 0 and self.random.random() < 0.75:
                free //= digit.extent
                spatial.append(digit)
            else:
                local.append(digit)
        spatial.insert(self.random.randint(0, len(spatial)), Replica(free))
        return from_digits(shape, spatial, local)

    def memory(self, shape: list[int]) -> SharedLayout:
        modes: list[Mode] = []
        step = 1
        for digit in self.random.sample(found := self.digits(shape), len(found)):
            modes.append(Mode(digit, step))
            step *= digit.extent
        return shared_layout.from_modes(shape, modes, self.swizzle(step))

    def swizzle(self, size: int) -> Swizzle | None:
        bits = size.bit_length() - 1
        if bits < 3 or self.random.random() < 0.3:
            return None
        count = self.random.randint(1, min(3, bits // 2))
        base = self.random.randint(0, bits - 2 * count)
        return Swizzle(base, count, self.random.randint(count, bits - count - base))


class Journeys:
    """A program in which tiles go from `x` to `y` through shared memory."""

    def __init__(self, seed: int, count: int = 6) -> None:
        self.draw = Random(seed)
        self.dtype = self.draw.random.choice(["f16", "f32", "i8", "f64"])
        self.lines: list[str] = []
        self.wanted: list[np.ndarray] = []
        self.x = np.arange(4096).astype(numpy_dtype(parse(self.dtype)))
        for number in range(count):
            self.draw.random.choice([self.whole, self.turned, self.part, self.taken, self.replaced])(number)
        size = sum(part.size for part in self.wanted)
        self.text = "\n".join(
            [
                f"@kernel(grid=[i32(1), i32(1), i32(1)], warps={WARPS}, divisibility={{x: 16, y: 16}})",
                f"def journeys(zero: i32, x: ~{self.dtype}, y: ~{self.dtype}):",
                *(f"    {line}" for line in self.lines),
            ]
        )
        self.y = np.zeros(size, self.x.dtype)

    def tensor(self, kind: str, shape: list[int], layout: object) -> str:
        inner = f"{self.dtype}[{', '.join(map(str, shape))}]"
        return f"{f'Shared[{inner}]' if kind == 'shared' else inner} @ {layout}"

    def arrive(self, number: int, source: str, shape: list[int], wanted: np.ndarray) -> None:
        """Load a shared tensor, and store it."""
        layout = self.draw.registers(shape)
        self.lines.append(f"b{number}: {self.tensor('register', shape, layout)} = load_shared({source})")
        self.store(number, f"b{number}", shape, wanted)

    def store(self, number: int, tile: str, shape: list[int], wanted: np.ndarray) -> None:
        """Store a tile behind what was stored before."""
        begin = sum(part.size for part in self.wanted)
        zeros = ", ".join(["i32(0)"] * len(shape))
        dims = ", ".join(map(str, range(len(shape))))
        extents = ", ".join(f"i32({n})" for n in shape)
        self.lines += [
            f"h{number}: Global[{self.dtype}[{extents}]] = global_view(ptr=y + i32({begin}))",
            f"store_global(h{number}, {tile}, offsets=[{zeros}], dims=[{dims}])",
        ]
        self.wanted.append(wanted)

    def load(self, number: int, shape: list[int], layout: RegisterLayout) -> np.ndarray:
        """Load the first elements as a tile."""
        zeros = ", ".join(["i32(0)"] * len(shape))
        dims = ", ".join(map(str, range(len(shape))))
        extents = ", ".join(f"i32({n})" for n in shape)
        self.lines += [
            f"g{number}: Global[{self.dtype}[{extents}]] = global_view(ptr=x)",
            f"a{number}: {self.tensor('register', shape, layout)} = "
            f"load_global(g{number}, offsets=[{zeros}], dims=[{dims}])",
        ]
        return self.x[: math.prod(shape)].reshape(shape)

    def leave(self, number: int, shape: list[int]) -> tuple[str, SharedLayout, np.ndarray]:
        """Load a tile and store it into a shared tensor."""
        tile = self.load(number, shape, self.draw.registers(shape))
        layout = self.draw.memory(shape)
        self.lines += [
            f"s{number}: {self.tensor('shared', shape, layout)} = shared_tensor()",
            f"store_shared(s{number}, a{number})",
            "sync()",
        ]
        return f"s{number}", layout, tile

    def whole(self, number: int) -> None:
        shape = self.draw.shape()
        source, _, tile = self.leave(number, shape)
        self.arrive(number, source, shape, tile)

    def turned(self, number: int) -> None:
        shape = self.draw.shape()
        source, layout, tile = self.leave(number, shape)
        dims = self.draw.random.sample(range(len(shape)), len(shape))
        other = [shape[d] for d in dims]
        view = self.tensor("shared", other, layout.permute(dims))
        self.lines.append(f"v{number}: {view} = permute_shared({source}, dims={dims})")
        self.arrive(number, f"v{number}", other, tile.transpose(dims))

    def part(self, number: int) -> None:
        shape = self.draw.shape()
        source, layout, tile = self.leave(number, shape)
        kept, offsets, at = self.place(shape)
        other = [shape[d] for d in kept]
        view = self.tensor("shared", other, layout.slice(kept))
        self.lines.append(f"v{number}: {view} = slice_shared({source}, offsets=[{offsets}], dims={kept})")
        self.arrive(number, f"v{number}", other, tile[at])

    def place(self, shape: list[int]) -> tuple[list[int], str, tuple[slice | int, ...]]:
        """Some dimensions, and where a slice along them begins: known when it is compiled, or not."""
        kept = sorted(self.draw.random.sample(range(len(shape)), self.draw.random.randint(1, len(shape))))
        starts = [0 if d in kept else self.draw.random.randrange(n) for d, n in enumerate(shape)]
        zero = self.draw.random.choice(["", "zero + "])
        offsets = ", ".join(f"{'' if d in kept else zero}i32({start})" for d, start in enumerate(starts))
        return kept, offsets, tuple(slice(None) if d in kept else start for d, start in enumerate(starts))

    def registers_of_part(self, layout: RegisterLayout, kept: list[int]) -> RegisterLayout:
        """Where a part of a tile lies: where the tile has it, or anywhere."""
        if self.draw.random.random() < 0.3:
            return self.draw.registers([layout.shape[d] for d in kept])
        return ops.reduce(layout, [d for d in range(len(layout.shape)) if d not in kept])

    def taken(self, number: int) -> None:
        shape = self.draw.shape()
        layout = self.draw.registers(shape)
        tile = self.load(number, shape, layout)
        kept, offsets, at = self.place(shape)
        other = [shape[d] for d in kept]
        part = self.tensor("register", other, self.registers_of_part(layout, kept))
        self.lines.append(f"p{number}: {part} = slice_register(a{number}, offsets=[{offsets}], dims={kept})")
        self.store(number, f"p{number}", other, tile[at])

    def replaced(self, number: int) -> None:
        shape = self.draw.shape()
        layout = self.draw.registers(shape)
        tile = self.load(number, shape, layout).copy()
        kept, offsets, at = self.place(shape)
        part = self.tensor("register", [shape[d] for d in kept], self.registers_of_part(layout, kept))
        self.lines += [
            f"p{number}: {part} = register_tensor(init={self.dtype}({'77' if self.dtype == 'i8' else '77.0'}))",
            f"slice_assign(a{number}, p{number}, offsets=[{offsets}], dims={kept})",
        ]
        tile[at] = 77
        self.store(number, f"a{number}", shape, tile)


@pytest.mark.parametrize("to", [target.SM80, target.SM90A], ids=str)
@pytest.mark.parametrize("seed", range(12))
def test_tiles_arrive_as_they_were(seed, to):
    journeys = Journeys(seed * 2 + (to is target.SM80))
    prog = parser.parse_program(journeys.text)
    verify(prog)
    made = drivers.build_program(prog, to, DeviceKind.CPU, config.resolve())
    made.load(DeviceKind.CPU, config.resolve()).launch([0, journeys.x, journeys.y])
    begin = 0
    for number, part in enumerate(journeys.wanted):
        found = journeys.y[begin : begin + part.size].reshape(part.shape)
        assert np.array_equal(found, part), f"journey {number} of\n{journeys.text}"
        begin += part.size
