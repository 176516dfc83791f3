# SPDX-License-Identifier: Apache-2.0
import pytest
import torch

from tests.kernels.attention import scripts
from tests.kernels.machines import EVERYWHERE, assert_close, evaluate, on_gpu, poisoned, scheduled, simulate
from tilekit import bfloat16

FLASH = {torch.float16: scripts.flash(), torch.bfloat16: scripts.flash(bfloat16)}
TWO_LOOPS = {torch.float16: scripts.flash_in_two_loops(), torch.bfloat16: scripts.flash_in_two_loops(bfloat16)}
SPLIT = {torch.float16: scripts.split_flash(), torch.bfloat16: scripts.split_flash(bfloat16)}


def attention(q, k, v, causal):
    """softmax(q @ k.T / sqrt(dim)) @ v in float64, the last query at the last key."""
    q, k, v = (x.double().transpose(1, 2) for x in (q, k, v))
    group = q.shape[1] // k.shape[1]
    scores = q @ k.repeat_interleave(group, dim=1).mT / q.shape[-1] ** 0.5
    if causal:
        q_len, k_len = scores.shape[-2:]
        scores.masked_fill_(torch.ones_like(scores, dtype=torch.bool).triu(k_len - q_len + 1), float("-inf"))
    return (scores.softmax(dim=-1) @ v.repeat_interleave(group, dim=1)).transpose(1, 2)


def check(run, kernel, batch, q_len, k_len, heads, k_heads, dim, causal, dtype=torch.float16):
    q = torch.randn(batch, q_len, heads, dim).to(dtype)
    k, v = torch.randn(2, batch, k_len, k_heads, dim).to(dtype)
    o = poisoned(batch, q_len, heads, dim, dtype=dtype)
    run(kernel, (batch, q_len, k_len, heads, k_heads, dim, causal, q, k, v, o))
    assert_close(o, attention(q, k, v, causal))


# batch, query length, key length, heads, key heads, dim
SHAPES = [(2, 64, 128, 2, 2, 64), (1, 67, 93, 4, 2, 64), (1, 1, 70, 2, 1, 40)]
LARGE = [(2, 1024, 1024, 8, 8, 64), (1, 500, 1500, 8, 2, 128), (3, 333, 777, 4, 1, 96)]


@pytest.mark.parametrize("run", EVERYWHERE)
@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_attention_agrees_with_torch(run, shape, causal):
    check(run, FLASH[torch.float16], *shape, causal)


@pytest.mark.parametrize("run", EVERYWHERE)
def test_bfloat16_agrees_with_torch(run):
    check(run, FLASH[torch.bfloat16], 1, 67, 93, 4, 2, 64, True, torch.bfloat16)


@pytest.mark.parametrize("run", EVERYWHERE)
@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_keys_that_all_see_and_the_others_in_two_loops_agree_with_torch(run, shape, causal):
    check(run, TWO_LOOPS[torch.float16], *shape, causal)


@pytest.mark.parametrize(
    "schedule", TWO_LOOPS[torch.float16].schedules[1:], ids=lambda s: "-".join(map(str, s.values()))
)
def test_every_schedule_of_two_loops_agrees_with_torch_in_the_evaluator(schedule):
    check(evaluate, scheduled(TWO_LOOPS[torch.float16], schedule), 1, 130, 250, 2, 1, 64, True)


def test_a_warp_of_more_rows_agrees_with_torch_in_the_simulator():
    kernel = scheduled(TWO_LOOPS[torch.bfloat16], {"block_q": 128, "block_k": 32, "warps": 4})
    check(simulate, kernel, 1, 130, 150, 2, 1, 64, True, torch.bfloat16)


@pytest.mark.parametrize("run", EVERYWHERE)
@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("shape", [(1, 5, 300, 2, 1, 64), (2, 17, 50, 2, 2, 32)], ids=str)
def test_blocks_that_share_the_keys_of_a_head_agree_with_torch(run, shape, causal):
    check(run, SPLIT[torch.float16], *shape, causal)


@pytest.mark.parametrize("run", EVERYWHERE)
def test_split_bfloat16_agrees_with_torch(run):
    check(run, SPLIT[torch.bfloat16], 1, 5, 300, 2, 1, 64, True, torch.bfloat16)


@pytest.mark.parametrize("schedule", FLASH[torch.float16].schedules[1:], ids=lambda s: "-".join(map(str, s.values())))
def test_every_schedule_agrees_with_torch_in_the_evaluator(schedule):
    check(evaluate, scheduled(FLASH[torch.float16], schedule), 1, 130, 150, 2, 1, 64, True)


@pytest.mark.gpu
@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("schedule", FLASH[torch.float16].schedules, ids=lambda s: "-".join(map(str, s.values())))
def test_every_schedule_agrees_with_torch_on_a_gpu(schedule, causal):
    check(on_gpu, scheduled(FLASH[torch.float16], schedule), 1, 333, 777, 4, 2, 64, causal)


@pytest.mark.gpu
@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("schedule", TWO_LOOPS[torch.float16].schedules, ids=lambda s: "-".join(map(str, s.values())))
def test_every_schedule_of_two_loops_agrees_with_torch_on_a_gpu(schedule, causal):
    for shape in ((1, 333, 777, 4, 2, 64), (1, 1024, 1024, 8, 2, 128)):
        check(on_gpu, scheduled(TWO_LOOPS[torch.float16], schedule), *shape, causal)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", FLASH, ids=str)
@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("shape", LARGE, ids=str)
def test_large_sizes_agree_with_torch_on_a_gpu(shape, causal, dtype):
    check(on_gpu, FLASH[dtype], *shape, causal, dtype)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", SPLIT, ids=str)
@pytest.mark.parametrize("shape", [(1, 7, 8000, 8, 2, 128), (4, 33, 1000, 4, 4, 64)], ids=str)
def test_many_keys_agree_with_torch_on_a_gpu(shape, dtype):
    check(on_gpu, SPLIT[dtype], *shape, True, dtype)
