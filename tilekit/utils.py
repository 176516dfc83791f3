# SPDX-License-Identifier: Apache-2.0
"""Small helpers for writing kernels and the host code around them; those of arithmetic take expressions too."""

from __future__ import annotations

import concurrent.futures
import itertools
import math
import multiprocessing
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tilekit import config, dtypes
from tilekit.runtime import benchmark

if TYPE_CHECKING:
    import torch

T = TypeVar("T")
R = TypeVar("R")

# ------------------------------------------------------------------------------------------------------ arithmetic


def cdiv(a: Any, b: Any) -> Any:
    """`a / b` rounded up; for numbers and for expressions over a kernel's parameters."""
    return (a + (b - 1)) // b


def idiv(a: int, b: int) -> int:
    """`a / b` where nothing may be left over."""
    if a % b:
        raise ValueError(f"{a} is not a multiple of {b}")
    return a // b


def gcd(*numbers: int) -> int:
    """The greatest common divisor."""
    return math.gcd(*numbers)


def lcm(*numbers: int) -> int:
    """The least common multiple."""
    return math.lcm(*numbers)


def prod(factors: Iterable[Any]) -> Any:
    """The product of numbers or expressions; of none, 1."""
    product: Any = None
    for factor in factors:
        product = factor if product is None else product * factor
    return 1 if product is None else product


def floor_log2(n: int) -> int:
    """The largest k with `2**k <= n`."""
    if n < 1:
        raise ValueError(f"{n} has no logarithm")
    return n.bit_length() - 1


def is_power_of_two(n: int) -> bool:
    """Whether n is 1, 2, 4, 8, ..."""
    return n > 0 and n & (n - 1) == 0


def factorize_decomposition(n: int) -> list[int]:
    """The prime factors of n, smallest first, each as often as it divides n."""
    if n < 1:
        raise ValueError(f"{n} has no prime factors")
    factors: list[int] = []
    divisor = 2
    while divisor * divisor <= n:
        while n % divisor == 0:
            factors.append(divisor)
            n //= divisor
        divisor += 1
    return [*factors, n] if n > 1 else factors


def nbytes_from_nbits(nbits: int) -> int:
    """How many bytes these bits fill; they must fill them."""
    if nbits % 8:
        raise ValueError(f"{nbits} bits are no whole number of bytes")
    return nbits // 8


def select_bits(mask: int, left: int, right: int) -> int:
    """Bits `left` to `right` (not included) of `mask`, counted from the lowest, moved down to bit 0."""
    return (mask >> left) & ((1 << (right - left)) - 1)


# ------------------------------------------------------------------------------------------- sequences, names, files


def same_list(lhs: Sequence[Any], rhs: Sequence[Any], use_equal: bool = False) -> bool:
    """Whether both hold the same objects in the same order, or, with `use_equal`, equal ones."""
    if len(lhs) != len(rhs):
        return False
    return all(a == b if use_equal else a is b for a, b in zip(lhs, rhs, strict=True))


def ranked_product(*iterables: Iterable[T], ranks: Sequence[int]) -> Iterator[list[T]]:
    """The cartesian product, where the iterable with the highest rank changes fastest.

    Each item lists its values in the order of the iterables: `ranked_product("ab", "xy", ranks=[1, 0])` gives
    `["a", "x"], ["b", "x"], ["a", "y"], ["b", "y"]`.
    """
    if sorted(ranks) != list(range(len(iterables))):
        raise ValueError(
            f"ranks of {len(iterables)} iterables are 0 to {len(iterables) - 1} in some order, not {ranks}"
        )
    by_rank = sorted(range(len(iterables)), key=lambda position: ranks[position])
    for values in itertools.product(*(iterables[position] for position in by_rank)):
        yield [values[rank] for rank in ranks]


def to_snake_case(name: str) -> str:
    """`MatmulV5` as `matmul_v5`: an underscore before every capital but the first letter, and all in lower case."""
    parts = [f"_{char}" if char.isupper() and before not in ("", "_") else char for before, char in _pairs(name)]
    return "".join(parts).lower()


def _pairs(name: str) -> Iterator[tuple[str, str]]:
    return zip(["", *name], name, strict=False)


def relative_to_with_walk_up(source: Path, target: Path) -> Path:
    """The way from folder `source` to `target`, upward where it must."""
    return Path(os.path.relpath(target.resolve(), source.resolve()))


def unique_file_name(pattern: str) -> str:
    """`pattern` with its `{}` filled by the first of 0, 1, 2, ... that names no file yet."""
    if "{}" not in pattern:
        raise ValueError(f"{pattern!r} has no {{}} to fill")
    return next(name for name in map(pattern.format, itertools.count()) if not os.path.exists(name))


# ------------------------------------------------------------------------------------------------------------ calls


def initialize(*args: Any, **kwargs: Any) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """A decorator that calls the function once, at its definition, with these arguments."""

    def call_now(function: Callable[..., R]) -> Callable[..., R]:
        function(*args, **kwargs)
        return function

    return call_now


def repeat_until_converge(transform: Callable[[T], T], value: T, limit: int | None = None) -> T:
    """Apply `transform` until it gives back the very object it was given, or `limit` times."""
    for _ in itertools.count() if limit is None else range(limit):
        changed = transform(value)
        if changed is value:
            break
        value = changed
    return value


def serial_imap(func: Callable[[T], R], jobs: Iterable[T], num_workers: int | None = None) -> Iterator[R]:
    """`parallel_imap` without processes: what to put in its place when a job must be debugged."""
    return map(func, jobs)


def parallel_imap(func: Callable[[T], R], jobs: Iterable[T], num_workers: int | None = None) -> Iterator[R]:
    """`func` of each job, in order, computed by fresh processes.

    Parameters
    ----------
    func
        Defined at the top of a module that the processes can import.
    num_workers
        At most so many processes; by default the option `parallel_workers`.
    """
    listed = list(jobs)
    workers = min(num_workers or config.resolve().parallel_workers, len(listed))
    if workers == 0:
        return
    # a fork would copy the locks of threads that torch and the notebook hold
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(workers, mp_context=context) as pool:
        yield from pool.map(func, listed)


def parallel_map(func: Callable[[T], R], jobs: Iterable[T], num_workers: int | None = None) -> list[R]:
    """`parallel_imap`, waited for."""
    return list(parallel_imap(func, jobs, num_workers))


def benchmark_func(
    run_func: Callable[[], object], warmup: int = 1, repeat: int = 5, *, clear_l2_cache: bool = True
) -> float:
    """The median time of a call, in milliseconds: of what it runs on the GPU where there is one, else on the clock.

    Parameters
    ----------
    run_func
        Launches what is to be timed; takes nothing.
    warmup, repeat
        Calls before the measurement, and calls measured.
    clear_l2_cache
        Begin each call with a cold L2 cache, as a kernel in a larger program would.
    """
    timing = benchmark.measure(run_func, warmup=warmup, repeat=repeat, clear_l2_cache=clear_l2_cache)
    return timing.median * 1e3


# ------------------------------------------------------------------------------------------------------------ torch


def dtype_to_torch(dtype: dtypes.DataType) -> torch.dtype:
    """The torch type of a tensor of `dtype`."""
    import torch

    return getattr(torch, dtypes.torch_name(dtype))


def dtype_from_torch(dtype: torch.dtype) -> dtypes.DataType:
    """Our type for a torch type."""
    return dtypes.from_torch(dtype)


# ----------------------------------------------------------------------------------------------------------- colors


def _painted(code: int) -> Callable[..., str]:
    def paint(value: object, fmt: str = "{}") -> str:
        """The value in this color on a terminal."""
        return f"\x1b[{code}m{fmt.format(value)}\x1b[0m"

    return paint


red = _painted(31)
green = _painted(32)
blue = _painted(34)
cyan = _painted(36)
bold = _painted(1)


def nocolor(text: str) -> str:
    """The text without its colors."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)
