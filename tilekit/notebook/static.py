# SPDX-License-Identifier: Apache-2.0
"""Kernels as HTML that needs nothing: no script, no network.

Styles only please; what was changed is said by signs and elements, because some hosts take styles away.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from tilekit import textdiff
from tilekit.jit.kernel import Kernel
from tilekit.jit.progress import Underway
from tilekit.jit.tables import ALARM, FONT, LINE, MUTED, RULE, muted
from tilekit.notebook.panels.steps import Steps, milliseconds, words
from tilekit.textdiff import Kind

if TYPE_CHECKING:
    from tilekit.transforms.recorder import Recorder

# rows of before and after that one kernel shows; its trace has them all
MAX_ROWS = 400
# unchanged lines around each change
CONTEXT = 3

_PANEL = f"margin:2px 0 6px 14px;border:{RULE};border-radius:3px;overflow:hidden"
_TEXT = (
    f"margin:0;padding:4px 8px;border:0;background:none;{FONT};white-space:pre;overflow-x:auto;"
    "scrollbar-width:thin;scrollbar-color:var(--jp-border-color1,#bdbdbd) transparent"
)
_CELL = "width:50%;padding:0;vertical-align:top;text-align:left;background:none;font:inherit;max-width:0"
_ROW = "display:inline-block;width:100%;color:inherit;text-decoration:none"
_ADDED = f"{_ROW};background:rgba(46,160,67,.16)"
_REMOVED = f"{_ROW};background:rgba(248,81,73,.16)"
# the tokens that differ in a line
_NEW = "font-weight:inherit;background:rgba(46,160,67,.28)"
_CUT = "font-weight:inherit;background:rgba(248,81,73,.24)"
_GREEN = "color:var(--jp-success-color1,#388e3c)"
# of the panel below, JupyterLab shows a bare text where there is no kernel: "Loading widget", "Error displaying widget"
_NO_DEAD_PANEL = (
    "<style>.jp-OutputArea-child:has(.tk-static)~.jp-OutputArea-child>.lm-Panel:not(:has(*)){display:none}</style>"
)


# what the passes of a kernel look like, in the cache
_PASSES = "passes.html"


def frame(content: str) -> str:
    """The box that everything else stands in."""
    return f'<div class="tk-static" style="{FONT}">{_NO_DEAD_PANEL}{content}</div>'


def remark(text: str) -> str:
    return f'<div style="{MUTED}">{escape(text)}</div>'


def link(page: Path) -> str:
    """A link to a page of a trace; a notebook finds it from the folder that it runs in."""
    path = os.path.relpath(page)
    shown = f'<a href="{escape(quote(path))}" target="_blank">{escape(path)}</a>'
    return f'<div style="{MUTED}">trace: {shown}</div>'


def plain_link(page: Path) -> str:
    """The same as text."""
    return f"trace: {os.path.relpath(page)}"


def launch(progress: Underway) -> str:
    """How far a launch is: a thin bar and its words."""
    bar = f"height:3px;background:{LINE};border-radius:2px;max-width:320px;margin:4px 0"
    done = f"height:3px;width:{progress.share:.1%};background:var(--jp-brand-color1,#1976d2);border-radius:2px"
    return f'<div style="{bar}"><div style="{done}"></div></div>{remark(progress.words)}'


def kernel(kernel: Kernel) -> str:
    """A kernel in one line, which opens to its passes and its source."""
    source = kernel.source
    title = f"<b>source.cu</b> {muted(_count(len(source.splitlines()), 'line'))}"
    return (
        f"<details><summary>{_summary(kernel)}</summary>{kernel.page(_PASSES, passes)}{_counted(kernel)}"
        f'<details style="margin-left:14px"><summary>{title}</summary>{_source(source)}</details></details>'
    )


def _counted(kernel: Kernel) -> str:
    """What the simulator counted in the last launch."""
    counted = "" if kernel.last_run is None else kernel.last_run.counted
    return f'<div style="margin-left:14px"><b>last run</b> {muted(counted)}</div>' if counted else ""


def kernel_line(kernel: Kernel) -> str:
    """A kernel in one line."""
    return f"<div>{_summary(kernel)}</div>"


def kernel_table(kernels: Sequence[Kernel]) -> str:
    """Many kernels, a row for each."""
    cell = "text-align:left;padding:0 16px 0 0;background:none;font:inherit"
    rows: list[str] = []
    for each in kernels:
        name, *facts = each.facts()
        cells = [f'<td style="{cell}"><b>{escape(name)}</b></td>']
        cells += [f'<td style="{cell};{MUTED}">{escape(fact)}</td>' for fact in facts]
        rows.append(f'<tr style="background:none">{"".join(cells)}</tr>')
    return f'<table style="margin:0;font:inherit;border:0"><tbody>{"".join(rows)}</tbody></table>'


def _summary(kernel: Kernel) -> str:
    name, *facts = kernel.facts()
    return f"<b>{escape(name)}</b> {muted(' · '.join(facts))}"


def _text(lines: str) -> str:
    """Lines that scroll sideways; the span is as wide as the longest, so that the ground of each reaches as far."""
    return f'<pre style="{_TEXT}"><span style="display:inline-block;min-width:100%">{lines}</span></pre>'


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


# --------------------------------------------------------------------------------------------------------------- passes


def passes(recorder: Recorder) -> str:
    """Every step in a line; a pass that changed the program opens to what it changed."""
    steps = Steps(recorder)
    left = MAX_ROWS
    parts: list[str] = []
    for number, step in enumerate(steps.steps, start=1):
        time = f"{milliseconds(step):.1f} ms"
        if what := words(step):
            line = escape(f"{step.title} · {what} · {time}")
            parts.append(f'<div style="padding-left:14px;{MUTED}">{number:02} {line}</div>')
            continue
        rows = changed_rows(*steps.sides(step))
        balance = f'<span style="{_GREEN}">+{step.added}</span> <span style="{ALARM}">−{step.removed}</span>'
        title = f"{number:02} <b>{escape(step.title)}</b> {balance} {muted(time)}"
        parts.append(f"<details><summary>{title}</summary>{_side_by_side(rows, left)}</details>")
        left = max(0, left - len(rows))
    return f'<div style="margin-left:14px">{"".join(parts)}</div>'


@dataclass(frozen=True)
class Row:
    """A row of before and after: None where a side has no line, or a fold of unchanged lines."""

    before: str | None
    after: str | None
    kind: Kind = Kind.SAME
    folded: int = 0


def changed_rows(before: Sequence[str], after: Sequence[str]) -> list[Row]:
    """The changed lines side by side, a few unchanged ones around them, and folds in place of the others."""
    rows: list[Row] = []
    runs = textdiff.align(before, after)
    for number, run in enumerate(runs):
        old = before[run.left : run.left + run.count]
        new = after[run.right : run.right + run.count]
        match run.kind:
            case Kind.REMOVED:
                rows += [Row(line, None, run.kind) for line in old]
            case Kind.ADDED:
                rows += [Row(None, line, run.kind) for line in new]
            case Kind.EDITED | Kind.REPLACED:
                rows += [Row(a, b, run.kind) for a, b in zip(old, new, strict=True)]
            case Kind.SAME:
                head = CONTEXT if number > 0 else 0
                tail = CONTEXT if number < len(runs) - 1 else 0
                rows += _folded([Row(line, line) for line in old], head, tail)
    return rows


def _folded(rows: list[Row], head: int, tail: int) -> list[Row]:
    """Equal rows without those further than `head` and `tail` from a change; one alone would be no higher folded."""
    if len(rows) <= head + tail + 1:
        return rows
    return [*rows[:head], Row(None, None, folded=len(rows) - head - tail), *rows[len(rows) - tail :]]


def _side_by_side(rows: Sequence[Row], most: int) -> str:
    """Before and after in two columns; `-` and `+` mark what changed, so it reads without colors."""
    shown = rows[:most]
    sides = [_sides(row) for row in shown]
    left, right = (_text("\n".join(side)) for side in zip(*sides, strict=True)) if sides else ("", "")
    columns = f'<td style="{_CELL}">{left}</td><td style="{_CELL};border-left:{RULE}">{right}</td>'
    head = "".join(f'<th style="{_CELL};padding:2px 8px;{MUTED}">{side}</th>' for side in ("before", "after"))
    rest = len(rows) - len(shown)
    more = remark(f"  and {_count(rest, 'row')} more: print(….trace) shows them all") if rest else ""
    return (
        f'<div style="{_PANEL}"><table style="width:100%;margin:0;border:0;border-collapse:collapse;font:inherit">'
        f'<thead style="border-bottom:{RULE}"><tr style="background:none">{head}</tr></thead>'
        f'<tbody><tr style="background:none">{columns}</tr></tbody></table>{more}</div>'
    )


def _sides(row: Row) -> tuple[str, str]:
    """A row as the HTML of its line on the left and on the right."""
    if row.folded:
        fold = f'<span style="{MUTED}">  ⋯ {_count(row.folded, "unchanged line")}</span>'
        return fold, fold
    if row.kind is Kind.SAME:
        same = f"  {escape(row.before or '')}"
        return same, same
    old, new = [], []
    if row.kind is Kind.EDITED and row.before is not None and row.after is not None:
        old, new = textdiff.spans(row.before, row.after)
    left = "" if row.before is None else f'<del style="{_REMOVED}">- {_marked(row.before, old, _CUT)}</del>'
    right = "" if row.after is None else f'<ins style="{_ADDED}">+ {_marked(row.after, new, _NEW)}</ins>'
    return left, right


def _marked(line: str, spans: Sequence[textdiff.Span], style: str) -> str:
    """The line with what differs in it on a darker ground."""
    parts: list[str] = []
    at = 0
    for begin, end in spans:
        parts += [escape(line[at:begin]), f'<b style="{style}">{escape(line[begin:end])}</b>']
        at = end
    return "".join([*parts, escape(line[at:])])


# --------------------------------------------------------------------------------------------------------------- source


def _source(text: str) -> str:
    lines = "\n".join(_source_line(line) for line in text.rstrip("\n").split("\n"))
    return f'<div style="{_PANEL}">{_text(lines)}</div>'


def _source_line(line: str) -> str:
    """A line of source; comments, which carry the tile instruction, step back."""
    return muted(line) if line.lstrip().startswith("//") else escape(line)
