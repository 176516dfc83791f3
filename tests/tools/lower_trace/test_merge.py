# SPDX-License-Identifier: Apache-2.0
"""Changes of two hands, brought together by lines."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilekit.tools.lower_trace.merge import merge

LINES = st.lists(st.sampled_from(["a", "b", "c", "", "  x", "}", "for"]), max_size=12)


def text(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"


@given(LINES, LINES)
def test_a_change_of_one_side_is_taken(base: list[str], changed: list[str]) -> None:
    expected = text(changed).rstrip() + "\n"
    for ours, theirs in ((changed, base), (base, changed), (changed, changed)):
        merged = merge(text(base), text(ours), text(theirs))
        assert (merged.text, merged.conflicts) == (expected, 0)


@given(LINES, LINES, LINES)
def test_sides_that_trade_places_agree(base: list[str], left: list[str], right: list[str]) -> None:
    one, other = merge(text(base), text(left), text(right)), merge(text(base), text(right), text(left))
    assert one.conflicts == other.conflicts
    if not one.conflicts:
        assert one.text == other.text


@given(LINES, LINES, LINES)
def test_no_line_of_either_side_gets_lost(base: list[str], left: list[str], right: list[str]) -> None:
    left, right = [f"left {line}." for line in left], [f"right {line}." for line in right]
    merged = merge(text(base), text([*base, "--", *left]), text([*right, "--", *base])).text
    assert [line for line in merged.split("\n") if line.startswith("left ")] == left
    assert [line for line in merged.split("\n") if line.startswith("right ")] == right


def test_random_changes_of_different_places_are_all_there() -> None:
    for _ in range(200):
        base = [f"line {number}" for number in range(random.randint(9, 60))]
        ours, theirs, both = list(base), list(base), list(base)
        # every third line at most, and at least one untouched line between two changes
        for place in reversed(range(1, len(base) - 1, 3)):
            for one, change in zip((ours, theirs), random.choice([(0, 0), (1, 0), (0, 1), (1, 1)]), strict=True):
                if not change:
                    continue
                if both[place] != base[place]:  # the other side changed it already: change it the same way
                    one[place] = both[place]
                    continue
                new = f"changed {place} {random.random()}"
                one[place] = both[place] = new
        merged = merge(text(base), text(ours), text(theirs))
        assert (merged.text, merged.conflicts) == (text(both), 0)


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "expected"),
    [
        ("abcde", "aBcde", "abcDe", "aBcDe"),
        ("abcde", "acde", "abcxde", "acxde"),
        ("abc", "xabc", "abcy", "xabcy"),
        ("abc", "aBc", "aBc", "aBc"),
        ("abc", "", "abc", ""),
    ],
)
def test_changes_with_a_line_between_them_are_merged(base: str, ours: str, theirs: str, expected: str) -> None:
    merged = merge(*(text(list(side)) for side in (base, ours, theirs)))
    assert (merged.text, merged.conflicts) == (text(list(expected)), 0)


@pytest.mark.parametrize(
    ("base", "ours", "theirs"),
    [("abc", "aXc", "aYc"), ("abc", "aXc", "abY"), ("ab", "aXb", "aYb"), ("abc", "ac", "aXc")],
    ids=["same line", "neighbors", "insertions", "deleted and changed"],
)
def test_changes_that_meet_are_shown_side_by_side(base: str, ours: str, theirs: str) -> None:
    merged = merge(*(text(list(side)) for side in (base, ours, theirs)))
    assert merged.conflicts == 1
    marked = merged.text.split("\n")
    assert [line[:7] for line in marked if len(line) > 1] == ["<<<<<<<", "=======", ">>>>>>>"]
    assert "<<<<<<< edited" in marked and ">>>>>>> generated" in marked


def test_blank_lines_at_the_end_are_nobodys_change() -> None:
    assert merge("a\nb\n", "a\nB\n\n\n", "a\nb").text == "a\nB\n"
