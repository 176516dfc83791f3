# SPDX-License-Identifier: Apache-2.0
"""Parts of shared and register tensors that begin outside of them, whatever the arguments are.

Two proofs are known. Every value that an offset can have is outside; or one round of a loop is, and all rounds come to
the access: the number of rounds is a constant, nothing leaves the loop early, and no condition stands in between.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product

from tilekit.diag import errors
from tilekit.diag.span import Span
from tilekit.ir import stmt as stmts
from tilekit.ir.analysis.scalar_analysis import Fact, Facts, analyze
from tilekit.ir.func import Function
from tilekit.ir.inst import Instruction
from tilekit.ir.instructions.shared import SliceSharedInst
from tilekit.ir.instructions.transform import SliceAssignInst, SliceRegisterInst
from tilekit.ir.stmt import Stmt
from tilekit.ir.tensor import RegisterTensor, SharedTensor
from tilekit.ir.text.names import Names
from tilekit.ir.tools.instruction_collector import collect
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Expr, Var

_SLICES = (SliceSharedInst, SliceRegisterInst, SliceAssignInst)


def check(func: Function) -> None:
    """Raise a `VerificationError` at the first part of a tensor that is proven to lie outside of it."""
    items = (stmts.TensorItemValueStmt, stmts.TensorItemPtrStmt)
    if collect(func, _SLICES) or any(isinstance(item.tensor, SharedTensor) for item in collect(func, items)):
        _Parts(func).statement(func.body)


@dataclass(frozen=True)
class _Along:
    """One dimension of a part: `extent` elements from `start` on, of `size`."""

    tensor: RegisterTensor | SharedTensor
    dim: int
    start: Expr
    extent: int

    @property
    def size(self) -> int:
        return self.tensor.shape[self.dim]

    def is_outside(self, start: Fact) -> bool:
        return start.high < 0 or start.low > self.size - self.extent


class _Parts:
    """Walks a function, with the loops around of which every round comes here."""

    def __init__(self, func: Function) -> None:
        self.func = func
        self.facts = Facts.from_analysis(analyze(func))
        self.assigned = {stmt.var for stmt in collect(func, stmts.AssignStmt)}
        # what variables stand for that have one value
        self.values: dict[Var, Expr] = {}
        self.loops: dict[Var, stmts.ForStmt] = {}

    # ------------------------------------------------------------------------------------------------- statements

    def statement(self, stmt: Stmt) -> None:
        match stmt:
            case stmts.SeqStmt(seq=seq):
                for child in seq:
                    self.statement(child)
            case stmts.LetStmt():
                self.values.update(zip(stmt.bind_vars, stmt.bind_values, strict=True))
                self.statement(stmt.body)
            case stmts.DeclareStmt(var=var, init=init) if init is not None and var not in self.assigned:
                self.values[var] = init
            case stmts.ForStmt():
                self.loop(stmt)
            case stmts.WhileStmt(cond=cond, body=body):
                if self.facts.of(cond).value != 0:
                    with self.only_now_and_then():
                        self.statement(body)
            case stmts.IfStmt():
                self.branch(stmt)
            case stmts.InstStmt(inst=SliceSharedInst() | SliceRegisterInst() | SliceAssignInst() as inst):
                self.slice(inst, inst.span or stmt.span)
            case (
                stmts.TensorItemValueStmt(tensor=SharedTensor() as tensor, offsets=offsets)
                | stmts.TensorItemPtrStmt(tensor=SharedTensor() as tensor, offsets=offsets)
            ):
                for dim, start in enumerate(offsets):
                    self.part(_Along(tensor, dim, start, 1), stmt.span)
            case _:
                pass

    def loop(self, loop: stmts.ForStmt) -> None:
        count = scalar.constant_value(loop.extent)
        if self.facts.of(loop.extent).high <= 0:
            return
        if count is None or collect(loop.body, (stmts.BreakStmt, stmts.ReturnStmt)):
            with self.only_now_and_then():
                self.statement(loop.body)
            return
        self.loops[loop.iter_var] = loop
        self.statement(loop.body)
        self.loops.pop(loop.iter_var, None)

    def branch(self, stmt: stmts.IfStmt) -> None:
        holds = self.facts.of(stmt.cond).value
        with self.only_now_and_then():
            if holds != 0:
                self.statement(stmt.then_body)
            if holds != 1 and stmt.else_body is not None:
                self.statement(stmt.else_body)

    @contextmanager
    def only_now_and_then(self) -> Generator[None]:
        """Some rounds of the loops around may leave out what is inside."""
        outer, self.loops = self.loops, {}
        yield
        self.loops = outer

    # ------------------------------------------------------------------------------------------------------ parts

    def slice(self, inst: Instruction, span: Span | None) -> None:
        assert isinstance(inst, (SliceSharedInst, SliceRegisterInst, SliceAssignInst))
        part = inst.value if isinstance(inst, SliceAssignInst) else inst.output
        assert isinstance(part, (RegisterTensor, SharedTensor))
        extents = dict(zip(inst.dims, part.shape, strict=True))
        for dim, start in enumerate(inst.offsets):
            self.part(_Along(inst.x, dim, start, extents.get(dim, 1)), span)

    def part(self, along: _Along, span: Span | None) -> None:
        if along.is_outside(fact := self.facts.of(along.start)):
            raise self.error(along, fact, span)
        reads = self.read_for(along.start)
        loops = [loop for var, loop in self.loops.items() if var in reads]
        for rounds in _extremes(loops):
            if along.is_outside(fact := self.facts_in(rounds, reads).of(along.start)):
                error = self.error(along, fact, span)
                for loop in loops:
                    which = "first" if rounds[loop.iter_var] == 0 else "last"
                    error.noted(f"it is so in the {which} round of this loop", loop.span)
                raise error

    def read_for(self, expr: Expr) -> set[Var]:
        """The variables that an expression is computed from, and those that these are."""
        found: set[Var] = set()
        waiting = [expr]
        while waiting:
            new = set(scalar.free_vars(waiting.pop())) - found
            found |= new
            waiting += [self.values[var] for var in new if var in self.values]
        return found

    def facts_in(self, rounds: Mapping[Var, int], reads: Set[Var]) -> Facts:
        """What is known in these rounds of loops of the variables that something reads."""
        variables = {**self.facts.variables, **{var: Fact.exactly(at) for var, at in rounds.items()}}
        # each after those that it is computed from
        for var, value in self.values.items():
            if var in reads and (fact := Facts(variables).maybe(value)) is not None:
                variables[var] = fact
        return Facts(variables)

    def error(self, along: _Along, start: Fact, span: Span | None) -> errors.VerificationError:
        name = Names.of_function(self.func).name(along.tensor)
        last = start.low + along.extent - 1
        if start.value is not None:
            which = f"element {start.low}" if along.extent == 1 else f"elements {start.low} to {last}"
        elif start.high < 0:
            which = "an element before the first"
        else:
            which = f"element {last} or a later one"
        message = f"{which} of {name} along dimension {along.dim}, which has {along.size} elements"
        return errors.VerificationError("TK702", f"this takes {message}", at=span)


def _extremes(loops: Sequence[stmts.ForStmt]) -> Iterator[Mapping[Var, int]]:
    """The first and the last round of each loop, in every combination; nothing for no loop."""
    variables = [loop.iter_var for loop in loops]
    ends = [(0, scalar.constant_value(loop.extent) - 1) for loop in loops]
    for places in product(*ends) if loops else ():
        yield dict(zip(variables, places, strict=True))
