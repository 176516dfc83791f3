# SPDX-License-Identifier: Apache-2.0
"""A recorder of a compile: it keeps the immutable objects that passes hand on, and prints them when somebody looks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from tilekit import textdiff, transforms
from tilekit.diag import suggest
from tilekit.diag.errors import PassError
from tilekit.events import Null, Stage
from tilekit.ir.tensor import SharedTensor
from tilekit.ir.text import parser
from tilekit.lowir import module_text
from tilekit.lowir.nodes import IRModule
from tilekit.transforms import tile_test
from tilekit.transforms.base import SILENT, Pass
from tilekit.transforms.layout_inference import Choice, LayoutTrail

# where one language becomes another there is nothing to compare
_PASSES = (Stage.TILE, Stage.HIDET)


@dataclass(frozen=True)
class Step:
    """One pass: the very objects before and after it; `error` is what it died of.

    `notes` are what the pass told of itself: `custom` that it is a person's, `visits` which method changed which line.
    """

    stage: Stage
    name: str
    before: object
    after: object
    seconds: float
    error: BaseException | None = None
    notes: Mapping[str, object] = field(default_factory=dict[str, object])

    @property
    def is_pass(self) -> bool:
        """Whether before and after are one language, so that they can be compared."""
        return self.stage in _PASSES

    @property
    def changed(self) -> bool:
        """Whether this is a pass that changed the program: one that does not returns the object it was given."""
        return self.is_pass and self.after is not self.before

    @property
    def before_text(self) -> str:
        return text_of(self.before)

    @property
    def after_text(self) -> str:
        return text_of(self.after)

    def diff(self) -> str:
        """The lines that the pass took away and those that it added, with some around them.

        Of a person's pass each heading names the methods that did it.
        """
        visits = cast("dict[str, Any] | None", self.notes.get("visits"))
        return "\n".join(textdiff.unified(self.before_text.splitlines(), self.after_text.splitlines(), 2, visits))

    def save_test(self, path: str | os.PathLike[str]) -> Path:
        """Write the step as a test: a `.tile` file as those in `tests/transforms`, which passes as it is written.

        The pass runs once more, on the program as it is read back from its text. A file that is there gains a case,
        unless it has this one already.

        Parameters
        ----------
        path
            Where to write; the name of the pass stands in the file.

        Raises
        ------
        PassError
            TK413 if this is no tile pass that ended well, or the file cannot be written.
        """
        if not isinstance(path, (str, os.PathLike)):  # pyright: ignore[reportUnnecessaryIsInstance]  # a user's
            raise PassError("TK413", f"a test is written to the path of a file, not to {path!r}")
        own = self._pass()
        if own is None or self.error is not None:
            raise PassError("TK413", f"{self.name} is no tile pass that ended well, so there is no test to write")
        after = own(parser.parse_program(self.before_text), SILENT)
        case, file = tile_test.text(self.name, self.before_text, str(after)), Path(path)
        try:
            before = file.read_text() if file.exists() else ""
            if case not in before:
                file.write_text(f"{before.rstrip()}\n\n{case}" if before.strip() else case)
        except (OSError, ValueError) as error:  # ValueError: a name that no file can have, or no text in the file
            raise PassError("TK413", f"no test can be written to {path!r}: {error}") from error
        return file

    def _pass(self) -> Pass | None:
        """The tile pass that it was."""
        if (told := cast("dict[str, Any] | None", self.notes.get("custom"))) is not None:
            return told["pass"]
        default = transforms.get_default_passes() if self.stage is Stage.TILE else []
        return next((each for each in default if each.name == self.name), None)


class Recorder(Null):
    """Listens to a compile and keeps references: it costs nothing until a text is asked for."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.notes: dict[str, object] = {}
        # the notes of each step that has begun
        self._open: list[dict[str, object]] = []

    def begin(self, stage: Stage, name: str, before: object) -> None:
        self._open.append({})

    def end(self, stage: Stage, name: str, before: object, after: object, seconds: float) -> None:
        self.steps.append(Step(stage, name, before, after, seconds, notes=self._close()))

    def fail(self, stage: Stage, name: str, error: BaseException) -> None:
        self.steps.append(Step(stage, name, None, None, 0.0, error, self._close()))

    def _close(self) -> dict[str, object]:
        # who only tells of the ends of steps has no notes
        return self._open.pop() if self._open else {}

    def note(self, key: str, value: object) -> None:
        self.notes[key] = value
        if self._open:
            self._open[-1][key] = value

    def step(self, name: str) -> Step:
        """The step of this name; `analyze_scalar#2` is the second one.

        Raises
        ------
        PassError
            TK414 if there is none.
        """
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # it comes from a user
            raise PassError("TK414", f"a step goes by its name, such as layout_inference, not by {name!r}")
        plain, _, number = name.partition("#")
        nth = int(number) if number.isdecimal() else 0 if "#" in name else 1
        found = [step for step in self.steps if step.name == plain][max(nth - 1, 0) :][:1] if nth else []
        if not found:
            near = suggest(plain, {step.name for step in self.steps} - {plain})
            raise PassError("TK414", f"the compile has no step {name}", help=near and f"did you mean {near}?")
        return found[0]

    @property
    def changed(self) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if step.changed)

    def text(self) -> str:
        """Every step in a line, and under those that changed something what they changed."""
        return "\n".join(line for step in self.steps for line in _lines(step))

    def __str__(self) -> str:
        return self.text()

    def layouts(self) -> Mapping[str, LayoutTrail]:
        """How each register tile came by its layout, by function."""
        return cast("Mapping[str, LayoutTrail]", self.notes.get("layouts", {}))

    def layout_rows(self) -> list[tuple[str, str, str, str, str]]:
        """For each register and shared tensor: its name, type and layout, the instruction that chose it, and why."""
        return [layout_row(choice) for trail in self.layouts().values() for choice in trail]

    def dump(self) -> dict[str, bytes]:
        """A file per step: `ir/` has the program after each tile pass, `module/ir/` after each Hidet pass."""
        files: dict[str, bytes] = {}
        for folder, stage in (("ir", Stage.TILE), ("module/ir", Stage.HIDET)):
            steps = [step for step in self.steps if step.stage is stage]
            if steps:
                files[f"{folder}/0_original.txt"] = steps[0].before_text.encode()
            for number, step in enumerate(steps, start=1):
                files[f"{folder}/{number}_{step.name}.txt"] = step.after_text.encode()
        return files


def text_of(stage_value: object) -> str:
    """A program, a module or a source as text."""
    if isinstance(stage_value, IRModule):
        return module_text.to_text(stage_value)
    return "" if stage_value is None else str(stage_value)


def _lines(step: Step) -> list[str]:
    head = f"{step.stage.value:7} {step.name}"
    if step.error is not None:
        return [f"{head}: failed, {step.error}"]
    time = f"{1e3 * step.seconds:.2f} ms"
    if step.stage not in _PASSES:
        return [f"{head}: {time}"]
    if not step.changed:
        return [f"{head}: no change, {time}"]
    return [f"{head}: changed, {time}", *(f"    {line}" for line in step.diff().splitlines())]


def layout_row(choice: Choice) -> tuple[str, str, str, str, str]:
    """The name of a tensor, its type and layout, the instruction that chose it, and why."""
    tensor = choice.tensor
    where = "shared " if isinstance(tensor, SharedTensor) else ""
    kind = f"{where}{tensor.dtype.short_name}[{', '.join(map(str, tensor.shape))}]"
    who = "" if choice.who is None else choice.who.opcode
    return tensor.name, kind, str(choice.layout), who, choice.why
