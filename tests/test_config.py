# SPDX-License-Identifier: Apache-2.0
import dataclasses
import os
import pickle
from pathlib import Path

import pytest

from tilekit import config, option
from tilekit.config import Toolchain
from tilekit.diag import ConfigError

VARIABLES = [variable for _, entry in config.OPTIONS.values() for variable in entry.variables]


@pytest.fixture(autouse=True)
def untouched(monkeypatch):
    """No option set, no variable in the environment, before and after."""
    for variable in [*VARIABLES, "XDG_CACHE_HOME"]:
        monkeypatch.delenv(variable, raising=False)
    before = dict(config._session)
    config.clear_session_defaults()
    yield
    config.clear_session_defaults()
    config._session.update(before)


def message(call, *args):
    with pytest.raises(ConfigError) as caught:
        call(*args)
    return str(caught.value)


# -------------------------------------------------------------------------------------------------------- defaults


def test_defaults(monkeypatch):
    monkeypatch.setenv("HOME", "/home/ada")
    found = config.resolve()
    assert found.cache_dir == Path("/home/ada/.cache/tilekit")
    assert (found.bench_warmup, found.bench_repeat) == (5, 50)
    assert (found.dump_ir, found.disable_ptxas_opt, found.toolchain) == (False, False, Toolchain.NVRTC)
    assert found.parallel_workers == found.cpu_threads == len(os.sched_getaffinity(0))


def test_the_cache_follows_xdg(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert config.resolve().cache_dir == tmp_path / "tilekit"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/path")
    assert config.resolve().cache_dir == Path.home() / ".cache" / "tilekit"


def test_a_config_cannot_be_changed_and_travels_to_other_processes():
    found = config.resolve({"cache_dir": "/x", "toolchain": "nvcc"})
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.bench_repeat = 1  # pyright: ignore[reportAttributeAccessIssue]
    assert pickle.loads(pickle.dumps(found)) == found


# -------------------------------------------------------------------------------------------------------- who wins


def test_an_argument_wins_over_the_session_and_it_over_the_environment(monkeypatch):
    monkeypatch.setenv("TILUS_CACHE_DIR", "/environment")
    assert config.resolve().cache_dir == Path("/environment")
    option.cache_dir("/session")
    assert config.resolve().cache_dir == Path("/session")
    assert config.resolve({"cache_dir": "/argument"}).cache_dir == Path("/argument")
    assert config.resolve().cache_dir == Path("/session")


def test_our_own_variable_wins_over_the_one_of_tilus(monkeypatch):
    monkeypatch.setenv("TILUS_CACHE_DIR", "/theirs")
    monkeypatch.setenv("TILEKIT_CACHE_DIR", "/ours")
    assert config.resolve().cache_dir == Path("/ours")


def test_a_cache_folder_is_absolute(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/ada")
    option.cache_dir("some-cache-dir")
    monkeypatch.chdir("/")
    assert config.resolve().cache_dir == tmp_path / "some-cache-dir"
    option.cache_dir("~/kernels")
    assert config.resolve().cache_dir == Path("/home/ada/kernels")


# ----------------------------------------------------------------------------------------------------- environment


@pytest.mark.parametrize(
    ("variable", "field"),
    [
        ("TILUS_DUMP_IR", "dump_ir"),
        ("TILUS_DISABLE_PTXAS_OPT", "disable_ptxas_opt"),
        ("TL_LOWER_TRACE_MACHINE_CODE", "trace_machine_code"),
    ],
)
@pytest.mark.parametrize(
    ("text", "value"),
    [("1", True), ("true", True), ("YES", True), ("0", False), ("False", False), ("no", False), ("", False)],
)
def test_switches_are_read_from_the_environment(variable, field, text, value, monkeypatch):
    monkeypatch.setenv(variable, text)
    assert getattr(config.resolve(), field) is value


def test_a_variable_that_means_nothing_is_named_with_its_value(monkeypatch):
    monkeypatch.setenv("TILUS_DUMP_IR", "maybe")
    assert message(config.resolve) == (
        "TK903: TILUS_DUMP_IR='maybe' in the environment means nothing here\n"
        "  help: set it to one of 1, 0, true, false, yes, no, or unset it"
    )
    monkeypatch.delenv("TILUS_DUMP_IR")
    monkeypatch.setenv("TILUS_PARALLEL_WORKERS", "0")
    assert message(config.resolve) == (
        "TK903: TILUS_PARALLEL_WORKERS='0' in the environment means nothing here\n"
        "  help: set it to a whole number, at least 1, or unset it"
    )


@pytest.mark.parametrize("variable", ["TL_LOWER_TRACE_MACHINE_CODE", "TILEKIT_LOWER_TRACE_MACHINE_CODE"])
def test_a_variable_of_the_trace_that_means_nothing_is_a_warning(variable, monkeypatch):
    monkeypatch.setenv(variable, "q")
    with pytest.warns(UserWarning, match=f"{variable}='q' means nothing, so it is ignored: it is one of 1, 0"):
        assert config.resolve().trace_machine_code is False


def test_a_variable_that_is_blank_is_not_set(monkeypatch):
    monkeypatch.setenv("TILEKIT_LOWER_TRACE_MACHINE_CODE", " ")
    monkeypatch.setenv("TL_LOWER_TRACE_MACHINE_CODE", "1")
    assert config.resolve().trace_machine_code is True


# --------------------------------------------------------------------------------------------------------- options


def test_every_option_can_be_set_and_read():
    option.parallel_workers(3)
    option.autotune(False)
    option.bench_warmup(0)
    option.bench_repeat(7)
    option.toolchain("nvcc")
    option.debug.dump_ir()
    option.debug.disable_ptxas_opt()
    option.debug.trace_machine_code()
    option.cpu.timeout(2)
    option.cpu.threads(1)
    option.cpu.check_blocks(3)
    option.cache_dir("/x")
    option.cache_limit(10**6)
    values = {name: option.get_option(name) for name in config.OPTIONS}
    assert values == {
        "cache_dir": Path("/x"),
        "cache_limit": 10**6,
        "parallel_workers": 3,
        "autotune": False,
        "bench_warmup": 0,
        "bench_repeat": 7,
        "toolchain": Toolchain.NVCC,
        "debug.dump_ir": True,
        "debug.disable_ptxas_opt": True,
        "debug.trace_machine_code": True,
        "cpu.timeout": 2.0,
        "cpu.threads": 1,
        "cpu.check_blocks": 3,
    }
    option.debug.dump_ir(False)
    assert option.get_option("debug.dump_ir") is False


def test_an_unknown_option_is_answered_with_the_nearest_one():
    assert message(option.get_option, "debug.dumpir") == (
        "TK901: there is no option 'debug.dumpir'\n  help: did you mean debug.dump_ir?"
    )
    assert message(config.resolve, {"verbosity": 3}) == (
        "TK901: there is no option 'verbosity'\n  help: options are " + ", ".join(config.OPTIONS)
    )


@pytest.mark.parametrize(
    ("call", "value", "wanted"),
    [
        (option.parallel_workers, 0, "parallel_workers takes a whole number, at least 1, not 0"),
        (option.bench_repeat, True, "bench_repeat takes a whole number, at least 1, not True"),
        (option.bench_warmup, 1.5, "bench_warmup takes a whole number, at least 0, not 1.5"),
        (option.toolchain, "gcc", "toolchain takes nvrtc or nvcc, not 'gcc'"),
        (option.cache_dir, "", "cache_dir takes a path, not ''"),
        (option.cache_dir, None, "cache_dir takes a path, not None"),
        (option.debug.dump_ir, "maybe", "debug.dump_ir takes one of 1, 0, true, false, yes, no, not 'maybe'"),
        (option.cpu.timeout, -1, "cpu.timeout takes a number of seconds above 0, not -1"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_and_changes_nothing(call, value, wanted):
    before = config.resolve()
    assert message(call, value) == f"TK902: option {wanted}"
    assert config.resolve() == before
