# SPDX-License-Identifier: Apache-2.0
"""Small kernels that are right, for the mistakes that no kernel of any use would show in so few lines."""

import tilekit as tilus
from tilekit import float16, float32, int32
from tilekit.utils import cdiv


class Stack(tilus.Script):
    """Two tiles, one above the other in shared memory, and out again as one."""

    def __call__(self, x_ptr: ~float32, y_ptr: ~float32, z_ptr: ~float32):
        self.attrs.blocks = [1]
        self.attrs.warps = 4
        gx = self.global_view(x_ptr, dtype=float32, shape=[16, 64])
        gy = self.global_view(y_ptr, dtype=float32, shape=[16, 64])
        gz = self.global_view(z_ptr, dtype=float32, shape=[32, 64])
        tile = self.shared_tensor(dtype=float32, shape=[32, 64])
        self.store_shared(tile, self.load_global(gx, offsets=[0, 0], shape=[16, 64]), offsets=[0, 0])
        self.store_shared(tile, self.load_global(gy, offsets=[0, 0], shape=[16, 64]), offsets=[16, 0])
        self.sync()
        self.store_global(gz, self.load_shared(tile), offsets=[0, 0])
        self.free_shared(tile)


class Pair(tilus.Script):
    """The sum of a matrix and the transpose of another, through two shared tensors."""

    def __call__(self, x_ptr: ~float16, y_ptr: ~float16, z_ptr: ~float16):
        self.attrs.blocks = [1]
        self.attrs.warps = 4
        gx = self.global_view(x_ptr, dtype=float16, shape=[32, 64])
        gy = self.global_view(y_ptr, dtype=float16, shape=[64, 32])
        gz = self.global_view(z_ptr, dtype=float16, shape=[32, 64])
        straight = self.shared_tensor(dtype=float16, shape=[32, 64])
        turned = self.shared_tensor(dtype=float16, shape=[32, 64])
        self.store_shared(straight, self.load_global(gx, offsets=[0, 0], shape=[32, 64]))
        self.store_shared(turned.transpose(), self.load_global(gy, offsets=[0, 0], shape=[64, 32]))
        self.sync()
        self.store_global(gz, self.load_shared(straight) + self.load_shared(turned), offsets=[0, 0])
        self.free_shared(straight)
        self.free_shared(turned)


class Overlaid(tilus.Script):
    """The transpose of y, over which x is laid by a copy before anybody sees it."""

    def __call__(self, x_ptr: ~float16, y_ptr: ~float16, z_ptr: ~float16):
        self.attrs.blocks = [1]
        self.attrs.warps = 4
        gx = self.global_view(x_ptr, dtype=float16, shape=[32, 64])
        gy = self.global_view(y_ptr, dtype=float16, shape=[64, 32])
        gz = self.global_view(z_ptr, dtype=float16, shape=[32, 64])
        tile = self.shared_tensor(dtype=float16, shape=[32, 64])
        self.store_shared(tile.transpose(), self.load_global(gy, offsets=[0, 0], shape=[64, 32]))
        self.sync()
        self.copy_async(gx, tile, offsets=[0, 0])
        self.copy_async_wait_all()
        self.sync()
        self.store_global(gz, self.load_shared(tile), offsets=[0, 0])
        self.free_shared(tile)


class Reuse(tilus.Script):
    """The sum of two transposes; the second shared tensor lies where the first one was."""

    def __call__(self, x_ptr: ~float16, y_ptr: ~float16, z_ptr: ~float16):
        self.attrs.blocks = [1]
        self.attrs.warps = 4
        gx = self.global_view(x_ptr, dtype=float16, shape=[32, 64])
        gy = self.global_view(y_ptr, dtype=float16, shape=[32, 64])
        gz = self.global_view(z_ptr, dtype=float16, shape=[64, 32])
        first = self.shared_tensor(dtype=float16, shape=[32, 64])
        self.store_shared(first, self.load_global(gx, offsets=[0, 0], shape=[32, 64]))
        self.sync()
        x = self.load_shared(first.transpose())
        self.free_shared(first)
        second = self.shared_tensor(dtype=float16, shape=[32, 64])
        self.store_shared(second, self.load_global(gy, offsets=[0, 0], shape=[32, 64]))
        self.sync()
        y = self.load_shared(second.transpose())
        self.free_shared(second)
        self.store_global(gz, x + y, offsets=[0, 0])


class ReuseByCopy(tilus.Script):
    """The same, with copies past the registers."""

    def __call__(self, x_ptr: ~float16, y_ptr: ~float16, z_ptr: ~float16):
        self.attrs.blocks = [1]
        self.attrs.warps = 4
        gx = self.global_view(x_ptr, dtype=float16, shape=[32, 64])
        gy = self.global_view(y_ptr, dtype=float16, shape=[32, 64])
        gz = self.global_view(z_ptr, dtype=float16, shape=[64, 32])
        first = self.shared_tensor(dtype=float16, shape=[32, 64])
        self.copy_async(gx, first, offsets=[0, 0])
        self.copy_async_wait_all()
        self.sync()
        x = self.load_shared(first.transpose())
        self.free_shared(first)
        second = self.shared_tensor(dtype=float16, shape=[32, 64])
        self.copy_async(gy, second, offsets=[0, 0])
        self.copy_async_wait_all()
        self.sync()
        y = self.load_shared(second.transpose())
        self.free_shared(second)
        self.store_global(gz, x + y, offsets=[0, 0])


class ReuseAsAnotherType(tilus.Script):
    """A float16 tile, and then a float32 tile of half its size in the same bytes."""

    def __call__(self, x_ptr: ~float16, y_ptr: ~float32, turned_ptr: ~float16, z_ptr: ~float32):
        self.attrs.blocks = [1]
        self.attrs.warps = 4
        gx = self.global_view(x_ptr, dtype=float16, shape=[32, 64])
        gy = self.global_view(y_ptr, dtype=float32, shape=[16, 64])
        g_turned = self.global_view(turned_ptr, dtype=float16, shape=[64, 32])
        gz = self.global_view(z_ptr, dtype=float32, shape=[64, 16])
        halves = self.shared_tensor(dtype=float16, shape=[32, 64])
        self.store_shared(halves, self.load_global(gx, offsets=[0, 0], shape=[32, 64]))
        self.sync()
        self.store_global(g_turned, self.load_shared(halves.transpose()), offsets=[0, 0])
        self.free_shared(halves)
        singles = self.shared_tensor(dtype=float32, shape=[16, 64])
        self.store_shared(singles, self.load_global(gy, offsets=[0, 0], shape=[16, 64]))
        self.sync()
        self.store_global(gz, self.load_shared(singles.transpose()), offsets=[0, 0])
        self.free_shared(singles)


class Gather(tilus.Script):
    """The four rows of x that `order` names, gathered in one tile."""

    def __call__(self, n: int32, order_ptr: ~int32, x_ptr: ~float32, y_ptr: ~float32):
        self.attrs.blocks = [1]
        self.attrs.warps = 1
        order = self.global_view(order_ptr, dtype=int32, shape=[4])
        gx = self.global_view(x_ptr, dtype=float32, shape=[n, 64])
        gy = self.global_view(y_ptr, dtype=float32, shape=[4, 64])
        tile = self.register_tensor(dtype=float32, shape=[4, 64])
        for i in self.range(4, unroll="all"):
            tile[i] = self.load_global(gx, offsets=[order[i].item(), 0], shape=[64], dims=[1])
        self.store_global(gy, tile, offsets=[0, 0])


class Scratch(tilus.Script):
    """A transpose of each block's tile, through a workspace in global memory."""

    def __call__(self, x_ptr: ~float32, y_ptr: ~float32):
        self.attrs.blocks = [2]
        self.attrs.warps = 2
        block = self.blockIdx.x
        gx = self.global_view(x_ptr, dtype=float32, shape=[2, 32, 16])
        gy = self.global_view(y_ptr, dtype=float32, shape=[2, 16, 32])
        scratch = self.global_tensor(dtype=float32, shape=[2, 32, 16], requires_clean=False)
        x = self.load_global(gx, offsets=[block, 0, 0], shape=[32, 16], dims=[1, 2])
        self.store_global(scratch, x, offsets=[block, 0, 0], dims=[1, 2])
        self.sync()
        turned = self.load_global(scratch, offsets=[block, 0, 0], shape=[16, 32], dims=[2, 1])
        self.store_global(gy, turned, offsets=[block, 0, 0], dims=[1, 2])


class Window(tilus.Script):
    """Each block sees its own part of x through a view of its own."""

    def __call__(self, x_ptr: ~float32, y_ptr: ~float32):
        self.attrs.blocks = [4]
        self.attrs.warps = 2
        part = self.global_view(x_ptr + self.blockIdx.x * 64, dtype=float32, shape=[64])
        gy = self.global_view(y_ptr, dtype=float32, shape=[4, 64])
        x = self.load_global(part, offsets=[0], shape=[64])
        self.store_global(gy, x * 2.0, offsets=[self.blockIdx.x, 0], dims=[1])


class Lengths(tilus.Script):
    """The length of each part, from where the parts begin and where the last one ends."""

    def __call__(self, begin_ptr: ~int32, length_ptr: ~int32):
        self.attrs.blocks = [5]
        self.attrs.warps = 1
        begins = self.global_view(begin_ptr, dtype=int32, shape=[6])
        lengths = self.global_view(length_ptr, dtype=int32, shape=[5])
        part = self.blockIdx.x
        length = begins[part + 1].item() - begins[part].item()
        self.store_global(lengths, self.register_tensor(dtype=int32, shape=[1], init=length), offsets=[part])


class Previous(tilus.Script):
    """Each part of x plus the part before it."""

    def __call__(self, n: int32, x_ptr: ~float32, y_ptr: ~float32):
        self.attrs.blocks = [n // 64]
        self.attrs.warps = 2
        start = self.blockIdx.x * 64
        gx = self.global_view(x_ptr, dtype=float32, shape=[n])
        gy = self.global_view(y_ptr, dtype=float32, shape=[n])
        x = self.load_global(gx, offsets=[start], shape=[64])
        before = self.load_global(gx, offsets=[start - 64], shape=[64])
        self.store_global(gy, x + before, offsets=[start])


class Accumulate(tilus.Script):
    """Four blocks add their rows to one sum in turn."""

    def __call__(self, x_ptr: ~float32, y_ptr: ~float32):
        self.attrs.blocks = [4]
        self.attrs.warps = 2
        block = self.blockIdx.x
        gx = self.global_view(x_ptr, dtype=float32, shape=[4, 64])
        gy = self.global_view(y_ptr, dtype=float32, shape=[64])
        turns = self.global_tensor(dtype=int32, shape=[1], requires_clean=True)
        x = self.load_global(gx, offsets=[block, 0], shape=[64], dims=[1])
        self.lock_semaphore(turns[0].item_ptr(), block)
        total = self.load_global(gy, offsets=[0], shape=[64])
        self.store_global(gy, total + x, offsets=[0])
        self.release_semaphore(turns[0].item_ptr(), (block + 1) % 4)


class AccumulateTwo(tilus.Script):
    """Four blocks add to two sums, and keep the turn of the first one until they have had that of the second."""

    def __call__(self, x_ptr: ~float32, y_ptr: ~float32, z_ptr: ~float32):
        self.attrs.blocks = [4]
        self.attrs.warps = 2
        block = self.blockIdx.x
        gx = self.global_view(x_ptr, dtype=float32, shape=[4, 64])
        gy = self.global_view(y_ptr, dtype=float32, shape=[64])
        gz = self.global_view(z_ptr, dtype=float32, shape=[64])
        turns = self.global_tensor(dtype=int32, shape=[2], requires_clean=True)
        x = self.load_global(gx, offsets=[block, 0], shape=[64], dims=[1])
        self.lock_semaphore(turns[0].item_ptr(), block)
        self.store_global(gy, self.load_global(gy, offsets=[0], shape=[64]) + x, offsets=[0])
        self.lock_semaphore(turns[1].item_ptr(), block)
        self.store_global(gz, self.load_global(gz, offsets=[0], shape=[64]) * x, offsets=[0])
        self.release_semaphore(turns[1].item_ptr(), (block + 1) % 4)
        self.release_semaphore(turns[0].item_ptr(), (block + 1) % 4)


class Relay(tilus.Script):
    """Each block adds its row to what the block before it handed on, and tells the next one."""

    def __call__(self, n: int32, x_ptr: ~float32, y_ptr: ~float32):
        self.attrs.blocks = [n]
        self.attrs.warps = 2
        block = self.blockIdx.x
        gx = self.global_view(x_ptr, dtype=float32, shape=[n, 64])
        gy = self.global_view(y_ptr, dtype=float32, shape=[n, 64])
        flags = self.global_tensor(dtype=int32, shape=[n], requires_clean=True)
        total = self.load_global(gx, offsets=[block, 0], shape=[64], dims=[1])
        if block > 0:
            self.lock_semaphore(flags[block].item_ptr(), 1)
            total += self.load_global(gy, offsets=[block - 1, 0], shape=[64], dims=[1])
            self.release_semaphore(flags[block].item_ptr(), 0)
        self.store_global(gy, total, offsets=[block, 0], dims=[1])
        if block < n - 1:
            self.release_semaphore(flags[block + 1].item_ptr(), 1)


class Strided(tilus.Script):
    """The sum of every `step`-th row of x."""

    def __call__(self, n: int32, step: int32, x_ptr: ~float32, y_ptr: ~float32):
        self.attrs.blocks = [1]
        self.attrs.warps = 2
        gx = self.global_view(x_ptr, dtype=float32, shape=[n, 64])
        gy = self.global_view(y_ptr, dtype=float32, shape=[64])
        total = self.register_tensor(dtype=float32, shape=[64], init=0.0)
        i: int32 = 0
        while i < n:
            total += self.load_global(gx, offsets=[i, 0], shape=[64], dims=[1])
            i = i + step
        self.store_global(gy, total, offsets=[0])


class Grouped(tilus.Script):
    """Every query head gets the row of its key head."""

    def __call__(self, heads: int32, k_heads: int32, x_ptr: ~float32, y_ptr: ~float32):
        self.attrs.blocks = [heads]
        self.attrs.warps = 1
        gx = self.global_view(x_ptr, dtype=float32, shape=[k_heads, 64])
        gy = self.global_view(y_ptr, dtype=float32, shape=[heads, 64])
        group = heads // k_heads
        k_head = self.blockIdx.x // group
        x = self.load_global(gx, offsets=[k_head, 0], shape=[64], dims=[1])
        self.store_global(gy, x, offsets=[self.blockIdx.x, 0], dims=[1])


class Average(tilus.Script):
    """The average of each part: its total divided by its count, 0 where nothing was counted."""

    def __call__(self, n: int32, total_ptr: ~int32, count_ptr: ~int32, y_ptr: ~int32):
        self.attrs.blocks = [n]
        self.attrs.warps = 1
        part = self.blockIdx.x
        total = self.global_view(total_ptr, dtype=int32, shape=[n])[part].item()
        count = self.global_view(count_ptr, dtype=int32, shape=[n])[part].item()
        average = total // max(count, 1)
        y = self.register_tensor(dtype=int32, shape=[1], init=average)
        self.store_global(self.global_view(y_ptr, dtype=int32, shape=[n]), y, offsets=[part])


class Bits(tilus.Script):
    """Bit `bit` of each element, and which of 32 flags each lane owns."""

    def __call__(self, bit: int32, x_ptr: ~int32, y_ptr: ~int32, flag_ptr: ~int32):
        self.attrs.blocks = [1]
        self.attrs.warps = 1
        x = self.load_global(self.global_view(x_ptr, dtype=int32, shape=[32]), offsets=[0], shape=[32])
        lanes = self.register_tensor(dtype=int32, shape=[32], init=lambda i: i)
        one = self.register_tensor(dtype=int32, shape=[32], init=1)
        self.store_global(self.global_view(y_ptr, dtype=int32, shape=[32]), (x >> bit) & 1, offsets=[0])
        self.store_global(self.global_view(flag_ptr, dtype=int32, shape=[32]), one << lanes, offsets=[0])


class Powers(tilus.Script):
    """Block i adds two to the power i."""

    def __call__(self, n: int32, x_ptr: ~int32, y_ptr: ~int32):
        self.attrs.blocks = [n]
        self.attrs.warps = 1
        gx = self.global_view(x_ptr, dtype=int32, shape=[n, 32])
        gy = self.global_view(y_ptr, dtype=int32, shape=[n, 32])
        power = 1 << self.blockIdx.x
        x = self.load_global(gx, offsets=[self.blockIdx.x, 0], shape=[32], dims=[1])
        self.store_global(gy, x + power, offsets=[self.blockIdx.x, 0], dims=[1])


class Padded(tilus.Script):
    """The sixteen rows of each block between the row above and the row below them, zeros at the ends of x."""

    def __call__(self, m: int32, x_ptr: ~float32, y_ptr: ~float32):
        self.attrs.blocks = [m // 16]
        self.attrs.warps = 4
        first = self.blockIdx.x * 16
        gx = self.global_view(x_ptr, dtype=float32, shape=[m, 64])
        gy = self.global_view(y_ptr, dtype=float32, shape=[m // 16, 18, 64])
        tile = self.shared_tensor(dtype=float32, shape=[18, 64])
        above = self.load_global(gx, offsets=[first - 1, 0], shape=[1, 64])
        rows = self.load_global(gx, offsets=[first, 0], shape=[16, 64])
        below = self.load_global(gx, offsets=[first + 16, 0], shape=[1, 64])
        self.store_shared(tile, above, offsets=[0, 0])
        self.store_shared(tile, rows, offsets=[1, 0])
        self.store_shared(tile, below, offsets=[17, 0])
        self.sync()
        self.store_global(gy, self.load_shared(tile), offsets=[self.blockIdx.x, 0, 0], dims=[1, 2])
        self.free_shared(tile)


class Collect(tilus.Script):
    """Every block leaves the squares of its row in a workspace, and the last one adds them up."""

    def __call__(self, n: int32, x_ptr: ~float32, y_ptr: ~float32):
        self.attrs.blocks = [n]
        self.attrs.warps = 2
        block = self.blockIdx.x
        gx = self.global_view(x_ptr, dtype=float32, shape=[n, 64])
        gy = self.global_view(y_ptr, dtype=float32, shape=[64])
        parts = self.global_tensor(dtype=float32, shape=[n, 64], requires_clean=False)
        done = self.global_tensor(dtype=int32, shape=[1], requires_clean=True)
        x = self.load_global(gx, offsets=[block, 0], shape=[64], dims=[1])
        self.store_global(parts, self.square(x), offsets=[block, 0], dims=[1])
        self.lock_semaphore(done[0].item_ptr(), block)
        if block < n - 1:
            self.release_semaphore(done[0].item_ptr(), block + 1)
        else:
            total = self.register_tensor(dtype=float32, shape=[64], init=0.0)
            for i in range(n):
                total += self.load_global(parts, offsets=[i, 0], shape=[64], dims=[1])
            self.store_global(gy, total, offsets=[0])
            self.release_semaphore(done[0].item_ptr(), 0)


class Search(tilus.Script):
    """The part that each position lies in, by bisection of where the parts begin."""

    def __call__(self, n: int32, count: int32, begin_ptr: ~int32, at_ptr: ~int32, y_ptr: ~int32):
        self.attrs.blocks = [count]
        self.attrs.warps = 1
        begins = self.global_view(begin_ptr, dtype=int32, shape=[n])
        at = self.global_view(at_ptr, dtype=int32, shape=[count])[self.blockIdx.x].item()
        low: int32 = 0
        high: int32 = n
        while low + 1 < high:
            middle = (low + high) // 2
            if begins[middle].item() <= at:
                low = middle
            else:
                high = middle
        part = self.register_tensor(dtype=int32, shape=[1], init=low)
        self.store_global(self.global_view(y_ptr, dtype=int32, shape=[count]), part, offsets=[self.blockIdx.x])


class Swizzled(tilus.Script):
    """A copy whose blocks take three rows of tiles together, column by column, as blocks of a matmul share operands."""

    def __call__(self, m: int32, n: int32, x_ptr: ~float32, y_ptr: ~float32):
        rows, columns = cdiv(m, 16), cdiv(n, 32)
        self.attrs.blocks = [rows * columns]
        self.attrs.warps = 1
        first = self.blockIdx.x // (columns * 3) * 3
        inside = self.blockIdx.x % (columns * 3)
        height = min(rows - first, 3)
        row, column = first + inside % height, inside // height
        gx = self.global_view(x_ptr, dtype=float32, shape=[m, n])
        gy = self.global_view(y_ptr, dtype=float32, shape=[m, n])
        x = self.load_global(gx, offsets=[row * 16, column * 32], shape=[16, 32])
        self.store_global(gy, x, offsets=[row * 16, column * 32])


class Unpack(tilus.Script):
    """Weights of four bits, eight of them in an int32."""

    def __call__(self, n: int32, packed_ptr: ~int32, y_ptr: ~int32):
        self.attrs.blocks = [cdiv(n, 32)]
        self.attrs.warps = 1
        first = self.blockIdx.x * 32
        packed = self.load_global(
            self.global_view(packed_ptr, dtype=int32, shape=[n, 1]), offsets=[first, 0], shape=[32, 1]
        )
        shifts = self.register_tensor(dtype=int32, shape=[1, 8], init=lambda i, j: j * 4)
        weights = (packed >> shifts) & 15
        self.store_global(self.global_view(y_ptr, dtype=int32, shape=[n, 8]), weights, offsets=[first, 0])


class Buckets(tilus.Script):
    """Which of `2 ** bits` buckets each key falls into: the upper bits of a product."""

    def __call__(self, bits: int32, key_ptr: ~int32, y_ptr: ~int32):
        self.attrs.blocks = [1]
        self.attrs.warps = 2
        keys = self.load_global(self.global_view(key_ptr, dtype=int32, shape=[64]), offsets=[0], shape=[64])
        mixed = keys * -1640531527
        bucket = (mixed >> (32 - bits)) & ((1 << bits) - 1)
        self.store_global(self.global_view(y_ptr, dtype=int32, shape=[64]), bucket, offsets=[0])
