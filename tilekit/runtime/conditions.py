# SPDX-License-Identifier: Apache-2.0
"""What a GPU says of itself while it is measured: clocks, power, temperature, and what slows it; asked of NVML.

NVML is a library of the driver, so nothing needs to be installed for it. Where it is not there, the record says why.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tilekit.runtime import driver
from tilekit.runtime.driver import DriverError
from tilekit.runtime.tensors import Device, DeviceKind

_LIBRARY = "libnvidia-ml.so.1"
_SM, _MEMORY = 1, 2  # nvmlClockType_t
_AT_THE_GPU = 0  # nvmlTemperatureSensors_t
# nvmlClocksEventReasons, less those of a GPU that idles or runs as it was told to
_REASONS = {
    0x4: "its power cap",
    0x8: "its hardware",
    0x10: "the clocks of other GPUs",
    0x20: "its temperature",
    0x40: "its temperature (hardware)",
    0x80: "the power supply",
}


@dataclass(frozen=True, slots=True)
class Condition:
    """One look at a GPU; None of what it does not tell."""

    sm_mhz: int | None = None
    memory_mhz: int | None = None
    watts: float | None = None
    celsius: int | None = None
    slowed_by: frozenset[str] = frozenset()


@dataclass
class Conditions:
    """Every look at a GPU during a measurement, or why there was none."""

    why_not: str = ""
    most_mhz: int | None = None
    watts_allowed: float | None = None
    seen: list[Condition] = field(default_factory=list[Condition])

    @property
    def slowed_by(self) -> list[str]:
        return sorted(frozenset[str]().union(*(condition.slowed_by for condition in self.seen)))

    def __str__(self) -> str:
        if self.why_not or not self.seen:
            return f"clocks not recorded: {self.why_not or 'nothing ran'}"
        parts = [
            _between("SM clock", (c.sm_mhz for c in self.seen), "MHz", self.most_mhz),
            _between("memory clock", (c.memory_mhz for c in self.seen), "MHz"),
            _between("power", (c.watts for c in self.seen), "W", self.watts_allowed),
            _between("temperature", (c.celsius for c in self.seen), "°C"),
            f"slowed by {' and '.join(self.slowed_by)}" if self.slowed_by else "not slowed",
        ]
        return ", ".join(filter(None, parts))


def _between(what: str, values: Iterable[float | None], unit: str, most: float | None = None) -> str:
    told = [round(value) for value in values if value is not None]
    if not told:
        return f"{what} not told"
    low, high = min(told), max(told)
    span = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    return f"{what} {span} {unit}" + ("" if most is None else f" of {round(most):,}")


class Nvml:
    """One GPU by NVML; a figure that it refuses is None."""

    def __init__(self, library: Any, bus_id: bytes) -> None:
        self._library = library
        self._gpu = ctypes.c_void_p()
        self._require("nvmlInit_v2")
        self._require("nvmlDeviceGetHandleByPciBusId_v2", ctypes.c_char_p(bus_id), ctypes.byref(self._gpu))

    def _require(self, call: str, *arguments: Any) -> None:
        status = getattr(self._library, call)(*arguments)
        if status != 0:
            raise OSError(f"{call} answers {status}")

    def _ask(self, call: str, *arguments: Any, kind: Any = ctypes.c_uint) -> int | None:
        value = kind()
        status = getattr(self._library, call)(self._gpu, *arguments, ctypes.byref(value))
        return value.value if status == 0 else None

    def begin(self) -> Conditions:
        limit = self._ask("nvmlDeviceGetEnforcedPowerLimit")
        most = self._ask("nvmlDeviceGetMaxClockInfo", ctypes.c_int(_SM))
        return Conditions(most_mhz=most, watts_allowed=None if limit is None else limit / 1e3)

    def look(self) -> Condition:
        power = self._ask("nvmlDeviceGetPowerUsage")
        reasons = self._ask("nvmlDeviceGetCurrentClocksThrottleReasons", kind=ctypes.c_ulonglong) or 0
        return Condition(
            self._ask("nvmlDeviceGetClockInfo", ctypes.c_int(_SM)),
            self._ask("nvmlDeviceGetClockInfo", ctypes.c_int(_MEMORY)),
            None if power is None else power / 1e3,
            self._ask("nvmlDeviceGetTemperature", ctypes.c_int(_AT_THE_GPU)),
            frozenset(words for bit, words in _REASONS.items() if reasons & bit),
        )


class Watch:
    """Called while a GPU is busy, it writes down what NVML says; on the CPU there is nothing to write down."""

    def __init__(self, device: Device) -> None:
        self._nvml: Nvml | None = None
        try:
            self._nvml = _open(device)
            self.conditions = self._nvml.begin()
        except (OSError, AttributeError, DriverError) as error:
            self.conditions = Conditions(why_not=str(error))

    def __call__(self) -> None:
        if self._nvml is not None:
            self.conditions.seen.append(self._nvml.look())


def _open(device: Device) -> Nvml:
    if device.kind is not DeviceKind.CUDA:
        raise OSError("it ran on the CPU")
    api = driver.binding()
    if api is None:
        raise OSError("no NVIDIA driver answers")
    there = driver.check(api, "cuDeviceGet", api.cuDeviceGet(device.index))
    # CUDA_VISIBLE_DEVICES renumbers GPUs, and NVML does not hear of it
    bus_id = driver.check(api, "cuDeviceGetPCIBusId", api.cuDeviceGetPCIBusId(32, there))
    return Nvml(ctypes.CDLL(_LIBRARY), bus_id.split(b"\0", 1)[0])
