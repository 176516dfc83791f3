# SPDX-License-Identifier: Apache-2.0
"""tilekit: write GPU kernels at the granularity of tiles, run them on a GPU or a CPU, and look at every pass.

Importing it brings neither torch nor a compiler; they are loaded by the first kernel that needs them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tilekit import config, dtypes, option, testing, utils
from tilekit.aliases import install_as_tilus
from tilekit.diag import TilekitError
from tilekit.dtypes import (
    DataType,
    PointerType,
    TensorPointer,
    bf16,
    bf16x2,
    bfloat16,
    bfloat16x2,
    boolean,
    f3e1m1,
    f4e1m2,
    f4e2m1,
    f5e1m3,
    f5e2m2,
    f5e3m1,
    f6e2m3,
    f6e3m2,
    f6e4m1,
    f7e2m4,
    f7e3m3,
    f7e4m2,
    f7e5m1,
    f8e4m3,
    f8e5m2,
    f16,
    f16x1,
    f16x2,
    f16x4,
    f16x8,
    f32,
    f32x1,
    f32x2,
    f32x4,
    f32x8,
    f64,
    float3_e1m1,
    float4_e1m2,
    float4_e2m1,
    float5_e1m3,
    float5_e2m2,
    float5_e3m1,
    float6_e2m3,
    float6_e3m2,
    float6_e4m1,
    float7_e2m4,
    float7_e3m3,
    float7_e4m2,
    float7_e5m1,
    float8_e4m3,
    float8_e5m2,
    float16,
    float16x1,
    float16x2,
    float16x4,
    float16x8,
    float32,
    float32x1,
    float32x2,
    float32x4,
    float32x8,
    float64,
    i1,
    i2,
    i3,
    i4,
    i4x2,
    i4x8,
    i5,
    i6,
    i7,
    i8,
    i8x4,
    i16,
    i32,
    i64,
    int1b,
    int2b,
    int3b,
    int4b,
    int4bx2,
    int4bx8,
    int5b,
    int6b,
    int7b,
    int8,
    int8x4,
    int16,
    int32,
    int64,
    tf32,
    tfloat32,
    u1,
    u2,
    u3,
    u4,
    u4x2,
    u4x8,
    u5,
    u6,
    u7,
    u8,
    u8x4,
    u16,
    u32,
    u32x1,
    u32x2,
    u32x4,
    u64,
    uint1b,
    uint2b,
    uint3b,
    uint4b,
    uint4bx2,
    uint4bx8,
    uint5b,
    uint6b,
    uint7b,
    uint8,
    uint8x4,
    uint16,
    uint32,
    uint32x1,
    uint32x2,
    uint32x4,
    uint64,
    void_p,
)
from tilekit.jit.instantiated import InstantiatedScript
from tilekit.jit.script import Script
from tilekit.jit.session import current_target as get_current_target
from tilekit.jit.spec import spec
from tilekit.lang.autotune import autotune
from tilekit.lang.classes import Class

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from tilekit.ir.layout.register_layout import RegisterLayout as RegisterLayout
    from tilekit.ir.layout.shared_layout import SharedLayout as SharedLayout
    from tilekit.ir.tensor import GlobalTensor as GlobalTensor
    from tilekit.ir.tensor import RegisterTensor as RegisterTensor
    from tilekit.ir.tensor import SharedTensor as SharedTensor
    from tilekit.jit.pipelines import passes as passes
    from tilekit.lang.attributes import Dim3 as Dim3
    from tilekit.tools.lower_trace.switch import tracing as tracing

__version__ = "0.1.0"

__all__ = [
    "Class",
    "Dim3",
    "GlobalTensor",
    "InstantiatedScript",
    "RegisterLayout",
    "RegisterTensor",
    "Script",
    "SharedLayout",
    "SharedTensor",
    "TilekitError",
    "autotune",
    "dtypes",
    "get_current_target",
    "install_as_tilus",
    "option",
    "passes",
    "spec",
    "testing",
    "tracing",
    "utils",
    "DataType",
    "PointerType",
    "TensorPointer",
    "bf16",
    "bf16x2",
    "bfloat16",
    "bfloat16x2",
    "boolean",
    "f16",
    "f16x1",
    "f16x2",
    "f16x4",
    "f16x8",
    "f32",
    "f32x1",
    "f32x2",
    "f32x4",
    "f32x8",
    "f3e1m1",
    "f4e1m2",
    "f4e2m1",
    "f5e1m3",
    "f5e2m2",
    "f5e3m1",
    "f64",
    "f6e2m3",
    "f6e3m2",
    "f6e4m1",
    "f7e2m4",
    "f7e3m3",
    "f7e4m2",
    "f7e5m1",
    "f8e4m3",
    "f8e5m2",
    "float16",
    "float16x1",
    "float16x2",
    "float16x4",
    "float16x8",
    "float32",
    "float32x1",
    "float32x2",
    "float32x4",
    "float32x8",
    "float3_e1m1",
    "float4_e1m2",
    "float4_e2m1",
    "float5_e1m3",
    "float5_e2m2",
    "float5_e3m1",
    "float64",
    "float6_e2m3",
    "float6_e3m2",
    "float6_e4m1",
    "float7_e2m4",
    "float7_e3m3",
    "float7_e4m2",
    "float7_e5m1",
    "float8_e4m3",
    "float8_e5m2",
    "i1",
    "i16",
    "i2",
    "i3",
    "i32",
    "i4",
    "i4x2",
    "i4x8",
    "i5",
    "i6",
    "i64",
    "i7",
    "i8",
    "i8x4",
    "int16",
    "int1b",
    "int2b",
    "int32",
    "int3b",
    "int4b",
    "int4bx2",
    "int4bx8",
    "int5b",
    "int64",
    "int6b",
    "int7b",
    "int8",
    "int8x4",
    "tf32",
    "tfloat32",
    "u1",
    "u16",
    "u2",
    "u3",
    "u32",
    "u32x1",
    "u32x2",
    "u32x4",
    "u4",
    "u4x2",
    "u4x8",
    "u5",
    "u6",
    "u64",
    "u7",
    "u8",
    "u8x4",
    "uint16",
    "uint1b",
    "uint2b",
    "uint32",
    "uint32x1",
    "uint32x2",
    "uint32x4",
    "uint3b",
    "uint4b",
    "uint4bx2",
    "uint4bx8",
    "uint5b",
    "uint64",
    "uint6b",
    "uint7b",
    "uint8",
    "uint8x4",
    "void_p",
]

# what a helper method takes and what layouts are made of bring the compiler, and a trace brings its tool: loaded late,
# by the script that names them
_LATER = {
    "Dim3": "tilekit.lang.attributes",
    "GlobalTensor": "tilekit.ir.tensor",
    "RegisterLayout": "tilekit.ir.layout.register_layout",
    "RegisterTensor": "tilekit.ir.tensor",
    "SharedLayout": "tilekit.ir.layout.shared_layout",
    "SharedTensor": "tilekit.ir.tensor",
    "passes": "tilekit.jit.pipelines",
    "tracing": "tilekit.tools.lower_trace.switch",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(importlib.import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})


def load_ipython_extension(shell: InteractiveShell) -> None:
    """`%load_ext tilekit`: the `%%tilus` magic and the displays."""
    _notebook().load(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """`%unload_ext tilekit`."""
    _notebook().unload(shell)


def _notebook() -> Any:
    # IPython is a guest: only a notebook brings it
    return importlib.import_module("tilekit.notebook.extension")


if config.trace_mode() is not config.TraceMode.OFF:
    # asked for from outside: nobody else has the tool loaded
    importlib.import_module("tilekit.tools.lower_trace.switch").enable()
