# SPDX-License-Identifier: Apache-2.0
"""The diff is the shortest there is, pairs what is alike, and says the same in Python and in the browser."""

import json
import os
import pathlib
import random
import shutil
import subprocess
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tilekit import textdiff
from tilekit.textdiff import Kind

WIDGETS = pathlib.Path(__file__).parents[1] / "widgets"
VECTORS = WIDGETS / "test" / "vectors"

LINES = st.lists(st.sampled_from(["", "a", "  a", "  b(a, c)", "x = a + b", "x = a - b", "  sync()"]), max_size=16)


def vectors(name: str) -> list[dict]:
    return json.loads((VECTORS / f"{name}.json").read_text("utf-8"))


def rows(before: list[str], after: list[str]) -> list[list[int]]:
    return [[int(run.kind), run.left, run.right, run.count] for run in textdiff.align(before, after)]


def lcs_length(a: list[str], b: list[str]) -> int:
    """The textbook's table."""
    above = [0] * (len(b) + 1)
    for item in a:
        row = [0]
        for j, other in enumerate(b):
            row.append(above[j] + 1 if item == other else max(above[j + 1], row[j]))
        above = row
    return above[-1]


@pytest.mark.parametrize("case", vectors("lines"), ids=lambda case: case["name"])
def test_lines_are_aligned_as_the_vectors_say(case):
    assert rows(case["before"], case["after"]) == case["runs"]


@pytest.mark.parametrize("case", vectors("tokens"), ids=lambda case: f"{case['left']!r} {case['right']!r}")
def test_tokens_are_marked_as_the_vectors_say(case):
    assert [[list(span) for span in side] for side in textdiff.spans(case["left"], case["right"])] == case["spans"]


@given(LINES, LINES)
def test_no_diff_is_shorter(before, after):
    common = lcs_length(before, after)
    for few in (-1, textdiff._FEW):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(textdiff, "_FEW", few)
            assert textdiff.counts(before, after) == (len(after) - common, len(before) - common)


@given(LINES, LINES)
def test_hunks_make_the_new_text_of_the_old_one(before, after):
    made, at = [], 0
    for hunk in textdiff.hunks(before, after):
        made += before[at : hunk.removed.start] + [after[j] for j in hunk.added]
        at = hunk.removed.stop
    assert made + before[at:] == after


@given(LINES, LINES)
def test_rows_show_every_line_of_both_sides_once_and_in_order(before, after):
    left, right = [], []
    for run in textdiff.align(before, after):
        if run.kind is not Kind.ADDED:
            left += range(run.left, run.left + run.count)
        if run.kind is not Kind.REMOVED:
            right += range(run.right, run.right + run.count)
        if run.kind is Kind.SAME:
            assert before[run.left : run.left + run.count] == after[run.right : run.right + run.count]
    assert (left, right) == (list(range(len(before))), list(range(len(after))))


@given(LINES, LINES, st.integers(0, 3))
def test_the_unified_form_names_the_lines_that_it_shows(before, after, context):
    sides = {"-": before, "+": after}
    places = {}
    changed = {"-": 0, "+": 0}
    for line in textdiff.unified(before, after, context):
        if line.startswith("@@"):
            starts = [part.partition(",") for part in line.split()[1:3]]
            places = {first[0]: int(first[1:]) - (count != "0") for first, _, count in starts}
            continue
        for sign in "-+" if line[0] == " " else line[0]:
            assert sides[sign][places[sign]] == line[1:]
            places[sign] += 1
        if line[0] != " ":
            changed[line[0]] += 1
    assert (changed["+"], changed["-"]) == textdiff.counts(before, after)


@given(LINES, LINES, st.integers(-1, 8))
@example(["", "a"], ["a", "", "", "", ""], -1)
def test_however_much_differs_and_however_long_it_is_the_result_is_the_same(before, after, few):
    expected = rows(before, after)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(textdiff, "_FEW", few)  # with -1, nothing is found by what is left out
        assert rows(before, after) == expected
        patch.setattr(textdiff, "_KEPT_CELLS", 8)  # and now in blocks
        assert rows(before, after) == expected


def test_beyond_the_cap_the_middle_counts_as_replaced(monkeypatch):
    monkeypatch.setattr(textdiff, "MAX_CELLS", 8)
    before, after = ["head", "a", "b", "c", "tail"], ["head", "c", "a", "b", "tail"]
    assert textdiff.counts(before, after) == (3, 3)


@given(st.text("ab (),+\t1é", max_size=20), st.text("ab (),+\t1é", max_size=20))
def test_what_is_not_marked_is_the_same_on_both_sides(left, right):
    def unmarked(text: str, marked: list[textdiff.Span]) -> str:
        for start, stop in reversed(marked):
            text = text[:start] + text[stop:]
        return "".join(text.split())

    on_left, on_right = textdiff.spans(left, right)
    assert unmarked(left, on_left) == unmarked(right, on_right)


@pytest.mark.parametrize("of", ["unrolled", "equal", "renamed", "unrelated"])
def test_long_texts_that_repeat_or_have_nothing_in_common_stay_fast(of):
    body = [f"    t_{n % 40}: f16[{n % 7}, 8] = mma(t_{n % 30}, t_{n % 11}, offset={n})" for n in range(3000)]
    before, after = {
        "unrolled": (body, body * 3),
        "equal": (["fma()"] * 3000, ["fma()"] * 9000),
        "renamed": (body, [line.replace("t_", "u_") for line in body]),
        "unrelated": (body, [f"{n}: lane {n % 32}" for n in range(3000)]),
    }[of]
    began = time.process_time()
    textdiff.align(before, after)
    assert time.process_time() - began < 2


def random_text(most: int = 60) -> list[str]:
    parts = ["x", "y(x)", " = ", "+ 1", "  ", ", ", "[7]", "é"]
    return ["".join(random.choices(parts, k=random.randrange(5))) for _ in range(random.randrange(most))]


def random_pair(most: int = 60) -> tuple[list[str], list[str]]:
    before = random_text(most)
    edited = [line + random.choice(["", " z"]) for line in before if random.random() < 0.8]
    return before, random.choice([random_text(most), edited])


def check_twin(pairs: list[tuple[list[str], list[str]]], folder: pathlib.Path):
    """The browser's half makes the same rows and marks of these pairs."""
    lines, tokens = [], []
    for number, (before, after) in enumerate(pairs):
        lines.append({"name": str(number), "before": before, "after": after, "runs": rows(before, after)})
        for left, right in zip(before, after, strict=False):
            tokens.append({"left": left, "right": right, "spans": textdiff.spans(left, right)})
    (folder / "lines.json").write_text(json.dumps(lines))
    (folder / "tokens.json").write_text(json.dumps(tokens))
    environment = os.environ | {"TILEKIT_VECTORS": str(folder)}
    subprocess.run(["node", "build.mjs", "--tests"], cwd=WIDGETS, check=True)
    command = ["node", "--test", "build/test/textdiff.test.js"]
    done = subprocess.run(command, cwd=WIDGETS, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]


needs_modules = pytest.mark.skipif(
    shutil.which("node") is None or not (WIDGETS / "node_modules").exists(), reason="no node modules: run make widgets"
)


@needs_modules
def test_case_70_71_the_twin_in_the_browser_says_the_same_of_fresh_texts(tmp_path: pathlib.Path):
    check_twin([random_pair() for _ in range(300)], tmp_path)


@pytest.mark.slow
@needs_modules
def test_case_70_of_ten_thousand_random_pairs_none_has_a_shorter_diff_in_either_language(tmp_path: pathlib.Path):
    pairs = [random_pair(24) for _ in range(10_000)]
    for before, after in pairs:
        common = lcs_length(before, after)
        assert textdiff.counts(before, after) == (len(after) - common, len(before) - common)
    check_twin(pairs, tmp_path)


def test_case_70_one_line_of_a_thousand_that_repeat_is_one_added_and_one_removed():
    before = [f"fma(acc_{n % 30}, {n % 15})" for n in range(1000)]
    at = random.randrange(1000)
    after = [*before[:at], "fma(acc_0, changed)", *before[at + 1 :]]
    assert textdiff.counts(before, after) == (1, 1)
    assert textdiff.counts(["x"], ["x", "++i;"]) == (1, 0)
    assert textdiff.counts(["--i;", "x"], ["x"]) == (0, 1)


def test_case_71_of_three_deleted_and_four_inserted_lines_those_are_paired_that_are_alike_and_in_order():
    before = ["x = load(g, offset=1)", "sync_threads()", "y = mma(a, b, c)"]
    after = ["y = mma(a, b, d)", "x = load(g, offset=2)", "print('hello')", "y = mma(a, b, e)"]
    pairs = [
        (before[run.left + k], after[run.right + k])
        for run in textdiff.align(before, after)
        if run.kind is Kind.EDITED
        for k in range(run.count)
    ]
    assert pairs == [(before[0], after[1]), (before[2], after[3])]
    assert textdiff.spans(*pairs[0]) == ([(19, 20)], [(19, 20)])
    assert textdiff.spans("t_12: f16", "t_123: f16") == ([(0, 4)], [(0, 5)])


def test_a_heading_names_the_methods_of_its_lines_in_their_order():
    before = ["a", *map(str, range(20)), "b", "c"]
    after = ["A", *map(str, range(20)), "C"]
    visits = {"methods": [{"name": "visit_A"}, {"name": "visit_B"}], "before": [[0, 0], [21, 1], [22, 0]], "after": []}
    headings = [line for line in textdiff.unified(before, after, 1, visits) if line.startswith("@@")]
    assert headings == ["@@ -1,2 +1,2 @@ visit_A", "@@ -21,3 +21,2 @@ visit_B visit_A"]
    assert [line for line in textdiff.unified(before, after, 1) if line.startswith("@@")] == [
        heading.rpartition("@@")[0] + "@@" for heading in headings
    ]


def test_what_is_known_of_a_line_is_carried_to_the_one_that_it_is_or_that_was_edited_to_it():
    before = ["x = load(g, offset=1)", "sync_threads()", "y = mma(a, b, c)"]
    after = ["# new", "x = load(g, offset=2)", "y = mma(a, b, c)"]
    known = [random.random() for _ in before]
    assert textdiff.carried(known, before, after) == [None, known[0], known[2]]
    assert textdiff.carried(known, before, before) == known
    assert textdiff.carried([], [], after) == [None] * 3
