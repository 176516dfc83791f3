# SPDX-License-Identifier: Apache-2.0
"""Help for tests that build kernels, and run them as plain C++ in this process."""

import ctypes
import ctypes.util
import itertools
from pathlib import Path

import numpy as np

import tilekit
from tests.lowir.expressions import dtype_of
from tilekit import dtypes
from tilekit.ir.analysis.scalar_analysis import Fact, Facts
from tilekit.lowir import scalar
from tilekit.lowir.build import KernelBuilder
from tilekit.toolchain import host

INCLUDE = Path(tilekit.__file__).parent / "include"


class Known:
    """Knowledge from the analysis of the tile IR."""

    def __init__(self, facts=None):
        self.facts = Facts(facts or {})

    def learn(self, v, low, high):
        self.facts = Facts({**self.facts.variables, v: Fact.of(1, low, high)})

    def is_at_least(self, e, low):
        return self.facts.of(e).low >= low

    def may_wrap(self, e):
        return self.facts.may_wrap(e)


def lines_of(source):
    """The body of a printed kernel, without indent of the function itself."""
    lines = source.text.splitlines()
    return [line.removeprefix("  ") for line in lines[lines.index("{") + 1 : lines.index("}")]]


_numbers = itertools.count()


def run_on_cpu(text, kernel, arrays, folder):
    """Build a kernel that needs no threads, and call it once with pointers to these arrays."""
    source = folder / f"source{next(_numbers)}.cu"
    source.write_text(text)
    host.require_compiler().build_kernel(source, source.with_suffix(".so"), include=INCLUDE)
    ctypes.CDLL(ctypes.util.find_library("m"), mode=ctypes.RTLD_GLOBAL)
    library = ctypes.CDLL(str(source.with_suffix(".so")))
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
    arguments = (ctypes.c_void_p * len(pointers))(*(ctypes.addressof(pointer) for pointer in pointers))
    getattr(library, f"{kernel}__tk")(arguments)


def values_in_cpp(expressions, variables, env, folder, knowledge=None):
    """What the printed C++ of expressions gives, for these values of their variables."""
    kinds = [dtype for dtype in variables if dtype in {dtype_of(v) for v in env}]
    inputs = {dtype: scalar.var(f"in_{dtype.short_name}", ~dtype) for dtype in kinds}
    results = sorted({dtype_of(e) for e in expressions}, key=lambda dtype: dtype.name)
    outputs = {dtype: scalar.var(f"out_{dtype.short_name}", ~dtype) for dtype in results}
    builder = KernelBuilder(1, knowledge)
    for dtype in kinds:
        for k, v in enumerate(variables[dtype]):
            builder.declare(v, builder.buffer_load(inputs[dtype], k))
    for k, e in enumerate(expressions):
        builder.buffer_store(outputs[dtype_of(e)], k, e)
    module = builder.finish("kernel", [*inputs.values(), *outputs.values()], read_only=[*inputs.values()])

    from tilekit.lowir import passes, printer

    text = printer.print_module(passes.optimize(module)).text
    sources = [np.stack([env[v] for v in variables[dtype]]) for dtype in kinds]
    targets = [np.zeros(len(expressions), dtypes.numpy_dtype(dtype)) for dtype in results]
    run_on_cpu(text, "kernel", [*sources, *targets], folder)
    return [targets[results.index(dtype_of(e))][k] for k, e in enumerate(expressions)], text
