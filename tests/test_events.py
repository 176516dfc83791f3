# SPDX-License-Identifier: Apache-2.0
import pytest

from tilekit.events import Edited, Fanout, Null, Sink, Stage, step


class Journal(Null):
    def __init__(self, answer: Edited | None = None):
        self.told: list[tuple[object, ...]] = []
        self.answer = answer

    def begin(self, stage: Stage, name: str, before: object):
        self.told.append(("begin", stage, name, before))

    def end(self, stage: Stage, name: str, before: object, after: object, seconds: float):
        self.told.append(("end", stage, name, before, after, seconds))

    def fail(self, stage: Stage, name: str, error: BaseException):
        self.told.append(("fail", stage, name, error))

    def tile(self, name: str, prog: object):
        self.told.append(("tile", name, prog))

    def done(self, error: BaseException | None):
        self.told.append(("done", error))

    def codegen(self, text: str):
        self.told.append(("codegen", text))
        return self.answer

    def note(self, key: str, value: object):
        self.told.append(("note", key, value))


def tell_everything(sink: Sink, error: Exception) -> Edited | None:
    sink.begin(Stage.TILE, "dead code", "before")
    sink.end(Stage.TILE, "dead code", "before", "after", 0.5)
    sink.fail(Stage.LOWER, "emit", error)
    sink.note("registers", 32)
    sink.tile("dead code", "after")
    sink.done(error)
    return sink.codegen("source")


def test_a_null_sink_hears_nothing_and_edits_nothing():
    assert tell_everything(Null(), ValueError()) is None


def test_every_sink_of_a_fanout_is_told_everything():
    alone, first, second = Journal(), Journal(), Journal()
    error = ValueError()
    tell_everything(alone, error)
    tell_everything(Fanout([first, second]), error)
    assert alone.told == first.told == second.told
    assert len(alone.told) == 7


def test_the_last_edit_wins_and_every_sink_sees_what_the_compiler_wrote():
    early, late, silent = Journal(Edited("a", "early")), Journal(Edited("b", "late")), Journal()
    assert Fanout([early, late, silent]).codegen("source") == Edited("b", "late")
    assert [journal.told for journal in (early, late, silent)] == [[("codegen", "source")]] * 3
    assert Fanout([silent]).codegen("source") is None
    assert Fanout().codegen("source") is None


def test_stages_are_in_the_order_of_a_compile():
    names = [stage.value for stage in Stage]
    assert names == ["verify", "tile", "lower", "hidet", "codegen", "ptx", "ptxas", "sass", "host"]


def test_a_step_tells_what_it_made_and_when_it_was_made():
    sink = Journal()
    with step(sink, Stage.TILE, "fold", "a") as underway:
        underway.made("b")
        made = underway.seconds
    assert sink.told == [("begin", Stage.TILE, "fold", "a"), ("end", Stage.TILE, "fold", "a", "b", made)]


def test_a_step_that_makes_nothing_hands_on_what_it_was_given():
    sink, subject = Journal(), object()
    with step(sink, Stage.VERIFY, "verify", subject):
        pass
    _, (_, _, _, before, after, _) = sink.told
    assert before is after is subject


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit])
def test_a_step_that_dies_tells_of_what_and_lets_it_through(kind):
    sink, error = Journal(), kind()
    with pytest.raises(kind) as raised, step(sink, Stage.TILE, "fold", "a"):
        raise error
    assert raised.value is error
    assert sink.told == [("begin", Stage.TILE, "fold", "a"), ("fail", Stage.TILE, "fold", error)]


def test_a_fanout_traces_if_one_of_its_sinks_does():
    tracing = Journal()
    tracing.traces = True
    assert Fanout([Null(), tracing]).traces and not Fanout([Null()]).traces
