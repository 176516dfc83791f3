# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin, `-p tests.check.only_verified`: a kernel that the evaluator would run is verified instead.

Every schedule is verified as it is written, and the first of each test after each pass as well; then the test is
skipped. Tests that run a kernel elsewhere are left out. The last line says how many programs there were.
"""

import pytest

from tests.kernels import machines
from tilekit import transforms
from tilekit.diag import TilekitError
from tilekit.ir.tools import verify

_seen: set[str] = set()


def verify_only(handle, args):
    """Stands for `machines.evaluate`."""
    try:
        for number, prog in enumerate(handle._jit_instance_for(*args).transpiled_programs):
            if (text := str(prog)) not in _seen:
                verify(prog)
                if number == 0:
                    transforms.run_passes(prog, transforms.get_default_passes(), check=True)
                _seen.add(text)
    except TilekitError as error:
        raise error.with_sources(handle.sources) from None
    pytest.skip("verified")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    items[:] = [item for item in items if _is_evaluated(item)]


def _is_evaluated(item):
    """Whether a test runs a kernel in the evaluator; then it does not any more."""
    params = item.callspec.params if hasattr(item, "callspec") else {}
    names = [name for name, value in params.items() if value is machines.evaluate]
    params.update(dict.fromkeys(names, verify_only))
    return bool(names)


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"verified {len(_seen)} programs")
