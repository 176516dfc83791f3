# SPDX-License-Identifier: Apache-2.0
import json
import os
from pathlib import Path

from tilekit.cache.scripts import ScriptFolder, snake_case


def test_a_link_leads_to_the_program_wherever_the_cache_is_moved(tmp_path: Path) -> None:
    folder = ScriptFolder(tmp_path / "cache", "scale", "64-d16", "0123456789")
    (tmp_path / "cache" / "programs" / "abc").mkdir(parents=True)
    folder.link(3, "abc")
    assert folder.path == tmp_path / "cache" / "scripts" / "scale" / "64-d16-01234567"
    (tmp_path / "cache").rename(tmp_path / "moved")
    link = tmp_path / "moved" / "scripts" / "scale" / "64-d16-01234567" / "programs" / "3"
    assert link.resolve() == tmp_path / "moved" / "programs" / "abc"


def test_a_link_follows_the_latest_program(tmp_path: Path) -> None:
    folder = ScriptFolder(tmp_path, "scale", "", "0123456789")
    for key in ("old", "new", "new"):
        folder.link(0, key)
    assert os.readlink(folder.path / "programs" / "0") == "../../../../programs/new"
    assert [path.name for path in (folder.path / "programs").iterdir()] == ["0"]


def test_a_folder_says_what_it_is_about(tmp_path: Path) -> None:
    folder = ScriptFolder(tmp_path, "scale", "a/b c", "0123456789")
    assert not folder.is_described
    folder.describe({"space": {"block": ["64", "128"]}}, ["block=64", "block=128"], "class Scale: …")
    folder.failed("scheduling", 1, "LanguageError: …")
    assert folder.is_described
    assert (folder.path / "schedules.txt").read_text() == "0: block=64\n1: block=128\n"
    assert json.loads((folder.path / "meta.json").read_text())["space"] == {"block": ["64", "128"]}
    assert (folder.path / "failed" / "scheduling" / "1.txt").read_text() == "LanguageError: …"
    assert folder.path.parent.parent == tmp_path / "scripts"


def test_a_cache_that_cannot_be_written_is_no_reason_to_stop(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    folder = ScriptFolder(tmp_path / "file", "scale", "", "0123456789")
    folder.describe({}, [], "")
    folder.link(0, "abc")
    folder.failed("building", 0, "")
    assert not folder.is_described


def test_class_names_become_folder_names() -> None:
    assert [snake_case(name) for name in ("Scale", "VectorAdd", "MatmulWGMMA")] == [
        "scale",
        "vector_add",
        "matmul_w_g_m_m_a",
    ]
