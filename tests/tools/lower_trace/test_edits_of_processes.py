# SPDX-License-Identifier: Apache-2.0
"""What somebody edited, from process to process: a script that is run again and again, or twice at once."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.caches import new_cache
from tilekit.tools.lower_trace import files, journal

SCRIPT = """
import sys

import numpy as np

import tilekit as tilus
from tilekit import float32, int32

factor = float(sys.argv[1])


def times():
    class Times(tilus.Script):
        def __call__(self, n: int32, x_ptr: ~float32):
            self.attrs.blocks = [1]
            self.attrs.warps = 4
            g = self.global_view(x_ptr, dtype=float32, shape=[n])
            x = self.load_global(g, offsets=[0], shape=[128])
            self.store_global(g, x * factor, offsets=[0])

    return Times()


for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 1):
    handle = times()
    x = np.ones(100, dtype=np.float32)
    handle(100, x)
    kernel = handle.last
    assert x[0] == factor or kernel.patched or len(sys.argv) == 2, f"{factor} became {x[0]}"
print(x[0], kernel.metadata["patched"], kernel.edit_state, kernel.cached)
"""


class Script:
    """A script, its cache and what its traces leave."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cache = new_cache(folder / "cache")
        self.file = folder / "my_script.py"
        self.file.write_text(SCRIPT)
        self.traced = folder / "traced" / "my_script"
        self.working = self.traced / "codegen.cpp"

    def start(self, *arguments: object, **variables: str) -> "subprocess.Popen[str]":
        environment = {name: value for name, value in os.environ.items() if "LOWER_TRACE" not in name}
        environment |= {
            "TILEKIT_CACHE_DIR": str(self.cache),
            "TL_LOWER_TRACE_DIR": str(self.traced.parent),
            **variables,
        }
        return subprocess.Popen(
            [sys.executable, str(self.file), *map(str, arguments)],
            env=environment,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: object, **variables: str) -> tuple[str, str]:
        """What it prints, and what is said meanwhile."""
        process = self.start(*arguments, **variables)
        printed, said = process.communicate()
        assert process.returncode == 0, said
        return printed.strip(), said

    def edit(self, old: str, new: str) -> None:
        text = self.working.read_text()
        assert old in text
        self.working.write_text(text.replace(old, new))


@pytest.fixture
def script(tmp_path: Path) -> Script:
    return Script(tmp_path)


def test_case_17_47_50_an_edit_is_for_runs_that_are_traced(script: Script) -> None:
    assert script.run(2.0, TL_LOWER_TRACE="1")[0] == "2.0 False clean False"
    script.edit("2.0f", "7.0f")
    printed, said = script.run(2.0, TL_LOWER_TRACE="1")
    assert printed == "7.0 True PATCHED False"
    assert [line for line in said.split("\n") if "PATCHED" in line] == [f"tilekit: PATCHED from {script.working}"]
    assert script.run(2.0) == ("2.0 False clean True", "")
    printed, said = script.run(2.0, TL_LOWER_TRACE="both")
    assert printed == "7.0 True PATCHED True" and f"PATCHED from {script.working}" in said


def test_case_51_an_edited_program_is_a_step_of_the_run_that_went_on_with_it(script: Script) -> None:
    script.run(2.0, TL_LOWER_TRACE="1")
    (file,) = script.traced.glob("ir/*_layout_inference.tir")
    file.write_text(file.read_text().replace("f32(2.0)", "f32(7.0)"))
    printed, said = script.run(2.0, TL_LOWER_TRACE="1")
    assert printed == "7.0 True PATCHED False"
    assert [line for line in said.split("\n") if "PATCHED" in line] == [f"tilekit: PATCHED from {file}"]
    newest = max(script.traced.glob(".run_records/run_*/journal.jsonl"))
    (compile,) = journal.read(newest).compiles
    names = [step.name for step in compile.steps]
    at = names.index("edit_of_layout_inference")
    assert names[at - 1] == "layout_inference" and compile.steps[at].changed
    number = f"{compile.steps[at - 1].index:02d}"
    assert file.name == f"{number}_layout_inference.tir", "it has the number of the raw dump"
    assert script.run(2.0) == ("2.0 False clean True", "")


def test_case_20_22_24_25_the_environment_says_what_becomes_of_a_conflict(script: Script) -> None:
    script.run(2.0, TL_LOWER_TRACE="1")
    script.edit("#include <tk/tk.h>", "// seen by a person\n#include <tk/tk.h>")
    edited = script.traced.rename(script.folder / "edited")
    for policy, printed in {
        "": "5.0 False CONFLICT False",
        "merge": "5.0 True MERGED False",
        "keep": "2.0 True KEPT False",
    }.items():
        shutil.copytree(edited, script.traced)
        found, said = script.run(5.0, TL_LOWER_TRACE="1", TL_LOWER_TRACE_ON_CONFLICT=policy)
        assert found == printed
        assert re.search(rf"tilekit: {printed.split()[2]} .*{re.escape(str(script.working))}", said)
        shutil.rmtree(script.traced)
    shutil.copytree(edited, script.traced)
    process = script.start(5.0, TL_LOWER_TRACE="1", TL_LOWER_TRACE_ON_CONFLICT="error")
    said = process.communicate()[1]
    assert process.returncode == 1
    for name in ("codegen.cpp", "codegen.cpp.original", "codegen.cpp.latest"):
        assert f"{script.traced / name}" in said


def test_case_59_who_holds_the_files_is_waited_for_once(script: Script) -> None:
    script.run(2.0, TL_LOWER_TRACE="1")
    script.edit("2.0f", "7.0f")
    before = {path: path.read_bytes() for path in script.traced.glob("codegen.cpp*")}
    with files.locked(script.traced, 10.0):
        printed, said = script.run(2.0, TL_LOWER_TRACE="1")
    assert printed == "7.0 True PATCHED False", "it is read, not written"
    assert said.count("another process holds") == 1
    assert {path: path.read_bytes() for path in script.traced.glob("codegen.cpp*")} == before


@pytest.mark.parametrize("times", [8, pytest.param(500, marks=pytest.mark.slow)])
def test_case_59_two_runs_at_once_mix_nothing_up(script: Script, times: int) -> None:
    for factor in (2.0, 3.0):
        script.run(factor)
    runs = [script.start(factor, times, TL_LOWER_TRACE="1") for factor in (2.0, 3.0)]
    for factor, process in zip((2.0, 3.0), runs, strict=True):
        printed, said = process.communicate()
        assert process.returncode == 0, said
        assert printed.startswith(f"{factor} False ") and "CONFLICT" not in said
    assert not [*script.traced.rglob("*.bak*"), *script.traced.rglob("*.conflict")]
    journals = [path.read_text() for path in script.traced.glob(".run_records/run_*/journal.jsonl")]
    assert sorted(journal.count('"k":"compile_end"') for journal in journals) == [times, times]
    index = (script.traced / "index.html").read_text()
    recorded = [path.name for path in (script.traced / ".run_records").glob("run_*")]
    assert len(recorded) == 2 and all(name in index for name in recorded)
