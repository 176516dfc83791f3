# SPDX-License-Identifier: Apache-2.0
"""Bisection: of the steps of a compile, the first that makes a kernel wrong is named; what is right is not blamed."""

import doctest
import json
from random import Random

import pytest
import torch

import tilekit as tilus
from tests.jit import mutants, wrong_passes
from tests.kernels.machines import scheduled
from tests.kernels.matmul import scripts
from tilekit import config, float32, int32, target
from tilekit.backends import codegen
from tilekit.diag import ArgumentError, ToolchainError
from tilekit.ir.instructions.sync import SyncThreadsInst
from tilekit.ir.layout.register_layout import register_layout
from tilekit.ir.tools.instruction_collector import collect, collect_instructions
from tilekit.ir.tools.rewriter import rewrite
from tilekit.jit.bisect import LOWER, Route, bisect, stations
from tilekit.jit.bisected import Outcome
from tilekit.jit.instantiated import InstantiatedScript
from tilekit.lowir import passes as lowir_passes
from tilekit.lowir import statements
from tilekit.lowir.nodes import Call, EvaluateStmt
from tilekit.toolchain import host
from tilekit.transforms import after, before, get_default_passes, without
from tilekit.transforms.dead_code_elimination import DeadCodeEliminationPass
from tilekit.transforms.layout_inference import LayoutInferencePass

needs_compiler = pytest.mark.skipif(host.find_compiler() is None, reason="no C++ compiler here")

M, N, K = 100, 72, 96
SHARED = scripts.through_shared()
PIPELINED = scheduled(scripts.pipelined(), {"block_m": 64, "block_n": 64, "warps": 4, "block_k": 32, "stages": 3})


class Sums(tilus.Script):
    """Adds up columns, as far as there are any."""

    def __call__(self, m: int32, n: int32, x_ptr: ~float32, y_ptr: ~float32):
        self.attrs.blocks = [tilus.utils.cdiv(n, 64)]
        self.attrs.warps = 2
        column = self.blockIdx.x * 64
        x = self.global_view(x_ptr, dtype=float32, shape=[m, n])
        y = self.global_view(y_ptr, dtype=float32, shape=[n])
        row = self.shared_tensor(dtype=float32, shape=[64])
        acc = self.register_tensor(dtype=float32, shape=[64], init=0.0)
        for i in range(m):
            acc = acc + self.load_global(x, offsets=[i, column], shape=[64], dims=[1])
        self.store_shared(row, acc)
        self.sync()
        self.store_global(y, self.load_shared(row), offsets=[column])
        self.free_shared(row)


def random(*shape):
    """The same numbers each time: how much a mistake shows is up to them."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def product():
    return M, N, K, random(M, K).half(), random(K, N).half(), torch.zeros(M, N).half()


def summed():
    return 7, 100, random(7, 100), torch.zeros(100)


WRONG = [
    (SHARED, product, after("layout_inference", wrong_passes.DropBarrierPass(0)), "race"),
    (SHARED, product, after("dead_code_elimination#1", wrong_passes.SwapOffsetsPass()), "c_ptr["),
    (SHARED, product, after("lower_load_store", wrong_passes.LateMaskPass()), "c_ptr[0, 63] is nan"),
    (SHARED, product, after("lower_load_store", wrong_passes.NoMaskPass()), "out of bounds"),
    (Sums(), summed, after("bound_aware_simplify", wrong_passes.ShortLoopPass()), "y_ptr["),
    (SHARED, product, after("lower_assume", wrong_passes.NarrowSumPass()), "relative error"),
    (SHARED, product, after("layout_inference", wrong_passes.EveryRowInOnePlacePass()), "sa"),
    (PIPELINED, product, before("declare_to_let", wrong_passes.LateCommitPass()), "line"),
    (Sums(), summed, after("analyze_scalar#2", wrong_passes.RaisingPass()), "this pass"),
    (Sums(), summed, after("let_propagation", wrong_passes.InPlacePass()), "in place"),
]
MORE_WRONG = [
    (SHARED, product, before("declare_to_let", wrong_passes.DropBarrierPass(1)), "write after a read"),
    (PIPELINED, product, after("dead_code_elimination#2", wrong_passes.DropBarrierPass(0)), "race"),
    (SHARED, product, after("lower_load_store", wrong_passes.NextElementPass()), "out of bounds"),
    (SHARED, product, before("let_propagation", wrong_passes.ShortLoopPass()), "c_ptr["),
    (SHARED, product, after("copy_elimination", wrong_passes.NoStorePass()), "sb"),
    (PIPELINED, product, after("bound_aware_simplify", wrong_passes.LooseWaitPass()), "line"),
    (Sums(), summed, after("analyze_scalar#1", wrong_passes.FromOnePass()), "y_ptr[0]"),
]


def by_change(cases):
    """Parameters that are called what is done to the passes."""
    return [pytest.param(*case, id=str(case[2]).replace(" ", "-")) for case in cases]


@needs_compiler
@pytest.mark.parametrize(("kernel", "arguments", "change", "fault"), by_change(WRONG))
def test_case_89_the_pass_that_makes_a_kernel_wrong_is_named(kernel, arguments, change, fault):
    with tilus.passes(change):
        found = kernel.bisect(*arguments())
    assert found.outcome is Outcome.FOUND
    assert found.culprit == change.own.name, str(found)
    assert fault in found.fault
    assert [step.word for step in found.steps[:-1]].count("WRONG") == 0
    assert found.culprit in str(found)


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize(("kernel", "arguments", "change", "fault"), by_change(MORE_WRONG))
def test_case_89_more_passes_that_make_a_kernel_wrong_are_named(kernel, arguments, change, fault):
    test_case_89_the_pass_that_makes_a_kernel_wrong_is_named(kernel, arguments, change, fault)


@needs_compiler
@pytest.mark.parametrize(("kernel", "arguments"), [(SHARED, product), (PIPELINED, product), (Sums(), summed)])
def test_case_89_a_kernel_that_is_right_is_all_good(kernel, arguments):
    found = kernel.bisect(*arguments())
    assert found.outcome is Outcome.GOOD
    assert found.culprit is None
    assert "all good" in str(found)


@needs_compiler
def test_case_89_a_pass_that_is_right_is_not_blamed():
    with tilus.passes(after("layout_inference", wrong_passes.RebuildPass())):
        found = SHARED.bisect(*product())
    assert found.outcome is Outcome.GOOD
    assert ("rebuild", "right") in [(step.name, step.word) for step in found.steps]


NAMES = [each.name for each in get_default_passes()]
PLACES = [f"{name}#{NAMES[:i].count(name) + 1}" for i, name in enumerate(NAMES)]


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("number", range(120))
def test_case_89_a_pass_that_changes_anything_is_named_or_has_done_no_harm(number):
    rng = Random(number)
    kernel, arguments = rng.choice([(SHARED, product), (PIPELINED, product), (Sums(), summed)])
    mutant = mutants.MutantPass(rng.randrange(10**6))
    given, place = arguments(), rng.choice(PLACES)
    with tilus.passes(after(place, mutant)):
        found = kernel.bisect(*given)
        if found.outcome is Outcome.GOOD:
            kernel(*given)
    if found.outcome is Outcome.GOOD:
        right = arguments()
        kernel(*right)
        assert torch.equal(given[-1], right[-1]), f"{mutant.did} after {place}"
    else:
        assert found.culprit == "mutant", f"{mutant.did} after {place}\n{found}"


class Reversed(tilus.Script):
    """One warp reads what the other one has written, and no barrier is between."""

    def __call__(self, x_ptr: ~float32, y_ptr: ~float32):
        self.attrs.blocks = [1]
        self.attrs.warps = 2
        x = self.global_view(x_ptr, dtype=float32, shape=[2, 32])
        y = self.global_view(y_ptr, dtype=float32, shape=[2, 32])
        rows = self.shared_tensor(dtype=float32, shape=[2, 32])
        self.store_shared(rows, self.load_global(x, offsets=[0, 0], shape=[2, 32]))
        for i in range(2):
            self.store_global(y, self.load_shared(rows[1 - i]), offsets=[i, 0], dims=[1])
        self.free_shared(rows)


@needs_compiler
def test_case_89_a_program_that_is_wrong_itself_is_all_bad():
    found = Reversed().bisect(torch.randn(64), torch.zeros(64))
    assert found.outcome is Outcome.BAD
    assert found.culprit is None
    assert found.fault.startswith("race")
    assert "all bad" in str(found)


def test_case_89_a_program_that_reads_outside_is_all_bad():
    m, n, x, y = summed()
    found = Sums().bisect(m + 1, n, x, y)
    assert found.outcome is Outcome.BAD
    assert found.fault.startswith("out of bounds")


@needs_compiler
def test_case_89_a_program_that_differs_from_its_reference_is_all_bad():
    arguments = summed()
    assert Sums().bisect(*arguments, against=lambda x: x.sum(0)).outcome is Outcome.GOOD
    found = Sums().bisect(*arguments, against=lambda x: x.mean(0))
    assert found.outcome is Outcome.BAD
    assert found.fault.startswith("y_ptr[")


@needs_compiler
def test_a_pass_that_changes_programs_in_place_spoils_none_for_others():
    m, n, x, y = summed()
    handle = Sums()
    with tilus.passes(after("let_propagation", wrong_passes.InPlacePass())):
        handle(m, n, x, y)
        assert not torch.allclose(y, x.sum(0), atol=1e-4)
        assert handle.bisect(m, n, x, y).culprit == wrong_passes.InPlacePass().name
    handle(m, n, x, y)
    assert torch.allclose(y, x.sum(0), atol=1e-4)
    assert handle.bisect(m, n, x, y).outcome is Outcome.GOOD


def test_bisection_changes_no_argument():
    m, n, x, y = summed()
    kept = x.clone()
    with tilus.passes(before("declare_to_let", wrong_passes.FromOnePass())):
        assert Sums().bisect(m, n, x, y).culprit == "from_one"
    assert torch.equal(x, kept)
    assert not y.any()


def test_specs_are_filled_at_random_by_the_seed():
    wanted = tilus.spec(float32, (7, 100)), tilus.spec(float32, (100,))
    with tilus.passes(before("declare_to_let", wrong_passes.FromOnePass())):
        first, again, other = (Sums().bisect(7, 100, *wanted, seed=seed) for seed in (3, 3, 4))
    assert first.fault == again.fault != other.fault


@needs_compiler
def test_a_sample_of_the_blocks_may_be_enough():
    with tilus.passes(after("lower_load_store", wrong_passes.LateMaskPass())):
        found = SHARED.bisect(*product(), blocks=3)
    assert found.culprit == "late_mask"
    assert found.where == "3 of 4 blocks, seed 0"


# ------------------------------------------------------------------------------------------------------- other steps


def without_barriers(function):
    """The body of a function of Hidet IR without its barriers."""

    def stmt(each):
        if isinstance(each, EvaluateStmt) and isinstance(each.expr, Call) and "syncthreads" in str(each.expr):
            return statements.NOTHING
        return statements.rebuild(each, stmt, lambda expr: expr)

    return statements.with_body(function, stmt(function.body))


def found_on(route, kernel=SHARED, arguments=product):
    values = arguments()
    program = kernel._jit_instance_for(*values).first_program().program
    return bisect("it", program, route, [values[i] for i in kernel.kernel_params])


def route(tile=None, hidet=lowir_passes.PASSES):
    return Route(target.DEFAULT, config.resolve(), tile or get_default_passes(), hidet)


@needs_compiler
def test_case_89_a_pass_over_hidet_ir_is_named():
    wrong = lowir_passes.Pass("no_barriers", without_barriers)
    first, second = lowir_passes.PASSES
    found = found_on(route(hidet=[first, wrong, second]))
    assert found.culprit == "no_barriers"
    assert found.steps[-1].phase == "hidet"
    assert "-    __syncthreads();" in found.diff() or "__syncthreads" in found.diff()


@needs_compiler
def test_case_89_a_wrong_default_pass_is_named(monkeypatch):
    drop = wrong_passes.DropBarrierPass(0)
    monkeypatch.setattr(DeadCodeEliminationPass, "process_function", lambda self, func: dropped_once(drop, func))
    found = found_on(route())
    assert found.culprit == "dead_code_elimination"


def dropped_once(drop, func):
    return drop.process_function(func) if len(collect(func, SyncThreadsInst)) == 2 else func


class RowSums(tilus.Script):
    """Adds up rows, and stores what a reduction gives as it lies."""

    def __call__(self, x_ptr: ~float32, y_ptr: ~float32):
        self.attrs.blocks = [1]
        self.attrs.warps = 1
        x = self.global_view(x_ptr, dtype=float32, shape=[32, 8])
        y = self.global_view(y_ptr, dtype=float32, shape=[32])
        self.store_global(y, self.sum(self.load_global(x, offsets=[0, 0], shape=[32, 8]), dim=1), offsets=[0])


def turned(opcode):
    """Lays what an instruction gives out for the threads in another order."""

    def change(prog):
        (func,) = prog
        tile = next(inst.register_output for inst in collect_instructions(func) if inst.opcode == opcode)
        (extent,) = tile.shape
        layout = register_layout([extent], [2, extent // 2], [1, 0], [])
        return prog.with_function(rewrite(func, {tile: tile.replace(optional_layout=layout)}))

    return change


@needs_compiler
@pytest.mark.parametrize(
    ("kernel", "arguments", "change", "fault"),
    [
        (
            RowSums(),
            lambda: (random(32, 8), torch.zeros(32)),
            turned("reduce"),
            "reduce: the result of a reduction must",
        ),
        (Sums(), summed, turned("load_global"), "add: a thread that holds an element"),
        (SHARED, product, wrong_passes.EveryRowInOnePlacePass(), "shared_tensor: elements of a shared tensor lie in"),
    ],
    ids=["numbers", "no-register", "memory"],
)
def test_layouts_that_are_wrong_are_blamed_on_who_chose_them(kernel, arguments, change, fault, monkeypatch):
    right = LayoutInferencePass.process_program
    monkeypatch.setattr(
        LayoutInferencePass, "process_program", lambda self, prog, *sink: change(right(self, prog, *sink))
    )
    found = kernel.bisect(*arguments())
    assert found.culprit == "layout_inference", str(found)
    assert found.fault.startswith(fault)


@needs_compiler
def test_case_89_a_wrong_translation_is_named(monkeypatch):
    right = codegen.generate_ir_module

    def wrong(prog, target):
        return right(wrong_passes.ShortLoopPass()(prog), target)

    monkeypatch.setattr(codegen, "generate_ir_module", wrong)
    found = found_on(route())
    assert found.culprit == LOWER
    assert not found.diff()


@needs_compiler
def test_case_89_a_pass_that_is_missing_is_named():
    with tilus.passes(without("layout_inference")):
        found = SHARED.bisect(*product())
    assert found.culprit == "without layout_inference"


@needs_compiler
def test_a_store_that_is_dropped_shows_although_a_call_before_has_left_the_right_numbers():
    arguments = summed()
    kernel = Sums()
    kernel(*arguments)
    with tilus.passes(after("let_propagation", wrong_passes.NoGlobalStorePass())):
        found = kernel.bisect(*arguments)
    assert found.culprit == "no_global_store" and found.fault.startswith("y_ptr[0] is nan")


@needs_compiler
def test_case_89_an_edit_of_the_source_is_named():
    kernel, arguments = scripts.through_shared(out=float32), (*product()[:5], torch.zeros(M, N))
    kernel(*arguments)
    kernel.last.recompile(kernel.source.replace("__syncthreads();", "", 1))
    found = kernel.bisect(*arguments)
    assert found.culprit == "edit of source.cu"
    assert found.fault.startswith("race")
    assert "-    __syncthreads();" in found.diff()


@needs_compiler
def test_an_edit_of_the_program_behind_a_pass_is_named():
    m, n, x, y = summed()
    handle = Sums()
    handle(m, n, x, y)
    (step,) = [step for step in handle.trace.steps if step.name == "layout_inference"]
    handle.last.recompile_after(step.name, step.after_text.replace("in range(m)", "in range(m - i32(1))"))
    try:
        found = handle.bisect(m, n, x, y)
    finally:
        handle.last.revert()
    assert found.culprit.startswith("edit of ") and found.culprit.endswith("_layout_inference")
    assert found.edits == (found.culprit.removeprefix("edit of "),)
    assert found.steps[-2].name == "layout_inference" and found.steps[-2].word == "right"
    assert "- i32(1)" in found.diff()
    assert handle.bisect(m, n, x, y).edits == ()


@needs_compiler
def test_an_edit_that_does_not_compile_is_an_error_where_all_steps_are_right(tmp_path):
    m, n, x, y = summed()
    with tilus.tracing("html", tmp_path) as trace:
        Sums().bisect(m, n, x, y)
        working = trace.report.parent / "codegen.cpp"
    working.write_text(working.read_text().replace("float", "fload", 1))
    with tilus.tracing("html", tmp_path), pytest.raises(ToolchainError, match=f"{working} line"):
        Sums().bisect(m, n, x, y)


def test_arguments_that_are_gone_are_told():
    with pytest.raises(ArgumentError, match="are gone"):
        Sums().compile(7, 100, tilus.spec(float32, (7, 100)), tilus.spec(float32, (100,)), device="cpu")
        Sums().bisect()


@pytest.mark.parametrize("seed", [-1, None, "x", 1.5, True])
def test_a_seed_is_a_number(seed):
    with pytest.raises(ArgumentError, match="seed is a whole number from 0 on"):
        Sums().bisect(*summed(), seed=seed)


def test_a_reference_is_a_function():
    with pytest.raises(ArgumentError, match="against is a function that gives what is right, not 5"):
        Sums().bisect(*summed(), against=5)


def test_blocks_are_counted_or_all_of_them():
    with pytest.raises(ArgumentError, match="not 0"):
        Sums().bisect(*summed(), blocks=0)


@needs_compiler
def test_passes_that_run_again_are_numbered():
    names = [step.name for step in Sums().bisect(*summed()).steps]
    assert names.count("analyze_scalar") == names.count("analyze_scalar#2") == 1


def test_a_bisection_is_plain_data_too():
    m, n, x, y = summed()
    with tilus.passes(before("declare_to_let", wrong_passes.FromOnePass())):
        found = Sums().bisect(m, n, x, y).to_json()
    assert json.loads(json.dumps(found)) == found
    assert (found["outcome"], found["culprit"]) == ("found", "from_one")
    assert found["steps"] == [{"phase": "tile", "name": "from_one", "verdict": "WRONG"}]


# ----------------------------------------------------------------------------------------------------------- stations


def names_ahead(passes, defaults):
    return {each.name: "".join(each.name for each in each.ahead) for each in stations(passes, defaults)}


def named(text):
    """A pass for each letter; equal letters are one pass."""
    return [PASSES.setdefault(letter, lowir_passes.Pass(letter, lambda function: function)) for letter in text]


PASSES: dict[str, lowir_passes.Pass] = {}


@pytest.mark.parametrize(
    ("passes", "ahead"),
    [
        ("abc", {"a": "bc", "b": "c", "c": ""}),
        ("axbc", {"a": "bc", "x": "bc", "b": "c", "c": ""}),
        ("xabc", {"x": "abc", "a": "bc", "b": "c", "c": ""}),
        ("axc", {"a": "bc", "x": "c", "c": ""}),
        ("axyc", {"a": "bc", "x": "bc", "y": "c", "c": ""}),
        ("ac", {"a": "bc", "without b": "c", "c": ""}),
        ("xy", {"x": "abc", "y": ""}),
        ("", {"without a": "bc", "without b": "c", "without c": ""}),
    ],
)
def test_each_pass_knows_which_default_ones_would_follow(passes, ahead):
    assert names_ahead(named(passes), named("abc")) == ahead


def test_the_example_of_the_docstring_runs():
    (example,) = doctest.DocTestFinder().find(InstantiatedScript.bisect, "bisect", globs={})
    assert example.examples and doctest.DocTestRunner().run(example).failed == 0
