# SPDX-License-Identifier: Apache-2.0
"""What a process leaves that dies in the middle of a pass, of whatever, or at any other moment."""

import base64
import ctypes
import faulthandler
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Sequence
from io import RawIOBase
from pathlib import Path

import pytest

from tests.tools.lower_trace import scripts
from tests.tools.lower_trace.synthetic import Program, pipeline
from tilekit.config import TraceMode
from tilekit.events import Stage, step
from tilekit.tools.lower_trace import cli, journal, run, shelf
from tilekit.tools.lower_trace.journal import Status
from tilekit.tools.lower_trace.settings import Settings

Steps = Sequence[tuple[Program, Program]]


@pytest.fixture(autouse=True)
def script(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["work.py"])
    # the viewer is built by a bundler, which need not have run; this one takes several writes
    monkeypatch.setattr("tilekit.tools.lower_trace.page._viewer", lambda name: f"{name} " * 10_000)


def fork(folder: Path, steps: Steps, told: int, fatal: Callable[[int], None]) -> int:
    """A process that traces a compile; it writes a byte to `told` after each pass, and each pass may be fatal."""
    child = os.fork()
    if child:
        return child
    faulthandler.disable()
    try:
        opened = run.open_run(Settings(TraceMode.HTML, folder), [], print)
        sink = opened.recording.compile("kernel")
        os.write(told, b"+")
        for number, (before, after) in enumerate(steps):
            with step(sink, Stage.TILE, f"pass_{number}", before) as underway:
                fatal(number)
                underway.made(after)
            os.write(told, b"+")
        sink.done(None)
        opened.recording.close()
        os._exit(0)
    except BaseException:
        os._exit(3)


def trace_of(folder: Path, script: str = "work") -> Path:
    (path,) = (folder / script / shelf.RECORDS).glob("run_*")
    return path


# ---------------------------------------------------------------------------------------------------- in one pass


def killed():
    os.kill(os.getpid(), signal.SIGKILL)


def segmentation_fault():
    ctypes.string_at(0)


def exits():
    os._exit(9)


def out_of_memory():
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + (32 << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    eaten = []
    while True:
        eaten.append(bytearray(1 << 20))


@pytest.mark.parametrize("dies", [killed, segmentation_fault, exits, out_of_memory])
def test_case_52_a_pass_that_ends_the_process_leaves_its_name_and_what_it_was_given(tmp_path, dies):
    steps = list(pipeline(12, 200, random.randrange(10**6)))
    reader, writer = os.pipe()
    child = fork(tmp_path, steps, writer, lambda number: dies() if number == 7 else None)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(writer)
    os.close(reader)
    expected = {killed: -signal.SIGKILL, segmentation_fault: -signal.SIGSEGV, exits: 9, out_of_memory: 3}
    assert code == expected[dies]

    path = trace_of(tmp_path)
    told = journal.read(path)
    (compile,) = told.compiles
    assert not told.ended and compile.status is Status.UNFINISHED
    assert [s.name for s in compile.steps] == [f"pass_{number}" for number in range(8)]
    for s, (before, after) in zip(compile.steps[:7], steps, strict=False):
        assert s.status is Status.DONE and s.before is not None and s.after is not None
        assert (told.text(s.before), told.text(s.after)) == (before.text, after.text)
    culprit = compile.culprit
    assert culprit is compile.steps[7] and culprit.before is not None
    assert told.text(culprit.before) == steps[7][0].text
    if dies is out_of_memory and culprit.failure is not None:  # Python may have had enough left to tell
        assert culprit.status is Status.FAILED and culprit.failure.type == "MemoryError"
    else:
        assert culprit.status is Status.UNFINISHED and culprit.after is None

    # the same stands in the page, and on the disk
    assert page_of(path) == lines_of(path)
    assert (path / "tile" / "07_pass_7_before.tir").read_text() == steps[7][0].text
    assert not (path / "tile" / "07_pass_7_after.tir").exists()
    assert "did not end" in listed_anew(tmp_path)

    # and a page can be made of the journal alone
    assert cli.main(["render", str(path), "-o", str(tmp_path / "made.html")]) == 0
    (packed,) = re.findall(r'data-tk="z">(.*?)</script>', (tmp_path / "made.html").read_text())
    journal_in_it = zlib.decompress(base64.b64decode(packed), -zlib.MAX_WBITS).decode()
    assert [json.loads(line) for line in journal_in_it.splitlines()] == lines_of(path)


FAILS = """
from tilekit.transforms import after
from tilekit.transforms.base import Pass

class Dies(Pass):
    def process_program(self, prog, sink=None):
        raise RuntimeError("of itself")

with tilekit.passes(after("layout_inference", Dies())):
    compile(scaling(2.0))
"""


def test_case_54_a_script_whose_pass_raises_ends_as_it_does_untraced(tmp_path):
    (tmp_path / "fails.py").write_text(scripts.SCRIPT + FAILS)
    environment = scripts.environment(TL_LOWER_TRACE="html", TILEKIT_CACHE_DIR=str(tmp_path / "cache"))
    command = [sys.executable, "fails.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stdout == ""
    assert "RuntimeError: of itself" in done.stderr and "tools/lower_trace" not in done.stderr
    told = journal.read(trace_of(tmp_path / "tmp" / "lower_trace_dir", "fails"))
    culprit = told.compiles[0].culprit
    assert told.ended and culprit.name == "dies" and culprit.status is Status.FAILED
    assert not [s for s in told.compiles[0].steps if s.base_phase == "codegen"]


def lines_of(path: Path) -> list[object]:
    return [json.loads(line) for line in (path / journal.FILE).read_bytes().split(b"\n")[:-1]]


def page_of(path: Path) -> list[object]:
    """What the page holds of the journal; a browser ignores an element that is cut off."""
    text = (path / shelf.PAGE).read_text()
    assert text.startswith("<!doctype html>") and "</script>" in text
    return [line for chunk in re.findall(r'data-tk="j">(.*?)</script>\n', text, re.S) for line in json.loads(chunk)]


def listed_anew(folder: Path) -> str:
    shelf.write_index(folder / "work")
    return (folder / "work" / "index.html").read_text()


# ----------------------------------------------------------------------------------------------------- at any moment


def kill_at_random(folder: Path, steps: Steps) -> None:
    """Kill a process that traces these passes, at a random moment after a random pass, and look at what it left."""
    reader, writer = os.pipe()
    child = fork(folder, steps, writer, lambda number: None)
    os.close(writer)
    with open(reader, "rb", buffering=0) as told:
        # a byte for the beginning, and one for each pass
        finished = len(read_exactly(told, random.randrange(len(steps) + 2))) - 1
        time.sleep(random.uniform(0, 0.01))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        finished += len(told.read())
    for path in (folder / "work" / shelf.RECORDS).glob("run_*"):
        page = path / shelf.PAGE
        assert not page.exists() or page.read_text().startswith("<!doctype html>")
        if finished < 0:  # nothing was promised yet
            continue
        read = journal.read(path)
        done = [s for s in read.compiles[0].steps if s.status is Status.DONE]
        assert len(done) >= finished and [s.seq for s in done] == list(range(len(done)))
        for s, (before, after) in zip(done, steps, strict=False):
            assert s.before is not None and s.after is not None
            assert (read.text(s.before), read.text(s.after)) == (before.text, after.text)
        if 'data-tk="z"' not in page.read_text():  # not compact yet
            in_page = page_of(path)
            assert in_page == lines_of(path)[: len(in_page)]
            assert sum(entry["k"] == "pass_end" for entry in in_page) >= finished


def read_exactly(stream: RawIOBase, count: int) -> bytes:
    found = b""
    while len(found) < count:
        found += stream.read(count - len(found)) or b""
    return found


def trials(folder: Path, count: int) -> None:
    steps = list(pipeline(60, 2000, random.randrange(10**6)))
    for number in range(count):
        kill_at_random(folder / str(number), steps)


def test_case_53_a_process_that_is_killed_loses_no_pass_that_was_finished(tmp_path):
    trials(tmp_path, 12)


@pytest.mark.slow
def test_case_53_of_200_processes_killed_none_loses_a_finished_pass(tmp_path):
    trials(tmp_path, 200)
