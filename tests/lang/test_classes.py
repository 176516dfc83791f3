# SPDX-License-Identifier: Apache-2.0
"""Objects of a `tilus.Class` inside kernels mean what they mean in Python."""

import textwrap

import numpy as np
import pytest

from tests.lang.cells import Inputs, agrees, by_kernel, kernel, printed
from tilekit.diag import LanguageError

RING = """
class Ring(CLASS):
    step = 1

    def __init__(self, stages: int, first=0):
        super().__init__()
        self.stages: int = stages
        self.stage: int32 = first

    def advance(self):
        self.stage = (self.stage + self.step) % self.stages

    def next(self):
        self.advance()
        return self.stage

    def both(self):
        return self.stage, self.stages

    @property
    def twice(self):
        return self.stage * 2

    @property
    def place(self):
        return self.stage

    @place.setter
    def place(self, value):
        self.stage = value % self.stages

    @staticmethod
    def sum(a: int32, b: int32):
        return a + b

"""


def agrees_with(classes: str, body: str, methods: str = "", **options: int) -> None:
    agrees(textwrap.dedent(body), methods, bases=classes, **options)


# ------------------------------------------------------------------------------------------------------- variables


def test_an_attribute_with_a_type_changes_while_the_kernel_runs():
    agrees_with(
        RING,
        """
        ring, other = Ring(3, n), Ring(stages=5)
        before = ring.stage
        for i in range(n + 2):
            ring.advance()
            if i % 2 == 0:
                other.stage += 3
            x = x * 2 + ring.stage
        self.keep(0, x); self.keep(1, ring.stage); self.keep(2, other.stage); self.keep(3, before)
        """,
    )


def test_an_attribute_is_read_before_a_method_changes_it():
    agrees_with(
        RING,
        """
        ring = Ring(7, 2)
        a = ring.stage + ring.next() * 10 + ring.next() * 100
        pair = (ring.stage, ring.next(), ring.stage)
        b = max(ring.stage, ring.next()) * 10 + min(ring.stage, ring.next())
        ring.stage = ring.stage + ring.next()
        ring.stage += ring.next()
        self.keep(0, a); self.keep(1, pair[0] + pair[1] * 10 + pair[2] * 100); self.keep(2, b); self.keep(3, ring.stage)
        """,
    )


def test_what_a_method_returns_keeps_its_value():
    agrees_with(
        RING,
        """
        ring = Ring(7)
        for i in range(n):
            stage, stages = ring.both()
            both = ring.both()
            now = ring.next()
            ring.advance()
            x = x + stage * 100 + both[0] * 10 + now + stages
        self.keep(0, x)
        """,
    )


def test_a_method_is_passed_what_its_argument_was():
    methods = """
    def mixed(self, ring, before: int32):
        ring.advance()
        return before * 10 + ring.stage
    """
    agrees_with(
        RING, "ring = Ring(5, 1)\nself.keep(0, self.mixed(ring, ring.stage)); self.keep(1, ring.stage)", methods
    )


def test_properties_are_computed_and_set():
    agrees_with(
        RING,
        """
        ring = Ring(5)
        for i in range(n):
            ring.place = ring.twice + 7
            ring.place += 1
            x = x + ring.place + ring.twice
        self.keep(0, x); self.keep(1, ring.stage)
        """,
    )


def test_loops_and_conditions_on_attributes():
    agrees_with(
        RING,
        """
        ring = Ring(100, n * 3)
        turns = 0
        while ring.stage > 2:
            ring.stage -= 2
            turns += 1
        for i in range(ring.stage + 3):
            ring.stage = ring.stage + 2
            turns += i
        if ring.stage > 5 and ring.next() % 2 == 0 or ring.next() > 90:
            turns += 1000
        turns += ring.next() if m > 0 else ring.twice
        self.keep(0, turns); self.keep(1, ring.stage)
        """,
    )


def test_the_script_has_such_attributes_too():
    agrees(
        """
        self.count: int32 = 0
        self.scale: float32 = 1
        self.height: int = 4
        for i in range(n):
            self.count += i * self.height
            self.scale = self.scale * f
        self.keep(0, self.count); self.keep(1, self.scale)
        """
    )


def test_an_attribute_takes_the_type_that_it_was_given():
    text = printed(
        """
        self.phase: uint32 = 1
        self.total: int64 = n
        for i in range(n):
            self.phase = self.phase ^ (i == 2)
            self.total = n
        """
    )
    assert "phase: u32 = u32(1)" in text and "total: i64 = i64(n)" in text
    assert "total = i64(n)" in text.split("for ")[1]


def test_the_phase_of_a_ring():
    classes = """
    class Phased(CLASS):
        def __init__(self, stages: int):
            super().__init__()
            self.stages: int = stages
            self.stage: int32 = 0
            self.phase: uint32 = 1

        def advance(self):
            self.stage = (self.stage + 1) % self.stages
            self.phase = self.phase ^ (self.stage == 0)
    """
    agrees_with(
        classes,
        """
        ring = Phased(3)
        for i in range(n):
            ring.advance()
            x = x * 2 + int(ring.phase == 1)
        self.keep(0, x)
        """,
    )


POINT = """
class Point(CLASS):
    def __init__(self, a=3, *, b=4):
        super().__init__()
        self.a: int32 = a
        self.b: int = b

    def add(self, k: int32 = 1, *rest):
        self.a += k
        for r in rest:
            self.a += r

    def pair(self):
        return [self.a, self.b]

    def swap(self, other):
        self.a, other.a = other.a, self.a

"""


@pytest.mark.parametrize(
    "body",
    [
        "p = Point(b=7); p.add(); p.add(n, 2, 3); self.keep(0, p.a + p.b)",
        "p = Point()\nfor i in range(n):\n    z = p.pair()\n    p.add()\n    x = x + z[0]\nself.keep(0, x)",
        "p, q = Point(n), Point(m)\nfor i in range(3):\n    p.swap(q)\n    p.a += 1\nself.keep(0, p.a - q.a * 50)",
        "p = Point(n)\np.a, k = 5, p.a\nfor i in range(3): p.a, k = k, p.a + i\nself.keep(0, p.a); self.keep(1, k)",
        "p, q = Point(1), Point(2); p.a = q.a = n; q.a += 1; self.keep(0, p.a * 100 + q.a)",
        "p = Point(n); f = lambda k: p.a + k; a = f(1); p.add(5); b = f(1); self.keep(0, a * 100 + b)",
        "ps = [Point(k) for k in (1, n, m)]\nfor p in ps: p.add(2)\nself.keep(0, sum([p.a for p in ps]))",
        "p = Point(n); k = (p.a if n > 2 else p.b) + (p.pair()[0] if m > 0 else 0); self.keep(0, k)",
        "p = Point(n)\nwhile (k := p.a) > -5:\n    p.a -= 2\n    x = x + k\nself.keep(0, x)",
        "p = Point(n)\nfor p.b in [1, 2]: p.add(p.b)\nself.keep(0, p.a)",
        "p = Point(n); p.a: int32 = 7; p.add(2); self.keep(0, p.a)",
        "p = Point(2)\nfor i in self.range(p.a, n + 3, unroll=2):\n    p.add(i)\n    x = x + p.a\nself.keep(0, x)",
        "p = Point(1)\nfor i in range(n):\n    y = y + x[p.a].item()\n    p.a = (p.a + 1) % 4\nself.keep(0, y)",
        "p, q = Point(), Point(); self.keep(0, int(p is q) + 2 * int(p in [q, p]) + 4 * int(0 < p.a < n))",
        "self.on: boolean = True\nfor i in range(8):\n    self.on = self.on and i != n\n    if self.on: x = x + 1\n"
        "self.keep(0, x)",
    ],
)
def test_attributes_wherever_python_has_them(body):
    agrees_with(POINT, body)


# -------------------------------------------------------------------------------------------- what classes are made of

FAMILY = (
    RING
    + """
class Fast(Ring):
    step = 2

    def __init__(self, stages: int, name: str):
        super().__init__(stages, first=1)
        self.name = name
        self.inner = Ring(stages * 2)

    def advance(self):
        super().advance()
        self.inner.stage += self.stage

    @classmethod
    def usual(cls, name):
        return cls(5, name)
"""
)


def test_classes_inherit():
    agrees_with(
        FAMILY,
        """
        fast, ring = Fast(5, "a"), Ring(5)
        for i in range(n):
            k = fast.next() + ring.next()
            x = x + k * len(fast.name)
        self.keep(0, x); self.keep(1, fast.inner.stage); self.keep(2, fast.inner.stages)
        self.keep(3, int(isinstance(fast, Ring)) + 2 * int(isinstance(ring, Fast)))
        """,
    )


def test_methods_of_all_kinds():
    agrees_with(
        FAMILY,
        """
        fast = Fast.usual("abc")
        k = fast.sum(n, 2) + Ring.sum(m, fast.next())
        move = fast.advance
        move()
        self.keep(0, k); self.keep(1, fast.stage); self.keep(2, getattr(fast, "stages"))
        """,
    )


def test_objects_in_containers_and_attributes():
    agrees_with(
        RING,
        """
        rings = [Ring(3), Ring(5, 1)]
        self.first = rings[0]
        named = {"a": rings[1]}
        for i in range(n):
            for ring in rings:
                ring.advance()
            self.first.stage += 1
            named["a"].stage += 2
        self.keep(0, rings[0].stage); self.keep(1, rings[1].stage)
        """,
    )


def test_an_object_is_passed_by_reference():
    methods = """
    def moved(self, ring, by: int32):
        ring.stage += by
        return ring
    """
    agrees_with(
        RING,
        """
        ring = Ring(50)
        for i in range(n):
            again = self.moved(ring, i)
            again.stage += 100
        self.keep(0, ring.stage)
        """,
        methods,
    )


def test_an_object_made_in_a_loop_is_a_new_one_at_each_turn():
    agrees_with(
        RING,
        """
        for i in range(n):
            ring = Ring(9, i)
            ring.name = "a"
            ring.extra: int32 = 0
            for j in range(i):
                ring.advance()
                ring.extra += j
            x = x * 2 + ring.stage + ring.extra
        self.keep(0, x)
        """,
    )


def test_an_object_may_be_called():
    classes = """
    class Adder(CLASS):
        def __init__(self, by: int32):
            super().__init__()
            self.by: int32 = by

        def __call__(self, value: int32):
            self.by += 1
            return value + self.by
    """
    agrees_with(classes, "add = Adder(n)\nself.keep(0, add(2) + add(3) * 10); self.keep(1, add.by + add(1))")


def test_a_class_without_a_constructor():
    agrees_with("class Bag(CLASS):\n    size = 3\n", "bag = Bag(); bag.k = n; self.keep(0, bag.k + bag.size)")


# ------------------------------------------------------------------------------------------------------------- tensors

SUMS = """
class Sums(CLASS):
    def __init__(self, start):
        super().__init__()
        self.tile = start

    def add_to(self, tile):
        self.tile += tile

    def get(self):
        return self.tile

    def doubled(self):
        return self.tile * 2, self.tile
"""


def test_a_tile_of_an_object_is_written_in_place():
    body = "sums = Sums(x * 1)\nfor i in range(n):\n    sums.add_to(y + i)\nself.keep(0, sums.tile)"
    agrees_with(SUMS, body)
    inside = printed(textwrap.dedent(body), bases=SUMS).split("for ")[1]
    assert "assign(" not in inside, "nobody else has the tile"


def test_an_object_keeps_a_tile_of_its_own():
    agrees_with(
        SUMS,
        """
        one, two = Sums(x), Sums(x)
        z = one.get()
        one.add_to(y)
        x += 1
        two.tile = two.tile * 3
        kept = (one.tile, two.get())
        for i in range(n):
            one.add_to(x)
            kept2 = one.tile
            one.add_to(y)
            z = z + kept2
        double, single = one.doubled()
        one.tile -= 5
        self.keep(0, one.tile); self.keep(1, two.tile); self.keep(2, x); self.keep(3, z); self.keep(4, kept[0])
        self.keep(5, kept[1]); self.keep(6, double); self.keep(7, single)
        """,
    )


def test_a_container_made_in_a_loop_keeps_the_tile_of_an_object():
    agrees_with(
        SUMS,
        """
        sums = Sums(x)
        for i in range(n):
            pair = (sums.tile, y)
            sums.add_to(y)
            if i % 2:
                other = [sums.tile]
                sums.tile *= 2
                y = y - other[0]
            y = y + pair[0]
        self.keep(0, sums.tile); self.keep(1, y)
        """,
    )


def test_a_method_is_handed_the_tile_that_it_writes():
    agrees_with(
        SUMS,
        """
        sums = Sums(x)
        sums.add_to(sums.tile)
        for i in range(n):
            sums.add_to(sums.tile)
            sums.tile -= y
        self.keep(0, sums.tile); self.keep(1, x)
        """,
    )


def test_what_cannot_be_written_for_one_alone_is_an_error():
    methods = """
    def both(self, sums, tile):
        for i in range(3):
            sums.add_to(tile)
    """
    with pytest.raises(LanguageError) as caught:
        printed("sums = Sums(x)\nself.both(sums, sums.tile)", methods, bases=SUMS)
    assert caught.value.code == "TK114" and "others hold this one too" in caught.value.to_text()


def test_a_method_writes_a_tile_of_the_object_that_it_was_handed():
    methods = """
    def bump(self, tile):
        tile += 1
    """
    inputs = Inputs.fresh()
    found = by_kernel(
        "sums = Sums(x); self.bump(sums.tile); self.keep(0, sums.tile); self.keep(1, x)", inputs, methods, bases=SUMS
    )
    np.testing.assert_array_equal(found[0], inputs.ints[0] + 1)
    np.testing.assert_array_equal(found[1], inputs.ints[0])


def test_an_object_holds_shared_memory():
    classes = """
    class Stages(CLASS):
        def __init__(self, stages: int):
            super().__init__()
            self.memory = self.shared_tensor(dtype=int32, shape=[stages, 8])
            self.stages: int = stages
            self.stage: int32 = 0

        def put(self, tile):
            self.store_shared(self.memory[self.stage], tile)
            self.stage = (self.stage + 1) % self.stages

        def get(self, at: int32):
            return self.load_shared(self.memory[at])
    """
    agrees_with(
        classes,
        """
        stages = Stages(3)
        part = stages.memory[2]
        for i in range(6):
            stages.put(x + i)
            self.sync()
        self.keep(0, stages.get(n % 3)); self.keep(1, self.load_shared(part))
        """,
    )


# ------------------------------------------------------------------------------------------------- a return in a method


@pytest.mark.parametrize("n", [1, 5])
def test_a_return_under_a_run_time_condition_ends_the_kernel(n):
    methods = """
    def stop(self, k: int32, row: int):
        if k > 3:
            self.keep(row, k)
            return
        self.keep(row + 1, k)
    """
    inputs = Inputs.fresh(n)
    found = by_kernel("self.keep(0, x)\nself.stop(n, 1)\nself.keep(3, y)", inputs, methods)
    written = ~np.isnan(found[:, 0])
    assert list(np.flatnonzero(written)) == ([0, 1] if n > 3 else [0, 2, 3])


@pytest.mark.parametrize("n", [1, 5])
def test_a_return_in_a_loop_of_a_method_ends_the_kernel(n):
    classes = """
    class Search(CLASS):
        def until(self, limit: int32):
            for i in range(8):
                if i == limit:
                    return
    """
    found = by_kernel(
        "self.keep(0, x)\nSearch().until(n - 1 if n > 3 else 20)\nself.keep(1, y)", Inputs.fresh(n), bases=classes
    )
    assert np.isnan(found[1]).all() == (n > 3)


def test_a_return_that_is_decided_while_compiling_ends_the_method():
    methods = """
    def chosen(self, tile, double: bool):
        if double:
            return tile * 2
        for k in [1, 2, 3]:
            if k == 2:
                return tile + k
        return tile
    """
    agrees("self.keep(0, self.chosen(x, True)); self.keep(1, self.chosen(x, False)); self.keep(2, y)", methods)


def test_a_method_called_in_a_branch_returns_its_value():
    methods = """
    def picked(self, k: int32):
        j = k * 2
        if k > 2:
            j = k * 3
        return j, k
    """
    agrees(
        """
        a, b = 0, 0
        for i in range(n):
            if i % 2:
                a, b = self.picked(i)
        self.keep(0, a + b * 100)
        """,
        methods,
    )


# ----------------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    "body, code",
    [
        ("ring = Ring(3)\nfor i in range(n): ring.name = 'a'", "TK114"),
        ("ring = Ring(3)\nfor i in range(n): ring.extra: int32 = i", "TK114"),
        ("ring = Ring(3)\nfor i in range(n): ring.stages = 4", "TK114"),
        ("ring = Ring(3)\nring.list = []\nfor i in range(n): ring.list.append(i)", "TK114"),
        ("ring = Ring(3)\nfor i in range(n): ring = Ring(4)\nself.keep(0, ring.stage)", "TK114"),
        ("ring = Ring(3)\nring.stage = 'a'", "TK215"),
        ("ring = Ring(3)\nring.stage = x", "TK215"),
        ("ring = Ring(3)\nring()", "TK103"),
        ("ring = Ring(3)\nk = ring + 1", "TK109"),
        ("ring = Ring(3)\nk = ring.stag", "TK102"),
        ("ring = Ring(2.5)", "TK215"),
        ("ring = Ring()", "TK104"),
        ("self.keep.size: int32 = n", "TK103"),
    ],
)
def test_what_objects_cannot_do_is_an_error(body, code):
    with pytest.raises(LanguageError) as caught:
        printed(body, bases=RING)
    assert caught.value.code == code, caught.value.to_text()


def test_kernels_of_one_class_do_not_share_objects():
    body = "ring = Ring(3)\nself.keep(0, ring.next())"
    first, second = (kernel(body, bases=RING) for _ in range(2))
    assert first is not second
    agrees_with(RING, body)
    agrees_with(RING, body)
