# SPDX-License-Identifier: Apache-2.0
"""Keys and values that lie in pages of a cache, in any order."""

import pytest
import torch

from tests.kernels.attention import scripts
from tests.kernels.attention.test_flash_attention import attention
from tests.kernels.machines import EVERYWHERE, assert_close, on_gpu, poisoned, simulate
from tilekit import bfloat16
from tilekit.diag.errors import LanguageError

PAGED = {torch.float16: scripts.paged(), torch.bfloat16: scripts.paged(bfloat16)}
DECODE = {torch.float16: scripts.decode(), torch.bfloat16: scripts.decode(bfloat16)}


def cache(lengths, page, k_heads, dim, dtype):
    """Two caches and the pages of each sequence; what belongs to no sequence is not a number."""
    counts = [-(-length // page) for length in lengths]
    order = torch.randperm(sum(counts) + 3)
    table = torch.full((len(lengths), max(counts)), -1, dtype=torch.int32)
    k, v = (poisoned(len(order), page, k_heads, dim, dtype=dtype) for _ in range(2))
    used = 0
    for i, (length, count) in enumerate(zip(lengths, counts, strict=True)):
        table[i, :count] = order[used : used + count]
        used += count
        for values in (k, v):
            pages = values[table[i, :count].long()].flatten(0, 1)
            pages[:length] = torch.randn(length, k_heads, dim).to(dtype)
            # masked weights are zero, and zero times not a number is none either
            pages[length:] = 0
            values[table[i, :count].long()] = pages.unflatten(0, (count, page))
    return table, k, v


def judge(o, q, lengths, table, k, v):
    for i, length in enumerate(lengths):
        count = -(-length // k.shape[1])
        keys, values = (x[table[i, :count].long()].flatten(0, 1)[None, :length] for x in (k, v))
        assert_close(o[i : i + 1], attention(q[i : i + 1], keys, values, causal=True))


def check_paged(run, dtype, lengths, q_len, page, heads, k_heads, dim):
    table, k, v = cache(lengths, page, k_heads, dim, dtype)
    q = torch.randn(len(lengths), q_len, heads, dim).to(dtype)
    o = poisoned(*q.shape, dtype=dtype)
    sizes = (len(lengths), q_len, table.shape[1], len(k), page, heads, k_heads, dim)
    run(PAGED[dtype], (*sizes, torch.tensor(lengths, dtype=torch.int32), table, q, k, v, o))
    judge(o, q, lengths, table, k, v)


def check_decode(run, dtype, lengths, page, heads, k_heads, dim):
    table, k, v = cache(lengths, page, k_heads, dim, dtype)
    q = torch.randn(len(lengths), heads, dim).to(dtype)
    o = poisoned(*q.shape, dtype=dtype)
    sizes = (len(lengths), table.shape[1], len(k), page, heads, k_heads, dim)
    run(DECODE[dtype], (*sizes, torch.tensor(lengths, dtype=torch.int32), table, q, k, v, o))
    judge(o[:, None], q[:, None], lengths, table, k, v)


@pytest.mark.parametrize("run", EVERYWHERE)
@pytest.mark.parametrize("dtype", PAGED, ids=str)
def test_one_new_token_of_each_sequence(run, dtype):
    check_paged(run, dtype, [1, 37, 100], q_len=1, page=16, heads=8, k_heads=2, dim=64)


@pytest.mark.parametrize("run", EVERYWHERE)
@pytest.mark.parametrize("page, heads, k_heads, dim", [(16, 4, 2, 64), (32, 2, 2, 40)])
def test_several_new_tokens_see_those_before_them(run, page, heads, k_heads, dim):
    check_paged(run, torch.float16, [35, 36, 75], q_len=35, page=page, heads=heads, k_heads=k_heads, dim=dim)


def test_a_page_that_is_no_tile_is_refused():
    with pytest.raises(LanguageError, match="a page is a tile of keys: it needs a multiple of 16 of them"):
        check_paged(simulate, torch.float16, [20], q_len=1, page=8, heads=2, k_heads=1, dim=64)


@pytest.mark.parametrize("run", EVERYWHERE)
@pytest.mark.parametrize("dtype", DECODE, ids=str)
@pytest.mark.parametrize("page, heads, k_heads, dim", [(16, 4, 2, 64), (8, 2, 2, 40)])
def test_decode_agrees_with_torch(run, dtype, page, heads, k_heads, dim):
    check_decode(run, dtype, [1, 37, 90], page, heads, k_heads, dim)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", PAGED, ids=str)
@pytest.mark.parametrize("page, heads, k_heads, dim", [(64, 32, 8, 128), (16, 8, 1, 96)])
def test_long_sequences_on_a_gpu(dtype, page, heads, k_heads, dim):
    lengths = torch.randint(300, 3000, (9,)).tolist()
    check_paged(on_gpu, dtype, lengths, 130, page, heads, k_heads, dim)
    check_paged(on_gpu, dtype, lengths, 1, page, heads, k_heads, dim)
    check_decode(on_gpu, dtype, lengths, page, heads, k_heads, dim)
