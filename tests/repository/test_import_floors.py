# SPDX-License-Identifier: Apache-2.0
"""The floors hold, and the linter that holds them bites."""

import ast
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PACKAGE = ROOT / "tilekit"
FACADES = {"__init__", "__main__", "aliases", "hidet", "kernels", "option", "tensor", "testing", "utils"}


def lint(where: pathlib.Path) -> subprocess.CompletedProcess[str]:
    program = 'from importlinter.cli import lint_imports_command; lint_imports_command(["--no-cache", "--no-logo"])'
    return subprocess.run([sys.executable, "-c", program], cwd=where, capture_output=True, text=True)


@pytest.fixture
def copy(tmp_path: pathlib.Path) -> pathlib.Path:
    """A copy of the tree in which a rule can be broken."""
    shutil.copytree(PACKAGE, tmp_path / "tilekit", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_rooms_import_downward_only():
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_new_room_must_say_where_it_lives(copy: pathlib.Path):
    (copy / "tilekit" / "misc").mkdir()
    (copy / "tilekit" / "misc" / "__init__.py").touch()
    done = lint(copy)
    assert done.returncode == 1
    assert "misc" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("module", "imports", "broken"),
    [
        ("diag/sly.py", "from tilekit import ir", "Rooms import downward only BROKEN"),
        ("events.py", "from tilekit.diag import span", "Rooms import downward only BROKEN"),
        ("transforms/sly.py", "import tilekit.backends", "Rooms import downward only BROKEN"),
        ("ir/sly.py", "import hidet.ir.expr", "Only lowir imports hidet BROKEN"),
        ("backends/sly.py", "import torch", "Nothing below runtime imports torch BROKEN"),
        ("jit/sly.py", "import IPython", "Only notebook imports IPython and the widgets BROKEN"),
    ],
)
def test_a_breach_is_seen(copy: pathlib.Path, module: str, imports: str, broken: str):
    for room in ("diag", "ir", "transforms", "backends", "jit"):
        assert (copy / "tilekit" / room / "__init__.py").exists(), f"{room} is no package"
    with (copy / "tilekit" / module).open("a") as file:
        file.write(f"\n{imports}\n")
    done = lint(copy)
    assert done.returncode == 1
    assert broken in done.stdout, done.stdout + done.stderr


def test_no_room_imports_from_the_front_door():
    rooms = {path.stem for path in PACKAGE.iterdir()} - FACADES
    wrong: list[str] = []
    for file in sorted(PACKAGE.rglob("*.py")):
        if file.relative_to(PACKAGE).parts[0].removesuffix(".py") in FACADES:
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            match node:
                case ast.Import(names):
                    bad = [alias.name for alias in names if alias.name == "tilekit"]
                case ast.ImportFrom(module="tilekit", names=names):
                    bad = [alias.name for alias in names if alias.name not in rooms]
                case _:
                    continue
            wrong += [f"{file.relative_to(ROOT)}:{node.lineno} imports {name}" for name in bad]
    assert wrong == []


def test_import_tilekit_brings_no_heavy_guest():
    heavy = ["torch", "hidet", "numpy", "IPython", "plotly", "cuda"]
    program = f"import sys, tilekit; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
