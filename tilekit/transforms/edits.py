# SPDX-License-Identifier: Apache-2.0
"""Programs that a person edited between tile passes: the passes behind them go on from what was written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilekit import textdiff
from tilekit.diag import errors, suggest
from tilekit.events import Fanout, Null, Sink
from tilekit.ir.prog import Program
from tilekit.ir.text import parser


def tile_file(number: int, name: str) -> str:
    """What the program after a tile pass is called, the `number`-th of a compile from 1; step 0 was to verify it."""
    return f"{number:02d}_{name}"


def edited_program(text: str, generated: Program) -> Program:
    """The program of an edited text; lines that it shares with the generated one keep their places in the cell."""
    spans = textdiff.carried(generated.line_spans(), str(generated).split("\n"), text.split("\n"))
    return parser.parse_program(text, spans)


class Resumed(Null):
    """Answers tile passes with the programs of texts, unless they are just what the passes made; the last name wins.

    A pass goes by its name, the second of a name as `analyze_scalar#2`, or by its `tile_file`.
    """

    def __init__(self, edits: Mapping[str, str]) -> None:
        self._edits = edits
        self._steps: list[str] = []
        self._known: set[str] = set()

    def tile(self, name: str, prog: object) -> object | None:
        assert isinstance(prog, Program)
        count = 1 + sum(each.partition("#")[0] == name for each in self._steps)
        self._steps.append(name if count == 1 else f"{name}#{count}")
        names = {self._steps[-1], tile_file(len(self._steps), name)}
        self._known |= names
        texts = [text for given, text in self._edits.items() if given in names]
        if not texts or texts[-1].rstrip() == str(prog).rstrip():
            return None
        return edited_program(texts[-1], prog)

    def refuse_unknown(self) -> None:
        """Raise, once all passes ran, for a text whose pass was none of them."""
        unknown = next((name for name in self._edits if name not in self._known), None)
        if unknown is None:
            return
        near = suggest(unknown, self._steps)
        raise errors.ArgumentError(
            "TK412",
            f"there is no tile pass {unknown}: there are {', '.join(self._steps)}",
            help=f"did you mean {near}?" if near else None,
        )


class Answered(Fanout):
    """The sinks of a compile, and the texts of the programs that they answered to its tile passes, by `tile_file`."""

    def __init__(self, sinks: Sequence[Sink]) -> None:
        super().__init__(sinks)
        self.texts: dict[str, str] = {}
        self._passes = 0

    def tile(self, name: str, prog: object) -> object | None:
        self._passes += 1
        answer = super().tile(name, prog)
        if answer is not None:
            self.texts[tile_file(self._passes, name)] = str(answer)
        return answer
