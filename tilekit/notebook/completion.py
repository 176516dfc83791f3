# SPDX-License-Identifier: Apache-2.0
"""Completion of the options on the line of a magic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from IPython.core.completer import CompletionContext, SimpleCompletion, context_matcher

from tilekit import target
from tilekit.notebook import options, own_passes

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_OF_PASSES = (f"%{own_passes.NAME}", f"%%{own_passes.NAME}")


@context_matcher()  # pyright: ignore[reportArgumentType]  # IPython types its own matchers by another protocol
def tilus_matcher(context: CompletionContext) -> Any:
    """The options, and behind some of them the names of targets and passes; other lines are left to others."""
    line = context.line_with_cursor[: context.cursor_position]
    *before, typed = line.replace("=", " ").split(" ")
    if not before or before[0] not in (options.MAGIC, *_OF_PASSES):
        return {"completions": [], "suppress": False}
    if before[0] in _OF_PASSES:
        names = before[-1] in own_passes.NAMING
        choices, kind = (own_passes.names(), "pass") if names else (list(own_passes.OPTIONS), "option")
    elif before[-1] == "--target":
        choices, kind = [each.name for each in target.ALL], "target"
    else:
        choices, kind = list(options.NAMES), "option"
    found = [SimpleCompletion(text=choice, type=kind) for choice in choices if choice.startswith(typed)]
    return {"completions": found, "suppress": bool(found), "matched_fragment": typed}


def register(shell: InteractiveShell) -> None:
    if shell.Completer is not None:
        shell.Completer.custom_matchers.append(tilus_matcher)


def unregister(shell: InteractiveShell) -> None:
    if shell.Completer is not None and tilus_matcher in shell.Completer.custom_matchers:
        shell.Completer.custom_matchers.remove(tilus_matcher)
