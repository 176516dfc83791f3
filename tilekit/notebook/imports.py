# SPDX-License-Identifier: Apache-2.0
"""Imports of tilus as imports of tilekit: which module stands for which, and the rewriting of a tree."""

from __future__ import annotations

import ast

TILUS = "tilus"

# where tilekit has the contents of a module of tilus under another name
_ELSEWHERE = {"tilus.hidet.ir.dtypes": "tilekit.dtypes", "tilus.hidet.ir.type": "tilekit.dtypes"}


def module_for(name: str) -> str:
    """The module that stands for `tilus` or one of its submodules."""
    return _ELSEWHERE.get(name, f"tilekit{name.removeprefix(TILUS)}")


def _loaded_for(name: str) -> str:
    """The module to load for `import name`, in which the names on the way are found."""
    return module_for(name.rpartition(".")[0] if name in _ELSEWHERE else name)


def is_tilus(name: str | None) -> bool:
    return name is not None and (name == TILUS or name.startswith(f"{TILUS}."))


class _Imports(ast.NodeTransformer):
    def visit_Import(self, node: ast.Import) -> ast.AST | list[ast.stmt]:
        if not any(is_tilus(alias.name) for alias in node.names):
            return node
        found: list[ast.stmt] = []
        for alias in node.names:
            if not is_tilus(alias.name):
                found.append(ast.Import([alias]))
            elif alias.name == TILUS or alias.asname is not None:
                new = ast.alias(module_for(alias.name), alias.asname or TILUS)
                found.append(ast.Import([ast.copy_location(new, alias)]))
            else:
                # `import tilus.ir.prog` loads the module and binds the package
                load = ast.Call(ast.Name("__import__", ast.Load()), [ast.Constant(_loaded_for(alias.name))], [])
                found.append(ast.Assign([ast.Name(TILUS, ast.Store())], load))
        return [ast.fix_missing_locations(ast.copy_location(statement, node)) for statement in found]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        if node.level == 0 and is_tilus(node.module):
            assert node.module is not None
            return ast.copy_location(ast.ImportFrom(module_for(node.module), node.names, 0), node)
        return node


def rewrite_imports(tree: ast.Module) -> ast.Module:
    """Turn the imports of tilus in a module's tree into imports of what stands for it, positions kept."""
    return _Imports().visit(tree)
