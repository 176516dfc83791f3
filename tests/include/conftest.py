# SPDX-License-Identifier: Apache-2.0
from collections.abc import Iterator

import numpy as np
import pytest

from tests.cpusim import harness
from tilekit.cpusim.client import Simulator


@pytest.fixture(scope="session")
def simulator() -> Iterator[Simulator]:
    simulator = Simulator(harness.runtime())
    yield simulator
    simulator.close()


@pytest.fixture(autouse=True)
def quiet_numpy() -> Iterator[None]:
    """Infinities and NaNs are what these tests are about."""
    with np.errstate(all="ignore"):
        yield
