# SPDX-License-Identifier: Apache-2.0
import inspect

import pytest

from tests.lang.cells import cell, function_of
from tilekit import dtypes
from tilekit.diag import LanguageError
from tilekit.dtypes import boolean, float16, float32, int8, int32, int64, uint64, void_p
from tilekit.ir.text import printer
from tilekit.jit.spec import TensorSpec
from tilekit.lang.params import CallParameters, Passing, passing


def read(call) -> CallParameters:
    return CallParameters.of(call)


def test_each_kind_of_parameter_is_passed_its_way():
    def call(self, a: int, b: float, c: bool, d: str, e: int32, f: float16, g: boolean, h: ~float32, i: void_p):
        pass

    found = read(call)
    constant, scalar, pointer = Passing.CONSTANT, Passing.SCALAR, Passing.POINTER
    assert [passing(kind) for kind in found.param_types] == [constant] * 4 + [scalar] * 3 + [pointer] * 2
    assert found.param_names == tuple("abcdefghi")
    assert found.const_params == (0, 1, 2, 3)
    assert found.kernel_params == (4, 5, 6, 7, 8)


@pytest.mark.parametrize("name", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_integers_at_run_time_are_tuning_parameters(name):
    def call(self, a: int, b: getattr(dtypes, name), c: float32, d: ~int8, e: boolean):
        pass

    assert read(call).tuning_params == (1,)


def test_defaults_are_seen():
    def without(self, n: int32):
        pass

    def with_one(self, n: int32, k: int = 4):
        pass

    assert not read(without).with_default
    assert read(with_one).with_default
    assert read(with_one).signature.bind(3).arguments == {"n": 3}
    assert list(read(with_one).signature.parameters) == ["n", "k"]


def test_no_parameters_is_a_kernel_too():
    def call(self):
        pass

    assert read(call).param_names == ()


def test_the_first_parameter_may_have_another_name():
    def call(this, n: int64):
        pass

    assert read(call).param_names == ("n",)


def test_returning_none_may_be_said():
    def call(self, n: uint64) -> None:
        pass

    assert inspect.signature(call).return_annotation is None
    assert read(call).kernel_params == (0,)


@pytest.mark.parametrize("kind", [list, None, 3, dtypes.uint4b, dtypes.float16x2, "int32", [int32], object()])
def test_other_annotations_are_refused(kind):
    def call(self, n: kind):
        pass

    with pytest.raises(LanguageError) as caught:
        read(call)
    assert caught.value.code == "TK107" and caught.value.diagnostic.at is not None


def test_constants_are_python_values_in_the_kernel():
    kernel = cell(
        """
        class Kernel(tilus.Script):
            def __call__(self, width: int, scale: float, wide: bool, mode: str, n: int32, p: ~float32 = None):
                self.attrs.blocks = [n]
                self.attrs.warps = width if wide and mode == "fast" else 1
                self.register_tensor(dtype=float32, shape=[width], init=scale)
        """
    )["Kernel"]()
    func = function_of(kernel, 4, 2, True, "fast", 5, TensorSpec(float32, (8,)))
    assert func.metadata.num_warps == 4
    assert [param.hint for param in func.params] == ["n", "p"]
    assert function_of(kernel, 4, 2, True, "slow", 5, TensorSpec(float32, (8,))).metadata.num_warps == 1


def test_constants_in_the_grid():
    kernel = cell(
        """
        class Kernel(tilus.Script):
            def __call__(self, tile: int, n: int32, m: int64):
                rows = cdiv(n, tile)
                self.attrs.blocks = (rows, m // 2)
                self.attrs.warps = 32
        """
    )["Kernel"]()
    assert "grid=[(n + i32(15)) // i32(16), m // i64(2), i32(1)]" in printer.print_function(
        function_of(kernel, 16, 5, 6)
    )
