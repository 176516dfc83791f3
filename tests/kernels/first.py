# SPDX-License-Identifier: Apache-2.0
"""The kernel of the first schedule that compiles: where one stands for all, and all would take minutes."""

from collections.abc import Sequence
from typing import Any

from tilekit import config
from tilekit import target as targets
from tilekit.jit.kernel import Kernel
from tilekit.jit.machine import Machine
from tilekit.runtime.tensors import Device, DeviceKind


def first_kernel(handle: Any, arguments: Sequence[Any], target: str = "sm_90a") -> Kernel:
    """Compile it for a GPU, for these arguments or descriptions of them."""
    machine = Machine(Device(DeviceKind.CUDA), targets.parse(target), config.resolve())
    return handle._jit_instance_for(*arguments).kernel(machine)
