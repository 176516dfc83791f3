# SPDX-License-Identifier: Apache-2.0
"""Seven matmuls, each with one idea more than the one before it: C[m, n] = A[m, k] @ B[k, n], all row-major."""

import tilekit as tilus
from tilekit import float16, float32, int32
from tilekit.utils import cdiv


def naive(dtype=float16, out=None):
    """Tiles go from global memory to registers, and from there into the tensor cores."""
    out = out or dtype

    class NaiveMatmul(tilus.Script):
        def __init__(self):
            super().__init__()
            self.block_m = 64
            self.block_n = 64
            self.block_k = 32

        def __call__(self, m: int32, n: int32, k: int32, a_ptr: ~dtype, b_ptr: ~dtype, c_ptr: ~out):
            self.attrs.blocks = [cdiv(n, self.block_n), cdiv(m, self.block_m)]
            self.attrs.warps = 4
            row, column = self.blockIdx.y * self.block_m, self.blockIdx.x * self.block_n
            ga = self.global_view(a_ptr, dtype=dtype, shape=[m, k])
            gb = self.global_view(b_ptr, dtype=dtype, shape=[k, n])
            gc = self.global_view(c_ptr, dtype=out, shape=[m, n])

            acc = self.register_tensor(dtype=float32, shape=[self.block_m, self.block_n], init=0.0)
            for depth in range(0, k, self.block_k):
                a = self.load_global(ga, offsets=[row, depth], shape=[self.block_m, self.block_k])
                b = self.load_global(gb, offsets=[depth, column], shape=[self.block_k, self.block_n])
                acc = self.dot(a, b, acc)
            self.store_global(gc, acc.to(out), offsets=[row, column])

    return NaiveMatmul()


def through_shared(dtype=float16, out=None):
    """Wide loads fill shared memory; from there each warp takes what its part of the tile needs."""
    out = out or dtype

    class SharedMatmul(tilus.Script):
        def __init__(self):
            super().__init__()
            self.block_m = 64
            self.block_n = 64
            self.block_k = 32

        def __call__(self, m: int32, n: int32, k: int32, a_ptr: ~dtype, b_ptr: ~dtype, c_ptr: ~out):
            self.attrs.blocks = [cdiv(n, self.block_n), cdiv(m, self.block_m)]
            self.attrs.warps = 4
            row, column = self.blockIdx.y * self.block_m, self.blockIdx.x * self.block_n
            ga = self.global_view(a_ptr, dtype=dtype, shape=[m, k])
            gb = self.global_view(b_ptr, dtype=dtype, shape=[k, n])
            gc = self.global_view(c_ptr, dtype=out, shape=[m, n])
            sa = self.shared_tensor(dtype=dtype, shape=[self.block_m, self.block_k])
            sb = self.shared_tensor(dtype=dtype, shape=[self.block_k, self.block_n])

            acc = self.register_tensor(dtype=float32, shape=[self.block_m, self.block_n], init=0.0)
            for depth in range(0, k, self.block_k):
                self.store_shared(sa, self.load_global(ga, offsets=[row, depth], shape=sa.shape))
                self.store_shared(sb, self.load_global(gb, offsets=[depth, column], shape=sb.shape))
                self.sync()
                acc = self.dot(self.load_shared(sa), self.load_shared(sb), acc)
                self.sync()
            self.free_shared(sa)
            self.free_shared(sb)
            self.store_global(gc, acc.to(out), offsets=[row, column])

    return SharedMatmul()


def tuned(dtype=float16, out=None):
    """The same, with tile sizes and warps left open: a space of schedules."""
    out = out or dtype

    @tilus.autotune("block_m, block_n", [(128, 64), (64, 128), (64, 64)])
    @tilus.autotune("block_k", [32, 16])
    @tilus.autotune("warps", [4, 8])
    class TunedMatmul(tilus.Script):
        def __init__(self, block_m: int, block_n: int, block_k: int, warps: int):
            super().__init__()
            self.block_m = block_m
            self.block_n = block_n
            self.block_k = block_k
            self.warps = warps

        def __call__(self, m: int32, n: int32, k: int32, a_ptr: ~dtype, b_ptr: ~dtype, c_ptr: ~out):
            self.attrs.blocks = [cdiv(n, self.block_n), cdiv(m, self.block_m)]
            self.attrs.warps = self.warps
            row, column = self.blockIdx.y * self.block_m, self.blockIdx.x * self.block_n
            ga = self.global_view(a_ptr, dtype=dtype, shape=[m, k])
            gb = self.global_view(b_ptr, dtype=dtype, shape=[k, n])
            gc = self.global_view(c_ptr, dtype=out, shape=[m, n])
            sa = self.shared_tensor(dtype=dtype, shape=[self.block_m, self.block_k])
            sb = self.shared_tensor(dtype=dtype, shape=[self.block_k, self.block_n])

            acc = self.register_tensor(dtype=float32, shape=[self.block_m, self.block_n], init=0.0)
            for depth in range(0, k, self.block_k):
                # what was loaded waits in registers until everybody is done with the tiles before
                a = self.load_global(ga, offsets=[row, depth], shape=[self.block_m, self.block_k])
                b = self.load_global(gb, offsets=[depth, column], shape=[self.block_k, self.block_n])
                self.sync()
                self.store_shared(sa, a)
                self.store_shared(sb, b)
                self.sync()
                self.dot(self.load_shared(sa), self.load_shared(sb), acc, out=acc)
            self.free_shared(sa)
            self.free_shared(sb)
            self.store_global(gc, acc.to(out), offsets=[row, column])

    return TunedMatmul()


def asynchronous(dtype=float16, out=None):
    """Copies go straight from global to shared memory, past the registers.

    The sizes of the rows are known when it is compiled: such a copy moves 4, 8 or 16 bytes, and they must be aligned.
    """
    out = out or dtype

    @tilus.autotune("block_m, block_n", [(128, 128), (128, 64), (64, 64)])
    @tilus.autotune("block_k", [32, 64])
    @tilus.autotune("warps", [4, 8])
    class AsyncMatmul(tilus.Script):
        def __init__(self, block_m: int, block_n: int, block_k: int, warps: int):
            super().__init__()
            self.block_m = block_m
            self.block_n = block_n
            self.block_k = block_k
            self.warps = warps

        def __call__(self, m: int32, n: int, k: int, a_ptr: ~dtype, b_ptr: ~dtype, c_ptr: ~out):
            self.attrs.blocks = [cdiv(n, self.block_n), cdiv(m, self.block_m)]
            self.attrs.warps = self.warps
            row, column = self.blockIdx.y * self.block_m, self.blockIdx.x * self.block_n
            ga = self.global_view(a_ptr, dtype=dtype, shape=[m, k])
            gb = self.global_view(b_ptr, dtype=dtype, shape=[k, n])
            gc = self.global_view(c_ptr, dtype=out, shape=[m, n])
            sa = self.shared_tensor(dtype=dtype, shape=[self.block_m, self.block_k])
            sb = self.shared_tensor(dtype=dtype, shape=[self.block_k, self.block_n])

            acc = self.register_tensor(dtype=float32, shape=[self.block_m, self.block_n], init=0.0)
            for depth in range(0, k, self.block_k):
                self.copy_async(ga, sa, offsets=[row, depth])
                self.copy_async(gb, sb, offsets=[depth, column])
                self.copy_async_wait_all()
                self.sync()
                self.dot(self.load_shared(sa), self.load_shared(sb), acc, out=acc)
                self.sync()
            self.free_shared(sa)
            self.free_shared(sb)
            self.store_global(gc, acc.to(out), offsets=[row, column])

    return AsyncMatmul()


def pipelined(dtype=float16, out=None, transposed=False):
    """While one stage is multiplied, the copies of the next ones are under way.

    With `transposed`, B lies as [n, k], the way weights of a linear layer do.
    """
    out = out or dtype

    @tilus.autotune("block_m, block_n, warps", [(128, 128, 4), (128, 128, 8), (128, 256, 8), (128, 64, 4), (64, 64, 4)])
    @tilus.autotune("block_k", [32, 64])
    @tilus.autotune("stages", [4, 3])
    class PipelinedMatmul(tilus.Script):
        def __init__(self, block_m: int, block_n: int, block_k: int, stages: int, warps: int):
            super().__init__()
            self.block_m = block_m
            self.block_n = block_n
            self.block_k = block_k
            self.stages = stages
            self.warps = warps

        def __call__(self, m: int32, n: int, k: int, a_ptr: ~dtype, b_ptr: ~dtype, c_ptr: ~out):
            self.attrs.blocks = [cdiv(n, self.block_n), cdiv(m, self.block_m)]
            self.attrs.warps = self.warps
            row, column = self.blockIdx.y * self.block_m, self.blockIdx.x * self.block_n
            ga = self.global_view(a_ptr, dtype=dtype, shape=[m, k])
            gb = self.global_view(b_ptr, dtype=dtype, shape=[n, k] if transposed else [k, n])
            gc = self.global_view(c_ptr, dtype=out, shape=[m, n])
            sa = self.shared_tensor(dtype=dtype, shape=[self.stages, self.block_m, self.block_k])
            tile_b = [self.block_n, self.block_k] if transposed else [self.block_k, self.block_n]
            sb = self.shared_tensor(dtype=dtype, shape=[self.stages, *tile_b])

            for stage in self.range(self.stages - 1, unroll="all"):
                depth = stage * self.block_k
                self.copy_async(ga, sa[stage], offsets=[row, depth])
                self.copy_async(gb, sb[stage], offsets=[column, depth] if transposed else [depth, column])
                self.copy_async_commit_group()

            acc = self.register_tensor(dtype=float32, shape=[self.block_m, self.block_n], init=0.0)
            full: int32 = 0
            free: int32 = self.stages - 1
            for depth in range(0, k, self.block_k):
                self.copy_async_wait_group(self.stages - 2)
                # the oldest copies are here for all threads, and all are done with the stage multiplied last
                self.sync()
                later = depth + (self.stages - 1) * self.block_k
                self.copy_async(ga, sa[free], offsets=[row, later])
                self.copy_async(gb, sb[free], offsets=[column, later] if transposed else [later, column])
                self.copy_async_commit_group()
                a = self.load_shared(sa[full])
                b = self.load_shared(sb[full].transpose() if transposed else sb[full])
                self.dot(a, b, acc, out=acc)
                full = (full + 1) % self.stages
                free = (free + 1) % self.stages
            self.copy_async_wait_all()
            self.free_shared(sa)
            self.free_shared(sb)
            self.store_global(gc, acc.to(out), offsets=[row, column])

    return PipelinedMatmul()


def split_k(dtype=float16, out=None):
    """Several blocks share one tile of C, each with a part of k; a semaphore lets them add in turn.

    Sums wait in a workspace for the block that comes next; the last one writes C. Every semaphore is zero again when
    the kernel ends.
    """
    out = out or dtype

    @tilus.autotune("block_m, block_n", [(64, 64), (128, 64)])
    @tilus.autotune("block_k", [32])
    @tilus.autotune("stages", [3, 4])
    @tilus.autotune("splits", [3, 8])
    class SplitKMatmul(tilus.Script):
        def __init__(self, block_m: int, block_n: int, block_k: int, stages: int, splits: int):
            super().__init__()
            self.block_m = block_m
            self.block_n = block_n
            self.block_k = block_k
            self.stages = stages
            self.splits = splits

        def __call__(self, m: int32, n: int, k: int, a_ptr: ~dtype, b_ptr: ~dtype, c_ptr: ~out):
            rows, columns = cdiv(m, self.block_m), cdiv(n, self.block_n)
            self.attrs.blocks = [columns, rows, self.splits]
            self.attrs.warps = 4
            row, column, split = self.blockIdx.y * self.block_m, self.blockIdx.x * self.block_n, self.blockIdx.z
            share = cdiv(cdiv(k, self.block_k), self.splits) * self.block_k
            begin = split * share
            ga = self.global_view(a_ptr, dtype=dtype, shape=[m, k])
            gb = self.global_view(b_ptr, dtype=dtype, shape=[k, n])
            acc = self.partial(ga, gb, row, column, begin, min(begin + share, k))

            turns = self.global_tensor(dtype=int32, shape=[rows, columns], requires_clean=True)
            sums = self.global_tensor(dtype=float32, shape=[m, n], requires_clean=False)
            turn = turns[self.blockIdx.y, self.blockIdx.x].item_ptr()
            self.lock_semaphore(turn, split)
            if split > 0:
                acc += self.load_global(sums, offsets=[row, column], shape=[self.block_m, self.block_n])
            if split < self.splits - 1:
                self.store_global(sums, acc, offsets=[row, column])
                self.release_semaphore(turn, split + 1)
            else:
                gc = self.global_view(c_ptr, dtype=out, shape=[m, n])
                self.store_global(gc, acc.to(out), offsets=[row, column])
                self.release_semaphore(turn, 0)

        def partial(
            self, ga: tilus.GlobalTensor, gb: tilus.GlobalTensor, row: int32, column: int32, begin: int32, end: int32
        ):
            """The product of columns `begin` to `end` of A and the same rows of B."""
            sa = self.shared_tensor(dtype=dtype, shape=[self.stages, self.block_m, self.block_k])
            sb = self.shared_tensor(dtype=dtype, shape=[self.stages, self.block_k, self.block_n])
            ahead = (self.stages - 1) * self.block_k

            for stage in self.range(self.stages - 1, unroll="all"):
                depth = begin + stage * self.block_k
                self.copy_async(ga, sa[stage], offsets=[row, depth])
                self.copy_async(gb, sb[stage], offsets=[depth, column])
                self.copy_async_commit_group()

            acc = self.register_tensor(dtype=float32, shape=[self.block_m, self.block_n], init=0.0)
            full: int32 = 0
            free: int32 = self.stages - 1
            for depth in range(begin, end, self.block_k):
                self.copy_async_wait_group(self.stages - 2)
                self.sync()
                self.copy_async(ga, sa[free], offsets=[row, depth + ahead])
                self.copy_async(gb, sb[free], offsets=[depth + ahead, column])
                self.copy_async_commit_group()
                self.dot(self.load_shared(sa[full]), self.load_shared(sb[full]), acc, out=acc)
                full = (full + 1) % self.stages
                free = (free + 1) % self.stages
            self.copy_async_wait_all()
            self.free_shared(sa)
            self.free_shared(sb)
            return acc

    return SplitKMatmul()


def overlapped(dtype=float16, out=None, transposed=False):
    """Tensor cores never wait for shared memory: while they multiply, the operands that come next are loaded.

    Large tiles need each element of A and B less often, blocks that run at a time share rows and columns of them, and
    C is written in whole rows. With `transposed`, B lies as [n, k].
    """
    out = out or dtype

    @tilus.autotune("block_m, block_n, warps", [(128, 256, 8), (256, 128, 8), (128, 128, 4), (64, 64, 4)])
    @tilus.autotune("block_k, stages", [(32, 4), (64, 3), (64, 4), (32, 6)])
    class OverlappedMatmul(tilus.Script):
        def __init__(self, block_m: int, block_n: int, block_k: int, stages: int, warps: int):
            super().__init__()
            self.block_m = block_m
            self.block_n = block_n
            self.block_k = block_k
            self.stages = stages
            self.warps = warps
            # what one matrix instruction takes of k
            self.step = 16
            self.steps = block_k // self.step

        def place(self, rows: int32, columns: int32):
            """Which tile of C is whose: blocks that run at a time have tiles in 2048 rows of C, side by side."""
            most = 2048 // self.block_m
            group = most * columns
            first = self.blockIdx.x // group * most
            height = min(rows - first, most)
            within = self.blockIdx.x % group
            return first + within % height, within // height

        def __call__(self, m: int32, n: int, k: int, a_ptr: ~dtype, b_ptr: ~dtype, c_ptr: ~out):
            rows, columns = cdiv(m, self.block_m), cdiv(n, self.block_n)
            self.attrs.blocks = [rows * columns]
            self.attrs.warps = self.warps
            tile_row, tile_column = self.place(rows, columns)
            row, column = tile_row * self.block_m, tile_column * self.block_n
            ga = self.global_view(a_ptr, dtype=dtype, shape=[m, k])
            gb = self.global_view(b_ptr, dtype=dtype, shape=[n, k] if transposed else [k, n])
            gc = self.global_view(c_ptr, dtype=out, shape=[m, n])
            sa = self.shared_tensor(dtype=dtype, shape=[self.stages, self.block_m, self.block_k])
            tile_b = [self.block_n, self.block_k] if transposed else [self.block_k, self.block_n]
            sb = self.shared_tensor(dtype=dtype, shape=[self.stages, *tile_b])
            # the same memory, where what one matrix instruction takes of k has an index
            steps_a = self.reshape_shared(sa, [self.stages, self.block_m, self.steps, self.step])
            steps_b = (
                self.reshape_shared(sb, [self.stages, self.block_n, self.steps, self.step])
                if transposed
                else self.reshape_shared(sb, [self.stages, self.steps, self.step, self.block_n])
            )

            for stage in self.range(self.stages - 1, unroll="all"):
                depth = stage * self.block_k
                self.copy_async(ga, sa[stage], offsets=[row, depth])
                self.copy_async(gb, sb[stage], offsets=[column, depth] if transposed else [depth, column])
                self.copy_async_commit_group()
            self.copy_async_wait_group(self.stages - 2)
            self.sync()
            a0 = self.load_shared(steps_a[0, :, 0, :])
            b0 = self.load_shared(steps_b[0, :, 0, :].transpose() if transposed else steps_b[0, 0])

            acc = self.register_tensor(dtype=float32, shape=[self.block_m, self.block_n], init=0.0)
            # stages are numbered at compile time, so that no address is computed in a turn; where k ends in the middle
            # of the stages, what is left of them is zero
            for start in range(0, k, self.stages * self.block_k):
                for stage in self.range(self.stages, unroll="all"):
                    # this stage has been here since the last turn; what it waits for is the next one
                    self.copy_async_wait_group(self.stages - 3)
                    self.sync()
                    later = start + (stage + self.stages - 1) * self.block_k
                    free = (stage + self.stages - 1) % self.stages
                    self.copy_async(ga, sa[free], offsets=[row, later])
                    self.copy_async(gb, sb[free], offsets=[column, later] if transposed else [later, column])
                    self.copy_async_commit_group()
                    for pair in self.range(self.steps // 2, unroll="all"):
                        a1 = self.load_shared(steps_a[stage, :, 2 * pair + 1, :])
                        b1 = self.load_shared(
                            steps_b[stage, :, 2 * pair + 1, :].transpose()
                            if transposed
                            else steps_b[stage, 2 * pair + 1]
                        )
                        self.dot(a0, b0, acc, out=acc)
                        # the last pair's successor is the first step of the next stage
                        step = (2 * pair + 2) % self.steps
                        here = (stage + (2 * pair + 2) // self.steps) % self.stages
                        self.load_shared(steps_a[here, :, step, :], out=a0)
                        self.load_shared(
                            steps_b[here, :, step, :].transpose() if transposed else steps_b[here, step], out=b0
                        )
                        self.dot(a1, b1, acc, out=acc)
            self.copy_async_wait_all()
            self.sync()
            self.free_shared(sa)
            self.free_shared(sb)
            sc = self.shared_tensor(dtype=out, shape=[self.block_m, self.block_n])
            self.store_shared(sc, acc.to(out))
            self.sync()
            self.store_global(gc, self.load_shared(sc), offsets=[row, column])
            self.free_shared(sc)

    return OverlappedMatmul()
