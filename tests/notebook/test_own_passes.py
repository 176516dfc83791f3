# SPDX-License-Identifier: Apache-2.0
"""`%%tilus_pass` cells, run one after another in a shell of this process."""

import pathlib
import random

import pytest

from tests.notebook.cells import CALL, VECTOR_ADD, Notebook
from tests.notebook.test_completion import completions
from tilekit.diag import LanguageError, PassError
from tilekit.jit import session
from tilekit.notebook import own_passes
from tilekit.notebook.edits import NotebookEdits
from tilekit.notebook.panels.desk import Desk

RUN = f"%%tilus\n{VECTOR_ADD}{CALL}"
AGAIN = "%%tilus\nz.zero_()\nadd(n, x, y, z)\nz"


def pass_cell(body: str, line: str = "%%tilus_pass --after copy_elimination") -> str:
    """A pass that makes something else of the sum; its seed keeps the tests out of each other's cache."""
    return f"""{line}
SEED = {random.getrandbits(60)}


class Once(IRRewriter):
    def visit_AddInst(self, inst):
        {body}


class OncePass(Pass):
    seed = SEED

    def process_function(self, func):
        return Once().visit(func)
"""


TWICE_X = pass_cell("return inst.replace(y=inst.x)")


@pytest.fixture
def sums(notebook: Notebook):
    """A notebook whose kernel has run and is in the cache; the pipeline is the default one again in the end."""
    notebook.ran(RUN)
    yield notebook
    session.set_pipeline_changes(())


def test_a_pass_fires_on_a_kernel_that_was_cached_before_it(sums: Notebook):
    said = sums.ran(TWICE_X).stdout
    assert said == "once runs after copy_elimination in every compile from now on\n"
    ran = sums.ran(AGAIN)
    x, y = sums.shell.user_ns["x"], sums.shell.user_ns["y"]
    assert (ran.value == x + x).all()
    assert "custom passes: once after copy_elimination" in ran.text
    # also where the kernel is new to this process, and what it was without the pass is on disk
    ran = sums.ran(RUN + "(z == x + x).all().item()")
    assert ran.value is True
    assert "cached" in ran.text, "with the pass it is in the cache by now, too"
    sums.ran("%tilus_pass --off")
    ran = sums.ran(AGAIN)
    x, y = sums.shell.user_ns["x"], sums.shell.user_ns["y"]
    assert (ran.value == x + y).all()
    assert "custom passes" not in ran.text


def test_running_the_cell_again_replaces_the_pass(sums: Notebook):
    sums.ran(TWICE_X)
    sums.ran(AGAIN)
    said = sums.ran(pass_cell("return inst.replace(x=inst.y)")).stdout
    assert said.endswith("; it replaces the one of this name\n")
    assert len(session.standing_changes()) == 1
    assert (sums.ran(AGAIN).value == 2 * sums.shell.user_ns["y"]).all()


def test_a_helper_from_another_cell_counts(sums: Notebook):
    sums.ran("def chosen(inst):\n    return inst.replace(y=inst.x)")
    sums.ran(pass_cell("return chosen(inst)"))
    assert (sums.ran(AGAIN).value == 2 * sums.shell.user_ns["x"]).all()
    sums.ran("def chosen(inst):\n    return inst.replace(x=inst.y)")
    assert (sums.ran(AGAIN).value == 2 * sums.shell.user_ns["y"]).all()


def test_a_pass_that_raises_shows_the_line_of_its_own_cell(sums: Notebook):
    cell = pass_cell("return inst.there_is_no_such_field")
    sums.ran(cell)
    ran = sums.run(AGAIN)
    assert isinstance(ran.error, PassError)
    line = cell.splitlines().index("        return inst.there_is_no_such_field") + 1
    assert f"PassError TK410 in Once.visit_AddInst, Cell In[3], line {line}: the pass once failed" in ran.stdout
    assert "    return inst.there_is_no_such_field\n           ^^^^" in ran.stdout


def test_a_pass_that_breaks_the_program_shows_its_method_and_the_line_of_the_kernel(sums: Notebook):
    cell = pass_cell("return None")
    sums.ran(cell)
    ran = sums.run(AGAIN)
    line = cell.splitlines().index("    def visit_AddInst(self, inst):") + 1
    assert (
        f"PassError TK411 in Once.visit_AddInst, Cell In[3], line {line}: the pass once breaks the program"
        in ran.stdout
    )
    assert "note: in the kernel it is this line (Cell In[2], line 18)" in ran.stdout
    assert "self.store_global(gz, x + y, offsets=[start])" in ran.stdout


@pytest.mark.parametrize("above", ["\n\n", "%%capture\n"])
def test_lines_are_counted_with_those_above_the_magic(sums: Notebook, above):
    cell = above + pass_cell("return inst.there_is_no_such_field")
    sums.ran(cell)
    error = sums.run(AGAIN).error
    assert isinstance(error, PassError)
    place = error.sources.locate(error.diagnostic.at)
    assert (place.display_name, place.text_line) == ("Cell In[3]", "        return inst.there_is_no_such_field")
    assert cell.splitlines()[place.line - 1] == place.text_line


def test_the_names_of_the_compiler_are_there_and_those_of_the_person_stay(notebook: Notebook):
    notebook.ran("Counter = 3")
    ran = notebook.ran(
        "%%tilus_pass --after layout_inference\n"
        "class AllPass(Pass):\n"
        "    def process_function(self, func: Function) -> Function:\n"
        "        made = Counter, CastInst, SeqStmt, float32, collect_instructions, scalar, Var, Expr, Program\n"
        "        return IRRewriter().visit(func)\n"
    )
    session.set_pipeline_changes(())
    assert ran.stdout == "all runs after layout_inference in every compile from now on\n"
    names = notebook.shell.user_ns
    assert names["Counter"] == 3
    assert names["CastInst"].__name__ == "CastInst"
    assert "ForStmt" not in names, "what the cell does not name"


def test_the_pipeline_is_listed(sums: Notebook):
    sums.ran(TWICE_X)
    listed = sums.ran("%tilus_pass --list").stdout.splitlines()
    assert listed[3:6] == ["  copy_elimination", "* once", "  dead_code_elimination"]
    assert listed[-1] == "changed: once after copy_elimination"
    assert sums.ran("%tilus_pass").stdout.splitlines() == listed


def test_passes_are_taken_out_and_left_out(sums: Notebook):
    sums.ran(TWICE_X)
    assert sums.ran("%tilus_pass --without bound_aware_simplify").stdout.startswith("bound_aware_simplify is left out")
    assert sums.ran("%tilus_pass --off once").stdout == "no longer: once after copy_elimination\n"
    assert sums.ran("%tilus_pass --off bound_aware_simplify").stdout == "no longer: without bound_aware_simplify\n"
    assert session.standing_changes() == ()
    assert sums.ran("%tilus_pass --off").stdout == "the pipeline is the default one\n"
    sums.ran(TWICE_X)
    cell = TWICE_X.replace("--after copy_elimination", "--after copy_elimination --off")
    assert sums.ran(cell).stdout == "no longer: once after copy_elimination\n"


def test_help_says_what_there_is(notebook: Notebook):
    assert notebook.ran("%tilus_pass --help").stdout.strip() == own_passes.HELP.strip()
    assert notebook.ran("%%tilus_pass --help\nnot even Python").stdout.strip() == own_passes.HELP.strip()
    for option in own_passes.OPTIONS:
        assert f"  {option}" in own_passes.HELP


@pytest.mark.parametrize(
    ("cell", "code", "said", "help"),
    [
        ("%tilus_pass --ofter x", "TK802", "has no option --ofter", "did you mean --after?"),
        ("%tilus_pass --after", "TK802", "--after needs the name of a pass", None),
        ("%tilus_pass --after x", "TK802", "--after is for a cell that defines a pass", None),
        ("%%tilus_pass\nclass OnePass(Pass): pass", "TK802", "where shall one run?", "say --after layout_inference"),
        ("%%tilus_pass --after x --before y\n1", "TK802", "stands in one place", "--after already"),
        ("%%tilus_pass --after x\n1", "TK803", "it defines none", "a pass is a class"),
        ("%%tilus_pass --after x\nclass A(Pass): pass\nclass B(Pass): pass", "TK803", "it defines A, B", "a class"),
        ("%%tilus_pass --after x\nclass A(Pass):\n def __init__(self, n): pass", "TK803", "A() fails", "defaults"),
        ("%%tilus_pass --after lower_asume\nclass A(Pass): pass", "TK412", "called lower_asume", "lower_assume?"),
        ("%tilus_pass --off once", "TK412", "no change to the pipeline is called once", "there is none"),
        ("%tilus_pass --without once", "TK412", "no pass of the pipeline is called once", None),
    ],
)
def test_what_is_wrong_with_the_line_is_said_at_the_line(notebook: Notebook, cell, code, said, help):
    # IPython takes blank lines above the first line of Python away, and counts without them
    ran = notebook.run(f"\n{cell}" if cell.startswith("%%") else f"x = 1\n{cell}")
    assert isinstance(ran.error, (LanguageError, PassError))
    assert ran.error.code == code
    assert said in ran.error.message
    assert (help or "") in (ran.error.diagnostic.help or "")
    magic = cell.split()[0]
    assert f"{code} in {magic}, Cell In[2], line 2: " in ran.stdout
    assert f"\n    {cell.splitlines()[0]}\n" in ran.stdout
    assert session.standing_changes() == ()


def test_what_the_cell_raises_is_its_own(notebook: Notebook):
    ran = notebook.run("%%tilus_pass --after layout_inference\nx = 1\nx / 0")
    assert isinstance(ran.error, ZeroDivisionError)
    assert "Cell In[2], line 3" in ran.stdout
    assert "----> 3 x / 0" in ran.stdout
    assert "tilekit/notebook" not in ran.stdout, "frames of ours are hidden"


@pytest.mark.parametrize(("line", "column"), [("x x", 0), ("def f(a)", 8), ("y = 'abc", 4), ("y = (1,", 4)])
@pytest.mark.parametrize("above", ["", "\n", "\n\n"])
def test_what_does_not_parse_is_shown_at_its_line(notebook: Notebook, line, column, above):
    ran = notebook.run(f"{above}%%tilus_pass --after layout_inference\nx = 1\n{line}\n")
    assert isinstance(ran.error, LanguageError)
    assert f"TK804 in tilus_pass, Cell In[2], line {3 + len(above)}: the cell does not parse: " in ran.stdout
    shown = ran.stdout.splitlines()
    at = shown.index(f"    {line}")
    assert shown[at + 1].index("^") >= 4 + column
    assert "Traceback" not in ran.stdout


def test_a_base_of_the_pass_is_no_pass_of_its_own(notebook: Notebook):
    cell = "%%tilus_pass --after lower_assume\nclass Base(Pass): pass\nclass TwoPass(Base): pass"
    assert notebook.ran(cell).stdout.startswith("two runs after lower_assume")
    session.set_pipeline_changes(())


def test_options_and_passes_are_completed(notebook: Notebook):
    assert completions(notebook, "%%tilus_pass --") == sorted(own_passes.OPTIONS)
    assert completions(notebook, "%%tilus_pass --after lo") == ["lower_assume", "lower_load_store"]
    assert completions(notebook, "%tilus_pass --without decl") == ["declare_to_let"]


def test_the_passes_of_the_next_kernel_open_at_what_the_pass_changed(sums: Notebook):
    sums.ran(TWICE_X)
    sums.ran(AGAIN)
    kernel = sums.shell.user_ns["add"].last
    desk = Desk([kernel], NotebookEdits())
    desk.show_own_passes()
    assert desk.bar.shown == "passes"
    panel = desk.bar.panel("passes", 0)
    own = kernel.trace.step("once")
    assert panel.view == f"p={kernel.trace.steps.index(own)}"


def test_an_edit_is_of_the_kernel_with_the_passes_that_it_was_made_of(sums: Notebook):
    plain = sums.shell.user_ns["add"].last
    plain.recompile(plain.source.replace("x[r] + y[r]", "x[r] - y[r]"))
    sums.shell.tilekit.edits.store(plain, plain.source, plain.generated.source)
    sums.ran(TWICE_X)
    ran = sums.ran(AGAIN)
    x, y = sums.shell.user_ns["x"], sums.shell.user_ns["y"]
    assert (ran.value == x + x).all()
    assert "CONFLICT" not in ran.text
    assert "not edited, for the edit is of another kernel of VectorAdd" in ran.text
    sums.ran("%tilus_pass --off")
    ran = sums.ran(AGAIN)
    assert (ran.value == x - y).all()
    assert "PATCHED" in ran.text
    plain.revert()
    sums.shell.tilekit.edits.revert(plain)


def test_the_class_of_the_page_on_passes_is_a_cell(sums: Notebook):
    page = (pathlib.Path(__file__).parents[2] / "docs" / "adding-a-pass.md").read_text()
    block = page.partition("```python\n")[2].partition("```")[0]
    said = sums.ran(f"%%tilus_pass --after copy_elimination\n{block}").stdout
    assert said == "fold_casts runs after copy_elimination in every compile from now on\n"
    sums.ran(AGAIN)


def test_the_extension_takes_its_passes_with_it(sums: Notebook):
    sums.ran(TWICE_X)
    sums.ran("%unload_ext tilekit")
    assert session.standing_changes() == ()
    assert "tilus_pass" not in sums.shell.magics_manager.magics["cell"]
    sums.ran("%load_ext tilekit")
