# SPDX-License-Identifier: Apache-2.0
"""A step of a journal, run again by itself."""

import re

import pytest

from tests.kernels.test_softmax import SOFTMAX
from tests.tools.lower_trace.ears import HEAD, Ear
from tests.tools.lower_trace.synthetic import Program
from tilekit import drivers, float32, spec, target
from tilekit.events import Stage, step
from tilekit.tools.lower_trace import cli, journal
from tilekit.tools.lower_trace.journal import Run
from tilekit.tools.lower_trace.recording import Recording
from tilekit.tools.lower_trace.rerun import RerunError, rerun


@pytest.fixture(scope="module")
def run() -> Run:
    """A compile of softmax, and then one of nothing, read from their lines."""
    x = spec(float32, (64, 1024))
    program = next(iter(SOFTMAX.values()))._jit_instance_for(64, 1024, x, x).transpiled_programs[0]
    ear = Ear()
    recording = Recording(HEAD, [ear], print)
    sink = recording.compile("softmax", target=target.SM90A.name)
    drivers.generate_source(program, target.SM90A, [sink])
    sink.done(None)
    odd = recording.compile("odd")
    for stage, name in ((Stage.TILE, "mine"), (Stage.HIDET, "simplify"), (Stage.HOST, "g++")):
        with step(odd, stage, name, Program("text")):
            pass
    odd.done(None)
    return ear.read()


def test_case_52_every_step_can_be_run_alone_from_the_journal_with_the_same_result(run):
    compile = run.compiles[0]
    assert {each.base_phase for each in compile.steps} == {"tile", "lower", "hidet", "codegen"}
    *others, source = compile.steps
    for each in others:
        assert each.after is not None
        assert rerun(run, compile, each) == run.text(each.after), each.title
    assert source.after is not None
    assert without_numbers(rerun(run, compile, source)) == without_numbers(run.text(source.after))


def without_numbers(text: str) -> str:
    """A name that was printed with a number has it for good once it is read; one that was not may do without."""
    return re.sub(r"\b([a-z]\w*?)_\d+\b", r"\1", text)


def test_what_cannot_be_run_alone_says_why(run):
    compile = run.compiles[1]
    said = ["mine cannot be run by itself", "odd was not lowered", "a toolchain ran it"]
    for each, why in zip(compile.steps, said, strict=True):
        with pytest.raises(RerunError, match=why):
            rerun(run, compile, each)


def test_case_52_the_command_line_runs_a_step_alone(run, tmp_path, capsys):
    ear = Ear()
    recording = Recording(HEAD, [ear], print)
    sink = recording.compile("softmax")
    first = run.compiles[0].steps[1]
    assert first.name == "declare_to_let" and first.before is not None and first.after is not None
    before = Program(run.text(first.before))
    with step(sink, Stage.TILE, "mine", before):
        pass
    with pytest.raises(KeyboardInterrupt), step(sink, Stage.TILE, first.name, before):
        raise KeyboardInterrupt
    (tmp_path / journal.FILE).write_text("".join(f"{line}\n" for line in ear.lines))
    assert cli.main(["rerun", "1", str(tmp_path)]) == 0
    assert capsys.readouterr().out == run.text(first.after)
    assert cli.main(["rerun", "mine", str(tmp_path)]) == 2
    assert "TK433" in capsys.readouterr().err
