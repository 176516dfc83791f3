# SPDX-License-Identifier: Apache-2.0
import os
import secrets
from pathlib import Path

import pytest

from tilekit.cache import fingerprint
from tilekit.cache.fingerprint import Fingerprint


@pytest.fixture
def package(tmp_path: Path) -> Path:
    for name in ("ir/inst.py", "ir/tools/verifier.py", "include/tk/tk.h", "drivers.py", "notebook/magic.py"):
        place = tmp_path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(secrets.token_hex(8))
    return tmp_path


MEMBERS = ("ir", "include", "drivers.py")


def test_the_same_files_have_the_same_digest_in_every_process(package: Path) -> None:
    assert Fingerprint(package, MEMBERS).digest() == Fingerprint(package, MEMBERS).digest()


@pytest.mark.parametrize("name", ["ir/tools/verifier.py", "include/tk/tk.h", "drivers.py"])
def test_an_edit_changes_the_digest_of_a_running_process(package: Path, name: str) -> None:
    seen = Fingerprint(package, MEMBERS)
    before = seen.digest()
    (package / name).write_text(secrets.token_hex(8))
    assert seen.digest() != before
    assert seen.digest() == Fingerprint(package, MEMBERS).digest()


def test_adding_removing_and_renaming_a_file_change_it(package: Path) -> None:
    seen = Fingerprint(package, MEMBERS)
    digests = [seen.digest()]
    (package / "ir" / "new.py").write_text("")
    digests.append(seen.digest())
    (package / "ir" / "new.py").rename(package / "ir" / "newer.py")
    digests.append(seen.digest())
    assert len(set(digests)) == 3
    (package / "ir" / "newer.py").unlink()
    assert seen.digest() == digests[0]


def test_what_is_no_member_or_no_source_does_not_count(package: Path) -> None:
    seen = Fingerprint(package, MEMBERS)
    before = seen.digest()
    (package / "notebook" / "magic.py").write_text("changed")
    (package / "ir" / "__pycache__").mkdir()
    (package / "ir" / "__pycache__" / "inst.cpython-311.pyc").write_bytes(b"x")
    assert seen.digest() == before


def test_an_untouched_file_is_not_read_again(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Fingerprint(package, MEMBERS)
    before = seen.digest()
    monkeypatch.setattr(Path, "read_bytes", lambda path: pytest.fail(f"{path} was read again"))
    assert seen.digest() == before


def test_an_old_modification_time_does_not_hide_an_edit(package: Path) -> None:
    seen, place = Fingerprint(package, MEMBERS), package / "drivers.py"
    before, state = seen.digest(), place.stat()
    place.write_text("x" * state.st_size)
    os.utime(place, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert seen.digest() != before


def test_the_backend_of_this_package_has_a_fingerprint() -> None:
    assert fingerprint.backend() is fingerprint.backend()
    assert len(fingerprint.backend().digest()) == 64
