# SPDX-License-Identifier: Apache-2.0
import pytest
import torch

from tests.kernels.machines import EVERYWHERE, on_gpu, scheduled
from tests.kernels.matmul import scripts
from tests.kernels.matmul.cases import COPIED_SIZE, LARGE, check
from tilekit import bfloat16

F16 = scripts.split_k()
BF16 = scripts.split_k(bfloat16)


@pytest.mark.parametrize("run", EVERYWHERE)
@pytest.mark.parametrize("m, n, k", [*COPIED_SIZE, (37, 72, 520)])
def test_every_size_agrees_with_torch(run, m, n, k):
    check(run, F16, m, n, k)


@pytest.mark.parametrize("run", EVERYWHERE)
def test_bfloat16_agrees_with_torch(run):
    check(run, BF16, 67, 94, 202, torch.bfloat16)


@pytest.mark.parametrize("run", EVERYWHERE)
def test_the_semaphores_are_clean_for_the_next_launch(run):
    for _ in range(3):
        check(run, F16, 37, 72, 104)


@pytest.mark.parametrize("run", EVERYWHERE)
def test_more_blocks_wait_than_run_at_a_time(run):
    many = scheduled(F16, {"block_m": 64, "block_n": 64, "block_k": 32, "stages": 3, "splits": 24})
    check(run, many, 37, 72, 808)


@pytest.mark.gpu
@pytest.mark.parametrize("schedule", F16.schedules, ids=lambda s: "-".join(map(str, s.values())))
def test_every_schedule_agrees_with_torch_on_a_gpu(schedule):
    check(on_gpu, scheduled(F16, schedule), 333, 1366, 810)


@pytest.mark.gpu
@pytest.mark.parametrize("m, n, k", [*LARGE, (64, 64, 16384)])
def test_large_sizes_agree_with_torch_on_a_gpu(m, n, k):
    check(on_gpu, F16, m, n, k)
