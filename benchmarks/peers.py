# SPDX-License-Identifier: Apache-2.0
"""Our kernels beside torch's, Triton's and tilus's: `python -m benchmarks peers [--only GROUP,GROUP] [--seconds N]`.

Each group of cases has a process of its own, all of its candidates in that one. A process that dies or stands still
costs the candidate that was running; the next one goes on behind it. Results are written after each group.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks import contest, report
from benchmarks.contest import Candidate, Case, Plan, State, Wanted
from tilekit.runtime.benchmark import CudaTimer, Launch, Timer

# a group's share of the seconds
GROUPS = {"matmul": 0.36, "attention": 0.26, "softmax": 0.13, "layer_norm": 0.13, "vector_add": 0.12}
SECONDS = 480.0
# after its time is up a process may finish what it measures
GRACE = 45.0
RESTARTS = 6
F16 = 5e-4


# ----------------------------------------------------------------------------------------------------------- candidates


def _label(schedule: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in schedule.items())


def _ours(name: str, handle: Any, args: Sequence[Any], schedules: Sequence[Mapping[str, Any]] | None = None):
    """A candidate for each schedule of one of our kernels."""
    from tests.kernels.machines import scheduled

    for schedule in handle.schedules if schedules is None else schedules:

        def build(schedule: Mapping[str, Any] = schedule) -> Launch:
            kernel = scheduled(handle, schedule) if schedule else handle
            return lambda: kernel(*args)

        yield Candidate("tilekit", f"{name} {_label(schedule)}".strip(), build)


def _theirs(peer: str, make: str, configs: str, *args: Any) -> Iterator[Candidate]:
    """A candidate for each configuration that the file of a peer's kernels names.

    `make(*args, config)` of that file gives what launches it. Where the peer is not installed one candidate says so.
    """
    try:
        module = importlib.import_module(f"benchmarks.{peer}_kernels")
    except Exception as error:
        why = contest.describe(error)

        def missing() -> Launch:
            raise RuntimeError(f"{peer} cannot be imported: {why}")

        yield Candidate(peer, "", missing)
        return
    for config in getattr(module, configs):
        yield Candidate(peer, str(config), lambda config=config: getattr(module, make)(*args, config))


def _relative(out: Any, reference: Any) -> float:
    return float((out.double() - reference.double()).norm() / reference.double().norm())


def _judge(out: Any, reference: Callable[[], Any]) -> Callable[[object], float]:
    """The relative error of what a launch returned, or else of the output; the reference is computed once."""
    import torch

    known: list[Any] = []

    def error(result: object) -> float:
        if not known:
            known.append(reference())
        return _relative(result if isinstance(result, torch.Tensor) else out, known[0])

    return error


# ---------------------------------------------------------------------------------------------------------------- cases


def _matmul(m: int, n: int, k: int, follows: str | None, wanted: Wanted | None) -> Case:
    import torch

    from tests.kernels.matmul import scripts

    a, b = torch.randn(m, k, device="cuda").half(), torch.randn(k, n, device="cuda").half()
    c = torch.empty(m, n, dtype=torch.float16, device="cuda")
    args = (m, n, k, a, b, c)
    steps = (scripts.naive, scripts.through_shared, scripts.tuned, scripts.asynchronous, scripts.split_k)
    pipelined = scripts.pipelined()
    wide = [s for s in pipelined.schedules if s["block_n"] >= 128 and s["stages"] == 4]
    return Case(
        (
            Candidate("torch", "", lambda: lambda: torch.matmul(a, b, out=c)),
            *_theirs("triton", "matmul", "MATMUL", a, b, c),
            *_ours("overlapped", scripts.overlapped(), args),
            *_theirs("tilus", "matmul", "MATMUL", args),
            *_ours("pipelined", pipelined, args, wide),
            *(candidate for step in steps for candidate in list(_ours(step.__name__, step(), args))[:1]),
        ),
        lambda: c.fill_(float("nan")),
        _judge(c, lambda: a.float() @ b.float()),
        F16,
        2.0 * m * n * k,
        "TFLOP/s",
        wanted,
        follows,
    )


def matmul() -> list[Plan]:
    first = "matmul f16 4096 x 4096 x 4096"
    return [
        Plan(first, lambda: _matmul(4096, 4096, 4096, None, Wanted(rate=483.0)), weight=4),
        Plan("matmul f16 8192 x 8192 x 8192", lambda: _matmul(8192, 8192, 8192, first, None)),
        Plan("matmul f16 4096 x 4096 x 14336", lambda: _matmul(4096, 4096, 14336, first, None)),
    ]


def _attention(length: int, follows: str | None, wanted: Wanted | None) -> Case:
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    from tests.kernels.attention import scripts

    heads, k_heads, dim = 32, 8, 128
    q = torch.randn(1, length, heads, dim, device="cuda").half()
    k, v = (torch.randn(1, length, k_heads, dim, device="cuda").half() for _ in range(2))
    o = torch.empty_like(q)
    args = (1, length, length, heads, k_heads, dim, True, q, k, v, o)

    def torchs(backend: str) -> Launch:
        from torch.nn.attention import SDPBackend, sdpa_kernel

        q_t, k_t, v_t = (x.transpose(1, 2) for x in (q, k, v))

        def launch() -> Any:
            with sdpa_kernel(getattr(SDPBackend, backend)):
                found = scaled_dot_product_attention(q_t, k_t, v_t, is_causal=True, enable_gqa=True)
            return found.transpose(1, 2)

        return launch

    def reference() -> Any:
        rows: list[Any] = []
        for head in range(heads):
            one, keys, values = (x[0, :, i].float() for x, i in ((q, head), (k, head // 4), (v, head // 4)))
            score = one @ keys.T / dim**0.5
            score.masked_fill_(torch.ones_like(score, dtype=torch.bool).triu(1), float("-inf"))
            rows.append(score.softmax(dim=-1) @ values)
        return torch.stack(rows, dim=1)[None]

    return Case(
        (
            Candidate("torch", "cudnn", lambda: torchs("CUDNN_ATTENTION")),
            Candidate("torch flash", "", lambda: torchs("FLASH_ATTENTION")),
            *_theirs("triton", "attention", "ATTENTION", q, k, v, o),
            *_ours("two loops", scripts.flash_in_two_loops(), args),
            *_theirs("tilus", "attention", "ATTENTION", (1, length, heads, k_heads, dim, q, k, v, o)),
            *_ours("flash", scripts.flash(), args),
        ),
        lambda: o.fill_(float("nan")),
        _judge(o, reference),
        1e-3,
        2.0 * heads * length * length * dim,
        "TFLOP/s",
        wanted,
        follows,
    )


def attention() -> list[Plan]:
    first = "attention f16 causal, 4096, heads 32 / 8, dim 128"
    return [
        Plan(first, lambda: _attention(4096, None, Wanted(rate=245.0)), weight=3),
        Plan("attention f16 causal, 8192, heads 32 / 8, dim 128", lambda: _attention(8192, first, None)),
    ]


def _rows(kind: str, dtype: str, m: int, n: int, wanted: Wanted | None) -> Case:
    """Softmax or layer norm of the rows of a matrix."""
    import torch
    from torch.nn.functional import layer_norm

    from tests.kernels import test_layer_norm, test_softmax

    type_: torch.dtype = getattr(torch, dtype)
    x = torch.randn(m, n, device="cuda").to(type_)
    gamma, beta = (torch.randn(n, device="cuda").to(type_) for _ in range(2))
    y = torch.empty_like(x)
    half = dtype == "float16"
    if kind == "softmax":
        args: tuple[Any, ...] = (m, n, x, y)
        handles = (("registers", test_softmax.REGISTER_SOFTMAX), ("loop", test_softmax.SOFTMAX))
        peer: Launch = lambda: torch.softmax(x, dim=1)  # noqa: E731
        tritons = _theirs("triton", "softmax", "ROW_WARPS", x, y)
        theirs = _theirs("tilus", "softmax", "ROW_WARPS", args)
        reference: Callable[[], Any] = lambda: torch.softmax(x.double(), dim=1)  # noqa: E731
    else:
        args = (m, n, x, gamma, beta, y, 1e-5)
        handles = (("registers", test_layer_norm.REGISTER_LAYER_NORM), ("loop", test_layer_norm.LAYER_NORM))
        peer = lambda: layer_norm(x, [n], gamma, beta)  # noqa: E731
        tritons = _theirs("triton", "layer_norm", "ROW_WARPS", x, gamma, beta, y, 1e-5)
        theirs = _theirs("tilus", "layer_norm", "ROW_WARPS", args[:-1])
        reference = lambda: layer_norm(x.double(), [n], gamma.double(), beta.double())  # noqa: E731
    return Case(
        (
            Candidate("torch", "", lambda: peer),
            *tritons,
            *(candidate for name, handle in handles for candidate in _ours(name, handle[type_], args)),
            # eight seconds a schedule: once is enough
            *(theirs if (dtype, m, n) == ("float16", 8192, 8192) else ()),
        ),
        lambda: y.fill_(float("nan")),
        _judge(y, reference),
        F16 if half else 1e-5,
        2.0 * x.numel() * x.element_size(),
        "GB/s",
        wanted,
    )


def softmax() -> list[Plan]:
    return _row_plans("softmax")


def layer_norm() -> list[Plan]:
    return _row_plans("layer_norm")


def _row_plans(kind: str) -> list[Plan]:
    sizes = (("float16", 8192, 8192), ("float16", 4096, 4096), ("float32", 4096, 8192), ("float16", 16384, 1024))
    wanted = Wanted(peer="triton")
    return [
        Plan(
            f"{kind} {dtype} {m} x {n}",
            lambda size=(dtype, m, n): _rows(kind, *size, wanted),
            weight=2 if m == n else 1,
        )
        for dtype, m, n in sizes
    ]


def _vector_add(dtype: str, n: int) -> Case:
    import torch

    from tests.kernels.test_vector_add import DTYPES, vector_add

    type_: torch.dtype = getattr(torch, dtype)
    x, y = (torch.randn(n, device="cuda").to(type_) for _ in range(2))
    z = torch.empty_like(x)
    args = (n, x, y, z)
    vector = 16 // x.element_size()
    blocks = [(32 * warps * vector * vectors, warps) for warps, vectors in product((4, 8), (1, 2, 4))]
    return Case(
        (
            Candidate("torch", "", lambda: lambda: torch.add(x, y, out=z)),
            *_theirs("triton", "add", "ADD", x, y, z),
            *(
                Candidate(
                    "tilekit",
                    f"block={block} warps={warps}",
                    lambda block=block, warps=warps: _bound(vector_add(DTYPES[type_], block, warps), args),
                )
                for block, warps in blocks
            ),
            *(_theirs("tilus", "vector_add", "VECTOR_ADD", args) if (dtype, n) == ("float16", 1 << 28) else ()),
        ),
        lambda: z.fill_(float("nan")),
        _judge(z, lambda: x.double() + y.double()),
        F16 if dtype == "float16" else 1e-6,
        3.0 * n * x.element_size(),
        "GB/s",
        Wanted(peer="torch"),
    )


def _bound(kernel: Any, args: Sequence[Any]) -> Launch:
    return lambda: kernel(*args)


def vector_add() -> list[Plan]:
    cases = (("float16", 1 << 28), ("float32", 1 << 28), ("float16", (1 << 28) - 5))
    return [Plan(f"vector add {dtype} [{n}]", lambda case=(dtype, n): _vector_add(*case)) for dtype, n in cases]


PLANS: Mapping[str, Callable[[], list[Plan]]] = {
    "matmul": matmul,
    "attention": attention,
    "softmax": softmax,
    "layer_norm": layer_norm,
    "vector_add": vector_add,
}


# ------------------------------------------------------------------------------------------------------------ processes


def run_group(group: str, path: Path, seconds: float, timer: Timer | None = None) -> None:
    """Measure what is left of a group, in this process."""
    contest.hold(PLANS[group](), State(path), timer or CudaTimer(0), seconds, time.monotonic)


def supervise(group: str, path: Path, seconds: float, command: Sequence[str]) -> dict[str, Any]:
    """Run a group in processes, one after another until one has come to its end or the time is up; what was found."""
    end = time.monotonic() + seconds
    for _ in range(RESTARTS):
        left = end - time.monotonic()
        if left <= 0:
            break
        with tempfile.TemporaryFile("w+") as log:
            process = subprocess.Popen(
                [*command, group, str(path), str(left)], stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
            try:
                code = process.wait(left + GRACE)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                code = process.wait()
            log.seek(0)
            text = log.read()
        if code == 0 or not blame(State(path), text):
            break
    return State(path).cases


def blame(state: State, log: str) -> bool:
    """Note what was running when a process came to an untimely end, so that the next one leaves it out.

    If nothing was, another one would fare no better.
    """
    last = " / ".join(log.strip().splitlines()[-2:])[-300:]
    name, key = state.running or ["before the first case", ""]
    knows = state.running is not None
    case = state.cases.get(name)
    if case is not None and key in case["rows"]:
        state.lost.append([name, key])
    else:
        rows = {} if case is None else case["rows"]
        failed = f"the process ended at {key or 'its inputs'}: {last}"
        state.cases[name] = {"unit": "", "wanted": "", **(case or {}), "rows": rows, "failed": failed, "done": True}
    state.running = None
    state.keep()
    return knows


def versions() -> dict[str, str]:
    """The versions of the peers."""
    found: dict[str, str] = {}
    for name in ("torch", "triton", "tilus", "apache-tvm-ffi"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def state_of_gpu() -> str:
    """Clocks, power and temperature, and why clocks are held down."""
    asked = "clocks.sm,clocks.mem,power.draw,temperature.gpu,clocks_throttle_reasons.active"
    command = ["nvidia-smi", f"--query-gpu={asked}", "--format=csv,noheader"]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired) as error:
        return contest.describe(error)
    return run.stdout.strip() or run.stderr.strip()


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser("python -m benchmarks peers", description=__doc__)
    parser.add_argument("--only", default=",".join(GROUPS), help=f"of {', '.join(GROUPS)}")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for all groups together")
    options = parser.parse_args(arguments)
    groups = [group for group in options.only.split(",") if group]
    unknown = sorted(set(groups) - set(GROUPS))
    if unknown:
        parser.error(f"there is no group {unknown[0]}: choose from {', '.join(GROUPS)}")
    share = sum(GROUPS[group] for group in groups)
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for group in groups:
            seconds = options.seconds * GROUPS[group] / share
            cases = supervise(
                group, Path(folder) / f"{group}.json", seconds, [sys.executable, "-m", "benchmarks.peers"]
            )
            found[group] = {"cases": cases, "gpu_afterwards": state_of_gpu()}
            for name, case in cases.items():
                print(contest.table(name, case), flush=True)
            where = report.write({"peers": {"versions": versions(), **report.kept("peers"), **found}})
            print(f"kept in {where}", flush=True)
    return 0


if __name__ == "__main__":
    run_group(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]))
