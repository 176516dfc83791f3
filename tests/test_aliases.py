# SPDX-License-Identifier: Apache-2.0
"""What `import tilus` means in a process that asked for it."""

import subprocess
import sys
import textwrap


def run(code: str, *, fails: bool = False) -> str:
    """Run code in a process of its own; what it prints, or its complaint."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120)
    assert (done.returncode != 0) == fails, done.stderr
    return done.stderr if fails else done.stdout


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


def test_scripts_find_the_names_of_the_front_door():
    out = run("""
        import tilekit
        tilekit.install_as_tilus()
        from tilus import Class, Dim3, RegisterLayout, RegisterTensor, SharedLayout
        import tilus
        assert tilus.GlobalTensor.__module__ == RegisterTensor.__module__ == "tilekit.ir.tensor"
        assert tilus.SharedTensor.__module__ == "tilekit.ir.tensor"
        assert Class.__module__.startswith("tilekit") and Dim3.__module__.startswith("tilekit")
        assert RegisterLayout is not SharedLayout
        assert {"Class", "Dim3", "GlobalTensor", "RegisterLayout", "SharedTensor"} <= set(dir(tilus))
        assert tilus.get_current_target().name.startswith("sm_")
        print(hasattr(tilus, "RegistrTensor"))
    """)
    assert out == "False\n"


def test_scripts_find_the_modules_that_examples_of_tilus_import():
    out = run("""
        import tilekit
        tilekit.install_as_tilus()
        from tilus.hidet.ir import DataType
        from tilus.hidet.ir.dtypes import float16, bfloat16
        from tilus.hidet.ir.type import PointerType
        from tilus.ir import RegisterTensor, SharedTensor
        from tilus.ir.layout.ops import local, reduce, spatial
        from tilus.ir.tensor import GlobalTensor
        import tilus.hidet.ir.dtypes
        assert DataType is tilekit.DataType and PointerType is tilekit.PointerType
        assert float16 is tilekit.float16 and tilus.hidet.ir.dtypes.bfloat16 is bfloat16 is tilekit.bfloat16
        assert SharedTensor is tilekit.SharedTensor and GlobalTensor is tilekit.GlobalTensor
        print(RegisterTensor is tilekit.RegisterTensor, tuple((spatial(2, 4) * local(2, 1)).shape))
    """)
    assert out == "True (4, 4)\n"


def test_importing_the_front_door_brings_no_compiler():
    out = run("""
        import sys, tilekit
        tilekit.Class, tilekit.Script
        print("tilekit.ir" in sys.modules, "hidet" in sys.modules)
    """)
    assert out == "False False\n"


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


def test_a_star_import_brings_every_class_of_the_front_door():
    out = run("""
        import tilekit
        from tilekit import *
        classes = {name for name in dir(tilekit) if isinstance(getattr(tilekit, name), type)}
        ours = {name for name in classes if getattr(tilekit, name).__module__.startswith("tilekit")}
        print(len(ours) > 10, sorted(ours - globals().keys()))
        print(RegisterTensor.__name__, SharedTensor.__name__, GlobalTensor.__name__)
    """)
    assert out == "True []\nRegisterTensor SharedTensor GlobalTensor\n"
