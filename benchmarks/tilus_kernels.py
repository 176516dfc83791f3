# SPDX-License-Identifier: Apache-2.0
"""The same kernels in the part of the language that tilus 0.2.0 takes too, as peers compiled by tilus.

tilus builds a schedule in eight seconds, so a few are tried of each.
"""

import math
from collections.abc import Sequence
from typing import Any

import tilus
from tilus import float16, float32, int32
from tilus.utils import cdiv

from benchmarks.rounds import Launch


class VectorAdd(tilus.Script):
    def __init__(self, block: int, warps: int):
        super().__init__()
        self.block = block
        self.warps = warps

    def __call__(self, n: int32, x_ptr: ~float16, y_ptr: ~float16, z_ptr: ~float16):
        self.attrs.blocks = [cdiv(n, self.block)]
        self.attrs.warps = self.warps
        start = self.blockIdx.x * self.block
        gx = self.global_view(x_ptr, dtype=float16, shape=[n])
        gy = self.global_view(y_ptr, dtype=float16, shape=[n])
        gz = self.global_view(z_ptr, dtype=float16, shape=[n])
        x = self.load_global(gx, offsets=[start], shape=[self.block])
        y = self.load_global(gy, offsets=[start], shape=[self.block])
        self.store_global(gz, x + y, offsets=[start])


class Matmul(tilus.Script):
    def __init__(self, block_m: int, block_n: int, block_k: int, stages: int, warps: int):
        super().__init__()
        self.block_m = block_m
        self.block_n = block_n
        self.block_k = block_k
        self.stages = stages
        self.warps = warps

    def __call__(self, m: int32, n: int, k: int, a_ptr: ~float16, b_ptr: ~float16, c_ptr: ~float16):
        self.attrs.blocks = [cdiv(n, self.block_n), cdiv(m, self.block_m)]
        self.attrs.warps = self.warps
        row: int32 = self.blockIdx.y * self.block_m
        column: int32 = self.blockIdx.x * self.block_n
        ga = self.global_view(a_ptr, dtype=float16, shape=[m, k])
        gb = self.global_view(b_ptr, dtype=float16, shape=[k, n])
        gc = self.global_view(c_ptr, dtype=float16, shape=[m, n])
        sa = self.shared_tensor(dtype=float16, shape=[self.stages, self.block_m, self.block_k])
        sb = self.shared_tensor(dtype=float16, shape=[self.stages, self.block_k, self.block_n])
        acc = self.register_tensor(dtype=float32, shape=[self.block_m, self.block_n], init=0.0)
        for stage in range(self.stages - 1):
            self.copy_async(src=ga, dst=sa[stage], offsets=[row, stage * self.block_k])
            self.copy_async(src=gb, dst=sb[stage], offsets=[stage * self.block_k, column])
            self.copy_async_commit_group()
        self.copy_async_wait_group(n=self.stages - 2)
        self.sync()
        full: int32 = 0
        free: int32 = self.stages - 1
        for depth in self.range(0, k, self.block_k, unroll=self.stages):
            a = self.load_shared(sa[full])
            b = self.load_shared(sb[full])
            self.dot(a, b, acc, out=acc)
            later: int32 = depth + (self.stages - 1) * self.block_k
            if later < k:
                self.copy_async(src=ga, dst=sa[free], offsets=[row, later])
                self.copy_async(src=gb, dst=sb[free], offsets=[later, column])
            self.copy_async_commit_group()
            full = (full + 1) % self.stages
            free = (free + 1) % self.stages
            self.copy_async_wait_group(n=self.stages - 2)
            self.sync()
        self.free_shared(sa)
        self.free_shared(sb)
        half = self.cast(acc, dtype=float16)
        self.store_global(gc, half, offsets=[row, column])


class Softmax(tilus.Script):
    def __init__(self, block_n: int, warps: int):
        super().__init__()
        self.block_n = block_n
        self.warps = warps

    def __call__(self, m: int32, n: int, x_ptr: ~float16, y_ptr: ~float16):
        self.attrs.blocks = [m]
        self.attrs.warps = self.warps
        row = self.blockIdx.x
        gx = self.global_view(x_ptr, dtype=float16, shape=[m, n])
        gy = self.global_view(y_ptr, dtype=float16, shape=[m, n])
        x = self.load_global(gx, offsets=[row, 0], shape=[1, self.block_n]).to(float32)
        e = self.exp(x - self.max(x, dim=1, keepdim=True))
        y = e / self.sum(e, dim=1, keepdim=True)
        self.store_global(gy, y.to(float16), offsets=[row, 0])


class LayerNorm(tilus.Script):
    def __init__(self, block_n: int, warps: int):
        super().__init__()
        self.block_n = block_n
        self.warps = warps

    def __call__(self, m: int32, n: int, x_ptr: ~float16, gamma_ptr: ~float16, beta_ptr: ~float16, y_ptr: ~float16):
        self.attrs.blocks = [m]
        self.attrs.warps = self.warps
        row = self.blockIdx.x
        gx = self.global_view(x_ptr, dtype=float16, shape=[m, n])
        gy = self.global_view(y_ptr, dtype=float16, shape=[m, n])
        g_gamma = self.global_view(gamma_ptr, dtype=float16, shape=[n])
        g_beta = self.global_view(beta_ptr, dtype=float16, shape=[n])
        x = self.load_global(gx, offsets=[row, 0], shape=[1, self.block_n]).to(float32)
        x = x - self.sum(x, dim=1, keepdim=True) / n
        scale = self.rsqrt(self.sum(self.square(x), dim=1, keepdim=True) / n + 1e-5)
        gamma = self.load_global(g_gamma, offsets=[0], shape=[self.block_n]).to(float32)
        beta = self.load_global(g_beta, offsets=[0], shape=[self.block_n]).to(float32)
        y = x * scale * gamma + beta
        self.store_global(gy, y.to(float16), offsets=[row, 0])


class Attention(tilus.Script):
    def __init__(self, block_q: int, block_k: int, warps: int):
        super().__init__()
        self.block_q = block_q
        self.block_k = block_k
        self.warps = warps

    def __call__(
        self,
        batch: int32,
        length: int32,
        heads: int,
        k_heads: int,
        dim: int,
        q_ptr: ~float16,
        k_ptr: ~float16,
        v_ptr: ~float16,
        o_ptr: ~float16,
    ):
        self.attrs.blocks = [cdiv(length, self.block_q), heads, batch]
        self.attrs.warps = self.warps
        first: int32 = self.blockIdx.x * self.block_q
        head = self.blockIdx.y
        item = self.blockIdx.z
        k_head = head // (heads // k_heads)
        gq = self.global_view(q_ptr, dtype=float16, shape=[batch, length, heads, dim])
        gk = self.global_view(k_ptr, dtype=float16, shape=[batch, length, k_heads, dim])
        gv = self.global_view(v_ptr, dtype=float16, shape=[batch, length, k_heads, dim])
        go = self.global_view(o_ptr, dtype=float16, shape=[batch, length, heads, dim])
        sk = self.shared_tensor(dtype=float16, shape=[self.block_k, dim])
        sv = self.shared_tensor(dtype=float16, shape=[self.block_k, dim])
        sq = self.shared_tensor(dtype=float16, shape=[self.block_q, dim])
        self.copy_async(gq, sq, offsets=[item, first, head, 0], dims=[1, 3])
        self.copy_async(gk, sk, offsets=[item, 0, k_head, 0], dims=[1, 3])
        self.copy_async_wait_all()
        self.sync()
        q = self.load_shared(sq)
        self.free_shared(sq)
        scores = self.cuda.resolve_dot_config(
            float16, float32, m=self.block_q, n=self.block_k, k=dim, warp_m=self.warps, warp_n=1
        )
        output = self.cuda.resolve_dot_config(
            float16, float32, m=self.block_q, n=dim, k=self.block_k, warp_m=self.warps, warp_n=1
        )
        acc = self.register_tensor(dtype=float32, shape=[self.block_q, dim], init=0.0)
        self.annotate_layout(acc, output.lc)
        largest = self.register_tensor(dtype=float32, shape=[self.block_q, 1], init=-1e30)
        total = self.register_tensor(dtype=float32, shape=[self.block_q, 1], init=0.0)
        for start in range(0, first + self.block_q, self.block_k):
            self.copy_async_wait_all()
            self.sync()
            self.copy_async(gv, sv, offsets=[item, start, k_head, 0], dims=[1, 3])
            # loaded as it lies: where shared memory is transposed, tilus cannot copy into it
            k = self.load_shared(sk)
            score = self.dot(q, self.transpose(k), acc_dtype=float32)
            self.annotate_layout(score, scores.lc)
            score = score * (math.log2(math.e) / math.sqrt(dim))
            rows = self.register_tensor(dtype=int32, shape=[self.block_q, 1], init=lambda i, j: i + first)
            columns = self.register_tensor(dtype=int32, shape=[1, self.block_k], init=lambda i, j: j + start)  # noqa: B023
            score = self.where(columns <= rows, score, -1e30)
            before = largest
            largest = self.maximum(before, self.max(score, dim=1, keepdim=True))
            fade = self.exp2(before - largest)
            p = self.exp2(score - largest)
            total = total * fade + self.sum(p, dim=1, keepdim=True)
            self.copy_async_wait_all()
            self.sync()
            self.copy_async(gk, sk, offsets=[item, start + self.block_k, k_head, 0], dims=[1, 3])
            acc = self.dot(p.to(float16), self.load_shared(sv), acc * fade)
        self.copy_async_wait_all()
        self.sync()
        self.free_shared(sk)
        self.free_shared(sv)
        self.store_global(go, (acc / total).to(float16), offsets=[item, first, head, 0], dims=[1, 3])


# block, warps
VECTOR_ADD = ((1024, 4), (2048, 4))
# block_m, block_n, block_k, stages, warps
MATMUL = ((128, 128, 32, 4, 4), (128, 256, 32, 4, 8), (128, 128, 32, 3, 4))
ROW_WARPS = (8, 16)
# block_q, block_k, warps
ATTENTION = ((64, 64, 4), (128, 64, 8))


def vector_add(args: Sequence[Any], config: tuple[int, int]) -> Launch:
    kernel = VectorAdd(*config)
    return lambda: kernel(*args)


def matmul(args: Sequence[Any], config: tuple[int, int, int, int, int]) -> Launch:
    kernel = Matmul(*config)
    return lambda: kernel(*args)


def softmax(args: Sequence[Any], warps: int) -> Launch:
    kernel = Softmax(args[1], warps)
    return lambda: kernel(*args)


def layer_norm(args: Sequence[Any], warps: int) -> Launch:
    kernel = LayerNorm(args[1], warps)
    return lambda: kernel(*args)


def attention(args: Sequence[Any], config: tuple[int, int, int]) -> Launch:
    kernel = Attention(*config)
    return lambda: kernel(*args)
