# SPDX-License-Identifier: Apache-2.0
"""Copies in programs that do little else: what is stored must stay the same, whichever copies are removed."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilekit import dtypes
from tilekit.ir.evaluator import evaluate
from tilekit.ir.func import Function, Metadata
from tilekit.ir.inst import Instruction
from tilekit.ir.instructions.generic import (
    AddInst,
    AllocateRegisterInst,
    AssignInst,
    GlobalViewInst,
    ReduceInst,
    StoreGlobalInst,
)
from tilekit.ir.prog import Program
from tilekit.ir.stmt import BreakStmt, ForStmt, IfStmt, InstStmt, SeqStmt, Stmt
from tilekit.ir.tensor import GlobalLayout, GlobalTensor, RegisterTensor
from tilekit.ir.tools import collect, verify
from tilekit.lowir import scalar
from tilekit.transforms import copy_elimination_pass

I32, I64 = dtypes.int32, dtypes.int64
CELLS = 64


def number(value: int) -> scalar.Expr:
    return scalar.constant(I32, value)


class Writer:
    """Draws statements over tiles of one element, which are written again and again, and copied."""

    def __init__(self, draw: st.DrawFn):
        self.draw = draw
        self.memory = GlobalTensor.create(I64, GlobalLayout.row_major((number(CELLS),)))
        self.stores = 0

    def pick(self, options):
        return self.draw(st.sampled_from(list(options)))

    def tile(self, tiles):
        """A tile to write, a new one as often as one that holds something."""
        return self.pick([RegisterTensor.create(I64, (1,)), self.pick(tiles)])

    def assign(self, tiles):
        return AssignInst.create(self.tile(tiles), self.pick(tiles))

    def add(self, tiles):
        return AddInst.create(self.pick(tiles), self.pick(tiles), self.tile(tiles))

    def sum(self, tiles):
        return ReduceInst.create(self.pick(tiles), 0, "sum", True, self.tile(tiles))

    def fresh(self, tiles):
        value = self.pick(range(10))
        return AllocateRegisterInst.create(self.tile(tiles), lambda _: value)

    def store(self, tiles):
        self.stores += 1
        return StoreGlobalInst.create(self.memory, self.pick(tiles), [number(self.stores % CELLS)], [0])

    def block(self, tiles, depth: int, in_loop: bool) -> Stmt:
        tiles = list(tiles)
        lines: list[Stmt] = []
        for _ in range(self.pick(range(1, 7))):
            kinds = [self.assign, self.assign, self.assign, self.add, self.add, self.sum, self.fresh, self.store]
            kind = self.pick([*kinds, ForStmt, IfStmt] if depth else kinds)
            if kind is ForStmt:
                body = self.block(tiles, depth - 1, True)
                lines.append(ForStmt(scalar.var("i", I32), number(self.pick(range(1, 4))), body))
            elif kind is IfStmt:
                condition = scalar.eq(scalar.block_idx(0), number(self.pick(range(2))))
                lines.append(IfStmt(condition, self.block(tiles, depth - 1, in_loop)))
            else:
                inst = kind(tiles)
                lines.append(InstStmt(inst))
                tiles += [t for t in inst.register_tensors if t not in tiles]
        if in_loop and self.pick([True, False, False]):
            lines.append(BreakStmt())
        return SeqStmt.create(lines)


@st.composite
def programs(draw: st.DrawFn) -> Program:
    writer, pointer = Writer(draw), scalar.var("p", ~I64)
    first = RegisterTensor.create(I64, (1,))
    body = SeqStmt.create(
        [
            InstStmt(GlobalViewInst.create(writer.memory, pointer)),
            InstStmt(AllocateRegisterInst.create(first, lambda _: 3)),
            writer.block([first], 2, False),
            InstStmt(writer.store([first])),
        ]
    )
    metadata = Metadata.create([number(1)] * 3, (1, 1, 1), list(map(scalar.block_idx, range(3))), 1)
    return Program.create({"f": Function.create("f", [pointer], body, metadata)})


def stored(prog: Program) -> list[int]:
    memory = np.zeros(CELLS, np.int64)
    evaluate.run(prog, [memory])
    return memory.tolist()


@given(programs())
def test_removing_copies_changes_nothing_that_is_stored(prog):
    keeps_what_is_stored(prog)


@pytest.mark.slow
@settings(max_examples=2000)
@given(programs())
def test_removing_copies_of_many_programs_changes_nothing_that_is_stored(prog):
    keeps_what_is_stored(prog)


def keeps_what_is_stored(prog):
    verify(prog)
    after = copy_elimination_pass()(prog)
    verify(after)
    assert stored(after) == stored(prog)


@given(programs())
def test_no_copy_is_left_of_one_tile_that_is_written_once_to_another(prog):
    instructions = collect(copy_elimination_pass()(prog), Instruction)
    writes = Counter(inst.output for inst in instructions)
    copies = [inst for inst in instructions if isinstance(inst, AssignInst)]
    assert not [copy for copy in copies if writes[copy.output] == writes[copy.x] == 1]
