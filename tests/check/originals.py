# SPDX-License-Identifier: Apache-2.0
"""The kernels that the broken ones are edits of, each with arguments as small as its mistakes allow."""

import torch

from tests.check import kernels
from tests.check.case import Original
from tests.kernels import (
    test_int8_matmul,
    test_layer_norm,
    test_rms_norm,
    test_softmax,
    test_transform,
    test_transforms,
    test_transpose,
    test_vector_add,
)
from tests.kernels.attention import scripts as attention
from tests.kernels.attention import test_paged_attention
from tests.kernels.matmul import scripts as matmul
from tests.kernels.matmul import test_matmul_epilogue, test_matmul_tf32
from tilekit import float16, float32


def product(m=64, n=64, k=96):
    """Arguments of a float16 matmul."""
    return m, n, k, torch.randn(m, k).half(), torch.randn(k, n).half(), torch.zeros(m, n).half()


def matrix(m, n):
    """Arguments of a kernel that makes an [n, m] matrix of an [m, n] one."""
    return m, n, torch.randn(m, n).half(), torch.zeros(n, m).half()


def rows(m, n):
    """Arguments of a kernel that makes an [m, n] matrix of another."""
    return m, n, torch.randn(m, n), torch.zeros(m, n)


def int8_product(m=64, n=64, k=192):
    """Arguments of an int8 matmul."""
    a, b = (torch.randint(-9, 9, shape, dtype=torch.int8) for shape in ((m, k), (n, k)))
    return m, n, k, a, b, torch.zeros(m, n, dtype=torch.int32)


def int8_linear(m=64, n=64, k=320):
    """Arguments of a quantized linear layer."""
    _, _, _, x, weight, _ = int8_product(m, n, k)
    return m, n, k, x, torch.rand(m), weight, torch.rand(n), torch.zeros(m, n).half()


def heads(q_len, k_len, causal=False):
    """Arguments of attention with one head of 32 elements."""
    q, o = torch.randn(1, q_len, 1, 32).half(), torch.zeros(1, q_len, 1, 32).half()
    k, v = torch.randn(2, 1, k_len, 1, 32).half()
    return 1, q_len, k_len, 1, 1, 32, causal, q, k, v, o


def grouped(q_len, k_len, heads, k_heads):
    """Arguments of attention whose query heads share key heads; each tensor has memory of its own."""
    q, o = torch.randn(1, q_len, heads, 32).half(), torch.zeros(1, q_len, heads, 32).half()
    k, v = (torch.randn(1, k_len, k_heads, 32).half() for _ in range(2))
    return 1, q_len, k_len, heads, k_heads, 32, False, q, k, v, o


def pages(*lengths, q_len=8):
    """Arguments of attention to sequences of these lengths, in pages of 32."""
    table, k, v = test_paged_attention.cache(lengths, 32, 1, 32, torch.float16)
    q = torch.randn(len(lengths), q_len, 4, 32).half()
    sizes = len(lengths), q_len, table.shape[1], len(k), 32, 4, 1, 32
    return *sizes, torch.tensor(lengths, dtype=torch.int32), table, q, k, v, torch.zeros_like(q)


def tokens(*lengths):
    """Arguments of attention of one new token of each sequence."""
    batch, _, *sizes, lengths, table, q, k, v, o = pages(*lengths, q_len=1)
    return batch, *sizes, lengths, table, q[:, 0], k, v, o[:, 0]


def layer(m=64, n=64, k=96):
    """Arguments of a linear layer with bias and activation."""
    x, weight, bias = torch.randn(m, k).half(), torch.randn(n, k).half(), torch.randn(n).half()
    return m, n, k, "relu", x, weight, bias, torch.zeros(m, n).half()


def vectors(n):
    """Arguments of a vector addition."""
    return n, torch.randn(n), torch.randn(n), torch.zeros(n)


def normalized(m=5, n=300):
    """Arguments of a layer norm."""
    return m, n, torch.randn(m, n), torch.randn(n), torch.randn(n), torch.zeros(m, n), 1e-5


def residual(m=5, n=600):
    """Arguments of an RMS norm."""
    layer, before = torch.randn(2, m, n)
    return m, n, 1e-6, layer, before, torch.randn(n), torch.zeros(m, n)


def averages():
    """Totals and counts, of which some are zero."""
    total, count = (torch.randint(1, 99, (7,), dtype=torch.int32) for _ in range(2))
    count[::3] = 0
    return 7, total, count, torch.zeros_like(total)


def positions():
    """Where six parts begin, and some positions in them."""
    begins, at = torch.tensor([0, 3, 9, 11, 20, 31], dtype=torch.int32), torch.randint(0, 40, (5,), dtype=torch.int32)
    return 6, 5, begins, at, torch.zeros_like(at)


SMALL = {"block_m": 64, "block_n": 64, "block_k": 32}

NAIVE = Original(matmul.naive, product)
THROUGH_SHARED = Original(matmul.through_shared, product)
TUNED = Original(matmul.tuned, product, schedule={**SMALL, "warps": 4})
ASYNCHRONOUS = Original(matmul.asynchronous, product, schedule={**SMALL, "warps": 4})
PIPELINED = Original(matmul.pipelined, lambda: product(k=192), schedule={**SMALL, "stages": 4, "warps": 4})
SPLIT_K = Original(matmul.split_k, lambda: product(k=288), schedule={**SMALL, "stages": 3, "splits": 3})
INT8_MATMUL = Original(test_int8_matmul.Int8Matmul, int8_product)
INT8_LINEAR = Original(test_int8_matmul.QuantizedLinear, int8_linear)
LINEAR = Original(test_matmul_epilogue.linear, layer, (float16,))
TF32 = Original(
    test_matmul_tf32.rounded_to_tf32,
    lambda: (64, 64, 48, torch.randn(64, 48), torch.randn(48, 64), torch.zeros(64, 64)),
    (False,),
)

FLASH = Original(attention.flash, lambda: heads(64, 192), schedule={"block_q": 64, "block_k": 64, "warps": 4})
SPLIT_FLASH = Original(attention.split_flash, lambda: heads(16, 96), schedule={"splits": 3, "block_k": 32})
PAGED = Original(attention.paged, lambda: pages(64, 64))
DECODE = Original(attention.decode, lambda: tokens(64, 64))

TRANSPOSE = Original(test_transpose.transpose, lambda: matrix(64, 128), (float16,))
EXCHANGE_HEADS = Original(
    test_transpose.exchange_heads,
    lambda: (16, 4, 32, torch.randn(16, 4, 32).half(), torch.zeros(4, 16, 32).half()),
    (float16,),
)
VIEWS = Original(
    test_transforms.Views,
    lambda: tuple(torch.randn(shape).half() for shape in ((2, 32, 64), (64, 32), (64,), (64, 64))),
)
CROSSED = Original(test_transforms.Crossed, lambda: (torch.randn(64, 64), torch.zeros(64)))
SHAPES = Original(test_transform.Shapes, lambda: (torch.randn(16, 32), torch.zeros(9, 512)))
PARTS = Original(test_transform.Parts, lambda: (3, 9, torch.randn(16, 32), torch.zeros(2, 16, 32)))
VECTOR_ADD = Original(test_vector_add.vector_add, lambda: vectors(1000), (float32,))
SOFTMAX = Original(
    test_softmax.row_softmax, lambda: rows(8, 300), (float32,), {"block_m": 4, "block_n": 256, "warps": 4}
)
LAYER_NORM = Original(test_layer_norm.layer_norm, normalized, (float32,))
RMS_NORM = Original(test_rms_norm.rms_norm, residual, (float32,), {"block_m": 2, "block_n": 512, "warps": 4})


def halves(*shapes):
    return lambda: tuple(torch.randn(shape).half() for shape in shapes)


def singles(*shapes):
    return lambda: tuple(torch.randn(shape) for shape in shapes)


STACK = Original(kernels.Stack, singles((16, 64), (16, 64), (32, 64)))
PAIR = Original(kernels.Pair, halves((32, 64), (64, 32), (32, 64)))
OVERLAID = Original(kernels.Overlaid, halves((32, 64), (64, 32), (32, 64)))
REUSE = Original(kernels.Reuse, halves((32, 64), (32, 64), (64, 32)))
REUSE_BY_COPY = Original(kernels.ReuseByCopy, halves((32, 64), (32, 64), (64, 32)))
REUSE_AS_ANOTHER_TYPE = Original(
    kernels.ReuseAsAnotherType,
    lambda: (*halves((32, 64))(), *singles((16, 64))(), *halves((64, 32))(), *singles((64, 16))()),
)
GATHER = Original(
    kernels.Gather, lambda: (7, torch.tensor([6, 0, 3, 3], dtype=torch.int32), *singles((7, 64), (4, 64))())
)
SCRATCH = Original(kernels.Scratch, singles((2, 32, 16), (2, 16, 32)))
WINDOW = Original(kernels.Window, singles((256,), (4, 64)))
LENGTHS = Original(
    kernels.Lengths,
    lambda: (torch.tensor([0, 3, 3, 8, 9, 20], dtype=torch.int32), torch.zeros(5, dtype=torch.int32)),
)
PREVIOUS = Original(kernels.Previous, lambda: (256, *singles((256,), (256,))()))
ACCUMULATE = Original(kernels.Accumulate, singles((4, 64), (64,)))
ACCUMULATE_TWO = Original(kernels.AccumulateTwo, singles((4, 64), (64,), (64,)))
RELAY = Original(kernels.Relay, lambda: (3, *singles((3, 64), (3, 64))()))
STRIDED = Original(kernels.Strided, lambda: (5, 2, *singles((5, 64), (64,))()))
GROUPED = Original(kernels.Grouped, lambda: (4, 2, *singles((2, 64), (4, 64))()))
AVERAGE = Original(kernels.Average, averages)
BITS = Original(kernels.Bits, lambda: (3, *torch.randint(0, 99, (3, 32), dtype=torch.int32)))
PADDED = Original(kernels.Padded, lambda: (48, *singles((48, 64), (3, 18, 64))()))
COLLECT = Original(kernels.Collect, lambda: (4, *singles((4, 64), (64,))()))
SEARCH = Original(kernels.Search, positions)
SWIZZLED = Original(kernels.Swizzled, lambda: (80, 64, *singles((80, 64), (80, 64))()))
UNPACK = Original(
    kernels.Unpack,
    lambda: (40, torch.randint(-(2**31), 2**31, (40, 1), dtype=torch.int32), torch.zeros(40, 8, dtype=torch.int32)),
)
BUCKETS = Original(kernels.Buckets, lambda: (4, *torch.randint(0, 99, (2, 64), dtype=torch.int32)))
POWERS = Original(kernels.Powers, lambda: (4, *torch.randint(0, 99, (2, 4, 32), dtype=torch.int32)))

ORIGINALS = {name.lower(): value for name, value in list(globals().items()) if isinstance(value, Original)}
