# SPDX-License-Identifier: Apache-2.0
"""What an emitter works with: the builder, the registers of each tile, and layouts as index arithmetic."""

from __future__ import annotations

import math
from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager

from tilekit import dtypes
from tilekit.backends import global_access, shared_access
from tilekit.backends.global_access import Places
from tilekit.backends.shared_access import Offsets, SharedView
from tilekit.ir.analysis.grid_analysis import VECTOR_BITS, vector_widths
from tilekit.ir.analysis.scalar_analysis import Fact, Facts
from tilekit.ir.layout import mapping, ops
from tilekit.ir.layout.mapping import Source, Term
from tilekit.ir.layout.register_layout import RegisterLayout
from tilekit.ir.machine import Access
from tilekit.ir.tensor import GlobalTensor, RegisterTensor, SharedTensor
from tilekit.ir.text.names import Names
from tilekit.lowir import cxx, scalar
from tilekit.lowir.build import ALL, KernelBuilder, RegisterArray
from tilekit.lowir.scalar import Expr, Var
from tilekit.target import Target


class AnalyzedValues:
    """Tells the builder what integers are never below, from the analysis of the tile program."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    def learn(self, v: Var, low: int, high: int) -> None:
        self.remember(v, Fact.of(1, low, high))

    def remember(self, v: Var, fact: Fact) -> None:
        self.facts = Facts({**self.facts.variables, v: fact})

    def is_at_least(self, e: Expr, low: int) -> bool:
        return self.facts.of(e).low >= low

    def may_wrap(self, e: Expr) -> bool:
        return self.facts.may_wrap(e)


class Context:
    """One kernel while it is emitted."""

    def __init__(
        self, num_threads: int, target: Target, facts: Facts, names: Names, changing: frozenset[RegisterTensor | Var]
    ) -> None:
        self.num_threads = num_threads
        self.target = target
        self.facts = facts
        self.names = names
        # the tiles and scalar variables that are written more than once
        self.changing = changing
        self.values = AnalyzedValues(facts)
        self.builder = KernelBuilder(num_threads, self.values)
        # the first byte of the shared memory that the present instruction has for itself
        self.workspace = 0
        self._pointers: dict[GlobalTensor, Expr] = {}
        self._views: dict[SharedTensor, SharedView] = {}
        self._hoisted: list[tuple[Expr, Var]] = []
        self._arrays: dict[RegisterTensor, RegisterArray] = {}
        # tiles that are one value everywhere and for good need no registers
        self._constants: dict[RegisterTensor, Expr] = {}
        self.thread = self.builder.hoist("tid", scalar.thread_idx())
        self.values.learn(self.thread, 0, num_threads - 1)

    # ---------------------------------------------------------------------------------------------------- registers

    def define(self, tile: RegisterTensor) -> RegisterArray:
        """The registers of a tile, declared at its first definition."""
        if tile not in self._arrays:
            cxx.type_name(tile.dtype)  # an error here stands at the instruction
            name = self.names.name(tile)
            self._arrays[tile] = self.builder.register_array(name, tile.dtype, tile.layout.local_size)
        return self._arrays[tile]

    def define_constant(self, tile: RegisterTensor, value: Expr) -> bool:
        """Let every element of `tile` be `value`, if neither of them ever changes."""
        if tile in self.changing or any(v in self.changing for v in scalar.free_vars(value)):
            return False
        self._constants[tile] = value
        return True

    def read(self, tile: RegisterTensor, index: Expr | int) -> Expr:
        """The element in one register of this thread."""
        if tile in self._constants:
            return self._constants[tile]
        return self.builder.load(self._arrays[tile], index)

    def registers_of(self, tile: RegisterTensor) -> RegisterArray:
        """The registers of a tile that was defined; one that is a constant gets some here."""
        if tile in self._constants and tile not in self._arrays:
            registers = self.builder.register_array(self.names.name(tile), tile.dtype, tile.layout.local_size)
            with self.each_register(tile.layout.local_size) as r:
                self.builder.store(registers, r, self._constants[tile])
            return registers
        return self._arrays[tile]

    def show(self, tile: RegisterTensor, x: RegisterTensor) -> None:
        """Let `tile` have the elements of `x`, register by register: the same registers if neither ever changes."""
        if tile not in self.changing and x not in self.changing:
            if x in self._constants:
                self._constants[tile] = self._constants[x]
            else:
                self._arrays[tile] = self._arrays[x]
            return
        registers = self.define(tile)
        with self.each_register(tile.layout.local_size) as r:
            self.builder.store(registers, r, self.read(x, r))

    @contextmanager
    def only_if(self, condition: Expr | None) -> Generator[None]:
        """What is written in this block runs where the condition holds, everywhere if it is None."""
        if condition is None:
            yield
        else:
            with self.builder.if_then(condition):
                yield

    @contextmanager
    def each_register(self, count: int, name: str = "r") -> Generator[Expr]:
        """A loop over `count` registers, unrolled if a thread has as many; no loop for one."""
        if count == 1:
            yield scalar.constant(dtypes.int32, 0)
            return
        # what does not fit lies in memory in any case, and unrolling it would take compilers minutes
        unroll = ALL if count <= self.target.max_registers_per_thread else None
        with self.builder.for_range(name, count, unroll=unroll) as index:
            yield index

    # ------------------------------------------------------------------------------------------------------ layouts

    def sum(self, terms: Sequence[Term], *, local: Expr | int = 0, every: int = 1) -> Expr:
        """The value of a layout's terms for this thread and register `local * every` of it."""
        total: Expr = scalar.int32(0)
        for term in terms:
            total = scalar.add(total, scalar.mul(self._digit(term, local, every), scalar.int32(term.multiplier)))
        return total

    def _digit(self, term: Term, local: Expr | int, every: int) -> Expr:
        """The digit that a term reads."""
        if term.source is Source.THREAD:
            number, divisor = self.thread, term.divisor
        else:
            number, divisor = scalar.as_expr(local, dtypes.int32), term.divisor
            if term.modulus is not None and every % (term.divisor * term.modulus) == 0:
                return scalar.int32(0)
            common = math.gcd(every, divisor)
            number, divisor = scalar.mul(number, scalar.int32(every // common)), divisor // common
        value = scalar.floordiv(number, scalar.int32(divisor))
        return value if term.modulus is None else scalar.mod(value, scalar.int32(term.modulus))

    def position(self, layout: RegisterLayout, register: Expr | int, *, every: int = 1) -> list[Expr]:
        """The position in the tile of what register `register * every` of this thread holds."""
        return [self.sum(terms, local=register, every=every) for terms in mapping.index_terms(layout)]

    def bind_axes(
        self,
        axes: Sequence[Var],
        layout: RegisterLayout,
        register: Expr | int,
        *,
        every: int = 1,
        only: Collection[Var] | None = None,
    ) -> dict[Var, Expr]:
        """What the axes of an instruction stand for at a register, each in a variable where it is a computation."""
        found: dict[Var, Expr] = {}
        for axis, value in zip(axes, self.position(layout, register, every=every), strict=True):
            if only is not None and axis not in only:
                continue
            simple = isinstance(value, Var) or scalar.is_constant(value)
            found[axis] = value if simple else self.builder.let(scalar.name_hint(axis), value)
            if not simple:
                fact = self.values.facts.of(value)
                self.values.learn(found[axis], fact.low, fact.high)  # type: ignore[arg-type]  # a Var
        return found

    def register_of(self, result: RegisterLayout, operand: RegisterLayout, register: Expr) -> Expr:
        """The register of `operand` that goes with one of `result`, after broadcasting."""
        terms = mapping.local_map(result, operand)
        assert terms is not None, "layout inference checked that the operand is where it is needed"
        return self.sum(terms, local=register)

    def access_width(self, tile: RegisterTensor, access: Access, *, ragged: bool = False) -> tuple[int, int]:
        """The dimension, and how many consecutive registers one access may fill, at most 16 bytes.

        With `ragged` the mask may end among them; where the first and the last one pass it all do.
        """
        widths = vector_widths(tile.dtype, tile.shape, access, self.facts, ragged=ragged)
        best = (len(widths) - 1, 1)
        for dim, allowed in enumerate(widths):
            width = 1
            while allowed % (2 * width) == 0 and ops.vector_extent(tile.layout, dim) % (2 * width) == 0:
                width *= 2
            if width > best[1]:
                best = (dim, width)
        return best

    def is_first_replica(self, layout: RegisterLayout) -> Expr | None:
        """Whether this thread, of those that hold the same elements, is the one to write them; None if it is alone."""
        terms = mapping.replica_terms(layout)
        return scalar.eq(self.sum(terms), scalar.int32(0)) if terms else None

    def hoist(self, name: str, value: Expr) -> Expr:
        """A value that depends on nothing but the thread, computed at the top of the kernel, and only once."""
        if scalar.is_constant(value) or isinstance(value, Var):
            return value
        for known, variable in self._hoisted:
            if scalar.structurally_equal(known, value):
                return variable
        variable = self.builder.hoist(name, value)
        self._hoisted.append((value, variable))
        fact = self.values.facts.maybe(value)
        if fact is not None:
            self.values.learn(variable, fact.low, fact.high)
        return variable

    # ------------------------------------------------------------------------------------------------ global memory

    def bind_global(self, tensor: GlobalTensor, pointer: Expr) -> None:
        """Say where a tensor in global memory begins."""
        self._pointers[tensor] = pointer

    def global_pointer(self, tensor: GlobalTensor) -> Expr:
        """Where a tensor in global memory begins."""
        return self._pointers[tensor]

    def global_places(self, access: Access, layout: RegisterLayout, *, every: int = 1) -> Places:
        """From a number to where the access goes that has register `number * every` of a tile in `layout`."""
        return global_access.places(self, access, layout, every)

    # ------------------------------------------------------------------------------------------------ shared memory

    def bind_shared(self, tensor: SharedTensor, view: SharedView) -> None:
        """Say where a shared tensor lies."""
        self._views[tensor] = view

    def shared(self, tensor: SharedTensor) -> SharedView:
        """Where a shared tensor lies."""
        return self._views[tensor]

    def shared_offsets(self, layout: RegisterLayout, tensor: SharedTensor, *, every: int = 1) -> Offsets:
        """From a number to the element of the tensor's pointer that goes with register `number * every` in `layout`."""
        return shared_access.offsets(self, layout, self._views[tensor], every)

    def shared_width(self, layout: RegisterLayout, tensor: SharedTensor) -> int:
        """How many consecutive registers of a tile in `layout` one access to shared memory may fill."""
        view = self._views[tensor]
        most = max(VECTOR_BITS // tensor.dtype.nbits, 1)
        side_by_side = math.gcd(mapping.shared_vector_extent(layout, view.layout), view.divisor, most)
        return side_by_side & -side_by_side
