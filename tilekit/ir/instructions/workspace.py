# SPDX-License-Identifier: Apache-2.0
"""Global memory that the launch lends to a kernel."""

from __future__ import annotations

from collections.abc import Sequence

from tilekit import dtypes
from tilekit.diag import errors
from tilekit.dtypes import DataType
from tilekit.ir.inst import PURE, Instruction, static
from tilekit.ir.machine import Machine, Steps
from tilekit.ir.surface import Surface, size
from tilekit.ir.tensor import GlobalLayout, GlobalTensor, check_bytes
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Expr


class AllocateGlobalInst(Instruction, opcode="global_tensor", effects=PURE):
    """A tensor in global memory that all blocks share and that lives as long as the launch.

    It holds zeros if `requires_clean`, and then the kernel leaves zeros in it; else it holds nothing.
    """

    requires_clean: bool = static()

    @staticmethod
    def create(output: GlobalTensor, requires_clean: bool) -> AllocateGlobalInst:
        check_bytes("a workspace", output.dtype)
        return AllocateGlobalInst(output, requires_clean)

    def execute(self, machine: Machine) -> Steps:
        machine.bind_workspace(self.tensor)
        yield from ()

    @property
    def tensor(self) -> GlobalTensor:
        assert isinstance(self.output, GlobalTensor)
        return self.output

    @property
    def num_elements(self) -> Expr:
        """One past the largest element offset, in int64."""
        one = scalar.constant(dtypes.int64, 1)
        last = [scalar.sub(scalar.cast(extent, dtypes.int64), one) for extent in self.tensor.shape]
        return scalar.add(self.tensor.layout.offset(last), one)


class WorkspaceMethods(Surface):
    """The workspaces of the kernel language."""

    def global_tensor(
        self,
        dtype: DataType,
        shape: Sequence[Expr | int],
        *,
        layout: GlobalLayout | None = None,
        requires_clean: bool,
    ) -> GlobalTensor:
        """Return a tensor in global memory that all blocks of the launch share: a workspace.

        Parameters
        ----------
        dtype
            The element type.
        shape
            The extents, integers or expressions of the kernel's parameters and of `self.gridDim`, so that the launch
            knows them.
        layout
            Where the elements lie; row-major by default.
        requires_clean
            True for a workspace of zeros, which the kernel must set to zero again before it ends; False for one that
            holds nothing.

        Returns
        -------
        GlobalTensor
            It is the same memory in every block.

        Raises
        ------
        VerificationError
            TK191 where the shape depends on more than that.
        KernelError
            TK707, in the evaluator alone, where a kernel leaves a clean workspace dirty.

        Notes
        -----
        It begins at a multiple of 128 bytes.
        """
        if not isinstance(dtype, DataType):  # pyright: ignore[reportUnnecessaryIsInstance]  # it comes from a user
            raise errors.LanguageError("TK215", f"global_tensor needs a type such as float32, got {dtype!r}")
        extents = [self._expand(size("shape", extent)) for extent in shape]
        place = GlobalLayout.row_major(extents)
        if layout is not None:
            if len(layout.shape) != len(extents):
                raise errors.LanguageError(
                    "TK213",
                    f"global_tensor: the layout has {len(layout.shape)} dimensions, the shape {len(extents)}",
                )
            place = GlobalLayout(tuple(extents), tuple(map(self._expand, layout.strides)))
        return self._emit(AllocateGlobalInst.create(GlobalTensor.create(dtype, place), requires_clean))
