# SPDX-License-Identifier: Apache-2.0
from tilekit.events import Edited, Fanout, Null, Sink, Stage


class Journal(Null):
    def __init__(self, answer: Edited | None = None):
        self.told: list[tuple[object, ...]] = []
        self.answer = answer

    def begin(self, stage: Stage, name: str):
        self.told.append(("begin", stage, name))

    def end(self, stage: Stage, name: str, before: object, after: object, seconds: float):
        self.told.append(("end", stage, name, before, after, seconds))

    def fail(self, stage: Stage, name: str, error: BaseException):
        self.told.append(("fail", stage, name, error))

    def codegen(self, text: str):
        self.told.append(("codegen", text))
        return self.answer

    def note(self, key: str, value: object):
        self.told.append(("note", key, value))


def tell_everything(sink: Sink, error: Exception) -> Edited | None:
    sink.begin(Stage.TILE, "dead code")
    sink.end(Stage.TILE, "dead code", "before", "after", 0.5)
    sink.fail(Stage.LOWER, "emit", error)
    sink.note("registers", 32)
    return sink.codegen("source")


def test_a_null_sink_hears_nothing_and_edits_nothing():
    assert tell_everything(Null(), ValueError()) is None


def test_every_sink_of_a_fanout_is_told_everything():
    alone, first, second = Journal(), Journal(), Journal()
    error = ValueError()
    tell_everything(alone, error)
    tell_everything(Fanout([first, second]), error)
    assert alone.told == first.told == second.told
    assert len(alone.told) == 5


def test_the_last_edit_wins_and_every_sink_sees_what_the_compiler_wrote():
    early, late, silent = Journal(Edited("a", "early")), Journal(Edited("b", "late")), Journal()
    assert Fanout([early, late, silent]).codegen("source") == Edited("b", "late")
    assert [journal.told for journal in (early, late, silent)] == [[("codegen", "source")]] * 3
    assert Fanout([silent]).codegen("source") is None
    assert Fanout().codegen("source") is None


def test_stages_are_in_the_order_of_a_compile():
    names = [stage.value for stage in Stage]
    assert names == ["verify", "tile", "lower", "hidet", "codegen", "ptx", "ptxas", "sass", "host"]
