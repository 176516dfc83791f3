# SPDX-License-Identifier: Apache-2.0
"""How It Works."""

import os

import tilekit
from tests.promises.kernels import compiled, description, scaling
from tilekit import textdiff, transforms
from tilekit.events import BY_HAND
from tilekit.jit import observer
from tilekit.tools import lower_trace as lt
from tilekit.tools.lower_trace import journal, session


def program():
    return scaling()._jit_instance_for(*description()).transpiled_programs[0]


def test_disabling_leaves_nothing_behind(tmp_path):
    run = transforms.Pass.__call__
    lt.enable("terminal", tmp_path)
    assert observer.tracing() and BY_HAND.sinks
    lt.disable()
    assert observer.tracing() == 0 and BY_HAND.sinks == () and session.active() is None
    assert transforms.Pass.__call__ is run


def test_the_texts_before_and_after_each_pass_are_counted(traced):
    for step in (step for compile in traced.journal.compiles for step in compile.steps if not step.is_translation):
        before, after = traced.journal.lines(step.before), traced.journal.lines(step.after)
        assert (step.added, step.removed) == textdiff.counts(before, after)


def test_passes_outside_of_a_compile_are_unscoped(tmp_path):
    with tilekit.tracing("terminal", tmp_path) as t:
        after = transforms.analyze_scalar_pass()(program())
    assert t.folder is not None and os.listdir(t.folder / "unscoped") != []
    assert (t.folder / "unscoped" / "00_analyze_scalar_after.tir").read_text() == str(after)


def test_the_phase_is_that_of_the_compile_that_a_pass_runs_in(traced):
    for number, compile in enumerate(traced.journal.compiles, start=1):
        prefix = "" if number == 1 else f"run{number}_"
        assert {step.phase for step in compile.steps if step.name == "layout_inference"} == {f"{prefix}tile"}


def test_records_are_made_as_passes_run(tmp_path):
    changes = [transforms.without("bound_aware_simplify")]
    with tilekit.tracing("terminal", tmp_path) as t, tilekit.passes(*changes):
        compiled(scaling(5.0))
    read = journal.read(t.folder)
    names = [step.name for step in read.compiles[0].steps]
    assert "bound_aware_simplify" not in names and "lower_load_store" in names
    assert [step.index for step in read.compiles[0].steps] == list(range(len(names)))


def test_the_report_is_there_after_every_pass(tmp_path):
    sizes = []

    class Looks(transforms.Pass):
        def process_function(self, func):
            (page,) = tmp_path.glob("*/.run_records/run_*/report.html")
            sizes.append(page.stat().st_size)
            assert page.read_text().startswith("<!doctype html>")
            return func

    with (
        tilekit.tracing("html", tmp_path),
        tilekit.passes(transforms.after("declare_to_let", Looks()), transforms.after("layout_inference", Looks())),
    ):
        compiled(scaling(6.0))
    assert len(sizes) == 2 and sizes[0] < sizes[1], "it grows"


def test_the_compiles_of_a_process_stand_in_one_report(traced):
    assert len(list((traced.home / ".run_records").glob("run_*"))) == 1
    assert [compile.run for compile in traced.journal.compiles] == [1, 2, 3]


def test_passes_are_seen_whoever_calls_them(tmp_path):
    with tilekit.tracing("terminal", tmp_path) as t:
        transforms.run_passes(program(), transforms.get_default_passes()[:3])
    (found,) = journal.read(t.folder).compiles
    assert [step.name for step in found.steps] == [each.name for each in transforms.get_default_passes()[:3]]
