# SPDX-License-Identifier: Apache-2.0
"""A step of a compile that is saved as a `.tile` file passes as it is written."""

import tempfile
from pathlib import Path

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


@settings(max_examples=25)
@given(programs())
def test_every_step_of_a_random_program_passes_as_it_is_written(prog):
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


def test_a_change_is_shown_with_the_line_above_it():
    assert checks("a\nwide\nb = f(wide)\nc", "a\nb = f(a)\nc") == [
        "RUN: any",
        "CHECK: a",
        "CHECK-NOT: wide",
        "CHECK-NOT: b = f(wide)",
        "CHECK: b = f(a)",
    ]


def test_lines_that_only_go_are_looked_for_up_to_the_next_one():
    assert checks("a\nx\ny\nb", "a\nb") == ["RUN: any", "CHECK: a", "CHECK-NOT: x", "CHECK-NOT: y", "CHECK: b"]


def test_a_line_that_also_stands_further_up_is_led_to():
    assert checks("a\nx\na\nb", "a\nx\na\nc\nb") == [
        "RUN: any",
        "CHECK: x",
        "CHECK-NEXT: a",
        "CHECK-NEXT: c",
    ]


def test_what_a_pass_leaves_alone_is_checked_whole():
    assert checks("a\n\nb", "a\n\nb") == ["RUN: any", "CHECK: a", "CHECK: b"]
