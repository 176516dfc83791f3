# SPDX-License-Identifier: Apache-2.0
import pickle

import pytest

from tilekit import target
from tilekit.diag import ConfigError
from tilekit.target import parse

KIB = 1024


@pytest.mark.parametrize(
    ("name", "kib"),
    [
        ("sm_75", 64),
        ("sm_80", 163),
        ("sm_86", 99),
        ("sm_87", 163),
        ("sm_89", 99),
        ("sm_90", 227),
        ("sm_90a", 227),
        ("sm_100", 227),
        ("sm_103f", 227),
        ("sm_110a", 227),
        ("sm_120", 99),
        ("sm_121a", 99),
    ],
)
def test_shared_memory_is_what_the_hardware_lets_a_block_use(name, kib):
    assert parse(name).shared_memory_per_block == kib * KIB


def test_every_target_has_the_limits_of_its_threads():
    for each in target.ALL:
        assert (each.max_threads_per_block, each.max_warps_per_block, each.warp_size) == (1024, 32, 32)
        assert each.max_registers_per_thread == 255


def test_names_parse_back_in_both_spellings():
    for each in target.ALL:
        assert parse(each.name) is parse(each.tilus_name) is parse(each.name.replace("_", "").upper()) is each
    assert (str(target.DEFAULT), target.DEFAULT.tilus_name, target.DEFAULT.number) == ("sm_90a", "nvgpu/sm90a", 90)
    assert parse("sm_100a").capability == (10, 0)
    assert len({each.name for each in target.ALL}) == len(target.ALL)


def test_targets_travel_to_other_processes():
    copy = pickle.loads(pickle.dumps(target.SM90A))
    assert copy == target.SM90A and copy.supports(target.SM90A)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("sm_90b", "there is no target 'sm_90b'\n  help: did you mean sm_90?"),
        ("sm_8", "there is no target 'sm_8'\n  help: did you mean sm_80?"),
        ("cpu", "there is no target 'cpu'\n  help: targets are " + ", ".join(each.name for each in target.ALL)),
    ],
)
def test_an_unknown_target_is_answered_with_the_nearest_one(text, answer):
    with pytest.raises(ConfigError) as caught:
        parse(text)
    assert str(caught.value) == f"TK904: {answer}"


@pytest.mark.parametrize(
    ("gpu", "code", "runs"),
    [
        ("sm_90a", "sm_80", True),
        ("sm_90a", "sm_90", True),
        ("sm_90a", "sm_90a", True),
        ("sm_90", "sm_90a", False),
        ("sm_80", "sm_90", False),
        ("sm_100a", "sm_90a", False),
        ("sm_100a", "sm_90", True),
        ("sm_103a", "sm_100f", True),
        ("sm_103f", "sm_100f", True),
        ("sm_103", "sm_100f", False),
        ("sm_100a", "sm_103f", False),
        ("sm_120a", "sm_100f", False),
        ("sm_103a", "sm_100a", False),
    ],
)
def test_which_code_runs_where(gpu, code, runs):
    assert parse(gpu).supports(parse(code)) is runs


def test_a_plain_target_runs_everywhere_above_it_and_every_target_runs_its_own_code():
    for each in target.ALL:
        assert each.supports(each)
        for other in target.ALL:
            if each.suffix is target.Suffix.NONE:
                assert other.supports(each) is (other.capability >= each.capability)


@pytest.mark.parametrize(
    ("capability", "name"),
    [((8, 0), "sm_80"), ((9, 0), "sm_90a"), ((10, 3), "sm_103a"), ((12, 9), "sm_121"), ((7, 2), "sm_70")],
)
def test_a_gpu_gets_the_target_that_uses_most_of_it(capability, name):
    assert target.best_for(capability) is parse(name)


def test_a_gpu_older_than_every_target_is_told_so():
    with pytest.raises(ConfigError) as caught:
        target.best_for((6, 1))
    assert str(caught.value) == "TK904: a GPU of compute capability 6.1 is older than every target"
