# SPDX-License-Identifier: Apache-2.0
"""Random snippets over a few names: assignments of every form, loops, branches, helpers, objects and shared memory."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

TILES = ("x", "y", "z")
SCALARS = ("i", "j", "k")
BOXES = ("box", "other")
RESULTS = (*TILES, *SCALARS)

HELPERS = """
def mixed(self, a, b, c):
    a = a + c
    if c > 3:
        b = a - b
    for q in range(c % 3):
        a, b = b, a
    return a * 3 - b

def swapped(self, a, b):
    return b, a

def reduced(self, a, b):
    while a > b:
        a = a - b - 1
    return a % 97
"""

CLASSES = """
class Box(CLASS):
    def __init__(self, tile, count):
        super().__init__()
        self.tile = tile
        self.count: int32 = count
        self.limit: int = 5

    def next(self):
        self.count = (self.count * 3 + 1) % 83
        return self.count

    def gather(self, tile):
        self.tile += tile
        if self.count > self.limit:
            self.tile -= self.count
        return self.tile

    @property
    def half(self):
        return self.count // 2
"""


@dataclass(frozen=True)
class Scope:
    """What may be read at a place, and what may be said there."""

    tiles: frozenset[str] = frozenset(TILES)
    scalars: frozenset[str] = frozenset(SCALARS)
    pairs: frozenset[str] = frozenset()
    depth: int = 0
    # whether the innermost loop can be left and continued here
    can_break: bool = False
    can_continue: bool = False


@dataclass
class Names:
    """Makes names that no other place uses."""

    count: int = 0
    used: list[str] = field(default_factory=list)

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"


@st.composite
def programs(draw: st.DrawFn) -> str:
    """The lines of a snippet that keeps every result at its end."""
    names = Names()
    start = [
        f"z = {draw(st.sampled_from(['x', 'x - y', 'y * 2']))}",
        f"i, j, k = n, m, {draw(_numbers)}",
        f"box, other = Box(x, n), Box({draw(st.sampled_from(['x', 'y + 1']))}, 2)",
        "mem = self.shared_tensor(dtype=int32, shape=[3, 8])",
        "self.store_shared(mem[0], x); self.store_shared(mem[1], y); self.store_shared(mem[2], x - y)",
        "self.sync()",
    ]
    body, _ = draw(_block(names, Scope()))
    kept = [*RESULTS, "box.tile", "box.count", "other.tile", "other.count", "self.load_shared(mem[1])"]
    keep = [f"self.keep({row}, {value})" for row, value in enumerate(kept)]
    return "\n".join([*start, *body, *keep])


_numbers = st.integers(0, 9).map(str)
_operators = st.sampled_from(["+", "-", "*"])
_boxes = st.sampled_from(BOXES)


@st.composite
def _block(draw: st.DrawFn, names: Names, scope: Scope) -> tuple[list[str], Scope]:
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 4 if scope.depth else 6))):
        more, scope = draw(_statement(names, scope))
        lines.extend(more)
    return lines, scope


@st.composite
def _statement(draw: st.DrawFn, names: Names, scope: Scope) -> tuple[list[str], Scope]:
    simple = [_tile_assignment, _scalar_assignment, _update, _exchange, _pair, _call, _attribute, _store, _put]
    compound = [_branch, _branch, _counted, _unrolled, _while] if scope.depth < 3 else []
    jumps = [_jump] if scope.can_continue else []
    return draw(draw(st.sampled_from([*simple, *compound, *jumps]))(names, scope))


def _indent(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _one(names: frozenset[str]) -> st.SearchStrategy[str]:
    return st.sampled_from(sorted(names))


# ------------------------------------------------------------------------------------------------------- expressions


@st.composite
def _scalar(draw: st.DrawFn, scope: Scope, depth: int = 0) -> str:
    form = draw(st.integers(0, 11 if depth < 2 else 1))
    inner = _scalar(scope, depth + 1)
    match form:
        case 0:
            return draw(_numbers)
        case 1 | 2:
            return draw(_one(scope.scalars))
        case 3 | 4:
            return f"({draw(inner)} {draw(_operators)} {draw(inner)}) % 97"
        case 5:
            return f"({draw(inner)} if {draw(_condition(scope, depth + 1))} else {draw(inner)})"
        case 6:
            return f"max({draw(inner)}, {draw(inner)}) // {draw(st.integers(1, 5))}"
        case 7:
            return f"{draw(_boxes)}.{draw(st.sampled_from(['count', 'count', 'next()', 'half']))}"
        case 8:
            return f"{draw(_one(scope.tiles))}[{draw(st.integers(-8, 7))}].item() % 91"
        case 9:
            return f"mem[{draw(inner)} % 3, {draw(st.integers(0, 7))}].item() % 91"
        case 10:
            return f"sum(self.fast_divmod({draw(inner)}, 7))"
        case _:
            return f"sum([w + {draw(inner)} for w in (1, 2)]) % 89"


@st.composite
def _condition(draw: st.DrawFn, scope: Scope, depth: int = 0) -> str:
    a, b, c = (draw(_scalar(scope, depth + 1)) for _ in range(3))
    comparison = st.sampled_from(["<", "<=", "==", "!=", ">", ">="])
    form = draw(st.integers(0, 5))
    simple = f"{a} {draw(comparison)} {b}"
    match form:
        case 0:
            return f"{a} {draw(comparison)} {b} {draw(comparison)} {c}"
        case 1:
            return f"({simple} {draw(st.sampled_from(['and', 'or']))} {c} > 4)"
        case 2:
            return f"not {simple}"
        case _:
            return simple


@st.composite
def _tile(draw: st.DrawFn, scope: Scope, depth: int = 0) -> str:
    form = draw(st.integers(0, 9 if depth < 2 else 1))
    inner = _tile(scope, depth + 1)
    match form:
        case 0 | 1:
            return draw(_one(scope.tiles))
        case 2 | 3:
            return f"({draw(inner)} {draw(_operators)} {draw(inner)})"
        case 4:
            return f"({draw(inner)} {draw(_operators)} {draw(_scalar(scope, 1))})"
        case 5 if scope.pairs:
            return f"{draw(_one(scope.pairs))}[{draw(st.integers(0, 1))}]"
        case 6:
            return f"({draw(inner)} if {draw(_condition(scope, 1))} else {draw(inner)})"
        case 7:
            return f"{draw(_boxes)}.tile"
        case 8:
            return f"self.load_shared(mem[{draw(_scalar(scope, 1))} % 3])"
        case _:
            return f"self.maximum({draw(inner)}, {draw(inner)})"


# -------------------------------------------------------------------------------------------------------- statements


@st.composite
def _tile_assignment(draw: st.DrawFn, names: Names, scope: Scope) -> tuple[list[str], Scope]:
    value = draw(_tile(scope))
    if draw(st.booleans()):
        name = draw(st.sampled_from([*TILES, "t"]))
        return [f"{name} = {value}"], replace(scope, tiles=scope.tiles | {name})
    first, second = draw(st.sampled_from(TILES)), draw(st.sampled_from(TILES))
    return [f"{first} = {second} = {value}"], scope


@st.composite
def _scalar_assignment(draw: st.DrawFn, names: Names, scope: Scope) -> tuple[list[str], Scope]:
    name = draw(st.sampled_from([*SCALARS, "s"]))
    if name in scope.scalars and draw(st.integers(0, 4)) == 0:
        other = draw(st.sampled_from(SCALARS))  # never the counter of a while loop, which would not end
        return [f"{other} = ({name} + ({name} := {draw(_scalar(scope, 1))}) - {name}) % 53"], scope
    return [f"{name} = {draw(_scalar(scope))}"], replace(scope, scalars=scope.scalars | {name})


@st.composite
def _update(draw: st.DrawFn, names: Names, scope: Scope) -> tuple[list[str], Scope]:
    if draw(st.booleans()):
        return [f"{draw(_one(scope.tiles))} {draw(_operators)}= {draw(_tile(scope, 1))}"], scope
    name = draw(_one(scope.scalars & {*SCALARS, "s"}))
    return [f"{name} += {draw(_scalar(scope, 1))}", f"{name} %= 71"], scope


@st.composite
def _exchange(draw: st.DrawFn, names: Names, scope: Scope) -> tuple[list[str], Scope]:
    if draw(st.booleans()):
        a, b = draw(st.permutations(sorted(scope.tiles)))[:2]
        return [f"{a}, {b} = {draw(st.sampled_from([b, a]))}, {draw(_tile(scope, 1))}"], scope
    a, b = draw(st.permutations(SCALARS))[:2]
    return [f"{a}, {b} = {b}, {draw(_scalar(scope, 1))}"], scope


@st.composite
def _pair(draw: st.DrawFn, names: Names, scope: Scope) -> tuple[list[str], Scope]:
    name = names.fresh("pair")
    brackets = draw(st.sampled_from(["()", "[]"]))
    first, second = draw(_tile(scope, 1)), draw(_one(scope.tiles))
    return [f"{name} = {brackets[0]}{first}, {second}{brackets[1]}"], replace(scope, pairs=scope.pairs | {name})


@st.composite
def _call(draw: st.DrawFn, names: Names, scope: Scope) -> tuple[list[str], Scope]:
    a, b = draw(_tile(scope, 1)), draw(_tile(scope, 1))
    match draw(st.integers(0, 2)):
        case 0:
            return [f"{draw(st.sampled_from(TILES))} = self.mixed({a}, {b}, {draw(_scalar(scope, 1))})"], scope
        case 1:
            first, second = draw(st.permutations(TILES))[:2]
            return [f"{first}, {second} = self.swapped({a}, {b})"], scope
        case _:
            arguments = f"{draw(_scalar(scope, 1))}, abs({draw(_one(scope.scalars))})"
            return [f"{draw(st.sampled_from(SCALARS))} = self.reduced({arguments})"], scope


@st.composite
def _attribute(draw: st.DrawFn, names: Names, scope: Scope) -> tuple[list[str], Scope]:
    box = draw(_boxes)
    match draw(st.integers(0, 4)):
        case 0:
            return [f"{box}.count = {draw(_scalar(scope))}"], scope
        case 1:
            return [f"{box}.count += {draw(_scalar(scope, 1))}", f"{box}.count %= 71"], scope
        case 2:
            return [f"{box}.tile {draw(_operators)}= {draw(_tile(scope, 1))}"], scope
        case 3:
            return [f"{draw(st.sampled_from(TILES))} = {box}.gather({draw(_tile(scope, 1))})"], scope
        case _:
            first, second = draw(st.permutations(SCALARS))[:2]
            return [f"{first}, {second} = {box}.count, {box}.next()"], scope


@st.composite
def _put(draw: st.DrawFn, names: Names, scope: Scope) -> tuple[list[str], Scope]:
    """A part of a tile is written; to Python, whose tiles never change, that is another tile (see `cells.py`)."""
    at = draw(st.sampled_from([f"{draw(_scalar(scope, 1))} % 8", str(draw(st.integers(-8, 7)))]))
    return [f"{draw(_one(scope.tiles))}[{at}] = {draw(_scalar(scope, 1))}  # put"], scope


@st.composite
def _store(draw: st.DrawFn, names: Names, scope: Scope) -> tuple[list[str], Scope]:
    if draw(st.booleans()):
        store = f"self.store_shared(mem[{draw(_scalar(scope, 1))} % 3], {draw(_tile(scope, 1))})"
        return ["self.sync()", store, "self.sync()"], scope
    part = names.fresh("part")
    change = draw(st.sampled_from(SCALARS))
    return [
        f"{part} = mem[{draw(_one(scope.scalars & {*SCALARS}))} % 3]",
        f"{change} = ({change} + 1) % 47",
        "self.sync()",
        f"self.store_shared({part}, {draw(_tile(scope, 1))})",
        "self.sync()",
    ], scope


@st.composite
def _branch(draw: st.DrawFn, names: Names, scope: Scope) -> tuple[list[str], Scope]:
    inner = replace(scope, depth=scope.depth + 1)
    condition = draw(_condition(scope))
    then, after_then = draw(_block(names, inner))
    if draw(st.booleans()):
        return [f"if {condition}:", *_indent(then)], scope
    otherwise, after_else = draw(_block(names, inner))
    after = replace(scope, tiles=after_then.tiles & after_else.tiles, scalars=after_then.scalars & after_else.scalars)
    return [f"if {condition}:", *_indent(then), "else:", *_indent(otherwise)], after


def _inside(scope: Scope, *scalars: str, can_break: bool) -> Scope:
    return replace(
        scope, depth=scope.depth + 1, scalars=scope.scalars | {*scalars}, can_break=can_break, can_continue=True
    )


@st.composite
def _counted(draw: st.DrawFn, names: Names, scope: Scope) -> tuple[list[str], Scope]:
    counter = names.fresh("c")
    limit = draw(st.sampled_from(["3", f"{draw(_one(scope.scalars))} % 4"]))
    limits = draw(st.sampled_from([f"{limit}", f"1, {limit}", f"{limit}, -1, -2", f"0, {limit}, 2"]))
    body, _ = draw(_block(names, _inside(scope, counter, can_break=True)))
    return [f"for {counter} in range({limits}):", *_indent(body)], scope


@st.composite
def _unrolled(draw: st.DrawFn, names: Names, scope: Scope) -> tuple[list[str], Scope]:
    counter = names.fresh("h")
    body, _ = draw(_block(names, _inside(scope, counter, can_break=False)))
    return [f"for {counter} in [1, 4]:", *_indent(body)], scope


@st.composite
def _while(draw: st.DrawFn, names: Names, scope: Scope) -> tuple[list[str], Scope]:
    counter = names.fresh("left")
    body, _ = draw(_block(names, _inside(scope, counter, can_break=True)))
    start = f"{counter} = {draw(_one(scope.scalars))} % 4"
    return [start, f"while {counter} > 0:", f"    {counter} = {counter} - 1", *_indent(body)], scope


@st.composite
def _jump(draw: st.DrawFn, names: Names, scope: Scope) -> tuple[list[str], Scope]:
    jump = draw(st.sampled_from(["break", "continue"])) if scope.can_break else "continue"
    return [f"if {draw(_condition(scope))}:", f"    {jump}"], scope
