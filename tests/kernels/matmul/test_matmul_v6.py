# SPDX-License-Identifier: Apache-2.0
import pytest
import torch

from tests.kernels.machines import EVERYWHERE, evaluate, on_gpu, poisoned, scheduled, simulate
from tests.kernels.matmul import scripts
from tests.kernels.matmul.cases import COPIED_SIZE, LARGE, check
from tilekit import bfloat16

F16 = scripts.overlapped()
LINEAR = scripts.overlapped(transposed=True)
BF16 = scripts.overlapped(bfloat16)


def schedule_of(block_m, block_n, block_k, stages, warps):
    return {"block_m": block_m, "block_n": block_n, "block_k": block_k, "stages": stages, "warps": warps}


@pytest.mark.parametrize("run", EVERYWHERE)
@pytest.mark.parametrize("m, n, k", COPIED_SIZE)
def test_every_size_agrees_with_torch(run, m, n, k):
    check(run, F16, m, n, k)


@pytest.mark.parametrize("run", EVERYWHERE)
def test_a_linear_layer_in_bfloat16_agrees_with_torch(run):
    check(run, LINEAR, 67, 94, 42, transposed=True)
    check(run, BF16, 67, 94, 42, torch.bfloat16)


@pytest.mark.parametrize("run", [evaluate, simulate])
@pytest.mark.parametrize("k", [8, 136, 520])
def test_fewer_and_more_tiles_than_stages_agree_with_torch(run, k):
    check(run, scheduled(F16, schedule_of(64, 64, 64, 3, 4)), 40, 72, k)


@pytest.mark.parametrize("rows, columns", [(3, 2), (35, 2)])
def test_every_tile_has_a_block(rows, columns):
    check(simulate, scheduled(F16, schedule_of(64, 64, 32, 4, 4)), 64 * rows - 5, 64 * columns, 32)


def test_no_two_threads_want_one_bank_at_a_time():
    for schedule in (schedule_of(128, 256, 64, 3, 8), schedule_of(256, 128, 32, 4, 8)):
        kernel = scheduled(F16, schedule)
        kernel(
            256, 256, 64, torch.randn(256, 64).half(), torch.randn(64, 256).half(), poisoned(256, 256, dtype=torch.half)
        )
        assert kernel.last.last_run.counters["bank_conflicts"] == 0


@pytest.mark.gpu
@pytest.mark.parametrize("schedule", F16.schedules, ids=lambda s: "-".join(map(str, s.values())))
def test_every_schedule_agrees_with_torch_on_a_gpu(schedule):
    check(on_gpu, scheduled(F16, schedule), 333, 1366, 810)


@pytest.mark.gpu
@pytest.mark.parametrize("m, n, k", LARGE)
@pytest.mark.parametrize("transposed", [False, True])
def test_large_sizes_agree_with_torch_on_a_gpu(m, n, k, transposed):
    check(on_gpu, LINEAR if transposed else F16, m, n, k, transposed=transposed)
