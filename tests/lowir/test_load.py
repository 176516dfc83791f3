# SPDX-License-Identifier: Apache-2.0
"""Each test is a process of its own: what it imports first is the point."""

import subprocess
import sys
import textwrap

import pytest

# hip and torch cannot be imported after this: a machine that has neither
WITHOUT_GUESTS = "import sys; sys.modules['hip'] = sys.modules['torch'] = None\n"


def run(code, *, prefix=""):
    script = prefix + textwrap.dedent(code)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_whole_room_works_without_torch_and_hip():
    run(
        """
        from tilekit import dtypes
        from tilekit.lowir import build, module_text, passes, printer, scalar, scalar_text
        n = scalar.var("n", dtypes.int32)
        builder = build.KernelBuilder(32)
        with builder.for_range("i", n) as i, builder.if_then(scalar.lt(i, n)):
            builder.let("x", scalar.floordiv(i, n))
        source = printer.print_module(passes.optimize(builder.finish("k", [n])))
        assert "TK_KERNEL(k)" in source.text
        str(n + 1), repr(n)
        module_text.to_text(builder.finish("k", [n]))
        assert not {name.split(".")[0] for name in sys.modules} & {"cuda", "scipy", "networkx"}
        from tilekit.lowir import _load
        assert _load.is_light()
        """,
        prefix=WITHOUT_GUESTS,
    )


def test_limits_of_the_process_stay_as_they_were():
    run(
        """
        import resource, sys
        before = resource.getrlimit(resource.RLIMIT_STACK), sys.getrecursionlimit()
        from tilekit.lowir import scalar
        assert before == (resource.getrlimit(resource.RLIMIT_STACK), sys.getrecursionlimit())
        """
    )


def test_a_captured_stderr_does_not_hinder_it_and_the_fault_handler_stays_off():
    run(
        """
        import faulthandler, io, sys
        enable, sys.stderr = faulthandler.enable, io.StringIO()
        from tilekit.lowir import scalar
        assert not faulthandler.is_enabled()
        assert faulthandler.enable is enable
        """
    )


def test_a_hidet_that_is_there_already_is_used():
    run(
        """
        import hidet
        from tilekit.lowir import _load, nodes, scalar
        assert not _load.is_light()
        assert nodes.Var is hidet.ir.Var and hidet.ops.matmul
        assert isinstance(scalar.block_idx(0), hidet.ir.Expr)
        """
    )


USES = [
    "import hidet; tensor = hidet.ones([2, 2], device='cpu')",
    "from hidet.graph.tensor import Tensor; assert Tensor.__init__ is not object.__init__",
    "from hidet.ir.primitives import exp; from hidet.ir.primitives.cuda import blockIdx",
]
MORE_USES = [
    "from hidet import Tensor, ops",
    "import hidet.graph.ops as ops; assert ops.matmul",
    "import hidet.graph as graph; assert graph.Tensor",
    "import hidet.ir.primitives.cuda.mma",
    "import hidet.transforms; hidet.transforms.lower",
    "from hidet.lang import script",
    "import importlib; importlib.import_module('hidet.runtime.device').Device",
    "import hidet; assert hidet.__version__ == '0.6.1'",
]


@pytest.mark.parametrize("use", [*USES, *(pytest.param(use, marks=pytest.mark.slow) for use in MORE_USES)])
def test_a_user_gets_the_real_hidet_after_ours(use):
    run(
        f"""
        import sys
        from tilekit import dtypes
        from tilekit.lowir import _load, nodes, scalar, types
        n, block = scalar.var("n", dtypes.int32), scalar.block_idx(0)
        assert _load.is_light()
        {use}
        assert not _load.is_light()
        import hidet
        assert hidet.Tensor and hidet.ops.matmul and hidet.ir.primitives.cuda.mma
        assert isinstance(n, hidet.ir.Var) and block is hidet.ir.primitives.cuda.blockIdx.x
        assert isinstance(types.to_hidet(dtypes.float16), hidet.ir.DataType)
        assert types.to_hidet(dtypes.float16) is hidet.float16
        for name, module in sorted(sys.modules.items()):
            if name.startswith("hidet."):
                assert type(module).__module__ != "tilekit.lowir._load", name
                parent, _, child = name.rpartition(".")
                assert getattr(sys.modules[parent], child, module) is not None, name
        assert sys.getrecursionlimit() == 100000  # hidet raises it for its user
        scalar.normalize((n + 15) // 16)
        """
    )


def test_a_users_hidet_kernel_builds_its_text_between_two_of_ours():
    run(
        """
        from tilekit import dtypes
        from tilekit.lowir import build, passes, printer, scalar

        def ours():
            n = scalar.var("n", dtypes.int32)
            builder = build.KernelBuilder(32)
            builder.let("x", scalar.add(n, n))
            return printer.print_module(builder.finish("k", [n])).text

        before = ours()
        import hidet
        from hidet.ir.builders import FunctionBuilder
        from hidet.ir.module import IRModule
        from hidet.backend.codegen import CUDACodegen
        from hidet.lang import attrs
        with FunctionBuilder("theirs", "cuda_kernel", grid_dim=1, block_dim=32) as fb:
            a = hidet.ir.Var("a", ~hidet.float32)
            fb.extend_params([a])
            fb.buffer_store(a, [hidet.ir.primitives.cuda.threadIdx.x], hidet.float32(1.0))
        lowered = hidet.transforms.lower(IRModule({"theirs": fb.func}))
        assert "theirs" in str(CUDACodegen()(lowered))
        assert ours() == before
        """
    )


def test_a_machine_without_hip_says_what_importing_hidet_says():
    run(
        """
        from tilekit.lowir import _load, scalar
        import hidet
        for _ in range(2):
            try:
                hidet.Tensor
            except ImportError as error:
                assert "hip" in str(error) or "torch" in str(error), error
            else:
                raise AssertionError("hidet imported without hip and torch")
            assert _load.is_light()
        assert str(scalar.thread_idx() + 1) == "(threadIdx.x + 1)"
        """,
        prefix=WITHOUT_GUESTS,
    )


def test_another_version_is_refused_in_one_sentence():
    run(
        """
        import importlib.metadata
        real = importlib.metadata.version
        importlib.metadata.version = lambda name: "0.5.0" if name == "hidet" else real(name)
        from tilekit.diag import ToolchainError
        try:
            from tilekit.lowir import scalar
        except ToolchainError as error:
            assert "tilekit works with hidet 0.6.1, but 0.5.0 is installed" in str(error)
            assert "pip install 'hidet==0.6.1'" in str(error)
        else:
            raise AssertionError("another version was taken")
        """
    )


def test_two_threads_may_meet_at_the_door():
    run(
        """
        import threading
        from tilekit.lowir import _load
        errors = []

        def use(code):
            try:
                exec(code, {})
            except BaseException as error:
                errors.append(error)

        codes = ["from tilekit.lowir import printer", "import hidet; hidet.Tensor"]
        threads = [threading.Thread(target=use, args=[code]) for code in codes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors, errors
        """
    )
