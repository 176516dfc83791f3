# SPDX-License-Identifier: Apache-2.0
"""What a script depends on, as text: equal for equal scripts, different for every difference, or refused."""

import ast
import collections
import dataclasses
import enum
import functools
import linecache
import math
import random
import threading
import types

import numpy as np
import pytest
import torch

import tilekit
from tilekit import float16, float32, int32
from tilekit.lang import dependencies
from tilekit.lang.dependencies import Untracked
from tilekit.utils import cdiv

TEXT = """\
import math, os, random, threading, time
import numpy as np
import tilekit
from tilekit import float16, float32, int32
from tilekit.utils import cdiv

VALUE = {value}


def helper(x, scale=2):
    return x * scale


class Base(tilekit.Script):
    def inherited(self):
        return 1


class Kernel(Base):
    def __init__(self, block=128):
        super().__init__()
        self.block = block

    def __call__(self, n: int32, x: ~float32):
        self.attrs.blocks = [cdiv(n, self.block)]
        self.attrs.warps = 1
        {line}
"""

_count = iter(range(10**9))


def parts(line: str = "pass", value: str = "1", edit: tuple[str, str] | None = None, name: str = "kernel") -> dict:
    """The parts of a script with this line, from a file of its own."""
    text = TEXT.format(line=line, value=value)
    if edit is not None:
        assert text.count(edit[0]) == 1
        text = text.replace(*edit)
    path = f"<{name} {next(_count)}>"
    linecache.cache[path] = (len(text), None, text.splitlines(True), path)
    module = types.ModuleType(name)
    exec(compile(text, path, "exec"), module.__dict__)
    return dependencies.of_script(module.Kernel, {"schedules": [{"block": 128}]}).parts


def test_the_same_script_in_another_file_has_the_same_parts():
    assert parts("y = helper(VALUE)") == parts("y = helper(VALUE)", name="another")


@pytest.mark.parametrize(
    "edit",
    [
        ("def helper", "\n\n# a comment\ndef helper"),
        ("        self.block = block\n", "        # a comment\n\n        self.block = block  # and one more\n"),
        ("self.attrs.warps = 1", "self.attrs.warps = (1)"),
        ("x * scale", "(x\n            * scale)"),
    ],
)
def test_how_it_is_written_is_no_part(edit):
    assert parts("y = helper(VALUE)", edit=edit) == parts("y = helper(VALUE)")


@pytest.mark.parametrize(
    ("edit", "changed"),
    [
        (("x * scale", "x * scale * 1"), {"function helper"}),
        (("scale=2", "scale=3"), {"function helper"}),
        (("return 1", "return 1.0"), {"function Base.inherited"}),
        (("warps = 1", "warps = True"), {"function Kernel.__call__"}),
        (("block=128", "block=64"), {"function Kernel.__init__"}),
        (("VALUE = 1", "VALUE = 1.0"), {"global VALUE"}),
        (("VALUE = 1", "VALUE = True"), {"global VALUE"}),
        (("n: int32, x", "n: float32, x"), {"function Kernel.__call__", "global float32", "global int32"}),
    ],
)
def test_each_change_is_in_the_part_that_it_belongs_to(edit, changed):
    before, after = parts("y = helper(VALUE)"), parts("y = helper(VALUE)", edit=edit)
    assert {name for name in {*before, *after} if before.get(name) != after.get(name)} <= changed
    assert before != after


def test_annotations_of_local_names_count():
    assert parts("y: float32 = 0") != parts("y: float16 = 0")
    assert "global VALUE" in parts("y: VALUE = 0", value="float32")


def test_what_no_function_names_is_no_part():
    assert "function helper" not in parts()
    assert parts(value="threading.Lock()") == parts(value="2")
    assert "global VALUE" not in parts("VALUE = 3")


def test_ways_through_modules_end_at_what_they_lead_to():
    assert parts("y = math.floor(1.5)") == parts("y = math.floor(1.5)")
    assert parts("y = np.float32(1)") != parts("y = np.float64(1)")
    assert "global math.pi" in parts("y = math.pi")


LAMBDAS = {
    "lambda a, b=2: a * b": "lambda a, b=3: a * b",
    "lambda a: a * 2": "lambda a: a * 2.0",
    "lambda a: a + 1": "lambda a: a - 1",
    "lambda a: math.floor(a)": "lambda a: math.ceil(a)",
    "lambda a: np.pi * a": "lambda a: np.e * a",
    "lambda a: helper(a)": "lambda a: cdiv(a, 1)",
    "lambda a: [i + 1 for i in (a,)]": "lambda a: [i + 2 for i in (a,)]",
    "(lambda n: lambda a: a * n)(2)": "(lambda n: lambda a: a * n)(3)",
    "functools.lru_cache(helper)": "functools.lru_cache(cdiv)",
    "functools.cache(lambda a: a + 1)": "functools.cache(lambda a: a + 2)",
}


@pytest.mark.parametrize(("one", "other"), LAMBDAS.items(), ids=LAMBDAS)
def test_a_lambda_is_what_its_code_says(one, other):
    def found(value, shift=""):
        made = f"import functools\n{shift}MADE = {value}\n\n\nclass Base"
        return parts("y = MADE(1)", edit=("class Base", made))

    assert found(one) == found(one, shift="\n# a comment\n") != found(other)


def test_what_a_lambda_names_is_a_part():
    found = parts("y = VALUE(1)", value="lambda a: helper(a) * math.pi")
    assert found.keys() >= {"global math.pi", "function helper"}
    edited = parts("y = VALUE(1)", value="lambda a: helper(a) * math.pi", edit=("scale=2", "scale=3"))
    assert {name for name in found if found[name] != edited[name]} == {"function helper"}


def test_answers_that_are_older_than_what_a_function_names_are_refused():
    scale = 2

    @functools.lru_cache
    def scaled(a):
        return a * scale

    @functools.lru_cache
    def doubled(a):
        return a * 2

    before = text(scaled), text(doubled)
    scaled(1), doubled(1)
    assert (text(scaled), text(doubled)) == before
    scale = 3
    with pytest.raises(Untracked, match="remembers answers"):
        text(scaled)
    scale = 2  # it may have been asked meanwhile
    with pytest.raises(Untracked, match="remembers answers"):
        text(scaled)
    scaled.cache_clear()
    assert text(scaled) == before[0]


def test_functions_that_remember_may_call_each_other():
    @functools.cache
    def even(n):
        return n == 0 or odd(n - 1)

    @functools.cache
    def odd(n):
        return n != 0 and even(n - 1)

    before = text(even), text(odd)
    assert even(4) and (text(even), text(odd)) == before


UNTRACKED = {
    "getattr(self, 'block')": "calls getattr",
    "y = print(1)": "calls print",
    "y = open('file')": "calls open",
    "y = self.__dict__": "looks at __dict__",
    "y = math": "module math itself",
    "y = time.time()": "is time, whose answer may change",
    "y = random.randint(1, 2)": "cannot be compared|whose answer may change",
    "y = np.random.rand()": "cannot be compared|whose answer may change|not available",
    "y = VALUE": "is an object of type lock",
    "y = (lambda: VALUE)()": "is an object of type lock",
    "y = [f() for f in (lambda: 1, lambda: time.time())]": "is time, whose answer may change",
    "import math": "imports while it runs",
    "global VALUE": "rebinds VALUE",
    "y = tilekit.option.get_option('cache_dir')": "whose answer may change",
}


@pytest.mark.parametrize(("line", "reason"), UNTRACKED.items(), ids=UNTRACKED)
def test_what_cannot_be_compared_is_refused_with_its_reason(line, reason):
    with pytest.raises(Untracked, match=reason):
        parts(line, value="threading.Lock()")


def test_who_asks_about_the_gpu_is_told_apart():
    text = TEXT.format(line="y = self.cuda.runtime.get_device_properties(0)", value=1)
    path = "<asks>"
    linecache.cache[path] = (len(text), None, text.splitlines(True), path)
    module = types.ModuleType("asks")
    exec(compile(text, path, "exec"), module.__dict__)
    assert dependencies.of_script(module.Kernel, {}).asks_for_gpu


def test_the_target_in_force_is_a_part_of_who_asks_for_it():
    with tilekit.jit.session.default_target(tilekit.target.SM80):
        before = parts("y = tilekit.get_current_target()")
    with tilekit.jit.session.default_target(tilekit.target.SM90A):
        assert parts("y = tilekit.get_current_target()") != before


# -------------------------------------------------------------------------------------------------------------- values


class Color(enum.Enum):
    RED = 1
    BLUE = 2


@dataclasses.dataclass(frozen=True)
class Point:
    x: float
    y: float


@dataclasses.dataclass(frozen=True, slots=True)
class Small:
    x: int


class Plain:
    def __init__(self, value):
        self.value = value


@dataclasses.dataclass
class Named:
    x: int


def named(label):
    """A dataclass with an attribute that is no field."""
    made = Named(1)
    made.label = label
    return made


FIELDS = [
    dataclasses.field(default=1),
    dataclasses.field(default=2),
    dataclasses.field(default=1, init=False),
    dataclasses.field(default=1, compare=False),
    dataclasses.field(default=1, metadata={"unit": "ms"}),
    dataclasses.field(default_factory=list),
    dataclasses.field(default_factory=dict),
]


def wrapping(result):
    """A function that says it is one of ours."""

    @functools.wraps(cdiv)
    def made(*args):
        return result

    return made


class Access(enum.IntFlag):
    READ = 1
    WRITE = 2


def limited(limit, *, of_member=False):
    """An enum with an attribute that it got later, or its member did."""
    made = enum.Enum("Limited", {"ONE": 1}, module=__name__)
    (made.ONE if of_member else made).limit = limit
    return made.ONE


class Row(tuple):
    """A tuple with attributes."""


def row(scale):
    made = Row((1, 2))
    made.scale = scale
    return made


Pair = collections.namedtuple("Pair", "left right")
ALL_DIFFERENT = [
    None,
    0,
    0.0,
    -0.0,
    False,
    "0",
    b"0",
    0j,
    math.nan,
    (),
    [],
    {},
    set(),
    frozenset(),
    (0,),
    [0],
    (0.0,),
    {0: 1},
    {1: 0},
    {0},
    range(3),
    range(4),
    slice(1, 2),
    slice(1, 2, 3),
    float16,
    float32,
    ~float32,
    Color.RED,
    Color.BLUE,
    Color,
    int,
    float,
    Point,
    Point(1.0, 2.0),
    Point(1.0, -2.0),
    Small(1),
    Small(2),
    named(1),
    named(2),
    *(dataclasses.make_dataclass("Made", [("x", list, field)], slots=True) for field in FIELDS),
    Plain(1),
    Plain(2),
    Plain([1]),
    Pair(1, 2),
    Pair(2, 1),
    Access.READ,
    Access.READ | Access.WRITE,
    Access(0),
    Access(8),
    Access(16),
    limited(1),
    limited(2),
    limited(1, of_member=True),
    limited(2, of_member=True),
    row(1),
    row(2),
    functools.partial(max, 1),
    functools.partial(min, 1),
    wrapping(1),
    wrapping(2),
    np.float32(1),
    np.float64(1),
    np.int64(1),
    np.arange(3),
    np.arange(3.0),
    np.arange(3).reshape(3, 1),
    np.zeros((2, 2)),
    np.zeros((2, 2), order="F"),
    np.dtype("f4"),
    np.add,
    torch.float16,
    torch.float32,
    math.sin,
    math.cos,
    len,
    str.upper,
]


def text(value):
    """A value and all that it leads to."""
    walk = dependencies._Walk()
    return str((walk.value(value, "it"), walk.found.parts))


def test_values_that_a_kernel_can_tell_apart_have_different_texts():
    texts = [text(value) for value in ALL_DIFFERENT]
    assert len(set(texts)) == len(texts), [
        value for value, t in zip(ALL_DIFFERENT, texts, strict=True) if texts.count(t) > 1
    ]
    assert texts == [text(value) for value in ALL_DIFFERENT]


CYCLE: list = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    "value",
    [
        object(),
        threading.Lock(),
        random.Random(1),
        CYCLE,
        iter(()),
        torch.ones(2),
        np.array([object()]),
        math,
        Plain(object()),
    ],
    ids=lambda value: type(value).__name__,
)
def test_opaque_values_are_refused(value):
    with pytest.raises(Untracked):
        text(value)


def test_a_slotted_class_with_more_than_its_fields_is_refused():
    class More(Small):
        __slots__ = ("hidden",)

    with pytest.raises(Untracked):
        text(More(1))


def test_every_kernel_of_the_project_is_tracked():
    from tests.kernels.matmul import scripts

    for make in (scripts.naive, scripts.through_shared, scripts.tuned, scripts.asynchronous, scripts.pipelined):
        handle = make()
        assert dependencies.of_script(handle.script_cls, {}).parts


_ = (int32,)


def test_a_second_look_reads_no_function_again(monkeypatch):
    class Doubling(tilekit.Script):
        def __call__(self, n: int32, x: ~float32):
            self.attrs.blocks = [cdiv(n, 32)]

    asked = []
    instructions = dependencies.dis.get_instructions
    monkeypatch.setattr(dependencies.dis, "get_instructions", lambda code: asked.append(code) or instructions(code))
    take = dependencies._Said.take
    monkeypatch.setattr(dependencies._Said, "take", lambda self, node: asked.append(node) or take(self, node))
    first = dependencies.of_script(Doubling, {}).parts
    assert {type(each) for each in asked} >= {types.CodeType, ast.FunctionDef}
    asked.clear()
    assert dependencies.of_script(Doubling, {}).parts == first
    assert asked == []
