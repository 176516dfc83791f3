# SPDX-License-Identifier: Apache-2.0
"""A recorded compile: what each pass did, in order and in time, whatever raises, and in whichever thread."""

import gc
import itertools
import os
import random
import threading
import time
import weakref
from collections.abc import Callable, Sequence

import pytest

from tests.tools.lower_trace.ears import HEAD, Ear
from tests.tools.lower_trace.synthetic import Program, compile_with, pipeline
from tilekit.diag import LanguageError, Sources, Span
from tilekit.events import Fanout, Null, Sink, Stage, step
from tilekit.ir.prog import Program as TileProgram
from tilekit.tools.lower_trace import journal
from tilekit.tools.lower_trace.compile_sink import CompileSink
from tilekit.tools.lower_trace.journal import Status, Step
from tilekit.tools.lower_trace.recording import Event, Recording
from tilekit.transforms import run_passes
from tilekit.transforms.base import Pass


class Broken(Ear):
    """Raises at the event of this number."""

    def __init__(self, at: int, error: Exception, on_disk: bool = False) -> None:
        super().__init__(on_disk)
        self.at = at
        self.error = error

    def hear(self, event: Event) -> None:
        if len(self.events) == self.at:
            raise self.error
        super().hear(event)


@pytest.fixture
def ear():
    return Ear()


@pytest.fixture
def warnings():
    return list[str]()


@pytest.fixture
def recording(ear: Ear, warnings: list[str]):
    yield Recording(HEAD, [ear], warnings.append)
    assert warnings == []


def do(sink: Sink, name: str, before: object, after: object, *, stage: Stage = Stage.TILE) -> object:
    with step(sink, stage, name, before) as underway:
        underway.made(after)
    return after


# ------------------------------------------------------------------------------------------------------- what is told


def test_case_04_a_pass_that_hands_on_what_it_was_given_prints_nothing_and_costs_two_short_lines(recording, ear):
    program = Program("a program\n" * 1000)
    sink = recording.compile("kernel")
    do(sink, "first", program, program)
    prints, written = program.prints, sum(map(len, ear.lines))
    for name in ("declare_to_let", "layout_inference", "bound_aware_simplify"):
        do(sink, name, program, program)
        assert sum(map(len, ear.lines)) + 2 - written < 300
        written = sum(map(len, ear.lines))
    assert program.prints == prints == 1
    assert all(not s.changed and not s.rebuilt and s.after == s.before for s in ear.read().compiles[0].steps)


def test_a_program_is_printed_once_however_many_passes_see_it(recording):
    programs = [Program(f"program {i}\n") for i in range(5)]
    sink = recording.compile("kernel")
    for before, after in itertools.pairwise(programs):
        do(sink, "change", before, after)
        do(sink, "look", after, after)
    assert [program.prints for program in programs] == [1] * 5


def test_case_05_a_new_object_of_the_same_text_is_rebuilt_and_not_changed(recording, ear):
    sink = recording.compile("kernel")
    do(sink, "rebuild", Program("same"), Program("same"))
    (told,) = ear.read().compiles[0].steps
    assert (told.changed, told.rebuilt, told.added, told.removed) == (False, True, 0, 0)
    assert told.before == told.after


def test_case_06_passes_that_repeat_or_call_one_another_have_records_and_times_of_their_own(recording, ear):
    sink = recording.compile("kernel")
    start = time.perf_counter_ns()
    a = Program("a")
    with step(sink, Stage.TILE, "outer", a):
        time.sleep(0.02)
        for _ in range(3):
            with step(sink, Stage.TILE, "inner", a):
                time.sleep(0.01)
                do(sink, "innermost", a, a)
    sink.done(None)
    total = time.perf_counter_ns() - start
    compile = ear.read().compiles[0]
    assert [(s.title, s.depth, s.parent) for s in compile.steps] == [
        ("outer", 0, None),
        ("inner", 1, 0),
        ("innermost", 2, 1),
        ("inner#2", 1, 0),
        ("innermost#2", 2, 3),
        ("inner#3", 1, 0),
        ("innermost#3", 2, 5),
    ]
    outer, *others = compile.steps
    inner = [s for s in others if s.name == "inner"]
    for parent, children in [(outer, inner), *((s, [compile.steps[s.seq + 1]]) for s in inner)]:
        assert parent.self_ns == parent.ns - sum(child.ns for child in children)
    assert outer.self_ns >= 20e6 and all(s.self_ns >= 10e6 for s in inner)
    assert sum(s.self_ns for s in compile.steps) <= compile.ns <= total


def test_the_time_that_the_trace_takes_is_not_the_passes(recording, ear):
    class Slow(Program):
        def __str__(self) -> str:
            time.sleep(0.05)
            return super().__str__()

    sink = recording.compile("kernel")
    a, b = Slow("a"), Slow("b")
    with step(sink, Stage.TILE, "outer", a):
        do(sink, "inner", a, b)
    sink.done(None)
    compile = ear.read().compiles[0]
    assert sink.spent > 100e6 and all(s.ns < 50e6 for s in compile.steps) and compile.ns < 50e6


def test_case_07_phases_are_in_the_order_of_the_run_and_what_changes_the_language_is_marked(recording, ear):
    sink = recording.compile("kernel")
    stages = [
        (Stage.VERIFY, "verify", "tile"),
        (Stage.TILE, "fold", "tile"),
        (Stage.LOWER, "generate_ir_module", "hidet"),
        (Stage.HIDET, "simplify", "hidet"),
        (Stage.TILE, "a tile pass, late", "tile"),
        (Stage.CODEGEN, "print_module", "cuda"),
        (Stage.PTX, "nvrtc", "ptx"),
        (Stage.SASS, "nvdisasm", "sass"),
    ]
    text = Program("0")
    for stage, name, _ in stages:
        text = do(sink, name, text, Program(name), stage=stage)
    steps = ear.read().compiles[0].steps
    assert [(s.name, s.language) for s in steps] == [(name, language) for _, name, language in stages]
    assert [s.phase for s in steps] == ["tile", "tile", "lower", "hidet", "tile", "codegen", "ptx", "sass"]
    assert [s.index for s in steps] == list(range(len(stages)))
    translations = {s.phase: s.languages for s in steps if s.is_translation}
    assert translations == {
        "lower": ("tile", "hidet"),
        "codegen": ("hidet", "cuda"),
        "ptx": ("cuda", "ptx"),
        "sass": ("ptx", "sass"),
    }
    assert all((s.added is None) is s.is_translation for s in steps)


def test_case_94_later_compiles_stand_under_run2_and_run3(recording, ear):
    for _ in range(3):
        sink = recording.compile("kernel")
        do(sink, "fold", Program("a"), Program("b"))
        do(sink, "print_module", Program("b"), Program("c"), stage=Stage.CODEGEN)
        sink.done(None)
        by_hand = recording.compile("unscoped", phase="unscoped")
        do(by_hand, "fold", Program("a"), Program("b"))
    steps = [s for compile in ear.read().compiles for s in compile.steps]
    prefixes = ("", "run2_", "run3_")
    assert [s.phase for s in steps] == [name for p in prefixes for name in (f"{p}tile", f"{p}codegen", "unscoped")]
    assert [s.index for s in steps] == list(range(9))


def test_case_97_a_pass_that_does_not_run_leaves_no_slot(recording, ear):
    sink = recording.compile("kernel")
    ran = [name for name in "abcdefghij" if random.random() < 0.5]
    for name in ran:
        do(sink, name, Program(name), Program(name.upper()))
    steps = ear.read().compiles[0].steps
    assert [s.name for s in steps] == ran
    assert [s.seq for s in steps] == [s.index for s in steps] == list(range(len(ran)))


def test_passes_that_nobody_wants_to_see_are_left_out_and_their_time_is_nobody_elses(recording, ear):
    sink = recording.compile("kernel", takes_pass=lambda name: name != "hidden")
    a = Program("a")
    with step(sink, Stage.TILE, "outer", a), step(sink, Stage.TILE, "hidden", a):
        do(sink, "inner", a, a)
    assert [(s.name, s.parent, s.depth) for s in ear.read().compiles[0].steps] == [("outer", None, 0), ("inner", 0, 1)]


def test_notes_go_to_the_innermost_step_and_are_plain(recording, ear):
    sink = recording.compile("kernel")
    a = Program("a")
    with step(sink, Stage.TILE, "outer", a):
        sink.note("registers", 32)
        do(sink, "inner", a, a)
    sink.note("odd", {1: [float("nan"), (True, None), {2}, a]})
    compile = ear.read().compiles[0]
    assert compile.steps[0].notes == {"registers": 32} and compile.steps[1].notes == {}
    assert compile.notes == {"odd": {"1": ["nan", [True, None], [2], "a"]}}


def test_an_edit_is_told_with_the_source_that_it_replaces(recording, ear):
    sink = recording.compile("kernel")
    do(sink, "print_module", Program("ir"), "generated\n", stage=Stage.CODEGEN)
    do(sink, "nvrtc", "generated\n", "generated\n", stage=Stage.PTXAS)
    sink.edited("generated\n", "edited\n", "PATCHED", "/x/codegen.cpp", ["PATCHED from /x/codegen.cpp"])
    run = ear.read()
    source = run.compiles[0].steps[0].source
    assert source is not None and source.is_edited and source.tag == "PATCHED"
    assert (run.text(source.generated), run.text(source.compiled)) == ("generated\n", "edited\n")


def test_what_is_read_back_is_what_the_live_run_says(recording, ear):
    for seed in range(3):
        compile_with(recording.compile("kernel"), pipeline(20, 200, seed))
    recording.close()
    live, read = recording.run, ear.read()
    assert [[vars(s) for s in c.steps] for c in live.compiles] == [[vars(s) for s in c.steps] for c in read.compiles]
    assert {i: live.text(i) for i in live.texts()} == {i: read.text(i) for i in read.texts()}
    assert live.ended and read.ended and ear.ends == ["close"]


def test_nothing_of_a_compile_that_is_done_is_kept_alive(recording):
    sink = recording.compile("kernel")
    kept = [weakref.ref(do(sink, "fold", Program("a"), Program(f"b{i}"))) for i in range(5)]

    class Dead(Exception):
        pass

    error = Dead()
    with pytest.raises(Dead), step(sink, Stage.TILE, "die", Program("c")):
        raise error
    kept.append(weakref.ref(error))
    del error
    sink.done(None)
    gc.collect()
    assert [each() for each in kept] == [None] * 6


# ------------------------------------------------------------------------------------------------------- what fails


class Outer(Pass):
    def __init__(self, inner: Pass) -> None:
        self.inner = inner

    def process_program(self, prog: TileProgram, sink: Sink = Null()) -> TileProgram:  # noqa: B008
        return self.inner(prog, sink)


class Raises(Pass):
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def process_program(self, prog: TileProgram, sink: Sink = Null()) -> TileProgram:  # noqa: B008
        raise self.error


class Keeps(Pass):
    pass


def test_case_54_the_error_of_a_pass_reaches_the_caller_and_is_told_once(recording, ear):
    error = RuntimeError('a <b>&"c"\n  line2')
    sink = recording.compile("kernel")
    passes = [*(Keeps() for _ in range(6)), Outer(Outer(Raises(error))), Keeps()]
    with pytest.raises(RuntimeError) as raised:
        run_passes(TileProgram({}), passes, sink)
    sink.done(raised.value)
    assert raised.value is error
    last = raised.traceback[-1]
    assert last.name == "process_program" and last.path.name == "test_recording.py"
    compile = ear.read().compiles[0]
    assert [s.name for s in compile.steps] == ["keeps"] * 6 + ["outer", "outer", "raises"]
    *_, first, second, culprit = compile.steps
    assert compile.culprit is culprit and compile.status is Status.FAILED
    assert culprit.status is Status.FAILED and culprit.before is not None and culprit.after is None
    assert (culprit.failure.type, culprit.failure.message) == ("RuntimeError", str(error))
    assert "in process_program" in culprit.failure.traceback
    assert culprit.failure.where.endswith("raise self.error") and "test_recording.py, line " in culprit.failure.where
    for enclosing in (first, second):
        assert enclosing.status is Status.ABORTED and enclosing.failure.by == culprit.seq
    assert compile.notes == {}


def test_an_error_that_came_of_the_first_is_no_failure_of_its_own(recording, ear):
    sink = recording.compile("kernel")
    with pytest.raises(KeyError), step(sink, Stage.TILE, "outer", Program("a")):
        try:
            with step(sink, Stage.TILE, "inner", Program("a")):
                raise ValueError
        except ValueError as error:
            raise KeyError from error
    outer, inner = ear.read().compiles[0].steps
    assert (inner.status, outer.status, outer.failure.by, outer.failure.type) == ("failed", "aborted", 1, "KeyError")


def test_an_error_that_is_caught_leaves_the_next_one_its_own(recording, ear):
    sink = recording.compile("kernel")
    with step(sink, Stage.TILE, "outer", Program("a")):
        with pytest.raises(ValueError), step(sink, Stage.TILE, "tries", Program("a")):
            raise ValueError
        do(sink, "goes on", Program("a"), Program("b"))
    with pytest.raises(KeyError), step(sink, Stage.TILE, "fails", Program("b")):
        raise KeyError
    steps = ear.read().compiles[0].steps
    assert [s.status.value for s in steps] == ["done", "failed", "done", "failed"]


def test_an_error_between_the_steps_is_told_of_the_compile(recording, ear):
    sink = recording.compile("kernel")
    do(sink, "fold", Program("a"), Program("b"))
    sink.done(OSError("no compiler"))
    compile = ear.read().compiles[0]
    assert compile.status is Status.FAILED and compile.culprit is None
    assert (compile.notes["error"]["type"], compile.notes["error"]["message"]) == ("OSError", "no compiler")


def test_an_error_in_the_kernel_names_the_line_of_the_cell(recording, ear):
    def kernel():
        pass

    sources = Sources()
    sources.register("kernel", kernel.__code__)
    error = LanguageError("TK104", "wrong", at=Span("kernel", 1, 0, 1, 4))
    sink = recording.compile("kernel")
    sink.note("sources", sources)
    with pytest.raises(LanguageError), step(sink, Stage.LOWER, "generate_ir_module", Program("a")):
        raise error
    (told,) = ear.read().compiles[0].steps
    assert told.failure.where == f"{__file__}, line {kernel.__code__.co_firstlineno + 1}"
    # who called the compiler tells the error its sources only when it has caught it
    assert error.sources is None and told.failure.message == str(error.with_sources(sources))


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_case_55_an_interrupt_passes_through_and_is_told_as_one(recording, ear, kind):
    sink = recording.compile("kernel")
    error = kind()
    with pytest.raises(kind) as raised:
        run_passes(TileProgram({}), [Outer(Raises(error))], sink)
    sink.done(raised.value)
    assert raised.value is error
    outer, inner = ear.read().compiles[0].steps
    assert (inner.status, inner.failure.type, outer.status) == (Status.INTERRUPTED, kind.__name__, Status.ABORTED)


def test_an_interrupt_while_a_step_is_told_of_is_not_taken_for_the_end_of_another(recording, ear):
    class Interrupted(Program):
        def __str__(self) -> str:
            raise KeyboardInterrupt

    sink = recording.compile("kernel")
    with pytest.raises(KeyboardInterrupt), step(sink, Stage.TILE, "outer", Program("a")):
        do(sink, "first", Program("a"), Program("b"))
        do(sink, "second", Interrupted(""), Program("c"))
    with pytest.raises(KeyboardInterrupt), step(sink, Stage.TILE, "another", Program("a")):
        do(sink, "inner", Program("b"), Interrupted(""))
    steps = ear.read().compiles[0].steps
    assert [(s.name, s.status.value) for s in steps] == [
        ("outer", "interrupted"),
        ("first", "done"),
        ("another", "interrupted"),
        ("inner", "unfinished"),
    ]


def test_case_56_an_ir_that_cannot_be_printed_is_told_with_the_reason(recording, ear):
    class Unprintable:
        def __str__(self) -> str:
            raise LookupError("no name for t7")

    bad, good = Unprintable(), Program("b")
    sink = recording.compile("kernel")
    do(sink, "breaks it", Program("a"), bad)
    do(sink, "keeps it", bad, bad)
    do(sink, "mends it", bad, good)
    do(sink, "goes on", good, Program("c\nd"))
    sink.done(None)
    compile = ear.read().compiles[0]
    reason = "LookupError: no name for t7"
    assert [s.notes.get("unprintable") for s in compile.steps] == [
        {"side": "after", "reason": reason},
        {"side": "before", "reason": reason},
        {"side": "before", "reason": reason},
        None,
    ]
    assert [(s.changed, s.before is None, s.after is None, s.added) for s in compile.steps] == [
        (True, False, True, None),
        (False, True, True, 0),
        (True, True, False, None),
        (True, False, False, 2),
    ]
    assert compile.status is Status.DONE


def test_an_error_whose_message_cannot_be_printed_is_an_error_all_the_same(recording, ear):
    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError

    sink = recording.compile("kernel")
    with pytest.raises(Mute), step(sink, Stage.TILE, "fold", Program("a")):
        raise Mute
    (told,) = ear.read().compiles[0].steps
    assert told.failure.message == "its message cannot be printed: ValueError"


# -------------------------------------------------------------------------------------- what goes wrong with the trace


def traced(sink: Sink) -> list[str]:
    """A compile in which everything happens; what its passes hand on, which no trace may change."""
    made: list[str] = []
    a = Program("a")
    do(sink, "verify", a, a, stage=Stage.VERIFY)
    for name in ("one", "two", "three"):
        with step(sink, Stage.TILE, name, a) as underway:
            sink.note("n", name)
            b = Program(f"{a.text}\n{name}")
            underway.made(b)
        made.append(b.text)
        a = b
    with pytest.raises(ValueError, match="mine"), step(sink, Stage.HIDET, "dies", a):
        raise ValueError("mine")
    do(sink, "print_module", a, "source", stage=Stage.CODEGEN)
    assert sink.codegen("source") is None and sink.tile("one", a) is None
    if isinstance(sink, CompileSink):
        sink.edited("source", "edited", "PATCHED", None)
    sink.done(None)
    return made


def events_of_a_compile() -> int:
    ear = Ear()
    recording = Recording(HEAD, [ear], print)
    traced(recording.compile("kernel"))
    recording.close()
    return len(ear.events)


@pytest.mark.parametrize("error", [ValueError("bug"), MemoryError(), RecursionError()])
def test_a_listener_that_raises_is_told_of_once_and_hears_no_more(error):
    expected = traced(Null())
    for at in range(events_of_a_compile()):
        warnings, broken, ear = list[str](), Broken(at, error), Ear()
        recording = Recording(HEAD, [broken, ear], warnings.append)
        assert traced(recording.compile("kernel")) == expected
        recording.close()
        assert len(warnings) == 1 and "goes on without its Broken" in warnings[0]
        assert len(broken.events) == at and broken.ends == ["let go"]
        assert len(ear.events) == events_of_a_compile() and ear.ends == ["close"]


def test_where_one_file_cannot_be_written_none_is_and_who_writes_none_goes_on():
    for at in range(events_of_a_compile()):
        warnings = list[str]()
        disk, ear = [Ear(True), Broken(at, OSError(28, "No space left on device", "/x/y"), True), Ear(True)], Ear()
        recording = Recording(HEAD, [*disk, ear], warnings.append)
        traced(recording.compile("kernel"))
        recording.close()
        assert warnings == ["the trace is written no further: /x/y: No space left on device (ENOSPC)"]
        assert [len(each.events) for each in disk] == [at + 1, at, at]
        assert all(each.ends == ["let go"] for each in disk) and ear.ends == ["close"]


def test_an_error_of_the_recorder_itself_ends_the_trace_and_nothing_else(monkeypatch):
    expected = traced(Null())
    parts = ["begin_entry", "end_entry", "fail_entry", "note_entry", "codegen_entry", "compile_end_entry", "encode"]
    for part in parts:
        warnings, ear = list[str](), Ear()
        recording = Recording(HEAD, [ear], warnings.append)
        sink = recording.compile("kernel")
        with monkeypatch.context() as patch:
            patch.setattr(journal, part, None)
            assert traced(sink) == expected
        assert len(warnings) == 1 and "the trace ends here, with an error of its own: TypeError" in warnings[0]
        assert ear.ends == ["let go"]
        assert traced(recording.compile("kernel")) == expected  # and silence
        recording.close()
        assert len(warnings) == 1


def test_nobody_is_troubled_where_nobody_can_be_warned():
    def warn(message: str) -> None:
        raise OSError("stderr is closed")

    recording = Recording(HEAD, [Broken(2, ValueError())], warn)
    assert traced(recording.compile("kernel")) == traced(Null())


def test_a_run_that_is_closed_hears_no_more(recording, ear):
    sink = recording.compile("kernel")
    with step(sink, Stage.TILE, "fold", Program("a")):
        recording.close()
    written = list(ear.lines)
    traced(sink)
    traced(recording.compile("another"))
    recording.close()
    assert ear.lines == written and ear.ends == ["close"]


# ------------------------------------------------------------------------------------------- threads and processes


def in_threads(work: Sequence[Callable[[], None]]) -> None:
    start = threading.Barrier(len(work))

    def run(each: Callable[[], None]) -> None:
        start.wait()
        each()

    threads = [threading.Thread(target=run, args=(each,)) for each in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_case_09_compiles_in_eight_threads_are_eight_whole_records(recording, ear):
    def work(number: int) -> Callable[[], None]:
        def run() -> None:
            sink = recording.compile(f"kernel {number}")
            text = f"kernel {number}"
            for turn in range(50):
                before, text = text, f"{text}\n{number}.{turn}"
                do(sink, f"{number}.{turn}", Program(before), Program(text))
                time.sleep(0)
            sink.done(None)

        return run

    in_threads([work(number) for number in range(8)])
    run = ear.read()
    assert sorted(compile.kernel for compile in run.compiles) == [f"kernel {number}" for number in range(8)]
    for compile in run.compiles:
        number = compile.kernel.removeprefix("kernel ")
        assert [s.seq for s in compile.steps] == list(range(50)) and compile.status is Status.DONE
        assert [s.name for s in compile.steps] == [f"{number}.{turn}" for turn in range(50)]
        for turn, s in enumerate(compile.steps):
            assert run.lines(s.after) == [compile.kernel, *(f"{number}.{t}" for t in range(turn + 1))]
    assert sorted(s.index for compile in run.compiles for s in compile.steps) == list(range(400))
    assert sorted(compile.run for compile in run.compiles) == list(range(1, 9))


def test_a_forked_process_leaves_the_run_to_its_parent(recording, ear):
    sink = recording.compile("kernel")
    do(sink, "before", Program("a"), Program("b"))
    written = len(ear.lines)
    child = os.fork()
    if child == 0:
        do(sink, "in the child", Program("b"), Program("c"))
        recording.close()
        os._exit(0 if len(ear.lines) == written and ear.ends == ["let go"] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    do(sink, "after", Program("b"), Program("c"))
    assert [s.name for s in ear.read().compiles[0].steps] == ["before", "after"]


def test_a_fork_while_another_thread_writes_does_not_hang_the_child(recording):
    with recording.lock:
        children = [0]

        def fork() -> None:
            children[0] = os.fork()
            if children[0] == 0:
                recording.compile("kernel")
                os._exit(0)

        thread = threading.Thread(target=fork)
        thread.start()
        thread.join()
        assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 0


# ------------------------------------------------------------------------------------------------------- large texts


def test_case_68_a_text_above_the_cap_is_kept_whole_and_not_compared(recording, ear, monkeypatch):
    monkeypatch.setattr(journal.Difference, "between", None)
    line = "  t: f16[16, 16] = add(a, b)  # a line of a very long text\n"
    large = line * (20_000_000 // len(line))
    sink = recording.compile("kernel")
    do(sink, "unroll", Program("a"), Program(large))
    do(sink, "unroll", Program(large), Program(f"{large}!"))
    run = ear.read()
    first, second = run.compiles[0].steps
    assert run.text(first.after) == large and run.text(second.after) == f"{large}!"
    assert first.changed and second.changed and (second.added, second.removed) == (None, None)


def test_what_a_long_pipeline_writes_is_linear_in_what_changes(recording, ear):
    compile_with(recording.compile("kernel"), pipeline(60, 1000, 1, share_changed=0.0))
    unchanged = sum(map(len, ear.lines))
    compile_with(recording.compile("kernel"), pipeline(60, 1000, 1))
    steps = recording.run.compiles[1].steps
    changed = sum(s.added or 0 for s in steps)
    assert sum(s.changed for s in steps) > 10
    assert sum(map(len, ear.lines)) - unchanged < 60 * 300 + changed * 400


def test_fanout_and_sink_take_the_same_events(recording, ear):
    traced(Fanout([recording.compile("kernel"), Null()]))
    assert [s.name for s in ear.read().compiles[0].steps] == ["verify", "one", "two", "three", "dies", "print_module"]
    assert all(isinstance(s, Step) for s in recording.run.compiles[0].steps)
