# SPDX-License-Identifier: Apache-2.0
"""The instruction sets that kernels are compiled for, and the limits that come with each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from tilekit.diag import ConfigError, suggest


class Suffix(Enum):
    """Which features beyond the common set a target has: none, those of its family, or all of one architecture."""

    NONE = ""
    FAMILY = "f"
    ARCH = "a"


@dataclass(frozen=True, slots=True)
class Target:
    """One instruction set; limits count what a block or a thread can use, in bytes, threads and 32-bit registers."""

    capability: tuple[int, int]
    suffix: Suffix
    shared_memory_per_block: int
    max_registers_per_thread: int = 255
    max_warps_per_block: int = 32
    warp_size: int = 32

    @property
    def name(self) -> str:
        """As compilers spell it: `sm_90a`."""
        return f"sm_{self.number}{self.suffix.value}"

    @property
    def number(self) -> int:
        """The capability as one number: 90."""
        return self.capability[0] * 10 + self.capability[1]

    @property
    def tilus_name(self) -> str:
        """As tilus spells it: `nvgpu/sm90a`."""
        return f"nvgpu/sm{self.number}{self.suffix.value}"

    @property
    def max_threads_per_block(self) -> int:
        return self.max_warps_per_block * self.warp_size

    def supports(self, needed: Target) -> bool:
        """Whether code for `needed` runs on this target."""
        match needed.suffix:
            case Suffix.NONE:
                return self.capability >= needed.capability
            case Suffix.FAMILY:
                same_family = self.capability[0] == needed.capability[0] and self.capability >= needed.capability
                return same_family and self.suffix is not Suffix.NONE
            case Suffix.ARCH:
                return self is needed or self == needed

    def __str__(self) -> str:
        return self.name


# blocks of a grid along x, y and z, and blocks of a cluster that every target with clusters has room for
MAX_GRID = (2**31 - 1, 65535, 65535)
MAX_CLUSTER = 8
# bytes of memory of its own that a thread can have, registers and what does not fit in them
LOCAL_MEMORY_PER_THREAD = 512 * 1024

_KIB = 1024

# usable shared memory per block, in KiB; family suffixes exist from Blackwell on, architecture suffixes from Hopper on
_SHARED: dict[tuple[int, int], int] = {
    (7, 0): 96,
    (7, 5): 64,
    (8, 0): 163,
    (8, 6): 99,
    (8, 7): 163,
    (8, 8): 99,
    (8, 9): 99,
    (9, 0): 227,
    (10, 0): 227,
    (10, 3): 227,
    (11, 0): 227,
    (12, 0): 99,
    (12, 1): 99,
}


def _suffixes(capability: tuple[int, int]) -> tuple[Suffix, ...]:
    if capability >= (10, 0):
        return (Suffix.NONE, Suffix.FAMILY, Suffix.ARCH)
    return (Suffix.NONE, Suffix.ARCH) if capability == (9, 0) else (Suffix.NONE,)


ALL: tuple[Target, ...] = tuple(
    Target(capability, suffix, kib * _KIB) for capability, kib in _SHARED.items() for suffix in _suffixes(capability)
)

_BY_NAME: dict[str, Target] = {target.name: target for target in ALL}


def parse(name: str) -> Target:
    """The target called `name`; `sm_90a`, `sm90a` and `nvgpu/sm90a` are the same."""
    match = re.fullmatch(r"(?:nvgpu/)?sm_?(\d+[af]?)", name.strip().lower())
    spelled = f"sm_{match[1]}" if match else name
    found = _BY_NAME.get(spelled)
    if found is None:
        near = suggest(spelled, _BY_NAME)
        known = "targets are " + ", ".join(_BY_NAME)
        raise ConfigError("TK904", f"there is no target {name!r}", help=f"did you mean {near}?" if near else known)
    return found


def best_for(capability: tuple[int, int]) -> Target:
    """The target that uses most of a GPU of this capability: its own with all features, else the nearest below."""
    below = [target for target in ALL if target.capability <= capability]
    own = [target for target in below if target.capability == capability]
    if own:
        return own[-1]
    # features of one architecture do not exist on a later one
    common = [target for target in below if target.suffix is Suffix.NONE]
    if not common:
        major, minor = capability
        raise ConfigError("TK904", f"a GPU of compute capability {major}.{minor} is older than every target")
    return max(common, key=lambda target: target.capability)


SM70 = _BY_NAME["sm_70"]
SM75 = _BY_NAME["sm_75"]
SM80 = _BY_NAME["sm_80"]
SM86 = _BY_NAME["sm_86"]
SM89 = _BY_NAME["sm_89"]
SM90 = _BY_NAME["sm_90"]
SM90A = _BY_NAME["sm_90a"]
SM100 = _BY_NAME["sm_100"]
SM100A = _BY_NAME["sm_100a"]
SM120 = _BY_NAME["sm_120"]
DEFAULT = SM90A
