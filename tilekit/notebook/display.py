# SPDX-License-Identifier: Apache-2.0
"""How kernels look in a notebook: one line each, the passes and the source folded below it.

Everything is static HTML with inline styles and reads without them too; the text form says the same.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from html import escape
from typing import Any

from tilekit.jit.kernel import Kernel
from tilekit.transforms.recorder import Recorder

TABLE_FROM = 8
_MONO = "font-family:var(--jp-code-font-family,monospace);font-size:12px;line-height:1.5;font-variant-numeric:tabular-nums"
_MUTED = "color:var(--jp-ui-font-color2,#616161)"
_BOX = "border:1px solid var(--jp-border-color2,#e0e0e0);margin:4px 0;padding:6px 8px;overflow-x:auto"
_ADDED = "background:rgba(46,160,67,.15);text-decoration:none"
_REMOVED = "background:rgba(248,81,73,.15);text-decoration:none"


class CellSummary:
    """The kernels that a cell compiled or used, and what the compiler is doing now."""

    def __init__(self) -> None:
        self.kernels: list[Kernel] = []
        self.notes: list[str] = []
        self.progress = ""

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": self.text(), "text/html": self.html()}

    def text(self) -> str:
        return "\n".join([*(kernel.summary() for kernel in self.kernels), *self.notes, *filter(None, [self.progress])])

    def html(self) -> str:
        notes = "".join(f'<div style="{_MUTED}">{escape(note)}</div>' for note in (*self.notes, self.progress) if note)
        if len(self.kernels) >= TABLE_FROM:
            return f'<div style="{_MONO}">{_table(self.kernels)}{notes}</div>'
        lines = "".join(_kernel(kernel) for kernel in self.kernels)
        return f'<div style="{_MONO}">{lines}{notes}</div>'


def _kernel(kernel: Kernel) -> str:
    name, *facts = kernel.summary().split(" · ")
    line = f"<b>{escape(name)}</b> <span style=\"{_MUTED}\">{escape(' · '.join(facts))}</span>"
    return (
        f"<details><summary>{line}</summary>{passes_html(kernel.trace)}"
        f"<details open><summary>source.cu</summary>{_pre(kernel.source)}</details></details>"
    )


def _table(kernels: Sequence[Kernel]) -> str:
    rows = "".join(
        "<tr>" + "".join(f'<td style="text-align:left;padding:1px 8px">{escape(cell)}</td>' for cell in kernel.summary().split(" · ")) + "</tr>"
        for kernel in kernels
    )
    return f"<table><tbody>{rows}</tbody></table>"


def passes_html(recorder: Recorder) -> str:
    """A table of the passes: those that changed the program open to what they changed, line by line."""
    parts: list[str] = []
    for step in recorder.steps:
        title = f"{escape(step.stage.value)} · {escape(step.name)}"
        took = f'<span style="{_MUTED}">{step.seconds * 1e3:.1f} ms</span>'
        if not step.changed:
            parts.append(f'<div style="{_MUTED};padding-left:1em">{title} · unchanged · {took}</div>')
            continue
        before, after = step.before_text(), step.after_text()
        parts.append(f"<details><summary>{title} · {took}</summary>{_side_by_side(before, after)}</details>")
    return f'<div style="padding-left:1em">{"".join(parts)}</div>'


def _side_by_side(before: str, after: str) -> str:
    """Before and after in two columns; changed lines are marked by `-` and `+`, so it reads without colors."""
    old, new = before.splitlines(), after.splitlines()
    left: list[str] = []
    right: list[str] = []
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            left += [f"  {escape(line)}" for line in old[i1:i2]]
            right += [f"  {escape(line)}" for line in new[j1:j2]]
            continue
        removed = [f'<del style="{_REMOVED}">- {escape(line)}</del>' for line in old[i1:i2]]
        added = [f'<ins style="{_ADDED}">+ {escape(line)}</ins>' for line in new[j1:j2]]
        height = max(len(removed), len(added))
        left += removed + [""] * (height - len(removed))
        right += added + [""] * (height - len(added))
    cell = f'style="vertical-align:top;text-align:left;padding:0 8px;{_MONO}"'
    columns = "".join(f'<td {cell}><pre style="margin:0">{chr(10).join(side)}</pre></td>' for side in (left, right))
    head = f"<tr><th {cell}>before</th><th {cell}>after</th></tr>"
    return f'<div style="{_BOX}"><table><thead>{head}</thead><tbody><tr>{columns}</tr></tbody></table></div>'


def _pre(text: str) -> str:
    return f'<pre style="{_BOX};{_MONO}">{escape(text)}</pre>'
