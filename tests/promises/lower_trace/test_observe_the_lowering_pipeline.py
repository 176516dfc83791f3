# SPDX-License-Identifier: Apache-2.0
"""Observe the Lowering Pipeline."""

import os

import pytest

from tests.tools.lower_trace import scripts
from tilekit.config import TraceMode
from tilekit.tools.lower_trace import settings

VALUES = {
    TraceMode.OFF: ["0", "off", "false", "no"],
    TraceMode.HTML: ["1", "on", "true", "yes", "html"],
    TraceMode.TERMINAL: ["terminal"],
    TraceMode.BOTH: ["both"],
}


def test_a_variable_before_the_script_is_enough(traced):
    assert traced.journal.head.script == "my_script"
    assert [compile.kernel for compile in traced.journal.compiles] == ["scale", "other", "scale"]


def test_a_variable_that_is_set_too_late_traces_nothing(tmp_path):
    body = "import os; os.environ['TL_LOWER_TRACE'] = '1'; compile(scaling(2.0))"
    done = scripts.run(tmp_path, body)
    assert done.stderr == "" and not (tmp_path / "tmp").exists()


def test_a_link_leads_to_the_latest_report(traced):
    assert (traced.home / "report.html").is_symlink()
    assert (traced.home / "report.html").resolve() == (traced.run / "report.html").resolve()


@pytest.mark.parametrize(("mode", "value"), [(mode, value) for mode, values in VALUES.items() for value in values])
def test_a_value_of_the_variable_means_a_mode(mode, value, monkeypatch):
    monkeypatch.setenv("TL_LOWER_TRACE", value)
    assert settings.resolve().mode is mode


def test_the_default_is_off():
    assert settings.resolve().mode is TraceMode.OFF


def test_a_variable_says_where_everything_goes(tmp_path):
    scripts.run(tmp_path, "compile(scaling(2.0))", TL_LOWER_TRACE="terminal", TL_LOWER_TRACE_DIR="elsewhere/here")
    assert os.listdir(tmp_path / "elsewhere" / "here") == ["my_script"] and not (tmp_path / "tmp").exists()
