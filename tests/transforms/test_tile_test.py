# SPDX-License-Identifier: Apache-2.0
"""A step of a compile that is saved as a `.tile` file passes as it is written."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import filecheck
from tests.ir.strategies import programs
from tilekit import transforms
from tilekit.transforms import tile_test
from tilekit.transforms.recorder import Recorder

FACTORIES = {
    name.removesuffix("_pass"): getattr(transforms, name) for name in transforms.__all__ if name.endswith("_pass")
}


@settings(max_examples=8)
@given(programs())
def test_every_step_of_a_random_program_passes_as_it_is_written(prog):
    every_step_passes(prog)


@pytest.mark.slow
@settings(max_examples=150)
@given(programs())
def test_every_step_of_many_random_programs_passes_as_it_is_written(prog):
    every_step_passes(prog)


def every_step_passes(prog):
    recorder = Recorder()
    transforms.run_passes(prog, transforms.get_default_passes(), recorder)
    with tempfile.TemporaryDirectory() as folder:
        for number, step in enumerate(recorder.steps):
            file = step.save_test(Path(folder, f"{number}.tile"))
            (case,) = filecheck.cases_of(step.name, file.read_text())
            case.run({step.name: FACTORIES[step.name]()})


# lines that are parts of each other, blank ones among them
LINES = st.lists(st.sampled_from(["a", "ab", "  ab", "b c", "abc", "", "c"]), min_size=1, max_size=12)


@settings(max_examples=300)
@given(LINES, LINES)
def test_checks_hold_of_the_text_that_they_are_made_from(before, after):
    case = tile_test.text("any", "\n".join(before), "\n".join(after))
    directives = [filecheck._EXACT.fullmatch(line) for line in case.splitlines()]
    checks = [(found[1], found[2].strip()) for found in directives[1:] if found is not None]
    filecheck.check("\n".join(after), checks)


def checks(before, after):
    return [line.removeprefix("# ") for line in tile_test.text("any", before, after).splitlines() if line[:1] == "#"]


def test_a_change_is_shown_with_the_lines_around_it():
    assert checks("a\nwide\nb = f(wide)\nc\nd", "a\nb = f(a)\nc\nd") == [
        "RUN: any",
        "CHECK-LINE: a",
        "CHECK-NEXT-LINE: b = f(a)",
        "CHECK-NEXT-LINE: c",
    ]


def test_where_lines_only_go_those_around_them_have_nothing_between_them():
    assert checks("a\nx\ny\nb", "a\nb") == ["RUN: any", "CHECK-LINE: a", "CHECK-NEXT-LINE: b"]


def test_lines_that_go_at_the_end_are_looked_for_there():
    assert checks("a\nb\nc\n", "a\n") == ["RUN: any", "CHECK-LINE: a", "CHECK-NOT: b", "CHECK-NOT: c"]


def test_a_line_that_also_stands_further_up_is_led_to():
    assert checks("a\nx\na\nb", "a\nx\na\nc\nb") == [
        "RUN: any",
        "CHECK-LINE: x",
        "CHECK-NEXT-LINE: a",
        "CHECK-NEXT-LINE: c",
        "CHECK-NEXT-LINE: b",
    ]


def test_what_a_pass_leaves_alone_is_checked_whole():
    assert checks("a\n\nb", "a\n\nb") == ["RUN: any", "CHECK-LINE: a", "CHECK-LINE: b"]


@pytest.mark.parametrize(
    "made", ["a\nb = f(a), more\nc", "a\nb = f(a)\nmore\nc", "a\nmore\nb = f(a)\nc", "b = f(a)\nc\na"]
)
def test_lines_that_come_out_otherwise_are_found(made):
    found = [tuple(directive.split(": ", 1)) for directive in checks("a\nwide\nc", "a\nb = f(a)\nc")[1:]]
    filecheck.check("a\n  b = f(a)\nc", found)
    with pytest.raises(AssertionError):
        filecheck.check(made, found)
