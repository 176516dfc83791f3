# SPDX-License-Identifier: Apache-2.0
"""Did you mean: the known name that a mistyped one is nearest to."""

from collections.abc import Iterable


def suggest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that `name` most likely meant, or None when nothing is near."""
    allowed = max(1, len(name) // 3)
    best: tuple[int, str] | None = None
    for candidate in candidates:
        cost = _edit_distance(name.lower(), candidate.lower(), allowed)
        if cost <= allowed and (best is None or (cost, candidate) < best):
            best = (cost, candidate)
    return None if best is None else best[1]


def _edit_distance(a: str, b: str, limit: int) -> int:
    """How many typing slips turn `a` into `b`; past `limit` the exact number does not matter."""
    if abs(len(a) - len(b)) > limit:
        return limit + 1
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row = row, [i]
        for j, y in enumerate(b, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
        before = last
    return row[-1]
