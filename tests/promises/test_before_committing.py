# SPDX-License-Identifier: Apache-2.0
"""Before Committing."""

from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()


def recipe_of(target: str) -> str:
    return MAKEFILE.partition(f"\n{target}: ")[2].partition("\n\n")[0]


@pytest.fixture
def recipes() -> list[str]:
    """What the hooks of `pre-commit run --all` run."""
    repos = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    entries = [hook["entry"].split() for repo in repos for hook in repo["hooks"]]
    assert all(command == "make" for command, _ in entries)
    return [recipe_of(target) for _, target in entries]


@pytest.mark.parametrize("tool", ["ruff check", "ruff format", "pyright", "importlinter"])
def test_pre_commit_runs_the_linters_and_the_formatter(recipes, tool):
    assert [tool in recipe for recipe in recipes].count(True) == 1


def test_hooks_look_and_change_nothing(recipes):
    (formatter,) = (line for recipe in recipes for line in recipe.splitlines() if "ruff format" in line)
    assert "--check" in formatter
    assert not any("--fix" in recipe for recipe in recipes)
