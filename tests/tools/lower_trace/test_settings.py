# SPDX-License-Identifier: Apache-2.0
"""What the trace is told: by variables, by arguments, and by who runs."""

import os
import pathlib
import sys
import warnings

import pytest

from tilekit import config
from tilekit.config import TraceMode
from tilekit.diag import ConfigError
from tilekit.tools.lower_trace import naming, settings
from tilekit.tools.lower_trace.edit_table import Policy
from tilekit.tools.lower_trace.settings import Cached, Filter


@pytest.fixture(autouse=True)
def untold(monkeypatch):
    """No variable of the trace is set."""
    for name in [name for name in os.environ if name.startswith(("TL_LOWER_TRACE", "TILEKIT_LOWER_TRACE"))]:
        monkeypatch.delenv(name)


WORDS = {
    TraceMode.OFF: ["", "0", "off", "FALSE", "No"],
    TraceMode.HTML: ["1", "on", "TRUE", "yes", "html", " HTML "],
    TraceMode.TERMINAL: ["terminal", "Terminal"],
    TraceMode.BOTH: ["both"],
}


@pytest.mark.parametrize(("mode", "word"), [(mode, word) for mode, words in WORDS.items() for word in words])
def test_a_word_means_a_mode(mode, word, monkeypatch):
    monkeypatch.setenv("TL_LOWER_TRACE", word)
    assert settings.resolve().mode is mode
    assert settings.read_mode(word) is mode


def test_nothing_given_is_off():
    assert settings.resolve().mode is TraceMode.OFF
    assert settings.read_mode(None) is TraceMode.OFF


def test_an_unknown_word_in_the_environment_is_a_warning_that_names_the_nearest(monkeypatch):
    monkeypatch.setenv("TL_LOWER_TRACE", "htlm")
    with pytest.warns(UserWarning) as caught:
        assert config.trace_mode() is TraceMode.OFF
    (warning,) = caught
    text = str(warning.message)
    assert "TL_LOWER_TRACE='htlm'" in text and "did you mean html?" in text
    assert all(word in text for word in ("off", "html", "terminal", "both"))


def test_an_unknown_word_in_a_call_is_an_error():
    with pytest.raises(ConfigError, match="did you mean terminal"):
        settings.resolve(mode="terminall")
    with pytest.raises(ConfigError, match="TK913"):
        settings.resolve(mode="html", on_conflict="quarrel")


def test_what_is_no_word_is_read_as_if_it_were_one():
    assert settings.read_mode(True) is settings.read_mode(1) is TraceMode.HTML
    assert settings.read_mode(False) is TraceMode.OFF
    with pytest.raises(ConfigError, match="mode=5 means nothing"):
        settings.read_mode(5)


def test_a_file_without_a_name_is_as_if_it_were_not_given():
    assert settings.resolve(mode="html", codegen_output="").codegen_output is settings.NOT_GIVEN


@pytest.mark.parametrize("given", [{"trace_dir": 5}, {"codegen_output": 5}, {"trace_dir": ["a"]}])
def test_what_is_no_path_is_an_error(given):
    with pytest.raises(ConfigError, match=" is a path, not "):
        settings.resolve(mode="html", **given)


def test_our_variables_win(monkeypatch):
    monkeypatch.setenv("TL_LOWER_TRACE", "both")
    monkeypatch.setenv("TL_LOWER_TRACE_DIR", "/shared")
    monkeypatch.setenv("TILEKIT_LOWER_TRACE", "0")
    monkeypatch.setenv("TILEKIT_LOWER_TRACE_DIR", "/ours")
    found = settings.resolve()
    assert (found.mode, found.folder) == (TraceMode.OFF, pathlib.Path("/ours"))
    monkeypatch.setenv("TILEKIT_LOWER_TRACE", " ")
    assert settings.resolve().mode is TraceMode.BOTH


def test_everything_has_a_default(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = settings.resolve(mode="html")
    assert found.folder == tmp_path / "tmp" / "lower_trace_dir"
    assert (found.filter, found.cached, found.max_lines) == (Filter(), Cached.TRACE, 200)
    assert found.on_conflict is Policy.REGENERATE


def test_a_blank_folder_is_the_default(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TL_LOWER_TRACE_DIR", "  ")
    assert settings.resolve().folder == settings.resolve(trace_dir="").folder == tmp_path / "tmp" / "lower_trace_dir"


def test_the_environment_says_the_rest(monkeypatch):
    told = {"FILTER": "matmul*, pass:layout*", "CACHED": "Skip", "MAX_LINES": "7", "ON_CONFLICT": "merge"}
    for name, value in told.items():
        monkeypatch.setenv(f"TL_LOWER_TRACE_{name}", value)
    found = settings.resolve()
    assert found.filter == Filter(("matmul*",), ("layout*",))
    assert (found.cached, found.max_lines, found.on_conflict) == (Cached.SKIP, 7, Policy.MERGE)
    assert settings.resolve(max_lines=0, cached="trace").max_lines == 0


@pytest.mark.parametrize("name", ["CACHED", "MAX_LINES", "ON_CONFLICT"])
def test_what_means_nothing_is_ignored_with_one_warning(name, monkeypatch):
    default = settings.resolve()
    monkeypatch.setenv(f"TL_LOWER_TRACE_{name}", "somehow")
    with pytest.warns(UserWarning, match=f"TL_LOWER_TRACE_{name}='somehow'") as caught:
        assert settings.resolve() == default
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("mode", "output", "keeps"),
    [
        ("html", settings.NOT_GIVEN, True),
        ("both", settings.NOT_GIVEN, True),
        ("terminal", settings.NOT_GIVEN, False),
        ("terminal", "here.cpp", True),
        ("html", None, False),
    ],
)
def test_the_source_is_kept_with_a_page_or_where_one_says(mode, output, keeps):
    assert settings.resolve(mode=mode, codegen_output=output).keeps_source is keeps


@pytest.mark.parametrize(
    ("pattern", "takes", "leaves"),
    [
        ("matmul*", ["MatmulV2", "matmul"], ["Softmax", "MyMatmul"]),
        ("*_v2", ["MatmulV2"], ["MatmulV3"]),
        ("softmax,Mat*", ["Softmax", "MatmulV2"], ["LayerNorm"]),
        ("pass:layout*", ["Softmax", "MatmulV2"], []),
        ("", ["Softmax"], []),
    ],
)
def test_a_filter_takes_kernels_by_either_name(pattern, takes, leaves):
    filter = Filter.parse(pattern)
    assert [name for name in [*takes, *leaves] if filter.takes_kernel(name)] == takes


def test_a_filter_takes_passes():
    filter = Filter.parse("pass:layout_inference, pass:*elimination")
    names = ["layout_inference", "dead_code_elimination", "verify"]
    assert [name for name in names if filter.takes_pass(name)] == names[:2]
    assert all(map(Filter.parse("softmax").takes_pass, names))


# ----------------------------------------------------------------------------------------------------------- naming


@pytest.mark.parametrize(
    ("program", "name"),
    [
        ("/some/where/my_script.py", "my_script"),
        ("./my script.py", "my_script"),
        ("-c", "command"),
        ("", "python"),
        ("/site-packages/pytest/__main__.py", "pytest"),
        ("../../x</script>.py", "script_"),
        ("/some/where/naïve 矩阵.py", "naïve_矩阵"),
    ],
)
def test_a_script_goes_by_its_name(program, name, monkeypatch):
    monkeypatch.setattr(sys, "argv", [program])
    assert naming.script_name() == name


@pytest.fixture
def in_notebook(monkeypatch):
    """As if this were the kernel of a notebook."""

    class Module:
        class IPKernelApp:
            initialized = staticmethod(lambda: True)

    monkeypatch.setitem(sys.modules, "ipykernel.kernelapp", Module)
    monkeypatch.setattr(sys, "argv", ["/site-packages/ipykernel_launcher.py", "-f", "connection.json"])
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)


def test_a_notebook_goes_by_its_own_name(in_notebook, monkeypatch):
    assert naming.script_name() == "notebook"
    monkeypatch.setattr(sys.modules["__main__"], "__vsc_ipynb_file__", "/home/ada/tiles.ipynb", raising=False)
    assert naming.script_name() == "tiles"
    monkeypatch.setenv("JPY_SESSION_NAME", "/home/ada/work/my notebook.ipynb")
    assert naming.script_name() == "my_notebook"


def test_a_script_that_a_notebook_starts_is_a_script(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["train.py"])
    monkeypatch.setenv("JPY_SESSION_NAME", "my notebook.ipynb")
    monkeypatch.setitem(sys.modules, "ipykernel.kernelapp", None)
    assert naming.script_name() == "train"


def test_settings_say_nothing_by_themselves():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        settings.resolve()
