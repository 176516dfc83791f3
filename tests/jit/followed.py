# SPDX-License-Identifier: Apache-2.0
"""Kernels whose lines are followed to machine code."""

import tilekit as tilus
from tilekit import float16, float32, int32
from tilekit.utils import cdiv


class VectorAdd(tilus.Script):
    def __call__(self, n: int32, x_ptr: ~float32, y_ptr: ~float32, z_ptr: ~float32):
        self.attrs.blocks = [cdiv(n, 512)]
        self.attrs.warps = 4
        start = self.blockIdx.x * 512
        gx = self.global_view(x_ptr, dtype=float32, shape=[n])
        gy = self.global_view(y_ptr, dtype=float32, shape=[n])
        gz = self.global_view(z_ptr, dtype=float32, shape=[n])
        x = self.load_global(gx, offsets=[start], shape=[512])
        y = self.load_global(gy, offsets=[start], shape=[512])
        self.store_global(gz, x + y, offsets=[start])


class Softmax(tilus.Script):
    def load_row(self, gx, row, n):
        x = self.load_global(gx, offsets=[row, 0], shape=[1, 1024]).to(float32)
        columns = self.register_tensor(dtype=int32, shape=[1, 1024], init=lambda i, j: j)
        return self.where(columns < n, x, float("-inf"))

    def __call__(self, m: int32, n: int32, x_ptr: ~float16, y_ptr: ~float16):
        self.attrs.blocks = [m]
        self.attrs.warps = 4
        row = self.blockIdx.x
        gx = self.global_view(x_ptr, dtype=float16, shape=[m, n])
        gy = self.global_view(y_ptr, dtype=float16, shape=[m, n])
        x = self.load_row(gx, row, n)
        y = self.exp(x - self.max(x, dim=1, keepdim=True))
        y = y / self.sum(y, dim=1, keepdim=True)
        self.store_global(gy, y.to(float16), offsets=[row, 0])


class Matmul(tilus.Script):
    def __call__(self, m: int32, n: int32, k: int32, a_ptr: ~float16, b_ptr: ~float16, c_ptr: ~float16):
        self.attrs.blocks = [cdiv(n, 64), cdiv(m, 64)]
        self.attrs.warps = 4
        row, column = self.blockIdx.y * 64, self.blockIdx.x * 64
        ga = self.global_view(a_ptr, dtype=float16, shape=[m, k])
        gb = self.global_view(b_ptr, dtype=float16, shape=[k, n])
        gc = self.global_view(c_ptr, dtype=float16, shape=[m, n])
        sa = self.shared_tensor(dtype=float16, shape=[64, 32])
        sb = self.shared_tensor(dtype=float16, shape=[32, 64])
        acc = self.register_tensor(dtype=float32, shape=[64, 64], init=0.0)
        for depth in range(0, k, 32):
            self.store_shared(sa, self.load_global(ga, offsets=[row, depth], shape=sa.shape))
            self.store_shared(sb, self.load_global(gb, offsets=[depth, column], shape=sb.shape))
            self.sync()
            acc = self.dot(self.load_shared(sa), self.load_shared(sb), acc)
            self.sync()
        self.store_global(gc, acc.to(float16), offsets=[row, column])
