# SPDX-License-Identifier: Apache-2.0
"""What a journal says of lines: which became which, and what the assembler counted."""

import random

import pytest

import tilekit
from tests.jit.followed import Matmul
from tilekit import float16, option
from tilekit.config import TraceMode
from tilekit.toolchain import toolkit
from tilekit.tools.lower_trace import journal
from tilekit.tools.lower_trace.journal import Run, Step

pytest.importorskip("cuda.bindings.nvrtc", reason="needs pip install 'tilekit[cuda]'")

DOT = "acc = self.dot(self.load_shared(sa), self.load_shared(sb), acc)"


def compile_matmul() -> None:
    shapes = (130, 50), (50, 70), (130, 70)
    Matmul().compile(130, 70, 50, *(tilekit.spec(float16, shape) for shape in shapes), target="sm_80", device="cuda")


@pytest.fixture(scope="module")
def traced(tmp_path_factory) -> Run:
    """The journal of a matmul with its machine code."""
    folder = tmp_path_factory.mktemp("trace")
    option.debug.trace_machine_code()
    try:
        with tilekit.tracing(TraceMode.HTML, folder):
            compile_matmul()
    finally:
        option.debug.trace_machine_code(False)
    (file,) = folder.rglob(journal.FILE)
    return journal.read(file)


def back(run: Run, text: str, line: int) -> list[str]:
    """A line, the one that it comes from, and so on to the first text."""
    maps = {note["to"]: note for step in reversed(run.compiles[0].steps) if (note := step.notes.get("lines"))}
    shown = [run.lines(text)[line]]
    while text in maps and (came := maps[text]["map"][line]) is not None:
        text, line = maps[text]["from"], came
        shown.append(run.lines(text)[line])
    return [text.strip() for text in shown]


def step_of(run: Run, phase: str) -> Step:
    return next(step for step in run.compiles[0].steps if step.base_phase == phase)


def test_case_83_every_line_of_tensor_core_code_leads_back_to_the_line_with_the_dot(traced):
    found = 0
    for phase, part in (("codegen", "tk::mma"), ("ptx", "mma.sync"), ("sass", "HMMA.")):
        if phase == "sass" and toolkit.nvdisasm() is None:
            continue
        made = step_of(traced, phase).after
        assert made is not None
        for line, text in enumerate(traced.lines(made)):
            if part in text:
                way = back(traced, made, line)
                assert way[-1] == DOT and any(shown.startswith("acc = dot(") for shown in way), way
                found += 1
    assert found > 30


def test_case_83_the_card_of_ptxas_lists_registers_shared_memory_and_spills(traced):
    figures = step_of(traced, "ptxas").notes["ptxas"]
    assert figures["target"] == "sm_80" and 32 < figures["registers"] <= 255
    assert (figures["shared_bytes"], figures["spill_bytes"], figures["stack_bytes"]) == (8192, 0, 0)


def test_each_map_has_a_line_for_each_line_and_leads_into_the_text_that_it_names(traced):
    steps = [step for step in traced.compiles[0].steps if "lines" in step.notes]
    assert {step.base_phase for step in steps} >= {"tile", "lower", "codegen", "ptx"}
    for step in steps:
        note = step.notes["lines"]
        old, new = traced.lines(note["from"]), traced.lines(note["to"])
        assert len(note["map"]) == len(new), step.title
        assert all(came is None or 0 <= came < len(old) for came in note["map"])
        if step.is_translation or not step.changed:
            continue
        # what a pass leaves alone comes from itself
        alone = [k for k, text in enumerate(new) if text.strip() and old.count(text) == new.count(text) == 1]
        for line in random.sample(alone, min(8, len(alone))):
            assert note["map"][line] is not None and old[note["map"][line]] == new[line]


def test_the_cell_has_the_numbers_that_an_editor_counts(traced):
    cell = traced.compiles[0].steps[0].notes["cell"]
    text = traced.lines(cell["text"])
    assert [name.rsplit("/", 1)[-1] for name in cell["names"]] == ["followed.py"]
    assert text[0].startswith("def __call__(self, m: int32") and len(text) == len(cell["numbers"])
    with open(cell["names"][0]) as file:
        lines = file.read().split("\n")
    assert [lines[number - 1].strip() for number in cell["numbers"]] == [line.strip() for line in text]


def test_a_line_of_an_edit_leads_on_from_the_generated_source(tmp_path):
    def compile() -> Run:
        with tilekit.tracing(TraceMode.HTML, tmp_path) as trace:
            compile_matmul()
        return journal.read(trace.folder)

    compile()
    (working,) = (path for path in tmp_path.rglob("codegen.cpp") if ".run_records" not in path.parts)
    working.write_text(working.read_text().replace("{\n", "{\n  // mine\n", 1))
    run = compile()
    step = step_of(run, "codegen")
    assert step.source is not None and step.source.is_edited
    note = step.notes["lines_of_edit"]
    assert (note["from"], note["to"]) == (step.source.generated, step.source.compiled)
    old, new = run.lines(note["from"]), run.lines(note["to"])
    assert [new[k] for k, came in enumerate(note["map"]) if came is None] == ["  // mine"]
    assert all(old[came] == new[k] for k, came in enumerate(note["map"]) if came is not None)
