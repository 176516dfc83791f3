# SPDX-License-Identifier: Apache-2.0
"""A person's passes among the default ones: where they stand, what is said when they fail, and what they note."""

import inspect
import random
from dataclasses import dataclass

import pytest
from hypothesis import given, settings

from tests import filecheck
from tests.ir.strategies import programs
from tilekit import drivers, target, textdiff
from tilekit.diag import PassError
from tilekit.events import Stage
from tilekit.ir.functors import IRRewriter
from tilekit.ir.instructions.elementwise import AddInst, MulInst
from tilekit.ir.stmt import InstStmt, SeqStmt
from tilekit.ir.text import parser
from tilekit.lowir import scalar
from tilekit.transforms import Pass, Pipeline, after, before, get_default_passes, replace, run_passes, without
from tilekit.transforms.custom import Custom
from tilekit.transforms.recorder import Recorder

TEXT = """
@kernel(grid=[i32(1), i32(1), i32(1)], warps=1)
def example(p: ~f32, q: ~f32, n: i32):
    g: Global[f32[i32(32)]] = global_view(ptr=p)
    h: Global[f32[i32(32)]] = global_view(ptr=q)
    a: f32[32] = load_global(g, offsets=[i32(0)], dims=[0])
    b: f32[32] = add(a, a)
    for i in range(n + i32(1)):
        b = mul(b, a)
    store_global(h, b, offsets=[i32(0)], dims=[0])
"""


class NothingPass(Pass):
    pass


class OtherPass(Pass):
    pass


class _Swap(IRRewriter):
    """Sums become products, and products sums of two lines."""

    def visit_AddInst(self, inst):
        return MulInst(inst.output, inst.x, inst.y)

    def visit_MulInst(self, inst):
        made = AddInst(inst.output, inst.x, inst.y)
        return SeqStmt((InstStmt(made), InstStmt(made.replace(x=inst.y))))

    def visit_Expr(self, expr):
        is_sum = scalar.free_vars(expr) and not isinstance(expr, scalar.Var)
        return scalar.int32(3) if is_sum else expr


class SwapPass(Pass):
    def process_function(self, func):
        return _Swap().visit(func)


class ByHandPass(Pass):
    """Drops the last statement without a rewriter."""

    def process_program(self, prog, sink=None):
        for func in prog:
            prog = prog.with_function(func.with_body(SeqStmt(func.body.seq[:-1])))
        return prog


class _Fail(IRRewriter):
    def visit_AddInst(self, inst):
        return self.helper(inst)

    def helper(self, inst):
        return inst.there_is_no_such_field


class FailPass(Pass):
    def process_function(self, func):
        return _Fail().visit(func)


class _Drop(IRRewriter):
    def visit_LoadGlobalInst(self, inst):
        return None


class DropPass(Pass):
    def process_function(self, func):
        return _Drop().visit(func)


class NoReturnPass(Pass):
    def process_function(self, func):
        pass


@dataclass(frozen=True)
class Numbered(Pass):
    number: int

    @property
    def name(self):
        return f"numbered_{self.number}"


NAMES = [each.name for each in get_default_passes()]


def pipeline(*changes):
    return [each.name for each in Pipeline(changes).applied_to(get_default_passes())]


def run(own):
    """What the recorder has of a pass, and the program that it made."""
    recorder = Recorder()
    made = run_passes(
        parser.parse_program(TEXT),
        Pipeline((before("declare_to_let", own),)).applied_to(get_default_passes()[:1]),
        recorder,
    )
    return recorder.step(own.name), made


# ------------------------------------------------------------------------------------------------------ the pipeline


def test_a_pass_stands_where_it_is_put():
    one = random.choice(NAMES[:4])
    at = NAMES.index(one)
    assert pipeline(after(one, NothingPass())) == [*NAMES[: at + 1], "nothing", *NAMES[at + 1 :]]
    assert pipeline(before(one, NothingPass())) == [*NAMES[:at], "nothing", *NAMES[at:]]
    assert pipeline(replace(one, NothingPass())) == [*NAMES[:at], "nothing", *NAMES[at + 1 :]]
    assert pipeline(without(one)) == [*NAMES[:at], *NAMES[at + 1 :]]


def test_a_name_means_every_pass_that_has_it_and_a_number_one_of_them():
    count = NAMES.count("dead_code_elimination")
    assert count == 2
    assert pipeline(after("dead_code_elimination", NothingPass())).count("nothing") == count
    assert "dead_code_elimination" not in pipeline(without("dead_code_elimination"))
    left = pipeline(without("dead_code_elimination#2"))
    assert left.index("dead_code_elimination") == NAMES.index("dead_code_elimination")
    assert left.count("dead_code_elimination") == 1


def test_changes_apply_in_their_order():
    first, second, third = (Numbered(number) for number in random.sample(range(100), 3))
    found = pipeline(after("lower_assume", first), after(first.name, second), after("lower_assume", third))
    at = found.index("lower_assume")
    assert found[at + 1 : at + 4] == [first.name, second.name, third.name]
    found = pipeline(before("lower_assume", first), before("lower_assume", second))
    assert found[found.index("lower_assume") - 2 :][:2] == [first.name, second.name]


def test_without_changes_the_passes_are_the_very_same_ones():
    passes = get_default_passes()
    assert Pipeline(()).applied_to(passes) == passes


UNKNOWN = "no pass of the pipeline is called layout_inferense"
REFUSED = {
    "misspelled": (lambda: after("layout_inferense", NothingPass()), UNKNOWN, "did you mean layout_inference?"),
    "unknown": (lambda: without("z"), "no pass of the pipeline is called z", "the passes are declare_to_let, "),
    "too often": (lambda: without("lower_assume#2"), "no lower_assume#2 in the pipeline: lower_assume runs once", ""),
    "class": (lambda: after("lower_assume", NothingPass), "could run after lower_assume", "make an object of it: Noth"),
    "no name": (lambda: without(3), "3 is no name of a pass", '"layout_inference"'),
    "no change": (lambda: NothingPass(), "NothingPass object", "say where a pass comes in: after("),
    "number": (lambda: before("z", 3), "3 is no pass that could run before z", "a class from tilekit.transforms.Pass"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_change_that_cannot_be_made_is_refused(name):
    change, said, help = REFUSED[name]
    with pytest.raises(PassError) as caught:
        Pipeline((change(),)).applied_to(get_default_passes())
    assert caught.value.code == "TK412"
    assert said in caught.value.message
    assert help in (caught.value.diagnostic.help or "")


def test_changes_say_what_they_are():
    changes = after("layout_inference", NothingPass()), replace("lower_assume", OtherPass()), without("analyze_scalar")
    assert str(Pipeline(changes)) == (
        "nothing after layout_inference, other in place of lower_assume, without analyze_scalar"
    )


def test_source_is_generated_with_the_pipeline():
    prog = parser.parse_program(TEXT)
    plain = drivers.generate_source(prog, target.DEFAULT)[0].text
    swapped = drivers.generate_source(prog, target.DEFAULT, pipeline=Pipeline((after("lower_assume", SwapPass()),)))[
        0
    ].text
    assert plain != swapped
    assert drivers.generate_source(prog, target.DEFAULT, pipeline=Pipeline(()))[0].text == plain


# ------------------------------------------------------------------------------------------------------------ errors


def line_of(function, part):
    lines, start = inspect.getsourcelines(function)
    return next(start + number for number, line in enumerate(lines) if part in line)


def test_a_pass_that_raises_is_placed_in_its_own_line():
    with pytest.raises(PassError) as caught:
        run(FailPass())
    error = caught.value
    assert error.code == "TK410"
    assert error.message == (
        "the pass fail failed: AttributeError: 'AddInst' object has no attribute 'there_is_no_such_field'"
    )
    assert error.diagnostic.at.function == "_Fail.helper"
    place = error.sources.locate(error.diagnostic.at)
    assert place.line == line_of(_Fail, "there_is_no_such_field")
    assert "return inst.there_is_no_such_field" in error.to_text()
    assert isinstance(error.__cause__, AttributeError)
    assert error.data == {"pass": "fail", "method": "_Fail.helper"}


class RenamePass(Pass):
    def process_function(self, func):
        return func.replace(name="another")


class FewerPass(Pass):
    def process_function(self, func):
        return func.replace(params=func.params[:-1], body=func.body.replace(seq=()))


@pytest.mark.parametrize("own", [RenamePass(), FewerPass()])
def test_a_pass_that_makes_a_program_which_nobody_can_call_is_placed_at_itself(own):
    with pytest.raises(PassError) as caught:
        Custom(own)(parser.parse_program(TEXT))
    assert caught.value.code == "TK411" and "cannot be called in place of" in caught.value.message
    assert type(own).__name__ in str(caught.value.diagnostic.at)


def test_a_pass_that_breaks_the_program_is_placed_at_the_method_that_did_it():
    with pytest.raises(PassError) as caught:
        run(DropPass())
    error = caught.value
    assert error.code == "TK411"
    assert error.message == "the pass drop breaks the program: a is used before it is defined"
    assert error.diagnostic.at.function == "_Drop.visit_LoadGlobalInst"
    assert error.sources.locate(error.diagnostic.at).line == line_of(_Drop, "def visit_LoadGlobalInst")


def test_the_method_at_fault_is_told_from_those_that_did_well():
    class Renew(IRRewriter):
        def visit_MulInst(self, inst):
            return inst.replace(y=inst.y.replace(name="stranger"))

        def visit_AddInst(self, inst):
            return MulInst(inst.output, inst.x, inst.y)

    class RenewPass(Pass):
        def process_function(self, func):
            return Renew().visit(func)

    with pytest.raises(PassError) as caught:
        run(RenewPass())
    assert caught.value.diagnostic.at.function.endswith("Renew.visit_MulInst")
    assert caught.value.data["method"].endswith("Renew.visit_MulInst")


def test_a_pass_that_returns_nothing_says_so():
    with pytest.raises(PassError) as caught:
        run(NoReturnPass())
    assert caught.value.message == (
        "the pass no_return failed: TypeError: process_function returned None, not a Function"
    )
    assert caught.value.diagnostic.at.function == "NoReturnPass.process_function"


def test_a_step_that_failed_says_that_it_is_a_persons():
    recorder = Recorder()
    with pytest.raises(PassError):
        run_passes(
            parser.parse_program(TEXT),
            Pipeline((before("declare_to_let", FailPass()),)).applied_to(get_default_passes()),
            recorder,
        )
    (step,) = recorder.steps
    assert step.error.code == "TK410"
    assert step.notes["custom"]["class"] == "FailPass"
    assert step.notes["custom"]["line"] == line_of(FailPass, "def process_function")


def test_an_interrupt_goes_through():
    class StopPass(Pass):
        def process_function(self, func):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(StopPass())


def test_a_default_pass_is_run_as_it_is():
    custom = Pipeline((before("declare_to_let", NothingPass()),)).applied_to(get_default_passes())
    assert [type(each).__name__ for each in custom][:2] == ["Custom", "DeclareToLetPass"]


# ------------------------------------------------------------------------------------------------------------- notes


def told(step):
    """The lines that a pass changed, each with the methods that it is said of."""
    visits = step.notes["visits"]
    methods = [method["name"] for method in visits["methods"]]
    return [
        sorted((text.split("\n")[line].strip(), methods[of]) for line, of in visits[side])
        for side, text in (("before", step.before_text), ("after", step.after_text))
    ]


def test_each_line_is_said_of_the_visit_that_changed_it():
    step, _ = run(SwapPass())
    assert told(step) == [
        [
            ("b = mul(b, a)", "visit_MulInst"),
            ("b: f32[32] = add(a, a)", "visit_AddInst"),
            ("for i in range(n + i32(1)):", "visit_Expr"),
        ],
        [
            ("b = add(a, a)", "visit_MulInst"),
            ("b = add(b, a)", "visit_MulInst"),
            ("b: f32[32] = mul(a, a)", "visit_AddInst"),
            ("for i in range(i32(3)):", "visit_Expr"),
        ],
    ]
    methods = {method["name"]: method for method in step.notes["visits"]["methods"]}
    assert methods["visit_AddInst"]["of"] == "_Swap"
    assert methods["visit_AddInst"]["line"] == line_of(_Swap, "def visit_AddInst")


def test_a_heading_of_the_diff_names_the_methods():
    step, _ = run(SwapPass())
    (heading,) = (line for line in step.diff().splitlines() if line.startswith("@@"))
    assert set(heading.rpartition("@@ ")[2].split()) == {"visit_AddInst", "visit_Expr", "visit_MulInst"}


def test_what_no_visit_changed_is_said_of_the_pass():
    step, _ = run(ByHandPass())
    assert told(step) == [[("store_global(h, b, offsets=[i32(0)], dims=[0])", "process_program")], []]


@settings(max_examples=15)
@given(programs())
def test_every_change_to_a_random_program_is_said_of_a_method(prog):
    recorder = Recorder()
    watched = Pipeline(tuple(replace(name, each) for name, each in DEFAULT.items())).applied_to(get_default_passes())
    made = run_passes(prog, watched, recorder)
    assert str(made) == str(run_passes(prog, get_default_passes()))
    for step in recorder.steps:
        before, after_ = step.before_text.split("\n"), step.after_text.split("\n")
        visits = step.notes["visits"]
        gone, came = ({line for line, _ in visits[side]} for side in ("before", "after"))
        for hunk in textdiff.hunks(before, after_):
            assert gone & set(hunk.removed) or came & set(hunk.added)


DEFAULT = {each.name: each for each in get_default_passes()}


def test_a_pass_that_changes_nothing_returns_its_argument_and_says_of_no_line():
    step, _ = run(NothingPass())
    assert step.before is step.after
    assert step.notes["visits"] == {"methods": [], "before": [], "after": []}
    assert str(step.notes["custom"]["pass"]) == "nothing"


def test_only_the_passes_of_a_person_are_watched():
    recorder = Recorder()
    run_passes(
        parser.parse_program(TEXT),
        Pipeline((after("lower_assume", SwapPass()),)).applied_to(get_default_passes()),
        recorder,
    )
    tile = [step for step in recorder.steps if step.stage is Stage.TILE]
    assert [step.name for step in tile if "visits" in step.notes] == ["swap"]
    assert IRRewriter()._watcher is None


# ------------------------------------------------------------------------------------------------------------- tests


def test_a_step_is_saved_as_a_test_that_passes_and_needs_the_pass(tmp_path):
    step, _ = run(SwapPass())
    file = step.save_test(tmp_path / "swap.tile")
    assert step.save_test(file) == file, "the same case is not added again"
    (case,) = filecheck.cases_of("swap", file.read_text())
    case.run({"swap": SwapPass()})
    with pytest.raises(AssertionError):
        case.run({"swap": lambda prog: prog})


def test_another_case_is_added(tmp_path):
    file = tmp_path / "passes.tile"
    run(SwapPass())[0].save_test(file)
    run(ByHandPass())[0].save_test(file)
    first, second = filecheck.cases_of("passes", file.read_text())
    first.run({"swap": SwapPass()})
    second.run({"by_hand": ByHandPass()})


def test_what_is_no_tile_pass_is_no_test(tmp_path):
    recorder = Recorder()
    drivers.generate_source(parser.parse_program(TEXT), target.DEFAULT, [recorder])
    with pytest.raises(PassError) as caught:
        recorder.step("generate_ir_module").save_test(tmp_path / "x.tile")
    assert caught.value.code == "TK413"
    with pytest.raises(PassError) as caught:
        recorder.step("layout_inferense")
    assert caught.value.code == "TK414"
    assert caught.value.diagnostic.help == "did you mean layout_inference?"
