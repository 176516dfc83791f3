# SPDX-License-Identifier: Apache-2.0
"""From a cubin back to text: the machine code (SASS), and the line of PTX behind each instruction of it."""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tilekit.diag import ToolchainError
from tilekit.toolchain import toolkit


@dataclass(frozen=True)
class Sass:
    """The machine code as text; `lines[k]` is the line of PTX that line k comes from, both counted from 0."""

    text: str
    lines: tuple[int | None, ...]


_COMES_FROM = re.compile(r'\s*//## File "\.nv_debug_ptx_txt\.?\d*", line (\d+)')
_INSTRUCTION = re.compile(r"\s*(/\*[0-9a-f]{4,}\*/)\s+")


def disassemble(cubin: bytes) -> str:
    """What nvdisasm prints: the machine code with the lines of its PTX; `parse` reads it."""
    program = toolkit.nvdisasm()
    if program is None:
        raise ToolchainError(
            "TK510",
            "machine code (SASS) cannot be shown: there is no nvdisasm",
            help="pip install nvidia-cuda-nvdisasm, or put that of a CUDA toolkit on PATH",
        )
    with tempfile.TemporaryDirectory(prefix="tilekit-sass-") as folder:
        file = Path(folder, "kernel.cubin")
        file.write_bytes(cubin)
        arguments = ["--print-code", "--print-line-info-ptx", "--no-dataflow", str(file)]
        run = subprocess.run([str(program), *arguments], capture_output=True, text=True, errors="replace", check=False)
    if run.returncode != 0:
        raise ToolchainError(
            "TK510",
            f"{program} cannot read the kernel: {(run.stderr or run.stdout).strip() or 'it said nothing'}",
            help="pip install --upgrade nvidia-cuda-nvdisasm: one that is older than the compiler may not know the GPU",
        )
    return run.stdout


def parse(printed: str) -> Sass:
    """Read what `disassemble` gives."""
    text: list[str] = []
    lines: list[int | None] = []
    ptx: int | None = None
    for line in printed.strip("\n").split("\n"):
        if found := _COMES_FROM.match(line):
            ptx = int(found[1]) - 1
            continue
        if line.lstrip().startswith(".section"):
            ptx = None
        instruction = _INSTRUCTION.match(line)
        if line.strip() or (text and text[-1]):
            # the address and the instruction close together, so that both are seen where there is little room
            text.append(_INSTRUCTION.sub(r"  \1  ", line, count=1).rstrip() if instruction else line.rstrip())
            lines.append(ptx if instruction else None)
    return Sass("\n".join(text) + "\n", (*lines, None))
