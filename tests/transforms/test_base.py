# SPDX-License-Identifier: Apache-2.0
import pytest

from tilekit import transforms
from tilekit.diag.errors import VerificationError
from tilekit.events import Null, Stage
from tilekit.ir.func import Function
from tilekit.ir.stmt import BreakStmt, SeqStmt
from tilekit.ir.text import parser
from tilekit.transforms import Pass, run_passes

TEXT = """
@kernel(grid=[i32(1), i32(1), i32(1)], warps=1)
def f(n: i32):
    k: i32 = n
    if k < n:
        sync()
"""


class Journal(Null):
    """Keeps every event."""

    def __init__(self):
        self.events = []

    def begin(self, stage, name, before):
        self.events.append(("begin", stage, name))

    def end(self, stage, name, before, after, seconds):
        self.events.append(("end", stage, name, before, after))
        assert seconds >= 0

    def fail(self, stage, name, error):
        self.events.append(("fail", stage, name, error))


class NothingPass(Pass):
    pass


class LoseALoopPass(Pass):
    """Breaks a rule of the IR."""

    def process_function(self, func: Function) -> Function:
        return func.with_body(SeqStmt((BreakStmt(),)))


def test_a_pass_is_called_what_its_class_is_called():
    assert LoseALoopPass().name == "lose_a_loop"
    assert transforms.declare_to_let_pass().name == "declare_to_let"


def test_a_pass_that_changes_nothing_returns_its_argument():
    prog = parser.parse_program(TEXT)
    assert NothingPass()(prog) is prog


def test_a_pass_tells_its_sink_the_programs_themselves():
    prog, journal = parser.parse_program(TEXT), Journal()
    after = transforms.declare_to_let_pass()(prog, journal)
    assert after is not prog
    assert journal.events == [
        ("begin", Stage.TILE, "declare_to_let"),
        ("end", Stage.TILE, "declare_to_let", prog, after),
    ]


def test_passes_run_one_after_the_other():
    prog, journal = parser.parse_program(TEXT), Journal()
    after = run_passes(prog, [transforms.declare_to_let_pass(), transforms.let_propagation_pass()], journal)
    (_, _, _, first, middle), (_, _, _, second, last) = (event for event in journal.events if event[0] == "end")
    assert (first, second, last) == (prog, middle, after)


def test_a_checked_pass_that_breaks_a_rule_fails():
    prog, journal = parser.parse_program(TEXT), Journal()
    with pytest.raises(VerificationError) as caught:
        LoseALoopPass()(prog, journal, check=True)
    assert journal.events[-1] == ("fail", Stage.TILE, "lose_a_loop", caught.value)


def test_a_sink_may_answer_a_pass_with_an_edited_program_which_the_next_pass_gets():
    prog, edited = parser.parse_program(TEXT), parser.parse_program(TEXT)

    class Editor(Journal):
        def tile(self, name, made):
            return edited if name == "nothing" else None

    journal = Editor()
    after = run_passes(prog, [NothingPass(), transforms.declare_to_let_pass()], journal)
    ends = [event[2:] for event in journal.events if event[0] == "end"]
    assert ends == [
        ("nothing", prog, prog),
        ("edit_of_nothing", prog, edited),
        ("declare_to_let", edited, after),
    ]


def test_an_edited_program_that_breaks_a_rule_is_refused():
    prog, broken = parser.parse_program(TEXT), LoseALoopPass()(parser.parse_program(TEXT))

    class Editor(Journal):
        def tile(self, name, made):
            return broken

    journal = Editor()
    with pytest.raises(VerificationError) as caught:
        run_passes(prog, [NothingPass()], journal)
    assert journal.events[-1] == ("fail", Stage.TILE, "edit_of_nothing", caught.value)
