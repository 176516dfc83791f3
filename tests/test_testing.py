# SPDX-License-Identifier: Apache-2.0
import subprocess
import sys
import textwrap
import unittest

import pytest

from tilekit import target, testing
from tilekit.testing import requires


@requires.nvgpu_sm90
def doubled(x):
    """Doubles."""
    return 2 * x


def with_gpu(monkeypatch, found):
    monkeypatch.setattr(testing, "gpu_target", lambda: found)


def test_the_test_runs_where_the_gpu_can_run_it(monkeypatch):
    with_gpu(monkeypatch, target.SM90A)
    assert doubled(4) == 8
    assert (doubled.__name__, doubled.__doc__) == ("doubled", "Doubles.")


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (None, "needs a GPU that runs sm_90; there is none here"),
        (target.SM80, "needs a GPU that runs sm_90; the one here is sm_80"),
    ],
)
def test_elsewhere_it_is_skipped_with_the_reason(found, reason, monkeypatch):
    with_gpu(monkeypatch, found)
    with pytest.raises(unittest.SkipTest) as caught:
        doubled(4)
    assert str(caught.value) == reason


def test_a_suffix_is_taken_at_its_word(monkeypatch):
    with_gpu(monkeypatch, target.parse("sm_103a"))
    assert requires.nvgpu_sm100(lambda: 1)() == 1
    with pytest.raises(unittest.SkipTest):
        requires.nvgpu_sm100a(lambda: 1)()


def test_parameters_and_fixtures_still_reach_the_test(tmp_path):
    (tmp_path / "test_kernel.py").write_text(
        textwrap.dedent("""
            import pytest
            from tilekit import target, testing
            testing.gpu_target = lambda: target.SM90A

            @testing.requires.nvgpu_sm90
            @pytest.mark.parametrize("n", [1, 2])
            def test_runs(n, tmp_path):
                assert n and tmp_path.exists()

            @testing.requires.nvgpu_sm100
            def test_waits():
                assert False
        """)
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    assert "2 passed, 1 skipped" in subprocess.run(command, capture_output=True, text=True).stdout
