# SPDX-License-Identifier: Apache-2.0
"""The budgets of starting and compiling, each in processes of its own."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import report, trace

REPEAT = 5

_IMPORT = """
import time; start = time.perf_counter()
import tilekit
seconds = time.perf_counter() - start
import sys
assert "torch" not in sys.modules and "hidet" not in sys.modules
print(seconds)
"""

# a cell as a notebook runs it, timed from the moment that torch is there
_CELL = '''
import sys, time
import torch
torch_is_there = time.perf_counter()
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "tilekit")
cell = """%%tilus
import tilus
from tilus import float32, int32
from tilus.utils import cdiv
class VectorAdd(tilus.Script):
    def __call__(self, n: int32, x: ~float32, y: ~float32, z: ~float32):
        self.attrs.blocks = [cdiv(n, 512)]
        self.attrs.warps = 4
        start = self.blockIdx.x * 512
        gx = self.global_view(x, dtype=float32, shape=[n])
        gy = self.global_view(y, dtype=float32, shape=[n])
        gz = self.global_view(z, dtype=float32, shape=[n])
        a = self.load_global(gx, offsets=[start], shape=[512])
        b = self.load_global(gy, offsets=[start], shape=[512])
        self.store_global(gz, a + b, offsets=[start])
VectorAdd()(4096, x, y, z)
"""
x, y, z = torch.randn(4096), torch.randn(4096), torch.empty(4096)
shell.user_ns.update(x=x, y=y, z=z)
start = time.perf_counter()
shell.run_cell(cell, store_history=True).raise_error()
end = time.perf_counter()
assert torch.equal(z, x + y)
print("\\n" + str(end - (start if sys.argv[1] == "cell" else torch_is_there)))
'''


def _seconds(program: str, cache: Path, since: str = "cell") -> float:
    env = {**os.environ, "TILEKIT_CACHE_DIR": str(cache), "IPYTHONDIR": str(cache / "ipython")}
    # byte code is kept, as it is on anybody's machine
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    run = subprocess.run([sys.executable, "-c", program, since], env=env, capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(run.stderr)
    return float(run.stdout.split()[-1])


def import_seconds() -> dict[str, float]:
    """`import tilekit` in a new process, without torch and hidet."""
    with tempfile.TemporaryDirectory() as cache:
        return report.spread([_seconds(_IMPORT, Path(cache)) for _ in range(REPEAT + 1)][1:])


def first_cell_seconds() -> dict[str, dict[str, float]]:
    """A `%%tilus` vector add on the CPU: compiled by a new process, counted from the cell on, and found in the cache by
    the next one, counted from the moment that torch is there."""
    cold: list[float] = []
    cached: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder)
        _seconds(_CELL, cache)  # builds the simulator's runtime, which counts for neither
        for _ in range(REPEAT):
            for program in (cache / "programs").iterdir():
                subprocess.run(["rm", "-rf", str(program)], check=True)
            cold.append(_seconds(_CELL, cache))
            cached.append(_seconds(_CELL, cache, "torch"))
    return {"cold": report.spread(cold), "cached": report.spread(cached)}


def recorder_ratio() -> dict[str, Any]:
    """The time to generate a source with the recorder listening, over the time without."""
    from tests.kernels.test_softmax import SOFTMAX
    from tilekit import drivers, float32, spec, target
    from tilekit.transforms.recorder import Recorder

    handle: Any = next(iter(SOFTMAX.values()))
    x = spec(float32, (64, 1024))
    program = handle._jit_instance_for(64, 1024, x, x).transpiled_programs[0]

    def run(sinks: list[Any]) -> float:
        start = time.process_time()
        drivers.generate_source(program, target.DEFAULT, sinks)
        return time.process_time() - start

    run([])
    on: list[float] = []
    off: list[float] = []
    for _ in range(4 * REPEAT):
        on.append(run([Recorder()]))
        off.append(run([]))
    return {"ratio_of_medians": round(statistics.median(on) / statistics.median(off), 3), "off": report.spread(off)}


def edit_to_result_seconds() -> dict[str, dict[str, float]]:
    """From a text that the source panel sends to its verdict, softmax on the CPU; and what opening each panel takes.

    Each edit is a text that was never compiled before. The browser's share is not in it.
    """
    import torch

    from tests.kernels.test_softmax import SOFTMAX
    from tilekit import config
    from tilekit.notebook.edits import NotebookEdits
    from tilekit.notebook.panels.desk import Desk, SourceDesk

    found: dict[str, list[float]] = {"edit_to_result": [], "open_passes": [], "open_source": []}
    with tempfile.TemporaryDirectory() as cache:
        config.set_session_default("cache_dir", cache)
        handle: Any = SOFTMAX[torch.float32]
        x = torch.randn(64, 1024)
        out = torch.empty_like(x)
        handle(*x.shape, x, out)
        for turn in range(2 * REPEAT):
            desk = Desk([handle.last], NotebookEdits())
            for kind in ("passes", "source"):
                start = time.perf_counter()
                desk.bar.shown = kind
                found[f"open_{kind}"].append(time.perf_counter() - start)
            source = SourceDesk(handle.last, desk.names[0], desk)
            text = source.panel.generated.replace("{\n", f"{{\n  int edited_{turn} = {turn};\n", 1)
            start = time.perf_counter()
            source.recompile(text).result()
            found["edit_to_result"].append(time.perf_counter() - start)
            if source.panel.verdict != "same":
                raise RuntimeError(source.panel.plain())
            desk.bar.close()
        handle.last.revert()
        config.clear_session_defaults()
    return {name: report.spread(seconds) for name, seconds in found.items()}


def matmul_milliseconds() -> dict[str, dict[str, float]]:
    """A matmul of 512 x 512 x 512 in f16 on one core of the CPU, the kernel alone, for each step of the notebook."""
    import torch

    from tests.kernels.matmul import scripts
    from tilekit import config

    steps = (scripts.naive, scripts.through_shared, scripts.tuned, scripts.asynchronous, scripts.pipelined)
    size = 512
    a, b = torch.randn(2, size, size).half()
    found: dict[str, dict[str, float]] = {}
    config.set_session_default("cpu.threads", 1)
    for step in steps:
        handle: Any = step()
        c = torch.empty(size, size).half()
        milliseconds: list[float] = []
        for _ in range(2 * REPEAT + 1):
            handle(size, size, size, a, b, c)
            milliseconds.append(1e3 * handle.last.last_run.seconds)
        if (c.double() - a.double() @ b.double()).norm() > 5e-4 * c.double().norm():
            raise RuntimeError(f"{step.__name__} is wrong")
        found[step.__name__] = report.spread(milliseconds[1:])
    config.clear_session_defaults()
    return found


def check_ratios() -> dict[str, dict[str, float]]:
    """What check mode costs: the seconds of a kernel under check over those without, on one core, in pairs.

    Matmuls of 512 x 512 x 512 in f16, and attention of 256 queries to 512 keys.
    """
    import torch

    from tests.kernels.attention import scripts as attention
    from tests.kernels.matmul import scripts as matmul
    from tilekit import config

    size, (q_len, k_len, heads, dim) = 512, (256, 512, 4, 64)
    a, b = torch.randn(2, size, size).half()
    q, (k, v) = torch.randn(1, q_len, heads, dim).half(), torch.randn(2, 1, k_len, heads, dim).half()
    product = (size, size, size, a, b, torch.empty(size, size).half())
    heads_of = (1, q_len, k_len, heads, heads, dim, False, q, k, v, torch.empty_like(q))
    steps = (matmul.naive, matmul.through_shared, matmul.tuned, matmul.asynchronous, matmul.pipelined, matmul.split_k)
    cases = {
        **{f"matmul {step.__name__}": (step, product) for step in steps},
        **{f"attention {step.__name__}": (step, heads_of) for step in (attention.flash, attention.split_flash)},
    }
    found: dict[str, dict[str, float]] = {}
    config.set_session_default("cpu.threads", 1)
    for name, (step, arguments) in cases.items():
        handle: Any = step()
        ratios: list[float] = []
        for _ in range(REPEAT + 1):
            handle(*arguments)
            ratios.append(handle.check().seconds / handle.last.last_run.seconds)
        found[name] = report.spread(ratios[1:])
    config.clear_session_defaults()
    return found


def edit_to_run_seconds() -> dict[str, float]:
    """From one more character in the source of a matmul with four stages to its result at 256 x 256 x 256."""
    import torch

    from tests.kernels.matmul import scripts
    from tilekit import config

    size = 256
    a, b = torch.randn(2, size, size).half()
    c = torch.empty(size, size).half()
    seconds: list[float] = []
    with tempfile.TemporaryDirectory() as cache:
        config.set_session_default("cache_dir", cache)
        handle: Any = scripts.pipelined()
        handle(size, size, size, a, b, c)
        text = handle.last.source
        for _ in range(2 * REPEAT):
            text = text.replace("//", "// ", 1)
            c.fill_(float("nan"))
            start = time.perf_counter()
            handle.last.recompile(text)
            handle(size, size, size, a, b, c)
            seconds.append(time.perf_counter() - start)
            if not ((c.double() - a.double() @ b.double()).norm() < 5e-4 * c.double().norm()):
                raise RuntimeError("the edited matmul is wrong")
        handle.last.revert()
        config.clear_session_defaults()
    return report.spread(seconds)


def idle_memory() -> dict[str, float]:
    """Resident MB of a notebook's kernel process and its simulator worker, after one kernel ran."""
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel()
    try:
        cell = _CELL.partition('cell = """')[2].partition('"""')[0]
        prelude = "%load_ext tilekit\nimport torch\nx, y, z = torch.randn(4096), torch.randn(4096), torch.empty(4096)"
        for code in (prelude, cell):
            reply = client.execute_interactive(code, output_hook=lambda _: None, timeout=120)
            if reply["content"]["status"] != "ok":
                raise RuntimeError("\n".join(reply["content"]["traceback"]))
        pid = manager.provisioner.pid  # type: ignore[union-attr]
        return {"kernel": _resident(pid), "worker": sum(map(_resident, _children(pid)))}
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def _resident(pid: int) -> float:
    """Resident memory of a process in MB, pages that it shares counted in part."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return round(int(line.split()[1]) / 1024, 1)
    raise RuntimeError(f"process {pid} tells no memory")


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def install_size() -> dict[str, float]:
    """MB on disk of the packages that this environment holds, and of the largest of them."""
    site = next(Path(p) for p in sys.path if p.endswith("site-packages"))
    sizes = {entry.name: _megabytes(entry) for entry in site.iterdir()}
    largest = sorted(sizes, key=sizes.__getitem__, reverse=True)[:8]
    return {"total": round(sum(sizes.values()), 1), **{name: sizes[name] for name in largest}}


def _megabytes(path: Path) -> float:
    files = [path] if path.is_file() else [f for f in path.rglob("*") if f.is_file() and not f.is_symlink()]
    return round(sum(f.stat().st_size for f in files) / 1e6, 1)


BUDGETS: dict[str, Callable[[], Any]] = {
    "import_tilekit_s": import_seconds,
    "first_cell_s": first_cell_seconds,
    "recorder_ratio": recorder_ratio,
    "edit_to_result_s": edit_to_result_seconds,
    "matmul_512_cpu_ms": matmul_milliseconds,
    "check_over_fast": check_ratios,
    "edit_to_run_s": edit_to_run_seconds,
    "idle_memory_mb": idle_memory,
    "install_mb": install_size,
    "trace_200_passes": trace.synthetic,
    "trace_20_mb_s": trace.large,
    "trace_matmul": trace.matmul,
    "trace_page": trace.page,
    "trace_off": trace.off,
}
