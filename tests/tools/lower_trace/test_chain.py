# SPDX-License-Identifier: Apache-2.0
"""A chain of passes, run once: what each of them changed."""

import doctest

import pytest

from tests.promises.kernels import description, scaling
from tilekit import drivers, textdiff, transforms
from tilekit.diag import TilekitError
from tilekit.ir.func import Function
from tilekit.ir.prog import Program
from tilekit.jit import observer
from tilekit.lowir import passes as hidet_passes
from tilekit.target import parse
from tilekit.tools import lower_trace as lt
from tilekit.tools.lower_trace import chain, switch
from tilekit.transforms import Pass
from tilekit.transforms.recorder import text_of

KEYS = ["name", "before_script", "after_script", "diff_lines", "insertions", "deletions", "changed"]


class Nothing(Pass):
    """Changes nothing."""


class Fails(Pass):
    """Dies."""

    def process_function(self, func: Function) -> Function:
        raise ZeroDivisionError("here")


@pytest.fixture(scope="module")
def program() -> Program:
    return scaling()._jit_instance_for(*description()).transpiled_programs[0]


@pytest.fixture(autouse=True)
def somewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_case_91_one_pass(program):
    (result,) = lt.lower_trace(program, transforms.analyze_scalar_pass())
    after = str(transforms.analyze_scalar_pass()(program))
    before = str(program)
    added, removed = textdiff.counts(before.split("\n"), after.split("\n"))
    assert list(result) == KEYS
    assert (result["name"], result["changed"]) == ("analyze_scalar", True)
    assert (result["before_script"], result["after_script"]) == (before, after)
    assert (result["insertions"], result["deletions"]) == (added, removed) and added > 0
    assert result["diff_lines"] == textdiff.unified(before.split("\n"), after.split("\n"), 3)


def test_case_91_a_list_of_passes(program):
    results = lt.lower_trace(program, [Nothing(), transforms.analyze_scalar_pass()])
    assert [(each["name"], each["changed"]) for each in results] == [("nothing", False), ("analyze_scalar", True)]
    assert (results[0]["diff_lines"], results[0]["insertions"], results[0]["deletions"]) == ([], 0, 0)
    assert results[0]["after_script"] == results[1]["before_script"] == str(program)


def test_case_91_passes_with_names(program):
    given = [("First", transforms.analyze_scalar_pass()), Nothing(), ("Again", lambda subject: subject)]
    assert [each["name"] for each in lt.lower_trace(program, given)] == ["First", "nothing", "Again"]
    assert [each["name"] for each in lt.lower_trace(program, ("Alone", Nothing()))] == ["Alone"]


def test_case_91_a_function_alone(program):
    given = lt.lower_trace(program.function, transforms.analyze_scalar_pass())
    assert given == lt.lower_trace(program, transforms.analyze_scalar_pass())


def test_case_91_hidet_ir(program):
    module = drivers.lower_program(drivers.optimize_program(program), parse("sm_80")).module
    results = lt.lower_trace(module, list(hidet_passes.PASSES))
    assert [each["name"] for each in results] == [each.name for each in hidet_passes.PASSES]
    assert results[-1]["after_script"] == text_of(drivers.optimize_ir_module(module))
    (function,) = module.functions.values()
    assert lt.lower_trace(function, list(hidet_passes.PASSES)) == results


def test_case_91_the_default_is_to_print(program, tmp_path, capfd):
    lt.lower_trace(program, transforms.analyze_scalar_pass())
    printed = capfd.readouterr()
    assert "lower_trace/analyze_scalar" in printed.err and printed.out == ""
    assert list(tmp_path.iterdir()) == []


def test_case_91_a_page_lies_where_one_says(program, tmp_path, capfd):
    lt.lower_trace(program, Nothing(), mode="html")
    lt.lower_trace(program, Nothing(), mode="html", html_path=tmp_path / "mine.html")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lower_trace_report.html", "mine.html"]
    assert capfd.readouterr().err == ""
    assert 'data-tk="z"' in (tmp_path / "mine.html").read_text()


def test_case_91_both(program, tmp_path, capfd):
    lt.lower_trace(program, transforms.analyze_scalar_pass(), mode="both")
    assert "lower_trace/analyze_scalar" in capfd.readouterr().err
    assert (tmp_path / "lower_trace_report.html").exists()


@pytest.mark.parametrize("context", [0, 1, 3, 100])
def test_case_91_context(program, context, capfd):
    (result,) = lt.lower_trace(program, transforms.analyze_scalar_pass(), context=context)
    unchanged = [line for line in result["diff_lines"] if line.startswith(" ")]
    assert len(unchanged) == min(2 * context, len(str(program).split("\n")))
    assert capfd.readouterr().err.splitlines()[-len(result["diff_lines"]) :] == result["diff_lines"]


def test_case_91_what_a_pass_raises_is_shown_and_raised(program, tmp_path, capfd):
    with pytest.raises(ZeroDivisionError, match="here"):
        lt.lower_trace(program, [Nothing(), Fails(), Nothing()], mode="both")
    printed = capfd.readouterr().err
    assert "FAILED  ZeroDivisionError: here" in printed and str(program) in printed
    assert (tmp_path / "lower_trace_report.html").exists()


def test_case_91_a_page_that_cannot_be_written_is_an_error_of_its_own_only(program, tmp_path):
    with pytest.raises(OSError, match="Is a directory"):
        lt.lower_trace(program, Nothing(), mode="html", html_path=tmp_path)
    with pytest.raises(ZeroDivisionError):
        lt.lower_trace(program, Fails(), mode="html", html_path=tmp_path)


@pytest.mark.parametrize("given", [{"context": "3"}, {"context": -1}, {"context": None}, {"html_path": 5}])
def test_what_is_no_argument_is_told_before_a_pass_runs(program, given):
    with pytest.raises(TilekitError, match=r"is a (number of lines|path)"):
        lt.lower_trace(program, Fails(), mode="both", **given)


@pytest.mark.parametrize("mode", ["htlm", "off", ""])
def test_case_91_a_mode_that_shows_nothing_is_an_error(mode, program):
    with pytest.raises(TilekitError, match="TK913"):
        lt.lower_trace(program, Nothing(), mode=mode)


def test_case_91_what_is_no_program_is_an_error():
    with pytest.raises(TilekitError, match="takes a program"):
        lt.lower_trace("def f(): ...", Nothing())  # pyright: ignore[reportArgumentType]


def test_case_91_a_pass_over_another_ir_is_an_error(program):
    with pytest.raises(TilekitError, match="simplify is a pass over another IR than that of the tile program"):
        lt.lower_trace(program, hidet_passes.PASSES[0])


def test_case_91_what_is_no_pass_is_said(program):
    for wrong, said in (
        (5, "5 is no pass"),
        (("five", 5), "5 is no pass"),
        ([Nothing], "make an object of it: Nothing()"),
        ([lambda prog: None, Nothing()], "than None, which the pass before it made"),
    ):
        with pytest.raises(TilekitError) as caught:
            lt.lower_trace(program, wrong)
        assert said in str(caught.value)


def test_case_91_nothing_is_hooked(program):
    lt.lower_trace(program, Nothing())
    assert observer.tracing() == 0


EXAMPLES = [chain.lower_trace, switch.tracing, switch.enable, switch.disable, switch.reset]


@pytest.mark.parametrize("documented", EXAMPLES, ids=lambda function: function.__name__)
def test_the_example_of_the_docstring_runs(documented):
    (example,) = doctest.DocTestFinder().find(documented, documented.__name__, globs={})
    assert example.examples and doctest.DocTestRunner().run(example).failed == 0
