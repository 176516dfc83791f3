# SPDX-License-Identifier: Apache-2.0
"""What becomes of an edited source is said on the console, with its tag and its file."""

from pathlib import Path

import pytest

import tilekit
from tests.tools.lower_trace import scripts
from tilekit.diag import TilekitError
from tilekit.events import Fanout
from tilekit.jit.observer import Identity
from tilekit.tools.lower_trace.edit_table import Tag

KERNEL = Identity("Kernel", "Kernel()", "sm_80", "cpu")
A, B, MINE = "a\nb\nc\nd\ne\n", "A\nb\nc\nd\ne\n", "a\nb\nc\nd\nmine\n"


def generate(folder: Path, text: str, policy: str = "regenerate") -> None:
    """A traced compile that generates this text."""
    with tilekit.tracing("terminal", folder, codegen_output=folder / "codegen.cpp", on_conflict=policy) as session:
        sink = session.sink(KERNEL, cached=False)
        assert sink is not None
        try:
            Fanout([sink]).codegen(text)
        finally:
            sink.done(None)


class Files:
    """The files that a first compile has left, for somebody to change."""

    def __init__(self, folder: Path) -> None:
        generate(folder, A)
        self.working, self.original = folder / "codegen.cpp", folder / "codegen.cpp.original"


def init_backup(files: Files):
    files.original.unlink()
    files.working.parent.joinpath(".codegen.cpp.state.json").unlink(missing_ok=True)
    files.working.parent.joinpath(".state.json").unlink(missing_ok=True)
    files.working.write_text(MINE)


def adopted(files: Files):
    init_backup(files)
    files.working.write_text(A)


def read_only(files: Files):
    files.working.chmod(0o444)


def edit(files: Files):
    files.working.write_text(MINE)


def edit_baseline(files: Files):
    files.original.write_text(B)


# by tag: what somebody does to the files, what is generated then, under which policy
ROWS = {
    Tag.INIT_BACKUP: (init_backup, A, "regenerate"),
    Tag.ADOPTED: (adopted, A, "regenerate"),
    Tag.RESTORED: (lambda files: files.working.unlink(), A, "regenerate"),
    Tag.REGENERATED: (lambda files: None, B, "regenerate"),
    Tag.SYNCED: (lambda files: files.working.write_text(B), B, "regenerate"),
    Tag.PATCHED: (edit, A, "regenerate"),
    Tag.MERGED: (edit, B, "merge"),
    Tag.KEPT: (edit, B, "keep"),
    Tag.CONFLICT: (edit, B, "regenerate"),
    Tag.EMPTY: (lambda files: files.working.write_text("\n"), A, "regenerate"),
    Tag.UNREADABLE: (lambda files: files.working.write_bytes(b"\xff"), A, "regenerate"),
    Tag.BASELINE_BAD: (lambda files: files.original.write_bytes(b"\xff"), A, "regenerate"),
    Tag.BASELINE_EDITED: (edit_baseline, A, "regenerate"),
    Tag.CANNOT_UPDATE: (read_only, B, "regenerate"),
}
SILENT = {Tag.NONE, Tag.INIT}
ERRORS = {Tag.REFUSED, Tag.PATCHED_INVALID}


def test_every_tag_is_said_or_raised():
    assert {*ROWS, *SILENT, *ERRORS} == set(Tag)


@pytest.mark.parametrize("tag", ROWS, ids=lambda tag: tag.value)
def test_case_96_the_console_says_the_tag_and_the_file(tag, tmp_path, capfd):
    change, generated, policy = ROWS[tag]
    files = Files(tmp_path)
    change(files)
    capfd.readouterr()
    generate(tmp_path, generated, policy)
    said = [line for line in capfd.readouterr().err.splitlines() if line.startswith(f"tilekit: {tag.value} ")]
    assert len(said) == 1
    assert str(tmp_path / "codegen.cpp") in said[0]


def test_case_96_a_patched_source_is_said_with_its_path(tmp_path, capfd):
    edit(Files(tmp_path))
    capfd.readouterr()
    generate(tmp_path, A)
    assert f"tilekit: PATCHED from {tmp_path / 'codegen.cpp'}\n" in capfd.readouterr().err


def test_case_96_what_is_an_error_is_no_line(tmp_path, capfd):
    edit(Files(tmp_path))
    capfd.readouterr()
    with pytest.raises(TilekitError, match="TK422"):
        generate(tmp_path, B, "error")
    assert Tag.REFUSED.value not in capfd.readouterr().err


def test_case_96_a_script_that_runs_again_says_that_it_is_patched(tmp_path):
    body = "compile(scaling(2.0)).patched and print('edited')"
    first = scripts.run(tmp_path, body, TL_LOWER_TRACE="1")
    source = tmp_path / "tmp" / "lower_trace_dir" / "my_script" / "codegen.cpp"
    assert first.stdout == "" and "PATCHED" not in first.stderr
    source.write_text(source.read_text().replace("2.0f", "3.0f"))
    for _ in range(2):
        again = scripts.run(tmp_path, body, TL_LOWER_TRACE="1")
        assert f"tilekit: PATCHED from {source}" in again.stderr
        assert again.stdout == "edited\n"
    untraced = scripts.run(tmp_path, body)
    assert (untraced.stdout, untraced.stderr) == ("", "")
