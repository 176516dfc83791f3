# SPDX-License-Identifier: Apache-2.0
"""Cache structure."""

import json

from tests.promises.kernels import SCHEDULES, compiled, description, doubling, programs
from tilekit.ir.text import parser
from tilekit.ir.tools.equality import structurally_equal


def texts(folder):
    return [file.read_text() for file in folder.rglob("*") if file.is_file() and file.suffix in {".txt", ".json"}]


def test_a_folder_in_scripts_shows_the_tuning_space(cache):
    compiled(doubling())
    shown = " ".join(texts(cache / "scripts"))
    assert all(word in shown for word in ("block", *map(str, SCHEDULES)))


def test_a_folder_in_scripts_leads_to_every_program_made_from_it(cache):
    compiled(doubling())
    references = {entry.resolve() for entry in (cache / "scripts").rglob("programs/*")}
    assert references == {folder.resolve() for folder in programs(cache)} != set()


def test_each_folder_in_programs_is_one_schedule(cache):
    pinned = [doubling(pinned={"block": block}) for block in SCHEDULES]
    sources = {compiled(script).source for script in pinned}
    assert {(folder / "module" / "source.cu").read_text() for folder in programs(cache)} == sources
    assert len(programs(cache)) == len(SCHEDULES)


def test_programs_has_every_schedule_of_the_space(cache):
    compiled(doubling())
    assert len(programs(cache)) == len(SCHEDULES)


def test_specializations_have_a_manifest_to_restart_from(cache):
    compiled(doubling())
    manifests = [json.loads(file.read_text()) for file in (cache / "specializations").rglob("*.json")]
    assert manifests


def test_specializations_hold_every_program_as_ir_that_reads_back(cache):
    script = doubling()
    instance = script.compile(*description(), device="cpu")
    kept = [text for text in texts(cache / "specializations") if text.startswith("@kernel")]
    assert len(kept) == len(SCHEDULES)
    for program in instance.transpiled_programs:
        assert any(structurally_equal(parser.parse_program(text), program) for text in kept)
