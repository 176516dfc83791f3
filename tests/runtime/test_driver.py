# SPDX-License-Identifier: Apache-2.0
"""The driver's functions by ctypes: held against a library of ours that notes what reaches it, and NVIDIA's binding."""

import ctypes
import inspect
import random
import secrets
import subprocess
from pathlib import Path

import pytest

from tilekit.runtime import driver
from tilekit.runtime.driver import Driver, DriverError
from tilekit.toolchain.host import require_compiler

LIBRARY = r"""
#include <cstddef>
#include <cstdint>
#include <cstring>

extern "C" {
uint64_t seen[13];
uint64_t current, base, size;
unsigned char image[8], uuid[16], handle[64];
char name[128];

int cuLaunchKernel(void* f, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   void* stream, void** parameters, void** extra) {
  const void* pointers[3] = {stream, parameters, extra};
  uint64_t all[8] = {(uint64_t)f, x, y, z, bx, by, bz, shared};
  std::memcpy(seen, all, sizeof(all));
  std::memcpy(seen + 8, pointers, sizeof(pointers));
  return 719;
}
struct Config { unsigned grid[3], block[3], shared; void* stream; void* attributes; unsigned count; };
int cuLaunchKernelEx(const Config* c, void* f, void** parameters, void** extra) {
  const void* pointers[5] = {f, parameters, extra, c->stream, c->attributes};
  std::memcpy(seen, pointers, sizeof(pointers));
  uint64_t all[8] = {c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1], c->block[2], c->shared, c->count};
  std::memcpy(seen + 5, all, sizeof(all));
  return 719;
}
int cuCtxGetCurrent(void** context) { *context = (void*)current; return 0; }
int cuMemGetAddressRange_v2(uint64_t* begin, size_t* bytes, uint64_t at) {
  *begin = base, *bytes = size, seen[0] = at;
  return 0;
}
int cuModuleLoadData(void** module, const void* content) {
  std::memcpy(image, content, 8);
  *module = (void*)base;
  return 0;
}
int cuModuleGetFunction(void** function, void* module, const char* called) {
  seen[0] = (uint64_t)module;
  std::strcpy(name, called);
  *function = (void*)size;
  return 0;
}
int cuDeviceGetName(char* text, int length, int device) {
  std::memcpy(text, name, length);
  seen[0] = device;
  return 0;
}
int cuDeviceGetUuid_v2(void* there, int device) { std::memcpy(there, uuid, 16); return 0; }
int cuIpcGetMemHandle(void* there, uint64_t at) { std::memcpy(there, handle, 64); return 0; }
int cuStreamIsCapturing(void* stream, int* status) { seen[0] = (uint64_t)stream; *status = 1; return 0; }
const char* of_700(int status, const char* text) { return status == 700 ? text : nullptr; }
int cuGetErrorName(int status, const char** text) { *text = of_700(status, "CUDA_ERROR_ILLEGAL_ADDRESS"); return 0; }
int cuGetErrorString(int status, const char** text) { *text = of_700(status, "an illegal address"); return 0; }
int cuInit(unsigned flags) { return (int)flags; }
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder: Path = tmp_path_factory.mktemp("driver")
    (folder / "driver.cpp").write_text(LIBRARY)
    made = [
        *require_compiler().command,
        "-shared",
        "-fPIC",
        "-o",
        str(folder / "driver.so"),
        str(folder / "driver.cpp"),
    ]
    subprocess.run(made, check=True, capture_output=True)
    return ctypes.CDLL(str(folder / "driver.so"))


def address() -> int:
    """One that does not fit 32 bits."""
    return random.randrange(1 << 40, 1 << 47)


def put(library: ctypes.CDLL, **values: int) -> None:
    for name, value in values.items():
        ctypes.c_uint64.in_dll(library, name).value = value


def seen(library: ctypes.CDLL, count: int = 1) -> list[int]:
    return list((ctypes.c_uint64 * count).in_dll(library, "seen"))


def test_a_launch_passes_every_argument_in_its_place(library: ctypes.CDLL) -> None:
    api = Driver(library)
    kernel, stream, slots = address(), address(), address()
    grid, block = [random.randrange(1, 1 << 31), *random.sample(range(1, 1 << 16), 2)], random.sample(range(1, 1025), 3)
    shared = random.randrange(232448)
    answer = api.cuLaunchKernel(ctypes.c_void_p(kernel), *grid, *block, shared, api.CUstream(stream), slots, 0)
    assert answer == (719,)
    assert seen(library, 11) == [kernel, *grid, *block, shared, stream, slots, 0]


def test_a_prepared_launch_passes_the_same_and_answers_the_status_alone(library: ctypes.CDLL) -> None:
    kernel, stream, slots = address(), address(), (ctypes.c_void_p * 3)()
    shape = [random.randrange(1, 1 << 31) for _ in range(7)]
    launch = driver.CUlaunchConfig(*shape, stream)
    given = ctypes.byref(launch), ctypes.c_void_p(kernel), ctypes.byref(slots), None
    assert Driver(library).cuLaunchKernelEx(*given) == 719
    assert seen(library, 13) == [kernel, ctypes.addressof(slots), 0, stream, 0, *shape, 0]


def test_answers_stand_behind_the_status_with_all_their_bits(library: ctypes.CDLL) -> None:
    api, current, base, size, at = Driver(library), address(), address(), address(), address()
    put(library, current=current, base=base, size=size)
    assert api.cuCtxGetCurrent() == (0, current)
    assert api.cuMemGetAddressRange(at) == (0, base, size)
    assert seen(library) == [at]
    assert api.cuStreamIsCapturing(ctypes.c_void_p(at)) == (0, 1)
    assert seen(library) == [at]


def test_no_context_is_the_address_zero(library: ctypes.CDLL) -> None:
    put(library, current=0)
    assert Driver(library).cuCtxGetCurrent() == (0, 0)


def test_a_kernel_is_loaded_from_bytes_with_zeros_and_found_by_its_name(library: ctypes.CDLL) -> None:
    api, module, function = Driver(library), address(), address()
    put(library, base=module, size=function)
    content = b"\x7f\0" + secrets.token_bytes(5) + b"\1"
    status, loaded = api.cuModuleLoadData(content)
    assert status == 0 and bytes((ctypes.c_ubyte * 8).in_dll(library, "image")) == content
    status, found = api.cuModuleGetFunction(loaded, b"scale_kernel")
    assert status == 0 and seen(library) == [module]
    assert (ctypes.c_char * 128).in_dll(library, "name").value == b"scale_kernel"
    assert api.cuLaunchKernel(found, 1, 1, 1, 1, 1, 1, 0, api.CUstream(0), 1, 0) == (719,)
    assert seen(library) == [function]


def test_what_has_a_name_of_bytes_keeps_them(library: ctypes.CDLL) -> None:
    api = Driver(library)
    uuid, handle = bytes(4) + secrets.token_bytes(12), bytes(4) + secrets.token_bytes(60)
    ctypes.memmove((ctypes.c_ubyte * 16).in_dll(library, "uuid"), uuid, 16)
    ctypes.memmove((ctypes.c_ubyte * 64).in_dll(library, "handle"), handle, 64)
    ctypes.memmove((ctypes.c_ubyte * 128).in_dll(library, "name"), b"NVIDIA H200\0rest", 16)
    assert ctypes.string_at(api.cuDeviceGetUuid(3)[1].getPtr(), 16) == uuid
    assert ctypes.string_at(api.cuIpcGetMemHandle(address())[1].getPtr(), 64) == handle
    assert api.cuDeviceGetName(128, 5) == (0, b"NVIDIA H200")
    assert seen(library) == [5]


def test_the_driver_itself_names_what_went_wrong(library: ctypes.CDLL) -> None:
    api = Driver(library)
    assert driver.check(api, "cuInit", api.cuInit(0)) == ()
    with pytest.raises(DriverError, match="cuInit: CUDA_ERROR_ILLEGAL_ADDRESS, an illegal address") as caught:
        driver.check(api, "cuInit", api.cuInit(700))
    assert caught.value.is_fault
    with pytest.raises(DriverError, match="cuInit: status 12345, unknown error"):
        driver.check(api, "cuInit", api.cuInit(12345))


def test_a_function_that_nobody_described_is_none(library: ctypes.CDLL) -> None:
    with pytest.raises(AttributeError, match="cuNothing"):
        _ = Driver(library).cuNothing


def test_it_takes_and_numbers_what_the_binding_of_nvidia_does() -> None:
    theirs = pytest.importorskip("cuda.bindings.driver")
    for name, kinds in driver._FUNCTIONS.items():
        given = [kind for kind in kinds if not isinstance(kind, driver._FILLED)]
        assert len(given) == len(inspect.signature(getattr(theirs, name)).parameters), name
    for ours in (driver.CUresult, driver.CUdevice_attribute, driver.CUfunction_attribute):
        for member in ours:
            assert member == int(getattr(getattr(theirs, ours.__name__), member.name))


def test_a_launch_lies_in_memory_as_that_of_nvidia_does() -> None:
    theirs = pytest.importorskip("cuda.bindings.driver").CUlaunchConfig()
    shape, stream = [random.randrange(1, 1 << 31) for _ in range(7)], address()
    for (name, _), value in zip(driver.CUlaunchConfig._fields_, [*shape, stream], strict=False):
        setattr(theirs, name, value)
    ours = driver.CUlaunchConfig(*shape, stream)
    used = driver.CUlaunchConfig.numAttrs.offset + driver.CUlaunchConfig.numAttrs.size
    assert ctypes.string_at(theirs.getPtr(), used) == ctypes.string_at(ctypes.addressof(ours), used)
