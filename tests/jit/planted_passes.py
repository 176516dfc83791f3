# SPDX-License-Identifier: Apache-2.0
"""Ten passes with the mistakes that people make in compilers, each with a kernel and ragged sizes that show it.

They read like passes that somebody means: the docstring says what was thought, the comment under it what was forgotten.
With them stand passes that change programs and leave them right, so that there is somebody else to suspect.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from tests.kernels.machines import poisoned, scheduled
from tests.kernels.matmul import scripts
from tests.kernels.test_elementwise import Integers
from tests.kernels.test_layer_norm import LAYER_NORM
from tests.kernels.test_softmax import SOFTMAX
from tests.kernels.test_transpose import TRANSPOSE
from tilekit import dtypes
from tilekit.ir.func import Function
from tilekit.ir.functors import IRRewriter
from tilekit.ir.functors.functor import Substitution
from tilekit.ir.inst import Instruction
from tilekit.ir.instructions.copy_async import CopyAsyncInst, CopyAsyncWaitAllInst, CopyAsyncWaitGroupInst
from tilekit.ir.instructions.dot import DotInst
from tilekit.ir.instructions.elementwise import (
    AddInst,
    CastInst,
    ElementwiseBinaryInst,
    ElementwiseUnaryInst,
    MulInst,
    WhereInst,
)
from tilekit.ir.instructions.memory import LoadGlobalGenericInst, LoadGlobalInst
from tilekit.ir.instructions.register import AllocateRegisterInst, AssignInst
from tilekit.ir.instructions.shared import (
    AllocateSharedInst,
    PermuteSharedInst,
    ReshapeSharedInst,
    SliceSharedInst,
    StoreSharedInst,
)
from tilekit.ir.instructions.sync import SyncThreadsInst
from tilekit.ir.layout.shared_layout import SharedLayout, shared_layout
from tilekit.ir.stmt import BreakStmt, ForStmt, InstStmt, LetStmt, SeqStmt, Stmt
from tilekit.ir.tensor import RegisterTensor, SharedTensor, Tensor
from tilekit.ir.tools import collect_instructions
from tilekit.ir.tools.instruction_collector import collect
from tilekit.lowir import scalar
from tilekit.lowir.nodes import LessThan
from tilekit.lowir.scalar import Expr, Var
from tilekit.transforms import Pass, after
from tilekit.transforms.custom import Change


def _is(stmt: Stmt, *classes: type[Instruction]) -> bool:
    return isinstance(stmt, InstStmt) and isinstance(stmt.inst, classes)


def _flat(stmt: SeqStmt) -> list[Stmt]:
    """The statements of a sequence, those of sequences in it too."""
    return [each for child in stmt.seq for each in (_flat(child) if isinstance(child, SeqStmt) else [child])]


def _made_by(func: Function) -> dict[Tensor, Instruction]:
    """Who makes each tensor that is written once."""
    instructions = collect_instructions(func)
    writes = Counter(tensor for inst in instructions for tensor in inst.writes)
    return {inst.output: inst for inst in instructions if inst.output is not None and writes[inst.output] == 1}


def _sequence(*instructions: Instruction) -> SeqStmt:
    return SeqStmt(tuple(InstStmt(inst, span=inst.span) for inst in instructions))


# --------------------------------------------------------------------------------------------------- the wrong passes


class MergeBarriersPass(Pass):
    """Where nobody wrote to shared memory since the last barrier, another one has nothing to wait for."""

    # it has: those who read must be done before the next turn of the loop writes
    def process_function(self, func: Function) -> Function:
        return _MergeBarriers().visit(func)


class _MergeBarriers(IRRewriter):
    def visit_SeqStmt(self, stmt: SeqStmt) -> Stmt:
        kept: list[Stmt] = []
        written = True
        whole = super().visit_SeqStmt(stmt)
        for child in _flat(whole):
            if _is(child, SyncThreadsInst):
                if not written:
                    continue
                written = False
            elif not isinstance(child, InstStmt) or _is(child, StoreSharedInst, CopyAsyncInst):
                written = True
            kept.append(child)
        return whole if len(kept) == len(_flat(whole)) else stmt.replace(seq=tuple(kept))


class LateWaitsPass(Pass):
    """A wait stands as late as it can: behind a barrier, where the copies have had more time."""

    # a thread waits for its own copies, and it is the barrier after that which tells of those of others
    def process_function(self, func: Function) -> Function:
        return _LateWaits().visit(func)


class _LateWaits(IRRewriter):
    def visit_SeqStmt(self, stmt: SeqStmt) -> Stmt:
        whole = super().visit_SeqStmt(stmt)
        children = _flat(whole)
        moved = False
        for at, (wait, barrier) in enumerate(itertools.pairwise(list(children))):
            if _is(wait, CopyAsyncWaitGroupInst, CopyAsyncWaitAllInst) and _is(barrier, SyncThreadsInst):
                children[at : at + 2] = barrier, wait
                moved = True
        return stmt.replace(seq=tuple(children)) if moved else whole


class ColumnRasterPass(Pass):
    """Blocks that run at a time work on one column of tiles, so that they share what they read of it."""

    # the grid keeps its extents: where it is not square, tiles are left out and others are beyond the end
    def process_function(self, func: Function) -> Function:
        x, y, _ = func.metadata.block_indices
        return func.with_body(Substitution({x: y, y: x}).visit(func.body))


class InclusiveMasksPass(Pass):
    """The comparison along the contiguous dimension says which position is the last: `<=` and not `<`."""

    # the last one is one before the limit
    def process_function(self, func: Function) -> Function:
        return _InclusiveMasks().visit(func)


class _InclusiveMasks(IRRewriter):
    def visit_LoadGlobalGenericInst(self, inst: LoadGlobalGenericInst) -> Instruction:
        return inst if inst.mask is None else inst.replace(mask=self.inclusive(inst.mask, inst.axes[-1]))

    def inclusive(self, expr: Expr, axis: Var) -> Expr:
        if isinstance(expr, LessThan) and axis in scalar.free_vars(expr.a):
            return scalar.le(expr.a, expr.b)
        return scalar.rebuild(expr, [self.inclusive(part, axis) for part in scalar.children(expr)])


class PadSharedPass(Pass):
    """Rows of shared memory are 16 bytes longer than their elements, so that columns lie in different banks."""

    # the tiles of a stack of them are as far apart as if their rows were not
    def process_function(self, func: Function) -> Function:
        layouts: dict[Tensor, SharedLayout] = {}
        for inst in collect_instructions(func):
            if isinstance(inst, AllocateSharedInst) and len(inst.shared_output.shape) >= 2:
                layouts[inst.shared_output] = _padded(inst.shared_output)
            elif isinstance(inst, SliceSharedInst | PermuteSharedInst | ReshapeSharedInst) and inst.x in layouts:
                seen = inst.seen(layouts[inst.x])
                if seen is None:
                    return func
                layouts[inst.shared_output] = seen
        return Substitution({old: _laid_out(old, layout) for old, layout in layouts.items()}).visit(func)


def _padded(tensor: SharedTensor) -> SharedLayout:
    *head, rows, columns = tensor.shape
    strides = [1, columns + 16 // tensor.dtype.nbytes]
    step = rows * columns
    for extent in reversed(head):
        strides.append(step)
        step *= extent
    return shared_layout(tensor.shape, tensor.shape, strides[::-1])


def _laid_out(tensor: Tensor, layout: SharedLayout) -> Tensor:
    return tensor.replace(optional_layout=layout)


class UnrollByTwoPass(Pass):
    """Two turns of a loop become one, so that there is more to overlap."""

    # an odd number of turns has one more
    def process_function(self, func: Function) -> Function:
        return _UnrollByTwo().visit(func)


class _UnrollByTwo(IRRewriter):
    def visit_ForStmt(self, stmt: ForStmt) -> Stmt:
        if scalar.is_constant(stmt.extent) or collect(stmt.body, (ForStmt, BreakStmt)):
            return super().visit_ForStmt(stmt)
        pair = scalar.var("pair", dtypes.int32)
        first = scalar.mul(pair, scalar.int32(2))
        turns = [_copy(stmt.body, {stmt.iter_var: turn}) for turn in (first, scalar.add(first, scalar.int32(1)))]
        half = scalar.floordiv(stmt.extent, scalar.int32(2))
        return stmt.replace(iter_var=pair, extent=half, body=SeqStmt(tuple(turns)))


def _copy(body: Stmt, values: dict[Var, Expr]) -> Stmt:
    """The body once more, with these values, and with names of its own."""
    names = {
        var: scalar.var(scalar.name_hint(var), scalar.dtype_of(var))
        for let in collect(body, LetStmt)
        for var in let.bind_vars
    }
    return Substitution({**values, **names}).visit(body)


class NarrowSumsPass(Pass):
    """Products of float16 that become float16 in the end are summed up in float16: half the registers."""

    # each step of the sum is rounded, not the end of it alone
    def process_function(self, func: Function) -> Function:
        sums = {
            inst.register_output
            for inst in collect(func, DotInst)
            if inst.a.dtype is dtypes.float16 and inst.register_output.dtype is dtypes.float32
        }
        return _NarrowSums({tile: tile.replace(dtype=dtypes.float16) for tile in sums}).visit(func)


class _NarrowSums(Substitution):
    def visit_AllocateRegisterInst(self, inst: AllocateRegisterInst) -> Any:
        if inst.output not in self.replacements or inst.init is None:
            return super().visit_Instruction(inst)
        return inst.replace(output=self.visit(inst.output), init=scalar.cast(inst.init, dtypes.float16))

    def visit_CastInst(self, inst: CastInst) -> Any:
        if inst.x not in self.replacements or inst.register_output.dtype is not dtypes.float16:
            return super().visit_Instruction(inst)
        return AssignInst(inst.output, self.visit(inst.x), span=inst.span)


class UnsignedDivisionPass(Pass):
    """A division of numbers without signs takes fewer instructions: they are put aside, and back on the quotient."""

    # that rounds towards zero, and `//` rounds down
    def process_function(self, func: Function) -> Function:
        return _UnsignedDivision().visit(func)


class _UnsignedDivision(IRRewriter):
    def visit_ElementwiseBinaryInst(self, inst: ElementwiseBinaryInst) -> Any:
        out = inst.register_output
        if inst.op != "floordiv" or inst.x.shape != out.shape or inst.y.shape != out.shape:
            return inst
        zeros = AllocateRegisterInst.create(_tile(out, out.dtype), lambda _: scalar.constant(out.dtype, 0))
        zero = zeros.register_output
        x, y = (ElementwiseUnaryInst(_tile(out, out.dtype), t, "abs") for t in (inst.x, inst.y))
        quotient = ElementwiseBinaryInst(_tile(out, out.dtype), x.register_output, y.register_output, "floordiv")
        turned = ElementwiseUnaryInst(_tile(out, out.dtype), quotient.register_output, "neg")
        signs = [ElementwiseBinaryInst(_tile(out, dtypes.boolean), t, zero, "less") for t in (inst.x, inst.y)]
        first, second = (sign.register_output for sign in signs)
        differ = ElementwiseBinaryInst(_tile(out, dtypes.boolean), first, second, "not_equal")
        chosen = WhereInst(out, differ.register_output, turned.register_output, quotient.register_output)
        return _sequence(zeros, x, y, quotient, turned, *signs, differ, chosen)


def _tile(like: RegisterTensor, dtype: dtypes.DataType) -> RegisterTensor:
    return RegisterTensor.create(dtype, like.shape)


class EarlyStoresPass(Pass):
    """A tile goes to shared memory as soon as it is there, and its registers are free again."""

    # what others still read there is overwritten: the barrier between was for them
    def process_function(self, func: Function) -> Function:
        return _EarlyStores().visit(func)


class _EarlyStores(IRRewriter):
    def visit_SeqStmt(self, stmt: SeqStmt) -> Stmt:
        whole = super().visit_SeqStmt(stmt)
        children = _flat(whole)
        moved = False
        for store in list(children):
            if not isinstance(store, InstStmt) or not isinstance(store.inst, StoreSharedInst):
                continue
            makers = [s for s in children if isinstance(s, InstStmt) and s.inst.output is store.inst.x]
            if len(makers) != 1 or children.index(makers[0]) + 1 >= children.index(store):
                continue
            children.remove(store)
            children.insert(children.index(makers[0]) + 1, store)
            moved = True
        return stmt.replace(seq=tuple(children)) if moved else whole


class ImplicitPaddingPass(Pass):
    """A load that is out of bounds gives what it pads with, so nobody has to choose the padding behind it."""

    # it pads with zero, whatever was chosen
    def process_function(self, func: Function) -> Function:
        return _ImplicitPadding(_made_by(func)).visit(func)


class _ImplicitPadding(IRRewriter):
    def __init__(self, made_by: dict[Tensor, Instruction]) -> None:
        super().__init__()
        self.made_by = made_by

    def visit_WhereInst(self, inst: WhereInst) -> Instruction:
        cond, x = self.made_by.get(inst.cond), self.made_by.get(inst.x)
        loaded = self.made_by.get(x.x) if isinstance(x, CastInst) else x
        bounded = isinstance(cond, ElementwiseBinaryInst) and cond.op == "less"
        if not bounded or not isinstance(loaded, LoadGlobalInst) or inst.x.shape != inst.register_output.shape:
            return inst
        return AssignInst(inst.output, inst.x, span=inst.span)


# ------------------------------------------------------------------------------------------------- the innocent passes


class CommuteSumsPass(Pass):
    """y + x for x + y."""

    def process_function(self, func: Function) -> Function:
        return _CommuteSums().visit(func)


class _CommuteSums(IRRewriter):
    def visit_AddInst(self, inst: AddInst) -> Instruction:
        return inst.replace(x=inst.y, y=inst.x)


class RegroupProductsPass(Pass):
    """x * (y * z) for (x * y) * z: floats are rounded elsewhere, and not worse."""

    def process_function(self, func: Function) -> Function:
        made_by = _made_by(func)
        return _RegroupProducts(made_by, made_by.keys()).visit(func)


class _RegroupProducts(IRRewriter):
    def __init__(self, made_by: dict[Tensor, Instruction], once: Any) -> None:
        super().__init__()
        self.made_by, self.once = made_by, once

    def visit_MulInst(self, inst: MulInst) -> Any:
        first = self.made_by.get(inst.x)
        if not isinstance(first, MulInst) or not {first.x, first.y, inst.y} <= self.once:
            return inst
        later = MulInst.create(first.y, inst.y)
        return _sequence(later, MulInst(inst.output, first.x, later.register_output, span=inst.span))


class MoreBarriersPass(Pass):
    """A barrier before everything that is stored to shared memory."""

    def process_function(self, func: Function) -> Function:
        return _MoreBarriers().visit(func)


class _MoreBarriers(IRRewriter):
    def visit_StoreSharedInst(self, inst: StoreSharedInst) -> Stmt:
        return _sequence(SyncThreadsInst.create(), inst)


class NameTilesPass(Pass):
    """A tile without a name is called after the instruction that makes it."""

    def process_function(self, func: Function) -> Function:
        named = {
            tile: tile.replace(name=inst.opcode)
            for tile, inst in _made_by(func).items()
            if isinstance(tile, RegisterTensor) and not tile.name
        }
        return Substitution(named).visit(func) if named else func


# ------------------------------------------------------------------------------------------------- who shows them


@dataclass(frozen=True)
class Planted:
    """A wrong pass at its place, among `company`, and a kernel with arguments that it makes wrong."""

    wrong: Change
    kernel: Any
    arguments: Callable[[], Sequence[Any]]
    company: tuple[Change, ...] = ()

    @property
    def name(self) -> str:
        return self.wrong.own.name if self.wrong.own else ""

    @property
    def changes(self) -> tuple[Change, ...]:
        """The first of the company before the wrong pass, the others after it."""
        return (*self.company[:1], self.wrong, *self.company[1:])


def product(m: int, n: int, k: int) -> Callable[[], Sequence[Any]]:
    return lambda: (m, n, k, torch.randn(m, k).half(), torch.randn(k, n).half(), poisoned(m, n, dtype=torch.float16))


def turned(m: int, n: int) -> Callable[[], Sequence[Any]]:
    return lambda: (m, n, torch.randn(m, n), poisoned(n, m, dtype=torch.float32))


def normalized(m: int, n: int) -> Callable[[], Sequence[Any]]:
    return lambda: (
        *(m, n, torch.randn(m, n), torch.randn(n), torch.randn(n), poisoned(m, n, dtype=torch.float32)),
        1e-5,
    )


def rows(m: int, n: int) -> Callable[[], Sequence[Any]]:
    return lambda: (m, n, torch.randn(m, n).half(), poisoned(m, n, dtype=torch.float16))


def integers(n: int) -> Callable[[], Sequence[Any]]:
    def make() -> Sequence[Any]:
        divisors = torch.randint(1, 100, (n,), dtype=torch.int32) * (
            2 * torch.randint(0, 2, (n,), dtype=torch.int32) - 1
        )
        numbers = torch.randint(-(2**31), 2**31, (n,), dtype=torch.int32)
        return n, numbers, divisors, torch.full((10, n), 7, dtype=torch.int32)

    return make


def small(script: Any, **schedule: int) -> Any:
    return scheduled(script, schedule)


PIPELINED = small(scripts.pipelined(), block_m=64, block_n=64, warps=4, block_k=32, stages=3)
TUNED = small(scripts.tuned(), block_m=64, block_n=64, block_k=32, warps=4)

PLANTED = [
    Planted(
        after("dead_code_elimination#1", MergeBarriersPass()),
        scripts.through_shared(),
        product(67, 93, 41),
        (after("copy_elimination", NameTilesPass()), after("lower_load_store", NameTilesPass())),
    ),
    Planted(after("layout_inference", LateWaitsPass()), PIPELINED, product(37, 72, 104)),
    Planted(after("lower_assume", ColumnRasterPass()), TRANSPOSE[torch.float32], turned(67, 93)),
    Planted(
        after("lower_load_store", InclusiveMasksPass()),
        LAYER_NORM[torch.float32],
        normalized(21, 781),
        (after("copy_elimination", RegroupProductsPass()),),
    ),
    Planted(after("layout_inference", PadSharedPass()), PIPELINED, product(37, 72, 104)),
    Planted(
        after("dead_code_elimination#1", UnrollByTwoPass()),
        scripts.naive(),
        product(67, 93, 70),
        (after("let_propagation", NameTilesPass()), after("lower_load_store", MoreBarriersPass())),
    ),
    Planted(after("dead_code_elimination#1", NarrowSumsPass()), scripts.naive(), product(67, 93, 1000)),
    Planted(
        after("copy_elimination", UnsignedDivisionPass()),
        Integers(),
        integers(500),
        (after("declare_to_let", CommuteSumsPass()), after("layout_inference", NameTilesPass())),
    ),
    Planted(
        after("dead_code_elimination#1", EarlyStoresPass()),
        TUNED,
        product(67, 93, 70),
        (after("let_propagation", MoreBarriersPass()),),
    ),
    Planted(
        after("copy_elimination", ImplicitPaddingPass()),
        SOFTMAX[torch.float16],
        rows(37, 781),
        (after("let_propagation", CommuteSumsPass()), after("dead_code_elimination#1", NameTilesPass())),
    ),
]
