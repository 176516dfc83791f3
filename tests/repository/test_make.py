# SPDX-License-Identifier: Apache-2.0
"""What a person types."""

import os
import pathlib
import subprocess

import pytest
import yaml

ROOT = pathlib.Path(__file__).parents[2]
TARGETS = ["widgets", "hello", "smoke", "test", "test-slow", "test-gpu", "bench", "lint", "lab", "clean", "help"]


def make(*arguments: str) -> str:
    environment = {
        name: value for name, value in os.environ.items() if name not in {"PYTHON", "MAKEFLAGS", "MAKELEVEL"}
    }
    done = subprocess.run(["make", *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return done.stdout


def test_make_alone_explains_every_target():
    explained = [line.split()[1] for line in make().splitlines()]
    assert set(TARGETS) <= set(explained)
    assert make("help") == make()


@pytest.mark.parametrize("target", ["hello", "smoke", "test", "test-slow", "test-gpu", "bench", "lint", "lab"])
def test_a_python_of_ones_own_needs_no_environment(target: str):
    would_run = make("--dry-run", "--always-make", target, "PYTHON=python3")
    assert "python3 " in would_run
    assert ".venv" not in would_run and "pip install" not in would_run


def test_the_hooks_are_the_linters_that_make_runs():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    assert [repo["repo"] for repo in config["repos"]] == ["local"]
    hooks = config["repos"][0]["hooks"]
    assert {hook["language"] for hook in hooks} == {"system"}
    commands = "".join(make("--dry-run", *hook["entry"].split()[1:], "PYTHON=python3") for hook in hooks)
    assert commands == make("--dry-run", "lint", "PYTHON=python3")
