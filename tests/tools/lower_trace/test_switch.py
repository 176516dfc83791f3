# SPDX-License-Identifier: Apache-2.0
"""The trace is switched on and off: from outside, in a call, for a block; and what is heard of while it is on."""

import pathlib
import re
import shutil
import subprocess
import sys
import threading
from typing import Any

import pytest

import tilekit
from tests.caches import new_cache
from tests.jit.wrong_passes import RaisingPass
from tests.promises.kernels import compiled, description, doubling, scaling
from tests.tools.lower_trace import scripts
from tilekit import config, drivers, option, transforms
from tilekit.config import TraceMode
from tilekit.diag import ConfigError, PassError
from tilekit.ir.prog import Program
from tilekit.jit import observer
from tilekit.toolchain import host
from tilekit.tools import lower_trace as lt
from tilekit.tools.lower_trace import journal, naming, session
from tilekit.transforms import after

ON = {"TL_LOWER_TRACE": "html"}


@pytest.fixture(autouse=True)
def untraced(tmp_path, monkeypatch):
    """A folder to work in, and nothing that traces, before and after."""
    for name in [name for name in scripts.os.environ if "LOWER_TRACE" in name]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    yield
    lt.disable()
    assert observer.tracing() == 0


def run_folders(folder: pathlib.Path = pathlib.Path("tmp/lower_trace_dir")) -> list[pathlib.Path]:
    """The folders of the runs, the oldest first."""
    found = [path.parent for path in folder.glob("*/.run_records/run_*/journal.jsonl")]
    return sorted(found, key=lambda path: path.name)


def contents(folder: pathlib.Path) -> dict[pathlib.Path, bytes]:
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def program_of(handle: Any) -> Program:
    return handle._jit_instance_for(*description()).transpiled_programs[0]


# ------------------------------------------------------------------------------------------------------------ modes


@pytest.mark.parametrize(
    ("word", "prints", "has_page"),
    [("off", False, False), (" HTML ", False, True), ("terminal", True, False), ("both", True, True)],
)
def test_case_01_a_word_in_the_environment_switches_it_on(word, prints, has_page, tmp_path):
    done = scripts.run(tmp_path, "compile(scaling(2.0))", TL_LOWER_TRACE=word)
    assert ("tile/layout_inference" in done.stderr) is prints
    page = tmp_path / "tmp" / "lower_trace_dir" / "my_script" / "report.html"
    assert page.exists() is has_page
    assert len(run_folders()) == (prints or has_page)


def test_case_01_an_unknown_word_is_one_warning(tmp_path):
    done = scripts.run(tmp_path, "compile(scaling(2.0))", TL_LOWER_TRACE="htlm")
    (warning,) = [line for line in done.stderr.splitlines() if "TL_LOWER_TRACE" in line]
    assert "did you mean html?" in warning and "terminal" in warning and "both" in warning
    assert done.stderr.count("Warning") == 1
    assert not (tmp_path / "tmp").exists()


def test_case_02_off_is_free(tmp_path):
    body = """
        for factor in range(20):
            compile(scaling(float(factor)))
        print([name for name in sys.modules if name.startswith("tilekit.tools")])
        """
    done = scripts.run(tmp_path, body)
    assert (done.stdout, done.stderr) == ("[]\n", "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["my_script.py"]


def test_case_02_off_costs_no_sink():
    compiled(handle := scaling())
    assert observer.tracing() == 0
    with observer.listening(handle.kernels[0].identity, cached=False) as sinks:
        assert sinks == ()


# ------------------------------------------------------------------------------------------------------------- blocks


def test_case_03_a_block_traces_what_is_compiled_in_it(tmp_path):
    with tilekit.tracing(mode="html", dir=tmp_path / "traces") as t:
        compiled(scaling(2.0))
        compiled(scaling(3.0))
    compiled(scaling(4.0))
    assert [(compile.kernel, compile.status) for compile in t.compiles] == [("scale", "done")] * 2
    assert t.report is not None and t.report.read_text().startswith("<!doctype html>")
    assert t.folder is not None and len(journal.read(t.folder).compiles) == 2


def test_case_03_the_outer_block_goes_on_after_an_inner_one(tmp_path):
    with tilekit.tracing("terminal", tmp_path / "outer") as outer:
        compiled(scaling(2.0))
        with tilekit.tracing("terminal", tmp_path / "inner") as inner:
            compiled(scaling(3.0))
        with tilekit.tracing(mode=None) as silent:
            compiled(scaling(4.0))
        compiled(scaling(5.0))
    assert [len(each.compiles) for each in (outer, inner, silent)] == [2, 1, 0]


def test_case_03_an_error_in_a_block_leaves_the_trace_as_it_was(tmp_path):
    lt.enable("terminal", tmp_path / "enabled")
    before = session.active()
    with pytest.raises(ZeroDivisionError), tilekit.tracing("html", tmp_path / "block"):
        assert session.active() is not before
        _ = 1 / 0
    assert session.active() is before


def test_a_mode_that_is_none_is_an_error():
    with pytest.raises(ConfigError, match="did you mean terminal"), tilekit.tracing("termnal"):
        raise AssertionError("the block is never entered")


# ---------------------------------------------------------------------------------------------------------- warm caches


def test_case_10_a_kernel_in_memory_is_traced_once(tmp_path):
    handle = scaling()
    before = compiled(handle)
    entry = contents(before.compiled.entry.folder)
    with tilekit.tracing("terminal", tmp_path) as t:
        during = compiled(handle)
        assert compiled(handle) is during
    (compile,) = t.compiles
    assert compile.from_cache and [step.name for step in compile.steps if step.name == "layout_inference"]
    assert contents(before.compiled.entry.folder) == entry
    handle.compile(*description(), device="cpu")
    assert handle.last is before


def test_case_10_a_call_that_found_its_kernel_is_traced(tmp_path):
    torch = pytest.importorskip("torch")
    handle, x, y = scaling(3.0), torch.ones(128), torch.zeros(128)
    for _ in range(3):  # the second one goes the short way
        handle(128, x, y)
    with tilekit.tracing("terminal", tmp_path) as t:
        handle(128, x, y)
        handle(128, x, y)
    assert len(t.compiles) == 1
    assert torch.equal(y, 3 * x)


def test_case_10_a_kernel_on_the_disk_is_traced(tmp_path):
    compiled(scaling())
    with tilekit.tracing("terminal", tmp_path) as t:
        compiled(scaling())
    assert [compile.from_cache for compile in t.compiles] == [True]


def test_case_10_what_is_skipped_is_told_in_one_line(tmp_path, capfd):
    handle = scaling()
    compiled(handle)
    with tilekit.tracing("both", tmp_path, cached="skip") as t:
        compiled(handle)
        compiled(handle)
    (line,) = capfd.readouterr().err.splitlines()
    assert "cached, not traced" in line and "Scale" in line
    assert t.compiles == [] and run_folders(tmp_path) == []


@pytest.mark.parametrize(
    ("file", "old", "new"), [("codegen.cpp", "2.0f", "7.0f"), ("ir/*_layout*.tir", "2.0)", "7.0)")]
)
def test_what_is_skipped_is_compiled_as_it_was_edited_and_the_line_says_so(file, old, new, tmp_path, capfd):
    handle = scaling()
    with tilekit.tracing("html", tmp_path) as t:
        compiled(handle)
    (edited,) = t.report.parent.glob(file)
    edited.write_text(edited.read_text().replace(old, new))
    capfd.readouterr()
    with tilekit.tracing("html", tmp_path, cached="skip") as t:
        kernel = compiled(handle)
    first, second, *_ = capfd.readouterr().err.splitlines()
    assert "Scale" in first and first.endswith("cached, not traced, but compiled as it was edited")
    assert second == f"tilekit: PATCHED from {edited}"
    assert kernel.patched and "7.0f" in kernel.source and t.compiles == []


def test_who_asks_where_a_kernel_is_edited_begins_no_run(tmp_path):
    kernel = observer.Identity("Scale", "n", "sm_80", "cpu")
    with tilekit.tracing("html", tmp_path) as t:
        asked = t.edit_folder(kernel)
    assert run_folders(tmp_path) == []
    assert asked.path.parent == tmp_path


def test_case_10_a_kernel_for_the_evaluator_is_traced_up_to_its_source(tmp_path, monkeypatch):
    monkeypatch.setattr(host, "find_compiler", lambda: None)
    with tilekit.tracing("terminal", tmp_path) as t:
        kernel = compiled(scaling())
    assert kernel.compiled is None
    (compile,) = t.compiles
    assert compile.status == "done" and compile.steps[-1].name == "print_module"


def test_the_candidates_of_a_tuning_are_not_traced_and_the_best_one_is(tmp_path, capfd):
    torch = pytest.importorskip("torch")
    option.cache_dir(new_cache(tmp_path / "cache"))
    handle, x, y = doubling(), torch.ones(256), torch.zeros(256)
    capfd.readouterr()
    try:
        with tilekit.tracing("terminal", tmp_path / "traces") as t:
            best = handle.tune(256, x, y).best
            assert t.compiles == []
            (line,) = capfd.readouterr().err.splitlines()
            assert line == "tilekit: Double: candidates of a tuning are not traced, but the one that is chosen is"
            handle(256, x, y)
    finally:
        config.clear_session_defaults()
    (compile,) = t.compiles
    assert f"block={best.schedule['block']}" in compile.specialization


# ------------------------------------------------------------------------------------------------------------- filters


def test_case_11_other_kernels_cost_nothing(tmp_path):
    handle = scaling()
    kernel = compiled(handle)
    with tilekit.tracing("both", tmp_path, filter="matmul*") as t:
        assert compiled(handle) is kernel
        compiled(scaling(7.0))
    assert t.compiles == [] and list(tmp_path.iterdir()) == []


def test_case_11_the_kernels_of_a_filter_are_traced(tmp_path):
    body = """
        compile(scaling(2.0, "MatmulV2"))
        compile(scaling(3.0, "Softmax"))
        compile(scaling(4.0, "Matmul"))
        """
    scripts.run(tmp_path, body, TL_LOWER_TRACE="terminal", TL_LOWER_TRACE_FILTER="matmul*,pass:layout*")
    (folder,) = run_folders()
    read = journal.read(folder)
    assert [compile.script for compile in read.compiles] == ["MatmulV2", "Matmul"]
    assert [step.name for compile in read.compiles for step in compile.steps] == ["layout_inference"] * 2


# ------------------------------------------------------------------------------------------------------------- channels


def test_case_12_nothing_is_on_stdout_and_a_pipe_has_no_colors(tmp_path):
    done = scripts.run(tmp_path, "compile(scaling(2.0))", TL_LOWER_TRACE="both", NO_COLOR="1")
    assert done.stdout == ""
    assert "\x1b" not in done.stderr and "@@" in done.stderr


def test_case_12_a_page_costs_two_lines_for_each_compile(tmp_path):
    for _ in range(2):  # also where the kernel is in the cache
        done = scripts.run(tmp_path, "compile(scaling(2.0)), compile(scaling(3.0, 'Other'))", **ON)
        first, path, *second = done.stderr.splitlines()
        assert first.startswith("tilekit: Scale-") and "changed it" in first
        assert path.startswith("tilekit: tmp/lower_trace_dir/my_script/report.html")
        assert len(second) == 2


# ----------------------------------------------------------------------------------------------- enable, reset, disable


def test_case_92_enabling_twice_is_enabling_once(tmp_path):
    lt.enable("terminal", tmp_path)
    first = session.active()
    lt.enable("terminal", tmp_path)
    assert session.active() is first
    compiled(scaling())
    assert len(run_folders(tmp_path)) == 1


def test_case_92_what_is_not_given_is_as_the_environment_says(tmp_path, monkeypatch):
    monkeypatch.setenv("TL_LOWER_TRACE", "terminal")
    monkeypatch.setenv("TL_LOWER_TRACE_DIR", str(tmp_path / "there"))
    lt.enable()
    active = session.active()
    assert active is not None
    assert (active.settings.mode, active.settings.folder) == (TraceMode.TERMINAL, tmp_path / "there")
    lt.enable(mode="html")
    assert session.active().settings.mode is TraceMode.HTML


def test_case_92_no_mode_disables(tmp_path):
    lt.enable("terminal", tmp_path)
    lt.enable(mode=None)
    assert session.active() is None


def test_case_92_the_source_is_kept_where_one_says(tmp_path):
    lt.enable("terminal", tmp_path / "traces", codegen_output=tmp_path / "here" / "kernel.cpp")
    kernel = compiled(scaling())
    names = ["kernel.cpp", "kernel.cpp.latest", "kernel.cpp.original"]
    assert [path.name for path in sorted((tmp_path / "here").glob("kernel.cpp*"))] == names
    assert (tmp_path / "here" / "kernel.cpp").read_text() == kernel.source


@pytest.mark.parametrize(("mode", "keeps"), [("html", True), ("terminal", False)])
def test_case_92_the_source_lies_beside_the_page(mode, keeps, tmp_path):
    lt.enable(mode, tmp_path)
    compiled(scaling())
    assert (session.active().folder.parents[1] / "codegen.cpp").exists() is keeps


def test_case_92_the_source_is_not_kept_where_nobody_wants_it(tmp_path):
    lt.enable("html", tmp_path, codegen_output=None)
    compiled(scaling())
    assert list(tmp_path.glob("*/codegen.cpp*")) == []


def test_case_92_a_reset_begins_another_run(tmp_path):
    lt.enable("html", tmp_path)
    handle = scaling()
    compiled(handle)
    first = session.active().folder
    lt.reset()
    assert session.active().compiles == []
    compiled(handle)  # also of a kernel that was traced before
    assert [len(journal.read(folder).compiles) for folder in run_folders(tmp_path)] == [1, 1]
    assert session.active().folder != first
    assert (first.parents[1] / "report.html").resolve().parent == session.active().folder.resolve()


def test_case_92_nothing_is_traced_after_disabling(tmp_path):
    lt.enable("terminal", tmp_path)
    compiled(scaling(2.0))
    lt.disable()
    compiled(scaling(3.0))
    (folder,) = run_folders(tmp_path)
    assert len(journal.read(folder).compiles) == 1


def test_case_92_the_page_is_made_at_exit(tmp_path):
    body = "from tilekit.tools import lower_trace as lt; lt.enable(mode='html'); compile(scaling(2.0))"
    scripts.run(tmp_path, body)
    (folder,) = run_folders()
    assert journal.read(folder).ended
    assert 'data-tk="z"' in (folder / "report.html").read_text()


def test_case_92_a_variable_that_is_set_after_the_import_does_nothing(tmp_path):
    body = "import os; os.environ['TL_LOWER_TRACE'] = 'html'; compile(scaling(2.0))"
    assert scripts.run(tmp_path, body).stderr == ""
    assert not (tmp_path / "tmp").exists()


def test_a_compile_keeps_the_trace_that_it_began_with(tmp_path, monkeypatch):
    build = drivers.build_program

    def disabling(*args, **kwargs):
        lt.disable()
        return build(*args, **kwargs)

    lt.enable("terminal", tmp_path)
    ended = session.active()
    monkeypatch.setattr(drivers, "build_program", disabling)
    compiled(scaling(9.0))
    (compile,) = journal.read(ended.folder).compiles
    assert compile.status == "done" and compile.steps[-1].name != "verify"
    assert journal.read(ended.folder).ended


# -------------------------------------------------------------------------------------------------------------- by hand


def test_case_93_a_pass_that_is_called_by_hand_is_unscoped(tmp_path):
    program = program_of(scaling())
    with tilekit.tracing("terminal", tmp_path) as t:
        transforms.analyze_scalar_pass()(program)
        compiled(scaling())
        transforms.declare_to_let_pass()(program)
    read = journal.read(t.folder)
    assert [(each.run, each.kernel) for each in read.compiles] == [(0, "unscoped"), (1, "scale")]
    assert [step.name for step in read.compiles[0].steps] == ["analyze_scalar", "declare_to_let"]
    assert {step.phase for step in read.compiles[0].steps} == {"unscoped"}
    assert [compile.kernel for compile in t.compiles] == ["scale"]
    assert (t.folder / "unscoped" / "00_analyze_scalar_after.tir").read_text() == str(
        transforms.analyze_scalar_pass()(program)
    )


def test_passes_by_hand_are_heard_of_in_every_thread(tmp_path):
    program = program_of(scaling())
    with tilekit.tracing("terminal", tmp_path) as t:
        threads = [threading.Thread(target=transforms.analyze_scalar_pass(), args=(program,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    read = journal.read(t.folder)
    assert [[step.name for step in each.steps] for each in read.compiles] == [["analyze_scalar"]] * 4


def test_passes_by_hand_cost_nothing_while_nobody_traces():
    from tilekit.events import BY_HAND

    assert BY_HAND.sinks == ()


# ------------------------------------------------------------------------------------------------------ another tool


def test_case_100_tilelang_keeps_its_own_files(tmp_path):
    (tmp_path / "tilelang.py").write_text(TILELANG)
    body = """
        import tilelang
        tilelang.compile()
        compile(scaling(2.0))
        tilelang.compile()
        """
    scripts.run(tmp_path, body, TL_LOWER_TRACE="1")
    home = tmp_path / "tmp" / "lower_trace_dir"
    assert sorted(path.name for path in home.iterdir()) == ["my_script", "my_script.tilekit"]
    assert sorted(path.name for path in (home / "my_script").iterdir()) == [
        ".run_records",
        "codegen.cpp",
        "report.html",
    ]
    assert (home / "my_script" / "report.html").read_text() == "TileLang's page of 2 kernels"
    (ours,) = run_folders()
    assert ours.parents[1].name == "my_script.tilekit" and journal.read(ours).ended
    scripts.run(tmp_path, "compile(scaling(2.0))", TL_LOWER_TRACE="1")  # and in a process without TileLang
    assert (home / "my_script" / "report.html").read_text() == "TileLang's page of 2 kernels"
    assert len(run_folders()) == 2


def test_case_100_our_variable_wins(tmp_path):
    (tmp_path / "tilelang.py").write_text(TILELANG)
    body = "import tilelang; tilelang.compile(); compile(scaling(2.0))"
    scripts.run(tmp_path, body, TL_LOWER_TRACE="1", TILEKIT_LOWER_TRACE="off")
    assert sorted(path.name for path in (tmp_path / "tmp" / "lower_trace_dir").iterdir()) == ["my_script"]


TILELANG = """\
import pathlib, sys

home = pathlib.Path("tmp/lower_trace_dir/my_script")
kernels = 0


def compile():
    global kernels
    kernels += 1
    run = home / ".run_records" / "run_20260101_000000_000000_1"
    run.mkdir(parents=True, exist_ok=True)
    (run / "report.html").write_text(f"TileLang's page of {kernels} kernels")
    (home / "codegen.cpp").write_text("TileLang's source")
    if not (home / "report.html").is_symlink():
        (home / "report.html").symlink_to(".run_records/run_20260101_000000_000000_1/report.html")
"""


def test_a_fork_begins_a_run_of_its_own(tmp_path):
    body = """
        import os
        compile(scaling(2.0))
        child = os.fork()
        if child == 0:
            compile(scaling(3.0))
            sys.exit()
        os.waitpid(child, 0)
        compile(scaling(4.0))
        """
    scripts.run(tmp_path, body, TL_LOWER_TRACE="terminal")
    assert sorted(len(journal.read(folder).compiles) for folder in run_folders()) == [1, 2]


@pytest.mark.parametrize("mode", ["html", "terminal", "both"])
@pytest.mark.parametrize("place", ["/proc/x", "file/below", "x" * 300])
def test_case_57_a_folder_that_cannot_be_written_is_one_line_and_the_rest_is_as_ever(mode, place, tmp_path, capfd):
    (tmp_path / "file").write_text("")
    expected = compiled(scaling(2.0)).source
    capfd.readouterr()
    with tilekit.tracing(mode, place) as t:
        assert compiled(scaling(2.0)).source == expected
        compiled(scaling(3.0))
    told = capfd.readouterr()
    (warning,) = [line for line in told.err.splitlines() if re.search(r"\(E[A-Z]+\)", line)]
    assert warning.startswith("tilekit: the trace is not written: ") and str(pathlib.Path(place).absolute()) in warning
    assert told.out == "" and ("\n@@ " in told.err) is (mode != "html")
    assert told.err.count(str(place)) == 1, "no place is named where nothing is"
    assert [compile.status for compile in t.compiles] == ["done", "done"]


class DeletingPass(transforms.Pass):
    """Deletes a folder while a kernel compiles."""

    def __init__(self, folder):
        self.folder = folder

    def process_function(self, func):
        shutil.rmtree(self.folder)
        return func


def lines_of(folder):
    return sorted((folder / "journal.jsonl").read_text().splitlines())


def test_a_trace_that_is_deleted_is_written_anew_with_all_that_it_had_said(tmp_path, capfd):
    with tilekit.tracing("html", tmp_path / "traces") as t:
        compiled(scaling(2.0))
        with pytest.raises(PassError), tilekit.passes(after("let_propagation", RaisingPass())):
            compiled(scaling(3.0))
        before = lines_of(t.folder)
        names = {path.relative_to(t.folder) for path in t.folder.rglob("*.tir")}
        shutil.rmtree(tmp_path / "traces")
        capfd.readouterr()
        compiled(scaling(4.0))
        told = [line for line in capfd.readouterr().err.splitlines() if "anew" in line]
        assert told == [f"tilekit: {t.folder} was deleted, so the trace is written there anew"]
        assert set(before) < set(lines_of(t.folder))
        assert names < {path.relative_to(t.folder) for path in t.folder.rglob("*.tir")}
        assert 'data-tk="j"' in t.report.read_text()
        assert list(t.report.parent.rglob("codegen.cpp"))
    read = journal.read(t.folder)
    assert read.ended and [compile.status for compile in read.compiles] == ["done", "failed", "done"]
    assert 'data-tk="z"' in t.report.read_text() and (t.report.parent / "index.html").exists()


def test_a_trace_that_is_deleted_in_the_middle_of_a_compile_is_whole(tmp_path, capfd):
    with tilekit.tracing("html", tmp_path / "traces") as t:
        with tilekit.passes(after("let_propagation", DeletingPass(tmp_path / "traces"))):
            compiled(scaling(2.0))
        compiled(scaling(3.0))
    assert capfd.readouterr().err.count("anew") == 1
    first, second = journal.read(t.folder).compiles
    assert [step.status for step in first.steps] == ["done"] * len(first.steps)
    names = [[step.name for step in each.steps if step.base_phase in ("tile", "lower")] for each in (first, second)]
    assert [name for name in names[0] if name != "deleting"] == names[1]


def test_a_list_of_runs_that_cannot_be_written_is_one_line_and_the_trace_goes_on(tmp_path, capfd):
    (index := tmp_path / naming.script_name() / "index.html").mkdir(parents=True)
    with tilekit.tracing("html", tmp_path) as t:
        compiled(scaling(2.0))
    told = [line for line in capfd.readouterr().err.splitlines() if "index.html" in line]
    assert told == [f"tilekit: {index} is a folder, so there is no list of the runs"]
    assert journal.read(t.folder).ended and 'data-tk="z"' in t.report.read_text()


def test_a_file_in_place_of_the_folder_of_the_passes_is_one_line(tmp_path, capfd):
    (file := tmp_path / naming.script_name() / "ir").parent.mkdir()
    file.write_text("mine")
    with tilekit.tracing("html", tmp_path) as t:
        kernel = compiled(scaling(2.0))
    (told,) = [line for line in capfd.readouterr().err.splitlines() if str(file) in line]
    assert told.startswith("tilekit: CANNOT-UPDATE ") and told.endswith(f".tir: {file} is no folder")
    assert kernel.source == (file.parent / "codegen.cpp").read_text()
    assert journal.read(t.folder).ended and file.read_text() == "mine"


def test_case_57_a_working_directory_that_was_deleted_keeps_no_script_from_running(tmp_path):
    (tmp_path / "gone").mkdir()
    body = "compile(scaling(2.0))\nprint('done')\n"
    (tmp_path / "my_script.py").write_text(scripts.SCRIPT + body)
    shell = f"cd gone; rmdir ../gone; exec {sys.executable} {tmp_path}/my_script.py"
    variables = scripts.environment(TL_LOWER_TRACE="1", TMPDIR=str(tmp_path))
    done = subprocess.run(["sh", "-c", shell], cwd=tmp_path, env=variables, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert f"{tmp_path}/tmp/lower_trace_dir/my_script/report.html" in done.stderr
    assert (tmp_path / "tmp/lower_trace_dir/my_script/report.html").exists()


@pytest.mark.parametrize("folder", ["~nobody_of_this_name/traces", "a b;$x'\"", "ü日本"])
def test_a_folder_may_have_any_name(tmp_path, folder):
    scripts.run(tmp_path, "compile(scaling(2.0))", TL_LOWER_TRACE="1", TL_LOWER_TRACE_DIR=folder)
    assert (tmp_path / folder / "my_script" / "report.html").exists()


def test_scripts_in_every_writing_have_folders_of_their_own(tmp_path):
    for name in ("矩阵", "乘法"):
        scripts.run(tmp_path, "compile(scaling(2.0))", name=name, TL_LOWER_TRACE="1", TL_LOWER_TRACE_DIR="traces")
    assert sorted(path.name for path in (tmp_path / "traces").iterdir()) == sorted(["矩阵", "乘法"])


# ---------------------------------------------------------------------------------------------------------------- dumps


def test_case_98_the_dump_of_a_program_is_what_was_traced(tmp_path):
    option.cache_dir(new_cache(tmp_path / "cache"))
    option.debug.dump_ir()
    try:
        with tilekit.tracing("terminal", tmp_path / "traces") as t:
            kernel = compiled(scaling(2.0))
    finally:
        config.clear_session_defaults()
    read = journal.read(t.folder)
    for folder, phase in (("ir", "tile"), ("module/ir", "hidet")):
        steps = [step for step in read.compiles[0].steps if step.phase == phase and step.name != "verify"]
        files = sorted((kernel.compiled.entry.folder / folder).iterdir(), key=lambda file: int(file.name.split("_")[0]))
        names = ["0_original.txt", *(f"{number}_{step.name}.txt" for number, step in enumerate(steps, start=1))]
        assert [file.name for file in files] == names
        texts = [read.text(steps[0].before), *(read.text(step.after) for step in steps)]
        assert [file.read_text() for file in files] == texts
