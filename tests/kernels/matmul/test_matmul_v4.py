# SPDX-License-Identifier: Apache-2.0
import pytest
import torch

from tests.kernels.machines import EVERYWHERE, evaluate, on_gpu, scheduled, simulate
from tests.kernels.matmul import scripts
from tests.kernels.matmul.cases import COPIED_SIZE, LARGE, check
from tilekit import bfloat16

F16 = scripts.pipelined()
LINEAR = scripts.pipelined(transposed=True)
BF16 = scripts.pipelined(bfloat16, transposed=True)


def with_stages(stages):
    return scheduled(F16, {"block_m": 64, "block_n": 64, "block_k": 32, "stages": stages, "warps": 4})


@pytest.mark.parametrize("run", EVERYWHERE)
@pytest.mark.parametrize("m, n, k", COPIED_SIZE)
def test_every_size_agrees_with_torch(run, m, n, k):
    check(run, F16, m, n, k)


@pytest.mark.parametrize("run", EVERYWHERE)
@pytest.mark.parametrize("m, n, k", COPIED_SIZE)
def test_a_linear_layer_agrees_with_torch(run, m, n, k):
    check(run, LINEAR, m, n, k, transposed=True)


@pytest.mark.parametrize("run", EVERYWHERE)
def test_bfloat16_agrees_with_torch(run):
    check(run, BF16, 67, 94, 42, torch.bfloat16, transposed=True)


@pytest.mark.parametrize("run", [evaluate, simulate])
@pytest.mark.parametrize("stages", [2, 3])
@pytest.mark.parametrize("k", [8, 72, 360])
def test_fewer_and_more_tiles_than_stages_agree_with_torch(run, stages, k):
    check(run, with_stages(stages), 40, 72, k)


@pytest.mark.gpu
@pytest.mark.parametrize("schedule", F16.schedules, ids=lambda s: "-".join(map(str, s.values())))
def test_every_schedule_agrees_with_torch_on_a_gpu(schedule):
    check(on_gpu, scheduled(F16, schedule), 333, 1366, 810)


@pytest.mark.gpu
@pytest.mark.parametrize("m, n, k", LARGE)
@pytest.mark.parametrize("transposed", [False, True])
def test_large_sizes_agree_with_torch_on_a_gpu(m, n, k, transposed):
    check(on_gpu, LINEAR if transposed else F16, m, n, k, transposed=transposed)
