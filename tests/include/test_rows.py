# SPDX-License-Identifier: Apache-2.0
"""Every function that generated code may call gives the same on the GPU and on the CPU, in any order of threads."""

import itertools

import numpy as np
import pytest

from tests.include import rows
from tilekit.lowir import prims
from tilekit.target import parse

# In units of `rows.Call.difference`. Both machines round what is exactly defined alike; transcendental functions are
# good to four units on a GPU and two on the CPU; a tensor core keeps fewer bits below a sum than float arithmetic.
LARGEST = {"math.h": 6.0, "mma.h": 4.0}


def test_every_row_is_called():
    called = {row for call in rows.calls(np.random.default_rng()) for row in call.rows}
    assert called == {str(row) for row in prims.PRIMITIVES}


def by_header() -> dict[str, list[rows.Call]]:
    """Calls by the header of what they call; of values by its first parameter too, which is one source."""
    header = {str(row): row.header for row in prims.PRIMITIVES}
    calls = rows.calls(np.random.default_rng())
    return {
        f"{header[group[0].rows[0]]} {i}": group
        for i, group in enumerate(list(g) for _, g in itertools.groupby(calls, lambda call: call.source))
    }


GROUPS = by_header()


@pytest.mark.parametrize("group", GROUPS)
def test_the_order_of_threads_makes_no_difference(cpu, group):
    for call in GROUPS[group]:
        found = call.run(cpu)
        assert call.difference(found, call.run(cpu.shuffled(seed=7))) == 0, call.rows


@pytest.mark.gpu
@pytest.mark.parametrize("group", GROUPS)
def test_gpu_and_cpu_agree(cpu, gpu, group):
    for call in GROUPS[group]:
        if any(parse(row.target).capability > gpu.target.capability for row in rows.rows_of(call)):
            continue
        found = call.difference(call.run(cpu), call.run(gpu))
        assert found <= LARGEST.get(group.split()[0], 0.0), call.rows
