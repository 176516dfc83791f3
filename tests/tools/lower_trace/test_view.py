# SPDX-License-Identifier: Apache-2.0
"""`tilekit trace view`: what its keys do, what it shows, and that a terminal shows it."""

import fcntl
import io
import os
import pty
import select
import shutil
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tools.lower_trace.scripts import environment
from tests.tools.lower_trace.test_cli import traced as written
from tests.tools.lower_trace.test_queries import chain, traced
from tilekit.tools.lower_trace import cli
from tilekit.tools.lower_trace.console import Style
from tilekit.tools.lower_trace.journal import Step
from tilekit.tools.lower_trace.queries import Place
from tilekit.tools.lower_trace.view import KEYS, Browser

LONG = [f"line {i}" for i in range(100)]
EDITED = [*LONG[:10], "mma_sync(1)", *LONG[11:80], "line eighty", *LONG[81:]]
PASSES = chain(
    "\n".join(LONG),
    "\n".join(LONG),
    "\n".join(EDITED),
    "\n".join(EDITED),
    "short",
    names=["fold", "lower", "fold", "cut"],
)


@pytest.fixture
def browser() -> Browser:
    run = traced(("matmul", PASSES), ("softmax", chain("1", "2")))
    return Browser(Place(run, run.compiles))


def press(browser: Browser, keys: str) -> None:
    names = {"\n": "enter", "\b": "backspace"}
    for key in keys:
        assert browser.press(names.get(key, key))


def shown(browser: Browser, width: int = 100, height: int = 20) -> list[str]:
    rows = ["".join(text for text, _ in row) for row in browser.screen(width, height)]
    assert len(rows) == height
    assert max(map(len, rows)) <= width
    return rows


def here(browser: Browser) -> str:
    assert browser.at is not None
    return f"{browser.at.phase}/{browser.at.title}"


def test_case_86_it_opens_at_the_last_change_and_shows_what_that_changed(browser):
    assert here(browser) == "run2_tile/a"
    press(browser, "kk")
    assert here(browser) == "tile/fold#2"
    press(browser, "k")
    rows = shown(browser)
    assert here(browser) == "tile/lower"
    assert rows[0].startswith("matmul")
    assert ">● 01 lower +2 -2" in rows[2]
    assert any("-line 10" in row for row in rows)
    assert any("+mma_sync(1)" in row for row in rows)


def test_case_86_keys_go_through_the_list_and_stop_at_its_ends(browser):
    press(browser, "j")
    assert here(browser) == "run2_tile/a"
    press(browser, "k" * 9)
    assert here(browser) == "tile/fold"
    press(browser, "]")
    assert here(browser) == "run2_tile/a"
    press(browser, "[")
    assert here(browser) == "tile/fold"


def test_case_86_only_what_did_something_is_listed(browser):
    press(browser, "c")
    assert [step.title for step in browser.steps] == ["lower", "cut", "a"]
    press(browser, "k" * 9)
    assert here(browser) == "tile/lower"
    press(browser, "c")
    assert len(browser.steps) == 5


def test_case_86_a_name_filters_the_list(browser):
    press(browser, "ffoul\b\bld\n")
    assert [step.title for step in browser.steps] == ["fold", "fold#2"]
    assert here(browser) == "tile/fold"
    assert "only fold" in shown(browser)[0]
    browser.press("esc")
    assert len(browser.steps) == 5


def test_case_86_a_text_is_found_and_found_again(browser):
    press(browser, "/mma_sync\n")
    assert here(browser) == "tile/lower"
    rows = shown(browser)
    assert "+mma_sync(1)" in rows[1]
    assert rows[-1] == "mma_sync: in 2 steps, 01 lower to 02 fold#2"
    press(browser, "/\n")
    assert here(browser) == "tile/fold#2"
    press(browser, "/\n")
    assert here(browser) == "tile/lower"
    press(browser, "/nothing\n")
    assert shown(browser)[-1] == "no step has nothing"


def test_keys_are_letters_while_something_is_typed(browser):
    press(browser, "/qj")
    assert shown(browser)[-1] == "find: qj▏"
    browser.press("esc")
    assert not browser.prompt
    assert not browser.press("q")


def test_changes_are_jumped_to_and_the_text_scrolls(browser):
    press(browser, "kkk")
    shown(browser, height=8)
    press(browser, "n")
    assert browser.text()[browser.top][0][0].startswith("@@")
    first = browser.top
    press(browser, "n")
    assert browser.top > first
    press(browser, "p")
    assert browser.top == first
    browser.press("down")
    browser.press("pgup")
    assert browser.top == 0
    press(browser, "e")
    assert len(browser.text()) > 100
    for _ in range(99):
        browser.press("pgdn")
    assert browser.top == len(browser.text()) - browser.page


def test_each_line_says_who_made_it(browser):
    press(browser, "kkb")
    rows = ["".join(text for text, _ in row) for row in browser.text()]
    assert "01 lower mma_sync(1)" in rows
    assert "         line 0" in rows
    press(browser, "b")
    assert "line 0" in ["".join(text for text, _ in row) for row in browser.text()]


def test_case_78_a_marked_step_is_compared_with_another(browser):
    press(browser, "k" * 9)
    press(browser, "xjj")
    rows = browser.text()
    assert rows[1] == [("beside 00 fold", Style.PLACE)]
    assert [("+mma_sync(1)", Style.ADDED)] in rows
    browser.press("esc")
    assert browser.marked is None


def test_the_help_names_every_key(browser):
    press(browser, "?")
    rows = shown(browser, width=130, height=30)
    assert all(any(what in row for row in rows) for what in KEYS.values())
    browser.press("esc")
    assert not browser.helps


def test_a_small_terminal_is_enough(browser):
    for width, height in ((1, 1), (10, 3), (40, 5)):
        shown(browser, width, height)


def test_a_run_without_steps_can_be_looked_at():
    run = traced()
    browser = Browser(Place(run, run.compiles))
    assert shown(browser)[0] == "no steps"
    press(browser, "jknp[]/x\nfx\ncbex?")


def test_a_link_into_a_page_is_where_it_opens(folder, monkeypatch):
    opened: list[Step | None] = []
    monkeypatch.setattr("tilekit.tools.lower_trace.view.can_browse", lambda: True)
    monkeypatch.setattr("tilekit.tools.lower_trace.view.browse", lambda place, at: opened.append(at))
    monkeypatch.setattr(sys, "stdin", terminal := Terminal())
    monkeypatch.setattr(sys, "stdout", terminal)
    for where in (f"{folder}#p=1&l=9", str(folder)):
        assert cli.main(["view", where]) == 0
    assert opened[0] is not None and opened[0].title == "lower"
    assert opened[1] is None


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


# ---------------------------------------------------------------------------------------------------- in a terminal


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["work.py"])
    return written(("matmul", PASSES))


COMMAND = (sys.executable, "-m", "tilekit", "trace", "view")


def until(seen: Callable[[], str], wanted: str) -> None:
    """Wait until something is seen."""
    end = time.monotonic() + 60
    while wanted not in seen():
        assert time.monotonic() < end, f"{wanted} is not in {seen()!r}"
        time.sleep(0.05)


def test_case_86_a_terminal_shows_it_and_its_keys_arrive(folder):
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    variables = environment(TERM="xterm", LANG="C.UTF-8")
    viewer = subprocess.Popen([*COMMAND, str(folder)], stdin=slave, stdout=slave, stderr=slave, env=variables)
    os.close(slave)
    output = bytearray()

    def seen() -> str:
        while select.select([master], [], [], 0)[0]:
            try:
                output.extend(os.read(master, 1 << 16))
            except OSError:  # it has ended
                break
        return output.decode("utf-8", "replace")

    try:
        until(seen, "fold#2")
        until(seen, "? help")
        output.clear()
        os.write(master, b"/mma_sync\r")
        until(seen, "mma_sync: in 2 steps, 01 lower to 02 fold#2")
        os.write(master, b"q")
        assert viewer.wait(60) == 0
    finally:
        viewer.kill()
        viewer.wait()
        os.close(master)


@pytest.mark.parametrize("term", ["dumb", "no_such_terminal", ""])
def test_case_86_a_terminal_that_can_only_print_lines_lists_the_steps(folder, term):
    master, slave = pty.openpty()
    variables = environment(TERM=term, LANG="C.UTF-8")
    done = subprocess.run(
        [*COMMAND, str(folder)], stdin=slave, stdout=slave, stderr=subprocess.PIPE, env=variables, timeout=60
    )
    os.close(slave)
    shown = os.read(master, 1 << 16).decode()
    os.close(master)
    assert (done.returncode, done.stderr) == (0, b"")
    assert "tile/fold#2" in shown and "\x1b[?1049h" not in shown


@pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux here")
def test_case_86_tmux_shows_the_list_the_diff_a_search_and_a_filter(folder, tmp_path):
    socket = str(tmp_path / "socket")

    def tmux(*arguments: str) -> str:
        command = ["tmux", "-S", socket, "-f", "/dev/null", *arguments]
        done = subprocess.run(command, env=environment(LANG="C.UTF-8", TERM="xterm"), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def screen() -> str:
        return tmux("capture-pane", "-p")

    tmux("new-session", "-d", "-x", "120", "-y", "24", *COMMAND, str(folder))
    try:
        until(screen, ">● 03 cut +1 -100")
        tmux("send-keys", "/")
        tmux("send-keys", "-l", "mma_sync")
        tmux("send-keys", "Enter")
        until(screen, ">● 01 lower +2 -2")
        assert "+mma_sync(1)" in screen()
        tmux("send-keys", "c")
        until(screen, "only what did something")
        assert "00 fold" not in screen()
        tmux("send-keys", "q")
    finally:
        subprocess.run(["tmux", "-S", socket, "kill-server"], capture_output=True)
