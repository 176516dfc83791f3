# SPDX-License-Identifier: Apache-2.0
"""`tilekit trace …`: what it says, its JSON, and its exit codes."""

import base64
import json
import re
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from tests.jit import wrong_passes
from tests.test_main import main as process
from tests.tools.lower_trace import scripts
from tests.tools.lower_trace.test_queries import chain
from tilekit import textdiff
from tilekit.config import TraceMode
from tilekit.events import Stage, step
from tilekit.jit.bisected import Bisection, Judged, Outcome
from tilekit.toolchain import host
from tilekit.tools.lower_trace import cli, journal, run, shelf
from tilekit.tools.lower_trace.settings import Settings

GOLDEN = Path(__file__).parent / "golden" / "journal_1.jsonl"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["/home/me/work.py"])
    for name in ("TL_LOWER_TRACE_DIR", "TILEKIT_LOWER_TRACE_DIR"):
        monkeypatch.delenv(name, raising=False)


def traced(*compiles) -> Path:
    """The folder of a run of these compiles."""
    opened = run.open_run(Settings(TraceMode.TERMINAL, Path.cwd() / "tmp" / "lower_trace_dir"), [], pytest.fail)
    for kernel, passes in compiles:
        sink = opened.recording.compile(kernel)
        for name, before, after in passes:
            with step(sink, Stage.TILE, name, before) as underway:
                underway.made(after)
        sink.done(None)
    opened.recording.close()
    assert opened.path is not None
    return opened.path


def trace(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = cli.main([str(argument) for argument in arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


def data(capsys: pytest.CaptureFixture[str], *arguments: object):
    code, out, _ = trace(capsys, *arguments, "--json")
    said = json.loads(out)
    assert said.pop("schema") == 1
    return code, said


# ------------------------------------------------------------------------------------------------------------- diff


def test_case_90_a_diff_of_two_runs_says_where_they_part(capsys):
    a = traced(("k", chain("1", "2", "3", "4")))
    b = traced(("k", chain("1", "2", "3\nmore", "5")))
    code, said = data(capsys, "diff", a, b)
    assert code == 1
    (compile,) = said["compiles"]
    assert not said["same"]
    assert not compile["same"]
    assert compile["first_difference"] == "tile/b"
    assert compile["diff"] == ["@@ -1 +1,2 @@", " 3", "+more"]
    assert [(each["step"], each["a"], each["b"], each["same"]) for each in compile["steps"]] == [
        ("tile/a", 0, 0, True),
        ("tile/b", 1, 1, False),
        ("tile/c", 2, 2, False),
    ]
    assert set(said["a"]) == set(said["b"]) == {"script", "started", "pid", "rank", "version"}
    assert set(compile["a"]) == {"c", "kernel", "script", "specialization", "target", "device", "status"}


def test_case_90_equal_runs_are_the_same_and_exit_with_0(capsys):
    a, b = (traced(("k", chain("1", "2", "3"))) for _ in range(2))
    assert data(capsys, "diff", a, b)[0] == 0
    code, out, err = trace(capsys, "diff", a, b)
    assert (code, err) == (0, "")
    assert out.splitlines() == ["k · same", "  = tile/a", "  = tile/b"]


def test_case_90_what_cannot_be_told_exits_with_2(capsys):
    a = traced(("k", chain("1", "2")))
    for wrong in (
        ["diff", a, "nowhere"],
        ["diff", a],
        ["blame", "z", a],
        ["view", f"{a}:7"],
        ["find", "x", GOLDEN.parent],
    ):
        code, out, err = trace(capsys, *wrong)
        assert (code, out) == (2, ""), wrong
        assert "TK43" in err
    with pytest.raises(SystemExit) as ended:
        cli.main(["diff"])
    assert ended.value.code == 2


def test_case_90_a_damaged_journal_exits_with_2(capsys, tmp_path):
    (tmp_path / "journal.jsonl").write_text("{}\n")
    code, _, err = trace(capsys, "view", tmp_path)
    assert code == 2
    assert "TK430" in err


def test_case_90_an_old_journal_is_still_shown(capsys):
    code, out, _ = trace(capsys, "view", GOLDEN)
    assert code == 0
    assert "00 tile/fold" in out
    assert data(capsys, "diff", GOLDEN, GOLDEN)[0] == 0


def test_a_compile_that_only_one_run_has_is_a_difference(capsys):
    a = traced(("f", chain("1", "2")), ("g", chain("1", "2")))
    b = traced(("f", chain("1", "2")))
    code, out, _ = trace(capsys, "diff", a, b)
    assert code == 1
    assert out.splitlines()[-1] == "g · only in a"
    assert trace(capsys, "diff", a, b, "--kernel", "f")[0] == 0


def test_two_compiles_of_one_run_are_compared_whatever_they_are(capsys):
    a = traced(("f", chain("1", "2")), ("g", chain("1", "3")))
    code, said = data(capsys, "diff", f"{a}:0", f"{a}:1")
    assert code == 1
    assert said["compiles"][0]["first_difference"] == "tile/a"


def test_case_78_any_two_steps_are_compared_as_their_texts_are(capsys):
    texts = ["".join(f"line {i} of {n // 5}\n" for i in range(n)) for n in range(20)]
    a = traced(("k", chain(*texts, names=[f"p{i}" for i in range(19)])))
    code, said = data(capsys, "diff", a, "--step", 3, "--step", "p17")
    before, after = texts[4].split("\n"), texts[18].split("\n")
    assert code == 1
    assert said["diff"] == textdiff.unified(before, after)
    assert (said["added"], said["removed"]) == textdiff.counts(before, after)
    assert (said["a"]["index"], said["b"]["index"]) == (3, 17)
    assert trace(capsys, "diff", a, "--step", 3, "--step", 3)[0] == 0


def test_one_step_of_two_runs_is_compared(capsys):
    a, b = traced(("k", chain("1", "2", "3"))), traced(("k", chain("1", "2", "4")))
    assert trace(capsys, "diff", a, b, "--step", "a")[0] == 0
    code, out, _ = trace(capsys, "diff", a, b, "--step", "b")
    assert code == 1
    assert out.splitlines()[1:] == ["@@ -1 +1 @@", "-3", "+4"]


# -------------------------------------------------------------------------------------------------------- find, blame


def test_case_79_find_names_the_first_and_last_step_and_exits_with_1_if_there_is_none(capsys):
    a = traced(("k", chain("x", "x\nmma_sync", "y mma_sync", "z")))
    code, said = data(capsys, "find", "mma_sync", a)
    (compile,) = said["compiles"]
    assert code == 0
    assert (compile["first"]["name"], compile["last"]["name"], compile["gone"]["name"]) == ("a", "b", "c")
    assert compile["steps"] == [0, 1]
    assert compile["original"] is False
    code, out, _ = trace(capsys, "find", "mma_sync", a)
    assert [line.split()[0] for line in out.splitlines()] == ["k", "first", "last", "gone"]
    assert data(capsys, "find", "wgmma", a)[0] == trace(capsys, "find", "wgmma", a)[0] == 1


def test_case_79_blame_names_who_made_each_line(capsys):
    a = traced(("k", chain("one\ntwo", "one\n2", "one\n2\nthree")))
    code, said = data(capsys, "blame", "b", a)
    assert code == 0
    assert [(each["line"], each["text"], each["step"] and each["step"]["name"]) for each in said["lines"]] == [
        (1, "one", None),
        (2, "2", "a"),
        (3, "three", "b"),
    ]
    _, out, _ = trace(capsys, "blame", "b", a, "--line", 2)
    assert out == "00 a     2  2\n"
    assert trace(capsys, "blame", "b", a, "--line", 9)[0] == 2


# ------------------------------------------------------------------------------------------------------- where it looks


def test_the_newest_run_is_meant_where_none_is_named(capsys):
    traced(("old", chain("1", "2")))
    newest = traced(("new", chain("1", "2")))
    script = newest.parents[1]
    for where in ([], [script], [script.parent], [newest], [newest / journal.FILE]):
        _, said = data(capsys, "view", *where)
        assert [each["kernel"] for each in said["compiles"]] == ["new"]


def test_a_page_and_a_link_into_it_mean_its_journal(capsys):
    folder = traced(("k", chain("1", "2")))
    (folder / "report.html").write_text("a page")
    assert data(capsys, "view", folder / "report.html")[0] == 0
    assert data(capsys, "view", f"{folder}/report.html#p=0&l=1")[0] == 0


def test_a_place_without_runs_says_how_to_make_one(capsys, tmp_path):
    code, _, err = trace(capsys, "view")
    assert code == 2
    assert "TL_LOWER_TRACE=1" in err
    assert trace(capsys, "view", tmp_path)[0] == 2


def test_case_86_without_a_terminal_the_steps_are_listed(tmp_path):
    folder = traced(("matmul", chain("1", "2", "2\n3")))
    done = process("trace", "view", folder)
    assert (done.returncode, done.stderr) == (0, "")
    head, *steps = done.stdout.splitlines()
    assert head.startswith("matmul · 2 steps, 2 changed it")
    assert [line.rpartition("  ")[0] for line in steps] == ["00 tile/a  changed +1 -1", "01 tile/b  changed +1 -0"]


def test_a_reader_that_has_read_enough_is_no_error():
    folder = traced(("k", chain("\n" * 100_000, "x\n" * 100_000)))
    command = [sys.executable, "-m", "tilekit", "trace", "blame", "a", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as blame:
        assert blame.stdout is not None and blame.stderr is not None
        blame.stdout.readline()
        blame.stdout.close()
        assert blame.stderr.read() == ""
        assert blame.wait(60) == 0


# ----------------------------------------------------------------------------------------------------------- render


def test_a_page_is_rendered_from_its_journal_alone(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("tilekit.tools.lower_trace.page._viewer", lambda name: f"the content of {name}")
    folder = traced(("k", chain("1", "2")))
    with open(folder / journal.FILE, "a") as file:
        file.write('{"k":"torn')
    pages = []
    for name in ("one.html", "other.html"):
        code, out, _ = trace(capsys, "render", folder, "-o", tmp_path / name)
        assert (code, out) == (0, f"{tmp_path / name}\n")
        pages.append((tmp_path / name).read_bytes())
    assert pages[0] == pages[1]
    assert b"the content of report.js" in pages[0]
    trace(capsys, "render", folder)
    assert (folder / "report.html").read_bytes() == pages[0]


def test_several_runs_are_rendered_beside_each_other(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("tilekit.tools.lower_trace.page._viewer", lambda name: f"the content of {name}")
    a, b = traced(("k", chain("1", "2"))), traced(("k", chain("1", "3")))
    assert trace(capsys, "render", a, b)[0] == 2
    assert trace(capsys, "render", a, b, "-o", tmp_path / "both.html")[0] == 0
    page = (tmp_path / "both.html").read_text()
    packed = [base64.b64decode(each) for each in re.findall(r'data-tk="z">([^<]+)<', page)]
    journals = [zlib.decompress(each, -zlib.MAX_WBITS).decode() for each in packed]
    assert journals == [(folder / journal.FILE).read_text() for folder in (a, b)]


# --------------------------------------------------------------------------------------------------------------- gc


def test_case_69_gc_lists_what_would_go_and_removes_it_but_never_edits(capsys):
    folders = [traced(("k", chain("1", str(i)))) for i in range(5)]
    home = folders[0].parents[1]
    (home / "codegen.cpp").write_text("an edit")
    code, said = data(capsys, "gc", "--keep", 2, "--dry-run")
    assert code == 0
    assert {each["path"] for each in said["removed"]} == {str(folder) for folder in folders[:3]}
    assert said["bytes"] == sum(each["bytes"] for each in said["removed"]) > 0
    assert all(folder.exists() for folder in folders)
    code, out, _ = trace(capsys, "gc", "--keep", 2)
    assert out.splitlines()[-1].startswith("3 runs removed, ")
    assert [folder.exists() for folder in folders] == [False] * 3 + [True] * 2
    assert (home / "codegen.cpp").read_text() == "an edit"
    assert folders[0].name not in (home / shelf.INDEX).read_text()


def test_case_69_gc_keeps_no_more_than_so_many_bytes(capsys):
    folders = [traced(("k", chain("1", str(i)))) for i in range(3)]
    _, said = data(capsys, "gc", "--limit", 0, "--dry-run")
    assert len(said["removed"]) == 3
    assert data(capsys, "gc")[1]["removed"] == []
    assert all(folder.exists() for folder in folders)


def test_gc_of_nothing_is_nothing(capsys, tmp_path):
    assert data(capsys, "gc", tmp_path) == (0, {"dry_run": False, "removed": [], "bytes": 0})


# ------------------------------------------------------------------------------------------------------------ bisect

SCRIPT = """\
import contextlib
import sys
import numpy as np
import tilus
from tilus import float32, int32
from tilekit.transforms import after
from wrong_passes import {wrong}


class Sums(tilus.Script):
    def __call__(self, n: int32, x_ptr: ~float32, y_ptr: ~float32):
        self.attrs.blocks = [1]
        self.attrs.warps = 2
        x = self.global_view(x_ptr, dtype=float32, shape=[n, 64])
        y = self.global_view(y_ptr, dtype=float32, shape=[64])
        acc = self.register_tensor(dtype=float32, shape=[64], init=0.0)
        for i in range(n):
            acc = acc + self.load_global(x, offsets=[i, 0], shape=[64], dims=[1])
        self.store_global(y, acc, offsets=[0])


x, y = np.random.default_rng(0).standard_normal((5, 64), np.float32), np.zeros(64, np.float32)
with {passes}:
    Sums()(5, x, y)
    Sums()(5, x, y)
print("the script prints", sys.argv[1:])
"""

needs_compiler = pytest.mark.skipif(host.find_compiler() is None, reason="no C++ compiler here")


def bisected(tmp_path: Path, wrong: str, passes: str, *options: str):
    (tmp_path / "script.py").write_text(SCRIPT.format(wrong=wrong, passes=passes))
    shutil.copy(Path(wrong_passes.__file__), tmp_path / "wrong_passes.py")
    return process("trace", "bisect", *options, tmp_path / "script.py", "--size", "7")


@needs_compiler
def test_case_89_bisect_runs_a_script_and_names_the_wrong_pass(tmp_path):
    passes = 'tilus.passes(after("copy_elimination", ShortLoopPass()))'
    done = bisected(tmp_path, "ShortLoopPass", passes, "--json")
    assert done.returncode == 1, done.stderr
    (kernel,) = json.loads(done.stdout)["kernels"]
    assert (kernel["outcome"], kernel["culprit"]) == ("found", "short_loop")
    assert "the script prints ['--size', '7']" in done.stderr


@needs_compiler
def test_case_89_bisect_says_that_all_is_good(tmp_path):
    done = bisected(tmp_path, "ShortLoopPass", "contextlib.nullcontext()")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("all good")


@needs_compiler
def test_case_89_bisect_names_a_pass_that_stops_the_script(tmp_path):
    done = bisected(tmp_path, "RaisingPass", 'tilus.passes(after("copy_elimination", RaisingPass()))')
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("raising is the first step")


HANDLE_TOO = """
handle = Sums()
handle(5, x, y)
judged = handle.bisect(5, x, y)
print("handle", judged.to_json()["culprit"], judged.edits)
"""


@needs_compiler
@pytest.mark.parametrize(
    ("file", "old", "new"),
    [("codegen.cpp", "< n", "< n - 1"), ("ir/*_layout_inference.tir", "in range(n)", "in range(n - i32(1))")],
)
@pytest.mark.parametrize("traced", [{}, {"TL_LOWER_TRACE": "1"}], ids=["untraced", "traced"])
def test_bisect_judges_what_was_edited_as_the_handle_does_and_says_so(tmp_path, file, old, new, traced):
    script = tmp_path / "script.py"
    text = SCRIPT.format(wrong="ShortLoopPass", passes="contextlib.nullcontext()") + HANDLE_TOO
    script.write_text(text.replace("import tilus", "import tilekit as tilus").replace("from tilus", "from tilekit"))
    shutil.copy(Path(wrong_passes.__file__), tmp_path / "wrong_passes.py")

    def ran(*arguments, **variables):
        command = [sys.executable, *map(str, arguments), str(script)]
        environment = scripts.environment(**variables)
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)

    told = ran(TL_LOWER_TRACE="1").stdout
    assert told.splitlines()[-1] == "handle None ()"
    (edited,) = (tmp_path / "tmp" / "lower_trace_dir" / "script").glob(file)
    assert old in edited.read_text()
    edited.write_text(edited.read_text().replace(old, new))
    name = edited.name if file.endswith(".cpp") else edited.stem
    done = ran("-m", "tilekit", "trace", "bisect", **traced)
    assert done.returncode == 1, done.stderr
    assert f"edit of {name} is the first step that makes Sums wrong (with the edit of {name}, " in done.stdout
    assert f"handle edit of {name} ('{name}',)" in done.stdout
    assert f"PATCHED from {edited}" in done.stderr
    found = ran("-m", "tilekit", "trace", "bisect", "--json", **traced)
    assert json.loads(found.stdout)["kernels"][0]["edits"] == [name]


def test_bisect_of_a_script_without_kernels_says_so(capsys, tmp_path):
    (tmp_path / "empty.py").write_text("")
    code, _, err = trace(capsys, "bisect", tmp_path / "empty.py")
    assert code == 2
    assert "called no kernel" in err
    assert trace(capsys, "bisect", tmp_path / "nowhere.py")[0] == 2


CALLS = """\
import sys
import numpy as np
import tilus
from tilus import float32


class Twice(tilus.Script):
    def __call__(self, x_ptr: ~float32):
        self.attrs.blocks = [1]
        self.attrs.warps = 1
        g = self.global_view(x_ptr, dtype=float32, shape=[32])
        self.store_global(g, self.load_global(g, offsets=[0], shape=[32]) * 2.0, offsets=[0])


"""


@needs_compiler
@pytest.mark.parametrize(
    ("calls", "ends", "says"),
    [
        ("", "raise ValueError('no data')", "ValueError: no data\n"),
        ("", "sys.exit('no data')", "no data\n"),
        ("Twice()(np.ones(32, np.float32))\n", "assert 1 == 2", "AssertionError\n"),
        ("Twice()(np.ones(32, np.float32))\n", "sys.exit(3)", "script.py gave up by itself\n"),
        ("", "def f(:", "SyntaxError: invalid syntax\n"),
    ],
)
def test_bisect_of_a_script_that_fails_by_itself_shows_only_the_script(tmp_path, calls, ends, says):
    (tmp_path / "script.py").write_text(CALLS + calls + ends)
    done = process("trace", "bisect", tmp_path / "script.py")
    assert done.returncode == 2 and says in done.stderr
    assert "runpy" not in done.stderr and "cli.py" not in done.stderr


def test_numbers_that_make_no_sense_are_refused(capsys, tmp_path):
    for arguments in (["gc", "--keep", "-1"], ["gc", "--limit", "-1"], ["diff", "a", "b", "--context", "-1"]):
        with pytest.raises(SystemExit):
            trace(capsys, *arguments)
        assert "'-1' is no whole number" in capsys.readouterr().err
    code, _, err = trace(capsys, "gc", tmp_path / "nowhere")
    assert code == 2 and "there is no folder" in err


def test_a_pattern_that_no_kernel_matches_is_said(capsys):
    place = traced(("f", [("one", "a", "b")]))
    for arguments in (["view", place], ["diff", place, place], ["find", "b", place], ["blame", "0", place]):
        code, out, err = trace(capsys, *arguments, "--kernel", "g*")
        assert (code, out) == (2, "") and "no kernel is called g*" in err and "f" in err


def test_a_file_that_is_no_journal_is_not_called_a_damaged_one(capsys, tmp_path):
    (tmp_path / "my_script.py").write_text("import tilekit\n")
    code, _, err = trace(capsys, "view", tmp_path / "my_script.py")
    assert code == 2 and "is no journal" in err and "damaged" not in err


# -------------------------------------------------------------------------------------------------------- the page

PAGE = Path(__file__).parents[3] / "docs" / "trace.md"


def keys_in(value: object) -> set[str]:
    """Every key of a document."""
    if isinstance(value, list):
        return {key for each in value for key in keys_in(each)}
    if isinstance(value, dict):
        return {*value, *(key for each in value.values() for key in keys_in(each))}
    return set()


def test_case_90_every_key_of_the_json_stands_on_the_page(capsys):
    a, b = traced(("k", chain("1", "2", "3"))), traced(("k", chain("1", "2", "4")), ("l", chain("1", "2")))
    commands = (
        ["view", a],
        ["diff", a, b],
        ["diff", a, b, "--step", "a"],
        ["find", "2", a],
        ["blame", "b", a],
        ["gc", "--keep", 0, "--dry-run"],
    )
    told = {key for command in commands for key in keys_in(data(capsys, *command)[1])}
    bisection = Bisection("k", Outcome.FOUND, (Judged("tile", "a", True, "x"),), "x", "1", "2", "", 0.0)
    told |= {"kernels", *keys_in(bisection.to_json())}
    text = PAGE.read_text().partition("### As data")[2].partition("\n## ")[0]
    named = set(re.findall(r"`(\w+)`", text))
    assert told <= named
    assert named - told <= {"view", "diff", "find", "blame", "bisect", "gc", "index"}
