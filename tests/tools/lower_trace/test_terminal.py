# SPDX-License-Identifier: Apache-2.0
"""The trace in a terminal: what changed, as soon as it did, in the width, colors and characters that are there."""

import fcntl
import io
import itertools
import os
import re
import struct
import subprocess
import sys
import termios

import pytest

import tilekit
from tests.promises.kernels import compiled, scaling
from tests.tools.lower_trace import scripts
from tilekit.events import Stage, step
from tilekit.tools.lower_trace.console import Console, Style
from tilekit.tools.lower_trace.journal import Head
from tilekit.tools.lower_trace.recording import Recording
from tilekit.tools.lower_trace.terminal import Terminal

HEAD = Head("0", "script", (), "", 1, None, "2026-01-01T00:00:00Z", "terminal")


@pytest.fixture(autouse=True)
def plain(monkeypatch):
    """An environment that says nothing of a terminal."""
    for name in ("COLUMNS", "NO_COLOR", "LC_ALL", "LC_CTYPE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANG", "en_US.UTF-8")
    monkeypatch.setenv("TERM", "xterm")


class Page(io.StringIO):
    """A stream of text that knows its encoding, as that of a pipe does."""

    encoding = "utf-8"


def printed(texts: list[str], max_lines: int = 0, stream: io.StringIO | None = None) -> str:
    """What the terminal says of steps that make each text of the one before."""
    stream = stream or Page()
    recording = Recording(HEAD, [Terminal(Console(stream), max_lines)], print)
    sink = recording.compile("kernel", specialization="Kernel(block=64)", target="sm_80", device="cpu")
    for number, (before, after) in enumerate(itertools.pairwise(texts)):
        with step(sink, Stage.HIDET, f"pass_{number}", before) as underway:
            underway.made(after)
    return stream.getvalue()


class Tty:
    """A terminal of so many columns."""

    def __init__(self, columns: int) -> None:
        self._reader, writer = os.openpty()
        fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.stream = os.fdopen(writer, "w", encoding="utf-8")

    def lines(self) -> list[str]:
        self.stream.write("the end\n")
        self.stream.flush()
        found = b""
        while not found.endswith(b"the end\r\n"):  # it comes in pieces
            found += os.read(self._reader, 1 << 16)
        self.stream.close()
        os.close(self._reader)
        return found.decode().replace("\r\n", "\n").splitlines()[:-1]


BEFORE = "\n".join(f"line {i}" for i in range(100))
AFTER = "\n".join(f"line {i}" if i % 10 else f"LINE {i}" for i in range(100))


# ------------------------------------------------------------------------------------------------------- what it says


def test_case_85_each_pass_that_changed_something_has_a_heading_and_a_diff(tmp_path, capfd):
    with tilekit.tracing("terminal", tmp_path) as t:
        compiled(scaling())
    lines = capfd.readouterr().err.splitlines()
    headings = [line for line in lines if re.match(r"\d\d ", line)]
    changed = [step for step in t.compiles[0].steps if step.changed]
    assert [line.split()[1].rpartition("/")[2] for line in headings] == [step.title for step in changed]
    for line, each in zip(headings, changed, strict=True):
        tail = r".* → .*, \d+ lines" if each.is_translation else rf"\+{each.added} -{each.removed}"
        assert re.fullmatch(rf"{each.index:02d} \S+  \d+\.\d\d ms  {tail}", line)
    added = [line for line in lines if line.startswith("+")]
    removed = [line for line in lines if line.startswith("-")]
    compared = [step for step in changed if not step.is_translation]
    assert len(added) == sum(step.added for step in compared) > 0
    assert len(removed) == sum(step.removed for step in compared) > 0


def test_case_85_a_diff_is_cut_and_says_what_is_left_out():
    whole, cut = printed([BEFORE, AFTER]).splitlines(), printed([BEFORE, AFTER], max_lines=7).splitlines()
    assert cut == [*whole[:9], f"… {len(whole) - 9} more"]


def test_case_85_the_number_of_lines_comes_from_the_environment(tmp_path):
    told = {"TL_LOWER_TRACE": "terminal", "TL_LOWER_TRACE_MAX_LINES": "2"}
    done = scripts.run(tmp_path, "compile(scaling(2.0))", **told)
    blocks = re.split(r"^\d\d .*\n", done.stderr, flags=re.MULTILINE)[1:]
    assert blocks and all(len(block.splitlines()) <= 4 for block in blocks)
    assert re.search(r"… \d+ more", done.stderr)


@pytest.mark.parametrize("columns", [20, 40, 132])
def test_case_85_lines_are_as_wide_as_the_terminal(columns):
    terminal, long = Tty(columns), "x" * 100
    console = Console(terminal.stream)
    console.text(long, Style.ADDED)
    console.text("short")
    console.say(long)
    first, short, said = terminal.lines()
    expected = long if columns > 100 else long[: columns - 1] + "…"
    assert (first, short) == (f"\x1b[32m{expected}\x1b[0m", "short")
    assert said == f"tilekit: {long}", "what we say ourselves is never cut: it may be a path"


def test_case_85_nothing_is_cut_where_there_is_no_terminal():
    assert f"+{'x' * 500}\n" in printed(["y", "x" * 500])


@pytest.mark.parametrize("name", ["LANG", "LC_CTYPE", "LC_ALL"])
def test_case_85_a_plain_locale_gets_plain_characters(name, monkeypatch):
    assert "…" in printed([BEFORE, AFTER], max_lines=1) and "·" in printed([BEFORE, AFTER])
    monkeypatch.delenv("LANG")
    monkeypatch.setenv(name, "C")
    assert printed([BEFORE, AFTER], max_lines=1).isascii()


def test_case_85_python_itself_turns_the_plain_locale_into_another(monkeypatch):
    monkeypatch.setenv("LANG", "C")
    monkeypatch.setenv("LC_CTYPE", "C.UTF-8")  # as Python sets it where LANG=C
    assert printed([BEFORE, AFTER], max_lines=1).isascii()


def test_case_85_in_a_process_with_a_plain_locale(tmp_path):
    told = {"TL_LOWER_TRACE": "both", "TL_LOWER_TRACE_MAX_LINES": "1", "LANG": "C", "LC_ALL": ""}
    done = scripts.run(tmp_path, "compile(scaling(2.0))", **told)
    assert done.stderr.isascii() and " more" in done.stderr


def test_a_text_that_the_stream_cannot_take_is_escaped():
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, "ascii")
    Console(stream).text("größer → ok")
    assert raw.getvalue() == b"gr\\xf6\\xdfer \\u2192 ok\n"


def test_columns_of_zero_say_nothing(monkeypatch):
    monkeypatch.setenv("COLUMNS", "0")
    tty = Tty(40)
    Console(tty.stream).text("x" * 70)
    assert tty.lines() == ["x" * 39 + "…"]


# --------------------------------------------------------------------------------------------------------------- colors


def colored(monkeypatch, **variables: str) -> bool:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    terminal = Tty(80)
    Console(terminal.stream).text("a line", Style.REMOVED)
    (line,) = terminal.lines()
    assert line in ("a line", "\x1b[31ma line\x1b[0m")
    return line != "a line"


def test_case_12_a_terminal_gets_colors(monkeypatch):
    assert colored(monkeypatch)


def test_a_notebook_gets_colors_and_nothing_is_cut():
    from ipykernel.iostream import OutStream

    class Shown(Page):
        """The stream of a kernel, without the kernel."""

        __module__ = OutStream.__module__

    stream = Shown()
    Console(stream).text("x" * 500, Style.ADDED)
    assert stream.getvalue() == f"\x1b[32m{'x' * 500}\x1b[0m\n"


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_case_12_who_wants_no_colors_gets_none(variables, monkeypatch):
    assert not colored(monkeypatch, **variables)


# ------------------------------------------------------------------------------------------------------------ failures


def test_a_failed_step_says_what_it_died_of_and_what_it_was_given():
    stream = Page()
    recording = Recording(HEAD, [Terminal(Console(stream), 0)], print)
    sink = recording.compile("kernel", specialization="Kernel(block=64)")
    outer, inner = (sink, Stage.TILE, "outer", "given\nto it"), (sink, Stage.TILE, "inner", "given\nto the inner one")
    with pytest.raises(RuntimeError), step(*outer), step(*inner):
        raise RuntimeError("first\n  second")
    _, inner, second, *given, outer = stream.getvalue().splitlines()
    assert re.fullmatch(r"01 tile/inner  FAILED  RuntimeError: first", inner) and second == "  second"
    assert given == ["given", "to the inner one"]
    assert outer == "00 tile/outer  ABORTED"


# ------------------------------------------------------------------------------------------------------------ streaming

STREAMS = """
from tilekit.tools import lower_trace as lt

program = compile(scaling(2.0)).program
first = tilekit.transforms.analyze_scalar_pass()

def waits(program):
    sys.stdin.readline()
    return program

lt.lower_trace(program, [first, waits])
"""


def test_case_101_a_diff_is_there_before_the_next_pass_has_run(tmp_path):
    file = tmp_path / "my_script.py"
    file.write_text(scripts.SCRIPT + "import tilekit.transforms\n" + STREAMS)
    with subprocess.Popen(
        [sys.executable, str(file)], stdin=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path, text=True,
        env=scripts.environment(),
    ) as process:  # fmt: skip
        assert process.stdin is not None and process.stderr is not None
        lines = [process.stderr.readline()]
        while not lines[-1].startswith(" def scale"):  # the diff ends with what stands below the lines that it added
            lines.append(process.stderr.readline())
            assert lines[-1], "".join(lines)
        assert process.poll() is None, "the second pass still waits"
        process.stdin.write("go on\n")
        process.stdin.close()
    assert process.returncode == 0
    assert any(line.startswith("00 lower_trace/analyze_scalar") for line in lines)


def test_case_101_every_line_is_flushed():
    class Flushed(Page):
        def __init__(self) -> None:
            super().__init__()
            self.shown = ""

        def flush(self) -> None:
            self.shown = self.getvalue()

    stream = Flushed()
    recording = Recording(HEAD, [Terminal(Console(stream), 0)], print)
    sink = recording.compile("kernel")
    with step(sink, Stage.TILE, "one", "a") as underway:
        underway.made("b")
    with step(sink, Stage.TILE, "two", "b"):
        assert stream.shown.endswith("-a\n+b\n")
