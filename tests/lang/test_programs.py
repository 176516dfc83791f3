# SPDX-License-Identifier: Apache-2.0
"""The strongest check of names: random programs mean to the kernel language what they mean to Python."""

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.lang.cells import Inputs, by_kernel, by_python, by_simulator
from tests.lang.programs import CLASSES, HELPERS, programs

TOO_LARGE = [HealthCheck.too_slow, HealthCheck.data_too_large]


def in_python(program: str, inputs: Inputs) -> np.ndarray:
    with np.errstate(over="ignore"):
        return by_python(program, inputs, HELPERS, bases=CLASSES)


@settings(max_examples=30, suppress_health_check=TOO_LARGE)
@given(programs(), st.integers(0, 6), st.integers(-6, 6))
def test_random_programs_agree_with_python(program, n, m):
    agrees_with_python(program, n, m)


@pytest.mark.slow
@settings(max_examples=500, suppress_health_check=TOO_LARGE)
@given(programs(), st.integers(0, 6), st.integers(-6, 6))
def test_many_random_programs_agree_with_python(program, n, m):
    agrees_with_python(program, n, m)


def agrees_with_python(program: str, n: int, m: int):
    inputs = Inputs.fresh(n, m)
    found = by_kernel(program, inputs, HELPERS, bases=CLASSES)
    np.testing.assert_array_equal(found, in_python(program, inputs), err_msg=program)


# each is compiled: what is shown is what was found, not the smallest that fails
@settings(max_examples=10, phases=[Phase.explicit, Phase.generate], suppress_health_check=TOO_LARGE)
@given(programs(), st.integers(0, 6), st.integers(-6, 6))
def test_generated_code_of_random_programs_agrees_with_python(program, n, m):
    inputs = Inputs.fresh(n, m)
    found = by_simulator(program, inputs, HELPERS, bases=CLASSES)
    np.testing.assert_array_equal(found, in_python(program, inputs), err_msg=program)
