# SPDX-License-Identifier: Apache-2.0
"""Random programs mean the same to the evaluator before and after the passes, and to the CPU simulator."""

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.caches import new_cache
from tests.ir.strategies import arguments, programs
from tilekit import drivers, target
from tilekit.config import Config
from tilekit.ir import evaluator
from tilekit.runtime.tensors import DeviceKind
from tilekit.toolchain import host
from tilekit.transforms import get_default_passes


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    """Random programs are not worth keeping."""
    return Config(cache_dir=new_cache(tmp_path_factory.mktemp("cache")))


def copied(args):
    return [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]


def same(ours, other) -> bool:
    """Whether two arrays hold the same numbers to the last bit; of a nan the bits do not matter."""
    if ours.tobytes() == other.tobytes():
        return True
    if ours.dtype.kind in "biu" or "int" in ours.dtype.name:
        return False
    a, b = ours.astype(np.float64), other.astype(np.float64)
    return bool(np.all((np.isnan(a) & np.isnan(b)) | ((a == b) & (np.signbit(a) == np.signbit(b)))))


def assert_same(args, others, text):
    for number, (ours, other) in enumerate(zip(args, others, strict=True)):
        if isinstance(ours, np.ndarray):
            assert same(ours, other), f"argument {number}: {ours} and {other}\n\n{text}"


@settings(max_examples=50)
@given(st.data())
def test_no_pass_changes_what_a_random_program_means(data):
    prog = data.draw(programs(with_layouts=False))
    args = data.draw(arguments(prog))
    before = copied(args)
    evaluator.run(prog, before)
    for tile_pass in get_default_passes():
        changed = tile_pass(prog)
        after = copied(args)
        evaluator.run(changed, after)
        assert_same(before, after, f"{tile_pass.name}\n{prog}\n\n{changed}")
        prog = changed


def compare_with_simulator(prog, args, config) -> None:
    ours, other = copied(args), copied(args)
    evaluator.run(prog, ours)
    compiled = drivers.build_program(prog, target.DEFAULT, DeviceKind.CPU, config)
    compiled.load(DeviceKind.CPU, config).launch(other)
    assert_same(ours, other, f"{prog}\n\n{compiled.source}")


needs_compiler = pytest.mark.skipif(host.find_compiler() is None, reason="no C++ compiler here")


@needs_compiler
@settings(max_examples=6, phases=[Phase.generate])
@given(st.data())
def test_simulator_and_evaluator_agree_on_a_few_random_programs(config, data):
    prog = data.draw(programs(with_layouts=False, exact=True))
    compare_with_simulator(prog, data.draw(arguments(prog)), config)


@needs_compiler
@pytest.mark.slow
@settings(max_examples=60)
@given(st.data())
def test_simulator_and_evaluator_agree_on_random_programs(config, data):
    prog = data.draw(programs(with_layouts=False, exact=True).filter(lambda prog: len(str(prog)) > 900))
    compare_with_simulator(prog, data.draw(arguments(prog)), config)
