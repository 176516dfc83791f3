# SPDX-License-Identifier: Apache-2.0
"""Programs that look like IR, of any length, and pipelines that change some of their lines."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from tilekit.events import Sink, Stage, step

_OPS = ("add", "mul", "cast", "dot", "load_global", "store_shared", "reduce", "transpose", "where", "exp")


class Program:
    """An object with a text; it counts how often it was printed."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.prints = 0

    def __str__(self) -> str:
        self.prints += 1
        return self.text


def lines_of_ir(count: int, seed: int) -> list[str]:
    """So many lines of nested loops and instructions, each with a layout as the printer writes it."""
    rng = random.Random(seed)
    lines: list[str] = []
    depth = 1
    for value in range(count):
        kind = rng.random()
        if kind < 0.05 and depth < 7:
            lines.append(f"{'    ' * depth}for i{rng.randrange(40)} in range(i32({2 ** rng.randrange(1, 8)})):")
            depth += 1
        elif kind < 0.1 and depth > 1:
            lines.append(f"{'    ' * depth}sync_threads()")
            depth -= 1
        else:
            a, b = (max(value - rng.randrange(1, 50), 0) for _ in range(2))
            layout = f"local({rng.choice((1, 2, 4))}, 1).spatial({rng.choice((8, 16))}, {rng.choice((2, 4))})"
            lines.append(
                f"{'    ' * depth}t{value}: f16[{rng.choice((16, 32))}, {rng.choice((32, 64))}] @ {layout}"
                f" = {rng.choice(_OPS)}(t{a}, t{b}, offsets=[{rng.randrange(4096)}, {rng.randrange(512)}])"
            )
    return lines


def changed(lines: Sequence[str], share: float, rng: random.Random) -> list[str]:
    """The lines with a share of them edited, removed, or followed by a new one."""
    made = list(lines)
    for _ in range(max(round(share * len(made)), 1)):
        at, kind = rng.randrange(len(made)), rng.random()
        if kind < 0.4:
            made[at] = made[at].replace("f16", "f32") if "f16" in made[at] else f"{made[at]}  # unrolled"
        elif kind < 0.7:
            made.insert(at, f"    n{rng.randrange(10**6)}: Let[i32] = i32({rng.randrange(10**6)})")
        else:
            del made[at]
    return made


def pipeline(passes: int, lines: int, seed: int, share_changed: float = 0.4) -> Iterator[tuple[Program, Program]]:
    """What each pass is given and what it makes: the same object, or a program of which 1 % of the lines differ."""
    rng = random.Random(seed)
    changing = set(rng.sample(range(passes), round(share_changed * passes)))
    text = lines_of_ir(lines, seed)
    before = Program("\n".join(text))
    for number in range(passes):
        after = before
        if number in changing:
            text = changed(text, 0.01, rng)
            after = Program("\n".join(text))
        yield before, after
        before = after


def compile_with(sink: Sink, steps: Iterator[tuple[Program, Program]]) -> None:
    """Tell the sink of these passes, as drivers do."""
    for number, (before, after) in enumerate(steps):
        with step(sink, Stage.TILE, f"pass_{number}", before) as underway:
            underway.made(after)
    sink.done(None)
