# SPDX-License-Identifier: Apache-2.0
"""`self.cuda`: what a kernel asks while it is compiled, the layouts of tensor-core tiles and facts about the GPU."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ParamSpec, Protocol, TypeAlias, TypeVar

from tilekit.diag import errors
from tilekit.dtypes import DataType
from tilekit.ir.layout import atoms, ops
from tilekit.ir.layout.atoms import AtomicMmaConfig, BlockMmaConfig
from tilekit.ir.layout.register_layout import RegisterLayout
from tilekit.ir.layout.shapes import LayoutOperationError
from tilekit.ir.layout.shared_layout import SharedLayout

P = ParamSpec("P")
R = TypeVar("R")


class GpuFacts(Protocol):
    """What is known of a GPU of this machine."""

    @property
    def name(self) -> str: ...
    @property
    def capability(self) -> tuple[int, int]: ...
    @property
    def memory_bytes(self) -> int: ...
    @property
    def multiprocessors(self) -> int: ...
    @property
    def shared_memory_per_block(self) -> int: ...


# the GPUs of this machine, looked for when a kernel asks
Gpus: TypeAlias = "Callable[[], Sequence[GpuFacts]]"


@dataclass(frozen=True)
class DeviceProperties:
    """Facts about a GPU under the names that CUDA has for them."""

    name: str
    major: int
    minor: int
    multiProcessorCount: int
    totalGlobalMem: int
    sharedMemPerBlockOptin: int
    warpSize: int = 32


class Runtime:
    """`self.cuda.runtime`: the GPUs of the machine that compiles."""

    def __init__(self, gpus: Gpus) -> None:
        self._gpus = gpus

    def get_device_properties(self, device_id: int = 0) -> DeviceProperties:
        """Return facts about one GPU of this machine.

        Parameters
        ----------
        device_id
            Which one, counted as CUDA does.
        """
        gpus = self._gpus()
        if not 0 <= device_id < len(gpus):
            count = len(gpus) or "no"
            raise errors.LanguageError(
                "TK104",
                f"get_device_properties: there is no GPU {device_id}, for this machine has {count} usable GPUs",
                help="pass what the kernel needs to know to __init__, such as the number of multiprocessors",
            )
        gpu = gpus[device_id]
        return DeviceProperties(
            gpu.name, *gpu.capability, gpu.multiprocessors, gpu.memory_bytes, gpu.shared_memory_per_block
        )


def _explained(function: Callable[P, R]) -> Callable[P, R]:
    """The function with its refusals as errors of the layout kind."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except LayoutOperationError as problem:
            raise errors.LayoutError("TK304", str(problem)) from None

    return call


class AtomicMmaConfigs:
    """`self.cuda.atomic_mma_configs`: one mma instruction each, or `vec_k` of them along k."""

    m16n8k16_f16_f32 = staticmethod(_explained(atoms.m16n8k16_f16_f32))
    m16n8k16_f16_f16 = staticmethod(_explained(atoms.m16n8k16_f16_f16))
    m16n8k16_bf16_f32 = staticmethod(_explained(atoms.m16n8k16_bf16_f32))
    m16n8k8_tf32_f32 = staticmethod(_explained(atoms.m16n8k8_tf32_f32))
    m16n8k32_i8_i32 = staticmethod(_explained(atoms.m16n8k32_i8_i32))
    m16n8k16_i8_i32 = staticmethod(_explained(atoms.m16n8k16_i8_i32))
    m8n8k16_i8_i32 = staticmethod(_explained(atoms.m8n8k16_i8_i32))

    @staticmethod
    def from_dtypes(operand_type: DataType, acc_type: DataType) -> AtomicMmaConfig:
        """Return the instruction that does the most at once for these types."""
        return _explained(AtomicMmaConfig.from_dtypes)(operand_type, acc_type)


class Cuda:
    """What `self.cuda` has; everything here is computed while the kernel is compiled."""

    def __init__(self, gpus: Gpus) -> None:
        self.atomic_mma_configs = AtomicMmaConfigs()
        self.runtime = Runtime(gpus)

    def mma_dot_config(
        self, atomic_mma: AtomicMmaConfig, warp_spatial: tuple[int, int], warp_repeat: tuple[int, int, int]
    ) -> BlockMmaConfig:
        """Return the layouts of a dot in which every warp repeats one mma instruction.

        Parameters
        ----------
        atomic_mma
            The instruction, from `atomic_mma_configs`.
        warp_spatial
            The warps along m and along n.
        warp_repeat
            How often each warp repeats the instruction along m, n and k.

        Notes
        -----
        A dot whose operands and accumulator leave a thread too few registers is refused.
        """
        return _explained(atoms.mma_dot_config)(atomic_mma, warp_spatial, warp_repeat)

    def resolve_dot_config(
        self,
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
        """Return the layouts of the dot of m x n x k that takes the fewest registers.

        Parameters
        ----------
        operand_dtype, acc_dtype
            The types of both operands and of the accumulator.
        m, n, k
            The extents.
        num_warps
            The warps that compute it, split along m and n as takes the fewest registers.
        warp_m, warp_n
            Instead of `num_warps`, the warps along m and along n.
        """
        return _explained(atoms.resolve_dot_config)(
            operand_dtype, acc_dtype, m=m, n=n, k=k, num_warps=num_warps, warp_m=warp_m, warp_n=warp_n
        )

    def shared_layout(self, shape: Sequence[int]) -> SharedLayout:
        """Return the row-major layout of a shared tensor."""
        return _explained(ops.shared_row_major)(*shape)

    def default_register_layout(
        self, num_warps: int, dtype: DataType, shape: Sequence[int], vector_size: int | None = None
    ) -> RegisterLayout:
        """Return a layout of vectors along the last dimension, neighbors to neighboring threads.

        Parameters
        ----------
        num_warps
            The warps of the thread group.
        dtype
            The type of an element.
        shape
            The shape of the tile.
        vector_size
            The elements of a vector; by default up to 16 bytes of them.
        """
        return _explained(atoms.default_register_layout)(num_warps, dtype, shape, vector_size)
