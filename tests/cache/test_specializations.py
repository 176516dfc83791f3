# SPDX-License-Identifier: Apache-2.0
import json
import secrets
from pathlib import Path

import pytest

from tilekit.cache.specializations import FORMAT, SpecializationCache

KEY = "0123456789abcdef"
MANIFEST = {"script": "Scale", "specialization": "Scale-d1", "schedules": ["{}"], "inputs": {"global FACTOR": "int 2"}}


@pytest.fixture
def cache(tmp_path: Path) -> SpecializationCache:
    return SpecializationCache(tmp_path / "cache")


def publish(cache: SpecializationCache, number: int = 0, text: str = "@kernel …", **facts: object) -> None:
    cache.publish(KEY, MANIFEST, number, text, facts)


def test_a_program_is_found_again_with_its_facts(cache: SpecializationCache) -> None:
    assert cache.lookup(KEY, 0) is None
    text = secrets.token_hex(8)
    publish(cache, text=text, strided=["x"], places=[["f", 3, None], None])
    assert SpecializationCache(cache.root).lookup(KEY, 0) == (
        text,
        {"strided": ["x"], "places": [["f", 3, None], None]},
    )
    assert cache.lookup(KEY, 1) is None


def test_programs_come_one_by_one_and_the_manifest_stays(cache: SpecializationCache) -> None:
    publish(cache, 1, "second")
    publish(cache, 0, "first")
    assert [cache.lookup(KEY, number) for number in (0, 1)] == [("first", {}), ("second", {})]
    (manifest,) = cache.manifests()
    assert manifest == {"format": FORMAT, "key": KEY, **MANIFEST}
    assert sorted(path.name for path in (cache.folder / KEY).iterdir()) == [
        "0.json",
        "0.txt",
        "1.json",
        "1.txt",
        "manifest.json",
    ]


@pytest.mark.parametrize("name", ["0.txt", "0.json"])
def test_a_changed_or_cut_file_is_a_miss(cache: SpecializationCache, name: str) -> None:
    publish(cache, text="x" * 100, assumes=False)
    place = cache.folder / KEY / name
    content = place.read_bytes()
    for damaged in (b"", content[: len(content) // 2], content.replace(b"x", b"y", 1).replace(b"false", b"true")):
        place.write_bytes(damaged)
        assert cache.lookup(KEY, 0) is None
    place.write_bytes(content)
    assert cache.lookup(KEY, 0) is not None


def test_swapped_programs_are_misses(cache: SpecializationCache) -> None:
    publish(cache, 0, "first")
    publish(cache, 1, "second")
    folder = cache.folder / KEY
    for suffix in ("txt", "json"):
        one, other = folder / f"0.{suffix}", folder / f"1.{suffix}"
        one.rename(folder / "aside")
        other.rename(one)
        (folder / "aside").rename(other)
    assert cache.lookup(KEY, 0) is None and cache.lookup(KEY, 1) is None
    folder.rename(cache.folder / "another")
    assert cache.lookup("another", 0) is None


def test_a_damaged_manifest_hides_nothing_else(cache: SpecializationCache) -> None:
    publish(cache)
    for text in ("", "[]", "null", json.dumps({"inputs": 1})):
        (cache.folder / KEY / "manifest.json").write_text(text)
        assert cache.manifests() == []
        assert cache.lookup(KEY, 0) is not None


def test_a_cache_that_cannot_be_written_keeps_nothing_and_raises_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = SpecializationCache(tmp_path / "file" / "cache")
    with pytest.warns(UserWarning, match="TK911"):
        publish(cache)
    assert cache.lookup(KEY, 0) is None
