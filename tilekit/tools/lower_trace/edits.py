# SPDX-License-Identifier: Apache-2.0
"""The one store of edited sources: a folder a kernel, which an editor on the disk and the notebook's both write to.

`codegen.cpp` is the working copy, for people; `codegen.cpp.original` the generated text that it was made from;
`codegen.cpp.latest` what was generated last. `EditFolder.decide` says what is compiled. Nothing that was typed is ever
lost: what gives way is put into `codegen.cpp.bak` first, under a new number if that exists. Files are replaced whole;
a process that is killed between two of them leaves a state that the next one understands.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import json
import os
import re
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from tilekit.diag import CodegenError, TilekitError
from tilekit.events import CLEAN
from tilekit.jit.observer import Identity
from tilekit.tools.lower_trace import edit_table, files
from tilekit.tools.lower_trace.apart import Apart
from tilekit.tools.lower_trace.edit_messages import Names, messages_of
from tilekit.tools.lower_trace.edit_table import Found, Judge, Plan, Policy, State, Tag
from tilekit.tools.lower_trace.files import Readable
from tilekit.tools.lower_trace.merge import Merged, merge

WORKING = "codegen.cpp"
TILES = "ir"  # the folder of the programs after the tile passes, inside that of their kernel
PATIENCE_S = 2.0  # with a process that holds the folder
_GAVE_WAY = (".bak", ".original.bak")  # where a conflict puts the edit, and what that was made from
_ATTEMPTS = 5  # how often the working copy may be saved while we decide


class EditError(TilekitError):
    """An edited source cannot be used or kept; `data["path"]` is the file, `data["tag"]` what was decided."""


class EditConflict(EditError):
    """The edited and the generated source have both changed, and the policy is to leave it to a person."""


class _SavedMeanwhile(Exception):
    """The working copy is not what it was when we looked."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What to compile: the generated text, or an edited one; the messages say why, a line each."""

    tag: Tag
    text: str
    edited: bool
    messages: tuple[str, ...] = ()

    @property
    def state(self) -> str:
        """What a kernel says of it: `clean` where the files now hold what was generated, else the tag."""
        return CLEAN if self.tag in _CLEAN else self.tag.value


_CLEAN = (Tag.NONE, Tag.INIT, Tag.ADOPTED, Tag.RESTORED, Tag.REGENERATED, Tag.SYNCED)


class EditFolder:
    """The files of one text: the source of a kernel, or what `judge` knows to be fit to be compiled."""

    def __init__(
        self,
        path: Path,
        working: str = WORKING,
        judge: Judge = edit_table.lacks_kernel,
        generated: str = "the generated source",
        *,
        durable: bool = True,
    ) -> None:
        self.path = path.absolute()
        self.working = self.path / working
        self.original = files.beside(self.working, ".original")
        self.latest = files.beside(self.working, ".latest")
        self.is_waited_for = True  # whether anybody waits for another process that holds it
        self._state = self.path / (".state.json" if working == WORKING else f".{working}.state.json")
        self._judge = judge
        self._durable = durable  # what was typed always is
        self._names = Names(self.working, self.original, self.latest, generated)

    def decide(self, generated: str, policy: Policy = Policy.REGENERATE) -> Decision:
        """Say what is compiled in place of the generated text, and bring the files up to date.

        A folder that cannot be written costs a message, never the compile.
        """
        if edit_table.is_blank(generated):
            raise CodegenError("TK420", "the generated source is empty", data={"path": str(self.working)})
        if self._is_settled(generated):
            return Decision(Tag.NONE, generated, edited=False)
        try:
            with files.locked(self.path, PATIENCE_S if self.is_waited_for else 0.0):
                return self._decide_and_write(generated, policy)
        except OSError as error:
            self.is_waited_for = not isinstance(error, TimeoutError)
            return self._decision(self._plan(self._look(), generated, policy), self._why_not(error))

    def write_edit(self, text: str, seen: str | None = None) -> tuple[str, ...]:
        """Store what was typed in the notebook's editor; `seen` is the text that the editor was filled with.

        If the working copy holds somebody's work that the editor has not shown, that is put away first.
        """
        with self._held():
            found = self._look()
            if found.baseline is None:
                raise EditError("TK423", f"there is no generated source in {self.path} yet: run the kernel first")
            messages: tuple[str, ...] = ()
            is_known = isinstance(found.working, Readable) and found.working.text in (text, seen)
            if found.is_edited and not is_known:
                messages = (f"{self.working} was edited by somebody else: that text is in {self._put_away(found)}",)
                found = self._look()
            self._replace_working(found, text, durable=True)
            return messages

    def revert(self) -> tuple[str, ...]:
        """Go back to the text that was generated last; the edit is put away."""
        with self._held():
            found, latest = self._look(), files.read(self.latest)
            is_usable = isinstance(latest, Readable) and not edit_table.is_blank(latest.text)
            text = latest.text if isinstance(latest, Readable) and is_usable else found.baseline_text
            if text is None:
                raise EditError("TK423", f"there is no generated source in {self.path} to go back to")
            messages: tuple[str, ...] = ()
            if found.is_edited:
                messages = (f"REVERTED {self.working}: the edit is in {self._put_away(found)}",)
                found = self._look()
            self._apply(found, edit_table.revert(found, text))
            return messages

    def merged(self) -> Merged | None:
        """The edit that gave way last, brought together with what was generated last; None if none gave way."""
        latest, found = files.read(self.latest), None
        for number in itertools.count(1):
            edit, baseline = (files.read(files.beside(self.working, suffix, number)) for suffix in _GAVE_WAY)
            if edit is None and baseline is None:
                break
            if isinstance(edit, Readable) and isinstance(baseline, Readable):
                found = edit, baseline
        if found is None or not isinstance(latest, Readable):
            return None
        return merge(found[1].text, found[0].text, latest.text)

    def take_over(self, other: EditFolder) -> None:
        """Make an edit of another folder one of this, unless this has one of its own."""
        found = other._look()
        baseline, working = found.baseline_text, found.working
        if found.is_edited and baseline is not None and isinstance(working, Readable) and not self.holds_edit():
            self.decide(baseline)
            self.write_edit(working.text)

    def holds_edit(self) -> bool:
        """Whether somebody's work is in the working copy."""
        return self._look().is_edited

    def tiles(self) -> list[EditFolder]:
        """The files of the tile passes of this kernel, as far as there are any; nobody judges what is in them."""
        found = sorted(self.path.glob(f"{TILES}/*.tir"))
        return [EditFolder(file.parent, file.name, lambda generated, text: None) for file in found]

    def _is_settled(self, generated: str) -> bool:
        """Whether all is as the last run with this text left it: then nothing is written, and nobody kept out."""
        content, now = generated.encode(), edit_table.digest(generated)
        state = State.from_content(files.read(self._state))
        if state not in [State(now, None, tag.value) for tag in _CLEAN]:
            return False
        return all(
            isinstance(found := files.read(file), Readable) and found.raw == content
            for file in (self.working, self.original, self.latest)
        )

    def _plan(self, found: Found, generated: str, policy: Policy) -> Plan:
        return edit_table.decide(found, generated, policy, self._judge)

    def _look(self) -> Found:
        state = State.from_content(files.read(self._state))
        return Found(files.read(self.working), files.read(self.original), state)

    def _decide_and_write(self, generated: str, policy: Policy) -> Decision:
        warning = self._write_latest(generated)
        for _ in range(_ATTEMPTS):
            found = self._look()
            plan = self._plan(found, generated, policy)
            try:
                places = self._apply(found, plan)
            except _SavedMeanwhile:
                continue
            except OSError as error:
                return self._decision(plan, warning or self._why_not(error))
            return self._decision(plan, warning, places)
        plan = self._plan(self._look(), generated, policy)
        return self._decision(plan, f"{self.working} is being saved all the time")

    def _decision(self, plan: Plan, warning: str, places: dict[str, Path] | None = None) -> Decision:
        """What a plan comes to; without places, nothing of it was written."""
        match plan.tag:
            case Tag.REFUSED:
                raise self._conflict()
            case Tag.PATCHED_INVALID:
                raise self._invalid(plan.why)
            case _:
                tag = Tag.CANNOT_UPDATE if places is None and plan.working is not None else plan.tag
        if tag is Tag.CANNOT_UPDATE and warning:
            return Decision(tag, plan.text, plan.edited, (f"{tag.value} {self.working}: {warning}",))
        lines = messages_of(tag, plan, self._names, places or {})
        return Decision(tag, plan.text, plan.edited, (*lines, warning) if warning else lines)

    def _write_latest(self, generated: str) -> str:
        """A warning if it cannot be written; the other files are still worth a try."""
        content = generated.encode()
        found = files.read(self.latest)
        try:
            if not (isinstance(found, Readable) and found.raw == content):
                files.replace(self.latest, content, durable=self._durable)
        except OSError as error:
            return self._why_not(error)
        return ""

    def _apply(self, found: Found, plan: Plan) -> dict[str, Path]:
        """Carry the plan out, and say where things were put; stopped anywhere, the next run finishes it.

        The state goes first, with the digest of the text that is about to appear: whoever finds that text in one of
        the files then knows that no person wrote it. The working copy goes before the baseline: the other way round,
        a generated text that is out of date would look like an edit.
        """
        places = files.put_away(self.working, plan.backups) if plan.backups else {}
        baseline = found.baseline
        if plan.original is not None:
            self._write_state(State(baseline, edit_table.digest(plan.original), found.state.action))
        if plan.working is not None:
            self._replace_working(found, plan.working, durable=self._durable)
        if plan.original is not None:
            if plan.moves_original:
                places[".original.bad"] = files.move_away(self.original, self.working, ".original.bad")
            files.replace(self.original, plan.original.encode(), durable=self._durable)
            baseline = edit_table.digest(plan.original)
        self._write_state(State(baseline, None, plan.tag.value))
        return places

    def _replace_working(self, found: Found, text: str, *, durable: bool) -> None:
        now = files.read(self.working)
        if now != found.working:
            raise _SavedMeanwhile
        if isinstance(now, Readable) and now.read_only:
            raise PermissionError(errno.EACCES, "it is marked read-only", str(self.working))
        files.replace(self.working.resolve(), text.encode(), durable=durable)  # of a link, what it leads to

    def _write_state(self, state: State) -> None:
        content = state.to_json()
        found = files.read(self._state)
        if not isinstance(found, Readable) or found.raw != content:
            files.replace(self._state, content, durable=self._durable)

    def _put_away(self, found: Found) -> Path:
        """Keep the working copy, whatever it is."""
        raw = found.working.raw if found.working is not None else None
        if raw is None:
            return files.move_away(self.working, self.working, ".bak")
        return files.put_away(self.working, {".bak": raw})[".bak"]

    @contextlib.contextmanager
    def _held(self) -> Iterator[None]:
        """Hold the folder for a person who waits: whatever is in the way is an error."""
        data = {"path": str(self.working)}
        try:
            with files.locked(self.path, PATIENCE_S):
                yield
        except _SavedMeanwhile:
            raise EditError("TK423", f"{self.working} was saved at this very moment: look at it", data=data) from None
        except OSError as error:
            raise EditError("TK423", f"the edit is not stored: {self._why_not(error)}", data=data) from error

    def _why_not(self, error: OSError) -> str:
        if isinstance(error, TimeoutError):
            return f"another process holds {self.path} for more than {PATIENCE_S:g} s: nothing is written"
        if isinstance(error, FileExistsError):
            return f"{self.path} is no folder"
        return f"cannot write {error.filename or self.path}: {files.reason(error)}"

    def _conflict(self) -> EditConflict:
        return EditConflict(
            "TK422",
            f"{self.working} was edited, and {self._names.generated} has changed since",
            notes=[f"the edit is based on {self.original}", f"what is generated now is in {self.latest}"],
            help=f"bring the change into {self.working.name}, then copy {self.latest.name} over {self.original.name}",
            data={"tag": Tag.REFUSED, "path": str(self.working)},
        )

    def _invalid(self, kernel: str) -> EditError:
        return EditError(
            "TK421",
            f"{self.working} has no kernel {kernel}: it needs the function {kernel} and the line TK_KERNEL({kernel})",
            help="delete the file to go back to the generated source",
            data={"tag": Tag.PATCHED_INVALID, "path": str(self.working), "kernel": kernel},
        )


# ------------------------------------------------------------------------------------------------ many kernels


def folder_name(kernel: Identity) -> str:
    """The name of the folder of a kernel; its text has no say in it, so the folder stays when the text changes."""
    key8 = hashlib.sha256(json.dumps(_words(kernel)).encode()).hexdigest()[:8]
    return f"{safe_name(kernel.script)}-{key8}"


class EditStore:
    """The folders of everything that one script or notebook compiles.

    The first kernel of a process has its files in `root` itself, where people look for them, and every other one in a
    folder of its own. A kernel keeps `root` as long as an edit of it lies there, whichever comes first later.
    """

    def __init__(self, root: Path, working: str = WORKING) -> None:
        self.root = root.absolute()
        self.working = working
        self._claim = self.root / (".kernel.json" if working == WORKING else f".{working}.kernel.json")
        self._first: Identity | None = None
        self._apart = Apart(lambda kernel: os.path.isdir(self.root / folder_name(kernel)))
        self._lock = threading.Lock()

    def folder(self, kernel: Identity) -> EditFolder:
        """Where the files of this kernel are."""
        kernel = self._apart.known_as(kernel)
        if kernel.enclosed:
            return EditFolder(self.root / folder_name(kernel), self.working)
        with self._lock:
            self._first = self._first or kernel
            is_first = self._first == kernel
        own = EditFolder(self.root / folder_name(kernel), self.working)
        is_waited_for, at_root = True, self._holds_root(kernel)
        if is_first and not at_root:
            try:
                with files.locked(self.root, PATIENCE_S):
                    at_root = self._holds_root(kernel) or self._take_root(kernel, own)
            except OSError as error:  # nothing can be written, so nothing can be mixed up
                is_waited_for, at_root = not isinstance(error, TimeoutError), True
        found = EditFolder(self.root, self.working) if at_root else own
        found.is_waited_for = is_waited_for
        return found

    def _holds_root(self, kernel: Identity) -> bool:
        claim = files.read(self._claim)
        return isinstance(claim, Readable) and claim.raw == _to_json(kernel)

    def _take_root(self, kernel: Identity, own: EditFolder) -> bool:
        at_root = EditFolder(self.root, self.working)
        # one that is damaged says no more than none: an edit that lies there is not left without a kernel
        is_others = _is_claim(files.read(self._claim)) and at_root.holds_edit()
        if is_others or own.holds_edit():
            return False
        files.replace(self._claim, _to_json(kernel))
        return True


def safe_name(name: str) -> str:
    """A name that is one part of a path, visible, and not too long for any file system."""
    return re.sub(r"[^\w.-]+", "_", name).lstrip(".-")[:60] or "kernel"


def _words(kernel: Identity) -> dict[str, str]:
    words = asdict(kernel)
    return words if kernel.enclosed else {name: word for name, word in words.items() if name != "enclosed"}


def _to_json(kernel: Identity) -> bytes:
    return (json.dumps(_words(kernel), indent=2) + "\n").encode()


def _is_claim(content: files.Content) -> bool:
    try:
        found = json.loads(content.text) if isinstance(content, Readable) else None
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.keys() == {each.name for each in fields(Identity)} - {"enclosed"}
