# SPDX-License-Identifier: Apache-2.0
"""Programs of a few lines, run in the evaluator."""

from collections.abc import Sequence

import numpy as np
import pytest

from tilekit import dtypes
from tilekit.diag import KernelError
from tilekit.ir import evaluator
from tilekit.ir.text import parser
from tilekit.ir.tools import verify

# a number of each type, written as in printed IR
CONSTANT = {"f32": 0.5, "f16": 0.5, "i32": 7}


def ran(args, *lines: str, params: str = "", grid: str = "i32(1)", well_formed: bool = True, **options) -> str:
    """Run a program of these lines; what it printed."""
    header = f"@kernel(\n    grid=[{grid}, i32(1), i32(1)],\n    warps=1,\n)\ndef f({params}):\n"
    prog = parser.parse_program(header + "".join(f"    {line}\n" for line in lines))
    if well_formed:
        verify(prog)
    return evaluator.run(prog, args, **options)


def failure(args, *lines: str, **options) -> KernelError:
    """What is wrong with a program of these lines."""
    with pytest.raises(KernelError) as error:
        ran(args, *lines, **options)
    return error.value


def result(dtype: str, shape: Sequence[int], *lines: str, inputs=(), params: str = "") -> np.ndarray:
    """The tile that the last of these lines makes, of this dtype and shape."""
    strides = [int(np.prod(shape[dim + 1 :])) for dim in range(len(shape))]
    axes = [f"a{dim}" for dim in range(len(shape))]
    offset = " + ".join(["i32(0)", *(f"{axis} * i32({stride})" for axis, stride in zip(axes, strides, strict=True))])
    name = lines[-1].split(":")[0].split(" =")[0].strip()
    store = f"store_global_generic({name}, ptr=result, axes=[{', '.join(axes)}], offset=i64({offset}))"
    if not axes:
        store = f"store_global_generic({name}, ptr=result, axes=[], offset=i64(0))"
    out = np.zeros(shape, dtypes.numpy_dtype(dtypes.parse(dtype)))
    ran([*inputs, out], *lines, store, params=", ".join(filter(None, [params, f"result: ~{dtype}"])))
    return out


def copied_rows(count: int, after: str = "pass") -> list[str]:
    """Lines that start a copy of eight floats from `p` to each of `s0`, `s1`, …, followed by a line; `o` views `q`."""
    lines = ["g: Global[f32[i32(100)]] = global_view(ptr=p)", "o: Global[f32[i32(8)]] = global_view(ptr=q)"]
    for row in range(count):
        lines += [
            f"s{row}: Shared[f32[8]] = shared_tensor()",
            f"copy_async(s{row}, g, offsets=[i32({8 * row})], dims=[0])",
            after,
        ]
    return lines
