# SPDX-License-Identifier: Apache-2.0
"""The page about the trace keeps its word."""

import re
from pathlib import Path

from tests.tools.lower_trace import scripts
from tilekit import config
from tilekit.tools.lower_trace import settings
from tilekit.tools.lower_trace.edit_table import Tag

PAGE = (scripts.ROOT / "docs" / "trace.md").read_text()


def test_the_code_on_the_page_runs(tmp_path):
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "page.py").write_text(code)
    done = scripts.run_file(tmp_path / "page.py")
    report, steps = done.stdout.splitlines()
    assert report.endswith("traces/page/report.html ['double']") and Path(report.split()[0]).exists()
    assert steps.startswith("[('analyze_scalar', ") and "('layouts', " in steps
    assert "tile/layout_inference" in done.stderr


def test_the_page_has_every_variable():
    named = set(re.findall(r"^\| `(TL_LOWER_TRACE\w*)` \|", PAGE, re.MULTILINE))
    ours = [f"TL_{config.TRACE}", *(f"TL_{config.TRACE}_{name}" for name in ["DIR", *settings._READ])]
    options = [name for _, option in config.OPTIONS.values() for name in option.variables if "TL_LOWER_TRACE" in name]
    assert sorted(named) == sorted([*ours, *options])


def test_the_page_has_every_word():
    row = next(line for line in PAGE.splitlines() if line.startswith("| `TL_LOWER_TRACE` "))
    assert set(re.findall(r"`(\w+)`", row)) - {"TL_LOWER_TRACE"} == set(config._TRACE_WORDS)
    for option in (settings.Cached, settings.Policy):
        assert all(f"`{word.value}`" in PAGE for word in option)


def test_the_page_has_every_tag():
    _, _, table = PAGE.partition("| tag | what happened |")
    named = set(re.findall(r"`([A-Z-]+)`", "\n".join(line.split("|")[1] for line in re.findall(r"^\|.*", table, re.M))))
    assert named == {tag.value for tag in Tag} - {Tag.NONE.value, Tag.INIT.value}


def test_the_page_has_the_defaults():
    assert f"`./{settings.FOLDER}`" in PAGE and f"| {settings.MAX_LINES} |" in PAGE
