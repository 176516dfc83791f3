# SPDX-License-Identifier: Apache-2.0
"""Running a program: arguments in, memory changed."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from tilekit import dtypes
from tilekit.diag import errors
from tilekit.dtypes import PointerType
from tilekit.ir.evaluator import memory, scheduler
from tilekit.ir.evaluator.group import Group
from tilekit.ir.evaluator.memory import Memory, Window
from tilekit.ir.evaluator.scheduler import Barrier, ThreadGroup
from tilekit.ir.func import Function
from tilekit.ir.machine import Array
from tilekit.ir.prog import Program
from tilekit.lowir import scalar, scalar_eval
from tilekit.lowir.scalar import Var

Argument: TypeAlias = "bool | int | float | np.generic | dtypes.Literal | Array | Memory"
BlockIndex: TypeAlias = "tuple[int, int, int]"

# a kernel that walks through more statements than this in one thread group is taken to be endless
STEP_LIMIT = 1_000_000


def run(
    prog: Program,
    args: Sequence[Argument],
    *,
    seed: int = 0,
    blocks: Literal["all"] | Iterable[BlockIndex] = "all",
    step_limit: int = STEP_LIMIT,
) -> None:
    """Run the program's one function on `args`, one for each parameter.

    Parameters
    ----------
    args
        Numbers for scalars; for pointers contiguous NumPy arrays of the pointer's type, which are written in place, or
        `Memory`, which also knows what was never written. Views of one array alias.
    seed
        Decides the order in which blocks run.
    blocks
        The blocks to run, by their index in the grid.
    step_limit
        After how many statements of one thread group the kernel is called endless.

    Raises
    ------
    KernelError
        At the first thing that goes wrong, with its kind in `data["kind"]`: `out_of_bounds`, `uninitialized`,
        `misaligned`, `timeout`, `deadlock`.
    """
    func = prog.function
    scalars, windows = _bind(func, args)
    grid = tuple(max(int(scalar_eval.evaluate(extent, scalars)), 0) for extent in func.metadata.grid_blocks)
    grid_dims = {scalar.grid_dim(axis): np.int32(extent) for axis, extent in enumerate(grid)}
    scalars = {**scalars, **grid_dims}
    every = _in_launch_order(grid) if blocks == "all" else iter(blocks)
    scheduler.run_all((_block(func, block, scalars, windows, step_limit) for block in every), seed)


def _block(
    func: Function, block: BlockIndex, scalars: Mapping[Var, Any], windows: Mapping[Var, Window], step_limit: int
) -> list[ThreadGroup]:
    """The thread groups of a block."""
    here = dict(scalars)
    for axis, (var, at) in enumerate(zip(func.metadata.block_indices, block, strict=True)):
        here[var] = here[scalar.block_idx(axis)] = np.int32(at)
    return [Group(func, block, here, windows, Barrier(groups=1), step_limit)]


def _in_launch_order(grid: Sequence[int]) -> Iterator[BlockIndex]:
    """Every block, x running fastest."""
    for z, y, x in itertools.product(*map(range, reversed(grid))):
        yield x, y, z


def _bind(func: Function, args: Sequence[Argument]) -> tuple[dict[Var, Any], dict[Var, Window]]:
    """The value of each parameter, and the memory behind those that are pointers."""
    if len(args) != len(func.params):
        raise errors.ArgumentError("TK626", f"{func.name} takes {len(func.params)} arguments, got {len(args)}")
    scalars: dict[Var, Any] = {}
    windows: dict[Var, Window] = {}
    for param, argument in zip(func.params, args, strict=True):
        type_ = scalar.dtype_of(param)
        if isinstance(type_, PointerType):
            windows[param] = memory.window_of(scalar.name_hint(param), type_, argument)
            scalars[param] = np.uint64(windows[param].address)
        elif isinstance(argument, (Memory, np.ndarray)):
            raise errors.ArgumentError("TK625", f"{scalar.name_hint(param)} is {type_} and takes a number")
        else:
            number = argument.item() if isinstance(argument, np.generic) else argument
            plain = number.rounded if isinstance(number, dtypes.Literal) else number
            scalars[param] = dtypes.quantize(np.asarray(type_.constant(plain).value), type_)
    return scalars, windows
