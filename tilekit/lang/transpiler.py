# SPDX-License-Identifier: Apache-2.0
"""From a script class with one schedule and its compile-time arguments to a tile program."""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, cast

from tilekit import dtypes
from tilekit.diag import errors
from tilekit.diag.errors import TilekitError
from tilekit.diag.sources import Sources
from tilekit.diag.span import Span
from tilekit.dtypes import DataType, PointerType
from tilekit.ir.func import Function, Metadata
from tilekit.ir.instructions.workspace import AllocateGlobalInst
from tilekit.ir.prog import Program
from tilekit.ir.tensor import GlobalLayout, GlobalTensor, Tensor
from tilekit.ir.tools.instruction_collector import collect
from tilekit.ir.tools.rewriter import rewrite
from tilekit.lang import objects, source
from tilekit.lang.attributes import Attributes
from tilekit.lang.builder import Builder
from tilekit.lang.cuda import Cuda, Gpus
from tilekit.lang.methods import KernelMethods
from tilekit.lang.params import CallParameters
from tilekit.lang.statements import Statements
from tilekit.lowir import scalar, scalar_eval
from tilekit.lowir.scalar import Expr, Var


@dataclass(frozen=True)
class Transpiled:
    """A program and the live functions that its spans speak of."""

    program: Program
    sources: Sources


def transpile(
    script: type,
    schedule: Mapping[str, Any],
    params: CallParameters,
    constants: Mapping[str, Any],
    divisibility: Mapping[str, int],
    sources: Sources | None = None,
    gpus: Gpus = tuple,
) -> Transpiled:
    """Run `__init__` with the schedule, then build the program that `__call__` describes.

    Parameters
    ----------
    script
        The user's class.
    schedule
        The arguments of its `__init__`.
    params
        The parameters of its `__call__`.
    constants
        The value of each compile-time parameter, by name.
    divisibility
        What callers guarantee: a divisor of an integer parameter, the alignment in bytes of a pointer, by name.
    sources
        Where to register the functions that are read; errors are shown through it.
    gpus
        The GPUs of this machine, for a kernel that asks; none by default.
    """
    sources = sources or Sources()
    try:
        return Transpiled(_transpile(script, schedule, params, constants, divisibility, sources, gpus), sources)
    except TilekitError as error:
        raise error.with_sources(sources) from error.__cause__
    except RecursionError:
        raise errors.too_deep().with_sources(sources) from None


def _transpile(
    script: type,
    schedule: Mapping[str, Any],
    params: CallParameters,
    constants: Mapping[str, Any],
    divisibility: Mapping[str, int],
    sources: Sources,
    gpus: Gpus,
) -> Program:
    builder = Builder()
    kernel = _instance(script, schedule, builder, sources, Cuda(gpus))
    arguments: dict[str, Any] = {}
    runtime: list[Var] = []
    for name, kind in zip(params.param_names, params.param_types, strict=True):
        if isinstance(kind, (DataType, PointerType)):
            runtime.append(scalar.var(name, kind))
            arguments[name] = runtime[-1]
        else:
            arguments[name] = constants[name]
    call = source.plain(script.__call__)
    header = source.read(call).header
    myself = call.__code__.co_varnames[0]
    builder.is_open = True
    Statements(kernel, builder, sources).run(call, {myself: kernel, **arguments})
    metadata = _metadata(kernel.attrs, runtime, divisibility, header)
    func = Function.create(kernel_name(script.__name__), runtime, builder.finish(), metadata).replace(span=header)
    named = {t: t.replace(name=name) for t, name in builder.names.items() if not t.name}
    grid = {scalar.grid_dim(axis): scalar.cast(e, dtypes.int32) for axis, e in enumerate(metadata.grid_blocks)}
    for inst in collect(func, AllocateGlobalInst):
        if not grid.keys().isdisjoint(scalar.free_vars(inst.num_elements)):
            made = cast("GlobalTensor", named.get(inst.tensor, inst.tensor))
            named[inst.tensor] = made.replace(layout=_before_launch(made.layout, grid))
    bindings = tuple(
        replace(each, value=named.get(each.value, each.value)) if isinstance(each.value, Tensor) else each
        for each in builder.bindings
    )
    return Program.create({func.name: rewrite(func, named)}).replace(bindings=bindings)


def _instance(
    script: type, schedule: Mapping[str, Any], builder: Builder, sources: Sources, cuda: Cuda
) -> KernelMethods:
    """An object of the user's class that also has the kernel language."""
    objects.check_script(script, sources)
    cls = objects.with_language(script, builder, Attributes(builder), cuda)
    kernel = objects.new(cls)
    initialize: Any = cls.__init__
    try:
        initialize(kernel, **schedule)
    except TilekitError as error:
        raise error.located(_place_in(initialize, error.__traceback__, sources)) from error.__cause__
    except Exception as problem:
        arguments = ", ".join(f"{key}={value!r}" for key, value in schedule.items())
        raise errors.LanguageError(
            "TK109",
            f"{script.__name__}.__init__({arguments}) raised {type(problem).__name__}: {problem}",
            at=_place_in(initialize, problem.__traceback__, sources),
        ) from problem
    return kernel


def _place_in(function: Any, trace: TracebackType | None, sources: Sources) -> Span | None:
    """The line of `function` that an exception passed through."""
    try:
        read = source.read(function)
    except TilekitError:
        return None
    while trace is not None:
        if trace.tb_frame.f_code is read.code:
            sources.register(read.name, read.code)
            return _line(read, trace)
        trace = trace.tb_next
    return None


def _line(read: source.FunctionSource, trace: TracebackType) -> Span | None:
    """The stretch of source that a traceback entry stands at."""
    positions = list(read.code.co_positions())[trace.tb_lasti // 2]
    if None in positions:
        return None
    line, end_line, col, end_col = cast("tuple[int, int, int, int]", positions)
    start = read.node.lineno
    return Span(read.name, line - start, col, end_line - start, end_col)


def _metadata(attrs: Attributes, params: list[Var], divisibility: Mapping[str, int], header: Span) -> Metadata:
    for name, example in (("blocks", "[cdiv(n, 128)]"), ("warps", "4")):
        if getattr(attrs, name) is None:
            raise errors.LanguageError(
                "TK108",
                f"the kernel never sets self.attrs.{name}",
                at=header,
                help=f"self.attrs.{name} = {example}",
            )
    assert attrs.blocks is not None and attrs.warps is not None
    for extent in attrs.blocks:
        strangers = [v for v in scalar.free_vars(extent) if v not in params]
        if strangers:
            raise errors.LanguageError(
                "TK108",
                f"self.attrs.blocks depends on {scalar.name_hint(strangers[0])}, which only exists inside the kernel",
                at=attrs.places["blocks"],
                help="compute the grid from the parameters of __call__",
            )
        try:
            scalar_eval.to_host(extent, scalar.name_hint)
        except TilekitError as error:
            raise error.located(attrs.places["blocks"]) from error.__cause__
    known = {v: divisibility[name] for v in params if (name := scalar.name_hint(v)) in divisibility}
    indices = [scalar.block_idx(axis) for axis in range(3)]
    return Metadata.create(attrs.blocks, attrs.cluster_blocks, indices, attrs.warps, known)


def _before_launch(layout: GlobalLayout, grid: Mapping[Var, Expr]) -> GlobalLayout:
    """The layout of a workspace, which is made when a grid is not there yet, but known."""
    shape, strides = (tuple(scalar.rewrite(e, grid) for e in part) for part in (layout.shape, layout.strides))
    return GlobalLayout(shape, strides)


def kernel_name(script: str) -> str:
    """`VectorAdd` as `vector_add`: an underscore before every capital but the first.

    A word of Python, as which tile IR is read, has one at its end.
    """
    name = "".join(f"_{c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(script))
    return f"{name}_" if keyword.iskeyword(name) else name
