# SPDX-License-Identifier: Apache-2.0
"""What the panel of passes receives is what the compile did."""

import json
import random

from tilekit.events import Stage
from tilekit.notebook.panels.steps import Steps
from tilekit.textdiff import Kind
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


def rebuilt(message: dict) -> str:
    """The old text as the front end puts it together."""
    old, after, before = iter(message["old"]), message["after"].split("\n"), []
    for kind, _, right, count in message["runs"]:
        if kind == Kind.SAME:
            before += after[right : right + count]
        elif kind != Kind.ADDED:
            before += [next(old) for _ in range(count)]
    return "\n".join(before)


def test_each_step_says_what_became_of_the_program():
    recorder, _ = recorded()
    one, two, last = Steps(recorder).overview()
    assert (one["name"], one["status"], one["added"], one["removed"]) == ("one", "changed", 1, 1)
    assert one["ms"] == 2.0
    assert (two["status"], two["added"], two["removed"]) == ("same", 0, 0)
    assert (last["status"], last["language"]) == ("translated", "CUDA C")


def test_a_message_holds_the_new_text_and_of_the_old_one_what_differs():
    recorder, (first, second, source) = recorded()
    steps = Steps(recorder)
    message = steps.message(0)
    assert message["after"] == second
    assert rebuilt(message) == first
    assert len(message["old"]) == 1
    assert steps.message(1)["old"] == []
    assert (rebuilt(steps.message(2)), steps.message(2)["after"]) == (second, source)
    json.dumps([steps.message(index) for index in range(3)])


def test_a_program_is_printed_once_however_often_it_is_looked_at():
    recorder, texts = recorded()
    steps = Steps(recorder)
    for _ in range(3):
        steps.overview()
        for index in range(3):
            steps.message(index)
    assert [text.printed for text in texts] == [1, 1, 1]


def test_a_pass_that_failed_says_of_what():
    recorder, _ = recorded()
    recorder.fail(Stage.TILE, "three", ValueError("no layout for t_3"))
    steps = Steps(recorder)
    entry = steps.overview()[-1]
    assert (entry["status"], entry["error"]) == ("failed", "ValueError: no layout for t_3")
    assert steps.message(3)["after"] == ""


def test_the_plain_text_names_every_step():
    lines = Steps(recorded()[0]).plain().splitlines()
    assert [line.split()[2:-2] for line in lines] == [
        ["one", "+1", "-1"],
        ["two", "no", "change"],
        ["print_module", "into", "CUDA", "C"],
    ]
