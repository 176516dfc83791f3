# SPDX-License-Identifier: Apache-2.0
"""Layout inference: which thread holds which element of every register tile, and where each shared tensor has it.

The search works on a side table {tensor: choice} and rewrites the function once, at its end. Layouts that the user
annotated are facts. Step by step it then takes one instruction's proposal: instructions that know some of their layouts
before those that know none, then by the order of their class, larger tensors first, later instructions first. When
nobody has anything to say, a shared tensor is placed so that those who move it take the fewest rounds, and a register
tile that nobody asks for is spread over the threads.

Then every instruction checks what it was given. One whose check fails insists: the search starts over, and this time
that instruction may speak up on less knowledge, before others decide against it. If that does not help, its tiles go
through shared memory, where they are stored in one layout and loaded in another: the smallest for which that is enough,
or two of them, or all. If that does not help either, the error tells how the tensors came to where they are.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, cast

from tilekit.diag import errors
from tilekit.diag.diagnostic import Note
from tilekit.diag.span import Span
from tilekit.dtypes import PointerType
from tilekit.events import Sink
from tilekit.ir.analysis import grid_analysis, shared_views
from tilekit.ir.analysis.scalar_analysis import WORKSPACE_ALIGNMENT, Fact, Facts, analyze
from tilekit.ir.func import Function
from tilekit.ir.functors import IRRewriter
from tilekit.ir.inst import Instruction, Role
from tilekit.ir.instructions.copy_async import CopyAsyncGenericInst, CopyAsyncInst
from tilekit.ir.instructions.dot import DotInst
from tilekit.ir.instructions.memory import GlobalViewInst, LoadGlobalGenericInst, LoadGlobalInst
from tilekit.ir.instructions.shared import AllocateSharedInst, FreeSharedInst, LoadSharedInst, StoreSharedInst
from tilekit.ir.instructions.sync import SyncThreadsInst
from tilekit.ir.instructions.transform import AnnotateLayoutInst, Shown
from tilekit.ir.instructions.workspace import AllocateGlobalInst
from tilekit.ir.layout import placing
from tilekit.ir.layout.placing import Use, View
from tilekit.ir.layout.register_layout import RegisterLayout
from tilekit.ir.layout.shared_layout import SharedLayout
from tilekit.ir.layouts import LayoutContext, spread, vectorized
from tilekit.ir.machine import Access
from tilekit.ir.prog import Program
from tilekit.ir.stmt import InstStmt, SeqStmt, Stmt
from tilekit.ir.tensor import GlobalTensor, LaidOut, Layout, RegisterTensor, SharedTensor
from tilekit.ir.text.names import Names
from tilekit.ir.tools.instruction_collector import collect_instructions
from tilekit.ir.tools.rewriter import rewrite
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Expr
from tilekit.transforms.base import SILENT, Pass


@dataclass(frozen=True, eq=False)
class Choice:
    """The layout of one tensor: the instruction that chose it, why, and the tensors that it went by."""

    tensor: LaidOut
    layout: Layout
    who: Instruction | None
    why: str
    after: tuple[LaidOut, ...] = ()

    @property
    def span(self) -> Span | None:
        return None if self.who is None else self.who.span


# the choices for one function, in the order in which they were made
LayoutTrail = tuple[Choice, ...]


@dataclass(frozen=True)
class InferenceResult:
    """The function in which every register and shared tensor has a layout, and how each came by it."""

    func: Function
    trail: LayoutTrail


class LayoutInferencePass(Pass):
    """Gives every register and shared tensor a layout; notes the choices as `layouts`, a `LayoutTrail` per function."""

    def process_function(self, func: Function) -> Function:
        return infer_layouts(func).func

    def process_program(self, prog: Program, sink: Sink = SILENT) -> Program:
        results = {func.name: infer_layouts(func) for func in prog}
        for result in results.values():
            prog = prog.with_function(result.func)
        sink.note("layouts", {name: result.trail for name, result in results.items()})
        return prog


def layout_inference_pass() -> Pass:
    return LayoutInferencePass()


def infer_layouts(func: Function) -> InferenceResult:
    """Find a layout for every register tile and shared tensor of a function that has none.

    Raises
    ------
    LayoutError
        TK303 for an annotation that is made for another number of threads, TK310 where two tiles meet in an
        instruction and no layouts suit it and everybody else.
    """
    moved: set[RegisterTensor] = set()
    outcome = _Outcome.of(_apart(func, moved))
    while outcome.failed is not None:
        repaired = _repaired(outcome, moved)
        if repaired is None:
            raise outcome.search.conflict(outcome.failed, outcome.choices)
        outcome = repaired
    func, choices = outcome.search.func, outcome.choices
    placed = {
        tensor: tensor.replace(optional_layout=choice.layout)
        for tensor, choice in choices.items()
        if tensor.optional_layout is None
    }

    def now(tensor: LaidOut) -> LaidOut:
        return placed.get(tensor, tensor)

    trail = tuple(
        replace(choice, tensor=now(choice.tensor), after=tuple(map(now, choice.after))) for choice in choices.values()
    )
    return InferenceResult(rewrite(func, placed) if placed else func, trail)


# ---------------------------------------------------------------------------------------------------------- the search

# what brings all elements of a tile from memory
LOADS = (LoadGlobalInst, LoadGlobalGenericInst, LoadSharedInst)

_Choices = dict[LaidOut, Choice]
_Rank = tuple[int, int, int]


class _Search:
    """The choices for the tensors of one function."""

    def __init__(self, func: Function) -> None:
        self.func = func
        self.names = Names.of_function(func)
        instructions = collect_instructions(func)
        self.views = {inst.view: inst.ptr for inst in instructions if isinstance(inst, GlobalViewInst)}
        # only the launch knows where a workspace lies, but how well it is aligned is known
        lent = {
            inst.tensor: scalar.var("workspace", PointerType(inst.tensor.dtype))
            for inst in instructions
            if isinstance(inst, AllocateGlobalInst)
        }
        self.views |= lent
        self.shared_views = shared_views.views(func)
        self.instructions = [inst for inst in instructions if inst.laid_out_tensors]
        self.tensors = tuple(dict.fromkeys(t for inst in self.instructions for t in inst.laid_out_tensors))
        facts = Facts.from_analysis(func.metadata.analysis or analyze(func)).variables
        aligned = dict.fromkeys(lent.values(), Fact(WORKSPACE_ALIGNMENT, 0, 2**64 - 1))
        self.shared = [tensor for tensor in self.tensors if isinstance(tensor, SharedTensor)]
        self.facts = Facts({**facts, **aligned})
        # who speaks before whom; no two instructions have one rank
        self.rank: dict[Instruction, _Rank] = {
            inst: (type(inst).order, -max(t.size for t in inst.laid_out_tensors), -position)
            for position, inst in enumerate(self.instructions)
        }
        self.users: dict[LaidOut, list[Instruction]] = {tensor: [] for tensor in self.tensors}
        for inst in self.instructions:
            for tensor in inst.laid_out_tensors:
                self.users[tensor].append(inst)
        self.insisting: set[Instruction] = set()

    def run(self) -> tuple[_Choices, Instruction | None]:
        """The choices, and the instruction that they do not suit although it insists."""
        while True:
            choices = self.solve()
            failed = self.first_failure(choices)
            if failed is None or failed in self.insisting:
                return choices, failed
            self.insisting.add(failed)

    def solve(self) -> _Choices:
        """A choice for every tensor, whether or not they go together."""
        choices: _Choices = {}
        known: dict[LaidOut, Layout] = {}
        # instructions that have learned something since they were last asked, and those that never heard of anything
        learned: list[tuple[_Rank, Instruction]] = []
        ignorant = sorted(self.rank.items(), key=lambda item: item[1], reverse=True)

        def make(made: Sequence[Choice]) -> None:
            choices.update((choice.tensor, choice) for choice in made)
            known.update((choice.tensor, choice.layout) for choice in made)
            for inst in dict.fromkeys(inst for choice in made for inst in self.heard_by(choice.tensor, bool(ignorant))):
                heapq.heappush(learned, (self.rank[inst], inst))

        make(self.given())
        while len(choices) < len(self.tensors):
            if learned:
                make(self.proposals(heapq.heappop(learned)[1], known))
            elif ignorant:
                make(self.proposals(ignorant.pop()[0], known))
            else:
                make([self.unasked(choices, known)])
        return choices

    def heard_by(self, tensor: LaidOut, others_wait: bool) -> list[Instruction]:
        """Who learns something from the layout of a tensor.

        Every tile can be moved to and from every shared tensor, so where one lies says little about the tile: nothing,
        as long as others wait to speak who need their tiles at certain threads.
        """
        users = self.users[tensor]
        if isinstance(tensor, SharedTensor) and others_wait:
            return [inst for inst in users if not inst.register_tensors]
        return users

    def given(self) -> list[Choice]:
        """The layouts that came with the tensors, and those that the user wrote."""
        written = [inst for inst in self.instructions if isinstance(inst, AnnotateLayoutInst)]
        for inst in written:
            if isinstance(inst.layout, RegisterLayout) and inst.layout.spatial_size != self.num_threads:
                raise errors.LayoutError(
                    "TK303",
                    f"annotate_layout: {inst.layout} is for {inst.layout.spatial_size} threads, "
                    f"the kernel has {self.num_threads}",
                    at=inst.span,
                )
        choices = {inst.x: Choice(inst.x, inst.layout, inst, "as the kernel says") for inst in reversed(written)}
        placed = [tensor for tensor in self.tensors if tensor.optional_layout is not None and tensor not in choices]
        return [
            *(Choice(tensor, tensor.layout, None, "it was given with the tile") for tensor in placed),
            *choices.values(),
        ]

    def unasked(self, choices: _Choices, known: Mapping[LaidOut, Layout]) -> Choice:
        """The largest tensor that nobody speaks for; shared ones first, for what is loaded from them goes by them."""
        waiting = [tensor for tensor in self.tensors if tensor not in choices]
        shared = [tensor for tensor in waiting if isinstance(tensor, SharedTensor)]
        roots = [tensor for tensor in shared if tensor not in self.shared_views]
        tensor = max(roots or shared or waiting, key=lambda t: t.size)
        if isinstance(tensor, SharedTensor):
            return self.placed(tensor, known)
        return Choice(tensor, spread(tensor.shape, self.num_threads), None, "it was spread over the threads")

    def placed(self, tensor: SharedTensor, known: Mapping[LaidOut, Layout]) -> Choice:
        """Where a shared tensor lies so that all who move it, or a view of it, take the fewest rounds together."""
        views = {t: self.view_function(t) for t in self.shared if shared_views.root(t, self.shared_views) is tensor}
        uses: list[Use] = []
        after: list[LaidOut] = []
        for view, function in views.items():
            for inst in self.users[view]:
                tile = self.moved(inst, view, known)
                if tile is not None:
                    uses.append(Use(tile, matrices=isinstance(inst, LoadSharedInst), view=function))
                    after += [t for t in inst.register_tensors if t in known]
        layout = placing.place(tensor.shape, tensor.dtype.nbytes, uses, views=list(views.values()))
        return Choice(tensor, layout, None, self.reason(tensor, layout, uses), tuple(dict.fromkeys(after)))

    def reason(self, tensor: SharedTensor, layout: SharedLayout, uses: Sequence[Use]) -> str:
        """Why a shared tensor lies as it does."""
        if not uses:
            return "nobody asked for another"
        seen = [(layout if use.view is None else use.view(layout), use) for use in uses]
        costs = [
            placing.cost(view, use.reg, tensor.dtype.nbytes, matrices=use.matrices)
            for view, use in seen
            if view is not None
        ]
        conflicts = sum(cost.conflicts for cost in costs)
        if conflicts == 0:
            return "so that no two threads want one bank at a time"
        return f"so that its accesses take the fewest rounds, {conflicts} of them for bank conflicts"

    def moved(self, inst: Instruction, view: SharedTensor, known: Mapping[LaidOut, Layout]) -> RegisterLayout | None:
        """Which thread an instruction has move which elements of a shared tensor, as far as that is known."""
        match inst:
            case LoadSharedInst():
                layout = known.get(inst.register_output)
            case StoreSharedInst():
                layout = known.get(inst.x)
            case CopyAsyncInst() | CopyAsyncGenericInst():
                access = inst.access if isinstance(inst, CopyAsyncGenericInst) else inst.access(self.views[inst.src])
                widths = grid_analysis.vector_widths(view.dtype, view.shape, access, self.facts)
                width = max(widths, default=1)
                return vectorized(view.shape, widths.index(width) if widths else 0, width, self.num_threads)
            case _:
                return None
        return layout if isinstance(layout, RegisterLayout) else None

    def view_function(self, tensor: SharedTensor) -> View:
        """From the layout of the memory to that of a view of it."""
        inst = self.shared_views.get(tensor)
        if inst is None:
            return lambda layout: layout
        outer = self.view_function(inst.x)

        def seen(layout: SharedLayout) -> SharedLayout | None:
            whole = outer(layout)
            return None if whole is None else inst.seen(whole)

        return seen

    def proposals(self, inst: Instruction, known: Mapping[LaidOut, Layout]) -> list[Choice]:
        """What an instruction says about those of its tensors that nobody spoke for yet."""
        if all(tensor in known for tensor in inst.laid_out_tensors):
            return []
        context = _Context(self, inst)
        proposal = {t: layout for t, layout in inst.propose(known, context).items() if t not in known}
        after = self.known_to(inst, known)
        why = context.why or f"to suit {_all(map(self.tile, after))}"
        return [Choice(tensor, layout, inst, why, after) for tensor, layout in proposal.items()]

    def known_to(self, inst: Instruction, known: Mapping[LaidOut, object]) -> tuple[LaidOut, ...]:
        return tuple(dict.fromkeys(t for t in inst.laid_out_tensors if t in known))

    def first_failure(self, choices: _Choices) -> Instruction | None:
        layouts = {tensor: choice.layout for tensor, choice in choices.items()}
        return next((inst for inst in self.instructions if inst.check(layouts) is not None), None)

    @property
    def num_threads(self) -> int:
        return self.func.metadata.num_threads

    # ------------------------------------------------------------------------------------------------------- errors

    def conflict(self, inst: Instruction, choices: _Choices) -> errors.LayoutError:
        """What is wrong at `inst`, and how its tiles came by their layouts."""
        reason = inst.check({tensor: choice.layout for tensor, choice in choices.items()})
        tiles = _all(map(self.tile, dict.fromkeys(inst.laid_out_tensors)))
        return errors.LayoutError(
            "TK310",
            f"{tiles} do not lie where {inst.opcode} needs them: {reason}",
            at=inst.span,
            notes=self.history(inst, choices),
            help=self.way_out(),
        )

    def way_out(self) -> str:
        if any(isinstance(inst, AnnotateLayoutInst) for inst in self.instructions):
            return "leave layouts to the compiler: annotate none of them, or one alone"
        return "move one of them through shared memory: store_shared, sync, load_shared"

    def history(self, inst: Instruction, choices: _Choices) -> list[Note]:
        """How each tensor of `inst` came by its layout, back to the first choice."""
        notes: list[Note] = []
        told: set[LaidOut] = set()
        waiting = list(reversed(tuple(dict.fromkeys(inst.laid_out_tensors))))
        while waiting:
            tensor = waiting.pop()
            if tensor in told:
                continue
            told.add(tensor)
            choice = choices[tensor]
            by = "" if choice.who is None else f" by {choice.who.opcode}"
            notes.append((f"{self.tile(tensor)} was laid out as {choice.layout}{by}, {choice.why}", choice.span))
            waiting.extend(reversed(choice.after))
        return notes

    def tile(self, tensor: LaidOut) -> str:
        """A tensor in words: the user's name for it, or what it is."""
        shared = isinstance(tensor, SharedTensor)
        kind = f"{'shared ' if shared else ''}{tensor.dtype.short_name}[{', '.join(map(str, tensor.shape))}]"
        what = "tensor" if shared else "tile"
        return f"{self.names.name(tensor)} ({kind})" if tensor.name else f"the {kind} {what} {self.names.name(tensor)}"


# --------------------------------------------------------------------------------------------------------- the repairs


@dataclass(frozen=True)
class _Outcome:
    """A search with its choices, and the instruction that they do not suit."""

    search: _Search
    choices: _Choices
    failed: Instruction | None

    @staticmethod
    def of(func: Function) -> _Outcome:
        search = _Search(func)
        return _Outcome(search, *search.run())


def _apart(func: Function, moved: set[RegisterTensor]) -> Function:
    """The function in which every dot of a tile with itself has a copy: rows and columns never lie alike."""
    for inst in collect_instructions(func):
        if isinstance(inst, DotInst) and inst.a is inst.b:
            func, _ = _through_memory(func, inst, (_Slot("b"),), moved)
    return func


def _repaired(outcome: _Outcome, moved: set[RegisterTensor]) -> _Outcome | None:
    """The first outcome in which the instruction that failed does no more, because tiles of its go through memory."""
    func, inst = outcome.search.func, outcome.failed
    if isinstance(inst, Shown):
        return _Outcome.of(_shown_in_memory(func, inst))
    assert inst is not None
    for slots in _moves(inst, moved):
        copies: set[RegisterTensor] = set()
        changed, now = _through_memory(func, inst, slots, copies)
        repaired = _Outcome.of(changed)
        if now.check({tensor: choice.layout for tensor, choice in repaired.choices.items()}) is None:
            moved |= copies
            return repaired
    return None


@dataclass(frozen=True)
class _Slot:
    """A tile that an instruction has in a field, or as one of several in it."""

    field: str
    number: int | None = None

    def of(self, inst: Instruction) -> RegisterTensor | None:
        value = getattr(inst, self.field)
        tensor = value if self.number is None else value[self.number]
        return tensor if isinstance(tensor, RegisterTensor) else None

    def replaced(self, inst: Instruction, tile: RegisterTensor) -> Instruction:
        if self.number is None:
            return inst.replace(**{self.field: tile})
        parts = list(getattr(inst, self.field))
        parts[self.number] = tile
        return inst.replace(**{self.field: tuple(parts)})


_OUTPUT = _Slot("output")


def _moves(inst: Instruction, moved: Set[RegisterTensor]) -> Iterator[tuple[_Slot, ...]]:
    """What can be moved: all uses of one tile, the smallest first, then some of the uses, then all."""
    slots: list[_Slot] = []
    for field, value in inst.fields_of(Role.OPERAND).items():
        count = len(cast("tuple[Any, ...]", value)) if isinstance(value, tuple) else None
        slots += [_Slot(field)] if count is None else [_Slot(field, number) for number in range(count)]
    slots.append(_OUTPUT)
    tiles: dict[RegisterTensor, list[_Slot]] = {}
    for slot in slots:
        tile = slot.of(inst)
        if tile is not None and tile not in moved:
            tiles.setdefault(tile, []).append(slot)
    by_size = sorted(tiles, key=lambda tile: tile.size)
    single = [slot for tile in by_size for slot in tiles[tile]]
    candidates = [
        *(tuple(tiles[tile]) for tile in by_size),
        *((slot,) for slot in single),
        *itertools.combinations(single, 2),
        tuple(single),
    ]
    yield from (slots for slots in dict.fromkeys(candidates) if slots)


def _through_memory(
    func: Function, inst: Instruction, slots: Sequence[_Slot], moved: set[RegisterTensor]
) -> tuple[Function, Instruction]:
    """The function in which `inst` has copies for some of its tiles, that may lie elsewhere; `moved` learns of them."""
    now, before, after = inst, list[Instruction](), list[Instruction]()
    for slot in slots:
        tile = slot.of(inst)
        assert tile is not None
        copy = RegisterTensor.create(tile.dtype, tile.shape, name=tile.name)
        moved.add(copy)
        memory = SharedTensor.create(tile.dtype, tile.shape, name=f"{tile.name or 'tile'}_moved")
        if slot == _OUTPUT:
            after += _passage(memory, copy, tile)
        else:
            before += _passage(memory, tile, copy)
        now = slot.replaced(now, copy)
    return _Replacement(inst, [*before, now, *after]).visit(func), now


def _shown_in_memory(func: Function, inst: Shown) -> Function:
    """The function in which a tile is stored, and loaded under the other shape, instead of being shown under it."""
    x, out = inst.x, inst.register_output
    memory = SharedTensor.create(x.dtype, x.shape, name=f"{x.name or 'tile'}_moved")
    return _Replacement(inst, _passage(memory, x, out, inst.in_memory(memory))).visit(func)


def _passage(
    memory: SharedTensor, stored: RegisterTensor, loaded: RegisterTensor, view: Instruction | None = None
) -> list[Instruction]:
    """What brings a tile through memory; it is loaded from a view of the memory, if there is one."""
    return [
        AllocateSharedInst.create(memory),
        StoreSharedInst.create(memory, stored),
        SyncThreadsInst.create(),
        *([] if view is None else [view]),
        LoadSharedInst.create(memory if view is None else view.shared_output, loaded),
        FreeSharedInst.create(memory),
    ]


class _Replacement(IRRewriter):
    """Has other instructions in the place of one."""

    def __init__(self, inst: Instruction, instead: Sequence[Instruction]) -> None:
        super().__init__()
        self.inst = inst
        self.instead = tuple(InstStmt(step.replace(span=inst.span), span=inst.span) for step in instead)

    def visit_InstStmt(self, stmt: InstStmt) -> Stmt:
        return SeqStmt(self.instead) if stmt.inst is self.inst else stmt


class _Context(LayoutContext):
    """What one instruction may ask while it proposes."""

    def __init__(self, search: _Search, inst: Instruction) -> None:
        self.search = search
        self.inst = inst
        self.why = ""

    @property
    def num_threads(self) -> int:
        return self.search.num_threads

    @property
    def insists(self) -> bool:
        return self.inst in self.search.insisting

    def vector_width(self, tile: RegisterTensor, access: Access) -> tuple[int, int]:
        dim, width = grid_analysis.vector_width(tile, access, self.search.facts, self.num_threads, ragged=True)
        element = f"{tile.dtype.nbits * width // 8} bytes" if width > 1 else "one element"
        self.why = f"for accesses of {element}" + (f" along dimension {dim}" if width > 1 else "")
        return dim, width

    def address_of(self, tensor: GlobalTensor) -> Expr:
        return self.search.views[tensor]

    def is_loaded(self, tile: RegisterTensor) -> bool:
        makers = [inst for inst in self.search.users[tile] if inst.output is tile or tile in inst.writes]
        return all(isinstance(inst, LOADS) for inst in makers)

    def divisor(self, expr: Expr) -> int:
        return self.search.facts.of(expr).divisor

    def because(self, why: str) -> None:
        self.why = why


def _all(words: Iterable[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    listed: Sequence[str] = list(words)
    return " and ".join([", ".join(listed[:-1]), listed[-1]]) if len(listed) > 1 else "".join(listed)
