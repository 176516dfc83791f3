# SPDX-License-Identifier: Apache-2.0
"""Which elements of its matrices each lane of a warp holds for mma, by the figures of the PTX manual."""

from collections.abc import Callable
from dataclasses import dataclass

import ml_dtypes
import numpy as np

LANES = np.arange(32)[:, None]


@dataclass(frozen=True)
class Tile:
    """The template numbers of a `tk::mma_tile`: instructions, strides between fragments, strides within them."""

    mi: int
    ni: int
    ki: int
    dm: int
    dn: int
    am: int
    ak: int
    bk: int
    bn: int
    ar: int
    br: int

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(getattr(self, name) for name in self.__dataclass_fields__)

    def register_counts(self, f: "Fragments") -> tuple[int, int, int]:
        """Of a, b and d, in a lane."""
        return self.mi * self.ki * f.a, self.ki * self.ni * f.b, self.mi * self.ni * f.d

    def random(self, f: "Fragments", draw: Callable[[tuple[int, int]], np.ndarray]) -> tuple[np.ndarray, ...]:
        """Matrices a, b and d for it."""
        m, n, k = self.mi * f.m, self.ni * f.n, self.ki * f.k
        return draw((m, k)).astype(f.dtype), draw((k, n)).astype(f.dtype), draw((m, n)).astype(f.sums)

    def spread(self, f: "Fragments", a: np.ndarray, b: np.ndarray, d: np.ndarray) -> list[np.ndarray]:
        """Matrices as the registers of 32 lanes."""
        counts = self.register_counts(f)
        lanes = [np.zeros((32, count), x.dtype) for count, x in zip(counts, (a, b, d), strict=True)]
        for mi, ki in np.ndindex(self.mi, self.ki):
            row, k = f.a_elements()
            at = mi * self.am + ki * self.ak + f.positions(f.a, self.ar)
            lanes[0][:, at] = a[mi * f.m + row, ki * f.k + k]
        for ki, ni in np.ndindex(self.ki, self.ni):
            k, column = f.b_elements()
            at = ki * self.bk + ni * self.bn + f.positions(f.b, self.br)
            lanes[1][:, at] = b[ki * f.k + k, ni * f.n + column]
        for mi, ni in np.ndindex(self.mi, self.ni):
            row, column = f.d_elements()
            at = mi * self.dm + ni * self.dn + np.arange(f.d)
            lanes[2][:, at] = d[mi * f.m + row, ni * f.n + column]
        return lanes

    def collect(self, f: "Fragments", registers: np.ndarray) -> np.ndarray:
        """The matrix that the lanes' sums are."""
        d = np.zeros((self.mi * f.m, self.ni * f.n), registers.dtype)
        for mi, ni in np.ndindex(self.mi, self.ni):
            row, column = f.d_elements()
            d[mi * f.m + row, ni * f.n + column] = registers[:, mi * self.dm + ni * self.dn + np.arange(f.d)]
        return d


@dataclass(frozen=True)
class Fragments:
    """One kind of mma: its shape, and the types and numbers of a lane's registers."""

    m: int
    n: int
    k: int
    operand: str
    accumulator: str
    dtype: type
    sums: type

    @property
    def per_register(self) -> int:
        return 4 // np.dtype(self.dtype).itemsize

    @property
    def a(self) -> int:
        return self.m * self.k // 32

    @property
    def b(self) -> int:
        return self.k * self.n // 32

    @property
    def d(self) -> int:
        return self.m * self.n // 32

    def a_elements(self) -> tuple[np.ndarray, np.ndarray]:
        """Row and k of each element, [lane, register]."""
        register, within = np.divmod(np.arange(self.a), self.per_register)
        halves = self.m // 8
        return LANES // 4 + register % halves * 8, self._k(register // halves, within)

    def b_elements(self) -> tuple[np.ndarray, np.ndarray]:
        """k and column of each element."""
        register, within = np.divmod(np.arange(self.b), self.per_register)
        k = self._k(register, within)
        return k, np.broadcast_to(LANES // 4, k.shape)

    def d_elements(self) -> tuple[np.ndarray, np.ndarray]:
        """Row and column of each element."""
        i = np.arange(self.d)
        return LANES // 4 + i // 2 * 8, LANES % 4 * 2 + i % 2

    def _k(self, quad: np.ndarray, within: np.ndarray) -> np.ndarray:
        """k of an element of the quad-th group of four registers that lie side by side in four lanes."""
        return (LANES % 4 + 4 * quad) * self.per_register + within

    def positions(self, count: int, apart: int) -> np.ndarray:
        """Where a lane's array has the elements of a fragment whose registers lie `apart` elements apart."""
        register, within = np.divmod(np.arange(count), self.per_register)
        return register * apart + within

    def one(self) -> Tile:
        """A single instruction."""
        return Tile(1, 1, 1, 0, 0, 0, 0, 0, 0, self.per_register, self.per_register)

    def tiles(self) -> dict[str, Tile]:
        """Tiles by the names of their kernels."""
        a, b, d, per = self.a, self.b, self.d, self.per_register
        return {
            "tile": Tile(3, 5, 2, 5 * d, d, 2 * a, a, b, 2 * b, per, per),
            # column-major order of fragments, and more than is multiplied at a time
            "large_tile": Tile(5, 9, 1, d, 5 * d, a, 5 * a, 9 * b, b, per, per),
            # two instructions share each vector of registers: element j of the second follows element j of the first
            "apart": Tile(1, 2, 2, 0, d, 0, per, per, 2 * b, 2 * per, 2 * per),
        }


FRAGMENTS = {
    "m16n8k16_f16_f32": Fragments(16, 8, 16, "half", "float", np.float16, np.float32),
    "m16n8k16_f16_f16": Fragments(16, 8, 16, "half", "half", np.float16, np.float16),
    "m16n8k16_bf16_f32": Fragments(16, 8, 16, "nv_bfloat16", "float", ml_dtypes.bfloat16, np.float32),
    "m16n8k8_tf32_f32": Fragments(16, 8, 8, "float", "float", np.float32, np.float32),
    "m16n8k32_i8_i32": Fragments(16, 8, 32, "int8_t", "int32_t", np.int8, np.int32),
    "m16n8k16_i8_i32": Fragments(16, 8, 16, "int8_t", "int32_t", np.int8, np.int32),
    "m8n8k16_i8_i32": Fragments(8, 8, 16, "int8_t", "int32_t", np.int8, np.int32),
}


def magnitudes(a: np.ndarray, b: np.ndarray, d: np.ndarray) -> np.ndarray:
    """What a * b + d would be if nothing canceled out: rounding errors are small against it."""
    a, b, d = (np.abs(x.astype(np.float64)) for x in (a, b, d))
    return a @ b + d
