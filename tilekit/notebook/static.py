# SPDX-License-Identifier: Apache-2.0
"""Kernels as HTML that needs nothing: no script, no style sheet, no network.

Styles are inline and only please; what was changed is said by signs and elements, because some hosts take styles away.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from tilekit.events import Stage
from tilekit.jit.kernel import Kernel

if TYPE_CHECKING:
    from tilekit.transforms.recorder import Recorder, Step

# rows of before and after that one kernel shows; its trace has them all
MAX_ROWS = 400
# unchanged lines around each change
CONTEXT = 3
# two stretches with more pairs of lines than this are shown as replaced, for comparing them takes too long
MAX_PAIRS = 200_000

# what a step does that is no pass
_BETWEEN = {
    Stage.VERIFY: "no objection",
    Stage.LOWER: "tile IR to Hidet IR",
    Stage.CODEGEN: "Hidet IR to CUDA C",
    Stage.PTX: "CUDA C to PTX",
    Stage.PTXAS: "PTX to machine code",
    Stage.SASS: "machine code to SASS",
    Stage.HOST: "CUDA C to a CPU library",
}

_FONT = (
    "font-family:var(--jp-code-font-family,ui-monospace,Menlo,Consolas,monospace);font-size:11.5px;line-height:18px;"
    "font-variant-numeric:tabular-nums"
)
_MUTED = "color:var(--jp-ui-font-color2,#757575)"
_LINE = "var(--jp-border-color2,#e0e0e0)"
_PANEL = f"margin:2px 0 6px 14px;border:1px solid {_LINE};border-radius:3px;overflow:hidden"
_TEXT = f"margin:0;padding:4px 8px;border:0;background:none;{_FONT};white-space:pre;overflow-x:auto"
_CELL = "width:50%;padding:0;vertical-align:top;text-align:left;background:none;font:inherit;max-width:0"
_ROW = "display:inline-block;width:100%;color:inherit;text-decoration:none"
_ADDED = f"{_ROW};background:rgba(46,160,67,.16)"
_REMOVED = f"{_ROW};background:rgba(248,81,73,.16)"
_GREEN = "color:var(--jp-success-color1,#388e3c)"
_RED = "color:var(--jp-error-color1,#d32f2f)"


def frame(content: str) -> str:
    """The box that everything else stands in."""
    return f'<div class="tk-static" style="{_FONT}">{content}</div>'


def remark(text: str) -> str:
    return f'<div style="{_MUTED}">{escape(text)}</div>'


def kernel(kernel: Kernel) -> str:
    """A kernel in one line, which opens to its passes and its source."""
    source = kernel.source
    title = f"<b>source.cu</b> {_muted(_count(len(source.splitlines()), 'line'))}"
    return (
        f"<details><summary>{_summary(kernel)}</summary>{passes(kernel.trace)}"
        f'<details style="margin-left:14px"><summary>{title}</summary>{_source(source)}</details></details>'
    )


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
        cells += [f'<td style="{cell};{_MUTED}">{escape(fact)}</td>' for fact in facts]
        rows.append(f'<tr style="background:none">{"".join(cells)}</tr>')
    return f'<table style="margin:0;font:inherit;border:0"><tbody>{"".join(rows)}</tbody></table>'


def _summary(kernel: Kernel) -> str:
    name, *facts = kernel.facts()
    return f"<b>{escape(name)}</b> {_muted(' · '.join(facts))}"


def _muted(text: str) -> str:
    return f'<span style="{_MUTED}">{escape(text)}</span>'


def _text(lines: str) -> str:
    """Lines that scroll sideways; the span is as wide as the longest, so that the ground of each reaches as far."""
    return f'<pre style="{_TEXT}"><span style="display:inline-block;min-width:100%">{lines}</span></pre>'


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


# --------------------------------------------------------------------------------------------------------------- passes


def passes(recorder: Recorder) -> str:
    """Every pass in a line; one that changed the program opens to what it changed."""
    left = MAX_ROWS
    parts: list[str] = []
    for number, step in enumerate(recorder.steps, start=1):
        if step.error is not None or not step.changed:
            parts.append(f'<div style="padding-left:14px;{_MUTED}">{number:02} {escape(_outcome(step))}</div>')
            continue
        rows = changed_rows(step.before_text.splitlines(), step.after_text.splitlines())
        time = _muted(f"{step.seconds * 1e3:.1f} ms")
        title = f"{number:02} <b>{escape(step.name)}</b> {_balance(rows)} {time}"
        parts.append(f"<details><summary>{title}</summary>{_side_by_side(rows, left)}</details>")
        left = max(0, left - len(rows))
    return f'<div style="margin-left:14px">{"".join(parts)}</div>'


def passes_text(recorder: Recorder) -> str:
    """Every pass in a line of text, without what it changed."""
    return "\n".join(f"{number:02} {_outcome(step)}" for number, step in enumerate(recorder.steps, start=1))


def _outcome(step: Step) -> str:
    if step.error is not None:
        return f"{step.name} failed: {step.error}"
    what = _BETWEEN.get(step.stage) or ("changed" if step.changed else "no change")
    return f"{step.name} · {what} · {step.seconds * 1e3:.1f} ms"


@dataclass(frozen=True)
class Row:
    """A row of before and after: None where the side has no line, `changed` or not, or a fold of unchanged lines."""

    before: str | None
    after: str | None
    changed: bool = False
    folded: int = 0


def changed_rows(before: Sequence[str], after: Sequence[str]) -> list[Row]:
    """The changed lines side by side, a few unchanged ones around them, and folds in place of the others."""
    blocks = list(_blocks(before, after))
    rows: list[Row] = []
    for number, (is_equal, old, new) in enumerate(blocks):
        if not is_equal:
            height = max(len(old), len(new))
            pad_old, pad_new = [*old, *[None] * (height - len(old))], [*new, *[None] * (height - len(new))]
            rows += [Row(a, b, changed=True) for a, b in zip(pad_old, pad_new, strict=True)]
            continue
        head = CONTEXT if number > 0 else 0
        tail = CONTEXT if number < len(blocks) - 1 else 0
        lines = [Row(a, b) for a, b in zip(old, new, strict=True)]
        # a fold of one line would be as high as the line
        if len(lines) <= head + tail + 1:
            rows += lines
        else:
            folded = Row(None, None, folded=len(lines) - head - tail)
            rows += [*lines[:head], folded, *lines[len(lines) - tail :]]
    return rows


def _blocks(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[bool, Sequence[str], Sequence[str]]]:
    """Stretches of lines that are equal or not, in turn; what is equal at both ends is not compared again."""
    shorter = min(len(before), len(after))
    head = next((i for i in range(shorter) if before[i] != after[i]), shorter)
    tail = next((i for i in range(shorter - head) if before[-1 - i] != after[-1 - i]), shorter - head)
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    if head:
        yield True, before[:head], after[:head]
    if len(old) * len(new) > MAX_PAIRS:
        yield False, old, new
    else:
        for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            yield tag == "equal", old[i1:i2], new[j1:j2]
    if tail:
        yield True, before[len(before) - tail :], after[len(after) - tail :]


def _balance(rows: Sequence[Row]) -> str:
    added = sum(row.changed and row.after is not None for row in rows)
    removed = sum(row.changed and row.before is not None for row in rows)
    return f'<span style="{_GREEN}">+{added}</span> <span style="{_RED}">−{removed}</span>'


def _side_by_side(rows: Sequence[Row], most: int) -> str:
    """Before and after in two columns; `-` and `+` mark what changed, so it reads without colors."""
    shown = rows[:most]
    left = _text("\n".join(_side(row, row.before, "-", "del", _REMOVED) for row in shown))
    right = _text("\n".join(_side(row, row.after, "+", "ins", _ADDED) for row in shown))
    columns = f'<td style="{_CELL}">{left}</td><td style="{_CELL};border-left:1px solid {_LINE}">{right}</td>'
    head = "".join(f'<th style="{_CELL};padding:0 8px;{_MUTED}">{side}</th>' for side in ("before", "after"))
    rest = len(rows) - len(shown)
    more = remark(f"  and {_count(rest, 'row')} more: print(….trace) shows them all") if rest else ""
    return (
        f'<div style="{_PANEL}"><table style="width:100%;margin:0;border:0;border-collapse:collapse;font:inherit">'
        f'<thead><tr style="background:none">{head}</tr></thead>'
        f'<tbody><tr style="background:none">{columns}</tr></tbody></table>{more}</div>'
    )


def _side(row: Row, line: str | None, sign: str, element: str, style: str) -> str:
    if row.folded:
        return f'<span style="{_MUTED}">  ⋯ {_count(row.folded, "unchanged line")}</span>'
    if line is None:
        return ""
    if not row.changed:
        return f"  {escape(line)}"
    return f'<{element} style="{style}">{sign} {escape(line)}</{element}>'


# --------------------------------------------------------------------------------------------------------------- source


def _source(text: str) -> str:
    lines = "\n".join(_source_line(line) for line in text.rstrip("\n").split("\n"))
    return f'<div style="{_PANEL}">{_text(lines)}</div>'


def _source_line(line: str) -> str:
    """A line of source; comments, which carry the tile instruction, step back."""
    return _muted(line) if line.lstrip().startswith("//") else escape(line)
