# SPDX-License-Identifier: Apache-2.0
"""Copies that nobody could tell from their source are removed.

The front end copies a tile wherever one of two names might be written later, because names obey Python. Of
`y = assign(x)` there are two kinds that need not be:

*   y is written nowhere else, and x nowhere afterwards: then y is another name for x, and every use of y becomes one
    of x;
*   x lives only between its definition and the copy, and y does nothing in between: then x is another name for y, and
    what computes x computes y at once. So an accumulator is updated in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tilekit.ir import stmt as stmts
from tilekit.ir.func import Function
from tilekit.ir.inst import Instruction
from tilekit.ir.instructions.dot import DotInst
from tilekit.ir.instructions.elementwise import Elementwise
from tilekit.ir.instructions.register import AssignInst
from tilekit.ir.stmt import Stmt
from tilekit.ir.tensor import RegisterTensor, Tensor
from tilekit.ir.tools.instruction_collector import collect
from tilekit.ir.tools.rewriter import rewrite
from tilekit.transforms.base import Pass
from tilekit.transforms.sequences import flattened


class CopyEliminationPass(Pass):
    """Removes copies of tiles where source and copy are never told apart."""

    def process_function(self, func: Function) -> Function:
        while replacements := _superfluous(func):
            func = rewrite(func, replacements)
        return func


def copy_elimination_pass() -> Pass:
    return CopyEliminationPass()


def _superfluous(func: Function) -> dict[RegisterTensor | Instruction, RegisterTensor | None]:
    """Copies to delete, and the tiles that take the names of others; no tile stands in two pairs."""
    uses = _Uses(func)
    replacements: dict[RegisterTensor | Instruction, RegisterTensor | None] = {}
    paired: set[RegisterTensor] = set()
    for copy in uses.copies:
        target, source = copy.inst.register_output, copy.inst.x
        if not _one_layout(target, source) or target in paired or source in paired:
            continue
        if uses.is_another_name_for_its_source(copy):
            replacements |= {copy.inst: None, target: source}
            paired |= {target, source}
        elif uses.is_where_its_source_ends(copy):
            replacements |= {copy.inst: None, source: target}
            paired |= {target, source}
    return replacements


def _one_layout(target: RegisterTensor, source: RegisterTensor) -> bool:
    """Whether a layout that was given to one of them is also the other's."""
    return target is not source and target.optional_layout == source.optional_layout


# what reads and writes tiles
_User: TypeAlias = "Instruction | stmts.TensorItemValueStmt"


@dataclass(frozen=True, eq=False)
class _Place:
    """Where a user of tiles stands: its number in program order, its block, and which statement of it it is."""

    inst: _User
    number: int
    block: Sequence[Stmt]
    index: int


@dataclass(frozen=True, eq=False)
class _Copy(_Place):
    inst: AssignInst


class _Uses:
    """Where each tile is read and written."""

    def __init__(self, func: Function) -> None:
        self.copies: list[_Copy] = []
        self.reads: dict[Tensor, list[_Place]] = {}
        self.writes: dict[Tensor, list[_Place]] = {}
        self.count = 0
        self._block(func.body)

    def _block(self, body: Stmt | None) -> None:
        block = [] if body is None else flattened(body)
        for index, stmt in enumerate(block):
            match stmt:
                case stmts.InstStmt():
                    self._instruction(stmt.inst, block, index)
                case stmts.TensorItemValueStmt():
                    self.reads.setdefault(stmt.tensor, []).append(_Place(stmt, self.count, block, index))
                    self.count += 1
                case stmts.ForStmt() | stmts.WhileStmt() | stmts.LetStmt():
                    self._block(stmt.body)
                case stmts.IfStmt():
                    self._block(stmt.then_body)
                    self._block(stmt.else_body)
                case _:
                    pass

    def _instruction(self, inst: Instruction, block: Sequence[Stmt], index: int) -> None:
        place = _Place(inst, self.count, block, index)
        self.count += 1
        if isinstance(inst, AssignInst):
            self.copies.append(_Copy(inst, place.number, block, index))
        for tensor in inst.reads:
            self.reads.setdefault(tensor, []).append(place)
        for tensor in inst.writes:
            self.writes.setdefault(tensor, []).append(place)

    def is_another_name_for_its_source(self, copy: _Copy) -> bool:
        target, source = copy.inst.register_output, copy.inst.x
        # every path to a use of the target comes through the copy, also from one round of a loop to the next: a write
        # of the source that stands before the copy happens before it
        writes = self.writes.get(source, [])
        return len(self.writes[target]) == 1 and all(write.number < copy.number for write in writes)

    def is_where_its_source_ends(self, copy: _Copy) -> bool:
        target, source = copy.inst.register_output, copy.inst.x
        places = [*self.reads[source], *self.writes.get(source, [])]
        first = min(places, key=lambda place: place.number)
        maker = first.inst
        if first.block is not copy.block or not isinstance(maker, Instruction) or maker.output is not source:
            return False
        between = copy.block[first.index : copy.index]
        inside: set[_User] = {user for stmt in between for user in collect(stmt, _USERS)}
        if any(place.inst not in inside for place in places if place.inst is not copy.inst):
            return False
        if any(collect(stmt, (stmts.BreakStmt, stmts.ReturnStmt)) for stmt in between):
            return False
        used = [user for user in inside if target in _tensors(user)]
        return all(user is maker for user in used) and (not used or _reads_before_it_writes(maker, target))


_USERS = (Instruction, stmts.TensorItemValueStmt)


def _tensors(user: _User) -> tuple[Tensor | None, ...]:
    return (*user.inputs, user.output) if isinstance(user, Instruction) else (user.tensor,)


def _reads_before_it_writes(inst: Instruction, tile: RegisterTensor) -> bool:
    """Whether `inst` may write its result over its operand `tile`: each position depends on the same position alone."""
    if isinstance(inst, DotInst):
        return tile is inst.c and tile not in (inst.a, inst.b)
    return isinstance(inst, Elementwise) and tile.shape == inst.register_output.shape
