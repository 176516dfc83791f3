# SPDX-License-Identifier: Apache-2.0
"""The one diff of tilekit: what changed between two texts, by lines, by pairs of lines, and by tokens within a pair.

Lines are matched by a longest common subsequence, so the answer is the shortest there is, also where lines repeat as in
unrolled loops. Where few are left out it is found along them (Myers' greedy algorithm), else on the bits of integers
(Hyyrö's recurrence), and where there are several, both find the same one. `widgets/src/common/textdiff.ts` is its twin
in the browser; both are held to the same vectors.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import accumulate, compress, count, pairwise
from math import isqrt
from operator import not_
from typing import Any, TypeVar

# Above this many cells (65,536 lines against as many) what lies between the common ends counts as replaced.
MAX_CELLS = 1 << 32
# Up to this many lines that both texts have may be left out before all of them are compared.
_FEW = 32
# States of up to this many cells are kept at once (8 MB); beyond it they are computed a second time, block by block.
_KEPT_CELLS = 1 << 26
# A hunk of up to this many cells is paired by similarity; in a larger one, lines of the same shape are paired first.
_PAIRED_CELLS = 1 << 8

_TOKEN = re.compile(r"[A-Za-z0-9_]+|[ \t]+|[^A-Za-z0-9_ \t]")
_INK = re.compile(r"[A-Za-z0-9_]+|[^A-Za-z0-9_ \t]")
_WORD = re.compile(r"[A-Za-z0-9_]+")


class Kind(IntEnum):
    """What a run of rows shows; the numbers are what the panels receive."""

    SAME = 0
    EDITED = 1  # a line and what became of it: similar enough to compare token by token
    REMOVED = 2
    ADDED = 3
    REPLACED = 4  # an old line beside a new one that has nothing to do with it


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines of the old text that gave way to lines of the new one."""

    removed: range
    added: range


@dataclass(frozen=True, slots=True)
class Run:
    """Rows of one kind, side by side: `count` of them, from line `left` of the old text and `right` of the new one."""

    kind: Kind
    left: int
    right: int
    count: int


Span = tuple[int, int]
T = TypeVar("T")


def hunks(before: Sequence[str], after: Sequence[str]) -> list[Hunk]:
    """The fewest lines to remove and to add that make `after` of `before`."""
    gone, come = map(deque, _unmatched(before, after))
    beyond = len(before) + len(after)
    found: list[Hunk] = []
    left = right = 0
    while gone or come:
        same = min(gone[0] - left if gone else beyond, come[0] - right if come else beyond)
        removed, added = _leading(gone, left + same), _leading(come, right + same)
        found.append(Hunk(removed, added))
        left, right = removed.stop, added.stop
    return _settled(found, before, after)


def _leading(places: deque[int], first: int) -> range:
    """Take away the places from `first` on that follow each other."""
    stop = first
    while places and places[0] == stop:
        stop = places.popleft() + 1
    return range(first, stop)


def counts(before: Sequence[str], after: Sequence[str]) -> tuple[int, int]:
    """How many lines were added, and how many removed."""
    found = hunks(before, after)
    return sum(len(hunk.added) for hunk in found), sum(len(hunk.removed) for hunk in found)


def align(before: Sequence[str], after: Sequence[str]) -> list[Run]:
    """The rows of a side-by-side view, in order."""
    runs: list[Run] = []
    left = right = 0
    for hunk in hunks(before, after):
        _extend(runs, Kind.SAME, left, right, hunk.removed.start - left)
        _align_hunk(runs, hunk, before, after)
        left, right = hunk.removed.stop, hunk.added.stop
    _extend(runs, Kind.SAME, left, right, len(before) - left)
    return runs


def carried(known: Sequence[T], before: Sequence[str], after: Sequence[str]) -> list[T | None]:
    """For each line of the new text what is known of the old one that it is or was made of; None for a new one."""
    found: list[T | None] = [None] * len(after)
    for run in align(before, after):
        if run.kind in (Kind.SAME, Kind.EDITED):
            for n in range(run.count):
                found[run.right + n] = known[run.left + n]
    return found


def unified(
    before: Sequence[str], after: Sequence[str], context: int = 3, visits: Mapping[str, Any] | None = None
) -> list[str]:
    """The changes as lines that begin with `-`, `+` or a space, under `@@` headings.

    `visits` is what a pass has noted of which of its methods changed which line: headings name them.
    """
    lines: list[str] = []
    for group in _grouped(hunks(before, after), context):
        first, last = group[0], group[-1]
        left = range(max(first.removed.start - context, 0), min(last.removed.stop + context, len(before)))
        right = range(max(first.added.start - context, 0), min(last.added.stop + context, len(after)))
        lines.append(f"@@ -{_place(left)} +{_place(right)} @@{_methods(visits, left, right)}")
        at = left.start
        for hunk in group:
            lines += [f" {before[i]}" for i in range(at, hunk.removed.start)]
            lines += [f"-{before[i]}" for i in hunk.removed]
            lines += [f"+{after[j]}" for j in hunk.added]
            at = hunk.removed.stop
        lines += [f" {before[i]}" for i in range(at, left.stop)]
    return lines


def spans(left: str, right: str) -> tuple[list[Span], list[Span]]:
    """The characters that differ between two versions of a line, on borders of tokens."""
    old, new = _TOKEN.findall(left), _TOKEN.findall(right)
    gone, come = _unmatched(old, new)
    return _uncovered(old, gone), _uncovered(new, come)


# --- lines: the longest common subsequence ----------------------------------------------------------------------------


def _matches(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs of equal items that form a longest common subsequence."""
    gone, come = map(set, _unmatched(a, b))
    kept = (i for i in range(len(a)) if i not in gone), (j for j in range(len(b)) if j not in come)
    return list(zip(*kept, strict=True))


def _unmatched(a: Sequence[str], b: Sequence[str]) -> tuple[list[int], list[int]]:
    """The items of each that a longest common subsequence leaves out, in order."""
    shorter = min(len(a), len(b))
    head = next((k for k in range(shorter) if a[k] != b[k]), shorter)
    tail = next((k for k in range(shorter - head) if a[-1 - k] != b[-1 - k]), shorter - head)
    middle_a, middle_b = a[head : len(a) - tail], b[head : len(b) - tail]
    # an item that only one side has can match nothing
    places_a, gone = _parted(middle_a, set(middle_b), head)
    places_b, come = _parted(middle_b, set(middle_a), head)
    if 0 < len(places_a) * len(places_b) <= MAX_CELLS:
        left_a, left_b = _left_out([a[i] for i in places_a], [b[j] for j in places_b])
        places_a, places_b = [places_a[i] for i in left_a], [places_b[j] for j in left_b]
    return sorted(gone + places_a), sorted(come + places_b)


def _parted(items: Sequence[str], others: set[str], first: int) -> tuple[list[int], list[int]]:
    """Where the items are that are among the others, and where those that are not; counted from `first`."""
    shared = list(map(others.__contains__, items))
    return list(compress(count(first), shared)), list(compress(count(first), map(not_, shared)))


def _left_out(a: Sequence[str], b: Sequence[str]) -> tuple[set[int], set[int]]:
    frontiers = _frontiers(a, b)
    if frontiers is not None:
        return _walked_back(a, b, frontiers)
    pairs = _lcs(a, b)
    return {*range(len(a))}.difference(i for i, _ in pairs), {*range(len(b))}.difference(j for _, j in pairs)


def _frontiers(a: Sequence[str], b: Sequence[str]) -> list[dict[int, int]] | None:
    """How far one gets with 0, 1, 2 items left out and so on, until both end; None where that takes too many.

    The first `i` items of `a` against the first `j` of `b` lie on the diagonal `i - j`: for each, the greatest `i`.
    """
    end_a, end_b = len(a), len(b)
    found: list[dict[int, int]] = []
    last: dict[int, int] = {}
    for left_out in range(_FEW + 1):
        reached: dict[int, int] = {}
        for diagonal in range(-left_out, left_out + 1, 2):
            i = max(last.get(diagonal + 1, 0), last.get(diagonal - 1, -1) + 1)
            j = i - diagonal
            while i < end_a and j < end_b and a[i] == b[j]:
                i, j = i + 1, j + 1
            reached[diagonal] = i
        found.append(reached)
        if reached.get(end_a - end_b, -1) >= end_a:
            return found
        last = reached
    return None


def _walked_back(a: Sequence[str], b: Sequence[str], frontiers: list[dict[int, int]]) -> tuple[set[int], set[int]]:
    """What the way of `_lcs` leaves out: from the ends back, what it can of `a`, then what it can of `b`."""
    gone: set[int] = set()
    come: set[int] = set()
    i, j, left_out = len(a), len(b), len(frontiers) - 1
    while left_out:
        if i and j and a[i - 1] == b[j - 1]:
            i, j = i - 1, j - 1
            continue
        while left_out and frontiers[left_out - 1].get(i - 1 - j, -2) >= i - 1:
            i, left_out = i - 1, left_out - 1
            gone.add(i)
        while left_out and frontiers[left_out - 1].get(i - j + 1, -2) >= i:
            j, left_out = j - 1, left_out - 1
            come.add(j)
    return gone, come


def _lcs(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int]]:
    """In the state after b[j], bit i is clear where the LCS of a[..i] and b[..j] is longer than that of a[..i-1]."""
    occurrences: dict[str, int] = {}
    for i, item in enumerate(a):
        occurrences[item] = occurrences.get(item, 0) | 1 << i
    full = (1 << len(a)) - 1

    def step(state: int, item: str) -> int:
        hits = state & occurrences[item]
        return (state + hits | state - hits) & full

    block = len(b) if len(a) * len(b) <= _KEPT_CELLS else isqrt(len(b))
    starts = range(0, len(b), block)
    entries = [full]  # the state before each block
    for start in starts[:-1]:
        state = entries[-1]
        for item in b[start : start + block]:
            state = step(state, item)
        entries.append(state)

    pairs: list[tuple[int, int]] = []
    i = len(a) - 1
    seeking = False  # whether b[j] that made bit i clear lies in an earlier block
    for start, entry in zip(reversed(starts), reversed(entries), strict=True):
        states = [entry]
        for item in b[start : start + block]:
            states.append(step(states[-1], item))
        j = len(states) - 2
        while i >= 0 and j >= 0:
            if not seeking and a[i] == b[j + start]:  # equal ends are part of some longest one
                pairs.append((i, j + start))
                i, j = i - 1, j - 1
                continue
            clear = ~states[j + 1] & ((2 << i) - 1)
            i = clear.bit_length() - 1
            if i < 0:
                break
            bit = 1 << i
            while j >= 0 and not states[j] & bit:
                j -= 1
            seeking = j < 0
    return pairs[::-1]


def _settled(found: list[Hunk], before: Sequence[str], after: Sequence[str]) -> list[Hunk]:
    """Move what was only removed or only added, where it may lie in several places, to begin at an outer line."""
    settled: list[Hunk] = []
    for n, hunk in enumerate(found):
        if hunk.removed and hunk.added:
            settled.append(hunk)
            continue
        lines = before if hunk.removed else after
        own, *others = (h.removed if hunk.removed else h.added for h in (hunk, *settled[-1:], *found[n + 1 : n + 2]))
        # one line at least stays between two hunks
        lowest = others[0].stop + 1 if settled else 0
        highest = others[-1].start - 1 if n + 1 < len(found) else len(lines)
        shift = _best_shift(lines, own, lowest, highest)
        settled.append(Hunk(_moved(hunk.removed, shift), _moved(hunk.added, shift)))
    return settled


def _best_shift(lines: Sequence[str], own: range, lowest: int, highest: int) -> int:
    up = down = 0
    while own.start - up > lowest and lines[own.start - up - 1] == lines[own.stop - up - 1]:
        up += 1
    while own.stop + down < highest and lines[own.start + down] == lines[own.stop + down]:
        down += 1
    return min(range(-up, down + 1), key=lambda shift: (_indent(lines[own.start + shift]), -shift))


def _moved(lines: range, shift: int) -> range:
    return range(lines.start + shift, lines.stop + shift)


def _indent(line: str) -> int:
    """Its depth; an empty line is deeper than any, since nothing should begin with it."""
    text = line.lstrip(" \t")
    return len(line) - len(text) if text else 1 << 20


def _grouped(found: Sequence[Hunk], context: int) -> list[list[Hunk]]:
    """Hunks whose contexts touch stand together."""
    groups: list[list[Hunk]] = []
    for hunk in found:
        if groups and hunk.removed.start - groups[-1][-1].removed.stop <= 2 * context:
            groups[-1].append(hunk)
        else:
            groups.append([hunk])
    return groups


def _place(lines: range) -> str:
    first = lines.start + 1 if lines else lines.start
    return str(first) if len(lines) == 1 else f"{first},{len(lines)}"


def _methods(visits: Mapping[str, Any] | None, before: range, after: range) -> str:
    """The methods that changed some of these lines, in the order of the lines."""
    if visits is None:
        return ""
    told = ((visits["before"], before), (visits["after"], after))
    found = sorted((line - lines.start, number) for pairs, lines in told for line, number in pairs if line in lines)
    return "".join(f" {visits['methods'][number]['name']}" for number in dict.fromkeys(number for _, number in found))


# --- pairs of lines ---------------------------------------------------------------------------------------------------


def _align_hunk(runs: list[Run], hunk: Hunk, before: Sequence[str], after: Sequence[str]) -> None:
    old, new = [before[i] for i in hunk.removed], [after[j] for j in hunk.added]
    left, right = hunk.removed.start, hunk.added.start
    i = j = 0
    for pair_i, pair_j in [*_pairs(old, new), (len(old), len(new))]:
        removed, added = pair_i - i, pair_j - j
        beside = min(removed, added)
        _extend(runs, Kind.REPLACED, left + i, right + j, beside)
        _extend(runs, Kind.REMOVED, left + i + beside, right + pair_j, removed - beside)
        _extend(runs, Kind.ADDED, left + pair_i, right + j + beside, added - beside)
        if pair_i < len(old):
            _extend(runs, Kind.EDITED, left + pair_i, right + pair_j, 1)
        i, j = pair_i + 1, pair_j + 1


def _extend(runs: list[Run], kind: Kind, left: int, right: int, count: int) -> None:
    if count == 0:
        return
    if runs and runs[-1].kind is kind:
        runs[-1] = Run(kind, runs[-1].left, runs[-1].right, runs[-1].count + count)
    else:
        runs.append(Run(kind, left, right, count))


def _pairs(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Which of the old lines became which of the new ones: in order, and at least half alike."""
    if not old or not new:
        return []
    if len(old) * len(new) <= _PAIRED_CELLS:
        return _pairs_by_similarity(old, new)
    anchors = [(i, j) for i, j in _matches(_shapes(old), _shapes(new)) if _similarity(_bag(old[i]), _bag(new[j]))]
    pairs: list[tuple[int, int]] = []
    for (i, j), (next_i, next_j) in pairwise([(-1, -1), *anchors, (len(old), len(new))]):
        if i >= 0:
            pairs.append((i, j))
        gap_old, gap_new = old[i + 1 : next_i], new[j + 1 : next_j]
        if len(gap_old) * len(gap_new) <= _PAIRED_CELLS:
            pairs += [(i + 1 + di, j + 1 + dj) for di, dj in _pairs_by_similarity(gap_old, gap_new)]
    return pairs


def _shapes(lines: Sequence[str]) -> list[str]:
    return [_WORD.sub("w", line.strip(" \t")) for line in lines]


def _pairs_by_similarity(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """The pairing with the greatest sum of similarities."""
    bags_old, bags_new = [_bag(line) for line in old], [_bag(line) for line in new]
    similar = [[_similarity(a, b) for b in bags_new] for a in bags_old]
    best = [[0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i in reversed(range(len(old))):
        for j in reversed(range(len(new))):
            paired = similar[i][j] + best[i + 1][j + 1] if similar[i][j] else 0
            best[i][j] = max(paired, best[i + 1][j], best[i][j + 1])
    pairs: list[tuple[int, int]] = []
    i = j = 0
    while i < len(old) and j < len(new):
        if similar[i][j] and best[i][j] == similar[i][j] + best[i + 1][j + 1]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


@dataclass(frozen=True, slots=True)
class _Bag:
    """The distinct tokens of a line, and the characters they have in all."""

    tokens: frozenset[str]
    size: int


def _bag(line: str) -> _Bag:
    tokens = frozenset(_INK.findall(line))
    return _Bag(tokens, sum(map(len, tokens)))


def _similarity(a: _Bag, b: _Bag) -> int:
    """From 500 to 1000: the share of characters in tokens that both have; 0 below one half."""
    both = a.size + b.size
    if both == 0 or 4 * min(a.size, b.size) < both:
        return 0
    share = 2000 * sum(map(len, a.tokens & b.tokens)) // both
    return share if share >= 500 else 0


# --- tokens -----------------------------------------------------------------------------------------------------------


def _uncovered(tokens: Sequence[str], unmatched: Sequence[int]) -> list[Span]:
    """What the unmatched tokens cover; blanks between two of them belong to them, blanks at their ends do not."""
    starts = [0, *accumulate(map(len, tokens))]
    found: list[tuple[int, int]] = []  # of tokens
    for index in unmatched:
        if _is_blank(tokens[index]):
            continue
        last = found[-1][1] if found else 0
        if found and all(_is_blank(between) for between in tokens[last:index]):
            found[-1] = found[-1][0], index + 1
        else:
            found.append((index, index + 1))
    if not found:  # only blanks differ
        found = [(index, index + 1) for index in unmatched]
    return [(starts[first], starts[stop]) for first, stop in found]


def _is_blank(token: str) -> bool:
    return token[0] in " \t"
