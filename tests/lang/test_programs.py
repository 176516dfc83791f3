# SPDX-License-Identifier: Apache-2.0
"""The strongest check of names: random programs mean to the kernel language what they mean to Python."""

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.lang.cells import Inputs, by_kernel, by_python
from tests.lang.programs import CLASSES, HELPERS, programs


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(programs(), st.integers(0, 6), st.integers(-6, 6))
def test_random_programs_agree_with_python(program, n, m):
    inputs = Inputs.fresh(n, m)
    with np.errstate(over="ignore"):
        plain = by_python(program, inputs, HELPERS, bases=CLASSES)
    np.testing.assert_array_equal(by_kernel(program, inputs, HELPERS, bases=CLASSES), plain, err_msg=program)
