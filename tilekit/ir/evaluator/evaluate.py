# SPDX-License-Identifier: Apache-2.0
"""Running a program: arguments in, memory changed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from tilekit import dtypes
from tilekit.diag import errors
from tilekit.dtypes import PointerType
from tilekit.ir.evaluator import memory, scheduler
from tilekit.ir.evaluator.group import Group
from tilekit.ir.evaluator.memory import Memory, Window
from tilekit.ir.evaluator.scheduler import Barrier, ThreadGroup
from tilekit.ir.evaluator.state import Launch
from tilekit.ir.func import Function
from tilekit.ir.instructions.workspace import AllocateGlobalInst
from tilekit.ir.machine import Array
from tilekit.ir.prog import Program
from tilekit.ir.tensor import GlobalTensor
from tilekit.ir.tools.instruction_collector import collect
from tilekit.lowir import scalar, scalar_eval
from tilekit.lowir.scalar import Var

Argument: TypeAlias = "bool | int | float | np.generic | dtypes.Literal | Array | Memory"
BlockIndex: TypeAlias = "tuple[int, int, int]"
# makes the thread group of a block: of its launch, its index, the scalars that it knows, and the block's barrier
GroupMaker: TypeAlias = "Callable[[Launch, BlockIndex, Mapping[Var, Any], Barrier], Group]"

# a kernel that walks through more statements than this in one thread group is taken to be endless
STEP_LIMIT = 1_000_000


def run(
    prog: Program,
    args: Sequence[Argument],
    *,
    seed: int = 0,
    blocks: Literal["all"] | Iterable[BlockIndex] = "all",
    step_limit: int = STEP_LIMIT,
    group: GroupMaker = Group,
) -> str:
    """Run the program's one function on `args`, one for each parameter, and return what it printed.

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
    group
        Makes each thread group: who wants to look on gives one that does.

    Raises
    ------
    KernelError
        At the first thing that goes wrong, with its kind in `data["kind"]`: `out_of_bounds`, `uninitialized`,
        `misaligned`, `use_after_free`, `false_assumption`, `unclean_workspace`, `timeout`, `deadlock`; what was printed
        until then, if anything was, is `data["printed"]`.
    """
    func = prog.function
    scalars, windows = _bind(func, args)
    extents = _grid(func, scalars)
    grid_dims = {scalar.grid_dim(axis): np.int32(extent) for axis, extent in enumerate(extents)}
    scalars = {**scalars, **grid_dims}
    workspaces = _workspaces(func, scalars)
    launch = Launch(func, windows, {inst.tensor: window for inst, window in workspaces.items()}, step_limit)
    every = _in_launch_order(extents) if blocks == "all" else iter(blocks)
    try:
        scheduler.run_all((_block(launch, block, scalars, group) for block in every), seed)
        if blocks == "all":
            _check_clean(launch, workspaces)
    except errors.KernelError as error:
        if launch.printed:
            error.data["printed"] = "".join(launch.printed)
        raise
    return "".join(launch.printed)


def grid(prog: Program, args: Sequence[Argument]) -> BlockIndex:
    """How many blocks a launch on `args` has in each direction."""
    return _grid(prog.function, _bind(prog.function, args)[0])


def block_index(number: int, extents: Sequence[int]) -> BlockIndex:
    """The index of a block of a grid by its number, x fastest."""
    rest, x = divmod(number, extents[0])
    z, y = divmod(rest, extents[1])
    return x, y, z


def _grid(func: Function, scalars: Mapping[Var, Any]) -> BlockIndex:
    x, y, z = (max(int(scalar_eval.evaluate(extent, scalars)), 0) for extent in func.metadata.grid_blocks)
    return x, y, z


def _block(launch: Launch, block: BlockIndex, scalars: Mapping[Var, Any], group: GroupMaker) -> list[ThreadGroup]:
    """The thread groups of a block."""
    here = dict(scalars)
    for axis, (var, at) in enumerate(zip(launch.func.metadata.block_indices, block, strict=True)):
        here[var] = here[scalar.block_idx(axis)] = np.int32(at)
    return [group(launch, block, here, Barrier(groups=1))]


def _workspaces(func: Function, scalars: Mapping[Var, Any]) -> dict[AllocateGlobalInst, Window]:
    """The memory for each workspace of a function; where several instructions make the same one, they share it."""
    made: dict[AllocateGlobalInst, Window] = {}
    by_tensor: dict[GlobalTensor, Window] = {}
    for inst in collect(func, AllocateGlobalInst):
        tensor = inst.tensor
        if tensor not in by_tensor:
            count = max(int(scalar_eval.evaluate(inst.num_elements, scalars)), 0)
            lent = Memory.empty(count * tensor.dtype.nbytes)
            written = None if inst.requires_clean else lent.written
            by_tensor[tensor] = Window(tensor.name or "workspace", lent.buffer, written)
        made[inst] = by_tensor[tensor]
    return made


def _check_clean(launch: Launch, workspaces: Mapping[AllocateGlobalInst, Window]) -> None:
    for inst, window in workspaces.items():
        if inst.requires_clean and window.buffer.any():
            element = int(np.argmax(window.buffer != 0)) // inst.tensor.dtype.nbytes
            name = launch.names.name(inst.tensor)
            raise errors.KernelError(
                "TK707",
                f"the kernel ended without setting element {element} of the workspace {name} back to zero",
                at=inst.span,
                help="with requires_clean=True the next launch counts on zeros: let the last block to use it clear it",
                data={"kind": "unclean_workspace", "tensor": name, "offset": element},
            )


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
            scalars[param] = scalar_eval.number(argument, type_)
    return scalars, windows
