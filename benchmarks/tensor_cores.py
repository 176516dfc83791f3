# SPDX-License-Identifier: Apache-2.0
"""Matmuls and attention on a GPU: their error against torch in float64, and their speed beside torch's.

Each kernel runs at the first of its schedules, the one that a call gets when nobody tunes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import linear, scaled_dot_product_attention

from benchmarks import rounds
from tests.kernels import test_int8_matmul
from tests.kernels.attention import test_flash_attention, test_paged_attention
from tests.kernels.matmul import scripts, test_matmul_epilogue, test_matmul_tf32
from tilekit import bfloat16, float16
from tilekit.runtime.benchmark import CudaTimer


@dataclass(frozen=True)
class Case:
    """One kernel at one size; `error` looks at what `ours` wrote."""

    name: str
    ours: Callable[[], object]
    torchs: Callable[[], object]
    error: Callable[[], float]
    operations: float


def _relative(out: torch.Tensor, reference: torch.Tensor) -> float:
    return float((out.double() - reference.double()).norm() / reference.double().norm())


def matmuls() -> Iterator[Case]:
    six = (
        scripts.naive,
        scripts.through_shared,
        scripts.tuned,
        scripts.asynchronous,
        scripts.pipelined,
        scripts.split_k,
    )
    kernels = [(f"{make.__name__} float16", make(float16), torch.float16, False) for make in six]
    kernels += [
        ("pipelined bfloat16", scripts.pipelined(bfloat16), torch.bfloat16, False),
        ("pipelined float16, B as [n, k]", scripts.pipelined(float16, transposed=True), torch.float16, True),
        ("tf32, B as [n, k]", test_matmul_tf32.LINEAR, torch.float32, True),
    ]
    for m, n, k in ((4096, 4096, 4096), (1000, 1366, 2052)):
        for name, kernel, dtype, transposed in kernels:
            a, c = torch.randn(m, k, device="cuda").to(dtype), torch.full((m, n), torch.nan, device="cuda").to(dtype)
            b = torch.randn(*((n, k) if transposed else (k, n)), device="cuda").to(dtype)
            second = b.T if transposed else b
            yield Case(
                f"matmul {name} [{m}, {n}, {k}]",
                lambda kernel=kernel, size=(m, n, k), a=a, b=b, c=c: kernel(*size, a, b, c),
                lambda a=a, b=second: torch.matmul(a, b),
                lambda a=a, b=second, c=c: _relative(c, a.double() @ b.double()),
                2 * m * n * k,
            )
        for activation, function in test_matmul_epilogue.ACTIVATION.items():
            x, y = torch.randn(m, k, device="cuda").half(), torch.full((m, n), torch.nan, device="cuda").half()
            weight, bias = torch.randn(n, k, device="cuda").half(), torch.randn(n, device="cuda").half()
            yield Case(
                f"linear {activation} float16 [{m}, {n}, {k}]",
                lambda size=(m, n, k), f=activation, x=x, w=weight, b=bias, y=y: test_matmul_epilogue.LINEAR[
                    torch.float16
                ](*size, f, x, w, b, y),
                lambda f=function, x=x, w=weight, b=bias: f(linear(x, w, b)),
                lambda f=function, x=x, w=weight, b=bias, y=y: _relative(
                    y, f(linear(x.double(), w.double(), b.double()))
                ),
                2 * m * n * k,
            )
        a, b = (torch.randint(-128, 128, s, dtype=torch.int8, device="cuda") for s in ((m, k), (n, k)))
        # torch has no product of int8 on a GPU that takes any size
        wide_a, wide_b = a.bfloat16(), b.bfloat16()
        c = torch.empty(m, n, dtype=torch.int32, device="cuda")
        yield Case(
            f"matmul int8 [{m}, {n}, {k}]",
            lambda size=(m, n, k), a=a, b=b, c=c: test_int8_matmul.MATMUL(*size, a, b, c),
            lambda a=wide_a, b=wide_b: torch.matmul(a, b.T),
            lambda a=a, b=b, c=c: _relative(c, a.double() @ b.double().T),
            2 * m * n * k,
        )


def attentions() -> Iterator[Case]:
    for dtype in (torch.float16, torch.bfloat16):
        short = str(dtype).removeprefix("torch.")
        for batch, q_len, k_len, heads, k_heads, dim, causal in (
            (4, 2048, 2048, 16, 16, 64, False),
            (4, 2048, 2048, 16, 4, 128, True),
            (3, 333, 1777, 8, 2, 96, True),
            (2, 16, 8000, 16, 4, 128, False),
        ):
            kernels = test_flash_attention.SPLIT if q_len < 64 else test_flash_attention.FLASH
            q = torch.randn(batch, q_len, heads, dim, device="cuda").to(dtype)
            k, v = torch.randn(2, batch, k_len, k_heads, dim, device="cuda").to(dtype)
            o = torch.full_like(q, torch.nan)
            size = (batch, q_len, k_len, heads, k_heads, dim, causal)
            # pairs of a query and a key that it sees
            pairs = q_len * k_len - (q_len * (q_len - 1) // 2 if causal else 0)
            mask = torch.ones(q_len, k_len, device="cuda").tril(k_len - q_len).bool() if causal else None

            def peer(q=q, k=k, v=v, causal=causal, mask=mask):
                square = q.shape[1] == k.shape[1]
                return scaled_dot_product_attention(
                    *(x.transpose(1, 2) for x in (q, k, v)),
                    is_causal=causal and square,
                    attn_mask=None if square else mask,
                    enable_gqa=True,
                )

            yield Case(
                f"{'split' if q_len < 64 else 'flash'} attention {short} {list(size)}",
                lambda kernel=kernels[dtype], size=size, q=q, k=k, v=v, o=o: kernel(*size, q, k, v, o),
                peer,
                lambda q=q, k=k, v=v, o=o, causal=causal: _relative(o, test_flash_attention.attention(q, k, v, causal)),
                4 * batch * heads * pairs * dim,
            )


def paged_attentions() -> Iterator[Case]:
    page, heads, k_heads, dim = 64, 32, 8, 128
    lengths = torch.randint(1000, 4000, (16,)).tolist()
    for dtype in (torch.float16, torch.bfloat16):
        short = str(dtype).removeprefix("torch.")
        table, k, v = (x.cuda() for x in test_paged_attention.cache(lengths, page, k_heads, dim, dtype))
        sizes = torch.tensor(lengths, dtype=torch.int32, device="cuda")
        for name, kernels, q_len in (
            ("paged", test_paged_attention.PAGED, 128),
            ("decode", test_paged_attention.DECODE, 1),
        ):
            q = torch.randn(len(lengths), q_len, heads, dim, device="cuda").to(dtype)
            o = torch.full_like(q, torch.nan)
            middle = (q_len,) if name == "paged" else ()
            arguments = (len(lengths), *middle, table.shape[1], len(k), page, heads, k_heads, dim, sizes, table)

            def peer(q=q, k=k, v=v, table=table):
                # torch has no pages: gather them, and attend to whole rows of them
                gathered = (x[table.clamp(min=0).long()].flatten(1, 2).transpose(1, 2) for x in (k, v))
                return scaled_dot_product_attention(q.transpose(1, 2), *gathered, enable_gqa=True)

            def error(q=q, k=k, v=v, o=o, table=table):
                parts = []
                for i, length in enumerate(lengths):
                    pages = table[i, : -(-length // page)].long()
                    keys, values = (x[pages].flatten(0, 1)[None, :length] for x in (k, v))
                    parts.append(test_flash_attention.attention(q[i : i + 1], keys, values, causal=True))
                return _relative(o, torch.cat(parts))

            pairs = sum(q_len * length - q_len * (q_len - 1) // 2 for length in lengths)
            yield Case(
                f"{name} attention {short} [{len(lengths)} sequences of {sum(lengths)} tokens, {q_len} new each]",
                lambda kernel=kernels[dtype], arguments=arguments, q=q, k=k, v=v, o=o: kernel(*arguments, q, k, v, o),
                peer,
                error,
                4 * heads * pairs * dim,
            )


def measure() -> dict[str, Any]:
    """Per case: relative error, milliseconds of ours and of torch's, and how fast ours computed."""
    found: dict[str, Any] = {}
    timer = CudaTimer(torch.cuda.current_device())
    for case in (*matmuls(), *attentions(), *paged_attentions()):
        case.ours()
        torch.cuda.synchronize()
        row: dict[str, Any] = {"relative_error": case.error()}
        readings = rounds.in_turn({"tilekit": case.ours, "torch": case.torchs}, timer)
        ours, torchs = readings["tilekit"].ms, readings["torch"].ms
        row |= {"tilekit_ms": round(ours, 4), "torch_ms": round(torchs, 4)}
        row["tilekit_tflops"] = round(case.operations / ours / 1e9, 1)
        row["time_over_torch"] = round(ours / torchs, 3)
        found[case.name] = row
    return found
