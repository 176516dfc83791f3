# SPDX-License-Identifier: Apache-2.0
"""Why a kernel would be found in the cache by a new process, or not: the parts of its keys beside those kept there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilekit.cache.programs import read_options
from tilekit.cache.specializations import SpecializationCache
from tilekit.jit.specialized import Restart, Specialized, shown
from tilekit.runtime import compiled

if TYPE_CHECKING:
    from tilekit.jit.instance import JitInstance
    from tilekit.jit.machine import Machine

_NAMES = {
    "compiler": "the compiler's back end",
    "custom_passes": "custom passes",
    "dump_ir": "the option debug.dump_ir",
    "toolchain": "the toolchain",
}


@dataclass(frozen=True)
class Explanation:
    """What a call would find in the cache.

    `transpiled` says whether the program of the script is there, `compiled` whether its binary is; `changed` are the
    inputs that differ from the most similar one that is there. `untracked` says why the program is never kept.
    """

    name: str
    transpiled: bool
    compiled: bool
    changed: tuple[str, ...] = ()
    untracked: str | None = None

    @property
    def hit(self) -> bool:
        return self.transpiled and self.compiled

    def __str__(self) -> str:
        """A line for each store, and one for each input that has changed."""
        script = "hit" if self.transpiled else "miss"
        if self.untracked is not None:
            script = f"transpiled in every process: {self.untracked}"
        lines = [f"{self.name}: specializations: {script}; programs: {'hit' if self.compiled else 'miss'}"]
        if not self.hit and self.untracked is None and not self.changed:
            lines.append("  nothing like it is in the cache")
        return "\n".join([*lines, *(f"  changed: {change}" for change in self.changed)])


def explain(instance: JitInstance, machine: Machine) -> Explanation:
    """What a new process would find of the first schedule that has a program."""
    restart = instance.restart(machine.config)
    found, kept = _program(instance, restart)
    changed: list[str] = []
    if restart.key is not None and not kept:
        changed += _nearest(restart)
    if found is None:
        return Explanation(instance.instance_name, kept, False, tuple(changed), restart.untracked)
    has_binary = machine.find(found.text) is not None
    if not has_binary:
        changed += _other_options(found.text, machine)
    return Explanation(instance.instance_name, kept, has_binary, tuple(changed), restart.untracked)


def _program(instance: JitInstance, restart: Restart) -> tuple[Specialized | None, bool]:
    """The program of the first schedule that has one, and whether it is in the cache."""
    for number in range(len(instance.schedules)):
        found = restart.load(number)
        kept = found is not None
        if isinstance(found or (found := instance.transpile(number)), Specialized):
            assert isinstance(found, Specialized)
            return found, kept
    return None, False


def _nearest(restart: Restart) -> list[str]:
    """How the inputs differ from those of the most similar specialization of the same script."""
    ours = {name: shown(text) for name, text in restart.inputs.items()}
    manifests = SpecializationCache(restart.config.cache_dir).manifests()
    same = [manifest["inputs"] for manifest in manifests if manifest.get("script") == restart.of.script.__name__]
    differences = [list(_differences(theirs, ours)) for theirs in same]
    return min(differences, key=len, default=[])


def _other_options(text: str, machine: Machine) -> list[str]:
    """How the options differ from those with which the same program was compiled."""
    options, found = machine.options(), list[list[str]]()
    for folder in compiled.cache_of(machine.config).programs.glob("*"):
        try:
            is_same = (folder / compiled.PROGRAM).read_text() == text
        except (OSError, UnicodeDecodeError):
            continue
        if is_same and (theirs := read_options(folder)):
            found.append(list(_differences(theirs, options)))
    return min(found, key=len, default=[])


def _differences(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    for name in dict.fromkeys((*before, *after)):
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        known = _NAMES.get(name, name)
        if old is None or new is None:
            yield f"{known} ({'new' if old is None else 'gone'})"
        elif _is_digest(old) or len(old) + len(new) > 160:
            yield known
        else:
            yield f"{known}: {old} → {new}"


def _is_digest(text: str) -> bool:
    return len(text) >= 32 and all(c in "0123456789abcdef" for c in text)
