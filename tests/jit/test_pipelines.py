# SPDX-License-Identifier: Apache-2.0
"""Kernels that are compiled with a person's passes: who finds them again, and who must not."""

import doctest
import functools
import random
import shutil
import subprocess
import sys
import textwrap
from dataclasses import dataclass

import numpy as np
import pytest

import tilekit
from tests.caches import new_cache
from tilekit import cache as caches
from tilekit import config, float32, option
from tilekit.cache.programs import OPTIONS
from tilekit.diag import LayoutError, PassError
from tilekit.ir.functors import IRRewriter
from tilekit.ir.stmt import InstStmt, SeqStmt
from tilekit.jit import session
from tilekit.toolchain import host
from tilekit.transforms import Pass, after, replace, without


class Sum(tilekit.Script):
    def __call__(self, x_ptr: ~float32, y_ptr: ~float32):
        self.attrs.blocks = [1]
        self.attrs.warps = 1
        x = self.global_view(x_ptr, dtype=float32, shape=[32])
        y = self.global_view(y_ptr, dtype=float32, shape=[32])
        both = self.load_global(x, offsets=[0], shape=[32]) + self.load_global(y, offsets=[0], shape=[32])
        self.store_global(y, both, offsets=[0])


TAKES_X = True


def chosen(inst):
    return inst.replace(y=inst.x) if TAKES_X else inst.replace(x=inst.y)


class Once(IRRewriter):
    def visit_AddInst(self, inst):
        return chosen(inst)


class OncePass(Pass):
    def process_function(self, func):
        return Once().visit(func)


@dataclass(frozen=True)
class ChoicePass(Pass):
    takes_x: bool = True

    def process_function(self, func):
        return Choice(self.takes_x).visit(func)


class Choice(IRRewriter):
    def __init__(self, takes_x):
        super().__init__()
        self.takes_x = takes_x

    def visit_AddInst(self, inst):
        return inst.replace(y=inst.x) if self.takes_x else inst.replace(x=inst.y)


class CountingPass(Pass):
    """One that changes as it runs."""

    def __init__(self):
        self.count = 0

    def process_function(self, func):
        self.count += 1
        return func


class PrintingPass(Pass):
    """One that cannot be tracked: nobody knows what printing does."""

    def process_function(self, func):
        print("it runs")
        return func


X, Y = 3.0, 5.0


def launch(handle=None):
    """What the kernel makes of 3 + 5, and the kernel."""
    handle = handle or Sum()
    x, y = np.full(32, X, np.float32), np.full(32, Y, np.float32)
    handle(x, y)
    assert len(set(y)) == 1
    return float(y[0]), handle.last


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One for all tests: each has its workers."""
    return new_cache(tmp_path_factory.mktemp("cache"))


@pytest.fixture(autouse=True)
def own_cache(folder):
    """A cache that is empty; a new process would have no handles, and neither has a test."""
    before = config.resolve().cache_dir
    for part in ("programs", "specializations", "scripts"):
        shutil.rmtree(folder / part, ignore_errors=True)
    option.cache_dir(folder)
    forget()
    yield folder
    option.cache_dir(before)


def forget():
    """Forget what this process has in memory."""
    if "_handles" in vars(Sum):
        del Sum._handles


def programs(folder):
    return {path.parent.name for path in folder.glob("programs/*/manifest.json")}


# ------------------------------------------------------------------------------------------------------ in one process


def test_passes_hold_in_their_block(own_cache):
    handle = Sum()
    assert launch(handle)[0] == 8.0
    with tilekit.passes(after("copy_elimination", OncePass())):
        assert launch(handle)[0] == 6.0
        assert launch(handle)[0] == 6.0, "the second call finds the kernel of the first"
    assert len(handle.kernels) == 2
    assert launch(handle)[0] == 8.0
    assert len(programs(own_cache)) == 2


def test_blocks_inside_of_others_add_their_changes():
    with tilekit.passes(after("copy_elimination", OncePass())):
        with tilekit.passes(without("once"), after("lower_assume", ChoicePass(False))):
            value, kernel = launch()
            assert value == 10.0
            assert "custom passes: once after copy_elimination, without once, choice after lower_assume" in str(kernel)
        assert launch()[0] == 6.0


def test_a_kernel_says_which_passes_it_has():
    with tilekit.passes(after("copy_elimination", OncePass()), without("bound_aware_simplify")):
        kernel = launch()[1]
    assert "custom passes: once after copy_elimination, without bound_aware_simplify" in kernel.summary()
    assert "once" in kernel.changed_passes
    assert kernel.trace.step("once").changed
    assert all(step.name != "bound_aware_simplify" for step in kernel.trace.steps)
    assert "custom passes" not in launch()[1].summary()


def test_a_block_looks_at_its_passes_when_it_begins(monkeypatch):
    changes = (after("copy_elimination", OncePass()),)
    handle = Sum()
    with tilekit.passes(*changes):
        assert launch(handle)[0] == 6.0
    monkeypatch.setitem(globals(), "TAKES_X", False)
    with tilekit.passes(*changes):
        assert launch(handle)[0] == 10.0
    monkeypatch.setitem(globals(), "TAKES_X", True)
    with tilekit.passes(*changes):
        value, kernel = launch(handle)
    assert (value, kernel.cached) == (6.0, False), "it is the very kernel of the first block"
    assert len(handle.kernels) == 2


def test_a_change_that_names_no_pass_is_an_error_at_the_block():
    with pytest.raises(PassError) as caught, tilekit.passes(replace("layout_inferense", OncePass())):
        pass
    error = caught.value
    assert error.code == "TK412"
    assert error.diagnostic.help == "did you mean layout_inference?"
    assert 'tilekit.passes(replace("layout_inferense", OncePass()))' in error.to_text()
    assert session.pipeline_changes() == ()


def test_a_block_that_is_left_by_an_error_is_left():
    class WrongPass(Pass):
        def process_function(self, func):
            raise ValueError("not this one")

    with pytest.raises(PassError) as caught, tilekit.passes(after("lower_assume", WrongPass())):
        launch()
    assert caught.value.code == "TK410"
    assert 'raise ValueError("not this one")' in caught.value.to_text()
    assert launch()[0] == 8.0


def test_passes_run_also_where_the_evaluator_runs_the_kernel(monkeypatch):
    monkeypatch.setattr(host, "find_compiler", lambda: None)
    with tilekit.passes(after("copy_elimination", OncePass())), pytest.warns(UserWarning, match="runs? in the NumPy"):
        value, kernel = launch()
    assert kernel.compiled is None
    assert value == 6.0


class Between(IRRewriter):
    """Puts a tile without a layout between a sum and its readers."""

    def visit_AddInst(self, inst):
        new = inst.output.replace(name="new", optional_layout=None)
        return SeqStmt((InstStmt(inst.replace(output=new)), InstStmt(inst.replace(x=new, y=new))))


class BetweenPass(Pass):
    def process_function(self, func):
        return Between().visit(func)


def test_an_error_of_a_later_pass_says_that_there_are_custom_ones():
    with pytest.raises(LayoutError) as caught, tilekit.passes(after("layout_inference", BetweenPass())):
        launch()
    assert "register tensor new has no layout yet" in str(caught.value)
    assert "note: it is compiled with custom passes: between after layout_inference" in str(caught.value)


# ------------------------------------------------------------------------------------------------------ in the cache


def test_the_cache_knows_the_passes_by_what_they_say_and_their_fields(monkeypatch, own_cache):
    def found(*changes):
        forget()
        with tilekit.passes(*changes):
            value, kernel = launch()
        return value, kernel.cached

    assert found(after("copy_elimination", ChoicePass())) == (6.0, False)
    assert found(after("copy_elimination", ChoicePass())) == (6.0, True)
    assert found(after("copy_elimination", ChoicePass(False))) == (10.0, False)
    assert found(after("copy_elimination", OncePass())) == (6.0, False)
    monkeypatch.setitem(globals(), "TAKES_X", False)  # a helper's global
    assert found(after("copy_elimination", OncePass())) == (10.0, False)
    monkeypatch.setitem(globals(), "TAKES_X", True)
    assert found(after("copy_elimination", OncePass())) == (6.0, True)
    monkeypatch.setitem(globals(), "chosen", lambda inst: inst)  # a helper
    assert found(after("copy_elimination", OncePass())) == (8.0, False)
    assert found(after("lower_assume", OncePass())) == (8.0, False), "its place counts"
    forget()
    assert launch()[1].cached is False, "without passes it is another kernel"


def test_what_cannot_be_tracked_is_compiled_each_time(capsys):
    for _ in range(2):
        forget()
        with tilekit.passes(after("copy_elimination", PrintingPass())):
            kernel = launch()[1]
            assert launch()[1] is kernel, "within the block it stays"
        assert not kernel.cached
        assert capsys.readouterr().out.count("it runs") == 1
        options = kernel.compiled.entry.text(OPTIONS)
        assert "custom_passes = untracked, for " in options
        assert "calls print" in options


def test_what_changes_as_it_runs_is_found_by_nobody(own_cache):
    for _ in range(2):
        forget()
        with tilekit.passes(after("copy_elimination", CountingPass())):
            kernel = launch()[1]
        assert not kernel.cached
        assert "custom_passes = it changed while it ran: " in kernel.compiled.entry.text(OPTIONS)
    assert len(programs(own_cache)) == 2


def test_an_option_that_changes_within_the_block_makes_no_wrong_entry():
    own = OncePass()
    own.factor = 1
    with tilekit.passes(after("copy_elimination", own)):
        own.factor = 2
        first = launch()[1]
        own.factor = 1
    forget()
    with tilekit.passes(after("copy_elimination", own)):
        assert not launch()[1].cached, "that of the other option is another one"
    own.factor = 2
    forget()
    with tilekit.passes(after("copy_elimination", own)):
        second = launch()[1]
    assert second.cached
    assert second.compiled.entry.key == first.compiled.entry.key


def test_what_a_new_process_would_miss_is_explained():
    x, y = np.zeros(32, np.float32), np.zeros(32, np.float32)
    launch()
    with tilekit.passes(after("copy_elimination", OncePass())):
        explanation = caches.explain(Sum(), x, y)
        assert not explanation.compiled
        assert explanation.changed == ("custom passes (new)",)
        launch()
        assert caches.explain(Sum(), x, y).hit


def test_people_find_both_in_scripts(own_cache):
    launch()
    with tilekit.passes(after("copy_elimination", OncePass())):
        launch()
    described = [path.read_text() for path in own_cache.glob("scripts/**/*.json")]
    assert len(described) == 2
    assert sum('"custom passes": "once after copy_elimination"' in text for text in described) == 1


# ------------------------------------------------------------------------------------------------------ other processes

OTHER = """
    import sys
    import numpy as np
    import tilekit
    from tilekit import float32, option
    from tilekit.ir.functors import IRRewriter
    from tilekit.transforms import Pass, after

    option.cache_dir(sys.argv[1])

    class Once(IRRewriter):
        def visit_AddInst(self, inst):
            return inst.replace(y=inst.x)

    class OncePass(Pass):
        def process_function(self, func):
            return Once().visit(func)

    class Sum(tilekit.Script):
        def __call__(self, x_ptr: ~float32, y_ptr: ~float32):
            self.attrs.blocks = [1]
            self.attrs.warps = 1
            x = self.global_view(x_ptr, dtype=float32, shape=[32])
            y = self.global_view(y_ptr, dtype=float32, shape=[32])
            both = self.load_global(x, offsets=[0], shape=[32]) + self.load_global(y, offsets=[0], shape=[32])
            self.store_global(y, both, offsets=[0])

    def launch():
        sum = Sum()
        x, y = np.full(32, 3, np.float32), np.full(32, 5, np.float32)
        sum(x, y)
        print(y[0], sum.last.cached)

    if sys.argv[2] == "with":
        with tilekit.passes(after("copy_elimination", OncePass())):
            launch()
    else:
        launch()
"""


def test_a_process_without_the_pass_never_sees_its_binaries(tmp_path, own_cache):
    script = tmp_path / "other.py"
    script.write_text(textwrap.dedent(OTHER))

    def run(how):
        command = [sys.executable, str(script), str(own_cache), how]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    assert run("with") == ["6.0", "False"]
    assert run("without") == ["8.0", "False"]
    assert run("with") == ["6.0", "True"]
    assert run("without") == ["8.0", "True"]
    text = script.read_text()
    script.write_text(
        "# another line above\n" + text.replace("visit_AddInst(self, inst):", "visit_AddInst(self, inst):  # the sum")
    )
    assert run("with") == ["6.0", "True"], "comments and places do not count"
    script.write_text(text.replace("replace(y=inst.x)", "replace(x=inst.y)"))
    assert run("with") == ["10.0", "False"]


# ------------------------------------------------------------------------------------------------------ with schedules


def test_schedules_are_compiled_and_measured_with_the_passes():
    @tilekit.autotune("warps", [1, 2])
    class Tuned(tilekit.Script):
        def __init__(self, warps: int):
            super().__init__()
            self.warps = warps

        def __call__(self, x_ptr: ~float32, y_ptr: ~float32):
            self.attrs.blocks = [1]
            self.attrs.warps = self.warps
            x = self.global_view(x_ptr, dtype=float32, shape=[64])
            y = self.global_view(y_ptr, dtype=float32, shape=[64])
            both = self.load_global(x, offsets=[0], shape=[64]) + self.load_global(y, offsets=[0], shape=[64])
            self.store_global(y, both, offsets=[0])

    x, y = np.full(64, X, np.float32), np.full(64, Y, np.float32)
    handle = Tuned()
    with tilekit.passes(after("copy_elimination", OncePass())):
        handle.tune(x, y)
        handle(x, y)
        assert set(y) == {6.0}
        assert all("once" in kernel.changed_passes for kernel in handle.kernels)
        assert len(handle.kernels) == 2
        instance = next(iter(handle.jit_instances.values()))
        (custom,) = instance.machines
        assert custom.pipeline is not None
    y[:] = Y
    handle(x, y)
    assert set(y) == {8.0}


def test_two_passes_that_differ_in_a_number_have_two_keys():
    first, second = random.sample(range(1 << 40), 2)
    digest = functools.partial(tilekit.jit.pipelines._key, root=config.resolve().cache_dir)
    of = {number: digest((after("lower_assume", _numbered(number)),)) for number in (first, second)}
    assert of[first] != of[second]
    assert of[first] == digest((after("lower_assume", _numbered(first)),))


def _numbered(number):
    own = OncePass()
    own.number = number
    return own


def test_the_example_of_the_block_runs():
    (example,) = doctest.DocTestFinder().find(tilekit.passes, "passes", globs={})
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0
