# SPDX-License-Identifier: Apache-2.0
"""A kernel in files, with everything that it can depend on; each load is what a new process would see."""

import linecache
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

HELPERS = """\
def larger(value):
    return value + 1.0
"""

KERNEL = """\
import threading

import promised_helpers
import tilekit
from tilekit import float32, int32
from tilekit.utils import cdiv

FACTOR = 2.0


class Base(tilekit.Script):
    def offset(self):
        return 3.0


class Opaque:
    def __init__(self):
        self.lock = threading.Lock()
        self.value = 7.0


def script(block=128, captured=5.0):
    opaque = Opaque()

    class Scale(Base):
        def __init__(self, block):
            super().__init__()
            self.block = block

        def __call__(self, n: int32, x: ~float32, y: ~float32):
            self.attrs.blocks = [cdiv(n, self.block)]
            self.attrs.warps = 1
            start = self.blockIdx.x * self.block
            gx = self.global_view(x, dtype=float32, shape=[n])
            gy = self.global_view(y, dtype=float32, shape=[n])
            tile = self.load_global(gx, offsets=[start], shape=[self.block])
            tile = tile * FACTOR + captured - 11.0
            tile = tile + self.offset()
            tile = tile + promised_helpers.larger(10.0)
            self.store_global(gy, tile, offsets=[start])

    return Scale(block)
"""


class Folder:
    """Two modules in a folder; `edit` replaces text in the one that has it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.texts = {"promised_helpers": HELPERS, "promised_kernel": KERNEL}

    def edit(self, old: str, new: str) -> None:
        (name,) = (name for name, text in self.texts.items() if text.count(old) == 1)
        self.texts[name] = self.texts[name].replace(old, new)

    def load(self) -> Any:
        """The script of modules that were just run for the first time."""
        try:
            for name, text in self.texts.items():
                module = sys.modules[name] = ModuleType(name)
                module.__file__ = str(self.path / f"{name}.py")
                Path(module.__file__).write_text(text)
                linecache.cache.pop(module.__file__, None)
                exec(compile(text, module.__file__, "exec"), module.__dict__)
            return module.script()
        finally:
            for name in self.texts:
                sys.modules.pop(name, None)
