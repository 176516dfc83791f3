# SPDX-License-Identifier: Apache-2.0
"""Cache structure."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.caches import in_force
from tests.promises.kernels import SCHEDULES, compiled, description, doubling, programs
from tilekit.ir.text import parser
from tilekit.ir.tools.equality import structurally_equal


class Filled(NamedTuple):
    """A cache in which a script was compiled with every schedule, and what holds its programs."""

    cache: Path
    instance: Any


@pytest.fixture(scope="module")
def filled(tmp_path_factory) -> Filled:
    with in_force(tmp_path_factory.mktemp("filled") / "cache") as cache:
        return Filled(cache, doubling().compile(*description(), device="cpu"))


def texts(folder):
    return [file.read_text() for file in folder.rglob("*") if file.is_file() and file.suffix in {".txt", ".json"}]


def test_a_folder_in_scripts_shows_the_tuning_space(filled):
    shown = " ".join(texts(filled.cache / "scripts"))
    assert all(word in shown for word in ("block", *map(str, SCHEDULES)))


def test_a_folder_in_scripts_leads_to_every_program_made_from_it(filled):
    references = {entry.resolve() for entry in (filled.cache / "scripts").rglob("programs/*")}
    assert references == {folder.resolve() for folder in programs(filled.cache)} != set()


def test_each_folder_in_programs_is_one_schedule(cache):
    pinned = [doubling(pinned={"block": block}) for block in SCHEDULES]
    sources = {compiled(script).source for script in pinned}
    assert {(folder / "module" / "source.cu").read_text() for folder in programs(cache)} == sources
    assert len(programs(cache)) == len(SCHEDULES)


def test_programs_has_every_schedule_of_the_space(filled):
    assert len(programs(filled.cache)) == len(SCHEDULES)


def test_specializations_have_a_manifest_to_restart_from(filled):
    manifests = [json.loads(file.read_text()) for file in (filled.cache / "specializations").rglob("*.json")]
    assert manifests


def test_specializations_hold_every_program_as_ir_that_reads_back(filled):
    kept = [text for text in texts(filled.cache / "specializations") if text.startswith("@kernel")]
    assert len(kept) == len(SCHEDULES)
    for program in filled.instance.transpiled_programs:
        assert any(structurally_equal(parser.parse_program(text), program) for text in kept)
