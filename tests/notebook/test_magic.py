# SPDX-License-Identifier: Apache-2.0
"""`%%tilus` cells, run one after another in a shell of this process."""

import re
from dataclasses import dataclass

import pytest

from tests.notebook.cells import CALL, VECTOR_ADD, Notebook
from tilekit import config, target
from tilekit.diag import KernelError, LanguageError, sources
from tilekit.jit import observer, session
from tilekit.jit.instantiated import InstantiatedScript
from tilekit.jit.machine import Machine
from tilekit.notebook import static
from tilekit.notebook.running import PlainCells
from tilekit.notebook.tuning import TuningPlots
from tilekit.runtime import device, launch_cuda
from tilekit.runtime.tensors import Device, DeviceKind

DEFINE = f"%%tilus\n{VECTOR_ADD}"
RUN = f"%%tilus\n{VECTOR_ADD}{CALL}"
SUMMARY = re.compile(
    r"VectorAdd · sm_90a · CPU simulator · \d+ passes changed it · 0 bytes shared"
    r" · (cached|compiled in [\d.]+ m?s) · ran in [\d.]+ (µs|ms)"
)


def test_a_kernel_runs_and_is_shown_in_one_line(notebook: Notebook):
    ran = notebook.ran(RUN + "torch.equal(z, x + y)")
    assert ran.value is True
    assert SUMMARY.fullmatch(ran.text), ran.text


def test_launches_in_a_loop_add_nothing(notebook: Notebook):
    notebook.ran(RUN)
    ran = notebook.ran("%%tilus\nfor _ in range(20):\n    add(n, x, y, z)")
    assert len(ran.shown) == 1
    assert len(ran.text.splitlines()) == 1
    assert ran.shown[0].updates <= 1


def test_an_edit_shows_on_the_line_and_a_call_of_another_kernel_says_that_it_is_not_edited(notebook: Notebook):
    kernel = notebook.ran(RUN + "add").value.last
    kernel.recompile(kernel.source.replace("x[r] + y[r]", "x[r] - y[r]"))
    assert "PATCHED" in notebook.ran("%%tilus\nadd(n, x, y, z)").text
    ran = notebook.ran("%%tilus\na, b, c = (torch.zeros(1024) for _ in range(3))\nadd(1024, a, b, c)")
    line, remark = ran.text.splitlines()
    assert SUMMARY.fullmatch(line), "this one runs as it was generated"
    assert remark == "VectorAdd: not edited, for the edit is of another kernel of VectorAdd"
    kernel.revert()
    assert "not edited" not in notebook.ran("%%tilus\nadd(1024, a, b, c)").text


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("add.check(n, x, y, z)", "checked all 4 blocks, seed 0: nothing wrong"),
        ("tilekit.cache.explain(add, n, x, y, z)", "specializations: hit; programs: hit"),
        ("tilekit.cache.ls()", "specializations, "),
    ],
)
def test_what_says_itself_in_words_does_so_as_the_value_of_a_cell(notebook: Notebook, value: str, sentence: str):
    notebook.ran(f"{RUN}import tilekit")
    shown = notebook.ran(value).stdout
    assert sentence in shown and "(" not in shown.splitlines()[0].partition(":")[2]


def test_a_cell_that_uses_no_kernel_shows_nothing(notebook: Notebook):
    assert notebook.ran("%%tilus\nx = 1\n").shown == []


def test_kernels_used_outside_of_tilus_cells_show_nothing(notebook: Notebook):
    notebook.ran(RUN)
    ran = notebook.ran("z.zero_(); add(n, x, y, z); torch.equal(z, x + y)")
    assert ran.value is True
    assert ran.shown == []


def test_a_driver_that_is_too_old_is_told_of_once(notebook: Notebook, monkeypatch: pytest.MonkeyPatch):
    sentence = device.too_old((12, 4), "550.54.15")
    monkeypatch.setattr(device, "survey", lambda: device.Survey((12, 4), problem=sentence))
    notebook.ran("%reload_ext tilekit")
    line, remark = notebook.ran(RUN).text.splitlines()
    assert SUMMARY.fullmatch(line)
    assert remark == (
        "the NVIDIA driver 550.54.15 speaks CUDA 12.4 and tilekit needs CUDA 13.0, driver r580 or newer: "
        "kernels run on the CPU"
    )
    assert SUMMARY.fullmatch(notebook.ran(RUN).text)


@dataclass
class OnGpu:
    """A kernel that was launched on a GPU, as far as a cell looks at it."""

    number: int
    machine: Machine
    script: str = "Fake"
    launches: int = 1
    patched: bool = False

    @property
    def identity(self) -> observer.Identity:
        return observer.Identity(self.script, f"on {self.machine.device}", self.machine.target.name, "cuda")

    def facts(self) -> list[str]:
        return [self.script, self.machine.target.name, str(self.machine.device)]

    def summary(self) -> str:
        return " · ".join(self.facts())


@pytest.fixture
def launched(notebook: Notebook, monkeypatch: pytest.MonkeyPatch):
    """In a cell, `launched(1)` is a launch on GPU 1; what was synchronized is noted."""
    waited: list[int] = []
    monkeypatch.setattr(launch_cuda, "synchronize", waited.append)
    monkeypatch.setattr(static, "kernel", static.kernel_line)

    def launch(gpu: int) -> None:
        kernel = OnGpu(-gpu, Machine(Device(DeviceKind.CUDA, gpu), target.DEFAULT, config.resolve()))
        for watcher in observer.observers():
            watcher.launched(kernel)

    notebook.shell.user_ns.update(launched=launch, waited=waited)
    return waited


def test_a_cell_waits_for_the_gpus_that_it_used(notebook: Notebook, launched):
    ran = notebook.ran("%%tilus\nfor gpu in (1, 0, 1): launched(gpu)\nlist(waited)")
    assert ran.value == []
    assert launched == [0, 1]
    assert ran.text == "Fake · sm_90a · cuda:1\nFake · sm_90a · cuda:0"


def test_what_goes_wrong_on_a_gpu_fails_the_cell_that_used_it(notebook: Notebook, launched, monkeypatch):
    def fault(gpu: int) -> None:
        raise KernelError("TK629", "the GPU faulted")

    monkeypatch.setattr(launch_cuda, "synchronize", fault)
    ran = notebook.run("%%tilus\nlaunched(0)")
    assert isinstance(ran.error, KernelError)
    assert ran.stdout == "KernelError TK629: the GPU faulted\n"
    assert ran.text == "Fake · sm_90a · cuda:0"


@pytest.mark.gpu
def test_a_kernel_on_a_gpu_is_shown_with_its_gpu_and_registers(notebook: Notebook):
    ran = notebook.ran(RUN.replace("(n)", "(n, device='cuda')") + "torch.equal(z, x + y)")
    assert ran.value is True
    assert re.fullmatch(
        r"VectorAdd · sm_\w+ · [^·]+ \(cuda:0\) · \d+ passes changed it · \d+ registers, 0 bytes spilled"
        r" · 0 bytes shared · (cached|compiled in .*s)( · ran in .*)?",
        ran.text,
    ), ran.text


# -------------------------------------------------------------------------------------------- an ordinary IPython cell


@pytest.mark.parametrize(
    "body, value",
    [
        ("1 + 1", 2),
        ("1 + 1;", None),
        ("x = 5\nx", 5),
        ("x = 5", None),
        ("x = !echo a b\nx[0].split()", ["a", "b"]),
        ("import asyncio\nawait asyncio.sleep(0, 'slept')", "slept"),
        ("from __future__ import annotations\ndef f(x: unknown): pass\nf.__annotations__['x']", "unknown"),
        ("def f(x: int): pass\nf.__annotations__['x']", int),
        ("'''a string'''", "a string"),
        ("# a comment", None),
        ("", None),
    ],
)
def test_the_last_expression_is_the_value(notebook: Notebook, body, value):
    assert notebook.ran(f"%%tilus\n{body}").value == value


def test_out_and_its_silencing(notebook: Notebook):
    shown = notebook.ran("%%tilus\n6 * 7")
    assert "Out[2]: 42" in shown.stdout
    assert notebook.ran("Out[2] + _").value == 84
    assert "Out" not in notebook.ran("%%tilus\n6 * 7;").stdout
    assert "Out" not in notebook.ran("%%tilus\nNone").stdout


def test_line_magics_shell_commands_and_help(notebook: Notebook):
    assert "per loop" in notebook.ran("%%tilus\n%timeit -n1 -r1 None").stdout
    assert notebook.ran("%%tilus\n%time 1 + 1").value == 2
    assert "hello" in notebook.ran("%%tilus\n!echo hello").stdout
    assert "number of items" in notebook.ran("%%tilus\nlen?").stdout


def test_imports_of_tilus_mean_tilekit_and_reach_nobody_else(notebook: Notebook):
    import sys

    ran = notebook.ran("%%tilus\nimport tilus.utils\nfrom tilus import float32\ntilus.__name__, tilus.utils.cdiv(7, 2)")
    assert ran.value == ("tilekit", 4)
    assert "tilus" not in sys.modules


def test_future_flags_of_the_notebook_hold_and_ours_do_not_come_in(notebook: Notebook):
    notebook.ran(RUN)
    notebook.ran("from __future__ import annotations")
    ran = notebook.run(DEFINE)
    assert isinstance(ran.error, LanguageError)
    assert "the type of parameter n is the string 'int32', not a type" in ran.stdout


def test_blank_lines_above_the_magic_count(notebook: Notebook):
    ran = notebook.run("\n\n%%tilus\nx = 1\n1 / 0\n")
    assert "----> 5 1 / 0" in ran.stdout


def test_the_value_of_an_assignment_shows_where_the_shell_shows_it(notebook: Notebook):
    notebook.shell.ast_node_interactivity = "last_expr_or_assign"
    try:
        assert notebook.ran("%%tilus\nx = 5").value == 5
    finally:
        notebook.shell.ast_node_interactivity = "last_expr"


# -------------------------------------------------------------------------------------------------- below other magics


@pytest.mark.parametrize("above", ["%%time", "%%time\n\n", "%%capture captured", "%%time\n%%time"])
def test_it_runs_below_other_cell_magics_with_the_lines_of_the_whole_cell(notebook: Notebook, above):
    notebook.ran(f"{above}\n{RUN}handle = add\n")
    assert isinstance(notebook.shell.user_ns["handle"], InstantiatedScript)
    lines = f"{above}\n%%tilus\n".count("\n")
    ran = notebook.run(f"{above}\n%%tilus\nx\n\n1 / 0\n")
    # `%%capture` keeps what it captured even if the cell failed
    said = ran.stdout or notebook.shell.user_ns["captured"].stdout
    assert f"----> {lines + 3} 1 / 0" in said


def test_time_gives_the_value_on(notebook: Notebook):
    ran = notebook.ran(f"%%time\n{RUN}torch.equal(z, x + y)")
    assert ran.value is True
    assert "Wall time" in ran.stdout
    assert SUMMARY.fullmatch(ran.text)


def test_capture_catches_the_summary_once(notebook: Notebook):
    ran = notebook.ran(f"%%capture captured\n{RUN}")
    assert ran.shown == []
    (output,) = notebook.shell.user_ns["captured"].outputs
    assert SUMMARY.fullmatch(output.data["text/plain"])


def test_kernels_of_two_timed_cells_keep_their_own_lines(notebook: Notebook):
    first = VECTOR_ADD.replace("VectorAdd", "First").replace("x + y", "x - y")
    notebook.ran(f"%%time\n%%tilus\n{first}")
    notebook.ran(f"%%time\n%%tilus\n# a line more\n{VECTOR_ADD}")
    notebook.ran("import torch\n" + CALL.replace("VectorAdd", "First"))
    assert notebook.ran("torch.equal(z, x - y)").value is True


def test_a_semicolon_silences_a_timed_cell(notebook: Notebook):
    assert notebook.ran("%%time\n%%tilus\n6 * 7").value == 42
    assert notebook.ran("%%time\n%%tilus\n6 * 7;").value is None


def test_it_runs_in_the_profiler_and_the_timer(notebook: Notebook):
    assert notebook.ran("%%prun -q\n%%tilus\nimport tilus\nname = tilus.__name__").value is None
    assert notebook.ran("name").value == "tilekit"
    assert "per loop" in notebook.ran("%%timeit -n2 -r1\n%%tilus\nimport tilus").stdout


def test_it_can_be_called_as_a_magic_function(notebook: Notebook):
    assert notebook.ran("get_ipython().run_cell_magic('tilus', '', 'import tilus\\ntilus.__name__')").value == "tilekit"
    ran = notebook.run("get_ipython().run_cell_magic('tilus', '--nothing', '1')")
    assert isinstance(ran.error, LanguageError)


def test_a_cell_inside_a_cell_leaves_the_outer_one_watched(notebook: Notebook):
    notebook.ran(RUN)
    ran = notebook.ran("%%tilus\nget_ipython().run_cell('1')\nget_ipython().run_cell('%%tilus\\n2')\nadd(n, x, y, z)")
    assert SUMMARY.fullmatch(ran.text)


# ------------------------------------------------------------------------------------------------------------- options


def test_help_is_printed(notebook: Notebook):
    ran = notebook.ran("%%tilus --help")
    assert ran.stdout.startswith("%%tilus [--target NAME] [--args VALUES] [--check] [--bench] [--help]\n")


def test_question_marks_show_the_help(notebook: Notebook):
    for cell in ("%%tilus?", "?%%tilus"):
        assert "--target NAME" in notebook.ran(cell).stdout


def test_a_target_holds_for_the_calls_of_the_cell(notebook: Notebook):
    notebook.ran(RUN)
    assert "VectorAdd · sm_80 · CPU simulator" in notebook.ran("%%tilus --target sm_80\nadd(n, x, y, z)").text
    assert "VectorAdd · sm_90a · CPU simulator" in notebook.ran("%%tilus\nadd(n, x, y, z)").text


def test_a_handle_made_in_the_cell_keeps_its_target(notebook: Notebook):
    notebook.ran(RUN.replace("%%tilus", "%%tilus --target sm_89", 1))
    notebook.ran("add(n, x, y, z)")
    assert notebook.shell.user_ns["add"].last.machine.target.name == "sm_89"


def test_args_compile_a_kernel_without_data(notebook: Notebook):
    ran = notebook.ran(f'%%tilus --target sm_80 --args "8192, f32[8192], f32[8192], f32[8192]"\n{VECTOR_ADD}')
    assert re.fullmatch(
        r"VectorAdd · sm_80 · no GPU: compiled only · \d+ passes changed it · \d+ registers, 0 bytes spilled"
        r" · 0 bytes shared · (cached|compiled in .*s)",
        ran.text,
    ), ran.text


# ---------------------------------------------------------------------------------------------- cells that only define


def test_a_cell_that_only_defines_a_class_says_what_it_waits_for(notebook: Notebook):
    space = '@tilus.autotune("a", [1, 2, 3])\n@tilus.autotune("b", list(range(8)))\nclass VectorAdd(tilus.Script):\n'
    init = "    def __init__(self, a, b): super().__init__()\n"
    cell = DEFINE.replace("class VectorAdd(tilus.Script):\n", space + init)
    assert notebook.ran(cell).text == "VectorAdd: 24 schedules, compiles at its first call"
    assert notebook.ran(DEFINE).text == "VectorAdd: 1 schedule, compiles at its first call"


def test_a_class_whose_init_takes_arguments_waits_for_them(notebook: Notebook):
    cell = DEFINE.replace("    def __call__", "    def __init__(self, size): super().__init__()\n\n    def __call__")
    assert notebook.ran(cell).text == "VectorAdd: compiles at its first call"


def test_a_base_class_may_have_no_kernel(notebook: Notebook):
    ran = notebook.ran("%%tilus\nimport tilus\nclass Base(tilus.Script):\n    def helper(self): pass")
    assert ran.text == "Base: no __call__, so a base class"


def test_other_classes_say_nothing(notebook: Notebook):
    assert notebook.ran("%%tilus\nclass Plain: pass").shown == []


def test_the_body_of_a_class_is_checked_when_it_is_defined(notebook: Notebook):
    ran = notebook.run(DEFINE.replace("load_global(gy", "load_globl(gy"))
    assert isinstance(ran.error, LanguageError)
    assert ran.stdout.startswith(
        "LanguageError TK102 in VectorAdd.__call__, Cell In[2], line 17: self has no load_globl\n"
    )


# -------------------------------------------------------------------------------------------------------- many kernels


def test_from_eight_kernels_on_there_is_a_table(notebook: Notebook):
    notebook.ran(RUN)
    names = ["sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_120"]
    ran = notebook.ran(f"%%tilus\nfor name in {names}:\n    add.use_target(name)\n    add(n, x, y, z)")
    assert len(ran.text.splitlines()) == 8
    assert ran.html.count("<tr") == 8
    assert "<details" not in ran.html


# ---------------------------------------------------------------------------------------------------- coming and going


def test_unloading_leaves_no_trace(notebook: Notebook):
    shell = notebook.shell
    notebook.ran("%unload_ext tilekit")

    def state():
        formatters = {name: (list(f.type_printers), list(f.deferred_printers))
                      for name, f in shell.display_formatter.formatters.items()}  # fmt: skip
        return (
            list(shell.input_transformers_cleanup),
            list(shell.ast_transformers),
            {name: list(callbacks) for name, callbacks in shell.events.callbacks.items()},
            {kind: sorted(magics) for kind, magics in shell.magics_manager.magics.items()},
            list(shell.Completer.custom_matchers),
            formatters,
            sorted(shell.user_ns),
            sorted(shell.user_ns_hidden),
            sorted(vars(shell)),
            sources._display,
            observer.observers(),
            session.chosen_target(),
        )

    before = state()
    notebook.shell.run_line_magic("load_ext", "tilekit")
    notebook.shell.run_line_magic("load_ext", "tilekit")
    assert state() != before
    notebook.run("%%tilus --target sm_80\n1 / 0", store_history=False)
    notebook.shell.run_line_magic("unload_ext", "tilekit")
    assert state() == before


def test_it_loads_again(notebook: Notebook):
    notebook.ran("%reload_ext tilekit")
    assert SUMMARY.fullmatch(notebook.ran(RUN).text)


def test_a_reset_does_not_hurt(notebook: Notebook):
    notebook.ran("%reset -f")
    assert notebook.ran("%%tilus\n1").value == 1


def test_a_failing_cell_leaves_nothing_set(notebook: Notebook):
    notebook.run("%%tilus --target sm_80\n1 / 0")
    assert [type(each) for each in observer.observers()] == [PlainCells, TuningPlots], (
        "which are there as long as the extension"
    )
    assert session.chosen_target() is None


def test_a_terminal_waits_for_the_end_of_the_cell(notebook: Notebook):
    complete = notebook.shell.input_transformer_manager.check_complete
    assert complete("%%tilus\n")[0] == "incomplete"


def test_a_front_end_that_cannot_replace_outputs_gets_one(notebook: Notebook):
    with notebook.as_terminal():
        ran = notebook.ran(RUN)
    assert SUMMARY.fullmatch(ran.stdout.strip())
