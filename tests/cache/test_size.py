# SPDX-License-Identifier: Apache-2.0
import json
import os
import time
from pathlib import Path

import pytest

from tilekit.cache import size
from tilekit.cache.programs import ProgramCache
from tilekit.cache.scripts import ScriptFolder
from tilekit.cache.specializations import SpecializationCache


def publish(root: Path, *keys: str, nbytes: int = 1000, limit: int = 10**9) -> None:
    for age, key in enumerate(reversed(keys)):
        ProgramCache(root, limit).publish(key, {"module/lib.so": b"x" * nbytes})
        last_used(root, key, age)


def last_used(root: Path, key: str, days_ago: float) -> None:
    when = time.time() - 86400 * days_ago
    os.utime(root / "programs" / key / "entry.json", (when, when))


def keys(root: Path) -> set[str]:
    return {path.name for path in (root / "programs").iterdir()}


def test_what_was_not_used_for_longest_goes_first(tmp_path: Path) -> None:
    publish(tmp_path, "a", "b", "c", "d")
    gone = size.collect(tmp_path, 3000)
    assert [entry.path.name for entry in gone] == ["a", "b"]
    assert keys(tmp_path) == {"c", "d"}


def test_finding_an_entry_is_using_it(tmp_path: Path) -> None:
    publish(tmp_path, "a", "b", "c")
    assert ProgramCache(tmp_path).lookup("a") is not None
    size.collect(tmp_path, 3000)
    assert "a" in keys(tmp_path) and "b" not in keys(tmp_path)


def test_a_specialization_counts_and_goes_like_a_program(tmp_path: Path) -> None:
    publish(tmp_path, "a")
    SpecializationCache(tmp_path).publish("s", {}, 0, "x" * 5000, {})
    old = time.time() - 10**6
    os.utime(tmp_path / "specializations" / "s" / "manifest.json", (old, old))
    assert [entry.path.name for entry in size.collect(tmp_path, 4000)] == ["s"]


def test_publishing_beyond_the_limit_makes_room(tmp_path: Path) -> None:
    publish(tmp_path, "a", "b", "c")
    last_used(tmp_path, "b", 9)
    ProgramCache(tmp_path, 4100).publish("d", {"module/lib.so": b"x" * 1000})
    assert keys(tmp_path) == {"a", "c", "d"}
    assert json.loads((tmp_path / "size.json").read_text())["bytes"] <= 4100


@pytest.mark.parametrize("ledger", ["", "null", '{"bytes": -1}', '{"bytes": "many"}'])
def test_a_lost_account_is_taken_again(tmp_path: Path, ledger: str) -> None:
    publish(tmp_path, "a", "b")
    (tmp_path / "size.json").write_text(ledger)
    publish(tmp_path, "c")
    counted = sum(entry.nbytes for entry in size.entries(tmp_path))
    assert json.loads((tmp_path / "size.json").read_text()) == {"bytes": counted}


def test_a_clock_that_goes_backwards_loses_nothing(tmp_path: Path) -> None:
    publish(tmp_path, "a", "b")
    last_used(tmp_path, "a", -1000)
    assert size.collect(tmp_path, 10**6) == []
    assert ProgramCache(tmp_path).lookup("a") is not None


def test_what_dead_processes_left_goes_and_what_is_being_written_stays(tmp_path: Path) -> None:
    publish(tmp_path, "a")
    for name, age in ((".dead-1-01234567", 7200), (".alive-2-89abcdef", 5), (".venv", 7200), ("mine", 7200)):
        (tmp_path / "programs" / name).mkdir()
        when = time.time() - age
        os.utime(tmp_path / "programs" / name, (when, when))
    size.collect(tmp_path, 0)
    assert keys(tmp_path) == {".alive-2-89abcdef", ".venv", "mine"}, "what is not of ours is left alone"


def test_links_to_what_is_gone_go_too_and_results_of_tuning_stay(tmp_path: Path) -> None:
    publish(tmp_path, "a", "b")
    folders = [ScriptFolder(tmp_path, name, "d16", "12345678") for name in ("one", "other", "tuned")]
    for folder, key in zip(folders, "aba", strict=True):
        folder.describe({}, [], "")
        folder.link(0, key)
    (folders[2].path / "dispatch_table.json").write_text("{}")
    last_used(tmp_path, "a", 9)
    size.collect(tmp_path, 2000)
    assert keys(tmp_path) == {"b"}
    assert [folder.path.exists() for folder in folders] == [False, True, True]
    assert list((folders[2].path / "programs").iterdir()) == []


def test_an_empty_or_missing_cache_has_nothing_to_collect(tmp_path: Path) -> None:
    assert size.collect(tmp_path / "nowhere", 0) == []
    assert list(size.entries(tmp_path)) == []
