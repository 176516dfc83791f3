# SPDX-License-Identifier: Apache-2.0
import errno
import json
import multiprocessing
import os
import secrets
import shutil
from pathlib import Path

import pytest

from tilekit.cache.programs import INDEX, ProgramCache, key_of


def some_files() -> dict[str, bytes]:
    return {
        "program.txt": secrets.token_bytes(64),
        "manifest.json": b"{}",
        "module/source.cu": "// é\n".encode(),
        "module/kernel.cubin": secrets.token_bytes(4096),
        "module/log.txt": b"",
    }


@pytest.fixture
def cache(tmp_path: Path) -> ProgramCache:
    return ProgramCache(tmp_path / "cache")


def test_what_was_published_is_found_again(cache: ProgramCache) -> None:
    files, key = some_files(), key_of({"program": "p"})
    assert cache.lookup(key) is None
    published = cache.publish(key, files)
    found = ProgramCache(cache.root).lookup(key)
    assert found == published
    assert found is not None
    assert found.files == files
    assert found.text("module/source.cu") == "// é\n"
    assert found.path("module/source.cu").read_bytes() == files["module/source.cu"]


def test_the_folder_is_for_people(cache: ProgramCache) -> None:
    folder = cache.publish(key_of({"program": "p"}), some_files()).folder
    assert sorted(path.name for path in folder.iterdir()) == ["entry.json", "manifest.json", "module", "program.txt"]
    assert [path.name for path in cache.programs.iterdir()] == [folder.name], "no draft stays behind"


def test_every_part_is_in_the_key_and_their_borders_too(cache: ProgramCache) -> None:
    parts = {"program": "text", "target": "sm_90a", "options": ""}
    keys = [key_of(parts), *(key_of({**parts, name: parts[name] + "x"}) for name in parts)]
    keys.append(key_of({"program": "texttarget", "sm_90a": "", "options": ""}))
    assert len(set(keys)) == len(keys)
    assert key_of(dict(reversed(parts.items()))) == keys[0], "order is not content"


@pytest.mark.parametrize("name", [*some_files(), INDEX])
def test_a_missing_file_is_a_miss_and_publishing_heals_it(cache: ProgramCache, name: str) -> None:
    files, key = some_files(), key_of({"program": "p"})
    cache.publish(key, files).path(name).unlink()
    assert cache.lookup(key) is None
    cache.publish(key, files)
    healed = cache.lookup(key)
    assert healed is not None
    assert healed.files == files


@pytest.mark.parametrize("name", [name for name, content in some_files().items() if content])
def test_one_changed_byte_is_a_miss(cache: ProgramCache, name: str) -> None:
    key = key_of({"program": "p"})
    place = cache.publish(key, some_files()).path(name)
    content = bytearray(place.read_bytes())
    content[secrets.randbelow(len(content))] ^= 1 << secrets.randbelow(8)
    place.write_bytes(content)
    assert cache.lookup(key) is None


@pytest.mark.parametrize(
    "index",
    ["", "null", "[]", "{}", '{"format": 1}', "\udcff", '{"format": 99, "key": "k", "files": {}}', "[" * 100_000],
)
def test_any_nonsense_in_the_index_is_a_miss(cache: ProgramCache, index: str) -> None:
    key = key_of({"program": "p"})
    cache.publish(key, some_files()).path(INDEX).write_bytes(index.encode(errors="surrogateescape"))
    assert cache.lookup(key) is None


def test_an_index_that_points_outside_is_a_miss(cache: ProgramCache, tmp_path: Path) -> None:
    key = key_of({"program": "p"})
    entry = cache.publish(key, some_files())
    (tmp_path / "secret").write_bytes(b"")
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    entry.path(INDEX).write_text(json.dumps({"format": 1, "key": key, "files": {"../../../secret": empty}}))
    assert cache.lookup(key) is None


def test_an_entry_moved_to_another_key_is_a_miss(cache: ProgramCache) -> None:
    here, there = key_of({"program": "a"}), key_of({"program": "b"})
    cache.publish(here, some_files())
    (cache.programs / here).rename(cache.programs / there)
    assert cache.lookup(there) is None


def test_the_cache_can_be_deleted_at_any_time(cache: ProgramCache) -> None:
    files, key = some_files(), key_of({"program": "p"})
    entry = cache.publish(key, files)
    shutil.rmtree(cache.root)
    assert entry.files == files, "who holds the entry keeps its files"
    assert cache.lookup(key) is None
    assert cache.publish(key, files).files == files


def test_the_second_publisher_gets_the_first_ones_entry(cache: ProgramCache) -> None:
    key, first, second = key_of({"program": "p"}), some_files(), some_files()
    cache.publish(key, first)
    assert cache.publish(key, second).files == first


def test_a_folder_with_notes_beside_the_files_is_still_the_entry(cache: ProgramCache) -> None:
    files, key = some_files(), key_of({"program": "p"})
    cache.publish(key, files).path("ir.txt").write_text("a dump")
    found = cache.lookup(key)
    assert found is not None
    assert found.files == files


def publish_again_and_again(root: Path, key: str, files: dict[str, bytes], rounds: int) -> None:
    for _ in range(rounds):
        assert ProgramCache(root).publish(key, files).files == files


def delete_again_and_again(root: Path, rounds: int) -> None:
    for _ in range(rounds):
        shutil.rmtree(root / "programs", ignore_errors=True)


@pytest.mark.parametrize("deleting", [False, True])
def test_many_processes_may_publish_one_key(cache: ProgramCache, deleting: bool) -> None:
    files, key = some_files(), key_of({"program": "p"})
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=publish_again_and_again, args=(cache.root, key, files, 20)) for _ in range(3)]
    if deleting:
        workers.append(context.Process(target=delete_again_and_again, args=(cache.root, 20)))
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * len(workers)
    assert not list(cache.programs.glob(".*")), "no draft stays behind"


def test_a_cache_that_cannot_be_written_says_once_how_to_change_it_and_keeps_entries_in_memory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache, files = ProgramCache(tmp_path / "file" / "cache"), some_files()
    with pytest.warns(UserWarning) as caught:
        entries = [cache.publish(key_of({"program": name}), files) for name in "pq"]
    assert [entry.files for entry in entries] == [files, files]
    assert [str(warning.message) for warning in caught] == [
        f"TK911: the cache folder {tmp_path}/file/cache cannot be written: Not a directory\n"
        "  help: name another one with tilekit.option.cache_dir(path) or the environment variable TILUS_CACHE_DIR"
    ]
    assert cache.lookup(entries[0].key) is None
    assert not cache.restore(entries[0]), "nobody tries again at every launch"


def test_a_disk_that_fills_up_leaves_nothing_half_written(cache: ProgramCache, monkeypatch: pytest.MonkeyPatch) -> None:
    write, files, key = Path.write_bytes, some_files(), key_of({"program": "p"})

    def write_some(path: Path, content: bytes) -> int:
        if path.name == "kernel.cubin":
            write(path, content[:10])
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(path, content)

    with monkeypatch.context() as patch, pytest.warns(UserWarning, match="No space left on device"):
        patch.setattr(Path, "write_bytes", write_some)
        assert cache.publish(key, files).files == files
    assert list(cache.programs.iterdir()) == []
    assert cache.publish(key, files) == cache.lookup(key)


def test_an_entry_in_use_is_written_again_after_its_folder_was_deleted(cache: ProgramCache) -> None:
    entry = cache.publish(key_of({"program": "p"}), some_files())
    shutil.rmtree(cache.root)
    cache.restore(entry)
    assert cache.lookup(entry.key) == entry


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_read_only_cache_can_still_be_read(cache: ProgramCache) -> None:
    files, key = some_files(), key_of({"program": "p"})
    cache.publish(key, files)
    cache.programs.chmod(0o555)
    try:
        assert cache.lookup(key) is not None
        with pytest.warns(UserWarning, match="Permission denied"):
            assert cache.publish(key_of({"program": "q"}), files).files == files
    finally:
        cache.programs.chmod(0o755)
