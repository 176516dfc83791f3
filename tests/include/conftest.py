# SPDX-License-Identifier: Apache-2.0
"""Every claim about the headers is made twice: of the CPU simulator, and (`-m gpu`) of the GPU."""

from collections.abc import Iterator

import numpy as np
import pytest

from tests.cpusim import harness
from tests.include.machines import Cpu, Gpu
from tilekit.cpusim.client import Simulator


@pytest.fixture(scope="session")
def simulator() -> Iterator[Simulator]:
    simulator = Simulator(harness.runtime())
    yield simulator
    simulator.close()


@pytest.fixture(scope="session")
def gpu(tmp_path_factory) -> Gpu:
    return Gpu(tmp_path_factory.mktemp("headers"))


@pytest.fixture(scope="session")
def cpu(simulator) -> Cpu:
    return Cpu(simulator)


@pytest.fixture(params=["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
def machine(request) -> Cpu | Gpu:
    if request.param == "cpu":
        return request.getfixturevalue("cpu")
    return request.getfixturevalue("gpu")


@pytest.fixture(autouse=True)
def quiet_numpy() -> Iterator[None]:
    """Infinities and NaNs are what these tests are about."""
    with np.errstate(all="ignore"):
        yield
