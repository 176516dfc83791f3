# SPDX-License-Identifier: Apache-2.0
"""Completion on the `%%tilus` line."""

from IPython.core.completer import provisionalcompleter

from tests.notebook.cells import Notebook


def completions(notebook: Notebook, text: str) -> list[str]:
    with provisionalcompleter():
        return [found.text for found in notebook.shell.Completer.completions(text, len(text))]


def test_two_dashes_give_the_options_and_nothing_else(notebook: Notebook):
    assert completions(notebook, "%%tilus --") == ["--args", "--bench", "--check", "--help", "--target"]
    assert completions(notebook, "%%tilus --target sm_80 --a") == ["--args"]


def test_targets_follow_the_target_option(notebook: Notebook):
    every = completions(notebook, "%%tilus --target ")
    assert {"sm_80", "sm_89", "sm_90a"} <= set(every)
    assert completions(notebook, "%%tilus --target sm_90") == ["sm_90", "sm_90a"]
    assert completions(notebook, "%%tilus --target=sm_80") == ["sm_80"]


def test_a_space_gives_the_options(notebook: Notebook):
    assert completions(notebook, "%%tilus ") == ["--args", "--bench", "--check", "--help", "--target"]


def test_the_magic_itself_is_completed(notebook: Notebook):
    assert "%%tilus" in completions(notebook, "%%til")


def test_the_lines_below_are_completed_as_ever(notebook: Notebook):
    notebook.ran("a_long_name = 1")
    assert "a_long_name" in completions(notebook, "%%tilus\na_long_n")
    assert "--target" not in completions(notebook, "%%tilus\nx --t")
