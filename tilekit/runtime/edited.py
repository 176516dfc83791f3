# SPDX-License-Identifier: Apache-2.0
"""A `source.cu` that a person edited, compiled in place of what was generated for the same program."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

from tilekit import textdiff
from tilekit.cache.programs import key_of
from tilekit.config import Config
from tilekit.diag.errors import ToolchainError
from tilekit.events import Edited
from tilekit.runtime import builds, compiled
from tilekit.runtime.builds import Compiler, Made
from tilekit.runtime.compiled import CompiledProgram
from tilekit.runtime.tensors import DeviceKind
from tilekit.target import Target
from tilekit.toolchain import messages


def build(
    generated: CompiledProgram, edit: Edited, target: Target, device: DeviceKind, config: Config
) -> CompiledProgram:
    """Compile an edit, or find it in the cache.

    The key holds the digest of the text, so the edit is never served to anybody who did not make it. What is written
    through any pointer is copied back: nobody knows what an edit writes. The binary says that it is one.
    """
    if edit.text == generated.source:
        return replace(generated, edit_state=edit.state)
    cache, toolchain = compiled.cache_of(config), builds.compiler_for(target, device, config)
    options = {**compiled.options_of(target, device, config), "edited": edit.provenance}
    options["generated"] = generated.entry.key
    key = key_of({"generated": generated.entry.key, "text": edit.text, "toolchain": options["toolchain"]})
    entry = cache.lookup(key)
    cached = entry is not None
    if entry is None:
        _require_kernel(edit.text, generated.manifest.kernel)
        made = _compile(edit, toolchain)
        params = tuple(replace(p, written=p.is_pointer, read=True) for p in generated.manifest.params)
        manifest, changed = replace(generated.manifest, params=params), generated.facts.changed_passes
        lines = _carried_lines(generated, edit.text)
        # nobody knows which tensor an edited line means
        files = builds.entry_files(options, manifest, changed, edit.text, lines, [], made)
        entry = cache.publish(key, files)
    made_of_it = compiled.of_entry(entry, cached=cached, recorder=generated.recorder)
    return replace(made_of_it, edit=edit, edit_state=edit.state, generated=generated)


def marked(source: str, edited: str) -> str:
    """A source whose binary holds the mark of an edited text; its lines stay where they are."""
    return f'{source.rstrip()}\nextern "C" __device__ const char tk_patched[] = "{mark(edited)}";\n'


def mark(text: str) -> str:
    """What the binary of an edited source holds, and `strings` finds."""
    return f"tilekit: patched, source of sha256 {hashlib.sha256(text.encode()).hexdigest()}"


def _compile(edit: Edited, toolchain: Compiler) -> Made:
    """Compile the text with its mark; what the compiler says of it names the file that a person edits."""
    try:
        return toolchain.compile(marked(edit.text, edit.text))
    except ToolchainError as error:
        if not Path(edit.provenance).is_absolute():
            raise
        raise messages.in_file(error, edit.provenance) from error.__cause__


def _require_kernel(text: str, kernel: str) -> None:
    """Refuse an edit in which the loader would not find the kernel, in words rather than by its symbol table."""
    for needed in (f"{kernel}(", f"TK_KERNEL({kernel})"):
        if needed not in text:
            raise ToolchainError(
                "TK508",
                f"the edited source has no {needed.removesuffix('(')}, by which the kernel is found",
                help="put it back, or revert to the generated source",
            )


def _carried_lines(generated: CompiledProgram, text: str) -> list[int | None]:
    """The line map of the generated source, carried to the lines of an edited text that it shares with it."""
    known: list[int | None] = json.loads(generated.line_map)
    return textdiff.carried(known, generated.source.splitlines(), text.splitlines())
