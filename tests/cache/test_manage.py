# SPDX-License-Identifier: Apache-2.0
"""The cache from Python and from a terminal."""

import sys
from pathlib import Path

import pytest

from tests.caches import in_force
from tilekit import __main__ as command
from tilekit import cache
from tilekit.cache import fingerprint
from tilekit.cache.programs import ProgramCache
from tilekit.cache.scripts import ScriptFolder
from tilekit.cache.specializations import SpecializationCache
from tilekit.diag import ConfigError

OPTIONS = b"target = sm_90a\ndevice = cpu\n"


@pytest.fixture
def root(tmp_path: Path):
    """A cache in force, with two programs, one of them of a script."""
    folder = tmp_path / "cache"
    for key in ("aaa", "bbb"):
        ProgramCache(folder).publish(key, {"options.txt": OPTIONS, "module/lib.so": b"x" * 2000})
    manifest = {"script": "Scale", "specialization": "d16", "schedules": ["{}"], "inputs": {"global FACTOR": "int 2"}}
    SpecializationCache(folder).publish("ccc", manifest, 0, "@kernel …", {})
    script = ScriptFolder(folder, "scale", "d16", "0123456789")
    script.describe({}, ["block=64"], "")
    script.link(0, "aaa")
    with in_force(folder):
        yield folder


def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    monkeypatch.setattr(sys, "argv", ["tilekit", "cache", *arguments])
    return command.main(), capsys.readouterr().out


def test_ls_names_scripts_schedules_targets_and_sizes(root, monkeypatch, capsys):
    listing = cache.ls()
    assert {(row.key, row.script, row.schedule, row.target, row.device) for row in listing.rows} == {
        ("aaa", "scale", "block=64", "sm_90a", "cpu"),
        ("bbb", "?", "", "sm_90a", "cpu"),
    }
    code, text = run(monkeypatch, capsys, "ls")
    assert code == 0 and text == f"{listing}\n"
    assert text.startswith(f"{root}: 2 programs, 1 specialization, ")
    assert "scale(block=64)" in text and "2." in text and "kB" in text


def test_a_program_that_a_person_edited_is_named_after_what_it_was(root, monkeypatch, capsys):
    for key, generated in (("ddd", "aaa"), ("eee", "gone")):
        options = OPTIONS + f"edited = the editor\ngenerated = {generated}\n".encode()
        ProgramCache(root).publish(key, {"options.txt": options})
    rows = {row.key: row for row in cache.ls().rows}
    assert (rows["ddd"].script, rows["ddd"].schedule) == ("scale", "block=64, edited")
    assert (rows["eee"].script, rows["eee"].schedule) == ("?", "edited")
    _, text = run(monkeypatch, capsys, "explain", "dd")
    assert "  scale(block=64, edited)\n" in text


def test_explain_says_what_an_entry_was_made_of(root, monkeypatch, capsys):
    code, text = run(monkeypatch, capsys, "explain", "cc")
    assert code == 0 and "global FACTOR: int 2" in text and "Scale d16, 1 schedule;" in text
    _, text = run(monkeypatch, capsys, "explain", "aa")
    assert "  scale(block=64)\n" in text and "target = sm_90a" in text and "module/lib.so" in text
    _, text = run(monkeypatch, capsys, "explain", "*")
    assert "ccc" in text and "aaa" in text
    for key in ("zzz", "", "../..", "[a-z]"):
        code, text = run(monkeypatch, capsys, "explain", key)
        assert (code, text) == (1, f"nothing in {root} has a key that begins with {key!r}\n")


def test_gc_obeys_the_limit_that_it_is_given(root, monkeypatch, capsys):
    assert cache.gc() == []
    assert cache.gc(10**6, root) == []
    code, text = run(monkeypatch, capsys, "gc", "--limit", "0")
    assert code == 0 and text.startswith("3 entries deleted, ")
    assert cache.ls().rows == ()


def test_a_limit_that_is_no_number_of_bytes_deletes_nothing(root, monkeypatch, capsys):
    for limit in ("-5", "1e9", "all"):
        with pytest.raises(SystemExit):
            run(monkeypatch, capsys, "gc", "--limit", limit)
        assert f"'{limit}' is no whole number from 0 on" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="cache_limit takes a whole number, at least 0, not -5"):
        cache.gc(-5)
    assert len(cache.ls().rows) == 2


def test_a_variable_that_means_nothing_is_told_in_two_lines(root, monkeypatch, capsys):
    monkeypatch.setenv("TILEKIT_CACHE_LIMIT", "much")
    monkeypatch.setattr(sys, "argv", ["tilekit", "cache", "ls"])
    assert command.main() == 1
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "ConfigError TK903: TILEKIT_CACHE_LIMIT='much' in the environment means nothing here"
    assert told[1:] == ["  help: set it to a whole number, at least 0, or unset it"]


def test_verify_deletes_what_is_damaged_and_nothing_else(root, monkeypatch, capsys):
    assert cache.verify() == []
    used = (root / "programs" / "bbb" / "entry.json").stat().st_mtime
    (root / "programs" / "aaa" / "module" / "lib.so").write_bytes(b"y" * 2000)
    (root / "specializations" / "ccc" / "0.txt").write_text("another program")
    code, text = run(monkeypatch, capsys, "verify")
    assert code == 1 and text.startswith("2 damaged entries deleted\n")
    assert {row.key for row in cache.ls().rows} == {"bbb"}
    assert (root / "programs" / "bbb" / "entry.json").stat().st_mtime == used, "looking is not using"
    assert run(monkeypatch, capsys, "verify") == (0, "0 damaged entries deleted\n")


def test_clear_deletes_what_is_ours_alone(root, monkeypatch, capsys):
    mine = [root / name for name in ("notes.txt", "scripts/deploy/now.py", "programs/mine/main.c", "compiler/Makefile")]
    for path in mine:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    fingerprint.stages(Path(cache.__file__).parent, root)
    code, _ = run(monkeypatch, capsys, "clear")
    assert code == 0
    assert sorted(path for path in root.rglob("*") if not path.is_dir()) == sorted(mine)
    assert {path.name for path in root.iterdir()} == {"notes.txt", "scripts", "programs", "compiler"}


def test_another_folder_can_be_named(root, tmp_path, monkeypatch, capsys):
    code, text = run(monkeypatch, capsys, "--dir", str(tmp_path / "other"), "ls")
    assert (code, text) == (0, f"{tmp_path / 'other'}: 0 programs, 0 specializations, 0 B\n")
    assert cache.ls(root).rows and not cache.ls(tmp_path / "other").rows
