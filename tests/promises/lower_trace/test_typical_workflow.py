# SPDX-License-Identifier: Apache-2.0
"""Typical Workflow."""

import pytest

import tilekit
from tests.promises.kernels import compiled, scaling
from tilekit.events import CLEAN
from tilekit.jit.kernel import Kernel


@pytest.fixture
def run(tmp_path, capfd):
    """A run of a script that scales by a factor, with what it printed and the folder where its source is."""

    def run(factor: float) -> tuple[Kernel, str]:
        capfd.readouterr()
        with tilekit.tracing("html", tmp_path, codegen_output=tmp_path / "codegen.cpp"):
            kernel = compiled(scaling(factor))
        return kernel, capfd.readouterr().err

    return run


@pytest.fixture
def source(tmp_path):
    return tmp_path / "codegen.cpp"


def edit(source, old="2.0f", new="5.0f"):
    text = source.read_text()
    assert old in text
    source.write_text(text.replace(old, new))
    return source.read_text()


def test_one_run_leaves_the_source_to_be_read(run, source):
    kernel, _ = run(2.0)
    assert source.read_text() == kernel.source
    assert "extern" in kernel.source and "2.0f" in kernel.source


def test_an_edited_source_is_compiled_when_it_runs_again(run, source):
    run(2.0)
    edited = edit(source)
    kernel, said = run(2.0)
    assert f"PATCHED from {source}" in said
    assert kernel.patched and kernel.source == edited


def test_each_run_takes_the_edit_as_it_is_then(run, source):
    run(2.0)
    for old, new in [("2.0f", "5.0f"), ("5.0f", "6.0f"), ("6.0f", "7.0f")]:
        edited = edit(source, old, new)
        for _ in range(2):
            kernel, said = run(2.0)
            assert "PATCHED" in said and kernel.source == edited


def test_the_baseline_stays_as_it_was_while_one_edits(run, source):
    kernel, _ = run(2.0)
    edit(source)
    run(2.0)
    assert source.with_name("codegen.cpp.original").read_text() == kernel.source


def test_an_edit_that_is_generated_now_is_synced(run, source):
    run(2.0)
    generated = compiled(scaling(3.0)).source
    source.write_text(generated)
    kernel, said = run(3.0)
    assert "SYNCED" in said and kernel.edit_state == CLEAN and not kernel.patched
    assert source.read_text() == source.with_name("codegen.cpp.original").read_text() == generated


def test_an_edit_of_something_that_changed_is_a_conflict(run, source):
    first, _ = run(2.0)
    edited = edit(source)
    kernel, said = run(3.0)
    assert "CONFLICT" in said and not kernel.patched
    assert source.with_name("codegen.cpp.bak").read_text() == edited
    assert source.with_name("codegen.cpp.original.bak").read_text() == first.source
    assert source.read_text() == kernel.source


def test_the_console_says_how_to_recover_it(run, source):
    run(2.0)
    edit(source)
    _, said = run(3.0)
    assert f"diff {source}.original.bak {source}.bak" in said


def test_an_edit_runs_with_every_toolchain(run, source):
    """Every toolchain here compiles source: there is none that must say that an edit was not compiled."""
    run(2.0)
    edit(source)
    kernel, said = run(2.0)
    assert kernel.patched and "NOTE" not in said
