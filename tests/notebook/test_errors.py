# SPDX-License-Identifier: Apache-2.0
"""What a person reads when a cell is wrong: the exact text, with the cell's number, the line and a caret."""

import re
import textwrap

import pytest

from tests.notebook.cells import CALL, VECTOR_ADD, Notebook
from tilekit.diag import KernelError
from tilekit.notebook import displays

DEFINE = f"%%tilus\n{VECTOR_ADD}"


def said(notebook: Notebook, cell: str) -> str:
    """What the failing cell says."""
    ran = notebook.run(cell)
    assert ran.error is not None
    return ran.stdout.rstrip("\n")


def expected(text: str) -> str:
    return textwrap.dedent(text).strip("\n")


def test_an_error_that_cannot_be_shown_is_whole_elsewhere():
    class Closed:
        def showtraceback(self, *_, **__):
            assert len(error._render_traceback_()) == 1
            raise BrokenPipeError

    error = KernelError("TK720", "race", notes=["thread 3 writes it"])
    with pytest.raises(BrokenPipeError):
        displays._show_error(Closed(), KernelError, error, None)
    assert any("thread 3 writes it" in line for line in error._render_traceback_())


def test_tilus_not_on_the_first_line(notebook: Notebook):
    assert said(notebook, "import torch\n\n%%tilus --target sm_80\nx = 1") == expected("""
        LanguageError TK801 in %%tilus, Cell In[2], line 3: %%tilus must be on the first line of its cell
            %%tilus --target sm_80
            ^^^^^^^^^^^^^^^^^^^^^^
          help: move it to the top, or split the cell in two
    """)
    assert said(notebook, "%%time\nimport torch\n%%tilus\nx = 1") == expected("""
        LanguageError TK801 in %%tilus, Cell In[3], line 3: %%tilus must be on the first line of its cell
            %%tilus
            ^^^^^^^
          help: move it to the top, or split the cell in two
    """)


def test_a_wrong_option(notebook: Notebook):
    assert said(notebook, "\n%%tilus --traget sm_80\nx = 1") == expected("""
        LanguageError TK802 in %%tilus, Cell In[2], line 2: %%tilus has no option --traget
            %%tilus --traget sm_80
                    ^^^^^^^^
          help: did you mean --target?
    """)
    assert said(notebook, "%%time\n%%tilus --target sm_99\nx = 1").partition("\n")[2].endswith(expected("""
        ConfigError TK904 in %%tilus, Cell In[3], line 2: there is no target 'sm_99'
            %%tilus --target sm_99
                             ^^^^^
          help: did you mean sm_89?
    """))  # fmt: skip


def test_args_without_a_kernel_to_compile(notebook: Notebook):
    assert said(notebook, '%%tilus --args "1"\nx = 1') == expected("""
        LanguageError TK802 in %%tilus, Cell In[2], line 1: --args compiles the one kernel that the cell defines, \
and this cell defines none
            %%tilus --args "1"
                           ^^^
    """)


def test_args_that_do_not_suit_the_kernel(notebook: Notebook):
    assert said(notebook, DEFINE.replace("%%tilus", '%%tilus --args "1, f16[1], f32[1], f32[1]"')) == expected("""
        ArgumentError TK623 in %%tilus, Cell In[2], line 1: VectorAdd: x_ptr is a float16 tensor, but the kernel \
takes float32
            %%tilus --args "1, f16[1], f32[1], f32[1]"
                           ^^^^^^^^^^^^^^^^^^^^^^^^^^^
          help: convert it, or declare the parameter as x_ptr: ~float16
    """)


def test_an_unknown_attribute(notebook: Notebook):
    assert said(notebook, DEFINE.replace("load_global(gy", "load_globl(gy")) == expected("""
        LanguageError TK102 in VectorAdd.__call__, Cell In[2], line 17: self has no load_globl
            y = self.load_globl(gy, offsets=[start], shape=[256])
                ^^^^^^^^^^^^^^^
          help: did you mean self.load_global?
    """)


def test_a_missing_annotation(notebook: Notebook):
    assert said(notebook, DEFINE.replace("n: int32", "n")) == expected("""
        LanguageError TK107 in VectorAdd.__call__, Cell In[2], line 9: parameter n has no type
            def __call__(self, n, x_ptr: ~float32, y_ptr: ~float32, z_ptr: ~float32):
                               ^
          help: annotate it: n: ~float16 for a tensor, n: int32 for a number passed at launch, n: int for a \
compile-time constant
    """)


def test_a_string_annotation(notebook: Notebook):
    assert said(notebook, DEFINE.replace("n: int32", "n: 'int32'")) == expected("""
        LanguageError TK107 in VectorAdd.__call__, Cell In[2], line 9: the type of parameter n is the string 'int32', \
not a type
            def __call__(self, n: 'int32', x_ptr: ~float32, y_ptr: ~float32, z_ptr: ~float32):
                               ^^^^^^^^^^
          help: remove the quotes, and `from __future__ import annotations`, which turns every type into a string
    """)


def test_python_that_the_language_does_not_have(notebook: Notebook):
    text = said(notebook, DEFINE + "        with open('x'): pass\n")
    first, line, caret, *_ = text.split("\n")
    assert first.startswith("LanguageError TK103 in VectorAdd.__call__, Cell In[2], line 19: ")
    assert (line, caret.strip("^ ")) == ("    with open('x'): pass", "")


def test_shapes_that_do_not_match(notebook: Notebook):
    text = said(
        notebook,
        DEFINE.replace("load_global(gy, offsets=[start], shape=[256]", "load_global(gy, offsets=[start], shape=[128]"),
    )
    first, line, caret, *_ = text.split("\n")
    assert "VectorAdd.__call__, Cell In[2], line 18: " in first
    assert "256" in first and "128" in first
    assert line.strip() == "self.store_global(gz, x + y, offsets=[start])"
    assert line[caret.index("^") : caret.rindex("^") + 1] == "x + y"


@pytest.mark.parametrize("warps", [0, 33, -1])
def test_warps_out_of_range(notebook: Notebook, warps):
    text = said(notebook, DEFINE.replace("self.attrs.warps = 2", f"self.attrs.warps = {warps}"))
    assert text.startswith("LanguageError TK108 in VectorAdd.__call__, Cell In[2], line 11: ")
    assert f"    self.attrs.warps = {warps}" in text.split("\n")


def test_a_syntax_error_has_the_line_of_the_cell(notebook: Notebook):
    text = said(notebook, "%%tilus\nx = 1\ny = (1 +\n")
    assert "Cell In[2], line 3" in text


def test_an_ordinary_error_has_the_line_of_the_cell(notebook: Notebook):
    text = said(notebook, "%%tilus\nx = 1\n\n1 / 0\n")
    assert "Cell In[2], line 4\n" in text
    assert "----> 4 1 / 0" in text
    assert "tilekit" not in text


def test_a_checked_cell_tells_both_lines_of_a_race(notebook: Notebook):
    one_place = VECTOR_ADD.replace("x + y, offsets=[start]", "x + y, offsets=[0]")
    text = said(notebook, f"%%tilus --check\n{one_place}{CALL}")
    assert text.startswith("KernelError TK720 in VectorAdd.__call__, Cell In[2], line "), text
    assert "z_ptr[" in text.splitlines()[0]
    assert text.count("writes it") == 2 and "lock_semaphore" in text
    ran = notebook.ran(f"%%tilus --check\n{VECTOR_ADD}{CALL}torch.equal(z, x + y)")
    assert ran.value is True
    assert re.search(r"checked all \d+ blocks, seed 0: nothing wrong", ran.text)


def test_a_kernel_reports_its_line_from_another_cell_also_after_its_cell_changed(notebook: Notebook):
    beyond = VECTOR_ADD.replace("gz = self.global_view(z_ptr, dtype=float32, shape=[n])",
                                "gz = self.global_view(z_ptr, dtype=float32, shape=[n + 500])")  # fmt: skip
    notebook.ran(f"%%tilus\n{beyond}{CALL.replace('add(n, x, y, z)', '')}")
    report = "KernelError TK702 in VectorAdd.__call__, Cell In[2], line 18: "
    assert said(notebook, "add(n, x, y, z)").startswith(report)
    notebook.ran(f"%%tilus\n# another first line\n\n\n{VECTOR_ADD}")
    assert said(notebook, "add(n, x, y, z)").startswith(report)


def test_an_access_out_of_bounds_is_placed_and_changes_nothing(notebook: Notebook):
    beyond = VECTOR_ADD.replace("gx = self.global_view(x_ptr, dtype=float32, shape=[n])",
                                "gx = self.global_view(x_ptr, dtype=float32, shape=[n + 500])")  # fmt: skip
    ran = notebook.run(f"%%tilus\n{beyond}{CALL.replace('torch.empty(n)', 'torch.full((n,), 7.0)')}")
    assert isinstance(ran.error, KernelError)
    first, line, caret, *rest = ran.stdout.split("\n")
    assert first.startswith("KernelError TK702 in VectorAdd.__call__, Cell In[2], line 16: ")
    assert "x_ptr" in first
    assert line == "    x = self.load_global(gx, offsets=[start], shape=[256])"
    assert caret.strip(" ^") == ""
    assert any("source.cu line" in note for note in rest)
    assert notebook.ran("(z == 7).all().item()").value is True
    assert notebook.ran("x.add_(1); add.last.launches").value == 0


def test_a_failed_cell_still_shows_what_it_compiled(notebook: Notebook):
    ran = notebook.run(f"%%tilus\n{VECTOR_ADD}{CALL}1 / 0\n")
    assert ran.text.startswith("VectorAdd · sm_90a · CPU simulator")
