# SPDX-License-Identifier: Apache-2.0
import pytest
import torch

from tests.kernels.machines import EVERYWHERE, evaluate, on_gpu, scheduled, simulate
from tests.kernels.matmul import scripts
from tests.kernels.matmul.cases import COPIED_SIZE, LARGE, check
from tilekit import bfloat16

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


@pytest.mark.parametrize("run", EVERYWHERE)
def test_rows_of_an_odd_length_are_copied_through_registers(run):
    check(run, F16, 67, 93, 41)
    if run is simulate:
        assert F16.last.last_run.counters["copies"] == 0


@pytest.mark.gpu
@pytest.mark.parametrize("schedule", F16.schedules, ids=lambda s: "-".join(map(str, s.values())))
def test_every_schedule_agrees_with_torch_on_a_gpu(schedule):
    check(on_gpu, scheduled(F16, schedule), 333, 1366, 810)


@pytest.mark.gpu
@pytest.mark.parametrize("m, n, k", LARGE)
def test_large_sizes_agree_with_torch_on_a_gpu(m, n, k):
    check(on_gpu, F16, m, n, k)
