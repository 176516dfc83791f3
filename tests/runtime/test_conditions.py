# SPDX-License-Identifier: Apache-2.0
"""What is recorded of a GPU: by a library of our own in place of NVML, compiled, so that its calls are real ones."""

import ctypes
import subprocess

import pytest

from tilekit.runtime.conditions import Condition, Conditions, Nvml, Watch
from tilekit.runtime.tensors import CPU, Device, DeviceKind
from tilekit.toolchain import host

LIBRARY = r"""
#include <string.h>
extern "C" {
static int clock_mhz = 1980;
int nvmlInit_v2() { return 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char* id, void** gpu) {
  *gpu = &clock_mhz;
  return strcmp(id, "0000:19:00.0") ? 6 : 0;
}
int nvmlDeviceGetEnforcedPowerLimit(void* gpu, unsigned* mw) { *mw = 700000; return gpu == &clock_mhz ? 0 : 2; }
int nvmlDeviceGetMaxClockInfo(void*, int kind, unsigned* mhz) { *mhz = 1980; return kind == 1 ? 0 : 2; }
int nvmlDeviceGetClockInfo(void*, int kind, unsigned* mhz) {
  *mhz = kind == 1 ? clock_mhz : 3201;
  if (kind == 1) clock_mhz -= 400;
  return 0;
}
int nvmlDeviceGetPowerUsage(void*, unsigned* mw) { *mw = clock_mhz == 1980 ? 412400 : 690000; return 0; }
int nvmlDeviceGetTemperature(void*, int, unsigned*) { return 3; }
int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* bits) {
  *bits = clock_mhz == 1980 ? 0x1 : 0x100000024;
  return 0;
}
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    compiler = host.find_compiler()
    if compiler is None:
        pytest.skip("no C++ compiler here")
    folder = tmp_path_factory.mktemp("nvml")
    (folder / "nvml.cpp").write_text(LIBRARY)
    command = [*compiler.command, "-shared", "-fPIC", "-o", "nvml.so", "nvml.cpp"]
    subprocess.run(command, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "nvml.so"))


def test_clocks_power_and_what_slows_it_are_read(library):
    nvml = Nvml(library, b"0000:19:00.0")
    conditions = nvml.begin()
    conditions.seen += [nvml.look(), nvml.look()]
    assert conditions.seen == [
        Condition(1980, 3201, 412.4, None),
        Condition(1580, 3201, 690.0, None, frozenset({"its power cap", "its temperature"})),
    ]
    assert str(conditions) == (
        "SM clock 1,580 to 1,980 MHz of 1,980, memory clock 3,201 MHz, power 412 to 690 W of 700, "
        "temperature not told, slowed by its power cap and its temperature"
    )


def test_a_gpu_that_nvml_does_not_know_is_an_error(library):
    with pytest.raises(OSError, match="nvmlDeviceGetHandleByPciBusId_v2 answers 6"):
        Nvml(library, b"0000:20:00.0")


def test_where_nothing_can_be_asked_the_record_says_why():
    watch = Watch(CPU)
    watch()
    assert str(watch.conditions) == "clocks not recorded: it ran on the CPU"
    assert str(Conditions()) == "clocks not recorded: nothing ran"


@pytest.mark.gpu
def test_a_gpu_tells_its_clocks():
    watch = Watch(Device(DeviceKind.CUDA, 0))
    watch()
    (seen,) = watch.conditions.seen
    assert seen.sm_mhz and seen.memory_mhz and seen.watts, str(watch.conditions)
