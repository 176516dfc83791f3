# SPDX-License-Identifier: Apache-2.0
"""The journal of a traced run: what every compile did, a JSON line for each event, written once and never changed.

Everything that is shown of a trace is made from it. A text is written once in a run, whole or as changes of an earlier
one, and then goes by its id. `Run`, `Compile` and `Step` are what a journal says; the recorder fills them while it
writes, `read` fills them from a file. A last line that was torn by the end of the process says nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeAlias

from tilekit import textdiff
from tilekit.diag import TilekitError

SCHEMA = 1
FILE = "journal.jsonl"
# a text above this many characters is kept whole, and nobody compares it line by line
DIFF_CAP = 8 << 20

Entry: TypeAlias = dict[str, Any]
Operation: TypeAlias = list[Any]  # [first, stop]: copy these lines of the base; else: the new lines themselves

# the steps that turn one language into another, by phase
_TRANSLATIONS = {
    "lower": ("tile", "hidet"),
    "codegen": ("hidet", "cuda"),
    "ptx": ("cuda", "ptx"),
    "sass": ("ptx", "sass"),
}


class JournalError(TilekitError):
    """A file is no journal of ours, or is damaged before its end."""


class Status(StrEnum):
    """How a step or a compile ended; one whose process died in it did not."""

    UNFINISHED = "unfinished"
    DONE = "done"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    ABORTED = "aborted"  # by the failure of a step that it had called


class Text:
    """A text, and the name that it goes by."""

    def __init__(self, data: str) -> None:
        self.data = data

    @cached_property
    def raw(self) -> bytes:
        """What a file has of it."""
        return self.data.encode("utf-8", "surrogatepass")

    @cached_property
    def id(self) -> str:
        return blake2b(self.raw, digest_size=8).hexdigest()

    @cached_property
    def lines(self) -> list[str]:
        return self.data.split("\n")

    @property
    def is_small(self) -> bool:
        """Whether it is compared line by line."""
        return len(self.data) <= DIFF_CAP


@dataclass(frozen=True, slots=True)
class Difference:
    """What makes one text of another, and how many lines that adds and removes."""

    operations: list[Operation]
    added: int
    removed: int

    @staticmethod
    def between(before: Text, after: Text) -> Difference:
        operations: list[Operation] = []
        added = removed = at = 0
        for hunk in textdiff.hunks(before.lines, after.lines):
            if hunk.removed.start > at:
                operations.append([at, hunk.removed.start])
            if hunk.added:
                operations.append(after.lines[hunk.added.start : hunk.added.stop])
            added, removed, at = added + len(hunk.added), removed + len(hunk.removed), hunk.removed.stop
        if at < len(before.lines):
            operations.append([at, len(before.lines)])
        return Difference(operations, added, removed)


def is_copy(operation: Operation) -> bool:
    """Whether it copies lines of the base, rather than giving new ones."""
    return isinstance(operation[0], int)


# --------------------------------------------------------------------------------------------------------- the model


@dataclass(frozen=True)
class Head:
    """The run: which process traced what, and since when."""

    version: str
    script: str
    argv: tuple[str, ...]
    cwd: str
    pid: int
    rank: int | None
    started: str  # ISO 8601, UTC
    mode: str
    folder: str | None = None  # that of the run
    schema: int = SCHEMA


@dataclass(frozen=True)
class Failure:
    """What a step died of; `by` is the `seq` of the step whose failure it was."""

    by: int
    type: str
    message: str
    traceback: str
    where: str | None = None


@dataclass(frozen=True)
class Source:
    """The source that was generated and the one that was compiled, by ids, and what the edit store says of them."""

    generated: str
    compiled: str
    tag: str | None = None
    path: str | None = None
    messages: tuple[str, ...] = ()

    @property
    def is_edited(self) -> bool:
        return self.generated != self.compiled


@dataclass(eq=False)
class Step:
    """One step of a compile; `before` and `after` are ids of texts, None where there is none."""

    c: int
    seq: int
    index: int
    phase: str
    name: str
    occurrence: int
    parent: int | None
    depth: int
    before: str | None
    language: str
    status: Status = Status.UNFINISHED
    after: str | None = None
    changed: bool = False
    rebuilt: bool = False
    ns: int | None = None
    self_ns: int | None = None
    added: int | None = None
    removed: int | None = None
    failure: Failure | None = None
    source: Source | None = None
    notes: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def title(self) -> str:
        """Its name, numbered from the second one on."""
        return self.name if self.occurrence == 1 else f"{self.name}#{self.occurrence}"

    @property
    def base_phase(self) -> str:
        """The phase, whichever compile of the run this is."""
        return re.sub(r"^run\d+_", "", self.phase)

    @property
    def languages(self) -> tuple[str, str]:
        """The languages of the texts before and after it."""
        return _TRANSLATIONS.get(self.base_phase, (self.language, self.language))

    @property
    def is_translation(self) -> bool:
        """Whether the texts before and after are of two languages, so that there is nothing to compare."""
        return self.languages[0] != self.languages[1]


@dataclass(eq=False)
class Compile:
    """One compile of a run; `run` counts from 1 and stands before the phases from the second one on."""

    c: int
    run: int
    kernel: str
    script: str
    specialization: str
    target: str
    device: str
    from_cache: bool
    status: Status = Status.UNFINISHED
    ns: int | None = None
    steps: list[Step] = field(default_factory=list[Step])
    notes: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def culprit(self) -> Step | None:
        """The step that failed, or the innermost one that did not end."""
        broken = (Status.FAILED, Status.INTERRUPTED, Status.UNFINISHED)
        return next((step for step in reversed(self.steps) if step.status in broken), None)


class Run:
    """What a journal says."""

    def __init__(self, head: Head) -> None:
        self.head = head
        self.compiles: list[Compile] = []
        self.ended = False
        self._texts: dict[str, Entry] = {}
        self._lines: dict[str, list[str]] = {}

    def __contains__(self, text_id: str) -> bool:
        return text_id in self._texts

    def texts(self) -> Iterator[str]:
        """The ids of all texts, in the order in which they were written."""
        return iter(self._texts)

    def text_entries(self) -> Iterable[Entry]:
        """Those of all texts, each behind the one that it is made of."""
        return self._texts.values()

    def text(self, text_id: str) -> str:
        """The text that goes by this id."""
        return "\n".join(self.lines(text_id))

    def lines(self, text_id: str) -> list[str]:
        """The lines of that text; they are shared, so nobody may change them.

        Raises `JournalError` where the journal does not have what it is made of.
        """
        try:
            return self._put_together(text_id)
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise JournalError("TK430", f"the journal is damaged: it has not all of its text {text_id}") from error

    def _put_together(self, text_id: str) -> list[str]:
        waiting = [text_id]
        while waiting:
            wanted = waiting[-1]
            entry = self._texts[wanted]
            if wanted in self._lines:
                waiting.pop()
            elif "data" in entry:
                self._lines[wanted] = entry["data"].split("\n")
            elif entry["base"] in self._lines:
                self._lines[wanted] = _applied(entry["ops"], self._lines[entry["base"]])
            else:
                waiting.append(entry["base"])
        return self._lines[text_id]

    def add_text(self, text: Text, base: Text | None = None, difference: Difference | None = None) -> Entry | None:
        """The entry of a text that the run does not have yet, as changes of `base` if that is shorter."""
        if text.id in self._texts:
            return None
        entry: Entry = {"k": "text", "id": text.id, "data": text.data}
        if base is not None and difference is not None and text.data and base.id in self._texts:
            inserted = sum(len(line) + 4 for op in difference.operations if not is_copy(op) for line in op)
            if inserted + 12 * len(difference.operations) < len(text.data):
                entry = {"k": "text", "id": text.id, "base": base.id, "ops": difference.operations}
        self._texts[text.id] = entry
        return entry

    def feed(self, entry: Entry) -> None:
        """Take the next entry of a journal; kinds that this version does not know are passed over."""
        match entry["k"]:
            case "text":
                self._texts[entry["id"]] = entry
            case "compile":
                self.compiles.append(Compile(**_fields(entry)))
            case "pass_begin":
                self.compiles[entry["c"]].steps.append(Step(**_fields(entry)))
            case "pass_end":
                step = self._step(entry)
                step.status, step.after = Status.DONE, entry["after"]
                step.changed, step.rebuilt = entry["changed"], entry.get("rebuilt", False)
                step.ns, step.self_ns = entry["ns"], entry["self_ns"]
                step.added, step.removed = entry.get("add", 0), entry.get("del", 0)
            case "pass_fail":
                step = self._step(entry)
                step.status = Status(entry["status"])
                step.failure = Failure(
                    entry["by"], entry["type"], entry["message"], entry["traceback"], entry.get("where")
                )
            case "codegen":
                self._step(entry).source = Source(
                    entry["source"], entry["compiled"], entry["tag"], entry["path"], tuple(entry["messages"])
                )
            case "note":
                owner = self.compiles[entry["c"]] if entry["seq"] is None else self._step(entry)
                owner.notes[entry["key"]] = entry["value"]
            case "compile_end":
                compile = self.compiles[entry["c"]]
                compile.status, compile.ns = Status(entry["status"]), entry["ns"]
            case "end":
                self.ended = True
            case _:
                pass

    def _step(self, entry: Entry) -> Step:
        return self.compiles[entry["c"]].steps[entry["seq"]]


def _applied(operations: Iterable[Operation], base: Sequence[str]) -> list[str]:
    return [line for op in operations for line in (base[op[0] : op[1]] if is_copy(op) else op)]


def _fields(entry: Entry) -> Entry:
    return {key: value for key, value in entry.items() if key != "k"}


# ------------------------------------------------------------------------------------------------------- the entries


def run_entry(head: Head) -> Entry:
    return {
        "k": "run",
        "schema": head.schema,
        "version": head.version,
        "script": head.script,
        "argv": list(head.argv),
        "cwd": head.cwd,
        "pid": head.pid,
        "rank": head.rank,
        "started": head.started,
        "mode": head.mode,
        "folder": head.folder,
    }


def compile_entry(compile: Compile) -> Entry:
    return {
        "k": "compile",
        "c": compile.c,
        "run": compile.run,
        "kernel": compile.kernel,
        "script": compile.script,
        "specialization": compile.specialization,
        "target": compile.target,
        "device": compile.device,
        "from_cache": compile.from_cache,
    }


def begin_entry(step: Step) -> Entry:
    return {
        **_at("pass_begin", step),
        "index": step.index,
        "phase": step.phase,
        "name": step.name,
        "occurrence": step.occurrence,
        "parent": step.parent,
        "depth": step.depth,
        "before": step.before,
        "language": step.language,
    }


def end_entry(step: Step) -> Entry:
    """Most steps change nothing; what is so for each of them is left out."""
    entry = {
        **_at("pass_end", step),
        "after": step.after,
        "changed": step.changed,
        "ns": step.ns,
        "self_ns": step.self_ns,
    }
    if step.changed:
        return {**entry, "add": step.added, "del": step.removed}
    return {**entry, "rebuilt": True} if step.rebuilt else entry


def fail_entry(step: Step, failure: Failure) -> Entry:
    return {
        **_at("pass_fail", step),
        "status": step.status.value,
        "by": failure.by,
        "type": failure.type,
        "message": failure.message,
        "traceback": failure.traceback,
        "where": failure.where,
    }


def codegen_entry(step: Step, source: Source) -> Entry:
    return {
        **_at("codegen", step),
        "index": step.index,
        "source": source.generated,
        "compiled": source.compiled,
        "tag": source.tag,
        "path": source.path,
        "messages": list(source.messages),
    }


def note_entry(c: int, seq: int | None, key: str, value: object) -> Entry:
    """Something found out by a step, or by the compile as a whole; `value` is plain data."""
    return {"k": "note", "c": c, "seq": seq, "key": key, "value": value}


def compile_end_entry(compile: Compile) -> Entry:
    return {"k": "compile_end", "c": compile.c, "status": compile.status.value, "ns": compile.ns}


END: Entry = {"k": "end"}


def _at(kind: str, step: Step) -> Entry:
    return {"k": kind, "c": step.c, "seq": step.seq}


def encode(entry: Entry) -> str:
    """The line of an entry, without its end; ASCII, so that a torn one is text, too."""
    return json.dumps(entry, separators=(",", ":"))


# ------------------------------------------------------------------------------------------------------ the reader


def read(path: Path) -> Run:
    """The run that this journal, or the folder that it lies in, tells of.

    Raises `JournalError` where the file is no journal, is of a later schema, or is damaged before its last line, and
    OSError where it cannot be read.
    """
    path = path / FILE if path.is_dir() else path
    run: Run | None = None
    # what stands after the last line end is torn
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], start=1):
        try:
            entry = json.loads(line)
            if run is None:
                run = _begun(entry, path)
            else:
                run.feed(entry)
        except (ValueError, KeyError, IndexError, TypeError) as error:
            why = "is no journal" if run is None else f"is damaged in line {number}"
            raise JournalError("TK430", f"{path} {why}", data={"path": str(path)}) from error
    if run is None:
        raise JournalError("TK430", f"{path} holds no journal yet", data={"path": str(path)})
    return run


def _begun(entry: Entry, path: Path) -> Run:
    if entry["k"] != "run":
        raise JournalError("TK430", f"{path} is no journal", data={"path": str(path)})
    if entry["schema"] > SCHEMA:
        raise JournalError(
            "TK430",
            f"{path} has schema {entry['schema']}, and this tilekit reads up to {SCHEMA}",
            help=f"install tilekit {entry['version']} or later",
            data={"path": str(path)},
        )
    fields = _fields(entry)
    return Run(Head(**{**fields, "argv": tuple(fields["argv"])}))
