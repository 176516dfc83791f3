# SPDX-License-Identifier: Apache-2.0
"""IR Lower Trace."""

from tilekit import transforms
from tilekit.lowir.passes import PASSES


def test_each_pass_that_changed_the_ir_is_shown_with_what_it_changed(traced):
    steps = traced.journal.compiles[0].steps
    changed = [step for step in steps if step.changed and not step.is_translation]
    assert len(changed) > 3
    for step in changed:
        assert traced.journal.text(step.before) != traced.journal.text(step.after)
        assert step.added + step.removed > 0
        assert f"/{step.title}  " in traced.stderr


def test_every_pass_of_the_pipeline_is_captured(traced):
    steps = traced.journal.compiles[0].steps
    names = [step.name for step in steps]
    passes = [each.name for each in transforms.get_default_passes()] + [each.name for each in PASSES]
    assert [name for name in names if name in passes] == passes
    assert "generate_ir_module" in names and "print_module" in names
    for step in steps:
        assert step.before in traced.journal and step.after in traced.journal


def test_the_report_is_in_the_terminal_and_on_a_page(traced):
    assert "tile/layout_inference" in traced.stderr and "\n@@ " in traced.stderr
    page = (traced.home / "report.html").read_text()
    assert page.startswith("<!doctype html>") and 'data-tk="z"' in page


def test_a_pass_is_tagged_with_its_phase(traced):
    phases = {step.name: step.phase for step in traced.journal.compiles[0].steps}
    assert phases["layout_inference"] == "tile" and phases["generate_ir_module"] == "lower"
    assert phases["remove_unused"] == "hidet" and phases["print_module"] == "codegen"


def test_the_generated_source_is_on_the_disk(traced):
    (step,) = [step for step in traced.journal.compiles[0].steps if step.base_phase == "codegen"]
    assert (traced.home / "codegen.cpp").read_text() == traced.journal.text(step.after)


def test_later_compiles_of_a_process_have_prefixes(traced):
    phases = [{step.phase.partition("_")[0] for step in compile.steps} for compile in traced.journal.compiles]
    assert phases[0].isdisjoint({"run2", "run3"}) and phases[1:] == [{"run2"}, {"run3"}]


def test_the_ir_around_every_pass_is_on_the_disk(traced):
    for compile in traced.journal.compiles:
        for step in compile.steps:
            files = sorted((traced.run / step.phase).glob(f"{step.index:02d}_*"))
            texts = [traced.journal.text(text) for text in (step.after, step.before)]  # `after` sorts first
            assert [file.read_text() for file in files] == texts
