# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin, `-p tests.check.under_check`: every CPU launch of the session is checked, with the seed $CHECK_SEED.

What never comes to the simulator is left out.
"""

import os

from tests.kernels import machines
from tilekit.jit import session

_checking = session.checking(int(os.environ.get("CHECK_SEED", "0")))


def pytest_configure():
    _checking.__enter__()


def pytest_unconfigure():
    _checking.__exit__(None, None, None)


def pytest_collection_modifyitems(items):
    elsewhere = (machines.evaluate, machines.on_gpu)
    items[:] = [item for item in items if not any(value in elsewhere for value in _parameters(item).values())]


def _parameters(item):
    callspec = getattr(item, "callspec", None)
    return {name: value for name, value in (callspec.params if callspec else {}).items() if callable(value)}
