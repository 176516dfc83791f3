# SPDX-License-Identifier: Apache-2.0
"""The journal: its schema is fixed, what is written is read back, and a torn end costs nothing before it."""

import json
import random
from pathlib import Path

import pytest

from tilekit.tools.lower_trace import journal
from tilekit.tools.lower_trace.journal import (
    END,
    Compile,
    Difference,
    Entry,
    Failure,
    Head,
    JournalError,
    Run,
    Source,
    Status,
    Step,
    Text,
)

GOLDEN = Path(__file__).parent / "golden" / "journal_1.jsonl"


def golden_run() -> tuple[Run, list[Entry]]:
    """Two compiles, with everything that a journal of schema 1 can say; and its entries."""
    head = Head(
        version="0.1.0",
        script="my_script",
        argv=("my_script.py", "--fast"),
        cwd="/home/me",
        pid=4711,
        rank=None,
        started="2026-11-30T09:33:26.123456Z",
        mode="html",
        folder="/home/me/tmp/lower_trace_dir/my_script/.run_records/run_20261130_093326_123456_4711",
    )
    run, entries = Run(head), [journal.run_entry(head)]

    def text(data: str, base: Text | None = None) -> Text:
        made = Text(data)
        entry = run.add_text(made, base, None if base is None else Difference.between(base, made))
        entries.extend([] if entry is None else [entry])
        return made

    first = Compile(0, 1, "matmul", "Matmul", "m=64", "sm_80", "cpu", from_cache=False)
    second = Compile(1, 2, "matmul", "Matmul", "m=128", "sm_80", "cpu", from_cache=True)
    run.compiles += [first, second]
    program = text("".join(f"  line {i} of the program\n" for i in range(20)))
    shorter = Text(program.data.replace("  line 3 of the program\n", "").replace("line 9 ", "line nine "))
    hidet, cuda, edited = Text("def matmul():\n  pass\n"), Text("void matmul() {}\n"), Text("void matmul() { }\n")

    entries.append(journal.compile_entry(first))
    a = Step(0, 0, 0, "tile", "fold", 1, None, 0, program.id, "tile")
    b = Step(0, 1, 1, "tile", "inner", 1, 0, 1, program.id, "tile")
    first.steps += [a, b]
    entries += [journal.begin_entry(a), journal.begin_entry(b)]
    b.status, b.after, b.ns, b.self_ns, b.added, b.removed = Status.DONE, program.id, 1000, 1000, 0, 0
    b.rebuilt = True
    entries.append(journal.end_entry(b))
    text(shorter.data, program)
    a.status, a.after, a.changed, a.ns, a.self_ns, a.added, a.removed = Status.DONE, shorter.id, True, 3000, 2000, 1, 2
    a.notes["visits"] = [["visit_If", 3]]
    entries += [journal.note_entry(0, 0, "visits", a.notes["visits"]), journal.end_entry(a)]
    lower = Step(0, 2, 2, "lower", "generate_ir_module", 1, None, 0, shorter.id, "hidet")
    print_it = Step(0, 3, 3, "codegen", "print_module", 1, None, 0, hidet.id, "cuda")
    first.steps += [lower, print_it]
    for step, after in ((lower, hidet), (print_it, cuda)):
        entries.append(journal.begin_entry(step))
        text(after.data)
        step.status, step.after, step.changed, step.ns, step.self_ns = Status.DONE, after.id, True, 5000, 5000
        entries.append(journal.end_entry(step))
    text(edited.data)
    messages = ("PATCHED from codegen.cpp",)
    print_it.source = Source(cuda.id, edited.id, "PATCHED", "codegen.cpp", messages)
    entries.append(journal.codegen_entry(print_it, print_it.source))
    first.notes["registers"], first.status, first.ns = 32, Status.DONE, 20000
    entries += [journal.note_entry(0, None, "registers", 32), journal.compile_end_entry(first)]

    entries.append(journal.compile_entry(second))
    outer = Step(1, 0, 4, "run2_tile", "fold", 1, None, 0, program.id, "tile")
    inner = Step(1, 1, 5, "run2_tile", "fold", 2, 0, 1, program.id, "tile")
    second.steps += [outer, inner]
    entries += [journal.begin_entry(outer), journal.begin_entry(inner)]
    inner.status = Status.FAILED
    inner.failure = Failure(1, "RuntimeError", 'a <b>&"c"\n  line2', "Traceback …\n", "In [3], line 7")
    outer.status, outer.failure = Status.ABORTED, Failure(1, "RuntimeError", 'a <b>&"c"\n  line2', "")
    entries += [journal.fail_entry(step, step.failure) for step in (inner, outer) if step.failure is not None]
    second.status, second.ns = Status.FAILED, 7000
    entries += [journal.compile_end_entry(second), END]
    run.ended = True
    return run, entries


def golden_lines() -> list[str]:
    return [journal.encode(entry) for entry in golden_run()[1]]


def same(a: Run, b: Run) -> bool:
    def told(run: Run):
        texts = {text_id: run.text(text_id) for text_id in run.texts()}
        return run.head, [vars(c) | {"steps": [vars(s) for s in c.steps]} for c in run.compiles], run.ended, texts

    return told(a) == told(b)


def test_case_90_the_schema_is_that_of_the_golden_journal():
    assert GOLDEN.read_text().splitlines() == golden_lines()
    assert json.loads(golden_lines()[0])["schema"] == journal.SCHEMA


def test_what_is_written_is_what_is_read():
    assert same(journal.read(GOLDEN), golden_run()[0])


def test_a_journal_cut_anywhere_tells_what_it_told_by_then(tmp_path):
    whole = GOLDEN.read_bytes()
    lines = whole.split(b"\n")
    file = tmp_path / journal.FILE
    for cut in random.Random().sample(range(len(lines[0]) + 1, len(whole)), 200):
        file.write_bytes(whole[:cut])
        expected = Run(golden_run()[0].head)
        for line in whole[:cut].split(b"\n")[1:-1]:
            expected.feed(json.loads(line))
        assert same(journal.read(tmp_path), expected)


def test_a_step_that_did_not_end_is_the_culprit(tmp_path):
    lines = golden_lines()
    file = tmp_path / journal.FILE
    begins = [n for n, line in enumerate(lines) if '"k":"pass_begin"' in line]
    for n in begins:
        file.write_text("".join(line + "\n" for line in lines[: n + 1]))
        run = journal.read(file)
        culprit = run.compiles[-1].culprit
        assert not run.ended and culprit is run.compiles[-1].steps[-1] and culprit.status is Status.UNFINISHED
        assert culprit.before in run
    assert journal.read(GOLDEN).compiles[0].culprit is None
    assert (failed := journal.read(GOLDEN).compiles[1].culprit) is not None and failed.title == "fold#2"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "holds no journal yet"),
        ('{"k":"run"', "holds no journal yet"),
        ('{"k":"text","id":"0","data":""}\n', "is no journal"),
        ("junk\n", "is no journal"),
        ("[1]\n", "is no journal"),
    ],
)
def test_what_is_no_journal_is_refused(tmp_path, content, said):
    (tmp_path / journal.FILE).write_text(content)
    with pytest.raises(JournalError, match=said) as raised:
        journal.read(tmp_path)
    assert raised.value.code == "TK430"


def test_a_text_that_cannot_be_put_together_is_told_when_somebody_looks(tmp_path):
    entries = [json.loads(line) for line in golden_lines()]
    made = next(entry for entry in entries if entry["k"] == "text" and "base" in entry)
    for damage in ({"base": "nothing"}, {"ops": [[]]}, {"ops": 5}):
        damaged = [{**entry, **damage} if entry is made else entry for entry in entries]
        (tmp_path / journal.FILE).write_text("".join(f"{journal.encode(entry)}\n" for entry in damaged))
        with pytest.raises(JournalError, match="the journal is damaged") as raised:
            journal.read(tmp_path).text(made["id"])
        assert raised.value.code == "TK430"


def test_damage_before_the_last_line_names_the_line(tmp_path):
    lines = golden_lines()
    lines[5] = lines[5][:-3]
    (tmp_path / journal.FILE).write_text("".join(line + "\n" for line in lines))
    with pytest.raises(JournalError, match="damaged in line 6"):
        journal.read(tmp_path)


def test_a_journal_of_a_later_schema_names_the_version_that_reads_it(tmp_path):
    entry = {**json.loads(golden_lines()[0]), "schema": journal.SCHEMA + 1, "version": "9.8"}
    (tmp_path / journal.FILE).write_text(json.dumps(entry) + "\n")
    with pytest.raises(JournalError, match=r"schema 2(.|\n)*install tilekit 9\.8"):
        journal.read(tmp_path)


def test_any_chain_of_texts_is_read_back_and_what_repeats_is_written_once():
    rng = random.Random()
    for _ in range(30):
        run = Run(golden_run()[0].head)
        written, told = [Text("")], []
        for _ in range(40):
            base = rng.choice(written)
            lines = list(rng.choice(written).lines)
            for _ in range(rng.randrange(6)):
                at = rng.randrange(len(lines) + 1)
                lines[at : at + rng.randrange(3)] = [
                    rng.choice(["", "a", "\r", "\x0c", "\u2028é", "\ud800", "{}", '"'] + [f"line {at}" * 9] * 4)
                ]
            text = Text("\n".join(lines))
            entry = run.add_text(text, base, Difference.between(base, text))
            assert (entry is None) is (text.id in {other.id for other in written[1:]})
            if entry is not None:
                told.append(json.loads(journal.encode(entry)))
                written.append(text)
        again = Run(run.head)
        for entry in told:
            again.feed(entry)
        for text in rng.sample(written[1:], len(written) - 1):
            assert run.text(text.id) == again.text(text.id) == text.data


def test_a_difference_makes_one_text_of_the_other_and_counts_its_lines():
    for _ in range(300):
        before, after = ([random.choice("abcd") for _ in range(random.randrange(12))] for _ in range(2))
        difference = Difference.between(Text("\n".join(before)), Text("\n".join(after)))
        inserted = sum(len(op) for op in difference.operations if not journal.is_copy(op))
        copied = sum(op[1] - op[0] for op in difference.operations if journal.is_copy(op))
        assert difference.added == inserted
        assert difference.added - difference.removed == max(len(after), 1) - max(len(before), 1)
        assert copied + difference.removed == max(len(before), 1)


def test_a_small_change_of_a_long_text_is_a_short_line():
    lines = [f"%v{i}: f16[16, 16] = add(%v{i - 1}, %v{i - 2})" for i in range(3000)]
    before = Text("\n".join(lines))
    lines[1500] = "sync()"
    after = Text("\n".join(lines))
    run = Run(golden_run()[0].head)
    run.add_text(before)
    entry = run.add_text(after, before, Difference.between(before, after))
    assert entry is not None and len(journal.encode(entry)) < 150
