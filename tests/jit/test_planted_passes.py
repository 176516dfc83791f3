# SPDX-License-Identifier: Apache-2.0
"""Bisection names the wrong pass among others, on random numbers, and blames none that does no harm."""

import numpy as np
import pytest
import torch

import tilekit
from tests.jit import planted_passes as planted
from tests.kernels.test_layer_norm import LAYER_NORM
from tilekit.jit.bisected import Outcome
from tilekit.toolchain import host
from tilekit.transforms import after

needs_compiler = pytest.mark.skipif(host.find_compiler() is None, reason="no C++ compiler here")
# kernels of many blocks, or of many steps in each
COSTLY = {"inclusive_masks", "implicit_padding", "pad_shared"}


def cases():
    for case in planted.PLANTED:
        yield pytest.param(case, id=case.name, marks=[pytest.mark.slow] if case.name in COSTLY else [])


def as_bytes(arguments):
    return [each.numpy().tobytes() for each in arguments if isinstance(each, torch.Tensor)]


@needs_compiler
@pytest.mark.parametrize("case", list(cases()))
def test_the_wrong_pass_is_named_among_others(case):
    arguments = case.arguments()
    given = as_bytes(arguments)
    with tilekit.passes(*case.changes):
        found = case.kernel.bisect(*arguments)
    assert (found.outcome, found.culprit) == (Outcome.FOUND, case.name), found
    assert [step.word for step in found.steps].count("WRONG") == 1
    assert found.diff()
    assert as_bytes(arguments) == given


@needs_compiler
def test_mistakes_that_do_no_harm_are_not_blamed():
    """Two turns of the loop, two by two blocks, no stack of shared tiles, and nothing but a barrier to move."""
    changes = [
        after("lower_assume", planted.ColumnRasterPass()),
        after("copy_elimination", planted.UnsignedDivisionPass()),
        after("copy_elimination", planted.ImplicitPaddingPass()),
        after("dead_code_elimination#1", planted.MergeBarriersPass()),
        after("dead_code_elimination#1", planted.UnrollByTwoPass()),
        after("layout_inference", planted.LateWaitsPass()),
        after("layout_inference", planted.PadSharedPass()),
    ]
    with tilekit.passes(*changes):
        found = planted.TUNED.bisect(*planted.product(67, 93, 41)())
    assert found.is_good, found
    assert {"column_raster", "unroll_by_two", "pad_shared"} <= {step.name for step in found.steps if step.changed}


INNOCENT = [
    after("let_propagation", planted.CommuteSumsPass()),
    after("copy_elimination", planted.RegroupProductsPass()),
    after("dead_code_elimination#1", planted.MoreBarriersPass()),
    after("lower_load_store", planted.NameTilesPass()),
]


@needs_compiler
@pytest.mark.parametrize(
    ("kernel", "arguments", "changed"),
    [
        pytest.param(planted.TUNED, planted.product(67, 93, 70), {"more_barriers", "name_tiles"}, id="matmul"),
        pytest.param(
            LAYER_NORM[torch.float16],
            lambda: (
                *(9, 300, *(torch.from_numpy(np.random.randn(*shape)).half() for shape in ((9, 300), (300,), (300,)))),
                torch.zeros(9, 300).half(),
                1e-5,
            ),
            {"commute_sums", "regroup_products", "name_tiles"},
            id="layer_norm",
        ),
    ],
)
def test_passes_that_do_no_harm_are_all_good(kernel, arguments, changed):
    with tilekit.passes(*INNOCENT):
        found = kernel.bisect(*arguments())
    assert found.is_good, found
    assert changed <= {step.name for step in found.steps if step.changed}
