# SPDX-License-Identifier: Apache-2.0
"""Which elements of its matrices each lane of a warp holds for mma, by the figures of the PTX manual."""

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


def positions(first: int, stride: int, count: int, per: int, apart: int) -> np.ndarray:
    """Where a lane's array holds the `count` elements of fragment number `first`, whose registers lie `apart`."""
    register, within = np.divmod(np.arange(count), per)
    return first * stride + register * apart + within
