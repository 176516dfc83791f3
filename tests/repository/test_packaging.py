# SPDX-License-Identifier: Apache-2.0
"""What is installed: versions, the wheel, Binder."""

import importlib.metadata
import os
import pathlib
import subprocess
import sys
import tomllib
import zipfile

import pytest
import yaml
from packaging.requirements import Requirement

ROOT = pathlib.Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def requirements() -> list[Requirement]:
    extras = PROJECT["optional-dependencies"].values()
    return [Requirement(line) for lines in [PROJECT["dependencies"], *extras] for line in lines]


def constraints() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def test_every_requirement_has_a_tested_version_in_its_range():
    tested = constraints()
    for requirement in requirements():
        assert requirement.specifier.contains(tested[requirement.name]), requirement


def test_the_tests_run_with_the_tested_versions():
    installed = {name: importlib.metadata.version(name).partition("+")[0] for name in constraints()}
    assert installed == constraints()


def test_the_wheel_carries_the_package_with_its_headers(tmp_path: pathlib.Path):
    command = ["pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path), str(ROOT)]
    subprocess.run([sys.executable, "-m", *command], check=True)
    (wheel,) = tmp_path.glob("tilekit-*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    carried = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("tilekit/")}
    expected = {
        str(file.relative_to(ROOT))
        for file in (ROOT / "tilekit").rglob("*")
        if file.is_file() and file.suffix in {".py", ".h", ".hpp", ".cpp", ".typed", ".js", ".css", ".txt"}
    }
    assert {"tilekit/include/tk/tk.h", "tilekit/static/passes.js"} <= expected
    assert expected <= carried
    assert not [name for name in carried if name.endswith(".pyc")]


def test_binder_finds_its_files():
    # With a folder named `binder`, Binder reads these names in it and nothing at the top level.
    assert {file.name for file in (ROOT / "binder").iterdir()} == {"environment.yml", "apt.txt", "postBuild"}
    environment = yaml.safe_load((ROOT / "binder" / "environment.yml").read_text())
    assert environment["channels"] == ["conda-forge"]
    names = [line.partition("=")[0].partition(">")[0] for line in environment["dependencies"]]
    assert names == ["python", "pip", "pytorch-cpu"]
    assert "g++" in (ROOT / "binder" / "apt.txt").read_text().split()


@pytest.mark.parametrize("script", ["binder/postBuild", ".ci/run", ".ci/system-packages"])
def test_a_script_is_executable_bash(script: str):
    assert os.access(ROOT / script, os.X_OK)
    assert (ROOT / script).read_text().startswith("#!/usr/bin/env bash\n")
    subprocess.run(["bash", "-n", ROOT / script], check=True)


@pytest.mark.slow
def test_post_build_installs_into_an_environment_that_has_torch(tmp_path: pathlib.Path):
    subprocess.run([sys.executable, "-m", "venv", tmp_path], check=True)
    python = tmp_path / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", f"torch=={constraints()['torch']}"], check=True)
    environment = os.environ | {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    subprocess.run([ROOT / "binder" / "postBuild"], cwd=ROOT, env=environment, check=True)
    done = subprocess.run([python, "-c", "import tilekit; print(tilekit.__file__)"], cwd=tmp_path, capture_output=True)
    assert done.stdout.decode().startswith(str(tmp_path))
