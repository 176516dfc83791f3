# SPDX-License-Identifier: Apache-2.0
"""Questions about all steps of a compile: where a text is, who made each line, and where two compiles part."""

import itertools
import random
from collections.abc import Sequence

import pytest

from tests.tools.lower_trace.ears import HEAD, Ear
from tests.tools.lower_trace.synthetic import Program
from tilekit.events import Stage, step
from tilekit.tools.lower_trace import queries
from tilekit.tools.lower_trace.journal import Run
from tilekit.tools.lower_trace.queries import Blame, Place
from tilekit.tools.lower_trace.recording import Recording


def traced(*compiles) -> Run:
    """A run of these compiles, each the name of a kernel and the program before and after each pass."""
    ear = Ear()
    recording = Recording(HEAD, [ear], lambda message: pytest.fail(message))
    for kernel, passes in compiles:
        sink = recording.compile(kernel)
        for name, before, after in passes:
            with step(sink, Stage.TILE, name, before) as underway:
                underway.made(after)
        sink.done(None)
    recording.close()
    return ear.read()


def chain(*texts: str, names: Sequence[str] = "abcdefgh"):
    programs = [Program(text) for text in texts]
    return [(name, *pair) for name, pair in zip(names, itertools.pairwise(programs), strict=False)]


def names(steps) -> list[str]:
    return [each.title for each in steps]


# ------------------------------------------------------------------------------------------------------------- find


def test_case_79_the_first_and_the_last_step_that_have_a_text_are_found():
    run = traced(("k", chain("x", "x\ny", "x\ny\nmma_sync(1)", "MMA_SYNC(2)", "x")))
    found = queries.find(run, run.compiles[0], "mma_sync")
    assert found.first is not None and found.last is not None and found.gone is not None
    assert (found.first.title, found.last.title, found.gone.title) == ("b", "c", "d")
    assert names(found.holders) == ["b", "c"]
    assert not found.is_original


def test_case_79_a_text_that_was_there_from_the_beginning_is_gone_where_it_goes():
    run = traced(("k", chain("old", "old", "new")))
    found = queries.find(run, run.compiles[0], "old")
    assert found.is_original
    assert names(found.holders) == ["a"]
    assert found.gone is not None and found.gone.title == "b"
    first = queries.find(run, run.compiles[0], "nothing")
    assert not first
    assert first.first is first.last is first.gone is None


# ------------------------------------------------------------------------------------------------------------ blame


def random_pipeline(rng: random.Random):
    """Passes that edit, add and remove lines; no two lines are ever the same, so who made one is beyond doubt."""
    number = iter(range(10**6))
    lines = [f"line {next(number)}" for _ in range(rng.randrange(1, 30))]
    texts = [lines]
    for _ in range(rng.randrange(1, 15)):
        lines = list(lines)
        for _ in range(rng.randrange(5)):
            at, kind = rng.randrange(len(lines) + 1), rng.random()
            if kind < 0.3 or at == len(lines):
                lines.insert(at, f"line {next(number)}")
            elif kind < 0.7:
                lines[at] = f"line {next(number)}"
            elif len(lines) > 1:
                del lines[at]
        texts.append(lines)
    return texts


@pytest.mark.parametrize("seed", range(100))
def test_case_79_blame_agrees_with_looking_through_all_programs(seed):
    texts = random_pipeline(random.Random(seed))
    run = traced(("k", chain(*("\n".join(lines) for lines in texts), names=[f"p{i}" for i in range(len(texts))])))
    compile = run.compiles[0]
    blame = Blame(run, compile)
    for number, made in enumerate(compile.steps):
        expected = []
        for line in texts[number + 1]:
            makers = [i for i in range(number + 1) if line in texts[i + 1] and line not in texts[i]]
            expected.append(compile.steps[makers[-1]] if makers else None)
        assert blame.of(made) == expected


def test_a_translation_makes_every_line_anew():
    ear = Ear()
    sink = Recording(HEAD, [ear], pytest.fail).compile("k")
    tile, hidet = Program("a\nb"), Program("a\nc")
    for stage, name, before, after in ((Stage.TILE, "p", tile, tile), (Stage.LOWER, "lower", tile, hidet)):
        with step(sink, stage, name, before) as underway:
            underway.made(after)
    sink.done(None)
    run = ear.read()
    first, lower = run.compiles[0].steps
    assert Blame(run, run.compiles[0]).of(first) == [None, None]
    assert Blame(run, run.compiles[0]).of(lower) == [lower, lower]


def test_a_step_in_a_step_is_blamed_for_what_it_made():
    ear = Ear()
    sink = Recording(HEAD, [ear], pytest.fail).compile("k")
    programs = [Program(text) for text in ("a", "a\nb", "a\nb\nc")]
    with step(sink, Stage.TILE, "outer", programs[0]) as outer:
        with step(sink, Stage.TILE, "inner", programs[0]) as inner:
            inner.made(programs[1])
        outer.made(programs[2])
    sink.done(None)
    run = ear.read()
    outside, inside = run.compiles[0].steps
    assert [None if who is None else who.title for who in Blame(run, run.compiles[0]).of(outside)] == [
        None,
        "inner",
        "outer",
    ]
    assert names(queries.in_order_of_ends([outside, inside])) == ["inner", "outer"]


# ------------------------------------------------------------------------------------------------------------ beside


def test_case_78_passes_of_two_compiles_stand_side_by_side_by_name_and_occurrence():
    a = chain("1", "2", "3", "4", names=["x", "y", "x"])
    b = chain("1", "2", "2", "3", "5", names=["x", "new", "y", "x"])
    run = traced(("k", a), ("k", b))
    pairs = queries.beside(*run.compiles)
    rows = [(p.a.title if p.a else None, p.b.title if p.b else None, p.is_same) for p in pairs]
    assert rows == [("x", "x", True), (None, "new", False), ("y", "y", True), ("x#2", "x#2", False)]
    first = queries.first_difference(pairs)
    assert first is not None and first.a is None and first.b is not None and first.b.title == "new"


def test_case_78_compiles_of_two_runs_are_paired_by_what_they_are_for():
    one = traced(("f", chain("1", "2")), ("g", chain("1", "2")), ("f", chain("1", "3")))
    other = traced(("g", chain("1", "2")), ("f", chain("1", "2")))
    pairs = queries.compiles_beside(one.compiles, other.compiles)
    assert [(a and a.c, b and b.c) for a, b in pairs] == [(0, None), (1, 0), (2, 1)]


def test_equal_compiles_have_no_difference():
    run = traced(("k", chain("1", "2", "3")), ("k", chain("1", "2", "3")))
    assert queries.first_difference(queries.beside(*run.compiles)) is None


# ------------------------------------------------------------------------------------------------------------- places


def test_a_step_is_meant_by_its_number_its_name_or_both():
    run = traced(("k", chain("1", "2", "3", "4", names=["x", "y", "x"])), ("l", chain("1", "2")))
    place = Place(run, run.compiles)
    assert [each.index for each in place.steps_named("2")] == [2]
    assert [each.index for each in place.steps_named("x#2")] == [2]
    assert [each.index for each in place.steps_named("tile/y")] == [1]
    assert [each.phase for each in place.steps_named("a")] == ["run2_tile"]
    assert place.steps_named("tile/a") == place.steps_named("run2_tile/a") == place.steps_named("a")
    assert [each.kernel for each in place.matching("L*").compiles] == ["l"]
    assert place.matching(None) is place


def test_a_run_opens_at_its_last_change():
    run = traced(("k", chain("1", "2", "3", "3")))
    at = queries.opening(run.compiles[0].steps)
    assert at is not None and at.title == "b"
    assert queries.opening([]) is None
