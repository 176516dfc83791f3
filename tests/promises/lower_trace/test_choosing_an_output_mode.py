# SPDX-License-Identifier: Apache-2.0
"""Choosing an Output Mode."""

import pytest

import tilekit
from tests.promises.kernels import compiled, scaling


@pytest.mark.parametrize(
    ("mode", "prints", "has_page"), [("terminal", True, False), ("html", False, True), ("both", True, True)]
)
def test_a_mode_prints_or_makes_a_page_or_both(mode, prints, has_page, tmp_path, capfd):
    with tilekit.tracing(mode, tmp_path):
        compiled(scaling())
    assert ("tile/layout_inference" in capfd.readouterr().err) is prints
    assert (len(list(tmp_path.glob("*/report.html"))) == 1) is has_page


def test_what_is_compared_is_text(traced):
    for step in traced.journal.compiles[0].steps:
        if not step.is_translation:
            assert step.changed is (traced.journal.text(step.before) != traced.journal.text(step.after))
