# SPDX-License-Identifier: Apache-2.0
"""One script that was traced from outside: what it printed, and the files that it left."""

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

from tests.tools.lower_trace import scripts
from tilekit.tools import lower_trace as lt
from tilekit.tools.lower_trace import journal

BODY = """
    compile(scaling(2.0))
    compile(scaling(3.0, "Other"))
    vector = tilekit.spec(float32, (2000,))
    scaling(2.0).compile(2000, vector, vector, target="sm_90a", device="cpu")
    """


@dataclass(frozen=True)
class Traced:
    """`my_script.py` in a folder, which has run with `TL_LOWER_TRACE=both`."""

    folder: Path
    stderr: str

    @property
    def home(self) -> Path:
        """Where the traces of the script are."""
        return self.folder / "tmp" / "lower_trace_dir" / "my_script"

    @property
    def run(self) -> Path:
        """The folder of the run."""
        (found,) = (self.home / ".run_records").glob("run_*")
        return found

    @cached_property
    def journal(self) -> journal.Run:
        return journal.read(self.run)


@pytest.fixture(scope="session")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Traced:
    folder = tmp_path_factory.mktemp("traced")
    return Traced(folder, scripts.run(folder, BODY, TL_LOWER_TRACE="both").stderr)


@pytest.fixture(autouse=True)
def untraced(tmp_path, monkeypatch):
    """A folder to work in, and nothing that traces, before and after."""
    for name in [name for name in os.environ if "LOWER_TRACE" in name]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    yield
    lt.disable()
