# SPDX-License-Identifier: Apache-2.0
"""The smoke test: a matmul through shared memory, with a space of schedules, on every machine that is here."""

import pytest
import torch

from tests.kernels.machines import EVERYWHERE, evaluate, on_gpu, scheduled, simulate
from tests.kernels.matmul import scripts
from tests.kernels.matmul.cases import ANY_SIZE, LARGE, check
from tilekit import bfloat16

F16 = scripts.tuned()
BF16 = scripts.tuned(bfloat16)


@pytest.mark.parametrize("run", EVERYWHERE)
@pytest.mark.parametrize("m, n, k", ANY_SIZE)
def test_every_size_agrees_with_torch(run, m, n, k):
    check(run, F16, m, n, k)


@pytest.mark.parametrize("run", EVERYWHERE)
def test_bfloat16_agrees_with_torch(run):
    check(run, BF16, 67, 93, 41, torch.bfloat16)


@pytest.mark.parametrize("schedule", F16.schedules, ids=lambda s: "-".join(map(str, s.values())))
def test_every_schedule_agrees_with_torch_in_the_evaluator(schedule):
    check(evaluate, scheduled(F16, schedule), 130, 70, 50)


@pytest.mark.parametrize("schedule", F16.schedules[1::3], ids=lambda s: "-".join(map(str, s.values())))
def test_some_schedules_agree_with_torch_in_the_simulator(schedule):
    check(simulate, scheduled(F16, schedule), 130, 70, 50)


@pytest.mark.gpu
@pytest.mark.parametrize("schedule", F16.schedules, ids=lambda s: "-".join(map(str, s.values())))
def test_every_schedule_agrees_with_torch_on_a_gpu(schedule):
    check(on_gpu, scheduled(F16, schedule), 333, 1366, 811)


@pytest.mark.gpu
@pytest.mark.parametrize("m, n, k", LARGE)
def test_large_sizes_agree_with_torch_on_a_gpu(m, n, k):
    check(on_gpu, F16, m, n, k)
