# SPDX-License-Identifier: Apache-2.0
"""The table of edited sources, row by row, and what may go wrong around it."""

import errno
import json
import multiprocessing
import os
import pathlib
import random
import re
import resource
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from tilekit.diag import CodegenError
from tilekit.events import Edited, Fanout
from tilekit.jit.observer import Identity
from tilekit.tools.lower_trace import edit_table, edits, files
from tilekit.tools.lower_trace.edit_sink import EditSink
from tilekit.tools.lower_trace.edit_table import Policy, State, Tag
from tilekit.tools.lower_trace.edits import (
    Decision,
    EditConflict,
    EditError,
    EditFolder,
    EditStore,
    folder_name,
    safe_name,
)

G1, G2 = "generated 1\n", "generated 2\n"
U, X, P = b"typed by somebody\n", b"of unknown origin\n", b"put away earlier\n"
g1, g2 = G1.encode(), G2.encode()
BOM = b"\xef\xbb\xbf"

KERNEL = """\
#include <tk/tk.h>

extern "C" __global__ void __launch_bounds__(32)
fill(float* y, float a)
{
  y[threadIdx.x] = a;
}
TK_KERNEL(fill)
"""


# ------------------------------------------------------------------------------------------------------- the table


@dataclass(frozen=True)
class Folder:
    """A folder in place of a file."""


@dataclass(frozen=True)
class Link:
    """A symbolic link to a file outside, which holds this."""

    content: bytes


@dataclass(frozen=True)
class ReadOnly:
    content: bytes


Entry = bytes | Folder | Link | ReadOnly


@dataclass(frozen=True)
class Row:
    """Files by suffix, "" being the working copy; what `after` does not name must be as it was, to the nanosecond."""

    tag: Tag | type[Exception]
    before: dict[str, Entry]
    generated: str = G1
    policy: Policy = Policy.REGENERATE
    text: str | None = None  # what is compiled, if it is not the generated text
    after: dict[str, Entry] = field(default_factory=dict)
    says: tuple[str, ...] = ()  # words of the messages
    latest: bool = True  # whether .latest must be the generated text afterwards
    baseline: str = G1  # what the state of an earlier run is the state of


BASE, LATEST = ".original", ".latest"
ALONE, LATER = (False,), (True,)  # without the state of an earlier run, or with one; most rows hold for both
PATCHED_U = {"tag": Tag.PATCHED, "text": U.decode(), "says": ("PATCHED from ", "codegen.cpp")}


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> EditFolder:
    return folder_at(tmp_path / "kernel")


def folder_at(path: pathlib.Path) -> EditFolder:
    path.mkdir(parents=True)
    return EditFolder(path)


def place(folder: EditFolder, suffix: str) -> pathlib.Path:
    return folder.path / f"codegen.cpp{suffix}"


def put(folder: EditFolder, suffix: str, entry: Entry) -> None:
    path = place(folder, suffix)
    match entry:
        case Folder():
            path.mkdir()
        case Link(content):
            elsewhere = folder.path.parent / "elsewhere.cu"
            elsewhere.write_bytes(content)
            path.symlink_to(elsewhere)
        case ReadOnly(content):
            path.write_bytes(content)
            path.chmod(0o444)
        case bytes(content):
            path.write_bytes(content)


def remember(folder: EditFolder, baseline: str) -> None:
    """Leave the state of a run that ended well."""
    (folder.path / ".state.json").write_bytes(State(edit_table.digest(baseline), None, "none").to_json())


def entry_at(path: pathlib.Path) -> Entry:
    if path.is_dir():
        return Folder()
    return Link(path.read_bytes()) if path.is_symlink() else path.read_bytes()


def stamp(path: pathlib.Path) -> tuple[int, int, int]:
    state = path.lstat()
    return state.st_ino, state.st_mtime_ns, state.st_mode


def contents(folder: EditFolder) -> dict[str, Entry]:
    """Everything in the folder that a person sees."""
    names = [name for name in os.listdir(folder.path) if not name.startswith(".")]
    return {name.removeprefix("codegen.cpp"): entry_at(folder.path / name) for name in names}


def check(tmp_path: pathlib.Path, row: Row, states: tuple[bool, ...] = (True, False)) -> None:
    """The row holds, with and without the state of an earlier run, and a second run finds nothing more to do."""
    for has_state in states:
        folder = folder_at(tmp_path / f"{random.getrandbits(64)}" / "kernel")
        for suffix, entry in row.before.items():
            put(folder, suffix, entry)
        if has_state:
            remember(folder, row.baseline)
        check_one(folder, row)
        if isinstance(row.tag, Tag):
            check_again(folder, row)


def check_one(folder: EditFolder, row: Row) -> None:
    before = contents(folder)
    stamps = {suffix: stamp(place(folder, suffix)) for suffix in before}
    if isinstance(row.tag, Tag):
        decision = folder.decide(row.generated, row.policy)
        assert decision.tag is row.tag
        assert decision.text == (row.generated if row.text is None else row.text)
        assert decision.edited == (row.text is not None)
        said = "\n".join(decision.messages)
        assert bool(said) == (row.tag is not Tag.NONE)
    else:
        with pytest.raises(row.tag) as caught:
            folder.decide(row.generated, row.policy)
        said = str(caught.value)
    for words in row.says:
        assert words in said

    expected = before | row.after | ({LATEST: row.generated.encode()} if row.latest else {})
    assert contents(folder) == expected
    for suffix, old in stamps.items():
        now = stamp(place(folder, suffix))
        if expected[suffix] == before[suffix]:
            assert now == old, f"{suffix} was written for nothing"
        elif not isinstance(expected[suffix], Link):
            assert now[0] != old[0], f"{suffix} was written in place, and could have been torn"
    if isinstance(row.tag, Tag):
        state = json.loads((folder.path / ".state.json").read_text())
        assert state["action"] in (row.tag.value, Tag.CANNOT_UPDATE.value)
        if row.tag not in (Tag.UNREADABLE, Tag.CANNOT_UPDATE):
            assert state["original"] == edit_table.digest(place(folder, BASE).read_text())
    assert not [name for name in os.listdir(folder.path) if name.endswith("draft")]


def check_again(folder: EditFolder, row: Row) -> None:
    found = contents(folder)
    second = folder.decide(row.generated, row.policy)
    assert second.text == (row.generated if row.text is None else row.text)
    assert contents(folder) == found
    if row.tag in (Tag.EMPTY, Tag.UNREADABLE, Tag.CANNOT_UPDATE, Tag.KEPT):
        assert second.tag is row.tag and second.messages, "it is said at each run"
    else:
        assert second.tag is (Tag.NONE if row.text is None else Tag.PATCHED)


def test_case_13_a_first_run_writes_both_files(tmp_path: pathlib.Path) -> None:
    check(tmp_path, Row(Tag.INIT, {}, after={"": g1, BASE: g1}), ALONE)


def test_case_14_when_nothing_changed_nothing_is_written(tmp_path: pathlib.Path) -> None:
    check(tmp_path, Row(Tag.NONE, {"": g1, BASE: g1, LATEST: g1}))


def test_case_15_the_latest_text_is_written_again(tmp_path: pathlib.Path) -> None:
    check(tmp_path, Row(Tag.NONE, {"": g1, BASE: g1}))


def test_case_16_another_generated_text_takes_the_place_of_the_old(tmp_path: pathlib.Path) -> None:
    check(tmp_path, Row(Tag.REGENERATED, {"": g1, BASE: g1, LATEST: g1}, G2, after={"": g2, BASE: g2}))


def test_case_17_an_edit_is_compiled(tmp_path: pathlib.Path) -> None:
    check(tmp_path, Row(before={"": U, BASE: g1, LATEST: g1}, **PATCHED_U))


def test_case_18_an_edit_needs_no_latest_text(tmp_path: pathlib.Path) -> None:
    check(tmp_path, Row(before={"": U, BASE: g1}, **PATCHED_U))


def test_case_19_an_edit_that_is_what_is_generated_now_is_in_sync(tmp_path: pathlib.Path) -> None:
    check(tmp_path, Row(Tag.SYNCED, {"": g2, BASE: g1, LATEST: g1}, G2, after={BASE: g2}))


def test_case_20_an_edit_of_an_older_text_is_put_away(tmp_path: pathlib.Path) -> None:
    after: dict[str, Entry] = {"": g2, BASE: g2, ".bak": U, ".original.bak": g1}
    check(tmp_path, Row(Tag.CONFLICT, {"": U, BASE: g1, LATEST: g1}, G2, after=after))


def test_case_21_what_was_put_away_before_stays(tmp_path: pathlib.Path) -> None:
    row = Row(
        Tag.CONFLICT,
        {"": U, BASE: g1, LATEST: g1, ".bak": P, ".original.bak": P},
        G2,
        after={"": g2, BASE: g2, ".bak.2": U, ".original.bak.2": g1},
        says=("diff ", "codegen.cpp.original.bak.2", "codegen.cpp.bak.2"),
    )
    check(tmp_path, row)


def test_case_21_what_is_put_away_together_has_one_number(tmp_path: pathlib.Path) -> None:
    row = Row(
        Tag.CONFLICT,
        {"": U, BASE: g1, ".bak": P, ".original.bak.2": P},
        G2,
        after={"": g2, BASE: g2, ".bak.3": U, ".original.bak.3": g1},
    )
    check(tmp_path, row)


def test_case_22_an_edit_and_a_new_text_are_merged(tmp_path: pathlib.Path) -> None:
    row = Row(
        Tag.MERGED,
        {"": b"a\nb\nC!\n", BASE: b"a\nb\nc\n"},
        "A\nb\nc\n",
        Policy.MERGE,
        text="A\nb\nC!\n",
        after={"": b"A\nb\nC!\n", BASE: b"A\nb\nc\n", ".bak": b"a\nb\nC!\n"},
        baseline="a\nb\nc\n",
    )
    check(tmp_path, row)


def test_case_23_what_cannot_be_merged_is_a_conflict_with_both_sides_marked(tmp_path: pathlib.Path) -> None:
    row = Row(
        Tag.CONFLICT,
        {"": b"u\n", BASE: b"a\n"},
        "g\n",
        Policy.MERGE,
        after={
            "": b"g\n",
            BASE: b"g\n",
            ".bak": b"u\n",
            ".original.bak": b"a\n",
            ".conflict": b"<<<<<<< edited\nu\n=======\ng\n>>>>>>> generated\n",
        },
        says=("codegen.cpp.conflict",),
        baseline="a\n",
    )
    check(tmp_path, row)


def test_case_24_an_edit_may_be_kept_though_the_text_has_changed(tmp_path: pathlib.Path) -> None:
    says = ("KEPT from ", "codegen.cpp.latest")
    check(tmp_path, Row(Tag.KEPT, {"": U, BASE: g1}, G2, Policy.KEEP, text=U.decode(), says=says))


def test_case_25_a_conflict_may_be_an_error(tmp_path: pathlib.Path) -> None:
    says = ("codegen.cpp ", "codegen.cpp.original", "codegen.cpp.latest")
    check(tmp_path, Row(EditConflict, {"": U, BASE: g1}, G2, Policy.ERROR, says=says))


def test_case_26_a_file_of_unknown_origin_is_put_away(tmp_path: pathlib.Path) -> None:
    check(tmp_path, Row(Tag.INIT_BACKUP, {"": X}, after={"": g1, BASE: g1, ".bak": X}), ALONE)


def test_case_27_and_loses_no_older_one(tmp_path: pathlib.Path) -> None:
    check(tmp_path, Row(Tag.INIT_BACKUP, {"": X, ".bak": P}, after={"": g1, BASE: g1, ".bak.2": X}), ALONE)


def test_case_28_a_file_that_is_what_is_generated_is_adopted(tmp_path: pathlib.Path) -> None:
    check(tmp_path, Row(Tag.ADOPTED, {"": g1}, after={BASE: g1}), ALONE)


def test_case_29_a_missing_working_copy_is_restored(tmp_path: pathlib.Path) -> None:
    check(tmp_path, Row(Tag.RESTORED, {BASE: g1, LATEST: g1}, after={"": g1}, says=("missing",)))


def test_case_30_a_missing_working_copy_is_restored_from_the_new_text(tmp_path: pathlib.Path) -> None:
    check(tmp_path, Row(Tag.RESTORED, {BASE: g1, LATEST: g1}, G2, after={"": g2, BASE: g2}, says=("missing",)))


@pytest.mark.parametrize("blank", [b"", b"  \n\n"], ids=["row 31", "row 32"])
def test_case_31_32_an_empty_file_is_no_edit(tmp_path: pathlib.Path, blank: bytes) -> None:
    check(tmp_path, Row(Tag.EMPTY, {"": blank, BASE: g1}, says=("EMPTY", "delete the file to go back")))


def test_case_33_a_byte_that_is_no_text_is_named(tmp_path: pathlib.Path) -> None:
    says = ("byte 0xe9 at offset 13, in line 2",)
    check(tmp_path, Row(Tag.UNREADABLE, {"": b"// one\n// caf\xe9\n", BASE: g1}, says=says))


def test_case_34_a_baseline_that_is_no_text_heals(tmp_path: pathlib.Path) -> None:
    after: dict[str, Entry] = {BASE: g1, ".original.bad": b"\xff\xfe"}
    check(tmp_path, Row(Tag.BASELINE_BAD, {"": g1, BASE: b"\xff\xfe"}, after=after, says=(".original.bad",)))


def test_case_35_a_byte_order_mark_is_no_edit(tmp_path: pathlib.Path) -> None:
    check(tmp_path, Row(Tag.NONE, {"": BOM + g1, BASE: g1}))


def test_case_36_a_byte_order_mark_and_line_ends_are_not_compiled(tmp_path: pathlib.Path) -> None:
    check(tmp_path, Row(Tag.PATCHED, {"": BOM + b"one\r\ntwo\r\n", BASE: g1}, text="one\ntwo\n"))


@pytest.mark.parametrize("working", [b"generated 1\r\n", g1 + b"\n \n\n"], ids=["CRLF", "blank lines"])
def test_case_37_line_ends_and_blank_lines_at_the_end_are_no_edit(tmp_path: pathlib.Path, working: bytes) -> None:
    check(tmp_path, Row(Tag.NONE, {"": working, BASE: g1}))


def test_case_38_nor_are_line_ends_when_the_text_changes(tmp_path: pathlib.Path) -> None:
    check(tmp_path, Row(Tag.REGENERATED, {"": b"generated 1\r\n", BASE: g1}, G2, after={"": g2, BASE: g2}))


@pytest.mark.parametrize("generated", [G1, G2])
def test_case_39_a_folder_in_place_of_the_working_copy_is_left_alone(tmp_path: pathlib.Path, generated: str) -> None:
    check(tmp_path, Row(Tag.UNREADABLE, {"": Folder(), BASE: g1}, generated, says=("is a folder",)))


def test_case_40_an_edit_is_compiled_though_the_latest_text_cannot_be_written(tmp_path: pathlib.Path) -> None:
    says = {"says": ("PATCHED", "codegen.cpp.latest")}
    check(tmp_path, Row(before={"": U, BASE: g1, LATEST: Folder()}, **PATCHED_U | says, latest=False))


def test_case_41_a_link_is_followed(tmp_path: pathlib.Path) -> None:
    check(tmp_path, Row(before={"": Link(U), BASE: g1}, **PATCHED_U))


def test_case_41_what_a_link_leads_to_is_written_not_the_link(tmp_path: pathlib.Path) -> None:
    check(tmp_path, Row(Tag.REGENERATED, {"": Link(g1), BASE: g1}, G2, after={"": Link(g2), BASE: g2}))


@pytest.mark.parametrize("working", [g1, U], ids=["generated", "edited"])
def test_case_42_a_file_marked_read_only_is_not_written(tmp_path: pathlib.Path, working: bytes) -> None:
    says = ("cannot update", "read-only")
    check(tmp_path, Row(Tag.CANNOT_UPDATE, {"": ReadOnly(working), BASE: g1}, G2, says=says))


def test_case_43_an_edited_baseline_is_known_by_its_digest(tmp_path: pathlib.Path) -> None:
    row = Row(
        Tag.BASELINE_EDITED,
        {"": U, BASE: b"by hand\n"},
        text=U.decode(),
        after={BASE: g1, ".original.bak": b"by hand\n"},
        says=("BASELINE-EDITED", "PATCHED from"),
    )
    check(tmp_path, row, LATER)


def test_case_43_an_edited_baseline_and_another_text_are_a_conflict(tmp_path: pathlib.Path) -> None:
    after: dict[str, Entry] = {"": g2, BASE: g2, ".bak": U, ".original.bak": b"by hand\n"}
    check(tmp_path, Row(Tag.CONFLICT, {"": U, BASE: b"by hand\n"}, G2, after=after), LATER)


@pytest.mark.parametrize("generated", ["", " \n"], ids=["empty", "blank"])
def test_case_44_an_empty_generated_text_is_an_error_and_touches_nothing(
    tmp_path: pathlib.Path, generated: str
) -> None:
    check(tmp_path, Row(CodegenError, {"": g1, BASE: g1, LATEST: g1}, generated, latest=False))


def test_case_45_an_edit_without_its_kernel_is_refused_in_words(tmp_path: pathlib.Path) -> None:
    row = Row(
        EditError,
        {"": KERNEL.replace("fill", "other").encode(), BASE: KERNEL.encode()},
        KERNEL,
        says=("fill", "/codegen.cpp ", "delete the file to go back"),
        baseline=KERNEL,
    )
    check(tmp_path, row)


# -------------------------------------------------------------------------------------------- between the rows


def test_a_kernel_in_a_comment_is_no_kernel(folder: EditFolder) -> None:
    folder.decide(KERNEL)
    folder.working.write_text(KERNEL.replace("TK_KERNEL(fill)", "// TK_KERNEL(fill)") + "int more;\n")
    with pytest.raises(EditError) as caught:
        folder.decide(KERNEL)
    assert caught.value.code == "TK421" and caught.value.data["tag"] is Tag.PATCHED_INVALID


def test_the_baseline_may_be_brought_up_to_date_by_hand(folder: EditFolder) -> None:
    folder.decide(G1)
    folder.working.write_bytes(U)
    with pytest.raises(EditConflict) as caught:
        folder.decide(G2, Policy.ERROR)
    assert "copy codegen.cpp.latest over codegen.cpp.original" in str(caught.value)
    folder.original.write_bytes(folder.latest.read_bytes())
    for policy in Policy:
        assert folder.decide(G2, policy).tag is Tag.PATCHED


def test_a_copied_baseline_makes_no_edit_of_an_old_generated_text(folder: EditFolder) -> None:
    folder.decide(G1)
    folder.original.write_text(G2)
    decision = folder.decide(G2)
    assert (decision.tag, decision.text, decision.edited) == (Tag.REGENERATED, G2, False)


def test_a_merge_that_comes_out_as_generated_is_no_edit(folder: EditFolder) -> None:
    folder.decide("a\nb\nc\nd\ne\n")
    folder.working.write_text("A\nb\nc\nd\ne\n")
    decision = folder.decide("A\nb\nc\nd\nE\n", Policy.MERGE)
    assert (decision.tag, decision.edited, decision.text) == (Tag.MERGED, False, "A\nb\nc\nd\nE\n")
    assert place(folder, ".bak").read_text() == "A\nb\nc\nd\ne\n"


def test_an_edit_without_a_known_baseline_cannot_be_merged(folder: EditFolder) -> None:
    folder.decide(G1)
    folder.working.write_bytes(U)
    folder.original.write_bytes(X)
    decision = folder.decide(G2, Policy.MERGE)
    assert decision.tag is Tag.CONFLICT
    assert place(folder, ".bak").read_bytes() == U and place(folder, ".original.bak").read_bytes() == X


def test_a_baseline_that_is_a_folder_is_moved_away(folder: EditFolder) -> None:
    folder.decide(G1)
    folder.working.write_bytes(U)
    folder.original.unlink()
    folder.original.mkdir()
    (folder.original / "notes").write_bytes(P)
    decision = folder.decide(G1)
    assert (decision.tag, decision.text) == (Tag.BASELINE_BAD, U.decode())
    assert folder.original.read_text() == G1
    assert (place(folder, ".original.bad") / "notes").read_bytes() == P


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"original": 3}', b"\xff", b"null"], ids=repr)
def test_a_damaged_state_is_as_good_as_none(folder: EditFolder, damage: bytes) -> None:
    folder.decide(G1)
    (folder.path / ".state.json").write_bytes(damage)
    folder.working.write_bytes(U)
    assert folder.decide(G1).tag is Tag.PATCHED
    assert json.loads((folder.path / ".state.json").read_text())["action"] == "PATCHED"


def test_case_49_a_touched_file_is_not_an_edit(folder: EditFolder) -> None:
    folder.decide(G1)
    os.utime(folder.working)
    assert folder.decide(G1) == Decision(Tag.NONE, G1, False)


def test_the_mode_of_the_working_copy_stays(folder: EditFolder) -> None:
    folder.decide(G1)
    folder.working.chmod(0o640)
    folder.decide(G2)
    assert stat.S_IMODE(folder.working.stat().st_mode) == 0o640


def test_a_pipe_in_place_of_the_working_copy_is_not_waited_for(folder: EditFolder) -> None:
    folder.decide(G1)
    folder.working.unlink()
    os.mkfifo(folder.working)
    assert folder.decide(G1).tag is Tag.UNREADABLE


def test_a_link_that_leads_nowhere_is_filled(folder: EditFolder) -> None:
    folder.decide(G1)
    folder.working.unlink()
    target = folder.path.parent / "target.cu"
    folder.working.symlink_to(target)
    assert folder.decide(G1).tag is Tag.RESTORED
    assert target.read_text() == G1 and folder.working.is_symlink()


# ------------------------------------------------------------------------------------------------- the editor


def test_what_the_notebook_writes_is_compiled(folder: EditFolder) -> None:
    assert folder.decide(KERNEL).tag is Tag.INIT
    text = KERNEL.replace("= a;", f"= a + {random.randrange(100)};")
    assert folder.write_edit(text) == ()
    assert folder.holds_edit()
    decision = folder.decide(KERNEL)
    assert (decision.tag, decision.text, decision.edited) == (Tag.PATCHED, text, True)


def test_an_edit_of_ones_own_is_replaced_without_ado(folder: EditFolder) -> None:
    folder.decide(G1)
    seen = G1
    for number in range(3):
        text = f"edit {number}\n"
        assert folder.write_edit(text, seen) == ()
        seen = text
    assert contents(folder).keys() == {"", BASE, LATEST}


@pytest.mark.parametrize("foreign", [U, b"caf\xe9\n", Folder()], ids=["text", "not UTF-8", "folder"])
def test_somebody_elses_work_is_put_away_first(folder: EditFolder, foreign: Entry) -> None:
    folder.decide(G1)
    folder.working.unlink()
    put(folder, "", foreign)
    (message,) = folder.write_edit("mine\n", seen=G1)
    assert str(place(folder, ".bak")) in message
    assert entry_at(place(folder, ".bak")) == foreign
    assert folder.working.read_text() == "mine\n"


def test_there_is_nothing_to_edit_before_a_kernel(folder: EditFolder) -> None:
    with pytest.raises(EditError) as caught:
        folder.write_edit("text\n")
    assert caught.value.code == "TK423" and contents(folder) == {}
    with pytest.raises(EditError):
        folder.revert()


def test_reverting_keeps_the_edit(folder: EditFolder) -> None:
    folder.decide(G1)
    folder.write_edit(U.decode())
    (message,) = folder.revert()
    assert message.startswith("REVERTED ") and str(place(folder, ".bak")) in message
    assert contents(folder) == {"": g1, BASE: g1, LATEST: g1, ".bak": U}
    assert not folder.holds_edit()
    assert folder.decide(G1).tag is Tag.NONE
    assert folder.revert() == ()


def test_reverting_goes_to_what_was_generated_last(folder: EditFolder) -> None:
    folder.decide(G1)
    folder.write_edit(U.decode())
    assert folder.decide(G2, Policy.KEEP).tag is Tag.KEPT
    folder.revert()
    assert folder.decide(G2, Policy.KEEP) == Decision(Tag.NONE, G2, False)


@pytest.mark.parametrize("entry", [b"", b"caf\xe9\n", Folder()], ids=["empty", "not UTF-8", "folder"])
def test_reverting_heals_whatever_is_there(folder: EditFolder, entry: Entry) -> None:
    folder.decide(G1)
    folder.working.unlink()
    put(folder, "", entry)
    folder.revert()
    assert folder.working.read_bytes() == g1
    assert folder.decide(G1).tag is Tag.NONE
    if entry:
        assert entry_at(place(folder, ".bak")) == entry


def test_a_read_only_edit_is_neither_overwritten_nor_reverted(folder: EditFolder) -> None:
    folder.decide(G1)
    folder.working.write_bytes(U)
    folder.working.chmod(0o444)
    for attempt in (lambda: folder.write_edit("mine\n", U.decode()), folder.revert):
        with pytest.raises(EditError, match="read-only"):
            attempt()
        assert folder.working.read_bytes() == U


# --------------------------------------------------------------------------------------------------- the sink


def test_a_sink_answers_an_edit_and_remembers_the_decision(folder: EditFolder) -> None:
    sink = EditSink(folder)
    assert sink.decision is None
    assert Fanout([sink]).codegen(KERNEL) is None
    assert sink.decision is not None and sink.decision.tag is Tag.INIT
    text = KERNEL.replace("= a;", "= 2 * a;")
    folder.write_edit(text)
    assert Fanout([sink]).codegen(KERNEL) == Edited(text, str(folder.working))
    assert sink.decision.tag is Tag.PATCHED


def test_a_sink_answers_nothing_when_the_edit_became_what_is_generated(folder: EditFolder) -> None:
    sink = EditSink(folder)
    sink.codegen(G1)
    folder.write_edit(G2)
    assert sink.codegen(G2) is None
    assert sink.decision is not None and sink.decision.tag is Tag.SYNCED


# -------------------------------------------------------------------------------------------------- the store

SOFTMAX = Identity("Softmax", "m, n=1024", "sm_90a", "cpu")


def test_a_kernel_has_the_same_folder_in_every_process(tmp_path: pathlib.Path) -> None:
    other = Identity("Scan", "", "sm_90a", "cpu")
    first = EditStore(tmp_path)
    places = [first.folder(kernel).path for kernel in (SOFTMAX, other, SOFTMAX)]
    assert places == [tmp_path, tmp_path / folder_name(other), tmp_path]
    program = (
        "import pathlib, sys; from tilekit.tools.lower_trace.edits import *; "
        f"print(EditStore(pathlib.Path({str(tmp_path)!r})).folder({SOFTMAX!r}).path)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(tmp_path)


@pytest.mark.parametrize("changed", ["script", "specialization", "target", "device"])
def test_everything_but_the_text_makes_another_kernel(tmp_path: pathlib.Path, changed: str) -> None:
    from dataclasses import replace

    other = replace(SOFTMAX, **{changed: "another"})
    assert re.fullmatch(r"Softmax-[0-9a-f]{8}", folder_name(SOFTMAX)) and folder_name(other) != folder_name(SOFTMAX)
    store = EditStore(tmp_path)
    assert store.folder(SOFTMAX).path != store.folder(other).path


def test_case_48_two_kernels_of_a_script_keep_their_edits_apart(tmp_path: pathlib.Path) -> None:
    other = Identity("Scan", "", "sm_90a", "cpu")
    sources = {SOFTMAX: KERNEL, other: KERNEL.replace("fill", "scan")}
    for run in range(4):
        store = EditStore(tmp_path)
        folders = {kernel: store.folder(kernel) for kernel in sources}
        tags = {kernel: folders[kernel].decide(text).tag for kernel, text in sources.items()}
        if run:
            assert tags == {SOFTMAX: Tag.NONE, other: Tag.PATCHED}
        else:
            folders[other].working.write_text(sources[other].replace("= a;", "= 2 * a;"))


def test_the_first_kernel_of_a_run_is_where_people_look(tmp_path: pathlib.Path) -> None:
    """A script that was changed to another shape has its new kernel at the promised place."""
    EditStore(tmp_path).folder(SOFTMAX).decide(G1)
    wider = Identity("Softmax", "m, n=2048", "sm_90a", "cpu")
    folder = EditStore(tmp_path).folder(wider)
    assert folder.path == tmp_path
    assert folder.decide(G2).tag is Tag.REGENERATED


def test_a_kernel_with_an_edit_keeps_its_place(tmp_path: pathlib.Path) -> None:
    folder = EditStore(tmp_path).folder(SOFTMAX)
    folder.decide(G1)
    folder.working.write_bytes(U)
    other = Identity("Scan", "", "sm_90a", "cpu")
    beside = EditStore(tmp_path).folder(other)
    assert beside.path == tmp_path / folder_name(other)
    beside.decide(G2)
    beside.working.write_bytes(X)
    folder.revert()
    assert EditStore(tmp_path).folder(other).path == beside.path, "its own edit lies there"
    assert EditStore(tmp_path).folder(SOFTMAX).decide(G1).tag is Tag.NONE


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"script": "Softmax"}', b"\xff\xfe"])
def test_an_edit_is_found_also_where_nobody_knows_whose_it_is(tmp_path: pathlib.Path, damage: bytes) -> None:
    folder = EditStore(tmp_path).folder(SOFTMAX)
    folder.decide(G1)
    folder.working.write_bytes(U)
    (tmp_path / ".kernel.json").write_bytes(damage)
    decision = EditStore(tmp_path).folder(SOFTMAX).decide(G1)
    assert (decision.tag, decision.text) == (Tag.PATCHED, U.decode())


@pytest.mark.parametrize(
    "name",
    [
        "../../x</script><img onerror>",
        "/etc/passwd",
        "a" * 300,
        "..",
        ".",
        "",
        ".state.json",
        "a\0b",
        "a\nb",
        "-rf",
        "naïve🙂",
        "\udce9",
    ],
    ids=ascii,
)
def test_no_name_leaves_the_folder(tmp_path: pathlib.Path, name: str) -> None:
    root = tmp_path / "root"
    store = EditStore(root)
    store.folder(SOFTMAX).decide(G1)
    folder = store.folder(Identity(name, name, name, name))
    assert folder.decide(G2).tag is Tag.INIT
    assert folder.working.resolve().parent.parent == root.resolve()
    assert os.listdir(tmp_path) == ["root"]
    assert safe_name(name) and not safe_name(name).startswith((".", "-"))


# ------------------------------------------------------------------------------------------- what may go wrong


def below_a_file(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "file").write_text("")
    return tmp_path / "file" / "kernel"


@pytest.mark.parametrize("where", ["/proc/nope/kernel", "file/kernel"])
def test_a_folder_that_cannot_be_made_costs_one_message(tmp_path: pathlib.Path, where: str) -> None:
    (tmp_path / "file").touch()
    decision = EditFolder(tmp_path / where).decide(G1)
    assert (decision.tag, decision.text, decision.edited) == (Tag.CANNOT_UPDATE, G1, False)
    (warning,) = decision.messages
    assert "codegen.cpp: cannot write " in warning and where.split("/")[-2] in warning and "(E" in warning


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_an_edit_in_a_folder_that_cannot_be_written_is_used(folder: EditFolder) -> None:
    folder.decide(G1)
    folder.working.write_bytes(U)
    folder.path.chmod(0o555)
    try:
        assert folder.decide(G1).text == U.decode()
        conflict = folder.decide(G2)
    finally:
        folder.path.chmod(0o755)
    assert (conflict.tag, conflict.text) == (Tag.CANNOT_UPDATE, G2)
    assert folder.working.read_bytes() == U


def full_disk(descriptor: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("policy", list(Policy), ids=lambda policy: policy.value)
def test_a_full_disk_leaves_every_file_as_it_is(
    folder: EditFolder, policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.decide("a\nb\nc\n")
    folder.working.write_bytes(b"a\nb\nC!\n")
    before = contents(folder)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full_disk)
        try:
            decision = folder.decide("A\nb\nc\n", policy)
        except EditConflict:
            assert policy is Policy.ERROR
        else:
            assert sum("No space left on device" in message for message in decision.messages) == 1
            assert decision.tag is (Tag.KEPT if policy is Policy.KEEP else Tag.CANNOT_UPDATE)
        assert contents(folder) == before
        with pytest.raises(EditError, match="No space left on device"):
            folder.write_edit("more\n")
        with pytest.raises(EditError, match="No space left on device"):
            folder.revert()
    assert contents(folder) == before
    assert folder.decide("a\nb\nc\n").tag is Tag.PATCHED


def test_a_limit_on_file_sizes_is_met_like_a_full_disk(folder: EditFolder) -> None:
    folder.decide(G1)
    folder.working.write_bytes(U)
    before = contents(folder)

    def limited(answer: "multiprocessing.Queue[Decision]") -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4, 4))
        answer.put(EditFolder(folder.path).decide(G2 * 100))

    decision = in_child(limited)
    assert (decision.tag, decision.text) == (Tag.CANNOT_UPDATE, G2 * 100)
    assert contents(folder) == before


FORK = multiprocessing.get_context("fork")


def in_child(work: "Callable[[multiprocessing.Queue[Decision]], None]") -> Decision:
    answer: multiprocessing.Queue[Decision] = FORK.Queue()
    child = FORK.Process(target=work, args=(answer,))
    child.start()
    found = answer.get(timeout=30)
    child.join()
    return found


def test_case_59_whoever_waits_too_long_reads_and_does_not_write(
    folder: EditFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edits, "PATIENCE_S", 0.2)
    folder.decide(G1)
    folder.working.write_bytes(U)
    before = contents(folder)
    with files.locked(folder.path, 1.0):
        begin = time.monotonic()
        decision = folder.decide(G1)
        assert 0.2 <= time.monotonic() - begin < 20.0
        assert (decision.tag, decision.text) == (Tag.PATCHED, U.decode())
        assert "another process holds" in decision.messages[-1]
        assert folder.decide(G2).tag is Tag.CANNOT_UPDATE
        with pytest.raises(EditError, match="another process holds"):
            folder.write_edit("mine\n")
    assert contents(folder) == before


def test_case_60_a_process_that_dies_lets_go(folder: EditFolder) -> None:
    program = (
        "import pathlib, time\n"
        "from tilekit.tools.lower_trace import files\n"
        f"with files.locked(pathlib.Path({str(folder.path)!r}), 1.0):\n"
        "    print('held', flush=True)\n"
        "    time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        holder.kill()
        holder.wait()
    assert folder.decide(G1).tag is Tag.INIT


def compile_often(path: pathlib.Path, generated: str, times: int, failures: "multiprocessing.Queue[str]") -> None:
    folder = EditFolder(path)
    for _ in range(times):
        decision = folder.decide(generated)
        if decision.text != generated or decision.edited or decision.tag in (Tag.CONFLICT, Tag.INIT_BACKUP):
            failures.put(f"{decision}")


@pytest.mark.parametrize("times", [60, pytest.param(500, marks=pytest.mark.slow)])
def test_case_59_two_processes_with_different_texts_never_see_an_edit(
    folder: EditFolder, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edits, "PATIENCE_S", 60.0)  # on a busy disk the others' turns may take long
    failures: multiprocessing.Queue[str] = FORK.Queue()
    children = [FORK.Process(target=compile_often, args=(folder.path, text, times, failures)) for text in (G1, G2)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert failures.empty(), failures.get()
    assert contents(folder).keys() == {"", BASE, LATEST}


def test_threads_of_a_process_do_not_mix_either(folder: EditFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edits, "PATIENCE_S", 60.0)
    failures: multiprocessing.Queue[str] = FORK.Queue()
    texts = [f"generated {number}\n" for number in range(4)]
    threads = [threading.Thread(target=compile_often, args=(folder.path, text, 15, failures)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures.empty(), failures.get()


def test_an_editor_that_saves_while_we_decide_loses_nothing(
    folder: EditFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.decide(G1)
    saved = iter([U])
    write_state = EditFolder._write_state

    def save_first(self: EditFolder, state: State) -> None:
        for text in saved:
            folder.working.write_bytes(text)
        write_state(self, state)

    monkeypatch.setattr(EditFolder, "_write_state", save_first)
    decision = folder.decide(G2)
    assert decision.tag is Tag.CONFLICT
    assert place(folder, ".bak").read_bytes() == U


def test_a_child_of_fork_does_not_keep_the_lock(folder: EditFolder) -> None:
    with files.locked(folder.path, 1.0):
        child = os.fork()
        if child == 0:
            time.sleep(30)
            os._exit(0)
    try:
        assert not [m for m in folder.decide(G1).messages if "another process" in m]
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


# ------------------------------------------------------------------------------------------------- being killed


class Killed(BaseException):
    """The process is dead: from here on, nothing that it does reaches a file."""


def kill_at(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """Die at this many things done to files."""
    done = 0

    def dying(do: Callable[..., object]) -> Callable[..., object]:
        def act(*arguments: object, **more: object) -> object:
            nonlocal done
            if done >= step:
                raise Killed
            done += 1
            return do(*arguments, **more)

        return act

    for name in ("fsync", "chmod", "replace", "rename", "unlink"):
        monkeypatch.setattr(os, name, dying(getattr(os, name)))


@dataclass(frozen=True)
class Story:
    """Files before, what is generated when the process dies, and whether an edit is at stake."""

    working: bytes | None
    original: bytes | None
    generated: str
    policy: Policy = Policy.REGENERATE


STORIES = {
    "init": Story(None, None, G1),
    "regenerated": Story(g1, g1, G2),
    "synced": Story(g2, g1, G2),
    "conflict": Story(U, g1, G2),
    "backup": Story(X, None, G1),
    "merged": Story(b"generated 1\n-\nU\n", b"generated 1\n-\n-\n", "generated 2\n-\n-\n", Policy.MERGE),
    "restored": Story(None, g1, G2),
    "baseline bad": Story(U, b"\xff\xfe", G1),
    "revert": Story(U, g1, G1),
    "write": Story(U, g1, G1),
}


def prepare(path: pathlib.Path, story: Story) -> EditFolder:
    path.mkdir()
    folder = EditFolder(path)
    for suffix, content in (("", story.working), (BASE, story.original)):
        if content is not None:
            put(folder, suffix, content)
    if story.original is not None:
        baseline = G1 if story.original == b"\xff\xfe" else story.original.decode()
        remember(folder, baseline)
        put(folder, LATEST, baseline.encode())
    return folder


def act(folder: EditFolder, name: str, story: Story) -> None:
    match name:
        case "revert":
            folder.revert()
        case "write":
            folder.write_edit("typed later\n", seen="something else")
        case _:
            folder.decide(story.generated, story.policy)


@pytest.mark.parametrize("name", list(STORIES))
def test_a_kill_between_any_two_steps_loses_nothing(
    tmp_path: pathlib.Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # the disk is not what is tested here
    story = STORIES[name]
    generated = {story.generated.encode(), story.original, g1, g2}
    typed = story.working if story.working is not None and story.working not in generated else None
    for step in range(60):
        folder = prepare(tmp_path / str(step), story)
        survived = True
        with monkeypatch.context() as patch:
            kill_at(patch, step)
            try:
                act(folder, name, story)
            except Killed:
                survived = False
        assert typed is None or typed in contents(folder).values(), f"lost at step {step}"
        check_after_a_kill(folder, story, typed)
        if survived:
            assert step > 1
            return
    raise AssertionError("it never ended")


def check_after_a_kill(folder: EditFolder, story: Story, typed: bytes | None) -> None:
    """The next run, also one with yet another text, compiles nothing that neither it nor a person wrote."""
    newer = story.generated.replace("generated", "newly generated")
    for generated in (story.generated, newer):
        decision = folder.decide(generated, story.policy)
        assert not [file for file in os.listdir(folder.path) if file.endswith("draft")]
        if not decision.edited:
            assert decision.text == generated
        elif story.policy is Policy.MERGE:
            assert decision.text == generated.replace("-\n-\n", "-\nU\n")
        else:
            assert decision.text.encode() in (typed, b"typed later\n")
        if typed is None:
            assert decision.tag not in (Tag.CONFLICT, Tag.PATCHED, Tag.MERGED)
            assert ".bak" not in contents(folder)
        else:
            assert any(typed == content or decision.text.encode() == content for content in contents(folder).values())
            backups = [entry for suffix, entry in contents(folder).items() if ".bak" in suffix]
            assert backups.count(typed) <= 2


def decide_for_ever(path: pathlib.Path) -> None:
    folder = EditFolder(path)
    number = 0
    while True:
        number += 1
        folder.decide(f"generated {number}\n")
        folder.write_edit(f"typed {number}\n", seen=f"generated {number}\n")


@pytest.mark.parametrize("trials", [6, pytest.param(200, marks=pytest.mark.slow)])
def test_a_kill_at_any_time_leaves_whole_files(tmp_path: pathlib.Path, trials: int) -> None:
    for trial in range(trials):
        path = tmp_path / str(trial)
        child = FORK.Process(target=decide_for_ever, args=(path,))
        child.start()
        time.sleep(random.uniform(0.02, 0.2))
        assert child.pid is not None
        os.kill(child.pid, signal.SIGKILL)
        child.join()
        folder = EditFolder(path)
        numbers: set[int] = set()
        for suffix, entry in contents(folder).items() if path.exists() else ():
            assert isinstance(entry, bytes)
            word, number = entry.decode().rsplit(" ", 1)
            assert word in ("generated", "typed") and number.endswith("\n"), f"{suffix} is torn"
            if word == "typed":
                numbers.add(int(number))
        newest = max(numbers, default=0)
        assert numbers in (set(range(1, newest + 1)), set(range(1, newest))), "an edit was lost"
        assert folder.decide("generated 0\n").text in ("generated 0\n", f"typed {newest}\n")
