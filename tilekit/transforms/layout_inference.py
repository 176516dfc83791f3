# SPDX-License-Identifier: Apache-2.0
"""Layout inference: which thread holds which element of every register tile.

The search works on a side table {tile: choice} and rewrites the function once, at its end. Step by step it takes one
instruction's proposal: instructions that know some of their layouts before those that know none, then by the order of
their class, larger tiles first, later instructions first. What nobody asks for is spread over the threads.

Then every instruction checks what it was given. One whose check fails insists: the search starts over, and this time
that instruction may speak up on less knowledge, before others decide against it. If that does not help, the error
tells how the two tiles came to where they are.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tilekit.diag import errors
from tilekit.diag.diagnostic import Note
from tilekit.diag.span import Span
from tilekit.events import Sink
from tilekit.ir.analysis import grid_analysis
from tilekit.ir.analysis.scalar_analysis import Facts, analyze
from tilekit.ir.func import Function
from tilekit.ir.inst import Instruction
from tilekit.ir.instructions.memory import GlobalViewInst
from tilekit.ir.layout.register_layout import RegisterLayout
from tilekit.ir.layouts import LayoutContext, spread
from tilekit.ir.machine import Access
from tilekit.ir.prog import Program
from tilekit.ir.tensor import GlobalTensor, RegisterTensor
from tilekit.ir.text.names import Names
from tilekit.ir.tools.instruction_collector import collect_instructions
from tilekit.ir.tools.rewriter import rewrite
from tilekit.lowir.scalar import Expr
from tilekit.transforms.base import SILENT, Pass


@dataclass(frozen=True, eq=False)
class Choice:
    """The layout of one tile: the instruction that chose it, why, and the tiles that it went by."""

    tensor: RegisterTensor
    layout: RegisterLayout
    who: Instruction | None
    why: str
    after: tuple[RegisterTensor, ...] = ()

    @property
    def span(self) -> Span | None:
        return None if self.who is None else self.who.span


# the choices for one function, in the order in which they were made
LayoutTrail = tuple[Choice, ...]


@dataclass(frozen=True)
class InferenceResult:
    """The function in which every register tile has a layout, and how each came by it."""

    func: Function
    trail: LayoutTrail


class LayoutInferencePass(Pass):
    """Gives a layout to every register tile; notes the choices as `layouts`, a `LayoutTrail` per function name."""

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
    """Find a layout for every register tile of a function that has none.

    Raises
    ------
    LayoutError
        TK310 where two tiles meet in an instruction and no layouts suit it and everybody else.
    """
    search = _Search(func)
    choices = search.run()
    placed = {
        tensor: tensor.replace(optional_layout=choice.layout)
        for tensor, choice in choices.items()
        if tensor.optional_layout is None
    }

    def now(tensor: RegisterTensor) -> RegisterTensor:
        return placed.get(tensor, tensor)

    trail = tuple(
        replace(choice, tensor=now(choice.tensor), after=tuple(map(now, choice.after))) for choice in choices.values()
    )
    return InferenceResult(rewrite(func, placed) if placed else func, trail)


# ---------------------------------------------------------------------------------------------------------- the search

_Choices = dict[RegisterTensor, Choice]
_Rank = tuple[int, int, int]


class _Search:
    """The choices for the tiles of one function."""

    def __init__(self, func: Function) -> None:
        self.func = func
        self.names = Names.of_function(func)
        instructions = collect_instructions(func)
        self.views = {inst.view: inst.ptr for inst in instructions if isinstance(inst, GlobalViewInst)}
        self.instructions = [inst for inst in instructions if inst.register_tensors]
        self.tensors = tuple(dict.fromkeys(t for inst in self.instructions for t in inst.register_tensors))
        self.facts = Facts.from_analysis(func.metadata.analysis or analyze(func))
        # who speaks before whom; no two instructions have one rank
        self.rank: dict[Instruction, _Rank] = {
            inst: (type(inst).order, -max(t.size for t in inst.register_tensors), -position)
            for position, inst in enumerate(self.instructions)
        }
        self.users: dict[RegisterTensor, list[Instruction]] = {tensor: [] for tensor in self.tensors}
        for inst in self.instructions:
            for tensor in inst.register_tensors:
                self.users[tensor].append(inst)
        self.insisting: set[Instruction] = set()

    def run(self) -> _Choices:
        while True:
            choices = self.solve()
            failed = self.first_failure(choices)
            if failed is None:
                return choices
            if failed in self.insisting:
                raise self.conflict(failed, choices)
            self.insisting.add(failed)

    def solve(self) -> _Choices:
        """A choice for every tile, whether or not they go together."""
        choices: _Choices = {}
        known: dict[RegisterTensor, RegisterLayout] = {}
        # instructions that have learned something since they were last asked, and those that never heard of anything
        learned: list[tuple[_Rank, Instruction]] = []
        ignorant = sorted(self.rank.items(), key=lambda item: item[1], reverse=True)

        def make(made: Sequence[Choice]) -> None:
            choices.update((choice.tensor, choice) for choice in made)
            known.update((choice.tensor, choice.layout) for choice in made)
            for inst in dict.fromkeys(inst for choice in made for inst in self.users[choice.tensor]):
                heapq.heappush(learned, (self.rank[inst], inst))

        make([_given(tensor, tensor.layout) for tensor in self.tensors if tensor.optional_layout is not None])
        while len(choices) < len(self.tensors):
            if learned:
                make(self.proposals(heapq.heappop(learned)[1], known))
            elif ignorant:
                make(self.proposals(ignorant.pop()[0], known))
            else:
                tensor = max((t for t in self.tensors if t not in choices), key=lambda t: t.size)
                make([Choice(tensor, spread(tensor.shape, self.num_threads), None, "it was spread over the threads")])
        return choices

    def proposals(self, inst: Instruction, known: Mapping[RegisterTensor, RegisterLayout]) -> list[Choice]:
        """What an instruction says about those of its tiles that nobody spoke for yet."""
        if all(tensor in known for tensor in inst.register_tensors):
            return []
        context = _Context(self, inst)
        proposal = {t: layout for t, layout in inst.propose(known, context).items() if t not in known}
        after = self.known_to(inst, known)
        why = context.why or f"to suit {_all(map(self.tile, after))}"
        return [Choice(tensor, layout, inst, why, after) for tensor, layout in proposal.items()]

    def known_to(self, inst: Instruction, known: Mapping[RegisterTensor, object]) -> tuple[RegisterTensor, ...]:
        return tuple(dict.fromkeys(t for t in inst.register_tensors if t in known))

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
        tiles = _all(map(self.tile, dict.fromkeys(inst.register_tensors)))
        return errors.LayoutError(
            "TK310",
            f"{tiles} do not lie where {inst.opcode} needs them: {reason}",
            at=inst.span,
            notes=self.history(inst, choices),
            help="compute one of them from a tile of its own, loaded a second time: then each can lie where it must",
        )

    def history(self, inst: Instruction, choices: _Choices) -> list[Note]:
        """How each tile of `inst` came by its layout, back to the first choice."""
        notes: list[Note] = []
        told: set[RegisterTensor] = set()
        waiting = list(reversed(tuple(dict.fromkeys(inst.register_tensors))))
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

    def tile(self, tensor: RegisterTensor) -> str:
        """A tile in words: the user's name for it, or what it is."""
        kind = f"{tensor.dtype.short_name}[{', '.join(map(str, tensor.shape))}]"
        return f"{self.names.name(tensor)} ({kind})" if tensor.name else f"the {kind} tile {self.names.name(tensor)}"


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
        dim, width = grid_analysis.vector_width(tile, access, self.search.facts, self.num_threads)
        element = f"{tile.dtype.nbits * width // 8} bytes" if width > 1 else "one element"
        self.why = f"for accesses of {element}" + (f" along dimension {dim}" if width > 1 else "")
        return dim, width

    def address_of(self, tensor: GlobalTensor) -> Expr:
        return self.search.views[tensor]


def _given(tensor: RegisterTensor, layout: RegisterLayout) -> Choice:
    return Choice(tensor, layout, None, "it was given with the tile")


def _all(words: Iterable[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    listed: Sequence[str] = list(words)
    return " and ".join([", ".join(listed[:-1]), listed[-1]]) if len(listed) > 1 else "".join(listed)
