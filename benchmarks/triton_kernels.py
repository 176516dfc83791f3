# SPDX-License-Identifier: Apache-2.0
"""The same kernels in Triton, as peers: each function makes what launches one of them at one configuration."""

import math

import torch
import triton
import triton.language as tl

from benchmarks.rounds import Launch


@triton.jit
def add_kernel(x_ptr, y_ptr, z_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    total = tl.load(x_ptr + at, mask=inside) + tl.load(y_ptr + at, mask=inside)
    tl.store(z_ptr + at, total, mask=inside)


# block, warps
ADD = ((1024, 4), (2048, 4), (4096, 8), (8192, 8))


def add(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor, config: tuple[int, int]) -> Launch:
    block, warps = config
    grid = (triton.cdiv(x.numel(), block),)
    return lambda: add_kernel[grid](x, y, z, x.numel(), BLOCK=block, num_warps=warps)


@triton.jit
def softmax_kernel(x_ptr, y_ptr, n, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + column, mask=column < n, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    y = e / tl.sum(e, axis=0)
    tl.store(y_ptr + row * stride + column, y.to(y_ptr.dtype.element_ty), mask=column < n)


ROW_WARPS = (4, 8, 16, 32)


def softmax(x: torch.Tensor, y: torch.Tensor, warps: int) -> Launch:
    m, n = x.shape
    block = triton.next_power_of_2(n)
    return lambda: softmax_kernel[(m,)](x, y, n, x.stride(0), BLOCK=block, num_warps=warps)


@triton.jit
def layer_norm_kernel(x_ptr, gamma_ptr, beta_ptr, y_ptr, n, stride, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < n
    x = tl.load(x_ptr + row * stride + column, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / n
    centered = tl.where(inside, x - mean, 0.0)
    scale = tl.rsqrt(tl.sum(centered * centered, axis=0) / n + eps)
    gamma = tl.load(gamma_ptr + column, mask=inside, other=0.0).to(tl.float32)
    beta = tl.load(beta_ptr + column, mask=inside, other=0.0).to(tl.float32)
    y = centered * scale * gamma + beta
    tl.store(y_ptr + row * stride + column, y.to(y_ptr.dtype.element_ty), mask=inside)


def layer_norm(
    x: torch.Tensor, gamma: torch.Tensor, beta: torch.Tensor, y: torch.Tensor, eps: float, warps: int
) -> Launch:
    m, n = x.shape
    block = triton.next_power_of_2(n)
    return lambda: layer_norm_kernel[(m,)](x, gamma, beta, y, n, x.stride(0), eps, BLOCK=block, num_warps=warps)


@triton.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    m,
    n,
    k,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
):
    # blocks that run at a time have tiles in GROUP rows of them
    columns = tl.cdiv(n, BLOCK_N)
    first = tl.program_id(0) // (GROUP * columns) * GROUP
    height = min(tl.cdiv(m, BLOCK_M) - first, GROUP)
    within = tl.program_id(0) % (GROUP * columns)
    row = (first + within % height) * BLOCK_M
    column = within // height * BLOCK_N
    i = (row + tl.arange(0, BLOCK_M)) % m
    j = (column + tl.arange(0, BLOCK_N)) % n
    d = tl.arange(0, BLOCK_K)
    a_at = a_ptr + i[:, None] * k + d[None, :]
    b_at = b_ptr + d[:, None] * n + j[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for depth in range(tl.cdiv(k, BLOCK_K)):
        rest = k - depth * BLOCK_K
        a = tl.load(a_at, mask=d[None, :] < rest, other=0.0)
        b = tl.load(b_at, mask=d[:, None] < rest, other=0.0)
        acc = tl.dot(a, b, acc)
        a_at += BLOCK_K
        b_at += BLOCK_K * n
    i = row + tl.arange(0, BLOCK_M)
    j = column + tl.arange(0, BLOCK_N)
    inside = (i[:, None] < m) & (j[None, :] < n)
    tl.store(c_ptr + i[:, None] * n + j[None, :], acc.to(c_ptr.dtype.element_ty), mask=inside)


# block_m, block_n, block_k, warps, stages
MATMUL = ((128, 256, 64, 8, 3), (128, 256, 64, 8, 4), (128, 128, 64, 4, 3), (128, 128, 64, 4, 4), (128, 128, 64, 8, 4))


def matmul(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, config: tuple[int, int, int, int, int]) -> Launch:
    (m, k), n = a.shape, b.shape[1]
    block_m, block_n, block_k, warps, stages = config
    grid = (triton.cdiv(m, block_m) * triton.cdiv(n, block_n),)
    return lambda: matmul_kernel[grid](
        a, b, c, m, n, k, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP=8, num_warps=warps, num_stages=stages
    )


@triton.jit
def attend(
    acc, largest, total, q, k_at, v_at, stride, begin, end, first, scale,
    MASKED: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr
):  # fmt: skip
    rows = first + tl.arange(0, BLOCK_Q)
    for start in range(begin, end, BLOCK_K):
        k = tl.load(k_at + start * stride)
        score = tl.dot(q, k)
        if MASKED:
            columns = start + tl.arange(0, BLOCK_K)
            score = tl.where(columns[None, :] <= rows[:, None], score, -1e30)
        highest = tl.maximum(largest, tl.max(score, 1))
        p = tl.exp2(score * scale - (highest * scale)[:, None])
        fade = tl.exp2((largest - highest) * scale)
        total = total * fade + tl.sum(p, 1)
        v = tl.load(v_at + start * stride)
        acc = tl.dot(p.to(v.dtype), v, acc * fade[:, None])
        largest = highest
    return acc, largest, total


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, length, scale,
    HEADS: tl.constexpr, K_HEADS: tl.constexpr, DIM: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr
):  # fmt: skip
    """Causal attention of [batch, length, heads, dim]; the length is a multiple of both blocks, BLOCK_Q of BLOCK_K."""
    head = tl.program_id(0)
    first = (tl.num_programs(1) - 1 - tl.program_id(1)) * BLOCK_Q
    item = tl.program_id(2).to(tl.int64)
    d = tl.arange(0, DIM)
    i = first + tl.arange(0, BLOCK_Q)
    j = tl.arange(0, BLOCK_K)
    q_at = ((item * length + i)[:, None] * HEADS + head) * DIM + d[None, :]
    stride = K_HEADS * DIM
    base = item * length * stride + head // (HEADS // K_HEADS) * DIM
    k_at = k_ptr + base + j[None, :] * stride + d[:, None]
    v_at = v_ptr + base + j[:, None] * stride + d[None, :]
    q = tl.load(q_ptr + q_at)
    acc = tl.zeros((BLOCK_Q, DIM), dtype=tl.float32)
    largest = tl.full((BLOCK_Q,), -1e30, dtype=tl.float32)
    total = tl.zeros((BLOCK_Q,), dtype=tl.float32)
    acc, largest, total = attend(
        acc, largest, total, q, k_at, v_at, stride, 0, first, first, scale, False, BLOCK_Q, BLOCK_K
    )
    acc, largest, total = attend(
        acc, largest, total, q, k_at, v_at, stride, first, first + BLOCK_Q, first, scale, True, BLOCK_Q, BLOCK_K
    )
    tl.store(o_ptr + q_at, (acc / total[:, None]).to(o_ptr.dtype.element_ty))


# block_q, block_k, warps, stages
ATTENTION = ((128, 128, 8, 2), (128, 64, 8, 3), (128, 64, 4, 3), (128, 64, 4, 2), (64, 64, 4, 3))


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, o: torch.Tensor, config: tuple[int, int, int, int]
) -> Launch:
    batch, length, heads, dim = q.shape
    block_q, block_k, warps, stages = config
    grid = (heads, length // block_q, batch)
    scale = math.log2(math.e) / math.sqrt(dim)
    return lambda: attention_kernel[grid](
        q, k, v, o, length, scale, HEADS=heads, K_HEADS=k.shape[2], DIM=dim, BLOCK_Q=block_q, BLOCK_K=block_k,
        num_warps=warps, num_stages=stages
    )  # fmt: skip
