# SPDX-License-Identifier: Apache-2.0
"""Tiers of tests: what each needs, and whether doing without is allowed.

A test that is marked with a tier is skipped, with the reason, where the machine lacks what it needs. Tiers named in
the environment variable TILEKIT_REQUIRE (`TILEKIT_REQUIRE=gpu,nvcc`) fail instead, and so does a missing browser where
CI=true.
"""

import ctypes
import math
import os
import random
import re
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass

import hypothesis
import pytest

from tests.browser import lab

# Tests of check mode ask for it. Elsewhere it would compile every kernel twice.
os.environ.setdefault("TILEKIT_CPU_CHECK_BLOCKS", "0")
# So do tests of tuning. Elsewhere it would compile and run every schedule of a kernel, for each of its sizes.
os.environ.setdefault("TILEKIT_AUTOTUNE", "0")

# What reads notebooks would build the grammars of all internet addresses, for seconds, and check none with them.
sys.modules.setdefault("rfc3987_syntax", None)

# Machines that run tests are often busy: a slow example is no failure. A failing one prints how to repeat it, and soon:
# to explain it would take minutes.
hypothesis.settings.register_profile(
    "tilekit",
    deadline=None,
    print_blob=True,
    phases=[phase for phase in hypothesis.Phase if phase is not hypothesis.Phase.explain],
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("tilekit")

# Tests interrupt themselves, also where a shell in the background has made processes deaf to it.
signal.signal(signal.SIGINT, signal.default_int_handler)


@dataclass(frozen=True)
class Tier:
    is_here: Callable[[], bool]
    otherwise: str


def has_gpu() -> bool:
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int(0)
    return driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0


TIERS = {
    "browser": Tier(lambda: lab.find_chromium() is not None, "no Chromium here (Debian: chromium, or set CHROMIUM=)"),
    "nvcc": Tier(lambda: shutil.which("nvcc") is not None, "no nvcc on the PATH"),
    "gpu": Tier(has_gpu, "no NVIDIA GPU that the driver can use"),
}


def required_tiers() -> set[str]:
    required = {name for name in os.environ.get("TILEKIT_REQUIRE", "").split(",") if name}
    if unknown := required - TIERS.keys():
        raise pytest.UsageError(f"TILEKIT_REQUIRE names no tier of ours: {', '.join(sorted(unknown))}")
    if os.environ.get("CI") == "true":
        required.add("browser")
    return required


def pytest_addoption(parser: pytest.Parser):
    group = parser.getgroup("tilekit")
    group.addoption("--slow-sample", type=float, default=1.0, metavar="SHARE", help="run this share of the slow tests")
    group.addoption("--slow-seed", type=int, default=0, metavar="N", help="which slow tests --slow-sample picks")


def pytest_configure(config: pytest.Config):
    config.stash[REQUIRED] = required_tiers()


REQUIRED = pytest.StashKey[set[str]]()


def pytest_report_header(config: pytest.Config) -> str | None:
    share = config.getoption("slow_sample")
    return f"slow tests: a sample of {share:g}, seed {config.getoption('slow_seed')}" if share < 1 else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]):
    """Keep a random share of the slow tests, and put the browser tests last.

    Playwright holds the main thread's event loop from its first test to the end of the session, and tests that run
    kernels need that loop. Names that hold an address are refused: processes that share the tests must agree on them.
    """
    if named := [item.nodeid for item in items if re.search("at 0x[0-9a-f]{6}", item.nodeid)]:
        raise pytest.UsageError(f"another process would give this test another name: {named[0]}")
    slow = [item for item in items if item.get_closest_marker("slow")]
    kept = random.Random(config.getoption("slow_seed")).sample(
        slow, math.ceil(len(slow) * config.getoption("slow_sample"))
    )
    if dropped := set(slow) - set(kept):
        config.hook.pytest_deselected(items=list(dropped))
    items[:] = sorted((i for i in items if i not in dropped), key=lambda item: bool(item.get_closest_marker("browser")))


def pytest_runtest_setup(item: pytest.Item):
    for name, tier in TIERS.items():
        if item.get_closest_marker(name) is None or tier.is_here():
            continue
        if name in item.config.stash[REQUIRED]:
            pytest.fail(f"{tier.otherwise}, and this run requires the {name} tests", pytrace=False)
        pytest.skip(tier.otherwise)
