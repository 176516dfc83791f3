# SPDX-License-Identifier: Apache-2.0
"""Output Directory Structure."""

import re

RUN = re.compile(r"run_\d{8}_\d{6}_\d{6}_(\d+)")


def test_a_run_leaves_this_layout(traced):
    names = {path.name for path in traced.home.iterdir()}
    assert {"report.html", "codegen.cpp", "codegen.cpp.original", "codegen.cpp.latest", ".run_records"} <= names
    found = RUN.fullmatch(traced.run.name)
    assert found is not None and int(found[1]) == traced.journal.head.pid
    assert (traced.run / "report.html").is_file()
    assert sorted(path.name for path in (traced.run / "tile").glob("01_*")) == [
        "01_declare_to_let_after.tir",
        "01_declare_to_let_before.tir",
    ]
    assert len(list((traced.run / "codegen").glob("*_codegen_after.cpp"))) == 1


def test_each_phase_has_a_folder(traced):
    phases = {step.phase for compile in traced.journal.compiles for step in compile.steps}
    assert {path.name for path in traced.run.iterdir() if path.is_dir()} == phases


def test_passes_are_numbered_through_the_run(traced):
    numbers = [step.index for compile in traced.journal.compiles for step in compile.steps]
    assert numbers == list(range(len(numbers)))
    on_disk = sorted({int(path.name.partition("_")[0]) for path in traced.run.glob("*/*_before.*")})
    assert on_disk == numbers


def test_generated_source_is_written_as_cpp_and_the_rest_as_tir(traced):
    for phase in ("tile", "lower", "hidet", "run2_tile", "run3_hidet"):
        assert {path.suffix for path in (traced.run / phase).iterdir()} == {".tir"}
    assert {path.suffix for path in (traced.run / "codegen").glob("*_after.*")} == {".cpp"}
    assert {path.suffix for path in (traced.run / "codegen").glob("*_before.*")} == {".tir"}
