# SPDX-License-Identifier: Apache-2.0
"""What a trace has of a pass of a person's own."""

import inspect
import json
import random
import re

import pytest

import tilekit
from tilekit import float32
from tilekit.diag import PassError
from tilekit.ir.functors import IRRewriter
from tilekit.tools.lower_trace.rerun import RerunError, rerun
from tilekit.transforms import Pass, after


class Sum(tilekit.Script):
    def __call__(self, x_ptr: ~float32):
        self.attrs.blocks = [1]
        self.attrs.warps = 1
        g = self.global_view(x_ptr, dtype=float32, shape=[64])
        both = self.load_global(g, offsets=[0], shape=[32]) + self.load_global(g, offsets=[32], shape=[32])
        self.sync()
        self.store_global(g, both, offsets=[0])


class Once(IRRewriter):
    def visit_AddInst(self, inst):
        return inst.replace(y=inst.x)

    def visit_SyncThreadsInst(self, inst):
        return None


class OncePass(Pass):
    def __init__(self):
        self.number = random.getrandbits(60)  # nobody has compiled with this one

    def process_function(self, func):
        return Once().visit(func)


class WrongPass(Pass):
    def process_function(self, func):
        raise ValueError("not this one")


def compiled(own):
    with tilekit.passes(after("copy_elimination", own)):
        Sum().compile(tilekit.spec(float32, (64,)), target="sm_80", device="cpu")


def line_of(function):
    return inspect.getsourcelines(function)[1]


def test_a_trace_says_which_step_is_a_persons_and_which_method_changed_what(tmp_path, capfd):
    with tilekit.tracing("terminal", tmp_path) as t:
        compiled(OncePass())
    steps = {step.title: step for step in t.compiles[0].steps}
    assert [name for name, step in steps.items() if "custom" in step.notes] == ["once"]
    notes = json.loads(json.dumps(steps["once"].notes))
    line = line_of(OncePass.process_function)
    assert notes["custom"] == {"pass": "once", "class": "OncePass", "file": __file__, "line": line}
    methods = {method["name"]: method["line"] for method in notes["visits"]["methods"]}
    assert methods == {each.__name__: line_of(each) for each in (Once.visit_AddInst, Once.visit_SyncThreadsInst)}
    said = capfd.readouterr().err
    (heading,) = re.findall(r"^\d\d .*\bonce .*\n(@@.*)$", said, re.MULTILINE)
    assert set(heading.rpartition("@@ ")[2].split()) == set(methods)


def test_a_trace_has_a_persons_pass_that_failed(tmp_path):
    with tilekit.tracing("html", tmp_path) as t, pytest.raises(PassError):
        compiled(WrongPass())
    failed = t.compiles[0].steps[-1]
    assert (failed.name, failed.failure.type) == ("wrong", "PassError")
    assert 'raise ValueError("not this one")' in failed.failure.message
    assert failed.notes["custom"]["class"] == "WrongPass"


def test_a_persons_pass_is_run_alone_only_by_the_script_that_has_it(tmp_path):
    with tilekit.tracing("html", tmp_path) as t:
        compiled(OncePass())
    compile = t.compiles[0]
    own = next(step for step in compile.steps if step.name == "once")
    with pytest.raises(RerunError, match="it is a pass of one's own, which only the script has"):
        rerun(t, compile, own)
