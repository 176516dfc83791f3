# SPDX-License-Identifier: Apache-2.0
"""Attention kernels: the softmax over keys is taken block by block, and what came before is rescaled as it goes.

Queries are [batch, query length, heads, dim], keys and values [batch, key length, key heads, dim]. A key head serves
`heads / key heads` query heads. The last query sees the last key; with `causal`, no query sees a key after its own.
"""

import math

import tilekit as tilus
from tilekit import float16, float32, int32
from tilekit.utils import cdiv

# less than any score: where nothing is visible, minus infinity would end in 0 / 0
HIDDEN = -1e30


def flash(dtype=float16):
    @tilus.autotune("block_q, block_k, warps", [(64, 64, 4), (128, 64, 8), (64, 128, 4)])
    class FlashAttention(tilus.Script):
        """A block of queries of one head; keys and values come in turn, each while the other one is multiplied."""

        def __init__(self, block_q: int, block_k: int, warps: int):
            super().__init__()
            self.block_q = block_q
            self.block_k = block_k
            self.warps = warps

        def __call__(
            self,
            batch: int32,
            q_len: int32,
            k_len: int32,
            heads: int,
            k_heads: int,
            dim: int,
            causal: bool,
            q_ptr: ~dtype,
            k_ptr: ~dtype,
            v_ptr: ~dtype,
            o_ptr: ~dtype,
        ):
            self.attrs.blocks = [cdiv(q_len, self.block_q), heads, batch]
            self.attrs.warps = self.warps
            # tensor cores take whole tiles; the columns behind `dim` are zero
            width = max(32, 1 << (dim - 1).bit_length())
            block, head, item = self.blockIdx
            k_head = head // (heads // k_heads)
            first = block * self.block_q
            gq = self.global_view(q_ptr, dtype=dtype, shape=[batch, q_len, heads, dim])
            gk = self.global_view(k_ptr, dtype=dtype, shape=[batch, k_len, k_heads, dim])
            gv = self.global_view(v_ptr, dtype=dtype, shape=[batch, k_len, k_heads, dim])
            go = self.global_view(o_ptr, dtype=dtype, shape=[batch, q_len, heads, dim])
            sk = self.shared_tensor(dtype=dtype, shape=[self.block_k, width])
            sv = self.shared_tensor(dtype=dtype, shape=[self.block_k, width])

            sq = self.shared_tensor(dtype=dtype, shape=[self.block_q, width])
            self.copy_async(gq, sq, offsets=[item, first, head, 0], dims=[1, 3])
            self.copy_async(gk, sk, offsets=[item, 0, k_head, 0], dims=[1, 3])
            self.copy_async_wait_all()
            self.sync()
            q = self.load_shared(sq)
            self.free_shared(sq)

            # each warp has whole rows of scores, so that a row's maximum and sum stay within it
            scores = self.cuda.resolve_dot_config(
                dtype, float32, m=self.block_q, n=self.block_k, k=width, warp_m=self.warps, warp_n=1
            )
            output = self.cuda.resolve_dot_config(
                dtype, float32, m=self.block_q, n=width, k=self.block_k, warp_m=self.warps, warp_n=1
            )
            acc = self.register_tensor(dtype=float32, shape=[self.block_q, width], init=0.0)
            self.annotate_layout(acc, output.lc)
            largest = self.register_tensor(dtype=float32, shape=[self.block_q, 1], init=HIDDEN)
            total = self.register_tensor(dtype=float32, shape=[self.block_q, 1], init=0.0)
            rows = self.register_tensor(dtype=int32, shape=[self.block_q, 1], init=lambda i, j: i)
            columns = self.register_tensor(dtype=int32, shape=[1, self.block_k], init=lambda i, j: j)
            # the key that the first query of this block sees last, if it may not look ahead
            diagonal = first + k_len - q_len

            for start in range(0, min(k_len, diagonal + self.block_q) if causal else k_len, self.block_k):
                self.copy_async_wait_all()
                self.sync()
                self.copy_async(gv, sv, offsets=[item, start, k_head, 0], dims=[1, 3])
                score = self.dot(q, self.load_shared(sk.transpose()), acc_dtype=float32)
                self.annotate_layout(score, scores.lc)
                score = score * (math.log2(math.e) / math.sqrt(dim))
                # a key behind the last one is also behind the diagonal
                if causal:
                    score = self.where(columns <= rows + (diagonal - start), score, HIDDEN)
                else:
                    score = self.where(columns < k_len - start, score, HIDDEN)

                before = largest
                largest = self.maximum(before, self.max(score, dim=1, keepdim=True))
                fade = self.exp2(before - largest)
                p = self.exp2(score - largest)
                total = total * fade + self.sum(p, dim=1, keepdim=True)

                self.copy_async_wait_all()
                self.sync()
                self.copy_async(gk, sk, offsets=[item, start + self.block_k, k_head, 0], dims=[1, 3])
                acc = self.dot(p.to(dtype), self.load_shared(sv), acc * fade)
            self.copy_async_wait_all()
            self.free_shared(sk)
            self.free_shared(sv)
            self.store_global(go, (acc / total).to(dtype), offsets=[item, first, head, 0], dims=[1, 3])

    return FlashAttention()


def flash_in_two_loops(dtype=float16):
    @tilus.autotune("block_q, block_k, warps", [(64, 64, 4), (128, 64, 4), (128, 64, 8), (128, 32, 4), (64, 32, 4)])
    class TwoLoopFlashAttention(tilus.Script):
        """Flash attention that asks only where it must which keys a query sees: keys that all of them see come first.

        Two stages of keys and values, one barrier for each block of them. The blocks with most to do start first.
        """

        def __init__(self, block_q: int, block_k: int, warps: int):
            super().__init__()
            self.block_q = block_q
            self.block_k = block_k
            self.warps = warps
            # more rows of a warp share what it loads of keys and values; then there are no registers for the queries
            self.keeps_q = block_q // warps == 16

        def attend(
            self,
            q: tilus.RegisterTensor,
            k: tilus.SharedTensor,
            v: tilus.SharedTensor,
            acc: tilus.RegisterTensor,
            largest: tilus.RegisterTensor,
            total: tilus.RegisterTensor,
            start: int32,
            diagonal: int32,
            k_len: int32,
            causal: bool,
            masked: bool,
            dim: int,
        ):
            """Output, maximum and sum of weights with one block of keys more; scores are scaled where they are used."""
            layouts = self.cuda.resolve_dot_config(
                dtype, float32, m=self.block_q, n=self.block_k, k=q.shape[1], warp_m=self.warps, warp_n=1
            )
            scale = math.log2(math.e) / math.sqrt(dim)
            score = self.dot(q, self.load_shared(k.transpose()), acc_dtype=float32)
            # each warp has whole rows of scores, so that a row's maximum and sum stay within it
            self.annotate_layout(score, layouts.lc)
            if masked:
                rows = self.register_tensor(dtype=int32, shape=[self.block_q, 1], init=lambda i, j: i)
                columns = self.register_tensor(dtype=int32, shape=[1, self.block_k], init=lambda i, j: j)
                # a key behind the last one is also behind the diagonal
                if causal:
                    score = self.where(columns <= rows + (diagonal - start), score, HIDDEN)
                else:
                    score = self.where(columns < k_len - start, score, HIDDEN)
            highest = self.maximum(largest, self.max(score, dim=1, keepdim=True))
            fade = self.exp2((largest - highest) * scale)
            p = self.exp2(score * scale - highest * scale)
            total = total * fade + self.sum(p, dim=1, keepdim=True)
            acc = self.dot(p.to(dtype), self.load_shared(v), acc * fade)
            return acc, highest, total

        def __call__(
            self,
            batch: int32,
            q_len: int32,
            k_len: int32,
            heads: int,
            k_heads: int,
            dim: int,
            causal: bool,
            q_ptr: ~dtype,
            k_ptr: ~dtype,
            v_ptr: ~dtype,
            o_ptr: ~dtype,
        ):
            blocks = cdiv(q_len, self.block_q)
            self.attrs.blocks = [heads, blocks, batch]
            self.attrs.warps = self.warps
            # tensor cores take whole tiles; the columns behind `dim` are zero
            width = max(32, 1 << (dim - 1).bit_length())
            head, turn, item = self.blockIdx
            k_head = head // (heads // k_heads)
            # late queries see most keys
            first = (blocks - 1 - turn if causal else turn) * self.block_q
            gq = self.global_view(q_ptr, dtype=dtype, shape=[batch, q_len, heads, dim])
            gk = self.global_view(k_ptr, dtype=dtype, shape=[batch, k_len, k_heads, dim])
            gv = self.global_view(v_ptr, dtype=dtype, shape=[batch, k_len, k_heads, dim])
            go = self.global_view(o_ptr, dtype=dtype, shape=[batch, q_len, heads, dim])
            sk = self.shared_tensor(dtype=dtype, shape=[2, self.block_k, width])
            sv = self.shared_tensor(dtype=dtype, shape=[2, self.block_k, width])
            sq = self.shared_tensor(dtype=dtype, shape=[self.block_q, width])
            self.copy_async(gq, sq, offsets=[item, first, head, 0], dims=[1, 3])
            self.copy_async(gk, sk[0], offsets=[item, 0, k_head, 0], dims=[1, 3])
            self.copy_async(gv, sv[0], offsets=[item, 0, k_head, 0], dims=[1, 3])
            if self.keeps_q:
                self.copy_async_wait_all()
                self.sync()
                q = self.load_shared(sq)

            output = self.cuda.resolve_dot_config(
                dtype, float32, m=self.block_q, n=width, k=self.block_k, warp_m=self.warps, warp_n=1
            )
            acc = self.register_tensor(dtype=float32, shape=[self.block_q, width], init=0.0)
            self.annotate_layout(acc, output.lc)
            largest = self.register_tensor(dtype=float32, shape=[self.block_q, 1], init=HIDDEN)
            total = self.register_tensor(dtype=float32, shape=[self.block_q, 1], init=0.0)
            # the key that the first query of this block sees last, if it may not look ahead
            diagonal = first + k_len - q_len
            seen_by_all = (max(diagonal + 1, 0) if causal else k_len) // self.block_k * self.block_k
            stage: int32 = 0
            last = min(k_len, diagonal + self.block_q) if causal else k_len
            for begin, end, masked in ((0, seen_by_all, False), (seen_by_all, last, True)):
                for start in range(begin, end, self.block_k):
                    self.copy_async_wait_all()
                    self.sync()
                    later = start + self.block_k
                    self.copy_async(gk, sk[1 - stage], offsets=[item, later, k_head, 0], dims=[1, 3])
                    self.copy_async(gv, sv[1 - stage], offsets=[item, later, k_head, 0], dims=[1, 3])
                    if not self.keeps_q:
                        q = self.load_shared(sq)
                    acc, largest, total = self.attend(
                        q, sk[stage], sv[stage], acc, largest, total, start, diagonal, k_len, causal, masked, dim
                    )
                    stage = 1 - stage
            self.copy_async_wait_all()
            self.free_shared(sq)
            self.free_shared(sk)
            self.free_shared(sv)
            self.store_global(go, (acc * (1.0 / total)).to(dtype), offsets=[item, first, head, 0], dims=[1, 3])

    return TwoLoopFlashAttention()


def split_flash(dtype=float16):
    @tilus.autotune("splits", [3, 8])
    @tilus.autotune("block_k", [32, 64])
    class SplitFlashAttention(tilus.Script):
        """Few queries, many keys: blocks share the keys of one head, and put their parts together in turn."""

        def __init__(self, splits: int, block_k: int):
            super().__init__()
            self.splits = splits
            self.block_q = 16
            self.block_k = block_k
            self.warps = 1

        def attend(
            self,
            q: tilus.RegisterTensor,
            gk: tilus.GlobalTensor,
            gv: tilus.GlobalTensor,
            item: int32,
            k_head: int32,
            begin: int32,
            end: int32,
            diagonal: int32,
            causal: bool,
            dim: int,
        ):
            """Output, maximum and sum of weights of the keys from `begin` to `end`."""
            width = q.shape[1]
            sk = self.shared_tensor(dtype=dtype, shape=[2, self.block_k, width])
            sv = self.shared_tensor(dtype=dtype, shape=[2, self.block_k, width])
            self.copy_async(gk, sk[0], offsets=[item, begin, k_head, 0], dims=[1, 3])
            self.copy_async(gv, sv[0], offsets=[item, begin, k_head, 0], dims=[1, 3])
            acc = self.register_tensor(dtype=float32, shape=[self.block_q, width], init=0.0)
            largest = self.register_tensor(dtype=float32, shape=[self.block_q, 1], init=HIDDEN)
            total = self.register_tensor(dtype=float32, shape=[self.block_q, 1], init=0.0)
            rows = self.register_tensor(dtype=int32, shape=[self.block_q, 1], init=lambda i, j: i)
            columns = self.register_tensor(dtype=int32, shape=[1, self.block_k], init=lambda i, j: j)
            stage: int32 = 0
            for start in range(begin, end, self.block_k):
                self.copy_async_wait_all()
                self.sync()
                later = start + self.block_k
                self.copy_async(gk, sk[1 - stage], offsets=[item, later, k_head, 0], dims=[1, 3])
                self.copy_async(gv, sv[1 - stage], offsets=[item, later, k_head, 0], dims=[1, 3])
                score = self.dot(q, self.load_shared(sk[stage].transpose()), acc_dtype=float32)
                score = score * (math.log2(math.e) / math.sqrt(dim))
                # a key behind the last one is also behind the diagonal
                if causal:
                    score = self.where(columns <= rows + (diagonal - start), score, HIDDEN)
                else:
                    score = self.where(columns < end - start, score, HIDDEN)
                before = largest
                largest = self.maximum(before, self.max(score, dim=1, keepdim=True))
                fade = self.exp2(before - largest)
                p = self.exp2(score - largest)
                total = total * fade + self.sum(p, dim=1, keepdim=True)
                acc = self.dot(p.to(dtype), self.load_shared(sv[stage]), acc * fade)
                stage = 1 - stage
            self.copy_async_wait_all()
            self.free_shared(sk)
            self.free_shared(sv)
            return acc, largest, total

        def __call__(
            self,
            batch: int32,
            q_len: int32,
            k_len: int32,
            heads: int,
            k_heads: int,
            dim: int,
            causal: bool,
            q_ptr: ~dtype,
            k_ptr: ~dtype,
            v_ptr: ~dtype,
            o_ptr: ~dtype,
        ):
            blocks = cdiv(q_len, self.block_q)
            self.attrs.blocks = [blocks, heads, batch * self.splits]
            self.attrs.warps = self.warps
            width = max(32, 1 << (dim - 1).bit_length())
            block, head, z = self.blockIdx
            item, split = z // self.splits, z % self.splits
            first = block * self.block_q
            gq = self.global_view(q_ptr, dtype=dtype, shape=[batch, q_len, heads, dim])
            gk = self.global_view(k_ptr, dtype=dtype, shape=[batch, k_len, k_heads, dim])
            gv = self.global_view(v_ptr, dtype=dtype, shape=[batch, k_len, k_heads, dim])
            go = self.global_view(o_ptr, dtype=dtype, shape=[batch, q_len, heads, dim])
            q = self.load_global(gq, offsets=[item, first, head, 0], shape=[self.block_q, width], dims=[1, 3])

            share = cdiv(cdiv(k_len, self.block_k), self.splits) * self.block_k
            begin = split * share
            end = min(begin + share, k_len)
            k_head = head // (heads // k_heads)
            diagonal = first + k_len - q_len
            acc, largest, total = self.attend(q, gk, gv, item, k_head, begin, end, diagonal, causal, dim)

            tasks = batch * heads * blocks
            task = (item * heads + head) * blocks + block
            turns = self.global_tensor(dtype=int32, shape=[tasks], requires_clean=True)
            g_acc = self.global_tensor(dtype=float32, shape=[tasks, self.block_q, width], requires_clean=False)
            g_largest = self.global_tensor(dtype=float32, shape=[tasks, self.block_q, 1], requires_clean=False)
            g_total = self.global_tensor(dtype=float32, shape=[tasks, self.block_q, 1], requires_clean=False)
            turn = turns[task].item_ptr()
            self.lock_semaphore(turn, split)
            if split > 0:
                acc0 = self.load_global(g_acc, offsets=[task, 0, 0], shape=[self.block_q, width], dims=[1, 2])
                largest0 = self.load_global(g_largest, offsets=[task, 0, 0], shape=[self.block_q, 1], dims=[1, 2])
                total0 = self.load_global(g_total, offsets=[task, 0, 0], shape=[self.block_q, 1], dims=[1, 2])
                both = self.maximum(largest0, largest)
                fade0, fade = self.exp2(largest0 - both), self.exp2(largest - both)
                acc = acc0 * fade0 + acc * fade
                total = total0 * fade0 + total * fade
                largest = both
            if split == self.splits - 1:
                self.store_global(go, (acc / total).to(dtype), offsets=[item, first, head, 0], dims=[1, 3])
                self.release_semaphore(turn, 0)
                return
            # several threads hold one row's maximum and sum: all have read them before one of them writes
            self.sync()
            self.store_global(g_acc, acc, offsets=[task, 0, 0], dims=[1, 2])
            self.store_global(g_largest, largest, offsets=[task, 0, 0], dims=[1, 2])
            self.store_global(g_total, total, offsets=[task, 0, 0], dims=[1, 2])
            self.release_semaphore(turn, split + 1)

    return SplitFlashAttention()


def paged(dtype=float16):
    class PagedAttention(tilus.Script):
        """The last `q_len` tokens of each sequence look at all that came before, in pages of a cache.

        Caches are [pages, page size, key heads, dim]; row i of the table names the pages of sequence i, in order. The
        queries of a block are all heads of one key head at several positions, so that a page is read once for them.
        """

        def __init__(self):
            super().__init__()
            self.block = 32
            self.warps = 2

        def fetch(
            self, cache: tilus.GlobalTensor, page: tilus.SharedTensor, number: int32, k_head: int32, is_wider: bool
        ):
            """Copy a page that is read once; only columns behind the last one of a head can be out of bounds."""
            self.copy_async(
                cache,
                page,
                offsets=[number, 0, k_head, 0],
                dims=[1, 3],
                evict="evict_first",
                check_bounds=is_wider,
            )

        def __call__(
            self,
            batch: int32,
            q_len: int32,
            max_pages: int32,
            num_pages: int32,
            page: int,
            heads: int,
            k_heads: int,
            dim: int,
            length_ptr: ~int32,
            table_ptr: ~int32,
            q_ptr: ~dtype,
            k_ptr: ~dtype,
            v_ptr: ~dtype,
            o_ptr: ~dtype,
        ):
            group = heads // k_heads
            self.static_assert(page % 16 == 0, "a page is a tile of keys: it needs a multiple of 16 of them")
            self.static_assert(self.block % group == 0, "the heads of a key head have to divide 32")
            positions = self.block // group
            self.attrs.blocks = [cdiv(q_len, positions), k_heads, batch]
            self.attrs.warps = self.warps
            width = max(32, 1 << (dim - 1).bit_length())
            block, k_head, item = self.blockIdx
            first, head = block * positions, k_head * group
            gq = self.global_view(q_ptr, dtype=dtype, shape=[batch, q_len, heads, dim])
            go = self.global_view(o_ptr, dtype=dtype, shape=[batch, q_len, heads, dim])
            gk = self.global_view(k_ptr, dtype=dtype, shape=[num_pages, page, k_heads, dim])
            gv = self.global_view(v_ptr, dtype=dtype, shape=[num_pages, page, k_heads, dim])
            table = self.global_view(table_ptr, dtype=int32, shape=[batch, max_pages])
            length = self.global_view(length_ptr, dtype=int32, shape=[batch])[item].item()
            sk = self.shared_tensor(dtype=dtype, shape=[2, page, width])
            sv = self.shared_tensor(dtype=dtype, shape=[2, page, width])

            number = table[item, 0].item()
            self.fetch(gk, sk[0], number, k_head, width > dim)
            self.fetch(gv, sv[0], number, k_head, width > dim)
            q = self.load_global(gq, offsets=[item, first, head, 0], shape=[positions, group, width], dims=[1, 2, 3])
            q = self.reshape(q, [self.block, width])

            scores = self.cuda.resolve_dot_config(
                dtype, float32, m=self.block, n=page, k=width, warp_m=self.warps, warp_n=1
            )
            acc = self.register_tensor(dtype=float32, shape=[self.block, width], init=0.0)
            largest = self.register_tensor(dtype=float32, shape=[self.block, 1], init=HIDDEN)
            total = self.register_tensor(dtype=float32, shape=[self.block, 1], init=0.0)
            rows = self.register_tensor(dtype=int32, shape=[self.block, 1], init=lambda i, j: i // group)
            columns = self.register_tensor(dtype=int32, shape=[1, page], init=lambda i, j: j)
            # the key that the first query of this block sees last
            diagonal = length - q_len + first
            pages = cdiv(min(length, diagonal + positions), page)

            stage: int32 = 0
            for i in range(pages):
                self.copy_async_wait_all()
                self.sync()
                if i + 1 < pages:
                    following = table[item, i + 1].item()
                    self.fetch(gk, sk[1 - stage], following, k_head, width > dim)
                    self.fetch(gv, sv[1 - stage], following, k_head, width > dim)
                score = self.dot(q, self.load_shared(sk[stage].transpose()), acc_dtype=float32)
                self.annotate_layout(score, scores.lc)
                score = score * (math.log2(math.e) / math.sqrt(dim))
                score = self.where(columns <= rows + (diagonal - i * page), score, HIDDEN)
                before = largest
                largest = self.maximum(before, self.max(score, dim=1, keepdim=True))
                fade = self.exp2(before - largest)
                p = self.exp2(score - largest)
                total = total * fade + self.sum(p, dim=1, keepdim=True)
                acc = self.dot(p.to(dtype), self.load_shared(sv[stage]), acc * fade)
                stage = 1 - stage
            self.free_shared(sk)
            self.free_shared(sv)
            o = self.reshape((acc / total).to(dtype), [positions, group, width])
            self.store_global(go, o, offsets=[item, first, head, 0], dims=[1, 2, 3])

    return PagedAttention()


def decode(dtype=float16):
    class DecodeAttention(tilus.Script):
        """One new token of each sequence looks at the pages of its cache: a block for each of its heads.

        A single query gives tensor cores nothing to do; products are taken elementwise and summed.
        """

        def __init__(self):
            super().__init__()
            self.warps = 4

        def __call__(
            self,
            batch: int32,
            max_pages: int32,
            num_pages: int32,
            page: int,
            heads: int,
            k_heads: int,
            dim: int,
            length_ptr: ~int32,
            table_ptr: ~int32,
            q_ptr: ~dtype,
            k_ptr: ~dtype,
            v_ptr: ~dtype,
            o_ptr: ~dtype,
        ):
            self.attrs.blocks = [heads, batch]
            self.attrs.warps = self.warps
            width = 1 << (dim - 1).bit_length()
            head, item = self.blockIdx.x, self.blockIdx.y
            k_head = head // (heads // k_heads)
            gq = self.global_view(q_ptr, dtype=dtype, shape=[batch, heads, dim])
            go = self.global_view(o_ptr, dtype=dtype, shape=[batch, heads, dim])
            gk = self.global_view(k_ptr, dtype=dtype, shape=[num_pages, page, k_heads, dim])
            gv = self.global_view(v_ptr, dtype=dtype, shape=[num_pages, page, k_heads, dim])
            table = self.global_view(table_ptr, dtype=int32, shape=[batch, max_pages])
            length = self.global_view(length_ptr, dtype=int32, shape=[batch])[item].item()

            q = self.load_global(gq, offsets=[item, head, 0], shape=[width], dims=[2]).to(float32)
            q = (q * (math.log2(math.e) / math.sqrt(dim))).unsqueeze(0)
            acc = self.register_tensor(dtype=float32, shape=[1, width], init=0.0)
            largest = self.register_tensor(dtype=float32, shape=[1, 1], init=HIDDEN)
            total = self.register_tensor(dtype=float32, shape=[1, 1], init=0.0)
            tokens = self.register_tensor(dtype=int32, shape=[page, 1], init=lambda i, j: i)
            for i in range(cdiv(length, page)):
                number = table[item, i].item()
                k = self.load_global(gk, offsets=[number, 0, k_head, 0], shape=[page, width], dims=[1, 3])
                v = self.load_global(gv, offsets=[number, 0, k_head, 0], shape=[page, width], dims=[1, 3])
                score = self.sum(q * k.to(float32), dim=1, keepdim=True)
                score = self.where(tokens < length - i * page, score, HIDDEN)
                before = largest
                largest = self.maximum(before, self.max(score, dim=0, keepdim=True))
                fade = self.exp2(before - largest)
                p = self.exp2(score - largest)
                total = total * fade + self.sum(p, dim=0, keepdim=True)
                acc = acc * fade + self.sum(p * v.to(float32), dim=0, keepdim=True)
            o = (acc / total).squeeze(0)
            self.store_global(go, o.to(dtype), offsets=[item, head, 0], dims=[2])

    return DecodeAttention()
