# SPDX-License-Identifier: Apache-2.0
"""What a kernel did wrong, from lines of `source.cu` to the lines of the person who wrote the kernel."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from tilekit import dtypes
from tilekit.diag.diagnostic import Note
from tilekit.diag.errors import KernelError

if TYPE_CHECKING:
    from tilekit.jit.kernel import Kernel
    from tilekit.runtime.manifest import SharedPlace


def place(error: KernelError, kernel: Kernel) -> KernelError:
    """The error at the line of the user's cell, with its notes at theirs; its data says both lines of each access."""
    text = kernel.source.splitlines()
    line = error.data.get("line")
    at = line if isinstance(line, int) and 0 < line <= len(text) else None
    span = kernel.span_of_line(at or 0)
    known = list(cast("Sequence[tuple[str, int | None]]", error.data.get("notes", ())))
    rest = error.diagnostic.notes[len(known) :]
    notes = [_note(note, where, kernel, text) for note, where in known]
    if at is not None and at not in (where for _, where in known):
        # the sentence above the notes has the line of the cell already
        who, quote = notes.pop()[0] if known and known[-1][1] is None else "it happened here", _quote(text, at)
        notes.append((f"{who}\n{quote}", None))
    error.with_notes([*notes, *rest])
    for end in ("first", "second"):
        access = cast("dict[str, Any] | None", error.data.get(end))
        if access is not None:
            access.update(_origin(access["line"], kernel, text))
    if at is not None:
        error.data.update(_origin(at, kernel, text))
    if span is not None:
        # the place stands in front already
        error.diagnostic = replace(error.diagnostic, message=str(error.data.get("text", error.message)))
    _index_shared(error, kernel)
    _name_element(error)
    if error.code == "TK707":
        _name_workspace(error, kernel)
    return error.located(span)


def _origin(line: int | None, kernel: Kernel, text: Sequence[str]) -> dict[str, object]:
    """Of a line of `source.cu`: its text, the tile instruction, and where in the cell that was written."""
    span = kernel.span_of_line(line or 0)
    location = None if span is None else kernel.sources.locate(span)
    return {
        "code": text[line - 1].strip() if line is not None and 0 < line <= len(text) else None,
        "instruction": instruction_at(text, line),
        "span": span,
        "cell_line": None if location is None else location.line,
    }


def instruction_at(text: Sequence[str], line: int | None) -> str | None:
    """The tile instruction that a line of `source.cu` belongs to: the comment above it."""
    if line is None or not 0 < line <= len(text):
        return None
    above = (row.strip() for row in reversed(text[:line]))
    return next((row.removeprefix("//").strip() for row in above if row.startswith("// ") and "(" in row), None)


def _note(note: str, line: int | None, kernel: Kernel, text: Sequence[str]) -> Note:
    if line is None or not 0 < line <= len(text):
        return note, None
    return f"{note}\n{_quote(text, line)}", kernel.span_of_line(line)


def _quote(text: Sequence[str], line: int) -> str:
    instruction, code = instruction_at(text, line), f"source.cu line {line}: {text[line - 1].strip()}"
    return code if instruction is None or instruction in code else f"tile instruction: {instruction}\n{code}"


def _index_shared(error: KernelError, kernel: Kernel) -> None:
    """The index of the element of a tensor in shared memory, from its byte."""
    offset, compiled = error.data.get("byte_offset"), kernel.compiled
    if not error.data.get("is_shared") or compiled is None or not isinstance(offset, int):
        return
    place = next((place for place in compiled.manifest.shared if place.name == error.data["tensor"]), None)
    index = None if place is None else shared_index(place, offset)
    error.data["index"] = index


def _name_element(error: KernelError) -> None:
    """Say which element it is in place of the byte, which is all that the simulator knows."""
    index = cast("tuple[int, ...] | None", error.data.get("index"))
    if index is None:
        return
    tensor, offset = error.data["tensor"], error.data["byte_offset"]
    element = f"{tensor}[{', '.join(map(str, index))}]"
    message = error.message.replace(f"byte {offset} of shared tensor '{tensor}'", f"{element} in shared memory")
    for words in (f"byte {offset} of '{tensor}'", f"'{tensor}'"):
        message = message.replace(words, element)
    error.diagnostic = replace(error.diagnostic, message=message)


def _name_workspace(error: KernelError, kernel: Kernel) -> None:
    """Say which element of a workspace is not zero, and where the workspace was made."""
    names = importlib.import_module("tilekit.ir.text.names").Names.of_function(kernel.program.function)
    collect = importlib.import_module("tilekit.ir.tools.instruction_collector").collect
    allocation = importlib.import_module("tilekit.ir.instructions.workspace").AllocateGlobalInst
    name, byte = error.data["tensor"], cast("int", error.data["byte_offset"])
    for inst in collect(kernel.program.function, allocation):
        if names.name(inst.tensor) == name:
            element = error.data["offset"] = byte // inst.tensor.dtype.nbytes
            message = error.message.replace(f"byte {byte} is not", f"element {element} is not")
            error.diagnostic = replace(error.diagnostic, message=message)
            error.located(inst.span)
            return


def shared_index(place: SharedPlace, byte: int) -> tuple[int, ...] | None:
    """The element whose bytes hold one of them; None for a byte between elements."""
    # layouts belong to the compiler, which a process that finds its kernels in the cache does without
    layout = importlib.import_module("tilekit.ir.layout.parser").parse_layout(place.layout)
    numpy = importlib.import_module("numpy")
    found = numpy.argwhere(layout.as_numpy_grid() == byte // dtypes.parse(place.dtype).nbytes)
    return tuple(int(digit) for digit in found[0]) if len(found) else None
