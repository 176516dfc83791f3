# SPDX-License-Identifier: Apache-2.0
"""What becomes of an edited source when its kernel is generated again: one table, without a file in it.

Three texts meet: the working copy, which people edit; the baseline, which is the generated text that the working copy
was last made from; and the text that is generated now. They are compared without blank lines at their ends. Beside
the files stands a state that remembers the baseline by digest, so that a baseline which was edited or damaged, and a
run that was stopped between two files, are told from somebody's work.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from typing import assert_never

from tilekit import events
from tilekit.tools.lower_trace.files import Content, Readable, Unreadable
from tilekit.tools.lower_trace.merge import merge


class Policy(Enum):
    """What to do when both the working copy and the generated text have changed."""

    REGENERATE = "regenerate"
    MERGE = "merge"
    KEEP = "keep"
    ERROR = "error"


class Tag(Enum):
    """What was decided, in the word that is shown."""

    NONE = "none"
    INIT = "INIT"
    INIT_BACKUP = "INIT-BACKUP"
    ADOPTED = "ADOPTED"
    RESTORED = "RESTORED"
    REGENERATED = "REGENERATED"
    SYNCED = "SYNCED"
    PATCHED = events.PATCHED
    PATCHED_INVALID = "PATCHED-INVALID"
    MERGED = "MERGED"
    KEPT = "KEPT"
    CONFLICT = "CONFLICT"
    REFUSED = "REFUSED"
    EMPTY = "EMPTY"
    UNREADABLE = "UNREADABLE"
    BASELINE_BAD = "BASELINE-BAD"
    BASELINE_EDITED = "BASELINE-EDITED"
    CANNOT_UPDATE = "CANNOT-UPDATE"


@dataclass(frozen=True, slots=True)
class State:
    """What the last run left: digest of the baseline, of one that was being written, and what was decided."""

    original: str | None = None
    writing: str | None = None
    action: str = ""

    def to_json(self) -> bytes:
        return (json.dumps(asdict(self), indent=2) + "\n").encode()

    @classmethod
    def from_content(cls, content: Content) -> State:
        """A state that is missing or damaged knows nothing."""
        if not isinstance(content, Readable):
            return cls()
        try:
            found = json.loads(content.text)
        except (ValueError, RecursionError):
            return cls()
        if not isinstance(found, dict):
            return cls()
        original, writing, action = (found.get(name) for name in ("original", "writing", "action"))
        return cls(_text_or_none(original), _text_or_none(writing), _text_or_none(action) or "")

    def wrote(self, text: str) -> bool:
        """Whether this text is one that a run put into the files, not a person."""
        return digest(text) in (self.original, self.writing)


@dataclass(frozen=True, slots=True)
class Found:
    """The files as a run finds them."""

    working: Content
    original: Content
    state: State

    @property
    def baseline(self) -> str | None:
        """Digest of what the working copy was made from; None if nobody knows."""
        match self.original:
            case None:
                return None
            case Readable(text=text) if self.state.original is None or self.state.wrote(text):
                return digest(text)
            case _:
                return self.state.original

    @property
    def baseline_text(self) -> str | None:
        """The baseline itself, if the file still holds it."""
        match self.original:
            case Readable(text=text) if digest(text) == self.baseline:
                return text
            case _:
                return None

    @property
    def is_edited(self) -> bool:
        """Whether the working copy holds somebody's work, readable or not."""
        match self.working:
            case None:
                return False
            case Unreadable():
                return True
            case Readable(text=text):
                return not is_blank(text) and digest(text) != self.baseline and not self.state.wrote(text)


@dataclass(frozen=True, slots=True)
class Plan:
    """What to compile and what to write; None leaves a file as it is.

    `backups` are contents to put away, by suffix, before anything is written. `moves_original` has the file of the
    baseline renamed, because it is nothing that can be copied.
    """

    tag: Tag
    text: str
    edited: bool = False
    working: str | None = None
    original: str | None = None
    backups: dict[str, bytes] = field(default_factory=dict[str, bytes])
    moves_original: bool = False
    why: str = ""
    excerpt: tuple[str, ...] = ()  # lines of the text that `why` speaks of


def is_blank(text: str) -> bool:
    return not text.strip()


def digest(text: str) -> str:
    """The same for texts that differ in blank lines at the end only."""
    return hashlib.sha256(text.rstrip().encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Unfit:
    """An edited text that cannot be compiled: as an error, PATCHED-INVALID, or as if it were not there, UNREADABLE."""

    tag: Tag
    why: str
    excerpt: tuple[str, ...] = ()


# what is wrong with an edited text, given the generated one and then the edit
Judge = Callable[[str, str], Unfit | None]


def decide(found: Found, generated: str, policy: Policy, judge: Judge) -> Plan:
    """The row of the table for these files, this generated text and this policy."""
    found = _with_chosen_baseline(found, generated)
    match found.working:
        case Unreadable(why):
            return Plan(Tag.UNREADABLE, generated, why=why)
        case Readable(text=text) if is_blank(text):
            return Plan(Tag.EMPTY, generated)
        case None:
            tag = Tag.INIT if found.original is None else Tag.RESTORED
            plan = _anew(found, generated, tag)
        case Readable() as working:
            plan = _for_text(found, working, generated, policy, judge)
        case _:
            assert_never(found.working)
    plan = _with_healed_baseline(found, generated, plan)
    read_only = isinstance(found.working, Readable) and found.working.read_only
    if read_only and plan.working is not None:
        return Plan(Tag.CANNOT_UPDATE, plan.text, plan.edited, why="it is marked read-only")
    return plan


def revert(found: Found, generated: str) -> Plan:
    """Back to a generated text, after the working copy was put away."""
    return _with_healed_baseline(found, generated, Plan(Tag.NONE, generated, working=generated, original=generated))


def _with_chosen_baseline(found: Found, generated: str) -> Found:
    """Who copies the latest text over the baseline says that the edit was brought up to date."""
    now, known = digest(generated), found.state
    is_copy = isinstance(found.original, Readable) and digest(found.original.text) == now
    if is_copy and known.original not in (None, now):
        # the digest from before stays known: a working copy that was never edited must not look like an edit
        return replace(found, state=replace(known, original=now, writing=known.original))
    return found


def _for_text(found: Found, working: Readable, generated: str, policy: Policy, judge: Judge) -> Plan:
    now, baseline = digest(generated), found.baseline
    if digest(working.text) == now:
        return _for_equal(found, working, generated)
    if not found.is_edited:
        # a baseline nobody has seen yet: a first run was stopped between its two files
        return _anew(found, generated, Tag.INIT if baseline is None else Tag.REGENERATED)
    if baseline is None:
        return replace(_anew(found, generated, Tag.INIT_BACKUP), backups={".bak": working.raw})
    if baseline == now:
        return _patched(Tag.PATCHED, generated, working.text, judge)
    match policy:
        case Policy.ERROR:
            return Plan(Tag.REFUSED, generated)
        case Policy.KEEP:
            return _patched(Tag.KEPT, generated, working.text, judge)
        case Policy.MERGE if found.baseline_text is not None:
            return _merged(found, working, found.baseline_text, generated, judge)
        case Policy.REGENERATE | Policy.MERGE:
            return _conflict(found, working, generated)
        case _:
            assert_never(policy)


def _for_equal(found: Found, working: Readable, generated: str) -> Plan:
    """The working copy is what is generated now; only the baseline may have to follow."""
    if found.baseline == digest(generated):
        return Plan(Tag.NONE, generated)
    if found.baseline is None:
        tag = Tag.INIT if found.state.wrote(working.text) else Tag.ADOPTED
    else:
        tag = Tag.REGENERATED if found.state.wrote(working.text) else Tag.SYNCED
    return Plan(tag, generated, original=generated)


def _anew(found: Found, generated: str, tag: Tag) -> Plan:
    """Both files become the generated text, where they are not."""
    same = found.baseline == digest(generated) and found.original is not None
    return Plan(tag, generated, working=generated, original=None if same else generated)


def _patched(tag: Tag, generated: str, text: str, judge: Judge) -> Plan:
    unfit = judge(generated, text)
    if unfit is None:
        return Plan(tag, text, edited=True)
    return Plan(unfit.tag, generated, why=unfit.why, excerpt=unfit.excerpt)


def _conflict(found: Found, working: Readable, generated: str) -> Plan:
    backups = {".bak": working.raw}
    if isinstance(found.original, Readable):
        backups[".original.bak"] = found.original.raw
    return replace(_anew(found, generated, Tag.CONFLICT), backups=backups)


def _merged(found: Found, working: Readable, baseline: str, generated: str, judge: Judge) -> Plan:
    result = merge(baseline, working.text, generated)
    patched = _patched(Tag.MERGED, generated, result.text, judge)
    if result.conflicts or patched.tag is Tag.UNREADABLE:
        plan = _conflict(found, working, generated)
        return replace(plan, backups={**plan.backups, ".conflict": result.text.encode()})
    if not patched.edited:
        return patched
    return replace(
        patched,
        edited=digest(result.text) != digest(generated),
        working=result.text,
        original=generated,
        backups={".bak": working.raw},
    )


def _with_healed_baseline(found: Found, generated: str, plan: Plan) -> Plan:
    """Where the file of the baseline is not what was written there: keep what it is now, and write it again.

    That can be done as soon as the baseline is known or known to be the generated text; a plan that refuses, or keeps
    an edit of something older, leaves it alone.
    """
    match found.original:
        case None:
            return plan
        case Readable(raw=raw):
            if found.baseline_text is not None:
                return plan
            tag, backup = Tag.BASELINE_EDITED, {".original.bak": raw}
        case Unreadable():
            tag, backup = Tag.BASELINE_BAD, {}
    stands_for_now = plan.original is not None or found.baseline == digest(generated)
    if plan.tag in (Tag.PATCHED_INVALID, Tag.UNREADABLE, Tag.REFUSED, Tag.KEPT) or not stands_for_now:
        return plan
    quiet = plan.tag in (Tag.NONE, Tag.PATCHED, Tag.ADOPTED)
    return replace(
        plan,
        tag=tag if quiet else plan.tag,
        original=generated,
        backups={**plan.backups, **backup},
        moves_original=isinstance(found.original, Unreadable),
        why=found.original.why if isinstance(found.original, Unreadable) else "it was edited",
    )


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def lacks_kernel(generated: str, text: str) -> Unfit | None:
    """Whether an edited source lacks the kernel of the generated one."""
    entry = re.search(r"^TK_KERNEL\(\s*(\w+)\s*\)", generated, re.MULTILINE)
    if entry is None:
        return None
    name = entry[1]
    is_there = re.search(rf"\b{name}\s*\(", text) and re.search(rf"^\s*TK_KERNEL\(\s*{name}\s*\)", text, re.MULTILINE)
    return None if is_there else Unfit(Tag.PATCHED_INVALID, name)
