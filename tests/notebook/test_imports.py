# SPDX-License-Identifier: Apache-2.0
"""The rewriting of imports of tilus."""

import ast
import sys

import pytest

import tilekit
from tilekit.notebook import imports


def rewritten(text: str) -> str:
    return ast.unparse(imports.rewrite_imports(ast.parse(text)))


@pytest.mark.parametrize(
    "before, after",
    [
        ("import tilus", "import tilekit as tilus"),
        ("import tilus as tl", "import tilekit as tl"),
        ("import tilus.utils as u", "import tilekit.utils as u"),
        ("import tilus.ir.prog", "tilus = __import__('tilekit.ir.prog')"),
        ("from tilus.hidet.ir.dtypes import float16", "from tilekit.dtypes import float16"),
        ("import tilus.hidet.ir.type as t", "import tilekit.dtypes as t"),
        ("import torch, tilus, numpy as np", "import torch\nimport tilekit as tilus\nimport numpy as np"),
        ("from tilus import float32 as f, int32", "from tilekit import float32 as f, int32"),
        ("from tilus.utils import cdiv", "from tilekit.utils import cdiv"),
        ("def f():\n    import tilus", "def f():\n    import tilekit as tilus"),
        ("import tilusaurus, torch", "import tilusaurus, torch"),
        ("from tilusaurus import bones", "from tilusaurus import bones"),
        ("from .tilus import x", "from .tilus import x"),
        ("from . import tilus", "from . import tilus"),
        ("tilus = 1", "tilus = 1"),
    ],
)
def test_imports_of_tilus_are_rewritten_and_no_others(before, after):
    assert rewritten(before) == after


def test_rewritten_imports_keep_their_lines():
    tree = imports.rewrite_imports(ast.parse("\n\nimport torch, tilus.utils\n"))
    assert {node.lineno for node in ast.walk(tree) if isinstance(node, ast.stmt)} == {3}
    compile(tree, "<cell>", "exec")


def test_a_rewritten_import_of_a_submodule_loads_it_and_binds_the_package():
    names: dict[str, object] = {}
    exec(compile(imports.rewrite_imports(ast.parse("import tilus.ir.prog")), "<cell>", "exec"), names)
    assert names["tilus"] is tilekit
    assert "tilekit.ir.prog" in sys.modules


def test_types_are_found_where_tilus_has_them():
    names: dict[str, object] = {}
    exec(compile(imports.rewrite_imports(ast.parse("import tilus.hidet.ir.dtypes")), "<cell>", "exec"), names)
    assert names["tilus"].hidet.ir.dtypes.float16 is tilekit.float16
    assert names["tilus"].hidet.ir.DataType is tilekit.DataType


def test_rewriting_touches_nothing_in_the_process():
    exec(compile(imports.rewrite_imports(ast.parse("import tilus.utils")), "<cell>", "exec"), {})
    assert not any(name.partition(".")[0] == "tilus" for name in sys.modules)
