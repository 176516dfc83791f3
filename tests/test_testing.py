# SPDX-License-Identifier: Apache-2.0
import subprocess
import sys
import textwrap
import unittest

import pytest
import torch

from tilekit import target, testing
from tilekit.runtime import device
from tilekit.testing import requires


@requires.nvgpu_sm90
def doubled(x):
    """Doubles."""
    return 2 * x


def with_gpu(monkeypatch, found, problem=None):
    monkeypatch.setattr(testing, "gpu_target", lambda: found)
    monkeypatch.setattr(device, "survey", lambda: device.Survey(problem=problem))


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


def test_a_driver_that_does_not_work_is_the_reason(monkeypatch):
    with_gpu(monkeypatch, None, problem=device.too_old((12, 4)))
    with pytest.raises(unittest.SkipTest, match=r"the NVIDIA driver speaks CUDA 12\.4 and tilekit"):
        doubled(4)


@pytest.mark.parametrize(("capability", "name"), [((9, 0), "sm_90a"), ((8, 6), "sm_86")])
def test_the_target_is_that_of_the_gpu_in_use(capability, name, monkeypatch):
    gpus = tuple(device.Gpu(index, "GPU", each, 1, 1, 1) for index, each in enumerate([(7, 0), capability]))
    monkeypatch.setattr(device, "survey", lambda: device.Survey((13, 0), gpus))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    assert str(testing.gpu_target()) == name
    monkeypatch.setattr(device, "survey", device.Survey)
    assert testing.gpu_target() is None


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
