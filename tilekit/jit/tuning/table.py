# SPDX-License-Identifier: Apache-2.0
"""What tuning has found: for each tuning key a schedule, not its number, with the hardware and versions it holds for.

In the cache it lies with its script, `scripts/<script>/<specialization>-<8 hex>/`:

    dispatch_table.json, .txt      the chosen schedule of each tuning key
    latency/<key>/report.txt       every candidate of one tuning; `best` leads to the chosen program

A table that was made elsewhere counts for nothing; "*" in its `holds for` matches anything. The same format in one file
is what people pass on: see `Tuned`. Nobody holds a lock here: files are written whole, and of two processes that tune
at a time the later one writes, so at worst a key is tuned once more.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from tilekit.cache import files, fingerprint
from tilekit.cache.scripts import TABLE, ScriptFolder
from tilekit.diag import errors
from tilekit.jit import summary
from tilekit.runtime import compiled, device
from tilekit.runtime.tensors import DeviceKind

if TYPE_CHECKING:
    from tilekit.jit.machine import Machine

_FORMAT = 1

HoldsFor: TypeAlias = Mapping[str, str]
# the integers of a call that are passed at launch, by name: each such set is tuned for itself
Key: TypeAlias = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Entry:
    """The best schedule that was found for a tuning key, with values as JSON has them.

    `cost` is in `unit`; `tried` of the `candidates` that compile were run.
    """

    key: Mapping[str, int]
    schedule: Mapping[str, Any]
    cost: float
    unit: str
    tried: int
    candidates: int

    @property
    def complete(self) -> bool:
        return self.tried >= self.candidates

    def __str__(self) -> str:
        key, schedule = summary.named(self.key) or "any call", summary.named(self.schedule)
        best = f"best of {self.tried}" + ("" if self.complete else f" of {self.candidates}")
        return f"{key}: {schedule} · {cost_words(self.cost, self.unit)}, {best}"


@dataclass(frozen=True)
class Table:
    """The entries of one specialization, and where they hold."""

    specialization: str
    holds_for: HoldsFor
    entries: tuple[Entry, ...] = ()

    def find(self, key: Key) -> Entry | None:
        return next((entry for entry in self.entries if entry.key == dict(key)), None)

    def with_entry(self, new: Entry) -> Table:
        """This table with one more entry, or another one in place of the old."""
        others = [entry for entry in self.entries if entry.key != new.key]
        return Table(self.specialization, self.holds_for, (*others, new))

    def difference(self, here: HoldsFor) -> str | None:
        """The first thing by which it does not hold here, in words."""
        for name in [*here, *(name for name in self.holds_for if name not in here)]:
            there, now = self.holds_for.get(name, "nothing"), here.get(name, "nothing")
            if there not in ("*", now):
                return f"{name} is {there} there and {now} here"
        return None

    def to_json(self) -> dict[str, Any]:
        return {
            "specialization": self.specialization,
            "holds for": dict(self.holds_for),
            "entries": [asdict(entry) for entry in self.entries],
        }

    @staticmethod
    def from_json(data: Any) -> Table:
        """Read it back; ValueError, LookupError or TypeError if it is no table."""
        holds = {str(name): str(value) for name, value in data["holds for"].items()}
        if not {"device", "target", "gpu"} <= holds.keys():
            raise ValueError("a table says where it holds")
        return Table(str(data["specialization"]), holds, tuple(_entry(row) for row in data["entries"]))


def _entry(row: Any) -> Entry:
    key = {str(name): int(value) for name, value in row["key"].items()}
    cost = float(row["cost"])
    if not math.isfinite(cost) or not isinstance(row["schedule"], dict):
        raise ValueError("no entry of a table")
    schedule = cast("dict[str, Any]", row["schedule"])
    return Entry(key, schedule, cost, str(row["unit"]), int(row["tried"]), int(row["candidates"]))


def holds_for(machine: Machine) -> dict[str, str]:
    """The hardware and versions that a result made on this machine holds for."""
    kind = machine.device.kind
    facts = {"device": kind.value, "target": machine.target.name}
    if kind is DeviceKind.CUDA:
        found = device.survey()
        facts["gpu"] = found.gpus[machine.device.index].model
        facts["cuda"] = ".".join(map(str, found.cuda or ()))
        facts["toolchain"] = compiled.toolchain_identity(kind, machine.config)
    else:
        facts["gpu"] = "none: an estimate by the simulator's counters"
    facts["compiler"] = fingerprint.compiler(machine.config.cache_dir).backend[:16]
    if machine.pipeline is not None:
        facts["custom passes"] = machine.pipeline.key
    return facts


def as_json(value: Any) -> Any:
    """A value of a schedule as JSON has it; what JSON does not have, by its text."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (tuple, list)):
        return [as_json(item) for item in cast("Sequence[Any]", value)]
    return repr(value)


def schedule_of(schedule: Mapping[str, Any]) -> dict[str, Any]:
    return {name: as_json(value) for name, value in schedule.items()}


def number_of(schedule: Mapping[str, Any], schedules: Sequence[Mapping[str, Any]]) -> int | None:
    """Which of these schedules it is, by all its values; as text, for 1 and True are not the same."""
    wanted = json.dumps(schedule, sort_keys=True)
    for number, each in enumerate(schedules):
        if json.dumps(schedule_of(each), sort_keys=True) == wanted:
            return number
    return None


def cost_words(cost: float, unit: str) -> str:
    """A cost as people read it."""
    if unit != "s":
        return f"{cost:,.0f} {unit}"
    return f"{cost * 1e6:.1f} µs" if cost < 1e-3 else f"{cost * 1e3:.3f} ms"


# ------------------------------------------------------------------------------------------------------- in the cache


def read(folder: ScriptFolder, here: HoldsFor) -> Table | None:
    """The table of a specialization, if there is one that holds here."""
    try:
        data: Any = json.loads((folder.path / TABLE).read_bytes())
        if data["format"] != _FORMAT:
            return None
        table = Table.from_json(data)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    return table if table.difference(here) is None else None


def write(folder: ScriptFolder, table: Table) -> None:
    """Keep a table; where the cache cannot be written, it lives in this process alone."""
    text = "".join(f"{line}\n" for line in (*_head(table.holds_for), "", *map(str, table.entries)))
    with contextlib.suppress(OSError):
        files.write(folder.path / "dispatch_table.txt", text.encode())
        files.write(folder.path / TABLE, _dumped({"format": _FORMAT, **table.to_json()}))


def report(folder: ScriptFolder, key: Key, text: str, best: Path | None) -> None:
    """Keep the candidates of one tuning as text, and a link to the best program."""
    name = "-".join(f"{name}={value}" for name, value in key)[:150] or "any"
    place = folder.path / "latency" / name
    with contextlib.suppress(OSError):
        files.write(place / "report.txt", text.encode())
        if best is not None:
            files.link(place / "best", best)


def _head(facts: HoldsFor) -> list[str]:
    return [f"{name}: {value}" for name, value in facts.items()]


def _dumped(data: Any) -> bytes:
    return (json.dumps(data, indent=2) + "\n").encode()


# --------------------------------------------------------------------------------------------------- passed on in files


@dataclass
class Tuned:
    """What tuning has found for the kernels of one handle: shown as text, and passed on in files.

    A result is a schedule by its values, with the hardware and the versions that it holds for. It is used where all of
    them are the same; a person who knows better writes "*" for one of them in the file.
    """

    script: str
    # makes the tables of the specializations that this process knows
    tables: Callable[[], Iterable[Table]]
    # what results for such a device and target hold for here; None if there is no such device
    here: Callable[[HoldsFor], HoldsFor | None]
    # called when other schedules may be the best ones now
    changed: Callable[[], None]
    loaded: list[Table] = field(default_factory=list[Table])

    def export(self, path: str | Path) -> Path:
        """Write everything that is known into a file, as JSON.

        Parameters
        ----------
        path
            The file; it is replaced.
        """
        tables = [table.to_json() for table in self._all()]
        files.write(Path(path), _dumped({"format": _FORMAT, "script": self.script, "tables": tables}))
        return Path(path)

    def load(self, path: str | Path) -> int:
        """Use what such a file says, from the next call on; return how many of its results hold here.

        Parameters
        ----------
        path
            A file that `export` wrote.

        Raises
        ------
        ArgumentError
            TK637 if it is no such file, of another script, or nothing in it holds here.
        """
        try:
            data: Any = json.loads(Path(path).read_bytes())
            script, tables = str(data["script"]), [Table.from_json(row) for row in data["tables"]]
            known = data["format"] == _FORMAT
        except OSError as error:
            raise errors.ArgumentError("TK637", f"{path} cannot be read: {error.strerror}") from None
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            raise errors.ArgumentError("TK637", f"{path} is no file of tuning results") from None
        if not known or script != self.script:
            raise errors.ArgumentError("TK637", f"{path} holds results of {script}, not of {self.script}")
        misfits = [self._misfit(table) for table in tables]
        if tables and all(misfits):
            raise errors.ArgumentError(
                "TK637",
                f"nothing in {path} holds here: {misfits[0]}",
                help='where that does not matter, write "*" for it in the file',
            )
        holding = [table for table, misfit in zip(tables, misfits, strict=True) if misfit is None]
        self.loaded = [*holding, *self.loaded]
        self.changed()
        return sum(len(table.entries) for table in holding)

    def _misfit(self, table: Table) -> str | None:
        here = self.here(table.holds_for)
        return "this machine has no such device" if here is None else table.difference(here)

    def find(self, specialization: str, here: HoldsFor, key: Key) -> Entry | None:
        """What a loaded file says of a tuning key here."""
        for table in self.loaded:
            if table.specialization == specialization and table.difference(here) is None:
                found = table.find(key)
                if found is not None:
                    return found
        return None

    def _all(self) -> list[Table]:
        return [table for table in (*self.tables(), *self.loaded) if table.entries]

    def __repr__(self) -> str:
        lines = [f"{self.script}: {sum(len(table.entries) for table in self._all())} tuned"]
        for table in self._all():
            lines.append(f"{table.specialization} · {table.holds_for['target']} · {table.holds_for['gpu']}")
            lines += [f"  {entry}" for entry in table.entries]
        return "\n".join(lines)
