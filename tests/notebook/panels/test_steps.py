# SPDX-License-Identifier: Apache-2.0
"""What the panel of passes receives is what the compile did."""

import json
import random
import zlib

import pytest

import tilekit
from tilekit import float32
from tilekit.events import Stage
from tilekit.notebook.panels.steps import Steps, kind, milliseconds, words
from tilekit.toolchain import toolkit
from tilekit.tools.lower_trace.journal import Head, Run
from tilekit.transforms.recorder import Recorder


class Text(str):
    """Stands for a program: its text is itself, and how often it was printed is counted."""

    printed = 0

    def __str__(self) -> str:
        self.printed += 1
        return str.__str__(self)


def program() -> Text:
    return Text("\n".join(f"t_{n} = add(t_{random.randrange(9)})" for n in range(random.randrange(4, 30))))


def edited(text: Text) -> Text:
    lines = str.__str__(text).split("\n")
    lines[random.randrange(len(lines))] = "sync()"
    return Text("\n".join(lines))


def recorded() -> tuple[Recorder, list[Text]]:
    first = program()
    second = edited(first)
    source = Text("int x;\nint y;")
    recorder = Recorder()
    recorder.end(Stage.TILE, "one", first, second, 0.002)
    recorder.end(Stage.TILE, "two", second, second, 0.001)
    recorder.end(Stage.CODEGEN, "print_module", second, source, 0.003)
    return recorder, [first, second, source]


def read(journal: str) -> Run:
    head, *entries = map(json.loads, journal.splitlines())
    run = Run(Head(**{name: value for name, value in head.items() if name != "k"}))
    for entry in entries:
        run.feed(entry)
    return run


def test_each_step_says_what_became_of_the_program():
    recorder, (first, second, source) = recorded()
    steps = Steps(recorder)
    one, two, last = steps.steps
    assert (one.name, kind(one), one.added, one.removed, milliseconds(one)) == ("one", "changed", 1, 1, 2.0)
    assert (kind(two), two.added, two.removed) == ("same", 0, 0)
    assert (kind(last), words(last)) == ("translated", "into CUDA C")
    assert list(steps.changed) == [one]
    assert ["\n".join(side) for side in steps.sides(one)] == [first, second]
    assert ["\n".join(side) for side in steps.sides(last)] == [second, source]


def test_the_journal_is_that_of_a_traced_run():
    recorder, (first, second, source) = recorded()
    steps = Steps(recorder, "Softmax")
    run = read(steps.journal)
    assert [compile.kernel for compile in run.compiles] == ["Softmax"]
    assert run.ended
    assert [(run.text(step.before), run.text(step.after)) for step in run.compiles[0].steps] == [
        (first, second),
        (second, second),
        (second, source),
    ]
    assert zlib.decompress(steps.packed, -zlib.MAX_WBITS).decode() == steps.journal


def test_the_compile_took_as_long_as_its_steps():
    recorder, _ = recorded()
    recorder.end(Stage.HOST, "g++", recorder.steps[-1].after, recorder.steps[-1].after, 100.0)
    assert read(Steps(recorder).journal).compiles[0].ns == 100_006_000_000


def test_a_program_is_printed_once_however_often_it_is_looked_at():
    recorder, texts = recorded()
    steps = Steps(recorder)
    for _ in range(3):
        assert steps.plain()
        assert steps.packed
    assert [text.printed for text in texts] == [1, 1, 1]


def test_a_pass_that_failed_says_of_what():
    recorder, _ = recorded()
    recorder.fail(Stage.TILE, "three", ValueError("no layout for t_3"))
    *_, last = Steps(recorder).steps
    assert (kind(last), words(last)) == ("failed", "failed: ValueError: no layout for t_3")


def test_the_plain_text_names_every_step():
    lines = Steps(recorded()[0]).plain().splitlines()
    assert [line.split()[2:-2] for line in lines] == [
        ["one", "+1", "-1"],
        ["two", "no", "change"],
        ["print_module", "into", "CUDA", "C"],
    ]


class Increment(tilekit.Script):
    def __call__(self, x_ptr: ~float32):
        self.attrs.blocks = [1]
        self.attrs.warps = 1
        g = self.global_view(x_ptr, dtype=float32, shape=[32])
        self.store_global(g, self.load_global(g, offsets=[0], shape=[32]) + 1.0, offsets=[0])


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_the_steps_of_a_kernel_begin_at_the_persons_lines_and_go_on_to_machine_code_when_asked(device, monkeypatch):
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs pip install 'tilekit[cuda]'")
    monkeypatch.setattr(toolkit, "nvdisasm", lambda: None)
    handle = Increment()
    handle.compile(tilekit.spec(float32, (32,)), device=device)
    short = Steps.of(handle.kernels[-1], "Increment")
    first = short.steps[0]
    assert "self.load_global(" in short.journal and "def __call__(self, x_ptr" in short.journal
    assert "lines" in first.notes and short.can_go_on and not [step for step in short.steps if step.language == "sass"]
    whole = short.to_the_end()
    assert not whole.can_go_on
    *_, ptx, ptxas = whole.steps
    assert (ptx.base_phase, ptxas.base_phase) == ("ptx", "ptxas") and ptxas.notes["ptxas"]["registers"] > 0
    assert '"key":"absent"' in whole.journal and "pip install nvidia-cuda-nvdisasm" in whole.journal


def test_the_machine_code_of_an_edit_comes_from_the_edited_source():
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs pip install 'tilekit[cuda]'")
    handle = Increment()
    handle.compile(tilekit.spec(float32, (32,)), device="cpu")
    kernel = handle.kernels[-1]
    kernel.recompile(kernel.source.replace("1.0f", "9.0f"))
    try:
        whole = Steps.of(kernel, "Increment").to_the_end()
    finally:
        kernel.revert()
    codegen, ptx = (next(step for step in whole.steps if step.base_phase == phase) for phase in ("codegen", "ptx"))
    assert codegen.source is not None and ptx.before == codegen.source.compiled
    assert codegen.notes["lines_of_edit"]["to"] == ptx.before == ptx.notes["lines"]["from"]
    assert any("0f41100000" in line for line in whole.sides(ptx)[1])  # 9.0
