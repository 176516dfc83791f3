# SPDX-License-Identifier: Apache-2.0
"""One frozen Config, resolved where a person calls in; below that it is an argument and nobody reads an option."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from pathlib import Path

from tilekit.diag import ConfigError, suggest


class Toolchain(Enum):
    """Who compiles `source.cu` for a GPU."""

    NVRTC = "nvrtc"
    NVCC = "nvcc"


@dataclass(frozen=True, slots=True)
class Option:
    """How a field of Config is named, read and checked: `read` turns what a person gave into the value, or raises
    ValueError with what would do."""

    name: str
    read: Callable[[object], object]
    variables: tuple[str, ...] = ()


def _path(value: object) -> Path:
    if isinstance(value, (str, os.PathLike)) and os.fspath(value):
        return Path(os.path.abspath(os.path.expanduser(os.fsdecode(os.fspath(value)))))
    raise ValueError("a path")


def _count(value: object, least: int) -> int:
    if isinstance(value, str) and value.strip().isdecimal():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= least:
        return value
    raise ValueError(f"a whole number, at least {least}")


def _positive(value: object) -> int:
    return _count(value, 1)


def _natural(value: object) -> int:
    return _count(value, 0)


def _seconds(value: object) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0:
        return float(value)
    raise ValueError("a number of seconds above 0")


_SWITCH = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


def _switch(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in _SWITCH:
        return _SWITCH[value.strip().lower()]
    raise ValueError("one of 1, 0, true, false, yes, no")


def _toolchain(value: object) -> Toolchain:
    if isinstance(value, Toolchain):
        return value
    if isinstance(value, str) and value in {toolchain.value for toolchain in Toolchain}:
        return Toolchain(value)
    raise ValueError("nvrtc or nvcc")


def _option(name: str, read: Callable[[object], object], *variables: str) -> dict[str, Option]:
    return {"option": Option(name, read, variables)}


def default_cache_dir() -> Path:
    """`~/.cache/tilekit`, or where XDG_CACHE_HOME says that caches live."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    # the XDG rules say to ignore a relative path
    base = Path(home) if os.path.isabs(home) else Path.home() / ".cache"
    return base / "tilekit"


DEFAULT_CACHE_LIMIT = 10 * 10**9


def unwritable_cache(folder: Path, error: OSError) -> ConfigError:
    """The error for a cache that the system refuses to write; whoever writes into it raises this one."""
    return ConfigError(
        "TK911",
        f"the cache folder {folder} cannot be written: {error.strerror or error}",
        help="name another one with tilekit.option.cache_dir(path) or the environment variable TILUS_CACHE_DIR",
    )


@functools.cache
def private_folder() -> Path:
    """A folder that ends with this process, for what a cache that cannot be written does not take."""
    folder = Path(tempfile.mkdtemp(prefix="tilekit-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def available_cpus() -> int:
    """The cores that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class Config:
    """Everything that a person can set, once, for one compile or launch."""

    cache_dir: Path = field(
        default_factory=default_cache_dir, metadata=_option("cache_dir", _path, "TILEKIT_CACHE_DIR", "TILUS_CACHE_DIR")
    )
    # bytes that the cache may hold; what was not used for longest goes first
    cache_limit: int = field(
        default=DEFAULT_CACHE_LIMIT, metadata=_option("cache_limit", _natural, "TILEKIT_CACHE_LIMIT")
    )
    parallel_workers: int = field(
        default_factory=available_cpus, metadata=_option("parallel_workers", _positive, "TILUS_PARALLEL_WORKERS")
    )
    # whether a call on a GPU tunes a kernel with several schedules; else the first one that compiles is taken
    autotune: bool = field(default=True, metadata=_option("autotune", _switch, "TILEKIT_AUTOTUNE"))
    bench_warmup: int = field(default=5, metadata=_option("bench_warmup", _natural))
    bench_repeat: int = field(default=50, metadata=_option("bench_repeat", _positive))
    toolchain: Toolchain = field(default=Toolchain.NVRTC, metadata=_option("toolchain", _toolchain))
    dump_ir: bool = field(default=False, metadata=_option("debug.dump_ir", _switch, "TILUS_DUMP_IR"))
    disable_ptxas_opt: bool = field(
        default=False, metadata=_option("debug.disable_ptxas_opt", _switch, "TILUS_DISABLE_PTXAS_OPT")
    )
    # whether a trace shows machine code; it takes about as long as the compile
    trace_machine_code: bool = field(
        default=False,
        metadata=_option(
            "debug.trace_machine_code",
            _switch,
            "TILEKIT_LOWER_TRACE_MACHINE_CODE",
            "TL_LOWER_TRACE_MACHINE_CODE",
        ),
    )
    cpu_timeout: float = field(default=60.0, metadata=_option("cpu.timeout", _seconds))
    cpu_threads: int = field(default_factory=available_cpus, metadata=_option("cpu.threads", _positive))
    # how many blocks are checked before a kernel's first launch on the CPU, or an edit's on a GPU; 0 for none
    cpu_check_blocks: int = field(default=8, metadata=_option("cpu.check_blocks", _natural, "TILEKIT_CPU_CHECK_BLOCKS"))


# option name -> (field of Config, how to read it)
OPTIONS: dict[str, tuple[str, Option]] = {
    entry.metadata["option"].name: (entry.name, entry.metadata["option"]) for entry in fields(Config)
}

# what the `option` façade has set in this process, by option name
_session: dict[str, object] = {}

# As long as this is the same object, nothing was changed in this process that decides which kernel a call finds, here
# or in a room above: one look in place of many. Whoever changes such a thing begins a new era, afterwards.
era: list[object] = [object()]


def begin_era() -> None:
    """Something was changed that decides which kernel a call finds."""
    era[0] = object()


def read_option(name: str, value: object) -> object:
    """`value` as the option `name` takes it; an unknown name or a useless value is an error."""
    _, option = _find(name)
    try:
        return option.read(value)
    except ValueError as wanted:
        raise ConfigError("TK902", f"option {name} takes {wanted}, not {value!r}") from None


def set_session_default(name: str, value: object) -> None:
    """Make `value` what `resolve` gives for `name` from now on."""
    _session[name] = read_option(name, value)
    begin_era()


def session_defaults() -> Mapping[str, object]:
    """What was set in this process, by option name."""
    return _session


def clear_session_defaults() -> None:
    """Forget everything set in this process."""
    _session.clear()
    begin_era()


def resolve(overrides: Mapping[str, object] | None = None) -> Config:
    """The Config in force: `overrides` by option name, else the session, else the environment, else the defaults."""
    given = {name: read_option(name, value) for name, value in (overrides or {}).items()}
    chosen = _environment() | _session | given
    return Config(**{OPTIONS[name][0]: value for name, value in chosen.items()})  # pyright: ignore[reportArgumentType]


def get_option(name: str, config: Config) -> object:
    """The value of one option in `config`, by its public name."""
    return getattr(config, _find(name)[0])


def _find(name: str) -> tuple[str, Option]:
    found = OPTIONS.get(name)
    if found is None:
        near = suggest(name, OPTIONS)
        known = "options are " + ", ".join(OPTIONS)
        raise ConfigError("TK901", f"there is no option {name!r}", help=f"did you mean {near}?" if near else known)
    return found


def _environment() -> dict[str, object]:
    """What environment variables say; the first of an option's variables that is set wins, a blank one is not set."""
    found: dict[str, object] = {}
    for name, (_, option) in OPTIONS.items():
        variable = next((variable for variable in option.variables if os.environ.get(variable, "").strip()), None)
        if variable is None:
            continue
        text = os.environ[variable]
        try:
            found[name] = option.read(text)
        except ValueError as wanted:
            if TRACE in variable:  # a trace is never in the way of what it traces
                warnings.warn(f"{variable}={text!r} means nothing, so it is ignored: it is {wanted}", stacklevel=2)
                continue
            raise ConfigError(
                "TK903",
                f"{variable}={text!r} in the environment means nothing here",
                help=f"set it to {wanted}, or unset it",
            ) from None
    return found


# -------------------------------------------------------------------------------------------------------------- tracing


class TraceMode(Enum):
    """Where the trace of a compile goes: nowhere, to the terminal, to a page, to both."""

    OFF = "off"
    TERMINAL = "terminal"
    HTML = "html"
    BOTH = "both"

    @property
    def makes_page(self) -> bool:
        return self in (TraceMode.HTML, TraceMode.BOTH)

    @property
    def prints(self) -> bool:
        return self in (TraceMode.TERMINAL, TraceMode.BOTH)


TRACE = "LOWER_TRACE"
_TRACE_WORDS = {
    **dict.fromkeys(("0", "off", "false", "no"), TraceMode.OFF),
    **dict.fromkeys(("html", "1", "on", "true", "yes"), TraceMode.HTML),
    "terminal": TraceMode.TERMINAL,
    "both": TraceMode.BOTH,
}


def read_trace_mode(text: str) -> TraceMode:
    """The mode that a word means; nothing at all means off. ValueError says which words there are."""
    word = text.strip().lower()
    if word and word not in _TRACE_WORDS:
        near = suggest(word, _TRACE_WORDS)
        hint = f"; did you mean {near}?" if near else ""
        raise ValueError(f"one of {', '.join(_TRACE_WORDS)}{hint}")
    return _TRACE_WORDS[word] if word else TraceMode.OFF


def trace_variable(name: str) -> tuple[str, str]:
    """A variable of the trace and what it says: `TILEKIT_…`, or where that is blank or not set, `TL_…`."""
    ours, shared = f"TILEKIT_{name}", f"TL_{name}"
    variable = ours if os.environ.get(ours, "").strip() else shared
    return variable, os.environ.get(variable, "").strip()


def trace_mode() -> TraceMode:
    """The mode that the environment asks for; a word that means nothing is a warning, and off."""
    variable, text = trace_variable(TRACE)
    try:
        return read_trace_mode(text)
    except ValueError as wanted:
        warnings.warn(f"{variable}={text!r} means nothing, so nothing is traced: it is {wanted}", stacklevel=2)
        return TraceMode.OFF
