# SPDX-License-Identifier: Apache-2.0
"""Three-way merge by lines: two texts that came from one, as one text, if they changed different places of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tilekit import textdiff
from tilekit.textdiff import Hunk


@dataclass(frozen=True, slots=True)
class Merged:
    """The merged text; where `conflicts` is not 0, both sides stand in it, between marks."""

    text: str
    conflicts: int


def merge(base: str, edited: str, generated: str) -> Merged:
    """Bring both changes of `base` together.

    Changes that overlap or touch are a conflict unless they are the same: a kernel in which two neighboring lines
    were changed by two hands is better looked at by a person.
    """
    old, left, right = _lines(base), _lines(edited), _lines(generated)
    merged: list[str] = []
    conflicts = at = 0
    for place, mine, other in _regions(textdiff.hunks(old, left), textdiff.hunks(old, right)):
        merged += old[at : place.start]
        at = place.stop
        before, our, their = (
            old[place.start : place.stop],
            _side(mine, place, old, left),
            _side(other, place, old, right),
        )
        if their in (before, our):
            merged += our
        elif our == before:
            merged += their
        else:
            conflicts += 1
            merged += ["<<<<<<< edited", *our, "=======", *their, ">>>>>>> generated"]
    merged += old[at:]
    return Merged("\n".join(merged) + "\n", conflicts)


def _lines(text: str) -> list[str]:
    """Blank lines at the end of a text are nobody's change."""
    return text.rstrip().split("\n")


def _regions(left: Sequence[Hunk], right: Sequence[Hunk]) -> Iterator[tuple[range, list[Hunk], list[Hunk]]]:
    """The places of the old text that changed, each with the hunks of either side that lie in it."""
    place, sides = range(0), ([], [])
    for hunk, side in sorted(((h, s) for s, hunks in enumerate((left, right)) for h in hunks), key=_begin):
        if any(sides) and hunk.removed.start > place.stop:
            yield place, *sides
            place, sides = range(0), ([], [])
        first = hunk.removed.start if not any(sides) else place.start
        place = range(first, max(place.stop, hunk.removed.stop))
        sides[side].append(hunk)
    if any(sides):
        yield place, *sides


def _begin(item: tuple[Hunk, int]) -> tuple[int, int]:
    return item[0].removed.start, item[0].removed.stop


def _side(hunks: Sequence[Hunk], place: range, old: Sequence[str], new: Sequence[str]) -> list[str]:
    """What one side made of a place of the old text."""
    lines: list[str] = []
    at = place.start
    for hunk in hunks:
        lines += [*old[at : hunk.removed.start], *new[hunk.added.start : hunk.added.stop]]
        at = hunk.removed.stop
    return [*lines, *old[at : place.stop]]
