# SPDX-License-Identifier: Apache-2.0
"""Completion of the options on a `%%tilus` line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from IPython.core.completer import CompletionContext, SimpleCompletion, context_matcher

from tilekit import target
from tilekit.notebook import options

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


@context_matcher()
def tilus_matcher(context: CompletionContext) -> Any:
    """`--` gives the options, and a target's name is completed behind `--target`."""
    line = context.line_with_cursor
    if not line.startswith("%%tilus"):
        return {"completions": [], "suppress": False}
    words = line.split()
    typed = "" if line.endswith(" ") else words[-1]
    before = words[-1] if line.endswith(" ") else words[-2] if len(words) > 1 else ""
    choices = [t.name for t in target.ALL] if before == "--target" else list(options.NAMES)
    found = [SimpleCompletion(text=choice, type="tilus") for choice in choices if choice.startswith(typed)]
    return {"completions": found, "suppress": bool(found), "matched_fragment": typed}


def register(shell: InteractiveShell) -> None:
    if shell.Completer is not None:
        shell.Completer.custom_matchers.append(tilus_matcher)


def unregister(shell: InteractiveShell) -> None:
    if shell.Completer is not None and tilus_matcher in shell.Completer.custom_matchers:
        shell.Completer.custom_matchers.remove(tilus_matcher)
