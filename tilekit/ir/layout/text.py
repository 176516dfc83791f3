# SPDX-License-Identifier: Apache-2.0
"""Register layouts as people read them: an expression of the constructors, or a grid of cells."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

from tilekit.ir.layout.digits import Digit, Place, Replica


def factored(shape: Sequence[int], spatial: Sequence[Place], local: Sequence[Digit]) -> str | None:
    """`local(2, 1).spatial(8, 4)`: the layout as a chain of tilings, outermost first, or None where it is none."""
    spatial_rest, local_rest = list(spatial), list(local)
    strides = [1] * len(shape)
    calls: list[str] = []
    while spatial_rest or local_rest:
        if spatial_rest and isinstance(replica := spatial_rest[-1], Replica):
            spatial_rest.pop()
            calls.append(f"replicated(num_workers={replica.extent})")
            continue
        # At equal length the registers go inside: that is how atoms are written.
        name, run = max(
            (
                (prefix + kind, _run(rest, strides, step))
                for kind, rest in (("local", local_rest), ("spatial", spatial_rest))
                for prefix, step in (("", -1), ("column_", 1))
            ),
            key=lambda candidate: len(candidate[1]),
        )
        if not run:
            return None
        rest = local_rest if name.endswith("local") else spatial_rest
        del rest[-len(run) :]
        extents = [1] * len(shape)
        for digit in run:
            extents[digit.dim] = digit.extent
            strides[digit.dim] = digit.end
        calls.append(f"{name}({', '.join(map(str, extents))})")
    if len(shape) > 0 and not any(call.startswith(("local", "spatial", "column")) for call in calls):
        calls.append(f"local({', '.join('1' for _ in shape)})")
    return ".".join(reversed(calls)) or "local()"


def _run(rest: Sequence[Place], strides: Sequence[int], step: int) -> list[Digit]:
    """The longest tail of `rest` that tiles what is left above `strides`: one digit a dimension, in order."""
    run: list[Digit] = []
    for place in reversed(rest):
        if not isinstance(place, Digit) or place.stride != strides[place.dim]:
            break
        if run and (place.dim - run[-1].dim) * step <= 0:
            break
        run.append(place)
    return run


def grid(shape: Sequence[int], cell: Callable[[tuple[int, ...]], str]) -> str:
    """A table of `cell(index)` for each of the planes of the last two dimensions."""
    return "\n\n".join(_planes(shape, cell))


def _planes(shape: Sequence[int], cell: Callable[[tuple[int, ...]], str]) -> Iterator[str]:
    rows = range(shape[-2]) if len(shape) > 1 else range(1)
    columns = range(shape[-1]) if shape else range(1)
    for outer in itertools.product(*map(range, shape[:-2])):
        indices = [[(*outer, row, column)[-len(shape) :] if shape else () for column in columns] for row in rows]
        table = [
            ["", *map(str, columns)],
            *([str(row), *map(cell, line)] for row, line in zip(rows, indices, strict=True)),
        ]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = ["  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)) for line in table]
        title = [f"[{', '.join(map(str, outer))}, :, :]"] if outer else []
        yield "\n".join([*title, *lines])


def thread_list(threads: Sequence[int]) -> str:
    """`0,4,8,..,28`: some threads, the middle left out where they are many."""
    if len(threads) <= 4:
        return ",".join(map(str, threads))
    return f"{threads[0]},{threads[1]},{threads[2]},..,{threads[-1]}"
