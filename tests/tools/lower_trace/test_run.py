# SPDX-License-Identifier: Apache-2.0
"""The files of traced runs: where they lie, what they hold, and what a compile feels of it where there can be none."""

import ctypes
import errno
import html
import json
import os
import random
import re
import resource
import shutil
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.kernels.test_softmax import SOFTMAX
from tests.tools.lower_trace.ears import Ear
from tests.tools.lower_trace.synthetic import Program, compile_with, pipeline
from tilekit import drivers, float32, spec, target
from tilekit.config import TraceMode
from tilekit.events import Stage, step
from tilekit.tools.lower_trace import journal, run, shelf
from tilekit.tools.lower_trace.journal import Status
from tilekit.tools.lower_trace.run import RunFolder
from tilekit.tools.lower_trace.settings import Settings
from tilekit.tools.lower_trace.shelf import RunInfo


@pytest.fixture
def warnings():
    return list[str]()


Opener = Callable[..., RunFolder]


@pytest.fixture
def opened(tmp_path: Path, warnings: list[str], monkeypatch: pytest.MonkeyPatch) -> Opener:
    """Opens runs of the script `work` in a folder of the test."""
    monkeypatch.setattr(sys, "argv", ["/home/me/work.py", "--fast"])
    # the viewer is built by a bundler, which need not have run
    monkeypatch.setattr("tilekit.tools.lower_trace.page._viewer", lambda name: f"the content of {name}")

    def open_it(
        mode: TraceMode = TraceMode.HTML, folder: Path = tmp_path, listeners=(), warn=warnings.append
    ) -> RunFolder:
        return run.open_run(Settings(mode, folder), listeners, warn)

    return open_it


@pytest.fixture(scope="module")
def softmax():
    handle = next(iter(SOFTMAX.values()))
    x = spec(float32, (64, 1024))
    return handle._jit_instance_for(64, 1024, x, x).transpiled_programs[0]


def do(sink, stage: Stage, name: str, before: object, after: object) -> None:
    with step(sink, stage, name, before) as underway:
        underway.made(after)


def kernel(opened: RunFolder, name: str = "kernel", text: str = "a") -> None:
    """A compile of one pass and its source."""
    sink = opened.recording.compile(name, script=name.title())
    program = Program(f"{text} after")
    do(sink, Stage.TILE, "fold", Program(text), program)
    do(sink, Stage.CODEGEN, "print_module", program, f"void {text}() {{}}\n")
    sink.done(None)


def tree(folder: Path) -> dict[str, str]:
    return {
        str(file.relative_to(folder)): file.read_text()
        for file in sorted(folder.rglob("*_*"))
        if file.is_file() and file.name.split("_")[0].isdecimal()
    }


# ------------------------------------------------------------------------------------------------------ what is written


def test_case_93_the_text_before_and_after_each_pass_lies_under_its_phase_and_number(opened):
    folder = opened()
    by_hand = folder.recording.compile("unscoped", phase="unscoped")
    do(by_hand, Stage.TILE, "Mine", Program("1"), Program("2"))
    for _ in range(2):
        sink = folder.recording.compile("kernel")
        a, b, c = Program("a"), Program("b"), Program("c")
        do(sink, Stage.TILE, "fold", a, b)
        do(sink, Stage.TILE, "keep", b, b)
        do(sink, Stage.LOWER, "generate_ir_module", b, c)
        do(sink, Stage.CODEGEN, "print_module", c, "source")
    assert tree(folder.path) == {
        "unscoped/00_Mine_before.tir": "1",
        "unscoped/00_Mine_after.tir": "2",
        **{
            name: text
            for prefix, first in (("", 1), ("run2_", 5))
            for name, text in {
                f"{prefix}tile/{first:02}_fold_before.tir": "a",
                f"{prefix}tile/{first:02}_fold_after.tir": "b",
                f"{prefix}tile/{first + 1:02}_keep_before.tir": "b",
                f"{prefix}tile/{first + 1:02}_keep_after.tir": "b",
                f"{prefix}lower/{first + 2:02}_generate_ir_module_before.tir": "b",
                f"{prefix}lower/{first + 2:02}_generate_ir_module_after.tir": "c",
                f"{prefix}codegen/{first + 3:02}_codegen_before.tir": "c",
                f"{prefix}codegen/{first + 3:02}_codegen_after.cpp": "source",
            }.items()
        },
    }


def test_every_text_lies_on_the_disk_once(opened):
    folder = opened()
    compile_with(folder.recording.compile("kernel"), pipeline(30, 100, random.randrange(10**6)))
    files = list(folder.path.rglob("*.tir"))
    distinct = {file.read_text() for file in files}
    assert len(files) == 60 and len({file.stat().st_ino for file in files}) == len(distinct) < 30
    texts = [*(folder.path.parent / shelf.TEXTS).iterdir()]
    assert {text.read_text() for text in texts} == distinct
    # a program that saves in place would change every other pass that has the text
    assert not any(text.stat().st_mode & 0o222 for text in texts)


def test_a_pass_that_changes_nothing_makes_two_names_of_its_text_and_no_more(opened, monkeypatch):
    folder = opened()
    sink, program = folder.recording.compile("kernel"), Program("a")
    do(sink, Stage.TILE, "first", program, program)
    called: list[str] = []

    def heard(name: str, real: Callable[..., object]) -> Callable[..., object]:
        return lambda *arguments, **named: called.append(name) or real(*arguments, **named)

    for name in ("link", "mkdir", "replace", "stat"):
        monkeypatch.setattr(os, name, heard(name, getattr(os, name)))
    do(sink, Stage.TILE, "keep", program, program)
    assert called == ["link", "link"]


def test_without_hard_links_each_file_has_a_text_of_its_own(opened, monkeypatch, warnings):
    def link(*_):
        raise OSError(errno.EMLINK, "Too many links")

    monkeypatch.setattr(os, "link", link)
    folder = opened()
    kernel(folder)
    assert sorted(tree(folder.path).values()) == sorted(["a", "a after", "a after", "void a() {}\n"])
    assert warnings == []


def test_the_run_says_where_it_comes_from(opened, monkeypatch):
    monkeypatch.setenv("RANK", "3")
    folder = opened(TraceMode.BOTH)
    head = journal.read(folder.path).head
    assert (head.script, head.argv, head.cwd) == ("work", ("/home/me/work.py", "--fast"), os.getcwd())
    assert (head.pid, head.rank, head.mode, head.schema) == (os.getpid(), 3, "both", 1)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", head.started)
    assert re.fullmatch(rf"run_\d{{8}}_\d{{6}}_\d{{6}}_{os.getpid()}", folder.path.name)
    assert folder.path.parent == folder.script_folder / ".run_records" and head.folder == str(folder.path)


def test_case_08_one_run_holds_every_kernel_and_the_next_one_has_a_folder_of_its_own(opened):
    first = opened()
    for name, text in (("a", "x"), ("b", "y"), ("a", "z")):
        kernel(first, name, text)
    first.recording.close()
    second = opened()
    kernel(second, "c")
    second.recording.close()
    told = journal.read(first.path)
    assert [(c.kernel, c.run, c.status) for c in told.compiles] == [(n, i, "done") for i, n in enumerate("aba", 1)]
    assert [{s.phase for s in c.steps} for c in told.compiles] == [
        {f"{prefix}tile", f"{prefix}codegen"} for prefix in ("", "run2_", "run3_")
    ]
    assert [c.kernel for c in journal.read(second.path).compiles] == ["c"]
    assert first.page is not None and second.page is not None and first.page != second.page
    listed = (first.script_folder / "index.html").read_text()
    assert [listed.index(each.path.name) for each in (second, first)] == sorted(
        listed.index(each.path.name) for each in (first, second)
    )
    assert (first.script_folder / "report.html").resolve() == second.page.resolve()


def test_many_runs_may_begin_in_one_microsecond(opened):
    names = [opened(TraceMode.TERMINAL).path for _ in range(20)]
    assert len(set(names)) == 20


def test_a_run_for_the_terminal_has_a_journal_and_texts_and_no_page(opened):
    folder = opened(TraceMode.TERMINAL)
    kernel(folder)
    folder.recording.close()
    assert folder.page is None and not (folder.script_folder / "report.html").is_symlink()
    assert len(tree(folder.path)) == 4 and journal.read(folder.path).ended
    assert "journal.jsonl" in (folder.script_folder / "index.html").read_text()


def test_the_page_holds_at_any_time_what_the_journal_holds(opened):
    folder = opened()
    sink = folder.recording.compile("kernel")
    for before, after in pipeline(10, 50, 1):
        do(sink, Stage.TILE, "fold", before, after)
        chunks = re.findall(r'data-tk="j">(.*?)</script>', folder.page.read_text(), re.S)
        lines = [entry for chunk in chunks for entry in json.loads(chunk)]
        assert lines == [json.loads(line) for line in (folder.path / journal.FILE).read_text().splitlines()]
    folder.recording.close()
    assert re.search(r'data-tk="z"', folder.page.read_text()) and 'data-tk="j"' not in folder.page.read_text()


def test_case_65_a_long_pipeline_takes_little_room(opened, monkeypatch):
    compared: list[int] = []
    between = journal.Difference.between

    def counted(before: journal.Text, after: journal.Text) -> journal.Difference:
        compared.append(len(after.lines))
        return between(before, after)

    monkeypatch.setattr(journal.Difference, "between", counted)
    steps = list(pipeline(200, 3000, random.randrange(10**6)))
    before = written_bytes()
    folder = opened()
    compile_with(folder.recording.compile("kernel"), iter(steps))
    folder.recording.close()
    dumps = sum(text.stat().st_size for text in (folder.path.parent / shelf.TEXTS).iterdir())
    assert (folder.path / journal.FILE).stat().st_size <= 2e6
    assert folder.page.stat().st_size <= 0.7e6  # beside the viewer
    assert dumps <= 25e6 and dumps == sum(len(str(p)) for p in {id(p): p for pair in steps for p in pair}.values())
    assert written_bytes() - before - dumps <= 3e6
    # nothing is printed twice, and nothing compared that did not change
    assert all(p.prints == 2 for pair in steps for p in pair)  # once here
    assert len(compared) == sum(a is not b for a, b in steps)


def written_bytes() -> int:
    (line,) = [line for line in Path("/proc/self/io").read_text().splitlines() if line.startswith("wchar")]
    return int(line.split()[1])


# --------------------------------------------------------------------------------------------------- names and places

HOSTILE = [
    "../../x</script><img onerror>",
    "..",
    ".",
    "",
    "/etc/passwd",
    "a b",
    "a_b",
    "a/b",
    "n" * 300,
    "n" * 301,
    "\x00\n",
    "\ud800",
    "-rf",
    "con é ∂",
]


def test_hostile_names_of_passes_and_phases_stay_in_the_folder_and_apart(opened, tmp_path, warnings):
    folder = opened()
    for name in HOSTILE:
        do(folder.recording.compile(name, phase=name or "x"), Stage.TILE, name, Program("before"), Program("after"))
    folder.recording.close()
    assert warnings == []
    files = [file for file in folder.path.rglob("*_before.*") if file.is_file()]
    assert len(files) == len(HOSTILE) and len({file.parent for file in files}) == len(HOSTILE)
    assert all(file.parent.parent == folder.path for file in files)
    assert [*tmp_path.iterdir()] == [folder.script_folder]
    assert [s.name for c in journal.read(folder.path).compiles for s in c.steps] == HOSTILE


@pytest.mark.parametrize("name", HOSTILE)
def test_a_file_name_is_one_part_of_a_path(name):
    made = run.file_name(name)
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.#-]{0,99}", made)
    assert run.file_name(made) == made


def test_no_two_names_make_one_file_name():
    assert len({run.file_name(name) for name in HOSTILE}) == len(HOSTILE)


def test_hostile_kernels_do_nothing_in_the_index(opened):
    folder = opened()
    kernel(folder, "</td><script>alert(1)</script>")
    folder.recording.close()
    listed = (folder.script_folder / "index.html").read_text()
    assert "<script" not in listed and html.escape("</td><script>alert(1)</script>") in listed
    assert "default-src 'none'" in listed


def test_case_63_where_there_are_no_links_a_small_page_leads_on(opened, monkeypatch, warnings):
    def symlink(*_):
        raise OSError(errno.EPERM, "Operation not permitted")

    with monkeypatch.context() as patch:
        patch.setattr(os, "symlink", symlink)
        folder = opened()
    page = folder.script_folder / "report.html"
    assert not page.is_symlink() and page.stat().st_size < 500
    (target_page,) = re.findall(r'url=([^"]+)"', page.read_text())
    assert (page.parent / target_page).resolve() == folder.page.resolve()
    assert folder.path.name in (folder.script_folder / "index.html").read_text()
    assert opened().page.resolve() == page.resolve() and page.is_symlink() and warnings == []


def test_a_folder_in_the_place_of_the_link_is_left_alone(opened, warnings):
    folder = opened()
    place = folder.script_folder / "report.html"
    place.unlink()
    (place / "mine").mkdir(parents=True)
    again = opened()
    kernel(again)
    again.recording.close()
    assert (place / "mine").is_dir() and again.page.stat().st_size
    assert len(warnings) == 1 and str(place) in warnings[0] and str(again.page) in warnings[0]


# ----------------------------------------------------------------------------------------- where nothing can be written


def unusable(tmp_path: Path) -> list[Path]:
    (tmp_path / "file").write_text("")
    return [Path("/proc/x"), tmp_path / "file" / "below", Path("/dev/null/x")]


def test_case_57_a_folder_that_cannot_be_made_costs_one_warning_and_nothing_else(opened, softmax, tmp_path, warnings):
    expected, _ = drivers.generate_source(softmax, target.DEFAULT)
    for place in unusable(tmp_path):
        warnings.clear()
        ear = Ear()
        folder = opened(folder=place, listeners=[ear])
        sink = folder.recording.compile("softmax")
        source, _ = drivers.generate_source(softmax, target.DEFAULT, [sink])
        sink.done(None)
        folder.recording.close()
        assert source.text == expected.text
        assert len(warnings) == 1 and str(place) in warnings[0] and re.search(r"\((ENOENT|ENOTDIR)\)", warnings[0])
        assert folder.path is None and folder.page is None
        # whoever prints goes on
        assert ear.events[-1].kind == "end" and ear.read().compiles[0].status is Status.DONE


def test_a_folder_that_no_file_system_can_have_costs_one_warning(opened, warnings):
    folder = opened(folder=Path("a\0b"))
    kernel(folder)
    assert folder.path is None and len(warnings) == 1 and "null byte" in warnings[0]


def test_a_folder_that_is_removed_in_the_middle_costs_one_warning_and_is_written_anew(opened, warnings):
    for removed in ("script_folder", "path"):
        warnings.clear()
        folder = opened()
        kernel(folder)
        shutil.rmtree(getattr(folder, removed))
        kernel(folder)
        folder.recording.close()
        assert warnings == [f"{folder.path} was deleted, so the trace is written there anew"]
        assert len(journal.read(folder.path).compiles) == 2 and journal.read(folder.path).ended


def test_a_journal_that_alone_is_removed_is_written_anew(opened, warnings):
    folder = opened()
    kernel(folder)
    folder.journal.unlink()
    kernel(folder)
    folder.recording.close()
    assert warnings == [f"{folder.path} was deleted, so the trace is written there anew"]
    assert len(journal.read(folder.path).compiles) == 2 and journal.read(folder.path).ended


def test_case_09_real_compiles_in_eight_threads_tell_what_one_thread_tells(opened, softmax):
    folder = opened()

    def compiles() -> None:
        sink = folder.recording.compile("softmax")
        drivers.generate_source(softmax, target.DEFAULT, [sink])
        sink.done(None)

    threads = [threading.Thread(target=compiles) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    folder.recording.close()
    told = journal.read(folder.path)
    found = {
        tuple(
            (s.seq, s.title, s.status, s.before and told.text(s.before), s.after and told.text(s.after))
            for s in c.steps
        )
        for c in told.compiles
    }
    assert len(told.compiles) == 8 and len(found) == 1


def in_child(work: Callable[[], None]) -> int:
    """Fork, and do this in the child; the exit code."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        os._exit(0)
    return child


def wait(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@dataclass
class Outcome:
    """How many passes were finished when the only warning came, and that warning."""

    finished: int
    warning: str


def compile_where(folder: Path, opened: Opener, before: Callable[[], None], after: Callable[[], None]) -> Outcome:
    """Trace a compile of 80 passes, in a process of its own that does `before` and `after`."""
    reader, writer = os.pipe()

    def work() -> None:
        before()
        told: list[str] = []
        finished = 0
        opening = opened(folder=folder, warn=told.append)
        sink = opening.recording.compile("kernel")
        for old, new in pipeline(80, 100, 7, share_changed=1):
            do(sink, Stage.TILE, "fold", old, new)
            finished += not told
        sink.done(None)
        opening.recording.close()
        after()
        os.write(writer, json.dumps([finished, *told]).encode())

    assert wait(in_child(work)) == 0
    finished, *told = json.loads(os.read(reader, 1 << 16))
    os.close(reader)
    os.close(writer)
    (warning,) = told
    return Outcome(finished, warning)


def nothing() -> None:
    pass


def quota(limit: int) -> Callable[[], None]:
    """No file may be larger than this."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def test_case_57_a_quota_of_nothing_costs_one_warning(opened, tmp_path):
    outcome = compile_where(tmp_path, opened, quota(0), nothing)
    assert outcome.finished == 0 and str(tmp_path) in outcome.warning and "(EFBIG)" in outcome.warning


def test_case_57_58_a_quota_that_is_used_up_leaves_what_was_written(opened, tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "codegen.cpp").write_text("somebody's")
    outcome = compile_where(tmp_path, opened, quota(40_000), nothing)
    assert str(tmp_path) in outcome.warning and "(EFBIG)" in outcome.warning
    assert_whole_until(outcome.finished, tmp_path)
    assert (tmp_path / "work" / "codegen.cpp").read_text() == "somebody's"


def assert_whole_until(finished: int, folder: Path) -> None:
    (path,) = (folder / "work" / ".run_records").glob("run_*")
    steps = journal.read(path).compiles[0].steps
    assert 5 < finished < 80 and [s.status.value for s in steps[:finished]] == ["done"] * finished
    assert len(steps) <= finished + 1


def mounted(place: Path, options: str, *, read_only: bool = False) -> Callable[[], None]:
    """A disk of its own at this place, in this process alone; it needs no privileges where namespaces have none."""
    new_namespace, new_user, ms_rdonly = 0x20000, 0x10000000, 1
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.getuid(), os.getgid()

    def mount() -> None:
        if libc.unshare(new_namespace | new_user):
            raise OSError(ctypes.get_errno(), "no namespaces here")
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
        flags = ms_rdonly if read_only else 0
        if libc.mount(b"tmpfs", bytes(place), b"tmpfs", flags, options.encode()):
            raise OSError(ctypes.get_errno(), "no disk can be mounted here")

    return mount


@pytest.fixture
def disk(tmp_path) -> Path:
    """Where a disk can be mounted."""
    place = tmp_path / "disk"
    place.mkdir()

    def work() -> None:
        try:
            mounted(place, "size=4k")()
        except OSError:
            os._exit(2)

    if wait(in_child(work)) == 2:
        pytest.skip("no namespaces here, in which a disk could be mounted")
    return place


def test_case_58_a_disk_that_is_full_in_the_middle_leaves_what_was_written(opened, disk, tmp_path):
    def prepare() -> None:
        mounted(disk, "size=256k")()
        (disk / "work").mkdir()
        (disk / "work" / "codegen.cpp").write_text("somebody's")

    def save() -> None:
        shutil.copytree(disk, tmp_path / "saved", symlinks=True)

    outcome = compile_where(disk, opened, prepare, save)
    assert str(disk) in outcome.warning and "(ENOSPC)" in outcome.warning
    assert_whole_until(outcome.finished, tmp_path / "saved")
    assert (tmp_path / "saved" / "work" / "codegen.cpp").read_text() == "somebody's"


def test_case_57_a_disk_that_is_read_only_costs_one_warning(opened, disk):
    outcome = compile_where(disk, opened, mounted(disk, "", read_only=True), nothing)
    assert outcome.finished == 0 and str(disk) in outcome.warning and "(EROFS)" in outcome.warning


# ---------------------------------------------------------------------------------------------------- ranks, many runs


def test_case_62_eight_ranks_share_one_index_and_their_texts(opened):
    def rank(number: int) -> Callable[[], None]:
        def work() -> None:
            os.environ["RANK"] = str(number)
            folder = opened()
            for turn in range(5):
                kernel(folder, "same", f"text {turn}")
            kernel(folder, "own", f"rank {number}")
            folder.recording.close()

        return work

    children = [in_child(rank(number)) for number in range(8)]
    assert [wait(child) for child in children] == [0] * 8
    folder = opened()
    runs = shelf.runs(folder.script_folder)
    assert sorted(info.head.rank for info in runs if info.path != folder.path) == list(range(8))
    listed = (folder.script_folder / "index.html").read_text()
    sections = re.split(r"<h2>", listed)[1:]
    assert [section.split("</h2>")[0] for section in sections] == ["no rank", *(f"rank {n}" for n in range(8))]
    for info in runs:
        (section,) = [s for s in sections if info.path.name in s]
        assert section.startswith("no rank" if info.head.rank is None else f"rank {info.head.rank}<")
    # 3 texts for each of the 5 kernels that all have, and for each of the 8 that only one has
    assert len([*(folder.script_folder / ".run_records" / shelf.TEXTS).iterdir()]) == 3 * (5 + 8)


def test_case_61_a_forked_process_opens_a_run_of_its_own(opened):
    folder = opened()
    kernel(folder, "before")
    here = os.stat(folder.path / journal.FILE)

    def work() -> None:
        kernel(folder, "of the parent")  # is told to nobody
        descriptors = [os.fstat(int(name)) for name in os.listdir("/proc/self/fd") if _is_open(int(name))]
        assert not any(os.path.samestat(each, here) for each in descriptors)
        own = opened()
        assert own.path != folder.path and own.path.name.endswith(f"_{os.getpid()}")
        kernel(own, "of the child")
        own.recording.close()

    assert wait(in_child(work)) == 0
    kernel(folder, "after")
    folder.recording.close()
    assert [c.kernel for c in journal.read(folder.path).compiles] == ["before", "after"]
    told = [journal.read(info.path) for info in shelf.runs(folder.script_folder) if info.path != folder.path]
    assert [[c.kernel for c in each.compiles] for each in told] == [["of the child"]]


def test_a_forked_process_closes_nothing_of_a_run_that_has_ended(opened, tmp_path):
    folder = opened()
    kernel(folder)
    folder.recording.close()
    # they have the numbers that the files of the run had
    descriptors = [os.open(tmp_path, os.O_RDONLY) for _ in range(20)]
    assert wait(in_child(lambda: os._exit(not all(map(_is_open, descriptors))))) == 0
    for descriptor in descriptors:
        os.close(descriptor)


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def names(infos: list[RunInfo]) -> list[str]:
    return [info.path.name for info in infos]


def ended(opened: Opener, count: int, size: int = 0) -> Path:
    """So many runs that have ended, each with a text of this many bytes that no other has; the folder of the script."""
    for number in range(count):
        folder = opened()
        kernel(folder, "kernel", f"{number} {os.getpid()} {random.random()}".ljust(size))
        folder.recording.close()
    return folder.script_folder


def test_case_69_the_oldest_runs_give_way_and_edits_stay(opened):
    home = ended(opened, 7)
    (home / "codegen.cpp").write_text("somebody's")
    (home / "kernel-12345678").mkdir()
    (home / "kernel-12345678" / "codegen.cpp").write_text("another's")
    infos = shelf.runs(home)
    assert len(infos) == 7 and shelf.expired(home) == []
    going_on = opened()
    expired = shelf.expired(home, keep_runs=3)
    # the one that goes on counts, and is never among them
    assert names(expired) == names(infos[2:])
    shelf.remove(expired)
    assert names(shelf.runs(home)) == [going_on.path.name, *names(infos[:2])]
    texts = {file.read_text() for info in infos[:2] for file in info.path.glob("*/*_*")}
    assert {file.read_text() for file in (home / ".run_records" / shelf.TEXTS).iterdir()} == texts
    assert (home / "codegen.cpp").read_text() == "somebody's"
    assert (home / "kernel-12345678" / "codegen.cpp").read_text() == "another's"


def test_case_69_so_many_bytes_are_kept(opened):
    home = ended(opened, 6, size=100_000)
    infos = shelf.runs(home)
    # before, after and source, and as much again in journal and page together
    sizes = [info.nbytes() for info in infos]
    assert all(300_000 < size < 1_500_000 for size in sizes)
    assert names(shelf.expired(home, keep_bytes=sum(sizes[:4]))) == names(infos[4:])
    assert shelf.expired(home, keep_bytes=sum(sizes)) == []


def test_case_69_a_run_that_ends_clears_away_what_is_too_old(opened):
    assert (shelf.KEEP_RUNS, shelf.KEEP_BYTES) == (50, 500_000_000)
    home = ended(opened, 1)
    (first,) = shelf.runs(home)
    for number in range(49):
        shutil.copytree(first.path, first.path.with_name(f"{first.path.name}{number}"))
    assert len(shelf.runs(home)) == 50 and shelf.expired(home) == []
    ended(opened, 1)
    assert len(shelf.runs(home)) == 50 and first.path not in (info.path for info in shelf.runs(home))
    listed = (home / "index.html").read_text()
    assert listed.count("<tr><td>") == 50


def test_runs_of_many_ranks_do_not_crowd_each_other_out(opened, monkeypatch):
    for rank in (0, 1, 2, 1, 0, 1):
        monkeypatch.setenv("RANK", str(rank))
        home = ended(opened, 1)
    assert [info.head.rank for info in shelf.expired(home, keep_runs=2)] == [1]
    assert sorted(info.head.rank for info in shelf.expired(home, keep_runs=1)) == [0, 1, 1]


def test_a_run_that_did_not_end_is_kept_for_a_day(opened, monkeypatch):
    def work() -> None:
        kernel(opened())
        os._exit(0)

    home = ended(opened, 1)
    assert wait(in_child(work)) == 0
    (died, _) = shelf.runs(home)
    # it may be one of another machine
    assert not died.is_running and shelf.expired(home, keep_runs=0) == shelf.runs(home)[1:]
    journal_file = died.path / journal.FILE
    journal_file.write_text(re.sub(r'"started":"\d{4}', '"started":"2020', journal_file.read_text()))
    assert {info.path for info in shelf.expired(home, keep_runs=0)} == {info.path for info in shelf.runs(home)}


def test_a_text_that_is_cleared_away_in_between_is_written_again(opened, warnings):
    folder = opened()
    kernel(folder, "kernel", "a")
    for text in (folder.path.parent / shelf.TEXTS).iterdir():
        text.unlink()
    kernel(folder, "kernel", "a")
    assert sorted(tree(folder.path).values()) == sorted(2 * ["a", "a after", "a after", "void a() {}\n"])
    assert warnings == []


def test_a_run_whose_process_died_is_told_from_one_that_goes_on(opened):
    def work() -> None:
        kernel(opened())
        os._exit(0)

    going_on = opened()
    assert wait(in_child(work)) == 0
    ended(opened, 1)
    states = {info.path.name: (info.is_running, info.ended) for info in shelf.runs(going_on.script_folder)}
    assert sorted(states.values()) == [(False, False), (False, True), (True, False)]
    assert states[going_on.path.name] == (True, False)
    listed = (going_on.script_folder / "index.html").read_text()
    assert [listed.count(f"<td>{state}</td>") for state in ("goes on", "ended", "did not end")] == [1, 1, 1]


def test_processes_that_clear_away_at_once_are_not_in_each_others_way(opened, tmp_path, monkeypatch):
    def work() -> None:
        told: list[str] = []
        for number in range(12):
            folder = opened(warn=told.append)
            for turn in range(5):
                kernel(folder, "kernel", f"text {number} {turn}")
            folder.recording.close()
            shelf.remove(shelf.expired(folder.script_folder, keep_runs=2))
        (tmp_path / f"told {os.getpid()}").write_text("\n".join(told))

    children = [in_child(work) for _ in range(6)]
    assert [wait(child) for child in children] == [0] * 6
    assert {file.read_text() for file in tmp_path.glob("told *")} == {""}
    home = ended(opened, 1)
    left = shelf.runs(home)
    assert 1 <= len(left) <= 20
    for info in left:
        told = journal.read(info.path)
        texts = [text for compile in told.compiles for s in compile.steps for text in (s.before, s.after)]
        assert sorted(tree(info.path).values()) == sorted(told.text(text) for text in texts)


def test_what_is_no_run_is_left_alone(opened):
    home = ended(opened, 1)
    for name, content in (("run_none", None), ("run_odd", "junk\n"), ("run_text", '{"k":"text"}\n')):
        (home / ".run_records" / name).mkdir()
        if content is not None:
            (home / ".run_records" / name / journal.FILE).write_text(content)
    assert len(shelf.runs(home)) == 1 and shelf.expired(home, keep_runs=1) == []
