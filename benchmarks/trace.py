# SPDX-License-Identifier: Apache-2.0
"""What a trace costs: while it is off, for a long pipeline beside TileLang's, and for a matmul beside its compile."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
import timeit
from pathlib import Path
from typing import Any

from benchmarks import report

REPEAT = 5
# IR Lower Trace of TileLang 0.1.15, for as many passes and lines, on two cores
TILELANG = {"tracer_s": 303, "page_mb": 236, "memory_mb": 3200, "written_mb": 23_700}

# in a process of its own, for its memory and what it writes
_SYNTHETIC = """
import json, sys, time
from pathlib import Path
from tests.tools.lower_trace.synthetic import pipeline
from tilekit.config import TraceMode
from tilekit.events import Stage, step
from tilekit.tools.lower_trace import journal, run, shelf
from tilekit.tools.lower_trace.settings import Settings

def number(file, word):
    return next(int(line.split()[1]) for line in open(file) if line.startswith(word))

steps = list(pipeline(200, 3000, int(sys.argv[2])))
resident, written = number("/proc/self/status", "VmRSS:"), number("/proc/self/io", "wchar:")
begun = time.process_time()
opened = run.open_run(Settings(TraceMode.HTML, Path(sys.argv[1])), [], print)
sink = opened.recording.compile("kernel")
spent = []
for before, after in steps:
    started = time.process_time()
    with step(sink, Stage.TILE, "change", before) as underway:
        underway.made(after)
    spent.append(1e3 * (time.process_time() - started))
sink.done(None)
opened.recording.close()
texts = [text.stat().st_size for text in (opened.path.parent / shelf.TEXTS).iterdir()]
print(json.dumps({
    "tracer_s": time.process_time() - begun,
    "pass_ms_first_20": sum(spent[:20]) / 20,
    "pass_ms_last_20": sum(spent[-20:]) / 20,
    "journal_mb": (opened.path / journal.FILE).stat().st_size / 1e6,
    "page_mb": opened.page.stat().st_size / 1e6,
    "memory_mb": (number("/proc/self/status", "VmHWM:") - resident) / 1e3,
    "dumps_mb": sum(texts) / 1e6,
    "written_besides_mb": (number("/proc/self/io", "wchar:") - written - sum(texts)) / 1e6,
}))
"""


def synthetic() -> dict[str, Any]:
    """200 passes over 3,000 lines, of which 40 % change 1 % of them; medians of several pipelines."""
    found: list[dict[str, float]] = []
    for seed in range(REPEAT):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-c", _SYNTHETIC, folder, str(seed)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found.append(json.loads(done.stdout))
    ours = {name: round(statistics.median(each[name] for each in found), 3) for name in found[0]}
    return {"ours": ours, "TileLang": TILELANG}


_LARGE = """
import json, sys, time
from pathlib import Path
from tests.tools.lower_trace.synthetic import Program, lines_of_ir
from tilekit.config import TraceMode
from tilekit.events import Stage, step
from tilekit.tools.lower_trace import run
from tilekit.tools.lower_trace.settings import Settings

lines = lines_of_ir(20_000, 1)
text = "\\n".join(lines * (20_000_000 // sum(map(len, lines)) + 1))[:20_000_000]
begun = time.process_time()
opened = run.open_run(Settings(TraceMode.HTML, Path(sys.argv[1])), [], print)
sink = opened.recording.compile("kernel")
with step(sink, Stage.TILE, "unroll", Program("before")) as underway:
    underway.made(Program(text))
print(json.dumps(time.process_time() - begun))
"""


def large() -> dict[str, float]:
    """The seconds that one text of 20 MB takes, which is not compared with anything."""
    found: list[float] = []
    for _ in range(REPEAT):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-c", _LARGE, folder]
            found.append(float(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    return report.spread(found)


def page() -> dict[str, Any]:
    """The page of such a pipeline in Chromium, in milliseconds: its first paint, a pass to the next, any two passes."""
    from tests.browser import lab
    from tests.tools.lower_trace.synthetic import compile_with, pipeline
    from tilekit.config import TraceMode
    from tilekit.tools.lower_trace import run
    from tilekit.tools.lower_trace.settings import Settings

    press = """key => {
        const start = performance.now();
        document.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
        return performance.now() - start;
    }"""
    first_paint = "() => performance.getEntriesByName('first-contentful-paint')[0].startTime"
    with tempfile.TemporaryDirectory() as folder, lab.chromium() as browser:
        opened = run.open_run(Settings(TraceMode.HTML, Path(folder)), [], print)
        compile_with(opened.recording.compile("kernel"), pipeline(200, 3000, 0))
        opened.recording.close()
        assert opened.page is not None
        painted: list[float] = []
        for _ in range(REPEAT):
            view = browser.new_page()
            view.goto(f"{opened.page.as_uri()}#p=0")
            view.wait_for_selector(".tk-trace[data-ms]")
            view.wait_for_function("() => performance.getEntriesByName('first-contentful-paint').length")
            painted.append(view.evaluate(first_paint))
        keys = [view.evaluate(press, "j") for _ in range(60)]
        view.evaluate("() => { location.hash = 'p=3'; }")
        view.wait_for_selector(".tk-trace[data-shown='3']")
        view.evaluate(press, "x")
        pairs: list[float] = []
        for _ in range(10):  # one comparison, and away from it
            view.evaluate(press, "J")
            pairs.append(view.evaluate(press, "x"))
        nodes = view.evaluate("() => document.querySelectorAll('*').length")
    return {
        "first_paint_ms": report.spread(painted),
        "key_ms": report.spread(keys),
        "any_two_ms": report.spread(pairs),
        "nodes": nodes,
    }


def matmul() -> dict[str, Any]:
    """A pipelined matmul in f16 for sm_90a: its compile with a trace that makes a page, over that without one.

    `source` ends with the source, `cubin` with what NVRTC makes of it; no kernel is in the cache.
    """
    from tests.kernels.matmul import scripts
    from tilekit import config, drivers, float16, spec, target
    from tilekit.config import TraceMode
    from tilekit.runtime.tensors import DeviceKind
    from tilekit.tools.lower_trace import run
    from tilekit.tools.lower_trace.settings import Settings

    handle: Any = scripts.pipelined()
    size = 1024
    tiles = [spec(float16, (size, size))] * 3
    program = handle._jit_instance_for(size, size, size, *tiles).transpiled_programs[0]
    pages: list[float] = []
    steps = 0

    def seconds(*, traced: bool, compiled: bool) -> float:
        nonlocal steps
        with tempfile.TemporaryDirectory() as folder:
            settings = config.resolve({"cache_dir": Path(folder, "cache")})
            start = time.process_time()
            opened = run.open_run(Settings(TraceMode.HTML, Path(folder)), [], print) if traced else None
            sink = None if opened is None else opened.recording.compile("matmul")
            sinks = [] if sink is None else [sink]
            if compiled:
                drivers.build_program(program, target.SM90A, DeviceKind.CUDA, settings, sinks)
            else:
                drivers.generate_source(program, target.SM90A, sinks)
            if opened is not None and sink is not None:
                sink.done(None)
                opened.recording.close()
                assert opened.page is not None
                pages.append(opened.page.stat().st_size / 1e3)
                steps = len(sink.compile.steps)
            return time.process_time() - start

    found: dict[str, Any] = {}
    for name, compiled in (("source", False), ("cubin", True)):
        seconds(traced=True, compiled=compiled)
        pairs = [(seconds(traced=False, compiled=compiled), seconds(traced=True, compiled=compiled)) for _ in range(9)]
        found[name] = {
            "untraced_s": report.spread([off for off, _ in pairs]),
            "ratio": report.spread([on / off for off, on in pairs]),
        }
    return {**found, "steps": steps, "page_kb": round(max(pages), 1)}


def off() -> dict[str, float]:
    """What a compile and a call ask while nobody traces, in microseconds, and its share of a softmax's passes."""
    from tests.kernels.test_softmax import SOFTMAX
    from tilekit import drivers, float32, spec, target
    from tilekit.events import Fanout
    from tilekit.jit import observer
    from tilekit.jit.observer import Identity

    kernel, x = Identity("Softmax", "Softmax()", "sm_90a", "cpu"), spec(float32, (64, 1024))
    handle: Any = next(iter(SOFTMAX.values()))
    program = handle._jit_instance_for(64, 1024, x, x).transpiled_programs[0]

    def compile_asks() -> None:
        for _ in range(2):  # where a kernel is looked for, and where it is kept
            observer.tracing(kernel.script)
        with observer.listening(kernel, cached=False) as sinks:
            assert not Fanout(sinks).traces

    asked = min(timeit.repeat(compile_asks, number=1000)) / 1000
    called = min(timeit.repeat(observer.tracing, number=1000)) / 1000
    drivers.generate_source(program, target.SM90A)
    compiled = min(timeit.repeat(lambda: drivers.generate_source(program, target.SM90A), number=1))
    return {
        "compile_us": round(1e6 * asked, 2),
        "call_us": round(1e6 * called, 3),
        "share_of_passes": round(asked / compiled, 6),
    }
