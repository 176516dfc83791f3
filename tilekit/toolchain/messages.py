# SPDX-License-Identifier: Apache-2.0
"""What compilers say, whoever says it: NVRTC, nvcc, ptxas, g++, clang++ and the linker, read into `Message`s.

A message knows two places. `line` and `col` are where the compiler points, in `file`. `source_line` is the line of
`source.cu` that the person must look at: the same one, or, for an error inside a template of a `tk/` header, the line
that instantiated it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from typing import cast

from tilekit.diag import ToolchainError

SOURCE = "source.cu"
PTX = "ptx"


class Severity(Enum):
    """How bad it is."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class Message:
    """One complaint of a compiler; lines and columns count from 1, and 0 means that it named none."""

    line: int
    col: int
    severity: Severity
    text: str
    file: str = SOURCE
    source_line: int = 0

    def __str__(self) -> str:
        return (
            f"{self.place}: {self.severity.value}: {self.text}" if self.place else f"{self.severity.value}: {self.text}"
        )

    @property
    def place(self) -> str:
        """Where the compiler points, as `file:line:col` with what is known of it."""
        known = [str(part) for part in (self.line, self.col) if part]
        return ":".join([self.file, *known]) if self.file else ""


def parse(log: str, source: str = SOURCE) -> tuple[Message, ...]:
    """Read a compiler's output; `source` is the name under which it was given the kernel."""
    return _Parser(source).run(log.splitlines())


def locate_ptx(messages: Iterable[Message], ptx: str, source: str = SOURCE) -> tuple[Message, ...]:
    """Give each message of ptxas its line of the source, which `-lineinfo` left beside every line of the PTX."""
    lines = ptx_source_lines(ptx, source)
    return tuple(
        replace(message, source_line=lines[min(message.line, len(lines)) - 1])
        if message.file == PTX and message.line and lines
        else message
        for message in messages
    )


def compile_failure(tool: str, log: str, messages: Iterable[Message] | None = None) -> ToolchainError:
    """Build the error for a source that does not compile; the first message is its headline, the log lies in a note."""
    found = tuple(parse(log) if messages is None else messages)
    errors = [message for message in found if message.severity is Severity.ERROR]
    if not errors:
        return ToolchainError("TK501", f"{tool} failed: {log.strip() or 'it said nothing'}", data={"messages": found})
    first, more = errors[0], len(errors) - 1
    others = f" (and {more} more error{'s' if more > 1 else ''})" if more else ""
    notes = [str(message) for message in errors[1:_SHOWN]]
    if first.source_line and not _is_source(first.file, SOURCE):
        notes.insert(0, f"{tool} points at {first.place}")
    return ToolchainError("TK501", f"{_headline(first)}{others}", notes=notes, data={"messages": found})


def in_file(error: ToolchainError, path: str) -> ToolchainError:
    """The same error, where the source that was compiled lies in this file."""

    def named(text: str) -> str:
        return path + text.removeprefix(SOURCE) if text.startswith(SOURCE) else text

    said, found = error.diagnostic, cast("tuple[Message, ...]", error.data.get("messages", ()))
    renamed = tuple(replace(each, file=path) if each.file == SOURCE else each for each in found)
    notes = [(named(text), at) for text, at in said.notes]
    data = {**error.data, "messages": renamed, "path": path}
    help = said.help or "mend it, or delete the file to go back to the generated source"
    return ToolchainError(said.code, named(said.message), at=said.at, notes=notes, help=help, data=data)


_SHOWN = 5  # errors told in full: the rest is in the log, and most often follows from these


def _headline(message: Message) -> str:
    if message.source_line:
        return f"{SOURCE} line {message.source_line}: {message.text}"
    return f"{message.place}: {message.text}" if message.place else message.text


def _header_name(file: str) -> str:
    """A header is shown as a source would include it: `tk/mma.h`, not where it happens to be installed."""
    return file.rsplit("/include/", 1)[-1].removeprefix("./")


def _is_source(file: str, source: str) -> bool:
    return file == source or file.endswith(f"/{source}")


_PTX_FILE = re.compile(r'\s*\.file\s+(?P<index>\d+)\s+"(?P<file>[^"]*)"')
# An instruction of an inlined function carries the line that inlined it.
_PTX_LOC = re.compile(r"\s*\.loc\s+(?P<file>\d+)\s+(?P<line>\d+)(?:.*inlined_at (?P<outer>\d+) (?P<outer_line>\d+))?")


def ptx_source_lines(ptx: str, source: str = SOURCE) -> list[int]:
    """For every line of PTX, the latest source line named at or above it, counted from 1; 0 before the first."""
    files = {
        found["index"]
        for line in ptx.splitlines()
        if (found := _PTX_FILE.match(line)) and _is_source(found["file"], source)
    }
    current, lines = 0, list[int]()
    for line in ptx.splitlines():
        if found := _PTX_LOC.match(line):
            if found["file"] in files:
                current = int(found["line"])
            elif found["outer"] in files:
                current = int(found["outer_line"])
        lines.append(current)
    return lines


_SEVERITIES = {
    "error": Severity.ERROR,
    "fatal": Severity.ERROR,
    "fatal error": Severity.ERROR,
    "catastrophic error": Severity.ERROR,
    "internal error": Severity.ERROR,
    "warning": Severity.WARNING,
    "remark": Severity.NOTE,
    "note": Severity.NOTE,
}
_LEVEL = r"(?P<level>(?:fatal |catastrophic |internal )?error|fatal|warning|note|remark)"

# NVRTC, nvcc:   source.cu(4): error: identifier "y" is undefined
_EDG = re.compile(rf"(?P<file>[^\s()][^()]*)\((?P<line>\d+)\): {_LEVEL}(?: #\d+(?:-D)?)?: (?P<text>.*)")
_EDG_END = re.compile(rf"At end of source: {_LEVEL}(?: #\d+(?:-D)?)?: (?P<text>.*)")
_EDG_ORIGIN = re.compile(r"\s+(?:detected during|instantiation of).* at line (?P<line>\d+)(?: of (?P<file>\S+))?")
_CARET = re.compile(r"\s*\^[~^\s]*$")
# ptxas:         ptxas application ptx input, line 27; error   : Unknown modifier '.bar'
_PTXAS = re.compile(rf"ptxas (?P<file>.*), line (?P<line>\d+); {_LEVEL}\s*: (?P<text>.*)")
# g++, clang++:  source.cu:5:8: error: no matching function for call to 'g(int&)'
_GNU = re.compile(rf"(?P<file>[^\s:][^:]*):(?P<line>\d+):(?P<col>\d+): {_LEVEL}: (?P<text>.*)")
_GNU_ORIGIN = re.compile(r"(?P<file>[^\s:][^:]*):(?P<line>\d+):\d+:\s+required from\b")
_CLANG_ORIGIN = re.compile(r"in instantiation of .* requested here")
# ld, ld.lld:    /usr/bin/ld: /path/source.cu:2: undefined reference to `f(int)'
_LINKER = re.compile(
    r"(?:\S*ld\S*: )?(?P<file>[^\s:][^:]*):(?:(?P<line>\d+)|\(.*\)): (?P<text>undefined reference to .*)"
)
# any of them:   nvcc fatal   : Unsupported gpu architecture 'compute_77'
_TOOL = re.compile(
    r"\S*(?:nvrtc|nvcc|ptxas|nvlink|\+\+|gcc|clang|cc1plus|collect2|ld\.?\w*)\s*:?\s*"
    r"(?P<level>fatal error|fatal|error|warning)\s*: (?P<text>.*)"
)
_FOLLOWS = re.compile(r"Ptx assembly aborted|ld returned \d+ exit status|linker command failed|\d+ errors? generated")


class _Parser:
    """One walk over the lines; it remembers which g++ instantiation the coming errors belong to."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.messages: list[Message] = []
        self.required_at = 0

    def run(self, lines: list[str]) -> tuple[Message, ...]:
        at = 0
        while at < len(lines):
            at += self.read(lines, at)
        primary = [message for message in self.messages if not _FOLLOWS.search(message.text)]
        return tuple(primary or self.messages)

    def read(self, lines: list[str], at: int) -> int:
        """Read the message that starts at this line, if one does, and return how many lines it took."""
        line = lines[at]
        if match := _EDG.match(line):
            return self.read_edg(match, lines, at)
        if match := _EDG_END.match(line):
            self.add(match["level"], match["text"], self.source)
        elif match := _PTXAS.match(line):
            self.add(match["level"], match["text"], PTX, int(match["line"]))
        elif match := _GNU.match(line):
            self.read_gnu(match)
        elif match := _GNU_ORIGIN.match(line):
            if _is_source(match["file"], self.source):
                self.required_at = int(match["line"])
        elif match := _LINKER.match(line):
            self.add("error", match["text"], match["file"], int(match["line"] or 0))
        elif match := _TOOL.match(line):
            self.add(match["level"], match["text"], "")
        return 1

    def read_edg(self, match: re.Match[str], lines: list[str], at: int) -> int:
        """EDG prints: header, more text, the source line indented by two, a caret, and where a template came from."""
        end = at + 1
        while end < len(lines) and lines[end].startswith(" "):
            end += 1
        body = lines[at + 1 : end]
        caret = next((i for i, line in enumerate(body) if _CARET.match(line)), None)
        col, text = 0, [match["text"]]
        if caret is not None:
            col = body[caret].index("^") - 1
            text += [line.strip() for line in body[: max(caret - 1, 0)]]
        origins = [found for line in body if (found := _EDG_ORIGIN.match(line))]
        origin = next((o for o in origins if o["file"] and _is_source(o["file"], self.source)), None)
        self.add(
            match["level"], " ".join(text), match["file"], int(match["line"]), col, int(origin["line"]) if origin else 0
        )
        return end - at

    def read_gnu(self, match: re.Match[str]) -> None:
        line, level = int(match["line"]), match["level"]
        if level == "note" and _CLANG_ORIGIN.search(match["text"]) and self.messages:
            last = self.messages[-1]  # clang++ names the instantiation after the error, g++ before it
            if not last.source_line and _is_source(match["file"], self.source):
                self.messages[-1] = replace(last, source_line=line)
            return
        self.add(level, match["text"], match["file"], line, int(match["col"]), self.required_at)
        if level != "note":
            self.required_at = 0

    def add(self, level: str, text: str, file: str, line: int = 0, col: int = 0, origin: int = 0) -> None:
        in_source = _is_source(file, self.source)
        self.messages.append(
            Message(
                line=line,
                col=col,
                severity=_SEVERITIES[level],
                text=text.strip(),
                file=self.source if in_source else _header_name(file),
                source_line=line if in_source else origin,
            )
        )
