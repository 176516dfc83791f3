# SPDX-License-Identifier: Apache-2.0
"""What a kernel printed goes to Python's standard output, as far as anybody would read it; the kernel keeps it all."""

from __future__ import annotations

import sys

SHOWN_LINES = 1000


def show(printed: str) -> None:
    """Write the first lines, and how many more there are."""
    sys.stdout.write(shortened(printed))


def shortened(printed: str) -> str:
    end = 0
    for _ in range(SHOWN_LINES):
        end = printed.find("\n", end) + 1
        if end in (0, len(printed)):
            return printed
    more = printed.count("\n", end) + (not printed.endswith("\n"))
    return f"{printed[:end]}… and {more:,} more line{'s' if more > 1 else ''}: kernel.printed has all\n"
