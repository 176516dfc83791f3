# SPDX-License-Identifier: Apache-2.0
"""What `import tilus` means: tilekit stands in for tilus, and its modules for the submodules of the same name.

A `%%tilus` cell has its imports rewritten to it, which touches nothing else in the process. `install_as_tilus` does
the same for every module imported later; it refuses where the real tilus is loaded.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType

from tilekit.diag import errors
from tilekit.notebook import imports


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Answers `import tilus…` with tilekit's modules."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        return importlib.machinery.ModuleSpec(fullname, self) if imports.is_tilus(fullname) else None

    def exec_module(self, module: ModuleType) -> None:
        """Put tilekit's module under the name: the import system hands out what it finds there afterwards."""
        assert module.__spec__ is not None
        name = module.__spec__.name
        ours = imports.module_for(name)
        try:
            sys.modules[name] = importlib.import_module(ours)
        except ModuleNotFoundError as missing:
            if missing.name != ours:
                raise
            why = f"tilekit has no {ours}, which would stand for {name}"
            raise ModuleNotFoundError(why, name=name) from None


def install_as_tilus() -> None:
    """Let `import tilus` mean tilekit in this process; an error if the real tilus is loaded."""
    loaded = sys.modules.get(imports.TILUS)
    if loaded is not None and loaded.__name__ != "tilekit":
        raise errors.ConfigError(
            "TK905", "tilus itself is loaded in this process, and the two cannot share its name",
            help="call tilekit.install_as_tilus() before anything imports tilus, or use %%tilus cells",
        )  # fmt: skip
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
