# SPDX-License-Identifier: Apache-2.0
"""A kernel beside its peers, by a clock of the tests' own: a call takes a millisecond, and what it says beside."""

import doctest
import importlib
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch

import tilekit as tilus
from tests.jit.test_progress import Told
from tilekit import float16, float32, int32
from tilekit.diag import ArgumentError, KernelError
from tilekit.jit import bench, observer, progress
from tilekit.jit.bench import Benching
from tilekit.jit.instantiated import InstantiatedScript
from tilekit.runtime import benchmark
from tilekit.runtime.benchmark import ClockTimer
from tilekit.toolchain import host

N = 64


class Add(tilus.Script):
    def __call__(self, n: int32, x_ptr: ~float32, y_ptr: ~float32, z_ptr: ~float32):
        self.attrs.blocks = [tilus.utils.cdiv(n, 32)]
        self.attrs.warps = 1
        at = self.blockIdx.x * 32
        gx = self.global_view(x_ptr, dtype=float32, shape=[n])
        gy = self.global_view(y_ptr, dtype=float32, shape=[n])
        gz = self.global_view(z_ptr, dtype=float32, shape=[n])
        x = self.load_global(gx, offsets=[at], shape=[32])
        y = self.load_global(gy, offsets=[at], shape=[32])
        self.store_global(gz, x + y, offsets=[at])


class Grow(tilus.Script):
    """In place."""

    def __call__(self, x_ptr: ~float32):
        self.attrs.blocks = [2]
        self.attrs.warps = 1
        gx = self.global_view(x_ptr, dtype=float32, shape=[N])
        x = self.load_global(gx, offsets=[self.blockIdx.x * 32], shape=[32])
        self.store_global(gx, x * 2.0, offsets=[self.blockIdx.x * 32])


class World:
    """A clock that goes on by a millisecond when it is looked at, and peers that take longer."""

    def __init__(self):
        self.now = 0.0
        self.ran = []

    def clock(self):
        self.now += 1e-3
        return self.now

    def peer(self, function, seconds, name="peer"):
        def ran(x, y):
            self.now += seconds
            self.ran.append(name)
            return function(x, y)

        return ran


@pytest.fixture
def world(monkeypatch):
    made = World()
    monkeypatch.setattr(benchmark, "timer", lambda device, watch: ClockTimer(made.clock))
    monkeypatch.setattr(benchmark, "_MOST_CALLS", 2)
    return made


@pytest.fixture
def add():
    return Add()


@pytest.fixture
def args():
    return N, torch.randn(N), torch.randn(N), torch.zeros(N)


def rows(result):
    return {row.name: row for row in result.rows}


# ---------------------------------------------------------------------------------------------------------- right first


def test_ours_and_its_peers_take_turns_and_the_peer_is_the_reference(world, add, args):
    result = add.bench(
        *args, against={"torch": world.peer(torch.add, 4e-3, "a"), "other": world.peer(torch.add, 0, "b")}
    )
    found = rows(result)
    assert list(found) == ["Add", "torch", "other"]
    assert [row.seconds for row in result.rows] == pytest.approx([1e-3, 5e-3, 1e-3])
    assert result.over_ours(found["torch"]) == pytest.approx(5)
    assert all(len(row.timing.rounds) == 5 and row.relative_error < 1e-6 for row in result.rows)
    assert "results compared with torch in float64" in result.notes
    # results and a glance at each, and float64 of the first; then a batch of two each in turn
    assert world.ran == ["a", "b", "a", "a", "b", *["a", "a", "b", "b"] * 5]


def test_without_work_given_the_bytes_are_those_that_the_kernel_reads_and_writes(world, add, args):
    (row,) = add.bench(*args).rows
    assert (row.bytes, row.flops) == (3 * 4 * N, None)
    assert row.gb_per_second == pytest.approx(3 * 4 * N / 1e-3 / 1e9)
    (row,) = Grow().bench(torch.ones(N)).rows
    assert row.bytes == 2 * 4 * N


@pytest.mark.parametrize("work", [2e9, lambda n, x, y, z: 2e9 * n / N, lambda x, y: 2e9 * len(y) / N])
def test_work_is_a_number_or_a_function_that_is_called_as_a_peer_is(world, add, args, work):
    (row,) = add.bench(*args, flops=work).rows
    assert row.tflops == pytest.approx(2.0) and row.gb_per_second is None
    (row,) = add.bench(*args, flops=1e9, bytes=work).rows
    assert (row.tflops, row.gb_per_second) == pytest.approx((1.0, 2000.0))


def test_a_wrong_kernel_is_an_error_and_not_timed(world, add, args):
    with pytest.raises(
        KernelError, match=r"Add differs from torch in float64: z_ptr\[0\] is .* relative error"
    ) as caught:
        add.bench(*args, against={"torch": world.peer(torch.sub, 0)})
    assert caught.value.code == "TK645" and caught.value.kind == "wrong_result"
    assert caught.value.data["relative_error"] == pytest.approx(
        float((2 * args[2]).norm() / (args[1] - args[2]).norm()), rel=1e-5
    )
    assert len(world.ran) == 2


def test_a_wrong_kernel_is_timed_if_that_is_asked_for(world, add, args):
    result = add.bench(*args, against={"torch": torch.sub}, even_if_wrong=True)
    assert all(row.timing is not None for row in result.rows)
    assert any(note.startswith("Add differs from torch in float64: z_ptr[0] is ") for note in result.notes)


def test_an_element_that_the_kernel_does_not_write_is_found_although_it_held_the_right_value(world, add, args):
    _, x, y, z = args
    torch.add(x, y, out=z)
    with pytest.raises(KernelError, match=r"z_ptr\[40\] is nan in place of .*; 24 of 64 elements differ"):
        add.bench(40, x, y, z, against={"torch": torch.add})


def test_rounding_that_is_more_than_usual_needs_a_tolerance(world, add, args):
    def rough(x, y):
        return (x + y).half().float() if x.dtype == torch.float32 else x + y

    with pytest.raises(KernelError, match="differs from rough: "):
        add.bench(*args, against={"rough": rough})
    result = add.bench(*args, against={"rough": rough}, tolerance=1e-3)
    assert result.notes[-1] == "results compared with rough in float64"
    assert rows(result)["Add"].relative_error < 1e-6 < rows(result)["rough"].relative_error < 1e-3


def test_a_peer_that_knows_no_float64_is_compared_as_it_is(world, add, args):
    def single(x, y):
        assert x.dtype == torch.float32
        return x + y

    assert "results compared with single" in add.bench(*args, against={"single": single}).notes


def test_the_tensors_of_the_call_do_not_change(world, add, args):
    before = [arg.clone() for arg in args[1:]]
    result = add.bench(*args, against={"out": lambda n, x, y, z: torch.add(x, y, out=z)})
    assert all(torch.equal(*pair) for pair in zip(args[1:], before, strict=True))
    assert all(row.timing is not None for row in result.rows)
    grow, x = Grow(), torch.ones(N)
    grow.bench(x, against={"torch": lambda x: 2 * x, "in place": lambda x: x.mul_(2)})
    assert torch.equal(x, torch.ones(N))


def test_tensors_that_share_memory_share_it_in_every_copy(world, add):
    x = torch.randn(2 * N)
    y, out = x[:N], x[:N]
    result = add.bench(N, x[N:], y, out, against={"torch": torch.add})
    assert all(not row.failed and row.timing is not None for row in result.rows)


def test_numpy_arrays_are_measured_too(world, add):
    x, y, z = np.random.rand(3, N).astype(np.float32)
    result = add.bench(N, x, y, z, against={"numpy": np.add})
    assert "results compared with numpy in float64" in result.notes and not rows(result)["numpy"].failed


def test_without_a_compiler_the_evaluator_is_measured_and_says_so(world, args, monkeypatch):
    class Mute(Add):
        pass

    monkeypatch.setattr(host, "find_compiler", lambda: None)
    with pytest.warns(UserWarning, match="evaluator"):
        result = Mute().bench(*args, against={"torch": torch.add}, rounds=1)
    assert [(row.name, row.bytes, row.failed) for row in result.rows] == [("Mute", 768, ""), ("torch", 768, "")]
    assert result.notes[0].startswith("these are times of the NumPy evaluator")


# --------------------------------------------------------------------------------------------------------------- peers


def test_a_peer_that_fails_is_a_row_with_its_error(world, add, args):
    def fails(x, y):
        raise RuntimeError("no such shape\nhere")

    result = add.bench(*args, against={"bad": fails, "few": lambda x: x, "torch": torch.add, "wrong": torch.sub})
    failed = {row.name: row.failed for row in result.rows if row.failed}
    assert failed["bad"] == "RuntimeError: no such shape"
    assert failed["few"] == "it takes (x): neither the 4 arguments of the call nor the 2 tensors that the kernel reads"
    assert failed["wrong"].startswith("differs from torch in float64: z_ptr[0] is ")
    assert [row.name for row in result.rows if row.timing] == ["Add", "torch"]
    assert "bad: RuntimeError: no such shape" in str(result)


def test_a_peer_that_fails_while_it_is_timed_leaves_the_others_to_go_on(world, add, args):
    left = [8]

    def tires(x, y):
        left[0] -= 1
        if not left[0]:
            raise MemoryError
        return x + y

    result = add.bench(*args, against={"tires": tires, "torch": torch.add})
    assert rows(result)["tires"].failed == "MemoryError: no reason given" and rows(result)["tires"].timing is None
    assert all(len(rows(result)[name].timing.rounds) == 5 for name in ("Add", "torch"))


def test_what_prepares_the_arguments_of_a_peer_runs_once_for_each_of_its_uses(world, add, args):
    prepared = []

    def prepare(x, y):
        prepared.append(x.dtype)
        return torch.stack([x, y])

    result = add.bench(*args, against={"sum": (lambda both: both.sum(dim=0), prepare)})
    assert prepared == [torch.float32, torch.float64] and not rows(result)["sum"].failed


def test_a_peer_returns_as_many_results_as_the_kernel_has(world, add, args):
    result = add.bench(*args, against={"two": lambda x, y: (x + y, x), "one": lambda x, y: [x + y]})
    assert rows(result)["two"].failed == "it returns 2 results and the kernel writes 1"
    assert rows(result)["one"].timing is not None


def test_another_kernel_can_be_a_peer(world, add, args):
    class Again(Add):
        pass

    result = add.bench(*args, against={"again": Again()})
    assert "results compared with again" in result.notes and rows(result)["again"].relative_error == 0


# --------------------------------------------------------------------------------------------------------------- sizes


def of_size(n):
    return n, torch.randn(n), torch.randn(n), torch.empty(n)


def test_sizes_are_made_one_after_another(world, add):
    result = add.bench(sizes=[64, 256], make=of_size, against={"torch": torch.add}, flops=lambda n, *_: n)
    assert [(row.size, row.number, row.name, row.flops) for row in result.rows] == [
        ("64", 64.0, "Add", 64.0), ("64", 64.0, "torch", 64.0),
        ("256", 256.0, "Add", 256.0), ("256", 256.0, "torch", 256.0),
    ]  # fmt: skip


def test_a_size_may_be_a_tuple_or_have_a_name(world, add):
    assert [row.size for row in add.bench(sizes=[(2, 32), (4, 32)], make=lambda a, b: of_size(a * b)).rows] == [
        "2×32", "4×32"
    ]  # fmt: skip
    result = add.bench(sizes={"small": of_size(64), "large": lambda: of_size(256)})
    assert [(row.size, row.number, row.bytes) for row in result.rows] == [
        ("small", None, 12 * 64), ("large", None, 12 * 256)
    ]  # fmt: skip


@pytest.mark.parametrize(
    "given, says",
    [
        ({"sizes": [64]}, "sizes need make"),
        ({"make": of_size}, "make belongs to sizes"),
        ({"sizes": {"a": of_size(64)}, "make": of_size}, "make has no place"),
        ({"sizes": [64], "make": of_size, "args": (1,)}, "either arguments or sizes"),
        ({"args": of_size(64), "rounds": 0}, "rounds is how often"),
        ({"args": of_size(64), "rounds": "5"}, "rounds is how often .*, not '5'"),
        ({"args": of_size(64), "against": 3}, "against is a mapping from names to peers, not 3"),
        ({"args": of_size(64), "flops": lambda x: x}, "flops fails: it takes"),
        ({"args": of_size(64), "flops": "x"}, "flops is a number from 0 on, not 'x'"),
        ({"args": of_size(64), "bytes": -1}, "bytes is a number from 0 on, not -1"),
        ({"args": of_size(64), "tolerance": abs}, "tolerance is a number from 0 on, not"),
        ({"sizes": 5, "make": of_size}, "sizes is a list of sizes, .* not 5"),
        ({"sizes": [], "make": of_size}, r"sizes is a list of sizes, .* not \[\]"),
        ({"sizes": [64], "make": lambda n: 1 / 0}, "make fails: ZeroDivisionError"),
    ],
)
def test_what_cannot_be_measured_is_said(world, add, given, says):
    given = dict(given)
    if "make" in given and "sizes" not in given:
        given["args"] = of_size(64)
    with pytest.raises(ArgumentError, match=f"TK643.*: Add cannot be measured so: .*{says}"):
        add.bench(*given.pop("args", ()), **given)


def test_an_error_says_at_which_size_it_came(world, add):
    with pytest.raises(KernelError, match="at size 128"):
        add.bench(
            sizes=[64, 128],
            make=of_size,
            against={"torch": lambda x, y: torch.add(x, y, alpha=1 if len(x) < 99 else 2)},
        )


# -------------------------------------------------------------------------------------------- interrupts and progress


def interrupts_at(call):
    left = [call]

    def peer(x, y):
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        return x + y

    return peer


def test_an_interrupt_keeps_the_rounds_and_the_sizes_that_are_done(world, add):
    # seven calls until the first round of a size is over, and eight more in the others
    per_size = 3 + 2 * 5
    result = add.bench(sizes=[64, 128, 256], make=of_size, against={"torch": interrupts_at(per_size + 3 + 2 * 2 + 1)})
    assert [(row.size, len(row.timing.rounds)) for row in result.rows] == [("64", 5), ("64", 5), ("128", 3), ("128", 2)]
    assert result.notes[-1] == "interrupted at 128: what was done is here"


def test_an_interrupt_before_anything_is_timed_is_an_interrupt(world, add, args):
    with pytest.raises(KeyboardInterrupt):
        add.bench(*args, against={"torch": interrupts_at(1)})


def test_a_kernel_that_is_stopped_from_elsewhere_keeps_what_is_done(world, add, args, monkeypatch):
    add(*args)
    runner, left = add.last.runner, [9]

    class Stopped:
        def launch(self, arguments, on_wait=None):
            left[0] -= 1
            if not left[0]:
                raise KernelError("TK716", "Add was interrupted", data={"kind": "interrupted"})
            return runner.launch(arguments)

    monkeypatch.setitem(add.last.__dict__, "_runner", Stopped())
    result = add.bench(against={"torch": torch.add})
    assert [(row.name, len(row.timing.rounds)) for row in result.rows] == [("Add", 3), ("torch", 3)]
    assert result.notes[-1] == "interrupted: what was done is here"


def test_a_long_measurement_tells_how_far_it_is(world, add, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE_S", 0.0)
    monkeypatch.setattr(bench.time, "perf_counter", lambda: world.now)
    told = Told()
    with observer.observing(told):
        add.bench(sizes=[64, 128], make=of_size, rounds=2)
    ours = [now for now in told.all if isinstance(now, Benching)]
    assert [now.share for now in ours] == [0, 0.25, 0.5, 0.5, 0.75, 1.0] and told.all[-1] is None
    assert ours[1].words.startswith("Add: measuring at 64, about ") and ours[1].words.endswith(" s left")


# --------------------------------------------------------------------------------------------- what hangs on the kernel


def test_without_arguments_those_of_the_last_call_are_measured_again_and_again(world, add, args):
    add(*args)
    kernel, run = add.last, add.last.last_run
    for _ in range(2):
        assert add.bench(against={"torch": torch.add}).rows[0].timing is not None
        assert kernel.bench(flops=1e9).rows[0].tflops == pytest.approx(1.0)
    assert kernel.last_run is run, "the last launch is the person's"


def test_without_a_call_there_is_nothing_to_measure():
    class Fresh(Add):
        pass

    with pytest.raises(ArgumentError, match="TK631"):
        Fresh().bench()


def test_a_kernel_is_measured_on_what_it_was_compiled_for(world, add, args):
    add(*args)
    kernel = add.last
    with pytest.raises(ArgumentError, match=r"TK644.*compiled for n divisible by 16, and this is 40"):
        kernel.bench(40, *args[1:])
    with pytest.raises(ArgumentError, match=r"TK626.*launched with \(n, x_ptr, y_ptr, z_ptr\), not with 1 arguments"):
        kernel.bench(40)
    assert kernel.bench(32, *args[1:]).rows[0].timing is not None


def test_an_edited_kernel_is_called_so(world, add, args):
    add(*args)
    kernel = add.last
    kernel.recompile(kernel.source.replace("x[0] + y[0]", "y[0] + x[0]"))
    assert [row.name for row in kernel.bench(against={"torch": torch.add}).rows] == ["Add (edited)", "torch"]
    kernel.revert()


# --------------------------------------------------------------------------------------------------------------- shown


@pytest.fixture
def measured(world, add):
    def torch_add(x, y):
        return world.peer(torch.add, len(x) * 1e-5)(x, y)

    return add.bench(
        sizes=[64, 256],
        make=of_size,
        against={"torch": torch_add, "<b>": lambda x, y: x[0]},
        flops=lambda n, *_: 1e7 * n,
    )


def test_the_table_says_times_rates_and_errors(measured):
    title, head, *lines = str(measured).splitlines()
    assert title == "Add · sm_90a · CPU simulator"
    assert head.split() == ["size", "program", "median", "rounds", "TFLOP/s", "×", "ours", "error"]
    assert re.fullmatch(r"  64  Add\s+1.00 ms  1.00–1.00 ms +0.64 +1.00 +\S+", lines[0])
    assert re.fullmatch(r"\s+torch\s+1.64 ms  1.64–1.64 ms +0.39 +1.64 +\S+", lines[1])
    assert re.fullmatch(r" 256  Add\s+1.00 ms .*", lines[3])
    assert lines[6].startswith(
        "<b> at 64: differs from torch in float64: z_ptr has the shape [], and the other one [64]"
    )
    assert lines[7].startswith("<b> at 256: ") and "say nothing about a GPU" in lines[8]
    assert "medians of 5 rounds in turn" in str(measured) and "clocks not recorded: it ran on the CPU" in str(measured)
    assert f"torch {torch.__version__}" in lines[-1]


def test_the_page_shows_the_same_and_needs_no_script(measured):
    html = measured._repr_html_()
    assert html.count("<tr") == 7 and "<script" not in html and "&lt;b&gt;" in html and "<b>Add</b>" in html
    assert all(text in html for text in ("1.64 ms", "0.39", *measured.remarks[:2]))


def test_a_data_frame_has_a_row_for_each_program_at_each_size(measured):
    pandas = pytest.importorskip("pandas")
    frame = measured.to_pandas()
    assert list(frame["program"]) == ["Add", "torch", "<b>"] * 2 and list(frame["size"][:4]) == [64, 64, 64, 256]
    torchs = frame[frame["program"] == "torch"]
    assert list(torchs["seconds"]) == pytest.approx([1.64e-3, 3.56e-3]) and list(torchs["calls"]) == [10, 10]
    assert list(torchs["over_ours"]) == pytest.approx([1.64, 3.56])
    assert pandas.isna(frame["seconds"][2]) and "shape" in frame["failed"][2]


def test_a_plot_has_ours_in_color_and_peers_in_gray_over_a_logarithmic_axis(measured):
    figure = json.loads(measured.figure().to_json())
    lines = {trace["name"]: trace for trace in figure["data"]}
    assert [trace["name"] for trace in figure["data"]][-1] == "Add"
    assert lines["torch"]["y"] == pytest.approx([0.64 / 1.64, 2.56 / 3.56]) and lines["torch"]["x"] == [64, 256]
    assert figure["layout"]["xaxis"]["type"] == "log" and figure["layout"]["yaxis"]["title"]["text"] == "TFLOP/s"
    color = lines["torch"]["line"]["color"]
    assert color[1:3] == color[3:5] == color[5:7], "a gray"
    ours = lines["Add"]["line"]["color"]
    assert not ours[1:3] == ours[3:5] == ours[5:7]
    assert figure["layout"]["paper_bgcolor"] == "rgba(0,0,0,0)"


def test_named_sizes_without_a_rate_are_drawn_in_milliseconds(world, add, args):
    result = add.bench(sizes={"a": args, "b": args}, bytes=lambda *_: math.nan)
    for row in result.rows:
        row.bytes = None
    figure = result.figure()
    assert figure.layout.xaxis.type == "category" and figure.layout.yaxis.title.text == "ms"
    assert list(figure.data[0].y) == pytest.approx([1.0, 1.0])


def test_the_example_of_the_docstring_runs():
    (example,) = doctest.DocTestFinder().find(InstantiatedScript.bench, "bench", globs={})
    assert example.examples and doctest.DocTestRunner().run(example).failed == 0


def test_the_examples_of_the_page_run(tmp_path, monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "measuring.md").read_text()
    code = "".join(re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    monkeypatch.setattr(benchmark, "_MOST_CALLS", 1)
    (tmp_path / "page_of_measuring.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("page_of_measuring")
    assert [(row.name, row.failed) for row in module.result.rows] == [("Scale", ""), ("torch", "")]
    assert [row.size for row in module.over_sizes.rows] == ["1024", "1024", "4096", "4096"]
    assert len(module.frame) == 4 and [line.name for line in module.figure.data] == ["torch", "Scale"]


# ------------------------------------------------------------------------------------------------------------ on a GPU


class AddHalf(tilus.Script):
    def __call__(self, n: int32, x_ptr: ~float16, y_ptr: ~float16, z_ptr: ~float16):
        self.attrs.blocks = [tilus.utils.cdiv(n, 1024)]
        self.attrs.warps = 4
        at = self.blockIdx.x * 1024
        gx = self.global_view(x_ptr, dtype=float16, shape=[n])
        gy = self.global_view(y_ptr, dtype=float16, shape=[n])
        gz = self.global_view(z_ptr, dtype=float16, shape=[n])
        x = self.load_global(gx, offsets=[at], shape=[1024])
        y = self.load_global(gy, offsets=[at], shape=[1024])
        self.store_global(gz, x + y, offsets=[at])


@pytest.mark.gpu
def test_on_a_gpu_times_are_those_of_its_memory_and_its_clocks_are_recorded():
    def on_gpu(n):
        return n, *(torch.randn(n, device="cuda").half() for _ in range(2)), torch.empty(n, device="cuda").half()

    result = AddHalf().bench(sizes=[1 << 20, 1 << 26], make=on_gpu, against={"torch": torch.add, "wrong": torch.sub})
    ours, torchs, wrong = result.rows[3:]
    assert "results compared with torch in float64" in result.notes
    assert 50 < ours.gb_per_second < 20_000 and 50 < torchs.gb_per_second < 20_000
    assert wrong.failed and wrong.timing is None
    assert all(row.timing.queued for row in (ours, torchs))
    assert result.floor is not None and result.floor < 50e-6
    assert all(condition.seen and condition.seen[0].sm_mhz for condition in result.conditions), str(result)
    assert "which is not subtracted" in str(result) and "CUDA driver" in str(result)
