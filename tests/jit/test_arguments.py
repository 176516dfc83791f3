# SPDX-License-Identifier: Apache-2.0
"""What a call accepts, and the exact sentences with which it refuses the rest."""

import dataclasses
import re
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch

import tilekit as tilus
from tilekit import float16, float32, int32, int64, spec, uint8, void_p
from tilekit.diag import ArgumentError, ToolchainError, render
from tilekit.runtime import tensors
from tilekit.runtime.tensors import Device, DeviceKind
from tilekit.toolchain import nvrtc


class Scale(tilus.Script):
    """Multiplies the first n elements by `a`."""

    def __call__(self, n: int32, a: float32, x_ptr: ~float32):
        self.attrs.blocks = [(n + 127) // 128]
        self.attrs.warps = 4
        g = self.global_view(x_ptr, dtype=float32, shape=[n])
        at = self.blockIdx.x * 128
        self.store_global(g, self.load_global(g, offsets=[at], shape=[128]) * a, offsets=[at])


class Kinds(tilus.Script):
    """Has a parameter of every kind."""

    def __call__(self, size: int, eps: float, exact: bool, mode: str, big: int64, small: uint8, raw: void_p):
        self.attrs.blocks = [1]
        self.attrs.warps = 1


scale = Scale()
x = torch.ones(300)


def refusal(*args, handle=scale, **kwargs) -> str:
    with pytest.raises(ArgumentError) as caught:
        handle(*args, **kwargs)
    error = caught.value
    assert "handle(*args, **kwargs)\n" in str(error), "the call is shown"
    return render.text(dataclasses.replace(error.diagnostic, at=None))


def test_a_refusal_shows_the_call_with_its_line_and_carets():
    with pytest.raises(ArgumentError) as caught:
        scale(300, 1.0, torch.ones(300, dtype=torch.float64))
    head, text, carets, *_ = caught.value.to_text().split("\n")
    assert re.fullmatch(
        r"ArgumentError TK623 in a call of Scale, .*test_arguments.py, line \d+: Scale: x_ptr is .*", head
    )
    assert text == "    scale(300, 1.0, torch.ones(300, dtype=torch.float64))"
    assert carets.strip() == "^" * len(text.strip())


def test_numbers_may_come_from_python_numpy_and_torch():
    for n, a in [(300, 2), (np.int64(300), np.float64(2)), (torch.tensor(300), torch.tensor(2.0)), (int32(300), 2.0)]:
        mine = torch.ones(300)
        scale(n, a, mine)
        assert (mine == 2).all()


def test_arrays_parameters_and_slices_are_tensors():
    array = np.ones(300, np.float32)
    scale(300, 3.0, array)
    assert (array == 3).all()
    parameter = torch.nn.Parameter(torch.ones(300))
    scale(300, 3.0, parameter)
    assert (parameter == 3).all()
    whole = torch.ones(300)
    scale(100, 3.0, whole[100:200])
    assert whole.sum() == 500


@pytest.mark.parametrize(
    "args, kwargs, problem",
    [
        ((300, 1.0), {}, "missing a required argument: 'x_ptr'"),
        ((300, 1.0, x, x), {}, "too many positional arguments"),
        ((300, 1.0, x), {"y": 1}, "got an unexpected keyword argument 'y'"),
        ((300, 1.0, x), {"n": 1}, "multiple values for argument 'n'"),
    ],
)
def test_a_wrong_number_of_arguments(args, kwargs, problem):
    assert refusal(*args, **kwargs) == (
        f"TK626: Scale takes (n, a, x_ptr): {problem}\n  help: its form is Scale(n: int32, a: float32, x_ptr: ~float32)"
    )


@pytest.mark.parametrize("n", [2**31, -(2**31) - 1])
def test_an_integer_out_of_range(n):
    assert refusal(n, 1.0, x) == (
        f"TK625: Scale: n is int32 and cannot hold {n}\n  help: declare the parameter as int64"
    )


def test_a_float_out_of_range():
    assert refusal(300, 1e300, x) == "TK625: Scale: a is float32 and cannot hold 1e+300"


@pytest.mark.parametrize("a", [float("inf"), float("-inf"), float("nan"), 3.4028234663852886e38])
def test_infinities_and_the_largest_number_fit(a):
    mine = torch.ones(1)
    scale(1, a, mine)
    assert torch.equal(mine, torch.tensor([a], dtype=torch.float32)) or a != a


@pytest.mark.parametrize(
    "n, described",
    [
        (1.5, "1.5 of type float"),
        (300.0, "300.0 of type float"),
        (True, "True of type bool"),
        ("300", "'300' of type str"),
        (None, "None of type NoneType"),
        (x, "a tensor of shape [300]"),
    ],
)
def test_something_else_than_an_integer(n, described):
    assert refusal(n, 1.0, x) == f"TK625: Scale: n takes a number of type int32, got {described}"


def test_something_else_than_a_float():
    assert refusal(300, 1j, x) == "TK625: Scale: a takes a number of type float32, got 1j of type complex"


def test_a_wrong_dtype():
    assert refusal(300, 1.0, x.double()) == (
        "TK623: Scale: x_ptr is a float64 tensor, but the kernel takes float32\n"
        "  help: convert it, or declare the parameter as x_ptr: ~float64"
    )


def test_a_dtype_that_kernels_do_not_have():
    said = refusal(300, 1.0, x.to(torch.complex64))
    assert said.startswith("TK623: Scale: x_ptr: a tensor of type torch.complex64 cannot be passed: ")


@pytest.mark.parametrize(
    "tensor, shape, strides",
    [
        (torch.ones(600)[::2], [300], [2]),
        (torch.ones(3, 100).t(), [100, 3], [1, 100]),
        (torch.ones(1).expand(300), [300], [0]),
        (np.ones(300, np.float32)[::-1], [300], [-1]),
    ],
)
def test_a_tensor_that_is_not_contiguous(tensor, shape, strides):
    assert refusal(300, 1.0, tensor) == (
        f"TK623: Scale: x_ptr is not contiguous: shape {shape} with strides {strides}\n"
        "  help: pass x_ptr.contiguous(), or give the kernel's global_view the strides"
    )


@pytest.mark.parametrize("value, described", [(12345, "12345 of type int"), (None, "None of type NoneType")])
def test_something_else_than_a_tensor(value, described):
    assert refusal(300, 1.0, value) == f"TK622: Scale: x_ptr takes a tensor of float32, got {described}"


def test_a_long_value_is_cut():
    said = refusal(300, 1.0, [1.0] * 300)
    assert (
        said
        == "TK622: Scale: x_ptr takes a tensor of float32, got [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1... of type list"
    )


def test_a_meta_tensor():
    assert refusal(300, 1.0, x.to("meta")) == (
        "TK623: Scale: x_ptr is a meta tensor and holds no data\n  help: use compile(…) to build without data"
    )


def test_a_sparse_tensor():
    assert refusal(300, 1.0, x.to_sparse()) == (
        "TK623: Scale: x_ptr: a tensor of layout torch.sparse_coo has no plain memory: call .to_dense()"
    )


def test_an_array_that_may_not_be_written():
    array = np.ones(300, np.float32)
    array.flags.writeable = False
    assert refusal(300, 2.0, array) == (
        "TK624: scale_kernel writes x_ptr, and that array is read-only\n  help: pass a copy of it"
    )
    assert (array == 1).all()


class Copy(tilus.Script):
    def __call__(self, n: int32, x_ptr: ~float32, y_ptr: ~float32):
        self.attrs.blocks = [1]
        self.attrs.warps = 1
        gx = self.global_view(x_ptr, dtype=float32, shape=[n])
        gy = self.global_view(y_ptr, dtype=float32, shape=[n])
        self.store_global(gy, self.load_global(gx, offsets=[0], shape=[32]), offsets=[0])


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch):
    """Let a tensor say that it lives on a GPU."""
    look, moved = tensors.facts, {}
    monkeypatch.setattr(
        tensors, "facts", lambda t: dataclasses.replace(look(t), device=moved.get(id(t), look(t).device))
    )

    def move(tensor: torch.Tensor, index: int = 0) -> torch.Tensor:
        moved[id(tensor)] = Device(DeviceKind.CUDA, index)
        return tensor

    return move


def test_tensors_on_several_devices(elsewhere):
    near, far, further = torch.ones(32), elsewhere(torch.ones(32)), elsewhere(torch.ones(32), 1)
    assert refusal(32, far, near, handle=Copy()) == (
        "TK623: Copy: x_ptr is on cuda:0 and y_ptr is on cpu\n  help: move one of them: y_ptr.to('cuda:0')"
    )
    assert refusal(32, far, further, handle=Copy()) == (
        "TK623: Copy: x_ptr is on cuda:0 and y_ptr is on cuda:1\n  help: move one of them: y_ptr.to('cuda:0')"
    )


def test_no_nvrtc(monkeypatch: pytest.MonkeyPatch):
    nvrtc._library.cache_clear()
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    try:
        with pytest.raises(ToolchainError) as caught:
            scale.compile(300, 1.0, spec(float32, (300,)), target="sm_80", device="cuda")
    finally:
        nvrtc._library.cache_clear()
    assert str(caught.value) == (
        "TK502: the Python package cuda-bindings is not installed: CUDA code cannot be compiled\n"
        "  help: pip install 'tilekit[cuda]'"
    )


WITHOUT_COMPILER = """
    import os, sys, warnings
    os.environ.pop("CXX", None)
    os.environ["PATH"] = ""
    sys.modules["ziglang"] = None
    import torch
    from tests.jit.test_arguments import Scale
    from tilekit.diag import KernelError
    x = torch.full((300,), 2.0)
    scale = Scale()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        scale(200, 3.0, x)
        scale(200, 1.0, x)
    assert (x[:200] == 6).all() and (x[200:] == 2).all()
    (warning,) = said
    print(warning.message)
    print(scale.last.summary())
    assert "scale_kernel" in scale.source
    try:
        scale(500, 1.0, x[:200])
    except KernelError as error:
        print(str(error))
"""


def test_without_a_compiler_the_evaluator_runs_the_kernel_and_says_so():
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(WITHOUT_COMPILER)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    warning, summary, *said = done.stdout.splitlines()
    assert warning == (
        "there is no C++ compiler on this machine, so kernels run in the NumPy evaluator, which is slow and knows "
        "no layouts; install one, for example `apt install g++` or `pip install ziglang`"
    )
    assert "NumPy evaluator, for want of a C++ compiler" in summary
    assert re.match(r"TK702 in Scale.__call__, .*test_arguments.py, line \d+: .* reads element \d+ of x_ptr", said[0])


def test_constants_are_taken_by_their_types():
    kinds = Kinds()
    kinds.compile(1, 2, True, "a", 2**40, 255, 0, device="cpu")
    for args, problem in [
        ((1.0, 2.0, True, "a", 1, 1, 0), "size is a compile-time int, got 1.0 of type float"),
        ((True, 2.0, True, "a", 1, 1, 0), "size is a compile-time int, got True of type bool"),
        ((1, "2", True, "a", 1, 1, 0), "eps is a compile-time float, got '2' of type str"),
        ((1, 2.0, 1, "a", 1, 1, 0), "exact is a compile-time bool, got 1 of type int"),
        ((1, 2.0, True, 7, 1, 1, 0), "mode is a compile-time str, got 7 of type int"),
        ((1, 2.0, True, "a", 1, 256, 0), "small is uint8 and cannot hold 256"),
        ((1, 2.0, True, "a", 1, -1, 0), "small is uint8 and cannot hold -1"),
        ((1, 2.0, True, "a", 2**63, 1, 0), f"big is int64 and cannot hold {2**63}"),
    ]:
        assert refusal(*args, handle=kinds).partition("\n")[0] == f"TK625: Kinds: {problem}"


def test_raw_pointers_take_any_tensor_but_no_address_on_the_cpu():
    kinds = Kinds()
    kinds(1, 2.0, True, "a", 1, 1, torch.ones(3, dtype=torch.float16))
    assert refusal(1, 2.0, True, "a", 1, 1, 4096, handle=kinds) == (
        "TK622: kinds_kernel: raw is the address 4096, and on the CPU a pointer must be given as a tensor\n"
        "  help: the kernel runs in a process of its own, which sees the tensors that it is given and no more"
    )


def test_specs_describe_tensors_only_where_there_is_no_launch():
    tensor = spec(float16, (4, 8))
    assert refusal(300, 1.0, tensor).startswith("TK622: Scale: x_ptr takes a tensor of float32, got TensorSpec(")
    with pytest.raises(ArgumentError, match=r": Scale: x_ptr is a float16 tensor, but the kernel takes float32\n"):
        scale.compile(300, 1.0, tensor, device="cpu")


@pytest.mark.parametrize(
    "dtype, shape, says",
    [
        ("float32", (4,), "the dtype of a spec is one of tilekit's, such as float16, not 'float32'"),
        (float16, (4, -1), r"the shape of a spec is whole numbers from 0 on, not \(4, -1\)"),
        (float16, "ab", "the shape of a spec is whole numbers from 0 on, not 'ab'"),
    ],
)
def test_what_describes_no_tensor_is_refused(dtype, shape, says):
    with pytest.raises(ArgumentError, match=f"TK623: {says}"):
        spec(dtype, shape)


@pytest.mark.parametrize("asked", [{"seed": -1}, {"seed": 0.5}, {"blocks": 0}, {"blocks": "some"}])
def test_a_check_is_of_some_blocks_in_some_order(asked):
    with pytest.raises(ArgumentError, match=r"TK625 in a call of Scale.*: (seed|blocks) is .*, not"):
        scale.check(300, 2.0, torch.ones(300), **asked)


def test_a_refused_call_leaves_its_tensors_alone():
    before = x.clone()
    for args in [(2**31, 2.0, x), (300, 1j, x), (300, 2.0, x.double())]:
        refusal(*args)
    assert torch.equal(x, before)
