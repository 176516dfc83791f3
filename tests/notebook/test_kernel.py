# SPDX-License-Identifier: Apache-2.0
"""`%%tilus` in a real kernel process."""

import re
import threading
import time
from collections.abc import Iterator

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from tests.notebook.cells import CALL, VECTOR_ADD
from tests.notebook.kernels import Kernel, kernel
from tests.notebook.test_long_runs import SLOW

RUN = f"%%tilus\n{VECTOR_ADD}{CALL}"

# a machine that runs other tests at the same time answers late
BUSY = 10

FOREVER = """\
%%tilus
import tilus
import torch
from tilus import float32, int32


class Forever(tilus.Script):
    def __call__(self, n: int32, x_ptr: ~float32):
        self.attrs.blocks = [1]
        self.attrs.warps = 1
        g = self.global_view(x_ptr, dtype=float32, shape=[n])
        i: int32 = 0
        while i < n:
            self.store_global(g, self.load_global(g, offsets=[0], shape=[32]) + 1.0, offsets=[0])
            i = 0


x = torch.zeros(32)
forever = Forever()
"""


SLOW_COMPILER = """\
import time
from tilekit import drivers

build = drivers.build_program

def build_slowly(*args, on_stage, **options):
    on_stage("passes")
    time.sleep(1.2)
    return build(*args, on_stage=on_stage, **options)

drivers.build_program = build_slowly
"""


@pytest.fixture(scope="module")
def _kernel(tmp_path_factory) -> Iterator[Kernel]:
    with kernel(tmp_path_factory.mktemp("kernel") / "cache") as running:
        running.ran("%load_ext tilekit")
        yield running


@pytest.fixture
def notebook(_kernel: Kernel) -> Kernel:
    """A kernel with the extension; cells are counted on from test to test."""
    return _kernel


def number(notebook: Kernel) -> int:
    """The number of the next cell."""
    return int(notebook.run("len(In)").value or 0)


def test_a_cell_shows_its_kernel_and_its_value(notebook: Kernel):
    reply = notebook.ran(RUN + "torch.equal(z, x + y)")
    assert reply.value == "True"
    assert re.fullmatch(r"VectorAdd · sm_90a · CPU simulator · \d+ passes changed it · .* · ran in .*s", reply.text)
    (data,) = reply.shown.values()
    assert "<b>layout_inference</b>" in data["text/html"]


def test_a_failed_cell_says_a_sentence_folds_the_rest_and_keeps_its_panels(notebook: Kernel):
    one_place = VECTOR_ADD.replace("x + y, offsets=[start]", "x + y, offsets=[0]")
    reply = notebook.run(f"%%tilus --check\n{one_place}{CALL}")
    assert reply.error == "KernelError" and reply.widgets == 1
    assert re.match(r"KernelError TK720 in VectorAdd.__call__, Cell In\[\d+\], line 18: .* z_ptr\[", reply.traceback)
    assert "writes it" not in reply.traceback and "lock_semaphore" in reply.traceback
    summary, details = reply.shown.values()
    assert summary["text/plain"].endswith("race found")
    assert details["text/html"].startswith("<details") and "the two accesses: " in details["text/html"]
    assert details["text/plain"].count("writes it") == 2
    desk = "next(reversed(get_ipython().tilekit._desks.values()))"
    report = notebook.ran(f"{desk}.bar.kernels[0]['report']").value or ""
    assert "race at source.cu line " in report

    notebook.ran("add.last.report = None")
    assert notebook.ran(f"{desk}.bar.kernels[0]['report']").value == "''"
    assert notebook.run("add(1, 2)").error == "ArgumentError"


def test_the_passes_are_shown_live_and_as_text(notebook: Kernel):
    notebook.ran(RUN)
    for shown in ("add.trace", "add.last.trace"):
        reply = notebook.ran(shown)
        assert reply.widgets == 1
        (data,) = reply.shown.values()
        assert "<b>layout_inference</b>" in data["text/html"]
        assert "Tile IR  layout_inference" in data["text/plain"]


def test_many_kernels_leave_one_bar_and_one_output_more(notebook: Kernel):
    notebook.ran(f"%%tilus\n{VECTOR_ADD.replace('VectorAdd', 'Other')}")
    loop = """
for n in range(100, 2100, 100):
    a, b, c = torch.ones(n), torch.ones(n), torch.empty(n)
    add(n, a, b, c)
    assert (c == 2).all()
add(1024, *(torch.ones(1024) for _ in range(3)))
Other()(100, *(torch.ones(100) for _ in range(3)))
"""
    reply = notebook.ran(RUN + loop)
    assert len(reply.text.splitlines()) == 3, reply.text
    assert (reply.widgets, len(reply.shown)) == (1, 1)


def test_a_rerun_of_an_edited_cell_says_so_and_keeps_the_edit(notebook: Kernel):
    notebook.ran(RUN)
    reply = notebook.ran("""
desk = next(reversed(get_ipython().tilekit._desks.values()))
desk.bar.shown = "source"
panel = desk.bar.panel("source", 0)
panel._handle_custom_msg({"kind": "recompile", "text": panel.text.replace("x[r] + y[r]", "x[r] - y[r]")}, [])
import time
while panel.busy: time.sleep(0.01)
panel.verdict, add.last.patched""")
    assert reply.value == "('differs', True)"
    reply = notebook.ran(RUN + "torch.equal(z, x - y)")
    assert reply.value == "True"
    line, remark = reply.text.splitlines()
    assert line.startswith("VectorAdd · PATCHED · sm_90a")
    assert "PATCHED" in remark
    reply = notebook.ran("""
panel = next(reversed(get_ipython().tilekit._desks.values())).bar.panel("source", 0)
print("x[r] - y[r]" in panel.text, "x[r] + y[r]" in panel.generated)
panel._handle_custom_msg({"kind": "revert"}, [])
while panel.busy: time.sleep(0.01)""")
    assert reply.stdout == "True True\n"
    assert notebook.ran(RUN + "torch.equal(z, x + y)").value == "True"


def test_interrupt_stops_what_a_panel_runs_while_no_cell_does(notebook: Kernel, tmp_path):
    notebook.ran(RUN)
    stopped = tmp_path / "stopped"
    notebook.ran(f"import pathlib; stopped = pathlib.Path({str(stopped)!r})")
    notebook.ran("""
import threading, time
desk = next(reversed(get_ipython().tilekit._desks.values()))
desk.bar.shown = "source"
panel = desk.bar.panel("source", 0)
text = panel.text.replace("{\\n", "{\\n  while (*(volatile int *)&n) {}\\n", 1)
pressed = []
def ask():
    panel._handle_custom_msg({"kind": "recompile", "text": text}, [])
    while panel.busy != "comparing": time.sleep(0.01)
    time.sleep(0.5)
    pressed.append(time.monotonic())
    import os, signal
    os.kill(os.getpid(), signal.SIGINT)
    while panel.busy: time.sleep(0.01)
    pressed.append(time.monotonic())
    stopped.touch()
threading.Timer(0.5, ask).start()""")
    deadline = time.monotonic() + 60
    while not stopped.exists():  # and no cell runs
        assert time.monotonic() < deadline
        time.sleep(0.05)
    reply = notebook.ran("""
print(panel.verdict, panel.comparison.endswith("was interrupted here"), pressed[1] - pressed[0] < 20)
panel._handle_custom_msg({"kind": "revert"}, [])
while panel.busy: time.sleep(0.01)""")
    assert reply.stdout == "failed True True\n"
    assert notebook.ran(RUN + "torch.equal(z, x + y)").value == "True"


def test_errors_name_cell_and_line_from_any_cell_and_after_a_change(notebook: Kernel):
    beyond = VECTOR_ADD.replace("gz = self.global_view(z_ptr, dtype=float32, shape=[n])",
                                "gz = self.global_view(z_ptr, dtype=float32, shape=[n + 500])")  # fmt: skip
    here = number(notebook)
    notebook.ran(f"%%tilus\n{beyond}{CALL.replace('add(n, x, y, z)', '')}")
    notebook.ran(f"%%tilus\n# a line\n\n\n{VECTOR_ADD}")
    reply = notebook.run("add(n, x, y, z)")
    assert reply.error == "KernelError"
    assert reply.traceback.startswith(f"KernelError TK702 in VectorAdd.__call__, Cell In[{here}], line 18: ")


def test_magics_above_below_and_await(notebook: Kernel):
    notebook.ran(RUN)
    reply = notebook.ran("%%time\n%%tilus\nadd(n, x, y, z)\ntorch.equal(z, x + y)")
    assert reply.value == "True"
    assert "Wall time" in reply.stdout
    assert "VectorAdd · sm_90a" in reply.text
    body = "import asyncio\n!echo out\n%timeit -n1 -r1 add(n, x, y, z)\nawait asyncio.sleep(0.01, 7)"
    reply = notebook.ran(f"%%tilus\n{body}")
    assert reply.value == "7"
    assert "out" in reply.stdout and "per loop" in reply.stdout
    here = number(notebook)
    reply = notebook.run("%%time\n%%tilus\nx\n1 / 0\n")
    assert f"Cell In[{here}], line 4" in reply.traceback


def test_a_long_launch_shows_how_far_it_is(notebook: Kernel):
    notebook.ran("from tilekit.cpusim import client\nfrom tilekit.jit import progress\n"
                 "client.TICK_S, progress.PATIENCE_S = 0.03, 0.0")  # fmt: skip
    notebook.ran(f"%%tilus\n{SLOW}")
    for cell in ("%%tilus\nslow(96, 400, x)", "slow(96, 400, x)"):
        reply = notebook.ran(cell)
        bars = [text for text in reply.history if "of 96 blocks" in text]
        assert bars and "blocks" not in reply.text, "gone when the launch has ended"
        assert reply.stdout.startswith("done\n") and "more lines: kernel.printed has all" in reply.stdout
    notebook.ran("client.TICK_S, progress.PATIENCE_S = 0.25, 1.0")


def test_captured_cells_show_nothing_and_keep_one_output(notebook: Kernel):
    reply = notebook.ran(f"%%capture captured\n{RUN}")
    assert reply.shown == {}
    assert notebook.ran("len(captured.outputs), captured.outputs[0].data['text/plain'][:9]").value == "(1, 'VectorAdd')"


def test_a_long_compile_tells_what_it_does_and_then_gives_way(notebook: Kernel):
    notebook.ran(RUN)
    notebook.ran(SLOW_COMPILER)
    reply = notebook.ran(f"{RUN.replace('256', '128')}\ndrivers.build_program = build")
    progress = [text for text in reply.history if text.startswith("VectorAdd: ")]
    assert len(progress) >= 2
    assert all(re.fullmatch(r"VectorAdd: (passes|compile with \S+), \d\.\d s", text) for text in progress), progress
    assert len(reply.shown) == 1
    assert reply.text.startswith("VectorAdd · sm_90a")
    assert "passes," not in reply.text


def test_the_first_kernel_of_a_machine_says_that_it_built_the_simulator(notebook: Kernel, tmp_path):
    notebook.ran(
        f"import tilekit; cache = tilekit.option.get_option('cache_dir'); tilekit.option.cache_dir({str(tmp_path)!r})"
    )
    first, second = notebook.ran(RUN), notebook.ran(RUN)
    notebook.ran("tilekit.option.cache_dir(cache)")
    assert re.search(r" · compiled in [^·]* · built the simulator in [\d.]+ m?s · ran in ", first.text)
    assert any(text.splitlines()[-1].startswith("VectorAdd: first launch, ") for text in first.history)
    assert "simulator in" not in second.text


def test_a_fast_compile_does_not_flicker(notebook: Kernel):
    notebook.ran(RUN)
    reply = notebook.ran(RUN)
    assert all(text.startswith("VectorAdd · sm_90a") for text in reply.history)
    assert len(reply.history) <= 2


def test_an_interrupt_stops_an_endless_kernel_within_half_a_second(notebook: Kernel):
    notebook.ran(FOREVER)
    notebook.ran("import tilekit; tilekit.option.cpu.timeout(100)")
    stopped: list[float] = []

    def interrupt() -> None:
        stopped.append(time.monotonic())
        notebook.manager.interrupt_kernel()

    timer = threading.Timer(2.5, interrupt)
    timer.start()
    reply = notebook.run("forever(32, x)")
    took = time.monotonic() - stopped[0]
    assert reply.error == "KeyboardInterrupt"
    assert took < 0.5 * BUSY, took
    assert notebook.ran("x.sum().item()").value == "0.0"
    notebook.ran(RUN + "assert torch.equal(z, x + y)")


def test_an_endless_kernel_is_stopped_and_its_line_named(notebook: Kernel):
    here = number(notebook)
    notebook.ran(FOREVER)
    notebook.ran("import tilekit; tilekit.option.cpu.timeout(0.5)")
    reply = notebook.run("forever(32, x)")
    notebook.ran("tilekit.option.cpu.timeout(60)")
    first, _, caret, *_ = reply.traceback.split("\n")
    assert first.startswith(f"KernelError TK703 in Forever.__call__, Cell In[{here}], line 1")
    assert first.endswith("the kernel still ran after 0.5 s, and was stopped here")
    assert caret.strip(" ^") == ""


def test_a_failing_cell_stops_a_run_of_all_cells():
    cells = ["%load_ext tilekit", f"%%tilus\n{VECTOR_ADD.replace('load_global(gy', 'load_globl(gy')}", "print('after')"]
    page = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client = NotebookClient(page, timeout=120, extra_arguments=["--IPKernelApp.log_level=ERROR"])
    with pytest.raises(CellExecutionError, match=r"self has no load_globl"):
        client.execute()
    assert page.cells[2].outputs == []
    (error,) = page.cells[1].outputs
    text = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(error.traceback))
    assert text.startswith("LanguageError TK102 in VectorAdd.__call__, Cell In[2], line 17: self has no load_globl\n")
    assert len(text.splitlines()) == 4
