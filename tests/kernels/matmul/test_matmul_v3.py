# SPDX-License-Identifier: Apache-2.0
import pytest
import torch

import tilekit as tilus
from tests.kernels.machines import EVERYWHERE, evaluate, on_gpu, scheduled
from tests.kernels.matmul import scripts
from tests.kernels.matmul.cases import COPIED_SIZE, LARGE, check
from tilekit import bfloat16, float16

F16 = scripts.asynchronous()
BF16 = scripts.asynchronous(bfloat16)


@pytest.mark.parametrize("run", EVERYWHERE)
@pytest.mark.parametrize("m, n, k", COPIED_SIZE)
def test_every_size_agrees_with_torch(run, m, n, k):
    check(run, F16, m, n, k)


@pytest.mark.parametrize("run", EVERYWHERE)
def test_bfloat16_agrees_with_torch(run):
    check(run, BF16, 67, 94, 42, torch.bfloat16)


@pytest.mark.parametrize("schedule", F16.schedules[1::2], ids=lambda s: "-".join(map(str, s.values())))
def test_every_other_schedule_agrees_with_torch_in_the_evaluator(schedule):
    check(evaluate, scheduled(F16, schedule), 130, 72, 50)


def test_an_asynchronous_copy_needs_four_aligned_bytes():
    a, b, c = (tilus.spec(float16, shape) for shape in ((64, 33), (33, 64), (64, 64)))
    with pytest.raises(tilus.CodegenError, match="copy_async"):
        F16.compile(64, 64, 33, a, b, c)


@pytest.mark.gpu
@pytest.mark.parametrize("schedule", F16.schedules, ids=lambda s: "-".join(map(str, s.values())))
def test_every_schedule_agrees_with_torch_on_a_gpu(schedule):
    check(on_gpu, scheduled(F16, schedule), 333, 1366, 810)


@pytest.mark.gpu
@pytest.mark.parametrize("m, n, k", LARGE)
def test_large_sizes_agree_with_torch_on_a_gpu(m, n, k):
    check(on_gpu, F16, m, n, k)
