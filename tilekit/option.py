# SPDX-License-Identifier: Apache-2.0
"""What a person can set for this session: each call changes the default that later compiles and launches start from."""

from __future__ import annotations

import os

from tilekit import config


def get_option(name: str) -> object:
    """The value in force of one option, for example `get_option("debug.dump_ir")`.

    Parameters
    ----------
    name
        An option's name with its group, without `tilekit.` in front.
    """
    return config.get_option(name, config.resolve())


def cache_dir(dir_path: str | os.PathLike[str]) -> None:
    """Keep compiled programs in this folder; it is made when first needed."""
    config.set_session_default("cache_dir", dir_path)


def cache_limit(nbytes: int) -> None:
    """Let the cache hold at most this many bytes; what was not used for longest goes first."""
    config.set_session_default("cache_limit", nbytes)


def parallel_workers(n: int) -> None:
    """Compile in at most this many processes at once."""
    config.set_session_default("parallel_workers", n)


def autotune(enable: bool = True) -> None:
    """Have the first call on a GPU find the best schedule; without, it takes the first that compiles, as on the CPU."""
    config.set_session_default("autotune", enable)


def bench_warmup(n: int) -> None:
    """Run a candidate this many times before measuring it."""
    config.set_session_default("bench_warmup", n)


def bench_repeat(n: int) -> None:
    """Measure a candidate this many times."""
    config.set_session_default("bench_repeat", n)


def toolchain(name: str | config.Toolchain) -> None:
    """Compile for GPUs with `nvrtc`, which needs no toolkit, or with the `nvcc` on the PATH."""
    config.set_session_default("toolchain", name)


class debug:
    """Options for looking into the compiler."""

    @staticmethod
    def dump_ir(enable: bool = True) -> None:
        """Write the IR after each pass into the program's cache folder."""
        config.set_session_default("debug.dump_ir", enable)

    @staticmethod
    def disable_ptxas_opt(enable: bool = True) -> None:
        """Have ptxas translate without optimizing, so that SASS follows PTX line by line."""
        config.set_session_default("debug.disable_ptxas_opt", enable)

    @staticmethod
    def trace_machine_code(enable: bool = True) -> None:
        """Have a trace show the PTX and the machine code of a kernel, also of one that runs on the CPU."""
        config.set_session_default("debug.trace_machine_code", enable)


class cpu:
    """Options for running kernels on the CPU."""

    @staticmethod
    def timeout(seconds: float) -> None:
        """Stop a kernel that runs longer than this."""
        config.set_session_default("cpu.timeout", seconds)

    @staticmethod
    def threads(n: int) -> None:
        """Run at most this many blocks at once."""
        config.set_session_default("cpu.threads", n)

    @staticmethod
    def check_blocks(n: int) -> None:
        """Check this many blocks of each kernel before its first launch on the CPU; 0 for none.

        So also of source that a person edited, before its first launch on a GPU.
        """
        config.set_session_default("cpu.check_blocks", n)
