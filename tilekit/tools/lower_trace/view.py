# SPDX-License-Identifier: Apache-2.0
"""`tilekit trace view`: the steps of a run in a terminal, the list on the left, what a step did on the right.

`Browser` knows what is on the screen and what a key does to it; `browse` shows it with curses.
"""

from __future__ import annotations

import contextlib
import curses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilekit import textdiff
from tilekit.tools.lower_trace import plain, queries, terminal
from tilekit.tools.lower_trace.console import Style
from tilekit.tools.lower_trace.journal import Status, Step
from tilekit.tools.lower_trace.queries import Blame, Place

KEYS = {
    "j k": "next, previous step of the list",
    "n p": "next, previous change in the text",
    "[ ]": "previous, next phase",
    "/": "find in all texts; Enter alone finds the next",
    "f": "list only steps of such a name",
    "c": "list only steps that did something",
    "b": "blame: which step made each line",
    "e": "the whole text, or a few lines around each change",
    "x": "mark a step, then compare another with it",
    "↑ ↓ PgUp PgDn": "move in the text",
    "?": "this help",
    "Esc": "leave what is open",
    "q": "quit",
}
_LIST_WIDTH = 46
_PROMPTS = {"/": "find: ", "f": "list: "}

# a piece of text, and how it is shown
Piece = tuple[str, Style]


@dataclass
class Browser:
    """What is shown: a list of steps, the current one, and its text from some line on."""

    place: Place
    at: Step | None = None
    top: int = 0
    only_changes: bool = False
    name: str = ""
    needle: str = ""
    whole: bool = False
    blames: bool = False
    helps: bool = False
    marked: Step | None = None
    prompt: str = ""
    typed: str = ""
    said: str = ""
    # how many lines of text the last screen had
    page: int = field(default=1, init=False)

    def __post_init__(self) -> None:
        self.at = self.at or queries.opening(self.place.steps)

    @property
    def steps(self) -> list[Step]:
        """Those that are listed."""
        steps = [step for step in self.place.steps if self.name.lower() in f"{step.phase}/{step.title}".lower()]
        return [step for step in steps if _is_eventful(step)] if self.only_changes else steps

    # --------------------------------------------------------------------------------------------------------- keys

    def press(self, key: str) -> bool:
        """What a key does; False if it ends the view."""
        self.said = ""
        if self.prompt:
            self._type(key)
            return True
        match key:
            case "q":
                return False
            case "j" | "k":
                self._step(1 if key == "j" else -1)
            case "]" | "[":
                self._phase(1 if key == "]" else -1)
            case "n" | "p":
                self._change(1 if key == "n" else -1)
            case "down" | "up":
                self._scroll(1 if key == "down" else -1)
            case "pgdn" | "pgup" | " ":
                self._scroll(-self.page if key == "pgup" else self.page)
            case "/" | "f":
                self.prompt, self.typed = key, ""
            case "c":
                self.only_changes = not self.only_changes
                self._stay_listed()
            case "b":
                self.blames, self.top = not self.blames, 0
            case "e":
                self.whole, self.top = not self.whole, 0
            case "x":
                self.marked = None if self.marked is self.at else self.at
            case "?":
                self.helps = not self.helps
            case "esc":
                self._leave()
            case _:
                pass
        return True

    def _type(self, key: str) -> None:
        match key:
            case "esc":
                self.prompt = ""
            case "enter":
                prompt, self.prompt = self.prompt, ""
                if prompt == "f":
                    self.name = self.typed
                    self._stay_listed()
                else:
                    self._find(self.typed)
            case "backspace":
                self.typed = self.typed[:-1]
            case _ if len(key) == 1:
                self.typed += key
            case _:
                pass

    def _leave(self) -> None:
        """Leave what was opened last."""
        if self.helps:
            self.helps = False
        elif self.blames:
            self.blames = False
        elif self.marked is not None:
            self.marked = None
        else:
            self.needle = self.name = ""

    def _go(self, step: Step) -> None:
        self.at, self.top = step, 0

    def _stay_listed(self) -> None:
        steps = self.steps
        if steps and self.at not in steps:
            self._go(steps[0])

    def _step(self, by: int) -> None:
        steps = self.steps
        if self.at in steps:
            self._go(steps[min(max(steps.index(self.at) + by, 0), len(steps) - 1)])

    def _phase(self, by: int) -> None:
        steps = self.steps
        firsts = [step for before, step in zip([None, *steps], steps, strict=False) if _place(step) != _place(before)]
        here = next((i for i, first in enumerate(firsts) if _place(first) == _place(self.at)), None)
        if here is not None:
            self._go(firsts[min(max(here + by, 0), len(firsts) - 1)])

    def _change(self, by: int) -> None:
        """To the next hunk of the text."""
        changes = [
            i for i, ((text, style), *_) in enumerate(self.text()) if style is Style.PLACE and text.startswith("@@")
        ]
        ahead = [i for i in changes if (i > self.top if by > 0 else i < self.top)]
        if ahead:
            self.top = ahead[0] if by > 0 else ahead[-1]

    def _scroll(self, by: int) -> None:
        self.top = min(max(self.top + by, 0), max(len(self.text()) - self.page, 0))

    def _find(self, text: str) -> None:
        """To the next step, in a ring, that has the text in what it made; an empty one means that of before."""
        self.needle = text or self.needle
        steps = self.steps
        if not self.needle or not steps:
            return
        holders = self._holders()
        at = steps.index(self.at) if self.at in steps else -1
        ring = [*steps[at + bool(not text) :], *steps[: at + bool(not text)]]
        step = next((each for each in ring if each in holders), None)
        if step is None:
            self.said = f"no step has {self.needle}"
            return
        self._go(step)
        wanted = self.needle.lower()
        lines = ["".join(piece for piece, _ in row).lower() for row in self.text()]
        self.top = next((i for i, line in enumerate(lines) if wanted in line), 0)
        self.said = f"{self.needle}: in {len(holders)} steps, {plain.short(holders[0])} to {plain.short(holders[-1])}"

    def _holders(self) -> list[Step]:
        found = [queries.find(self.place.run, compile, self.needle) for compile in self.place.compiles]
        return [step for each in found for step in each.holders]

    # --------------------------------------------------------------------------------------------------- what is shown

    def screen(self, width: int, height: int) -> list[list[Piece]]:
        """The rows of a screen of this size, each not longer than it is wide."""
        self.page = max(height - 2, 1)
        left = max(min(_LIST_WIDTH, width // 2), 2)
        listed, text = self._listed(self.page), self.text()[self.top : self.top + self.page]
        rows = [[(self._head(), Style.HEADING)]]
        for number in range(self.page):
            name, style = listed[number] if number < len(listed) else ("", Style.PLAIN)
            row = text[number] if number < len(text) else []
            rows.append([(f"{name[: left - 2]:{left - 2}}", style), ("│ ", Style.PLAIN), *row])
        rows.append([(self._foot(), Style.PLACE)])
        return [_cut(row, width) for row in rows[:height]]

    def _head(self) -> str:
        if self.at is None:
            return "no steps"
        compile = self.place.run.compiles[self.at.c]
        filters = [f"only {self.name}"] if self.name else []
        filters += ["only what did something"] if self.only_changes else []
        return " · ".join([terminal.name_of(compile) or "passes called by hand", compile.target, *filters])

    def _foot(self) -> str:
        if self.prompt:
            return f"{_PROMPTS[self.prompt]}{self.typed}▏"
        return self.said or "j k step · n p change · / find · f c filter · b blame · x compare · ? help · q quit"

    def _listed(self, count: int) -> list[Piece]:
        """As many steps around the current one as there is room for."""
        steps = self.steps
        at = steps.index(self.at) if self.at in steps else 0
        first = max(min(at - count // 2, len(steps) - count), 0)
        return [(self._named(step), self._style(step)) for step in steps[first : first + count]]

    def _named(self, step: Step) -> str:
        sign = "x" if step is self.marked else ">" if step is self.at else " "
        added = f" +{step.added} -{step.removed}" if step.changed and step.added is not None else ""
        return f"{sign}{_glyph(step)} {'  ' * step.depth}{plain.short(step)}{added}"

    def _style(self, step: Step) -> Style:
        if step is self.at:
            return Style.HEADING
        if step.status is not Status.DONE:
            return Style.FAILED
        return Style.PLAIN if _is_eventful(step) else Style.PLACE

    def text(self) -> list[list[Piece]]:
        """What is told of the current step."""
        if self.helps:
            return [[(f"{keys:14}", Style.HEADING), (what, Style.PLAIN)] for keys, what in KEYS.items()]
        step = self.at
        if step is None:
            return []
        time = "" if step.ns is None else f" · {step.ns / 1e6:.2f} ms"
        rows = _rows([f"{plain.short(step)} · {step.phase} · {plain.words_of(step)}{time}"], Style.HEADING)
        if step.failure is not None:
            rows += _rows(f"{step.failure.type}: {step.failure.message}".split("\n"), Style.FAILED)
        after = plain.lines_made(self.place.run, step)
        if self.blames:
            return rows + self._blamed(step, after)
        if self.marked is not None and self.marked is not step:
            rows.append([(f"beside {plain.short(self.marked)}", Style.PLACE)])
            return rows + self._differences(plain.lines_made(self.place.run, self.marked), after)
        if step.changed and not step.is_translation and step.before is not None:
            return rows + self._differences(self.place.run.lines(step.before), after, step.notes.get("visits"))
        return rows + _rows(after)

    def _differences(
        self, before: Sequence[str], after: Sequence[str], visits: Mapping[str, Any] | None = None
    ) -> list[list[Piece]]:
        context = max(len(before), len(after)) if self.whole else terminal.CONTEXT
        lines = textdiff.unified(before, after, context, visits)
        return [[(line, terminal.STYLES.get(line[:1], Style.PLAIN))] for line in lines]

    def _blamed(self, step: Step, lines: Sequence[str]) -> list[list[Piece]]:
        if step.after is None:
            return _rows(lines)
        makers = Blame(self.place.run, self.place.run.compiles[step.c]).of(step)
        names = [plain.short(maker) for maker in makers]
        width = max(map(len, names), default=0)
        return [
            [(f"{name:{width}} ", Style.PLACE), (line, Style.PLAIN)] for name, line in zip(names, lines, strict=True)
        ]


def _rows(lines: Sequence[str], style: Style = Style.PLAIN) -> list[list[Piece]]:
    return [[(line, style)] for line in lines]


def _cut(row: Sequence[Piece], width: int) -> list[Piece]:
    """A row that is no wider, in one-column characters."""
    cut: list[Piece] = []
    for text, style in row:
        printable = "".join(char if char.isprintable() else " " for char in text.expandtabs(4))
        cut.append((printable[:width], style))
        width -= len(cut[-1][0])
    return cut


def _place(step: Step | None) -> tuple[int, str] | None:
    return None if step is None else (step.c, step.phase)


def _is_eventful(step: Step) -> bool:
    return step.changed or step.is_translation or step.status is not Status.DONE


def _glyph(step: Step) -> str:
    if step.status is not Status.DONE:
        return "✕"
    return "◆" if step.is_translation else "●" if step.changed else "○"


# ------------------------------------------------------------------------------------------------------------- curses

_KEY_NAMES = {
    curses.KEY_DOWN: "down",
    curses.KEY_UP: "up",
    curses.KEY_NPAGE: "pgdn",
    curses.KEY_PPAGE: "pgup",
    curses.KEY_BACKSPACE: "backspace",
    curses.KEY_ENTER: "enter",
}
_CHARACTERS = {"\n": "enter", "\r": "enter", "\x1b": "esc", "\x7f": "backspace", "\b": "backspace"}
_COLORS = {Style.ADDED: curses.COLOR_GREEN, Style.REMOVED: curses.COLOR_RED, Style.PLACE: curses.COLOR_CYAN}


def can_browse() -> bool:
    """Whether this terminal writes at any place of its screen."""
    try:
        curses.setupterm()
    except curses.error:  # nothing is known of it
        return False
    return curses.tigetstr("cup") is not None


def browse(place: Place, at: Step | None = None) -> None:
    """Show a run in the terminal until somebody quits; `at` is the step to begin with."""
    curses.set_escdelay(25)
    curses.wrapper(_show, Browser(place, at))


def _show(window: curses.window, browser: Browser) -> None:
    looks = _looks()
    with contextlib.suppress(curses.error):  # some show their cursor always
        curses.curs_set(0)
    while True:
        height, width = window.getmaxyx()
        window.erase()
        for number, row in enumerate(browser.screen(width - 1, height)):
            column = 0
            for text, style in row:
                # characters may be wider than one column, and the screen smaller by now
                with contextlib.suppress(curses.error):
                    window.addstr(number, column, text, looks[style])
                column += len(text)
        window.refresh()
        try:
            key = window.get_wch()
        except KeyboardInterrupt:
            return
        name = _KEY_NAMES.get(key, "") if isinstance(key, int) else _CHARACTERS.get(key, key)
        if not browser.press(name):
            return


def _looks() -> dict[Style, int]:
    """How each style looks where there are colors, and where there are none."""
    looks = dict.fromkeys(Style, curses.A_NORMAL)
    looks[Style.HEADING] = looks[Style.FAILED] = curses.A_BOLD
    if curses.has_colors():
        curses.use_default_colors()
        for number, (style, color) in enumerate((*_COLORS.items(), (Style.FAILED, curses.COLOR_RED)), start=1):
            curses.init_pair(number, color, -1)
            looks[style] |= curses.color_pair(number)
    return looks
