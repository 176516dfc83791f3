# SPDX-License-Identifier: Apache-2.0
"""What `import tilus` means, in a cell and in a process."""

import ast
import subprocess
import sys
import textwrap

import pytest

import tilekit
from tilekit import aliases


def rewritten(text: str) -> str:
    return ast.unparse(aliases.rewrite_imports(ast.parse(text)))


def run(code: str, *, fails: bool = False) -> str:
    """Run code in a process of its own; what it prints, or its complaint."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120)
    assert (done.returncode != 0) == fails, done.stderr
    return done.stderr if fails else done.stdout


@pytest.mark.parametrize(
    "before, after",
    [
        ("import tilus", "import tilekit as tilus"),
        ("import tilus as tl", "import tilekit as tl"),
        ("import tilus.utils as u", "import tilekit.utils as u"),
        ("import tilus.ir.prog", "tilus = __import__('tilekit.ir.prog')"),
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
    tree = aliases.rewrite_imports(ast.parse("\n\nimport torch, tilus.utils\n"))
    assert {node.lineno for node in ast.walk(tree) if isinstance(node, ast.stmt)} == {3}
    compile(tree, "<cell>", "exec")


def test_a_rewritten_import_of_a_submodule_loads_it_and_binds_the_package():
    names: dict[str, object] = {}
    exec(compile(aliases.rewrite_imports(ast.parse("import tilus.ir.prog")), "<cell>", "exec"), names)
    assert names["tilus"] is tilekit
    assert "tilekit.ir.prog" in sys.modules


def test_rewriting_touches_nothing_in_the_process():
    exec(compile(aliases.rewrite_imports(ast.parse("import tilus.utils")), "<cell>", "exec"), {})
    assert not any(name.partition(".")[0] == "tilus" for name in sys.modules)


def test_installed_it_answers_for_every_module():
    out = run("""
        import tilekit
        tilekit.install_as_tilus()
        tilekit.install_as_tilus()
        import tilus, tilus.utils, sys
        from tilus import Script, float32
        from tilus.ir.prog import Program
        import tilekit.ir.prog
        assert tilus is tilekit
        assert tilus.utils is tilekit.utils
        assert sys.modules["tilus.ir"] is tilekit.ir
        assert Program is tilekit.ir.prog.Program
        assert tilekit.__spec__.name == "tilekit" and tilekit.utils.__spec__.name == "tilekit.utils"
        print(sum(isinstance(finder, tilekit.aliases._Finder) for finder in sys.meta_path))
    """)
    assert out == "1\n"


def test_a_module_that_tilekit_does_not_have_is_named():
    said = run("import tilekit; tilekit.install_as_tilus(); import tilus.nowhere", fails=True)
    assert said.splitlines()[-1] == (
        "ModuleNotFoundError: tilekit has no tilekit.nowhere, which would stand for tilus.nowhere"
    )


def test_beside_a_loaded_tilus_it_refuses():
    said = run(
        """
        import sys, types
        sys.modules["tilus"] = types.ModuleType("tilus")
        import tilekit
        tilekit.install_as_tilus()
        """,
        fails=True,
    )
    assert said.splitlines()[-2:] == [
        "tilekit.diag.ConfigError: TK905: tilus itself is loaded in this process, and the two cannot share its name",
        "  help: call tilekit.install_as_tilus() before anything imports tilus, or use %%tilus cells",
    ]
