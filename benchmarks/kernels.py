# SPDX-License-Identifier: Apache-2.0
"""The kernels of the tests on a GPU: their error against torch in float64, and their time beside torch's.

Every peer runs in the same process in turn, so that clocks and caches are the same for all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from benchmarks import rounds
from tests.kernels.test_layer_norm import LAYER_NORM
from tests.kernels.test_rms_norm import RMS_NORM
from tests.kernels.test_softmax import SOFTMAX
from tests.kernels.test_transpose import TRANSPOSE
from tests.kernels.test_vector_add import ADD
from tilekit.runtime.benchmark import CudaTimer

Case = tuple[str, Callable[[], object], dict[str, Callable[[], object]], Callable[[], float], int]


def _relative(out: torch.Tensor, reference: torch.Tensor) -> float:
    return float((out.double() - reference).norm() / reference.norm())


def cases() -> Iterator[Case]:
    """Name, our launch, the peers' launches, the error after ours ran, and the bytes that must move."""
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        short = str(dtype).removeprefix("torch.")
        n = 1 << 26
        x, y = (torch.randn(n, device="cuda").to(dtype) for _ in range(2))
        z = torch.full_like(x, float("nan"))
        yield (
            f"vector_add {short}[{n}]",
            lambda x=x, y=y, z=z, dtype=dtype: ADD[dtype](len(x), x, y, z),
            {"torch": lambda x=x, y=y: torch.add(x, y)},
            lambda x=x, y=y, z=z: _relative(z, x.double() + y.double()),
            3 * n * dtype.itemsize,
        )
        for m, k in ((4096, 1024), (4096, 8192), (1823, 781)):
            a = torch.randn(m, k, device="cuda").to(dtype)
            out = torch.full_like(a, float("nan"))
            yield (
                f"softmax {short}[{m}, {k}]",
                lambda a=a, out=out, dtype=dtype: SOFTMAX[dtype](*a.shape, a, out),
                {"torch": lambda a=a: torch.softmax(a, dim=1)},
                lambda a=a, out=out: _relative(out, torch.softmax(a.double(), dim=1)),
                2 * m * k * dtype.itemsize,
            )
            gamma, beta = (torch.randn(k, device="cuda").to(dtype) for _ in range(2))
            normed = torch.full_like(a, float("nan"))
            yield (
                f"layer_norm {short}[{m}, {k}]",
                lambda a=a, g=gamma, b=beta, o=normed, dtype=dtype: LAYER_NORM[dtype](*a.shape, a, g, b, o, 1e-5),
                {"torch": lambda a=a, g=gamma, b=beta: torch.nn.functional.layer_norm(a, a.shape[1:], g, b)},
                lambda a=a, g=gamma, b=beta, o=normed: _relative(
                    o, torch.nn.functional.layer_norm(a.double(), a.shape[1:], g.double(), b.double())
                ),
                2 * m * k * dtype.itemsize,
            )
            # an input of zeros leaves the residual as it is, however often the kernel adds to it
            zeros, rms = torch.zeros_like(a), torch.full_like(a, float("nan"))
            yield (
                f"rms_norm {short}[{m}, {k}]",
                lambda a=a, z=zeros, g=gamma, o=rms, dtype=dtype: RMS_NORM[dtype](*a.shape, 1e-6, z, a, g, o),
                {"torch": lambda a=a, z=zeros, g=gamma: torch.nn.functional.rms_norm(a + z, a.shape[1:], g, 1e-6)},
                lambda a=a, g=gamma, o=rms: _relative(
                    o, torch.nn.functional.rms_norm(a.double(), a.shape[1:], g.double(), 1e-6)
                ),
                4 * m * k * dtype.itemsize,
            )
            if dtype in TRANSPOSE:
                turned = torch.full((k, m), float("nan"), device="cuda", dtype=dtype)
                yield (
                    f"transpose {short}[{m}, {k}]",
                    lambda a=a, o=turned, dtype=dtype: TRANSPOSE[dtype](*a.shape, a, o),
                    {"torch": lambda a=a: a.T.contiguous()},
                    lambda a=a, o=turned: _relative(o, a.T.double()),
                    2 * m * k * dtype.itemsize,
                )


def measure() -> dict[str, Any]:
    """Per case: relative error, milliseconds of ours and of each peer, and the bandwidth that ours reached."""
    found: dict[str, Any] = {}
    timer = CudaTimer(torch.cuda.current_device())
    for name, ours, peers, error, nbytes in cases():
        ours()
        torch.cuda.synchronize()
        row: dict[str, Any] = {"relative_error": error()}
        times = {peer: reading.ms for peer, reading in rounds.in_turn({"tilekit": ours, **peers}, timer).items()}
        row |= {f"{peer}_ms": round(ms, 4) for peer, ms in times.items()}
        row["tilekit_gb_s"] = round(nbytes / times["tilekit"] / 1e6, 1)
        row["time_over_torch"] = round(times["tilekit"] / times["torch"], 3)
        found[name] = row
    return found
