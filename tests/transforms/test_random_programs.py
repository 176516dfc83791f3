# SPDX-License-Identifier: Apache-2.0
"""Claims about every pass, on random programs."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from tests.ir import strategies
from tilekit import transforms
from tilekit.diag.errors import LayoutError
from tilekit.ir.evaluator import evaluate
from tilekit.ir.tools import collect_instructions, verify
from tilekit.transforms.layout_inference import infer_layouts

PASSES = {each.name: each for each in transforms.get_default_passes()}

# passes that work on what earlier ones left, in the order of the pipeline
BEFORE = {name: list(PASSES.values())[:number] for number, name in enumerate(PASSES)}


@st.composite
def programs_and_arguments(draw):
    """A program, and arguments for it; where layouts are given, some that go together."""
    with_layouts = draw(st.booleans())
    prog = draw(strategies.programs(exact=True, with_layouts=with_layouts))
    try:
        infer_layouts(prog.function)
    except LayoutError:
        assert with_layouts, "what chooses its own layouts always finds some"
        reject()
    return prog, draw(strategies.arguments(prog))


def memory_after(prog, arguments):
    """What the pointers' arrays hold when the program has run on copies of them."""
    copies = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
    evaluate.run(prog, copies)
    return [a.tobytes() for a in copies if isinstance(a, np.ndarray)]


@pytest.mark.parametrize("name", PASSES)
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_pass_keeps_the_meaning_and_changes_nothing_the_second_time(name, data):
    prog, arguments = data.draw(programs_and_arguments())
    if data.draw(st.booleans()):
        prog = transforms.run_passes(prog, BEFORE[name])
    after = PASSES[name](prog)
    verify(after)
    assert PASSES[name](after) is after
    assert memory_after(after, arguments) == memory_after(prog, arguments)


@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(drawn=programs_and_arguments())
def test_pipeline_keeps_the_meaning_and_lays_out_every_tile(drawn):
    pipeline_keeps_meaning(*drawn)


@pytest.mark.slow
@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(drawn=programs_and_arguments())
def test_pipeline_keeps_the_meaning_of_many_programs(drawn):
    pipeline_keeps_meaning(*drawn)


def pipeline_keeps_meaning(prog, arguments):
    after = transforms.run_passes(prog, transforms.get_default_passes(), check=True)
    assert memory_after(after, arguments) == memory_after(prog, arguments)
    for inst in collect_instructions(after.function):
        assert inst.check({t: t.layout for t in inst.laid_out_tensors}) is None
        assert all(t.layout.spatial_size == after.function.metadata.num_threads for t in inst.register_tensors)
