# SPDX-License-Identifier: Apache-2.0
import math

import ml_dtypes
import numpy as np
import pytest
import torch

from tilekit.jit import agreement
from tilekit.jit.agreement import Agreement, agree, tolerance

HALF, SINGLE = 2 * 2.0**-10, 1e-5


def test_rounding_is_no_difference():
    exact = torch.randn(64, 64, dtype=torch.float64)
    found = agree("c", exact.half(), exact, HALF)
    assert found.difference == "" and 1e-4 < found.relative_error < 3e-4


def test_the_first_element_that_differs_is_told_with_both_values():
    a = torch.randn(8, 16)
    b = a.clone()
    b[3, 5], b[7, 0] = 40.0, 50.0
    found = agree("c", a, b, SINGLE)
    assert found.difference.startswith(f"c[3, 5] is {a[3, 5]:.6g} in place of 40; 2 of 128 elements differ, relative")
    assert found.relative_error == pytest.approx(float((a - b).norm() / b.norm()), rel=1e-6)


def test_one_wrong_element_of_a_million_is_found_although_the_norm_hides_it(monkeypatch):
    monkeypatch.setattr(agreement, "_PIECE", 1000)
    a = torch.randn(1024, 1024).half()
    b = a.double()
    b[1000, 7] += 1.5
    found = agree("c", a, b, HALF)
    assert found.relative_error < HALF and found.difference.startswith("c[1000, 7] is ")


def test_many_small_differences_are_too_much_together():
    b = torch.randn(4096, dtype=torch.float64)
    assert "elements differ" in agree("c", b * (1 + 4 * HALF), b, HALF).difference


def test_what_was_never_written_differs_and_nan_agrees_with_nan():
    a, b = torch.full((4,), math.nan), torch.ones(4)
    assert agree("c", a, b, SINGLE) == Agreement(
        math.inf, "c[0] is nan in place of 1; 4 of 4 elements differ, relative error inf"
    )
    b[:] = torch.tensor([math.nan, math.inf, -math.inf, 0.0])
    assert agree("c", b.clone(), b, SINGLE) == Agreement(0.0)
    assert agree("c", -b, b, SINGLE).difference.startswith("c[1] is -inf in place of inf; 2 of 4")


def test_whole_numbers_must_be_the_same_to_the_last():
    a = torch.tensor([2**60, 5])
    assert agree("n", a, a.clone(), SINGLE) == Agreement(0.0)
    told = agree("n", a, a + torch.tensor([1, 0]), SINGLE).difference
    assert told.startswith(f"n[0] is {2**60} in place of {2**60 + 1}; 1 of 2")


def test_values_that_differ_are_told_apart():
    b = torch.rand(1, dtype=torch.float64) + 1
    told = agree("c", b + 2.0**-30, b, 1e-13).difference.split("; ")[0].removeprefix("c[0] is ")
    mine, other = map(float, told.split(" in place of "))
    assert mine > other and mine == pytest.approx(other, rel=2e-8)


def test_numpy_arrays_and_their_small_floats_are_compared_too():
    a = np.linspace(-2, 2, 32).astype(ml_dtypes.bfloat16)
    assert agree("x", a, a.astype(np.float64), SINGLE) == Agreement(0.0)
    assert agree("x", a, a.astype(np.float32) + 1, SINGLE).difference


def test_shapes_may_differ_and_sizes_may_not():
    a = torch.randn(4, 6)
    assert agree("x", a, a.reshape(24), SINGLE) == Agreement(0.0)
    assert agree("x", a, a[:3], SINGLE).difference == "x has the shape [4, 6], and the other one [3, 6]"


def test_the_tolerance_is_twice_the_precision_of_the_coarsest_tensor():
    f16, f32, f64 = (torch.zeros(1, dtype=t) for t in (torch.float16, torch.float32, torch.float64))
    assert tolerance([f32], [f16]) == HALF
    assert tolerance([f32], [f32, torch.zeros(1, dtype=torch.int8)]) == SINGLE
    assert tolerance([f64], []) == 1e-12
    fp8 = torch.zeros(1).to(torch.float8_e4m3fn)
    assert tolerance([f16], [fp8]) == 2 * 2.0**-7 and tolerance([fp8], []) == 0.25
