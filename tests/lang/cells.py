# SPDX-License-Identifier: Apache-2.0
"""Kernels from text, as a notebook cell gives them, and the same text run by Python itself to compare with.

In a snippet `self` is a kernel, `n` and `m` are int32 arguments, `f` is a float32 one, `x` and `y` are int32 tiles of
eight elements, `u` and `v` float32 ones. `self.keep(row, value)` hands a result out. The same snippet means the same
to Python, where a tile is an immutable NumPy array: that is the whole definition of what names mean.
"""

from __future__ import annotations
import __future__

import itertools
import linecache
import math
import operator
import random
import re
import textwrap
from dataclasses import dataclass
from types import CodeType
from typing import Any

import numpy as np
import torch

import tilekit as tilus
from tilekit import dtypes
from tilekit.diag import TilekitError
from tilekit.ir import evaluator
from tilekit.ir.func import Function
from tilekit.ir.tensor import RegisterTensor, SharedTensor
from tilekit.ir.text import printer
from tilekit.ir.tools import verifier
from tilekit.jit.evaluated import as_memory
from tilekit.utils import cdiv

WIDTH = 8
ROWS = 12

_numbers = itertools.count(1)

GLOBALS = {
    "tilus": tilus,
    "math": math,
    "cdiv": cdiv,
    "RegisterTensor": RegisterTensor,
    "SharedTensor": SharedTensor,
    **{
        name: getattr(dtypes, name) for name in ("int32", "int64", "uint32", "float16", "float32", "float64", "boolean")
    },
}


def cell(text: str, name: str | None = None, flags: int = 0, **names: Any) -> dict[str, Any]:
    """Execute a cell; what it defines knows its source through linecache, as in a notebook."""
    text = textwrap.dedent(text).lstrip("\n")
    name = name or f"Cell In[{next(_numbers)}]"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    namespace = {**GLOBALS, **names, "__name__": f"cell_{abs(hash(name))}"}
    code: CodeType = compile(text, name, "exec", flags=flags, dont_inherit=True)
    exec(code, namespace)
    return namespace


ANNOTATIONS_AS_STRINGS = __future__.annotations.compiler_flag


def function_of(handle: Any, *args: Any) -> Function:
    """The tile IR of a handle's first schedule for these arguments, verified; its error, if it has none."""
    instance = handle._jit_instance_for(*args)
    programs = instance.transpiled_programs
    if not programs:
        raise instance.failed_scheduling[0].error
    try:
        verifier.verify(programs[0])
    except TilekitError as error:
        raise error.with_sources(handle.sources) from None
    return programs[0].function


def error_text(text: str, *args: Any, **names: Any) -> str:
    """What a person reads who calls the cell's class `Kernel` with these arguments."""
    try:
        handle = cell(text, "Cell In[1]", **names)["Kernel"]()
        function_of(handle, *args)
    except TilekitError as error:
        return error.to_text()
    raise AssertionError("the cell compiles")


# ----------------------------------------------------------------------------------------------- snippets, two ways

_KERNEL = """
class Kernel({base}):
    def __init__(self):
        super().__init__()
        self.four = 4
        self.flag = True

    def keep(self, row, value):
        if isinstance(value, RegisterTensor):
            tile = self.cast(value, float64)
        else:
            tile = self.register_tensor(dtype=float64, shape=[{width}], init=float64(value))
        self.store_global(self.out, tile, offsets=[row, 0], dims=[1])

{methods}
    def __call__(self, n: int32, m: int32, f: float32, ints: ~int32, floats: ~float32, out: ~float64):
        self.attrs.blocks = [1]
        self.attrs.warps = 1
        self.out = self.global_view(out, dtype=float64, shape=[{rows}, {width}])
        gi = self.global_view(ints, dtype=int32, shape=[2, {width}])
        gf = self.global_view(floats, dtype=float32, shape=[2, {width}])
        x = self.load_global(gi, offsets=[0, 0], shape=[{width}], dims=[1])
        y = self.load_global(gi, offsets=[1, 0], shape=[{width}], dims=[1])
        u = self.load_global(gf, offsets=[0, 0], shape=[{width}], dims=[1])
        v = self.load_global(gf, offsets=[1, 0], shape=[{width}], dims=[1])
{body}
"""

_PLAIN = """
class Plain({base}):
    def __init__(self):
        super().__init__()
        self.four = 4
        self.flag = True

{methods}
    def __call__(self, n, m, f, x, y, u, v):
{body}
"""


@dataclass(frozen=True)
class Inputs:
    """What a snippet computes with."""

    n: int
    m: int
    f: float
    ints: np.ndarray
    floats: np.ndarray

    @staticmethod
    def fresh(n: int | None = None, m: int | None = None) -> Inputs:
        ints = np.array([[random.randint(-50, 50) for _ in range(WIDTH)] for _ in range(2)], np.int32)
        floats = np.array([[random.uniform(-2, 2) for _ in range(WIDTH)] for _ in range(2)], np.float32)
        return Inputs(
            random.randint(0, 6) if n is None else n,
            random.randint(-6, 6) if m is None else m,
            float(np.float32(random.uniform(0.5, 2))),
            ints,
            floats,
        )


def kernel(body: str, methods: str = "", base: str = "tilus.Script", bases: str = "", **names: Any) -> Any:
    """The handle of a kernel with this snippet as its body; `bases` is text that stands above the class."""
    text = textwrap.dedent(bases).replace("PARENT", "tilus.Script").replace("CLASS", "tilus.Class") + _KERNEL.format(
        base=base, methods=_indented(methods, 4), body=_indented(body, 8), width=WIDTH, rows=ROWS
    )
    return cell(text, **names)["Kernel"]()


def printed(body: str, methods: str = "", **names: Any) -> str:
    """The tile IR of a snippet."""
    handle, args, _ = _ready(body, methods, "tilus.Script", names, Inputs.fresh())
    return printer.print_function(function_of(handle, *args))


def by_kernel(body: str, inputs: Inputs, methods: str = "", base: str = "tilus.Script", **names: Any) -> np.ndarray:
    """What the snippet keeps when it is transpiled and run by the evaluator."""
    handle, args, out = _ready(body, methods, base, names, inputs)
    function_of(handle, *args)
    program = handle._jit_instance_for(*args).transpiled_programs[0]
    evaluator.run(program, [as_memory(argument) for argument in args])
    return out.numpy()


def by_simulator(body: str, inputs: Inputs, methods: str = "", base: str = "tilus.Script", **names: Any) -> np.ndarray:
    """What the snippet keeps when it is compiled and run on the CPU."""
    handle, args, out = _ready(body, methods, base, names, inputs)
    handle(*args)
    return out.numpy()


def by_python(
    body: str, inputs: Inputs, methods: str = "", base: str = "Self", bases: str = "", **names: Any
) -> np.ndarray:
    """What the snippet keeps when Python runs it."""
    # where a kernel writes a part of a tile, Python binds the name to another tile; it has the value before the place
    body = re.sub(r"^(\s*)(\w+)\[(.*)\] = (.*)  # put$", r"\1\2 = \2.put(value=\4, at=\3)", body, flags=re.MULTILINE)
    text = textwrap.dedent(bases).replace("PARENT", "Self").replace("CLASS", "Self") + _PLAIN.format(
        base=base, methods=_indented(methods, 4), body=_indented(body, 8)
    )
    namespace = {**GLOBALS, **HOST_TYPES, "Self": Self, "RegisterTensor": Tile, "SharedTensor": Memory, **names}
    exec(compile(text, "<plain>", "exec", dont_inherit=True), namespace)
    self = namespace["Plain"]()
    tiles = [Tile(data) for data in (*inputs.ints, *inputs.floats)]
    self(inputs.n, inputs.m, inputs.f, *tiles)
    return self.rows


def agrees(body: str, methods: str = "", *, n: int | None = None, m: int | None = None, **names: Any) -> None:
    """Both ways of running a snippet keep the same."""
    inputs = Inputs.fresh(n, m)
    plain = by_python(body, inputs, methods, **names)
    assert not np.isnan(plain).all(), "the snippet keeps nothing"
    np.testing.assert_allclose(by_kernel(body, inputs, methods, **names), plain, rtol=1e-6, err_msg=str(inputs))


def _ready(
    body: str, methods: str, base: str, names: dict[str, Any], inputs: Inputs
) -> tuple[Any, list[Any], torch.Tensor]:
    out = torch.full((ROWS, WIDTH), math.nan, dtype=torch.float64)
    args = [inputs.n, inputs.m, inputs.f, torch.tensor(inputs.ints), torch.tensor(inputs.floats), out]
    return kernel(body, methods, base, **names), args, out


def _indented(text: str, columns: int) -> str:
    return textwrap.indent(textwrap.dedent(text).strip("\n"), " " * columns)


# ---------------------------------------------------------------------------------------- the kernel language in Python


class Tile:
    """An immutable array with the operators of a register tile."""

    def __init__(self, data: np.ndarray) -> None:
        self.data = np.asarray(data)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    @property
    def size(self) -> int:
        return self.data.size

    def to(self, dtype: Cast) -> Tile:
        return Tile(self.data.astype(dtype.numpy))

    def item(self) -> Any:
        return self.data.item()

    def tolist(self) -> Any:
        return self.data.tolist()

    def transpose(self) -> Tile:
        return Tile(self.data.T)

    def squeeze(self, dim: int | tuple[int, ...]) -> Tile:
        return Tile(np.squeeze(self.data, dim))

    def unsqueeze(self, dim: int | tuple[int, ...]) -> Tile:
        return Tile(np.expand_dims(self.data, dim))

    def __getitem__(self, at: Any) -> Tile:
        return Tile(self.data[at].copy())

    def put(self, *, value: Any, at: Any) -> Tile:
        data = self.data.copy()
        data[at] = _array(value)
        return Tile(data)

    def _with(self, other: Any, op: Any) -> Tile:
        return Tile(op(self.data, _array(other).astype(self.data.dtype)))

    def __neg__(self) -> Tile:
        return Tile(-self.data)

    def __invert__(self) -> Tile:
        return Tile(~self.data)


_OPERATORS = "add sub mul truediv floordiv mod and or xor lshift rshift lt le gt ge eq ne"


def _operators() -> None:
    for name in _OPERATORS.split():
        op = getattr(operator, name if name not in ("and", "or") else name + "_")
        setattr(Tile, f"__{name}__", lambda self, other, op=op: self._with(other, op))
        setattr(Tile, f"__r{name}__", lambda self, other, op=op: self._with(other, lambda a, b: op(b, a)))


_operators()


def _array(value: Any) -> np.ndarray:
    return value.data if isinstance(value, Tile) else np.asarray(value)


class Memory:
    """An array that several names may show parts of: shared memory."""

    def __init__(self, data: np.ndarray) -> None:
        self.data = data

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    @property
    def size(self) -> int:
        return self.data.size

    @property
    def nbytes(self) -> int:
        return self.data.nbytes

    def item(self) -> Any:
        return self.data.item()

    def permute(self, dims: list[int]) -> Memory:
        return Memory(self.data.transpose(dims))

    def transpose(self) -> Memory:
        return Memory(self.data.T)

    def __getitem__(self, at: Any) -> Memory:
        return Memory(self.data[(*at, ...) if isinstance(at, tuple) else (at, ...)])


class Cast:
    """A dtype that converts numbers and tiles."""

    def __init__(self, name: str) -> None:
        self.numpy = np.dtype("bool" if name == "boolean" else name)

    def __call__(self, value: Any) -> Any:
        if isinstance(value, Tile):
            return Tile(value.data.astype(self.numpy))
        return self.numpy.type(value).item()


HOST_TYPES = {name: Cast(name) for name in ("int32", "int64", "uint32", "float16", "float32", "float64", "boolean")}


class Self:
    """The part of the kernel language that snippets use."""

    def __init__(self) -> None:
        self.rows = np.full((ROWS, WIDTH), np.nan)

    def keep(self, row: int, value: Any) -> None:
        self.rows[row] = _array(value)

    def range(self, *limits: int, unroll: Any = None) -> range:
        return range(*limits)

    def register_tensor(self, *, dtype: Cast, shape: list[int], init: Any) -> Tile:
        if not callable(init):
            return Tile(np.full(shape, init, dtype.numpy))
        return Tile(np.array([init(*at) for at in np.ndindex(*shape)], dtype.numpy).reshape(shape))

    def shared_tensor(self, *, dtype: Cast, shape: list[int]) -> Memory:
        return Memory(np.zeros(shape, dtype.numpy))

    def store_shared(self, dst: Memory, src: Tile) -> None:
        dst.data[...] = src.data

    def load_shared(self, src: Memory) -> Tile:
        return Tile(src.data.copy())

    def sync(self) -> None:
        """Python runs one thread."""

    def fast_divmod(self, a: int, b: int) -> tuple[int, int]:
        return divmod(a, b)

    def assign(self, dst: Tile, src: Tile) -> None:
        dst.data = src.data

    def where(self, condition: Tile, a: Any, b: Any) -> Tile:
        like = a if isinstance(a, Tile) else b
        return Tile(np.where(condition.data, _array(a), _array(b)).astype(_array(like).dtype))

    def maximum(self, a: Any, b: Any) -> Tile:
        return a._with(b, np.maximum) if isinstance(a, Tile) else b._with(a, np.maximum)

    def exp(self, a: Tile) -> Tile:
        return Tile(np.exp(a.data))

    def square(self, a: Tile) -> Tile:
        return Tile(np.square(a.data))
