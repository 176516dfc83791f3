# SPDX-License-Identifier: Apache-2.0
"""What was made from each script, for people: `scripts/<script>/<specialization>-<8 hex>/` leads to its programs.

    meta.json       parameters, jit key, target and options, and the space of schedules
    schedules.txt   the schedules by their numbers
    source.txt      the script as it was
    programs/<i>    a link to the program of schedule i
    failed/…/<i>.txt  a schedule that gives no program, or does not compile, and why

Nothing here is read back by the compiler, so it may be incomplete: a link is set again whenever its program is built or
found. The eight digits stand for everything that the programs depend on beside the schedule.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilekit.cache import files

META, SCHEDULES, TABLE = "meta.json", "schedules.txt", "dispatch_table.json"


@dataclass(frozen=True)
class ScriptFolder:
    """The folder of one specialization of a script on one target and device."""

    root: Path
    script: str
    specialization: str
    digest: str

    @property
    def path(self) -> Path:
        return self.root / "scripts" / self.script / f"{_file_name(self.specialization)}-{self.digest[:8]}"

    @property
    def is_described(self) -> bool:
        return (self.path / META).exists()

    def describe(self, meta: Mapping[str, Any], schedules: Sequence[str], source: str) -> None:
        """Write what the folder is about."""
        listed = "".join(f"{number}: {schedule}\n" for number, schedule in enumerate(schedules))
        with contextlib.suppress(OSError):
            files.write(self.path / "source.txt", source.encode())
            files.write(self.path / SCHEDULES, listed.encode())
            files.write(self.path / META, (json.dumps(meta, indent=2) + "\n").encode())

    def link(self, number: int, key: str) -> None:
        """Lead from a schedule to its program."""
        with contextlib.suppress(OSError):
            files.link(self.path / "programs" / str(number), self.root / "programs" / key)

    def failed(self, stage: str, number: int, text: str) -> None:
        """Keep why a schedule gives nothing; `stage` is "scheduling" or "building"."""
        with contextlib.suppress(OSError):
            files.write(self.path / "failed" / stage / f"{number}.txt", text.encode())


def snake_case(name: str) -> str:
    """`VectorAdd` as `vector_add`."""
    return "".join(f"_{c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(name))


def _file_name(text: str) -> str:
    """A text as the name of a file, short and without surprises."""
    return "".join(c if c.isalnum() or c in "-_.=," else "_" for c in text)[:100]
