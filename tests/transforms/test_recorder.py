# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest

from tilekit.diag import PassError
from tilekit.events import Stage
from tilekit.ir.text import parser
from tilekit.transforms import get_default_passes, run_passes
from tilekit.transforms.recorder import Recorder

VECTOR_ADD = Path(__file__).parent / "vector_add.tile"


@pytest.fixture
def recorded():
    prog, recorder = parser.parse_program(VECTOR_ADD.read_text()), Recorder()
    return prog, run_passes(prog, get_default_passes(), recorder), recorder


def test_recorder_keeps_the_very_programs_that_passes_hand_on(recorded):
    prog, after, recorder = recorded
    assert [step.name for step in recorder.steps] == [each.name for each in get_default_passes()]
    assert recorder.steps[0].before is prog
    assert recorder.steps[-1].after is after
    for earlier, later in zip(recorder.steps, recorder.steps[1:], strict=False):
        assert earlier.after is later.before


def test_a_step_changed_something_exactly_where_its_texts_differ(recorded):
    _, _, recorder = recorded
    for step in recorder.steps:
        assert step.changed == (step.before_text != step.after_text)
    assert {step.name for step in recorder.changed} >= {"declare_to_let", "layout_inference", "lower_load_store"}


@pytest.mark.parametrize("name", [5, None, b"layout_inference", ["layout_inference"]])
def test_a_step_goes_by_a_text_alone(recorded, name):
    with pytest.raises(PassError, match="a step goes by its name, such as layout_inference, not by") as caught:
        recorded[2].step(name)
    assert caught.value.code == "TK414"


@pytest.mark.parametrize("name", ["analyze_scalar#0", "analyze_scalar#x", "analyze_scalar#", "analyze_scalar#99", "²"])
def test_a_number_that_no_step_of_the_name_has_is_no_step(recorded, name):
    with pytest.raises(PassError, match=f"the compile has no step {name}") as caught:
        recorded[2].step(name)
    assert caught.value.code == "TK414"
    assert recorded[2].step("analyze_scalar#1") is recorded[2].step("analyze_scalar")


@pytest.mark.parametrize("path", [5, None, b"x.tile", "", "x\0y", "x" * 300])
def test_a_test_that_cannot_be_written_is_told(recorded, path):
    with pytest.raises(PassError) as caught:
        recorded[2].step("layout_inference").save_test(path)
    assert caught.value.code == "TK413"


def test_nothing_is_printed_before_somebody_looks(monkeypatch):
    monkeypatch.setattr("tilekit.ir.text.printer.print_lines", lambda func: pytest.fail("printed"))
    run_passes(parser.parse_program(VECTOR_ADD.read_text()), get_default_passes(), Recorder())


def test_text_shows_what_each_pass_took_away_and_added(recorded):
    _, _, recorder = recorded
    text = recorder.text()
    assert "tile    copy_elimination: no change" in text
    assert "    -    start: i32 = block_idx_x * i32(512)" in text
    assert "    +    start: Let[i32] = block_idx_x * i32(512)" in text


def test_layout_rows_say_who_chose_and_why(recorded):
    _, _, recorder = recorded
    assert recorder.layout_rows() == [
        ("b", "f32[512]", "spatial(128).local(4)", "load_global", "for accesses of 16 bytes along dimension 0"),
        ("a", "f32[512]", "spatial(128).local(4)", "add", "to suit b (f32[512])"),
        ("c", "f32[512]", "spatial(128).local(4)", "add", "to suit b (f32[512])"),
    ]


def test_dump_has_a_file_per_pass(recorded):
    prog, after, recorder = recorded
    files = recorder.dump()
    assert files["ir/0_original.txt"].decode() == str(prog)
    assert files["ir/1_declare_to_let.txt"] != files["ir/0_original.txt"]
    assert files[f"ir/{len(get_default_passes())}_{get_default_passes()[-1].name}.txt"].decode() == str(after)


def test_a_step_that_failed_is_kept_with_its_error():
    recorder, error = Recorder(), ValueError("no")
    recorder.fail(Stage.TILE, "some_pass", error)
    assert recorder.steps[0].error is error
    assert not recorder.steps[0].changed
    assert "tile    some_pass: failed, no" in recorder.text()
