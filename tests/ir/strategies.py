# SPDX-License-Identifier: Apache-2.0
"""Random programs that verify and run: every instruction, every statement, awkward names and numbers.

A program has the parameters `n`, `m` and one pointer for each of some dtypes. Each block works on `n * m` elements of
its own behind every pointer, and synchronizes around its stores, so that the result is the same on every machine; with
`exact` it is the same to the last bit.
"""

import keyword
from dataclasses import dataclass, field, replace

import numpy as np
from hypothesis import strategies as st

from tests.lowir import expressions
from tilekit import dtypes
from tilekit.dtypes import PointerType
from tilekit.ir import stmt as stmts
from tilekit.ir.func import Analysis, Function, Metadata
from tilekit.ir.instructions import (
    assume,
    copy_async,
    dot,
    elementwise,
    memory,
    print,
    reduce,
    register,
    semaphore,
    shared,
    sync,
    transform,
    workspace,
)
from tilekit.ir.layout import ops
from tilekit.ir.prog import Program
from tilekit.ir.tensor import GlobalLayout, GlobalTensor, RegisterTensor, SharedTensor
from tilekit.lowir import scalar
from tilekit.lowir.functions import FUNCTIONS
from tilekit.lowir.scalar import Type

I32 = dtypes.int32
MAX_BLOCKS = 2
SHAPES = ((), (4,), (1,), (2, 4), (2, 1), (1, 4), (8, 16), (2, 2, 4), (1, 1, 4))
NAMES = ("", "x", "x", "acc", "acc", "acc_1", "i", "n", "lambda", "None", "block_idx_x", "f32", "exp", "reduce", "Let")
ODD_NAMES = ("été", "a b", "1st", "x²", "_", "match", "kernel", "true", "t", "ﬁ")
names = st.sampled_from([*NAMES, *ODD_NAMES])

INEXACT_FUNCTIONS = (elementwise.UNARY.keys() & FUNCTIONS.keys()) - set(expressions.EXACT)


@dataclass
class Scope:
    """What a statement may use, and what it may not do."""

    readable: dict = field(default_factory=dict)  # dtype -> scalar variables with a value
    mutable: tuple = ()
    tiles: tuple = ()  # written
    views: tuple = ()
    in_loop: bool = False
    depth: int = 2

    def inner(self, **changes):
        copied = {dtype: list(variables) for dtype, variables in self.readable.items()}
        return replace(self, readable=copied, depth=self.depth - 1, **changes)

    def add(self, var):
        self.readable.setdefault(scalar.dtype_of(var), []).append(var)


class Writer:
    """Draws the parts of one program."""

    def __init__(self, draw, pointers, num_threads, with_layouts, exact):
        self.draw = draw
        self.pointers = pointers  # dtype -> parameter
        self.num_threads = num_threads
        self.with_layouts = with_layouts
        self.functions = expressions.EXACT if exact else tuple(expressions.FUNCTIONS)
        self.exact = exact

    def pick(self, options):
        return self.draw(st.sampled_from(list(options)))

    def maybe(self):
        return self.draw(st.booleans())

    # ------------------------------------------------------------------------------------------- scalars and tiles

    def expr(self, dtype, scope, extra=(), depth=2):
        usable: dict[Type, list] = {
            of: [*scope.readable.get(of, ()), scalar.constant(of, 1)] for of in expressions.SCALARS
        }
        for var in extra:
            usable[scalar.dtype_of(var)] = [var, var, *usable[scalar.dtype_of(var)]]
        expr = self.draw(expressions.expressions(dtype, usable, depth, self.functions))
        return _with_positive_divisors(expr) if self.exact else expr

    def var(self, dtype):
        return scalar.var(self.draw(names), dtype)

    def tile(self, dtype, shape, scope):
        """A new tile, or now and then one that already holds something."""
        old = [t for t in scope.tiles if t.dtype is dtype and t.shape == shape]
        if old and self.draw(st.integers(0, 3)) == 0:
            return self.pick(old)
        layout = ops.auto_local_spatial(self.num_threads, shape) if self.with_layouts and self.maybe() else None
        return RegisterTensor.create(dtype, shape, layout, name=self.draw(names))

    def like(self, x, scope):
        """A tile of the dtype of `x` that broadcasts with it."""
        return self.pick([t for t in scope.tiles if t.dtype is x.dtype and _broadcasts(t.shape, x.shape)])

    def having(self, scope, wanted):
        """A written tile for whose dtype `wanted` holds, or None."""
        tiles = [t for t in scope.tiles if wanted(t.dtype)]
        return self.pick(tiles) if tiles else None

    # ------------------------------------------------------------------------------------------------- statements

    def block(self, scope):
        """Statements, as nested as chance will have it; what they define is in `scope` afterwards."""
        lines = []
        for _ in range(self.draw(st.integers(0, 4))):
            lines.append(self.statement(scope))
        if scope.in_loop and self.draw(st.integers(0, 5)) == 0:
            lines.append(stmts.BreakStmt())
        if self.draw(st.integers(0, 9)) == 0:
            lines.append(stmts.ReturnStmt())
        return stmts.SeqStmt.create(lines) if len(lines) != 1 or self.maybe() else lines[0]

    def statement(self, scope):
        kinds = [self.instruction] * 6 + [self.declare, self.assign, self.let, self.item]
        if scope.depth > 0:
            kinds += [self.branch, self.loop, self.while_loop]
        return self.pick(kinds)(scope)

    def declare(self, scope):
        var = self.var(self.pick(expressions.SCALARS))
        init = self.expr(scalar.dtype_of(var), scope)
        scope.add(var)
        scope.mutable = (*scope.mutable, var)
        if self.maybe():
            return stmts.DeclareStmt(var, init)
        return stmts.SeqStmt.create([stmts.DeclareStmt(var, None), stmts.AssignStmt(var, init)])

    def assign(self, scope):
        if not scope.mutable:
            return self.declare(scope)
        var = self.pick(scope.mutable)
        return stmts.AssignStmt(var, self.expr(scalar.dtype_of(var), scope))

    def let(self, scope):
        inner = scope.inner()
        bound, values = [], []
        for _ in range(self.draw(st.integers(1, 2))):
            var = self.var(self.pick(expressions.SCALARS))
            values.append(self.expr(scalar.dtype_of(var), inner))
            bound.append(var)
            inner.add(var)
        return stmts.LetStmt(tuple(bound), tuple(values), self.block(inner))

    def branch(self, scope):
        other = None
        if self.maybe():
            other = self.branch(scope.inner()) if scope.depth > 1 and self.maybe() else self.block(scope.inner())
        return stmts.IfStmt(self.expr(dtypes.boolean, scope), self.block(scope.inner()), other)

    def loop(self, scope):
        dtype = self.pick([I32, I32, dtypes.int64, dtypes.uint8])
        extent = scalar.constant(I32, self.draw(st.integers(0, 3))) if self.maybe() else self.short(scope)
        extent = scalar.cast(extent, dtype)
        inner = scope.inner(in_loop=True)
        var = self.var(dtype)
        inner.add(var)
        return stmts.ForStmt(var, extent, self.block(inner), self.pick([None, None, -1, 2]))

    def short(self, scope):
        """A number from 0 to 3."""
        return scalar.bitwise_and(self.expr(I32, scope), scalar.constant(I32, 3))

    def while_loop(self, scope):
        count = self.var(dtypes.uint8)
        one = scalar.constant(dtypes.uint8, 1)
        inner = scope.inner(in_loop=True)
        inner.add(count)
        more = scalar.lt(count, scalar.constant(dtypes.uint8, self.draw(st.integers(0, 3))))
        step = stmts.AssignStmt(count, scalar.add(count, one))
        cond = scalar.logical_and(more, self.expr(dtypes.boolean, inner))
        loop = stmts.WhileStmt(cond, stmts.SeqStmt((step, self.block(inner))))
        return stmts.SeqStmt((stmts.DeclareStmt(count, scalar.constant(dtypes.uint8, 0)), loop))

    # ----------------------------------------------------------------------------------------------- instructions

    def instruction(self, scope):
        opcode = self.pick(INSTRUCTIONS)
        inst = INSTRUCTIONS[opcode](self, scope) or self.register_tensor(scope)
        if isinstance(inst, stmts.Stmt):
            return inst
        if inst.output is not None:
            if isinstance(inst.output, GlobalTensor):
                scope.views = (*scope.views, inst.output)
            else:
                scope.tiles = (*scope.tiles, inst.output)
        line = stmts.InstStmt(inst)
        if not isinstance(inst, (memory.StoreGlobalInst, memory.StoreGlobalGenericInst)):
            return line
        barrier = stmts.InstStmt(sync.SyncThreadsInst.create())
        return stmts.SeqStmt.create([barrier, line, barrier])

    def register_tensor(self, scope):
        tile = self.tile(self.pick([*expressions.SCALARS, *self.pointers, *self.pointers]), self.pick(SHAPES), scope)
        return register.AllocateRegisterInst.create(tile, lambda axes: self.expr(tile.dtype, scope, axes))

    def assign_tile(self, scope):
        x = self.having(scope, lambda dtype: True)
        return x and register.AssignInst.create(self.tile(x.dtype, x.shape, scope), x)

    def arithmetic(self, cls, wanted, scope):
        x = self.having(scope, wanted)
        if x is None:
            return None
        pair = self.shuffled(x, self.like(x, scope))
        return self.with_output(lambda out: cls.create(*pair, out), scope)

    def shuffled(self, *tiles):
        return self.draw(st.permutations(tiles))

    def with_output(self, create, scope):
        """The instruction, into a tile of the generator's choice."""
        plain = create(None)
        return create(self.tile(plain.output.dtype, plain.output.shape, scope))

    def unary(self, scope):
        op = self.pick(sorted(set(elementwise.UNARY) - (INEXACT_FUNCTIONS if self.exact else frozenset())))
        x = self.having(scope, lambda dtype: _unary_takes(op, dtype))
        return x and self.with_output(lambda out: elementwise.ElementwiseUnaryInst.create(x, op, out), scope)

    def binary(self, scope):
        # dividing by zero and shifting by more than the width mean nothing, and so nothing that can be compared
        op = self.pick(sorted(set(elementwise.BINARY) - {"floordiv", "mod", "left_shift", "right_shift"}))
        x = self.having(scope, lambda dtype: _binary_takes(op, dtype))
        if x is None:
            return None
        x, y = self.shuffled(x, self.like(x, scope))
        return self.with_output(lambda out: elementwise.ElementwiseBinaryInst.create(x, y, op, out), scope)

    def cast(self, scope):
        x = self.having(scope, lambda dtype: True)
        return x and elementwise.CastInst.create(x, self.tile(self.pick(expressions.SCALARS), x.shape, scope))

    def where(self, scope):
        cond = self.having(scope, lambda dtype: dtype is dtypes.boolean)
        if cond is None:
            return None
        x = self.pick([t for t in scope.tiles if _broadcasts(t.shape, cond.shape)])
        fitting = [t for t in scope.tiles if t.dtype is x.dtype and _broadcasts(t.shape, cond.shape, x.shape)]
        y = self.pick(fitting)
        return self.with_output(lambda out: elementwise.WhereInst.create(cond, x, y, out), scope)

    def reduce(self, scope):
        op = self.pick(reduce.REDUCTIONS)
        logical = op in ("any", "all")
        inexact = self.exact and op == "sum"
        x = self.having(scope, lambda d: (d is dtypes.boolean) == logical and not (inexact and d.is_float()))
        if x is None:
            return None
        dims = sorted(self.draw(st.sets(st.sampled_from(range(len(x.shape)))))) if x.shape else []
        keepdim = self.maybe()
        return self.with_output(lambda out: reduce.ReduceInst.create(x, dims, op, keepdim, out), scope)

    def global_view(self, scope):
        dtype = self.pick(self.pointers)
        n, m = scope.readable[I32][:2]
        base = scalar.mul(scalar.block_idx(0), scalar.mul(n, m))
        shape = self.pick([(n, m), (scalar.mul(n, m),)])
        layout = GlobalLayout.row_major(shape)
        if len(shape) == 2 and self.maybe():
            one, wide = scalar.constant(dtypes.int64, 1), scalar.cast(n, dtypes.int64)
            layout = GlobalLayout((n, m), (one, wide))
        view = GlobalTensor.create(dtype, layout, name=self.draw(names))
        return memory.GlobalViewInst.create(view, scalar.add(self.pointers[dtype], base))

    def box(self, scope, shape=None):
        """A view, where a box in it begins, and the dimensions along which a tile lies."""
        views = [v for v in scope.views if shape is None or len(shape) <= len(v.shape)]
        if not views:
            return None
        view = self.pick(views)
        rank = len(view.shape)
        offsets = [self.expr(self.pick([I32, dtypes.int64]), scope) for _ in range(rank)]
        dims = self.draw(st.permutations(range(rank)))
        return view, offsets, dims[: self.draw(st.integers(0, rank)) if shape is None else len(shape)]

    def load_global(self, scope):
        if (box := self.box(scope)) is None:
            return None
        view, offsets, dims = box
        shape = self.pick([shape for shape in SHAPES if len(shape) == len(dims)])
        return memory.LoadGlobalInst.create(view, offsets, dims, self.tile(view.dtype, shape, scope))

    def store_global(self, scope):
        x = self.having(scope, lambda dtype: dtype in self.pointers)
        if x is None:
            return None
        same = replace(scope, views=tuple(v for v in scope.views if v.dtype is x.dtype))
        if (box := self.box(same, x.shape)) is None:
            return None
        view, offsets, dims = box
        return memory.StoreGlobalInst.create(view, x, offsets, dims)

    def accesses(self, scope, dtype, shape):
        """A pointer with an offset and a mask that differ from position to position and stay in this block's part."""
        n, m = scope.readable[I32][:2]
        size = scalar.mul(n, m)
        start = scalar.mul(scalar.block_idx(0), size)

        def local(axes):
            index = scalar.constant(I32, 0)
            for axis, extent in zip(axes, shape, strict=True):
                index = scalar.add(scalar.mul(index, scalar.constant(I32, extent)), axis)
            return scalar.add(index, shift)

        def mask(axes):
            inside = scalar.logical_and(scalar.le(scalar.constant(I32, 0), local(axes)), scalar.lt(local(axes), size))
            return scalar.logical_and(inside, self.expr(dtypes.boolean, scope, axes)) if self.maybe() else inside

        shift = self.expr(I32, scope)
        return self.pointers[dtype], lambda axes: scalar.add(start, local(axes)), mask

    def load_global_generic(self, scope):
        dtype, shape = self.pick(self.pointers), self.pick(SHAPES)
        tile = self.tile(dtype, shape, scope)
        return memory.LoadGlobalGenericInst.create(*self.accesses(scope, dtype, shape), output=tile)

    def store_global_generic(self, scope):
        x = self.having(scope, lambda dtype: dtype in self.pointers)
        return x and memory.StoreGlobalGenericInst.create(x, *self.accesses(scope, x.dtype, x.shape))

    def sync(self, scope):
        return sync.SyncThreadsInst.create()

    # ---------------------------------------------------- instructions that come with others, which make their operands

    def fresh(self, dtype, shape, scope):
        """A tile that nobody else uses, so that it may lie wherever one instruction wants it."""
        tile = RegisterTensor.create(dtype, shape, name=self.draw(names))
        return register.AllocateRegisterInst.create(tile, lambda axes: self.expr(dtype, scope, axes))

    def together(self, scope, *insts, result=None):
        """The instructions one after the other; others may use the result."""
        if result is not None:
            scope.tiles = (*scope.tiles, result)
        return stmts.SeqStmt.create([stmts.InstStmt(inst) for inst in insts])

    def moved(self, scope, shapes, move):
        """A new tile of one of these shapes, and what `move` makes of it."""
        made = self.fresh(self.pick(expressions.SCALARS), self.pick(shapes), scope)
        inst = move(made.output)
        return self.together(scope, made, inst, result=inst.output)

    def transpose(self, scope):
        return self.moved(scope, [s for s in SHAPES if len(s) == 2], transform.TransposeInst.create)

    def squeeze(self, scope):
        def move(x):
            ones = [dim for dim, extent in enumerate(x.shape) if extent == 1]
            return transform.SqueezeInst.create(x, self.draw(st.permutations(ones))[: self.pick([1, len(ones)])])

        return self.moved(scope, [s for s in SHAPES if 1 in s], move)

    def unsqueeze(self, scope):
        def move(x):
            count = self.pick([1, 2])
            return transform.UnsqueezeInst.create(x, self.draw(st.permutations(range(len(x.shape) + count)))[:count])

        return self.moved(scope, [s for s in SHAPES if len(s) < 3], move)

    def reshape(self, scope):
        return self.moved(scope, SHAPES, lambda x: transform.ReshapeRegisterInst.create(x, self.reshaped(x)))

    def reshaped(self, x):
        """A new tensor like `x` under another shape."""
        last = x.shape[-1] if x.shape else 1
        shape = self.pick([(x.size,), (*x.shape[:-1], last // 2, 2) if last % 2 == 0 else (1, x.size), x.shape])
        return type(x).create(x.dtype, shape, name=self.draw(names))

    def view(self, scope):
        def move(x):
            other = self.pick([d for d in expressions.SCALARS if d.nbits == x.dtype.nbits and _is_number(d)])
            return transform.ViewInst.create(x, RegisterTensor.create(other, x.shape, name=self.draw(names)))

        made = self.fresh(self.pick(filter(_is_number, expressions.SCALARS)), self.pick(SHAPES), scope)
        inst = move(made.output)
        if inst.output.dtype.is_float():  # bits of any number may be those of a nan, which are many
            return self.together(scope, made, inst)
        return self.together(scope, made, inst, result=inst.output)

    def part(self, shape, scope):
        """Offsets, dimensions and extents of a box in a tensor of this shape; the offsets known now or at run time."""
        dims = [dim for dim in range(len(shape)) if self.maybe()]
        extents = [max(shape[dim] // self.pick([1, 2]), 1) for dim in dims]
        along = dict(zip(dims, extents, strict=True))
        return [self.start(extent, along.get(dim, 1), scope) for dim, extent in enumerate(shape)], dims, extents

    def start(self, size, extent, scope):
        """A multiple of `extent` from which on so many of `size` elements lie inside."""
        places = size // extent
        place = scalar.constant(I32, self.draw(st.integers(0, places - 1)))
        if self.maybe():  # extents are powers of two
            place = scalar.bitwise_and(self.expr(I32, scope), scalar.constant(I32, places - 1))
        return scalar.mul(place, scalar.constant(I32, extent))

    def slice_register(self, scope):
        def move(x):
            offsets, dims, extents = self.part(x.shape, scope)
            tile = RegisterTensor.create(x.dtype, extents, name=self.draw(names))
            return transform.SliceRegisterInst.create(x, offsets, dims, tile)

        return self.moved(scope, [s for s in SHAPES if s], move)

    def slice_assign(self, scope):
        made = self.fresh(self.pick(expressions.SCALARS), self.pick([s for s in SHAPES if s]), scope)
        x = made.output
        offsets, dims, extents = self.part(x.shape, scope)
        value = self.fresh(x.dtype, extents, scope)
        inst = transform.SliceAssignInst.create(x, value.output, offsets, dims)
        return self.together(scope, made, value, inst, result=x)

    def dot(self, scope):
        """A product of small whole numbers, which is exact however it is summed up."""
        dtype = self.pick(dot.ACCUMULATORS.keys() & set(expressions.SCALARS))
        accumulator = dot.ACCUMULATORS[dtype][0]
        a, b = (RegisterTensor.create(dtype, shape, name=self.draw(names)) for shape in ((64, 32), (32, 32)))
        made = [register.AllocateRegisterInst.create(t, lambda axes, t=t: self.small(t.dtype, axes)) for t in (a, b)]
        out = RegisterTensor.create(accumulator, (64, 32), name=self.draw(names))
        first = dot.DotInst.create(a, b, None, out)
        if self.maybe():
            return self.together(scope, *made, first, result=out)
        other = out if self.maybe() else RegisterTensor.create(accumulator, out.shape, name=self.draw(names))
        return self.together(scope, *made, first, dot.DotInst.create(a, b, out, other), result=other)

    def small(self, dtype, axes):
        """A whole number from -2 to 2 that depends on the position."""
        weights = [scalar.constant(I32, self.draw(st.integers(1, 7))) for _ in axes]
        total = scalar.constant(I32, 0)
        for axis, weight in zip(axes, weights, strict=True):
            total = scalar.add(total, scalar.mul(axis, weight))
        number = scalar.sub(scalar.mod(total, scalar.constant(I32, 5)), scalar.constant(I32, 2))
        return scalar.cast(number, dtype)

    def buffer(self, scope, dtype, shape):
        return shared.AllocateSharedInst.create(SharedTensor.create(dtype, shape, name=self.draw(names)))

    def through_shared(self, scope, look=None, *, frees=False):
        """A tile stored in shared memory, looked at in another way, and loaded as that."""
        x = self.pick(scope.tiles)
        made = self.buffer(scope, x.dtype, x.shape)
        wait = sync.SyncThreadsInst.create()
        seen = [] if look is None else [look(made.output)]
        source = seen[0].output if seen else made.output
        out = RegisterTensor.create(x.dtype, source.shape, name=self.draw(names))
        load = shared.LoadSharedInst.create(source, out)
        end = [wait, shared.FreeSharedInst.create(made.output)] if frees else [wait]
        store = shared.StoreSharedInst.create(made.output, x)
        return self.together(scope, made, store, wait, *seen, load, *end, result=out)

    def slice_shared(self, scope):
        def look(x):
            offsets, dims, extents = self.part(x.shape, scope)
            dims, extents = zip(*self.shuffled(*zip(dims, extents, strict=True)), strict=True) if dims else ((), ())
            view = SharedTensor.create(x.dtype, extents, name=self.draw(names))
            return shared.SliceSharedInst.create(x, offsets, dims, view)

        return self.through_shared(scope, look)

    def permute_shared(self, scope):
        return self.through_shared(
            scope, lambda x: shared.PermuteSharedInst.create(x, self.draw(st.permutations(range(len(x.shape)))))
        )

    def reshape_shared(self, scope):
        return self.through_shared(scope, lambda x: shared.ReshapeSharedInst.create(x, self.reshaped(x)))

    def store_part(self, scope):
        """A tile stored over a part of another one."""
        x = self.pick(scope.tiles)
        made = self.buffer(scope, x.dtype, x.shape)
        offsets, dims, extents = self.part(x.shape, scope)
        part = SharedTensor.create(x.dtype, extents, name=self.draw(names))
        view = shared.SliceSharedInst.create(made.output, offsets, dims, part)
        value = self.fresh(x.dtype, extents, scope)
        wait = sync.SyncThreadsInst.create()
        out = RegisterTensor.create(x.dtype, x.shape, name=self.draw(names))
        stores = [
            shared.StoreSharedInst.create(made.output, x),
            wait,
            shared.StoreSharedInst.create(part, value.output),
        ]
        load = shared.LoadSharedInst.create(made.output, out)
        return self.together(scope, made, view, value, *stores, wait, load, wait, result=out)

    def copied(self, scope, dst, copy, wait):
        """A buffer that is filled by a copy, and a tile loaded from it."""
        out = RegisterTensor.create(dst.dtype, dst.shape, name=self.draw(names))
        barrier = sync.SyncThreadsInst.create()
        made = shared.AllocateSharedInst.create(dst)
        load = shared.LoadSharedInst.create(dst, out)
        return self.together(scope, made, barrier, copy, *wait, barrier, load, barrier, result=out)

    def copy_async(self, scope):
        if (box := self.box(scope)) is None:
            return None
        view, offsets, dims = box
        shape = self.pick([shape for shape in SHAPES if len(shape) == len(dims)])
        dst = SharedTensor.create(view.dtype, shape, name=self.draw(names))
        evict = self.pick([None, *copy_async.EVICTION])
        copy = copy_async.CopyAsyncInst.create(dst, view, offsets, dims, evict)
        return self.copied(scope, dst, copy, self.waiting())

    def copy_async_generic(self, scope):
        dtype, shape = self.pick(self.pointers), self.pick(SHAPES)
        dst = SharedTensor.create(dtype, shape, name=self.draw(names))
        copy = copy_async.CopyAsyncGenericInst.create(dst, *self.accesses(scope, dtype, shape))
        return self.copied(scope, dst, copy, self.waiting())

    def waiting(self):
        """A way to wait for the copies so far."""
        commit = copy_async.CopyAsyncCommitGroupInst.create()
        return self.pick(
            [
                [copy_async.CopyAsyncWaitAllInst.create()],
                [commit, copy_async.CopyAsyncWaitGroupInst.create(0)],
                [commit, commit, commit, copy_async.CopyAsyncWaitGroupInst.create(self.draw(st.integers(0, 2)))],
            ]
        )

    def annotate_layout(self, scope):
        """A tile, or shared memory, with a layout that one can see; it ends in shared memory."""
        made = self.fresh(self.pick(expressions.SCALARS), self.pick(SHAPES), scope)
        x = made.output
        place = self.buffer(scope, x.dtype, x.shape)
        own = transform.AnnotateLayoutInst.create(x, ops.auto_local_spatial(self.num_threads, x.shape))
        if x.shape and self.maybe():
            own = transform.AnnotateLayoutInst.create(place.output, ops.shared_column_major(*x.shape))
        wait = sync.SyncThreadsInst.create()
        out = RegisterTensor.create(x.dtype, x.shape, name=self.draw(names))
        store, load = shared.StoreSharedInst.create(place.output, x), shared.LoadSharedInst.create(place.output, out)
        return self.together(scope, made, place, own, store, wait, load, wait, result=out)

    def global_tensor(self, scope):
        """A workspace of which each block writes and reads its own row."""
        x = self.pick(scope.tiles)
        count = scalar.constant(I32, MAX_BLOCKS)
        shape = (count, *(scalar.constant(I32, extent) for extent in x.shape))
        lent = GlobalTensor.create(x.dtype, GlobalLayout.row_major(shape), name=self.draw(names))
        made = workspace.AllocateGlobalInst.create(lent, False)
        offsets, dims = [scalar.block_idx(0), *(scalar.constant(I32, 0) for _ in x.shape)], range(1, len(shape))
        out = RegisterTensor.create(x.dtype, x.shape, name=self.draw(names))
        wait = sync.SyncThreadsInst.create()
        store = memory.StoreGlobalInst.create(lent, x, offsets, dims)
        load = memory.LoadGlobalInst.create(lent, offsets, dims, out)
        return self.together(scope, made, wait, store, wait, load, wait, result=out)

    def semaphore(self, scope):
        """Blocks that take turns."""
        lent = GlobalTensor.create(I32, GlobalLayout.row_major([scalar.constant(I32, 1)]), name=self.draw(names))
        pointer, zero = self.var(PointerType(I32)), scalar.constant(I32, 0)
        return stmts.SeqStmt.create(
            [
                stmts.InstStmt(workspace.AllocateGlobalInst.create(lent, True)),
                stmts.TensorItemPtrStmt(pointer, lent, (zero,)),
                stmts.InstStmt(semaphore.LockSemaphoreInst.create(pointer, zero)),
                stmts.InstStmt(semaphore.ReleaseSemaphoreInst.create(pointer, zero)),
            ]
        )

    def print_tensor(self, scope):
        small = [t for t in scope.tiles if t.size <= 8]
        return print.PrintTensorInst.create(self.pick(small), "x = ") if small else None

    def printf(self, scope):
        return print.FormatPrintInst.create("%d%%\n", [self.short(scope)])

    def assume(self, scope):
        return assume.AssumeInst.create(scalar.lt(scope.readable[I32][0], scalar.constant(I32, 100)))

    # ------------------------------------------------------------------------------------------ elements of tensors

    def item(self, scope):
        """A scalar from a tile of one element or from memory, or a tile that is loaded through the address of one."""
        kinds = [self.item_of_tile, self.item_of_shared]
        if scope.views:
            kinds += [self.item_of_view, self.load_through_address]
        return self.pick(kinds)(scope)

    def read(self, tensor, offsets, scope):
        var = self.var(tensor.dtype)
        scope.add(var)
        return stmts.TensorItemValueStmt(var, tensor, tuple(offsets))

    def item_of_tile(self, scope):
        held = [t for t in scope.tiles if t.size == 1]
        if held:
            return self.read(self.pick(held), (), scope)
        made = self.fresh(self.pick(expressions.SCALARS), self.pick([(), (1,), (1, 1)]), scope)
        return stmts.SeqStmt.create([stmts.InstStmt(made), self.read(made.output, (), scope)])

    def item_of_shared(self, scope):
        x = self.pick(scope.tiles)
        made = self.buffer(scope, x.dtype, x.shape)
        wait = sync.SyncThreadsInst.create()
        start = self.together(scope, made, shared.StoreSharedInst.create(made.output, x), wait)
        offsets = [scalar.constant(I32, self.draw(st.integers(0, extent - 1))) for extent in x.shape]
        return stmts.SeqStmt.create([start, self.read(made.output, offsets, scope)])

    def item_of_view(self, scope):
        view = self.pick(scope.views)
        return self.read(view, [scalar.constant(I32, 0) for _ in view.shape], scope)

    def load_through_address(self, scope):
        view = self.pick(scope.views)
        pointer = self.var(PointerType(view.dtype))
        one = GlobalTensor.create(view.dtype, GlobalLayout.row_major([scalar.constant(I32, 1)]), name=self.draw(names))
        out = RegisterTensor.create(view.dtype, (4,), name=self.draw(names))
        load = memory.LoadGlobalInst.create(one, [scalar.constant(I32, -1)], [0], out)
        address = stmts.TensorItemPtrStmt(pointer, view, tuple(scalar.constant(I32, 0) for _ in view.shape))
        return stmts.SeqStmt.create(
            [address, self.together(scope, memory.GlobalViewInst.create(one, pointer), load, result=out)]
        )


def _with_positive_divisors(expr):
    """Division by zero, and of the lowest integer by -1, mean nothing."""
    parts = [_with_positive_divisors(part) for part in scalar.children(expr)]
    if isinstance(expr, (scalar.Div, scalar.Mod)) and scalar.is_integer(dtype := scalar.dtype_of(expr)):
        parts[1] = scalar.maximum(parts[1], scalar.constant(dtype, 1))
    return scalar.rebuild(expr, parts)


def _is_number(dtype):
    return dtype is not dtypes.boolean


# opcode -> how to write one; None where the scope has no operands for it
INSTRUCTIONS = {
    "register_tensor": Writer.register_tensor,
    "assign": Writer.assign_tile,
    "add": lambda w, scope: w.arithmetic(elementwise.AddInst, _is_number, scope),
    "sub": lambda w, scope: w.arithmetic(elementwise.SubInst, _is_number, scope),
    "mul": lambda w, scope: w.arithmetic(elementwise.MulInst, _is_number, scope),
    "div": lambda w, scope: w.arithmetic(elementwise.DivInst, lambda dtype: dtype.is_float(), scope),
    "unary": Writer.unary,
    "binary": Writer.binary,
    "cast": Writer.cast,
    "where": Writer.where,
    "reduce": Writer.reduce,
    "global_view": Writer.global_view,
    "load_global": Writer.load_global,
    "store_global": Writer.store_global,
    "load_global_generic": Writer.load_global_generic,
    "store_global_generic": Writer.store_global_generic,
    "sync": Writer.sync,
    "shared_tensor": lambda w, scope: w.through_shared(scope),
    "free_shared": lambda w, scope: w.through_shared(scope, frees=True),
    "slice_shared": Writer.slice_shared,
    "permute_shared": Writer.permute_shared,
    "reshape_shared": Writer.reshape_shared,
    "load_shared": lambda w, scope: w.through_shared(scope),
    "store_shared": Writer.store_part,
    "copy_async": Writer.copy_async,
    "copy_async_generic": Writer.copy_async_generic,
    "copy_async_commit_group": lambda w, scope: copy_async.CopyAsyncCommitGroupInst.create(),
    "copy_async_wait_group": lambda w, scope: copy_async.CopyAsyncWaitGroupInst.create(w.pick([0, 1, 3])),
    "copy_async_wait_all": lambda w, scope: copy_async.CopyAsyncWaitAllInst.create(),
    "dot": Writer.dot,
    "transpose": Writer.transpose,
    "squeeze": Writer.squeeze,
    "unsqueeze": Writer.unsqueeze,
    "reshape": Writer.reshape,
    "view": Writer.view,
    "slice_register": Writer.slice_register,
    "slice_assign": Writer.slice_assign,
    "annotate_layout": Writer.annotate_layout,
    "global_tensor": Writer.global_tensor,
    "lock_semaphore": Writer.semaphore,
    "release_semaphore": Writer.semaphore,
    "print_tensor": Writer.print_tensor,
    "printf": Writer.printf,
    "assume": Writer.assume,
}


def _unary_takes(op, dtype):
    if op == "logical_not":
        return dtype is dtypes.boolean
    return dtype.is_float() if op in elementwise.FLOAT_ONLY else _is_number(dtype)


def _binary_takes(op, dtype):
    if op.startswith("logical"):
        return dtype is dtypes.boolean
    return dtype.is_integer() if op in elementwise.INTEGER_ONLY else _is_number(dtype)


def _broadcasts(*shapes):
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        return False
    return True


def _may_name_a_parameter(name):
    return name.isidentifier() and not keyword.iskeyword(name)


@st.composite
def programs(draw, *, with_layouts=True, exact=False):
    """A program that verifies, and runs on the `arguments` drawn for it."""
    held = draw(st.lists(st.sampled_from(expressions.SCALARS), min_size=1, max_size=3, unique=True))
    own = draw(st.lists(names.filter(_may_name_a_parameter), min_size=5, max_size=5, unique=True))
    n, m = (scalar.var(name, I32) for name in own[:2])
    pointers = {dtype: scalar.var(name, PointerType(dtype)) for dtype, name in zip(held, own[2:], strict=False)}
    warps = draw(st.sampled_from([1, 2, 4]))
    writer = Writer(draw, pointers, 32 * warps, with_layouts, exact)
    scope = Scope()
    scope.add(n)
    scope.add(m)
    own_index = draw(st.booleans())
    indices = [scalar.var("b", I32) if own_index else scalar.block_idx(axis) for axis in range(3)]
    scope.add(indices[0])
    first = [stmts.InstStmt(inst) for inst in (writer.register_tensor(scope), writer.global_view(scope))]
    scope.tiles, scope.views = (first[0].inst.output,), (first[1].inst.output,)
    body = stmts.SeqStmt((*first, *(writer.statement(scope) for _ in range(draw(st.integers(0, 8))))))
    one = scalar.constant(I32, 1)
    metadata = Metadata.create(
        grid_blocks=(scalar.constant(I32, draw(st.integers(1, MAX_BLOCKS))), one, one),
        cluster_blocks=(1, 1, 1),
        block_indices=indices,
        num_warps=warps,
        param2divisibility=draw(st.sampled_from([{}, {n: 1}, {n: 1, pointers[held[0]]: 2}])),
        analysis=draw(st.sampled_from([None, Analysis(), Analysis({n: 1}, {n: 0, m: -9}, {m: 7, indices[0]: 1})])),
    )
    func = Function.create(
        draw(st.sampled_from(["f", "softmax", "kernel"])), [n, m, *pointers.values()], body, metadata
    )
    return Program.create({func.name: func})


@st.composite
def arguments(draw, prog):
    """Arguments on which the program runs: small `n` and `m`, arrays of random bits."""
    n, m = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    blocks = scalar.constant_value(prog.function.metadata.grid_blocks[0])
    pointers = [scalar.dtype_of(param) for param in prog.function.params[2:]]
    return [n, m, *(random_array(random, p.base, blocks * n * m) for p in pointers if isinstance(p, PointerType))]


def random_array(random, dtype, size):
    """Values of moderate size, so that arithmetic does not end in infinities alone."""
    if dtype is dtypes.boolean:
        return random.integers(0, 2, size).astype(np.bool_)
    if dtype.is_float():
        return (random.standard_normal(size) * 4).astype(dtypes.numpy_dtype(dtype))
    return random.integers(max(dtype.min_value, -100), 100, size).astype(dtypes.numpy_dtype(dtype))
