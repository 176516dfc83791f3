# SPDX-License-Identifier: Apache-2.0
"""What `import tilus` means: tilekit stands in for tilus, and its modules for the submodules of the same name.

A `%%tilus` cell has its imports rewritten to it, which touches nothing else in the process. `install_as_tilus` does
the same for every module imported later; it refuses where the real tilus is loaded.
"""

from __future__ import annotations

import ast
import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType

from tilekit.diag import errors

_NAME = "tilus"


def module_for(name: str) -> str:
    """The module that stands for `tilus` or one of its submodules."""
    return f"tilekit{name.removeprefix(_NAME)}"


def _is_tilus(name: str | None) -> bool:
    return name is not None and (name == _NAME or name.startswith(f"{_NAME}."))


class _Imports(ast.NodeTransformer):
    def visit_Import(self, node: ast.Import) -> ast.AST | list[ast.stmt]:
        if not any(_is_tilus(alias.name) for alias in node.names):
            return node
        found: list[ast.stmt] = []
        for alias in node.names:
            if not _is_tilus(alias.name):
                found.append(ast.Import([alias]))
            elif alias.name == _NAME or alias.asname is not None:
                new = ast.alias(module_for(alias.name), alias.asname or _NAME)
                found.append(ast.Import([ast.copy_location(new, alias)]))
            else:
                # `import tilus.ir.prog` loads the module and binds the package
                load = ast.Call(ast.Name("__import__", ast.Load()), [ast.Constant(module_for(alias.name))], [])
                found.append(ast.Assign([ast.Name(_NAME, ast.Store())], load))
        return [ast.fix_missing_locations(ast.copy_location(statement, node)) for statement in found]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        if node.level == 0 and _is_tilus(node.module):
            assert node.module is not None
            return ast.copy_location(ast.ImportFrom(module_for(node.module), node.names, 0), node)
        return node


def rewrite_imports(tree: ast.Module) -> ast.Module:
    """Turn the imports of tilus in a module's tree into imports of what stands for it, positions kept."""
    return _Imports().visit(tree)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Answers `import tilus…` with tilekit's modules."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        return importlib.machinery.ModuleSpec(fullname, self) if _is_tilus(fullname) else None

    def exec_module(self, module: ModuleType) -> None:
        """Put tilekit's module under the name: the import system hands out what it finds there afterwards."""
        assert module.__spec__ is not None
        name = module.__spec__.name
        ours = module_for(name)
        try:
            sys.modules[name] = importlib.import_module(ours)
        except ModuleNotFoundError as missing:
            if missing.name != ours:
                raise
            why = f"tilekit has no {ours}, which would stand for {name}"
            raise ModuleNotFoundError(why, name=name) from None


def install_as_tilus() -> None:
    """Let `import tilus` mean tilekit in this process; an error if the real tilus is loaded."""
    loaded = sys.modules.get(_NAME)
    if loaded is not None and loaded.__name__ != "tilekit":
        raise errors.ConfigError(
            "TK905", "tilus itself is loaded in this process, and the two cannot share its name",
            help="call tilekit.install_as_tilus() before anything imports tilus, or use %%tilus cells",
        )  # fmt: skip
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
