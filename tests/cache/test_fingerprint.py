# SPDX-License-Identifier: Apache-2.0
import collections
import json
import os
import secrets
import time
from pathlib import Path

import pytest

from tilekit.cache import fingerprint
from tilekit.cache.fingerprint import Tree, stages

FILES = (
    "drivers.py",
    "include/tk/tk.h",
    "ir/inst.py",
    "ir/tools/verifier.py",
    "lang/transpiler.py",
    "notebook/magic.py",
)
MEMBERS = ("ir", "include", "drivers.py")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    for name in FILES:
        place = tmp_path / "package" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(secrets.token_hex(8))
    return tmp_path / "package"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def digest(package: Path) -> str:
    return Tree(package).digest(MEMBERS)


def index(root: Path) -> Path:
    (only,) = (root / "compiler").iterdir()
    return only


class Watch:
    """Counts what is looked at and read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, package: Path) -> None:
        self.looked: collections.Counter[str] = collections.Counter()
        self.read: list[str] = []
        stat, read_bytes = os.stat, Path.read_bytes

        def counted_stat(path, *args, **kwargs):
            if str(path).endswith((".py", ".h")):
                self.looked[os.path.relpath(path, package)] += 1
            return stat(path, *args, **kwargs)

        def counted_read(path):
            if path.suffix != ".json":
                self.read.append(str(path.relative_to(package)))
            return read_bytes(path)

        monkeypatch.setattr(os, "stat", counted_stat)
        monkeypatch.setattr(Path, "read_bytes", counted_read)


def test_the_same_files_have_the_same_digest(package: Path) -> None:
    assert digest(package) == digest(package)


@pytest.mark.parametrize("name", ["ir/tools/verifier.py", "include/tk/tk.h", "drivers.py"])
def test_an_edit_changes_the_digest(package: Path, name: str) -> None:
    before = digest(package)
    (package / name).write_text(secrets.token_hex(8))
    assert digest(package) != before


def test_adding_removing_and_renaming_a_file_change_it(package: Path) -> None:
    digests = [digest(package)]
    (package / "ir" / "new.py").write_text("")
    digests.append(digest(package))
    (package / "ir" / "new.py").rename(package / "ir" / "newer.py")
    digests.append(digest(package))
    assert len(set(digests)) == 3
    (package / "ir" / "newer.py").unlink()
    assert digest(package) == digests[0]


def test_what_is_no_member_or_no_source_does_not_count(package: Path) -> None:
    before = digest(package)
    (package / "notebook" / "magic.py").write_text("changed")
    (package / "ir" / "__pycache__").mkdir()
    (package / "ir" / "__pycache__" / "inst.cpython-311.pyc").write_bytes(b"x")
    assert digest(package) == before


@pytest.mark.parametrize(
    ("name", "frontend", "backend"),
    [
        ("lang/transpiler.py", True, False),
        ("ir/inst.py", True, True),
        ("include/tk/tk.h", False, True),
        ("drivers.py", False, True),
        ("notebook/magic.py", False, False),
    ],
)
def test_an_edit_reaches_the_stages_that_it_is_part_of(package, root, name, frontend, backend) -> None:
    before = stages(package, root)
    (package / name).write_text(secrets.token_hex(8))
    after = stages(package, root)
    assert (after.frontend != before.frontend, after.backend != before.backend) == (frontend, backend)


def test_a_file_is_looked_at_once_for_both_stages_and_read_only_if_it_is_new(package, root, monkeypatch) -> None:
    stages(package, root)
    (package / "ir" / "inst.py").write_text(secrets.token_hex(8))
    watch = Watch(monkeypatch, package)
    stages(package, root)
    looked = {name: count for name, count in watch.looked.items() if (package / name).exists()}
    assert looked == {name: 1 for name in FILES if name != "notebook/magic.py"}, "nobody has asked for pages"
    assert watch.read == ["ir/inst.py"]
    stages(package, root)
    assert watch.read == ["ir/inst.py"], "the second time it is known"


def test_one_touched_file_costs_the_nodes_above_it(package: Path, root: Path) -> None:
    stages(package, root)
    before = json.loads(index(root).read_text())["nodes"]
    (package / "ir" / "tools" / "verifier.py").write_text(secrets.token_hex(8))
    stages(package, root)
    after = json.loads(index(root).read_text())["nodes"]
    changed = {name for name in after if "|" not in name and after[name] != before[name]}
    assert changed == {"ir", "ir/tools", "ir/tools/verifier.py"}


def test_an_old_modification_time_does_not_hide_an_edit(package: Path, root: Path) -> None:
    before, place = stages(package, root), package / "drivers.py"
    state = place.stat()
    place.write_text("x" * state.st_size)
    os.utime(place, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert stages(package, root) != before


@pytest.mark.parametrize("damage", [b"", b"null", b"{}", b"[" * 100_000, b'{"format": 2, "nodes": []}', b"\xff"])
def test_a_damaged_index_is_made_again(package: Path, root: Path, damage: bytes) -> None:
    before = stages(package, root)
    index(root).write_bytes(damage)
    assert stages(package, root) == before
    assert json.loads(index(root).read_text())["nodes"]


@pytest.mark.parametrize("nonsense", [None, "x", [], ["nonsense"], [1, 2], [1, "x", 5], [1, "x", [[]]]], ids=repr)
def test_nonsense_about_files_and_folders_is_made_again(package: Path, root: Path, nonsense: object) -> None:
    before = stages(package, root)
    known = json.loads(index(root).read_text())
    known["nodes"] = dict.fromkeys(known["nodes"], nonsense)
    index(root).write_text(json.dumps(known))
    assert stages(package, root) == before


def test_nonsense_about_what_is_not_looked_at_is_left_out_where_something_is_new(package: Path, root: Path) -> None:
    stages(package, root)
    known = json.loads(index(root).read_text())
    known["nodes"] |= {"elsewhere": None, "notebook/magic.py": [1, 2]}
    index(root).write_text(json.dumps(known))
    (package / "drivers.py").write_text(secrets.token_hex(8))
    stages(package, root)
    assert known["nodes"].keys() - json.loads(index(root).read_text())["nodes"] == {"elsewhere", "notebook/magic.py"}


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch, package: Path) -> list[str]:
    """The folders that are listed."""
    found: list[str] = []
    scandir = os.scandir

    def listing(folder):
        found.append(os.path.relpath(folder, package))
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", listing)
    return found


def test_a_folder_in_which_no_name_changed_is_not_listed_again(package, root, listed, monkeypatch) -> None:
    now = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now + 3_600_000_000_000)
    before = stages(package, root)
    listed.clear()
    assert stages(package, root) == before
    assert listed == []
    (package / "ir" / "inst.py").write_text(secrets.token_hex(8))
    edited = stages(package, root)
    assert edited != before and listed == []
    new = package / "ir" / "tools" / "new.py"
    new.write_text("")
    os.utime(new.parent, ns=(now, now + 1))  # the clock of a folder is coarse
    assert stages(package, root) != edited
    new.unlink()
    os.utime(new.parent, ns=(now, now + 2))
    assert stages(package, root) == edited
    assert listed == ["ir/tools"] * 2


def test_a_folder_that_changed_lately_is_listed_again(package, root, listed, monkeypatch) -> None:
    """What else happens before its clock goes on could not be seen."""
    now = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now)
    stages(package, root)
    first = sorted(listed)
    stages(package, root)
    assert sorted(listed) == sorted(first * 2) and "ir/tools" in first


def test_a_file_that_changed_while_only_one_stage_was_asked_for_changes_the_others(package: Path, root: Path) -> None:
    before = stages(package, root)
    (package / "ir" / "tools" / "verifier.py").write_text(secrets.token_hex(8))
    fingerprint._digests(package, root, ("ir/tools", "drivers.py"))
    after = stages(package, root)
    assert after.frontend != before.frontend and after.backend != before.backend


def test_a_cache_that_cannot_be_written_changes_no_digest(package: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert stages(package, tmp_path / "file" / "cache") == stages(package, tmp_path / "cache")


def test_the_compiler_of_this_process_is_looked_at_once(root: Path) -> None:
    assert fingerprint.compiler(root) is fingerprint.compiler(root / "another")
    assert len(fingerprint.compiler(root).backend) == len(fingerprint.compiler(root).frontend) == 64
