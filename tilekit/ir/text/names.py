# SPDX-License-Identifier: Apache-2.0
"""The name of each tensor and variable of a function in text: the user's own, made unique where two share it."""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Iterator
from typing import TypeAlias

from tilekit.ir import stmt as stmts
from tilekit.ir.func import Function
from tilekit.ir.inst import Instruction
from tilekit.ir.tensor import GlobalTensor, Tensor
from tilekit.ir.text import blocks
from tilekit.ir.text.blocks import Block, Let, Line, Scope
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Expr, Var

Named: TypeAlias = "Tensor | Var"


class Names:
    """Names given in the order of the text; one that nobody asked for yet is made when it is asked for."""

    def __init__(self) -> None:
        self._name_of: dict[Named, str] = {}
        self._place: dict[Named, int] = {}
        self._taken: set[str] = set(SPECIAL)
        self._count: dict[str, int] = {}
        self._defining: dict[Tensor, Instruction] = {}

    @staticmethod
    def of_function(func: Function) -> Names:
        names = Names()
        for named in _occurrences(func):
            if isinstance(named, Instruction):
                if named.output is not None:
                    names._defining.setdefault(named.output, named)
            else:
                names.name(named)
        return names

    def name(self, named: Named) -> str:
        """The name of a tensor or a variable."""
        if named in self._name_of:
            return self._name_of[named]
        if isinstance(named, Var) and is_special(named):
            return scalar.name_hint(named)
        name = self._free(_hint(named))
        self._taken.add(name)
        self._name_of[named] = name
        self._place[named] = len(self._place)
        return name

    def _free(self, hint: str) -> str:
        """`hint`, or the first of `hint_1`, `hint_2`, … that is not taken."""
        name = hint
        while name in self._taken:
            self._count[hint] = self._count.get(hint, 0) + 1
            name = f"{hint}_{self._count[hint]}"
        return name

    def order(self, named: Named) -> tuple[int, str]:
        """A key that sorts by the place in the text, the coordinates of the block first."""
        name = self.name(named)
        return self._place.get(named, -1), name

    def __contains__(self, named: Named) -> bool:
        return named in self._name_of

    def with_bound(self, variables: tuple[Var, ...]) -> Names:
        """These names and those of variables that one instruction binds; other instructions may use them again."""
        if not variables:
            return self
        inner = Names()
        inner._name_of = dict(self._name_of)
        inner._taken = set(self._taken)
        inner._defining = self._defining
        for variable in variables:
            inner._name_of.pop(variable, None)
            inner.name(variable)
        return inner

    def defines(self, inst: Instruction) -> bool:
        """Whether the text says the type of the instruction's output there: at its first definition."""
        output = inst.output
        return output is not None and self._defining.get(output, inst) is inst


# the coordinates of the block and the like: the same variable in every function
_SPECIALS = (*map(scalar.block_idx, range(3)), *map(scalar.grid_dim, range(3)), scalar.thread_idx())
SPECIAL: dict[str, Var] = {scalar.name_hint(var): var for var in _SPECIALS}


def is_special(var: Var) -> bool:
    return SPECIAL.get(scalar.name_hint(var)) is var


def _hint(named: Named) -> str:
    """An identifier as close as can be to the name that a tensor or variable wants."""
    wanted = scalar.name_hint(named) if isinstance(named, Var) else named.name
    word = re.sub(r"\W", "_", unicodedata.normalize("NFKC", wanted)) or "t"
    if not word.isidentifier():
        word = "_" + re.sub(r"\W", "_", word, flags=re.ASCII)
    return word + "_" if keyword.iskeyword(word) else word


def _occurrences(func: Function) -> Iterator[Named | Instruction]:
    """All that has a name, in the order of the text, as often as it stands there; an instruction after its tensors."""
    yield from func.params
    yield from func.metadata.block_indices
    for extent in func.metadata.grid_blocks:
        yield from scalar.free_vars(extent)
    yield from _in_block(blocks.block_of(func.body))


def _in_block(block: Block) -> Iterator[Named | Instruction]:
    for line in block:
        yield from _in_line(line)


def _in_line(line: Line) -> Iterator[Named | Instruction]:
    match line:
        case Let(var=var, value=value) | stmts.AssignStmt(var=var, value=value):
            yield var
            yield from _in_exprs(value)
        case stmts.DeclareStmt(var=var, init=init):
            yield var
            yield from _in_exprs(init)
        case Scope(body=body):
            yield from _in_block(body)
        case stmts.ForStmt():
            yield line.iter_var
            yield from _in_exprs(line.extent)
            yield from _in_block(blocks.block_of(line.body))
        case stmts.WhileStmt():
            yield from _in_exprs(line.cond)
            yield from _in_block(blocks.block_of(line.body))
        case stmts.IfStmt():
            yield from _in_exprs(line.cond)
            yield from _in_block(blocks.block_of(line.then_body))
            yield from _in_block(blocks.block_of(line.else_body))
        case stmts.TensorItemValueStmt(var=var, tensor=tensor, offsets=offsets):
            yield var
            yield tensor
            yield from _in_exprs(*offsets)
        case stmts.TensorItemPtrStmt(ptr_var=var, tensor=tensor, offsets=offsets):
            yield var
            yield tensor
            yield from _in_exprs(*offsets)
        case stmts.InstStmt():
            yield from _in_instruction(line.inst)
        case _:
            return


def _in_instruction(inst: Instruction) -> Iterator[Named | Instruction]:
    for tensor in (inst.output, *inst.inputs):
        if tensor is None:
            continue
        yield tensor
        if isinstance(tensor, GlobalTensor):
            yield from _in_exprs(*tensor.layout.shape, *tensor.layout.strides)
    yield inst
    bound = inst.bound_vars
    yield from (var for var in _in_exprs(*inst.exprs) if var not in bound)


def _in_exprs(*exprs: Expr | None) -> Iterator[Var]:
    for expr in exprs:
        if expr is not None:
            yield from scalar.free_vars(expr)
