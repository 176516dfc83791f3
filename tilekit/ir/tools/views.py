# SPDX-License-Identifier: Apache-2.0
"""Facts about the global views of a program."""

from __future__ import annotations

from collections.abc import Sequence

from tilekit.dtypes import PointerType
from tilekit.ir.instructions.memory import GlobalViewInst
from tilekit.ir.prog import Program
from tilekit.ir.tensor import GlobalLayout
from tilekit.ir.tools.instruction_collector import collect
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Expr, Var


def strided_pointers(prog: Program) -> list[str]:
    """The pointer parameters that some view gives strides of its own, by name.

    A part of a row-major view, such as `g[:, k]`, has strides of that view, not of its own.
    """
    row_major: list[tuple[Var, tuple[Expr, ...]]] = []
    others: list[tuple[Var, tuple[Expr, ...]]] = []
    params = {param for func in prog for param in func.params}
    for view in collect(prog, GlobalViewInst):
        layout = view.view.layout
        is_plain = _equal(layout.strides, GlobalLayout.row_major(layout.shape).strides)
        pointers = [v for v in scalar.free_vars(view.ptr) if v in params and _is_pointer(v)]
        (row_major if is_plain else others).extend((pointer, layout.strides) for pointer in pointers)
    return [
        scalar.name_hint(pointer)
        for pointer, strides in others
        if not any(pointer is whole and _is_part(strides, all_strides) for whole, all_strides in row_major)
    ]


def _is_pointer(variable: Var) -> bool:
    return isinstance(scalar.dtype_of(variable), PointerType)


def _equal(ours: Sequence[Expr], theirs: Sequence[Expr]) -> bool:
    return len(ours) == len(theirs) and all(map(scalar.structurally_equal, ours, theirs))


def _is_part(strides: Sequence[Expr], whole: Sequence[Expr]) -> bool:
    """Whether `strides` are some of `whole`, in their order."""
    rest = iter(whole)
    return all(any(scalar.structurally_equal(stride, other) for other in rest) for stride in strides)
