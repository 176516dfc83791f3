# SPDX-License-Identifier: Apache-2.0
"""The command `tilekit`, also as `python -m tilekit`."""

import pathlib
import subprocess
import sys

from tests.notebook.cells import CALL, VECTOR_ADD


def main(*arguments: object, cwd: pathlib.Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tilekit", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=cwd)


def test_a_tilus_script_runs_unchanged(tmp_path: pathlib.Path):
    script = tmp_path / "add.py"
    (tmp_path / "beside.py").write_text("WORD = 'found'\n")
    script.write_text(
        f"import sys\nimport beside\n{VECTOR_ADD}\n\nif __name__ == '__main__':\n"
        + "".join(f"    {line}\n" for line in CALL.splitlines())
        + "    print(torch.equal(z, x + y), beside.WORD, sys.argv[1:])\n"
    )
    done = main("run", script, "--size", "7", cwd=tmp_path.parent)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "True found ['--size', '7']\n"


def test_an_error_is_told_in_three_lines_with_the_line_of_the_script(tmp_path: pathlib.Path):
    script = tmp_path / "add.py"
    script.write_text(f"{VECTOR_ADD.replace('load_global(gy', 'load_globl(gy')}\n\n{CALL}")
    done = main("run", script)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f"LanguageError TK102 in VectorAdd.__call__, {script}, line 16: self has no load_globl",
        "    y = self.load_globl(gy, offsets=[start], shape=[256])",
        "        ^^^^^^^^^^^^^^^",
        "  help: did you mean self.load_global?",
    ]


def test_an_exit_status_of_the_script_is_kept(tmp_path: pathlib.Path):
    script = tmp_path / "leave.py"
    script.write_text("raise SystemExit(7)\n")
    assert main("run", script).returncode == 7


def test_a_missing_script_is_named():
    done = main("run", "nowhere.py")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "tilekit: error: there is no file nowhere.py"
