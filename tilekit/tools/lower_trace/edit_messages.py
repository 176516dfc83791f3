# SPDX-License-Identifier: Apache-2.0
"""What is said about an edited source: the tag, the file, and what to do, one line for each thing that happened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from tilekit.tools.lower_trace.edit_table import Plan, Tag


@dataclass(frozen=True, slots=True)
class Names:
    """The files as people know them."""

    working: Path
    original: Path
    latest: Path
    generated: str  # what the text is that was generated


def messages_of(tag: Tag, plan: Plan, names: Names, places: Mapping[str, Path]) -> tuple[str, ...]:
    """The lines for a plan that ended as `tag`, having put things away at these places, by suffix."""
    said = _about_working(tag, plan, names, places)
    lines = [f"{tag.value} {said}", *plan.excerpt] if said else []
    bad, edited = places.get(".original.bad"), places.get(".original.bak") if tag is not Tag.CONFLICT else None
    if bad is not None:
        lines.append(f"{Tag.BASELINE_BAD.value} {names.original} {plan.why}: it is in {bad} now, and written again")
    if edited is not None:
        lines.append(f"{Tag.BASELINE_EDITED.value} {names.original} was edited: that text is in {edited} now")
    if tag in (Tag.BASELINE_BAD, Tag.BASELINE_EDITED) and plan.edited:
        lines.append(f"{Tag.PATCHED.value} from {names.working}")
    return tuple(lines)


def _about_working(tag: Tag, plan: Plan, names: Names, places: Mapping[str, Path]) -> str:
    working, generated = names.working, names.generated
    go_back = f"{generated} is compiled; delete the file to go back to it"
    match tag:
        case Tag.NONE | Tag.BASELINE_BAD | Tag.BASELINE_EDITED:
            return ""
        case Tag.INIT:
            return f"{working}: {generated}, to be edited"
        case Tag.INIT_BACKUP:
            return f"{working} was here before {generated}: it is in {places['.bak']} now"
        case Tag.ADOPTED:
            return f"{working}: it is what is generated"
        case Tag.RESTORED:
            return f"{working}: it was missing"
        case Tag.REGENERATED:
            return f"{working}: {generated} has changed"
        case Tag.SYNCED:
            return f"{working}: what is generated has become the same"
        case Tag.PATCHED:
            return f"from {working}"
        case Tag.MERGED:
            return f"{working}: {generated} has changed around the edit, which is in {places['.bak']} too"
        case Tag.KEPT:
            return f"from {working}, though {generated} has changed: see {names.latest}"
        case Tag.CONFLICT:
            return _about_conflict(working, generated, places)
        case Tag.EMPTY:
            return f"{working} is empty: {go_back}"
        case Tag.UNREADABLE:
            return f"{working} {plan.why}: {go_back}"
        case Tag.CANNOT_UPDATE:
            compiled = "" if plan.edited else f": {generated} is compiled"
            return f"{working}: cannot update it" + (f", {plan.why}" if plan.why else "") + compiled
        case Tag.REFUSED | Tag.PATCHED_INVALID:
            raise AssertionError(f"{tag} is an error")
        case _:
            assert_never(tag)


def _about_conflict(working: Path, generated: str, places: Mapping[str, Path]) -> str:
    backup, baseline, marked = (places.get(suffix) for suffix in (".bak", ".original.bak", ".conflict"))
    recover = f"; recover it with: diff {baseline} {backup}" if baseline is not None else ""
    both = f"; both sides are in {marked}" if marked is not None else ""
    return f"{working}: it and {generated} have both changed; the edit is in {backup} now{recover}{both}"
