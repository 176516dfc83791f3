# SPDX-License-Identifier: Apache-2.0
"""`generate_ir_module`: a tile program becomes a Hidet module, statement by statement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass

from tilekit import dtypes
from tilekit.backends import registry, shared_access, shared_limit, shared_steps
from tilekit.backends.context import Context
from tilekit.backends.emitters import cuda
from tilekit.backends.shared_access import SharedView
from tilekit.diag import errors
from tilekit.diag.span import Span
from tilekit.dtypes import PointerType
from tilekit.ir.analysis import pointers, shared_views
from tilekit.ir.analysis.scalar_analysis import Facts, analyze
from tilekit.ir.func import Function
from tilekit.ir.inst import Instruction
from tilekit.ir.instructions.copy_async import CopyAsyncGenericInst
from tilekit.ir.instructions.elementwise import ElementwiseBinaryInst
from tilekit.ir.instructions.memory import LoadGlobalGenericInst, StoreGlobalGenericInst
from tilekit.ir.instructions.semaphore import LockSemaphoreInst, ReleaseSemaphoreInst
from tilekit.ir.instructions.shared import AllocateSharedInst
from tilekit.ir.instructions.workspace import AllocateGlobalInst
from tilekit.ir.prog import Program
from tilekit.ir.stmt import (
    AssignStmt,
    BreakStmt,
    DeclareStmt,
    ForStmt,
    IfStmt,
    InstStmt,
    LetStmt,
    ReturnStmt,
    SeqStmt,
    Stmt,
    TensorItemPtrStmt,
    TensorItemValueStmt,
    WhileStmt,
)
from tilekit.ir.tensor import GlobalTensor, RegisterTensor, SharedTensor, Tensor
from tilekit.ir.text import printer
from tilekit.ir.text.names import Names, is_special
from tilekit.ir.tools.instruction_collector import collect
from tilekit.lowir import cxx, names, prims, scalar, scalar_eval
from tilekit.lowir.nodes import Div, IRModule, Mod
from tilekit.lowir.scalar import Expr, Var
from tilekit.target import SM80, Target

_ = cuda  # importing the emitters registers them


@dataclass(frozen=True)
class KernelParam:
    """A parameter, and what the kernel does behind a pointer."""

    var: Var
    written: bool
    read: bool

    @property
    def is_pointer(self) -> bool:
        return isinstance(scalar.dtype_of(self.var), PointerType)


@dataclass(frozen=True)
class Workspace:
    """Global memory that a launch lends to the kernel: `nbytes` in terms of the parameters, zeros if it is `clean`."""

    var: Var
    nbytes: str
    clean: bool


@dataclass(frozen=True)
class SharedRange:
    """Where a tensor lies in shared memory, in bytes."""

    name: str
    tensor: SharedTensor
    offset: int
    nbytes: int


@dataclass(frozen=True)
class LoweredModule:
    """A Hidet module, and what a launch of it needs to know."""

    module: IRModule
    kernel: str
    params: tuple[KernelParam, ...]
    # these follow the parameters
    workspaces: tuple[Workspace, ...]
    grid: tuple[str, str, str]
    num_threads: int
    shared_bytes: int
    # the statement that each line of source comes from, by the number that the line carries
    statements: tuple[Stmt, ...]
    shared: tuple[SharedRange, ...]
    # by the same number, the only tensor of `shared` that the instruction accesses, or one of the two below
    shared_of: tuple[int, ...]

    @property
    def spans(self) -> tuple[Span | None, ...]:
        """The place in the user's function of each statement."""
        return tuple(map(printer.span_of, self.statements))


NO_ONE_TENSOR = -1
"""It accesses no tensor in shared memory, or several."""
IN_LANES = -2
"""It divides integers in each lane: also in lanes whose result nobody looks at, where a division by zero gives 0."""


def generate_ir_module(prog: Program, target: Target) -> LoweredModule:
    """Lower the one function of an optimized program; every tile in it has a layout."""
    if not target.supports(SM80):
        raise errors.CodegenError(
            "TK401",
            f"tilekit generates code for sm_80 and newer, not for {target.name}",
            at=prog.function.span,
            help="compile for another target, or pass CPU tensors to run the kernel in the simulator",
        )
    if prog.function.metadata.cluster_blocks != (1, 1, 1):
        raise errors.CodegenError("TK401", "clusters of blocks have no code", at=prog.function.span)
    return _Lowering(prog.function, target).run()


class _Lowering:
    def __init__(self, func: Function, target: Target) -> None:
        self.func = func
        self.target = target
        self.names = Names.of_function(func)
        facts = Facts.from_analysis(func.metadata.analysis or analyze(func))
        self.context = Context(func.metadata.num_threads, target, facts, self.names, _changing(func))
        self.shared = shared_steps.plan(func, target)
        self.workspaces: dict[GlobalTensor, Workspace] = {}
        self.statements: list[Stmt] = []
        self.shared_of: list[int] = []
        self.views = shared_views.views(func)

    def run(self) -> LoweredModule:
        func, context = self.func, self.context
        for tensor, offset in self.shared.tensors.items():
            name = self.names.name(tensor)
            with self._placed(self._made_at(tensor)):
                pointer = context.builder.hoist(name, prims.shared_ptr(tensor.dtype, offset))
            context.bind_shared(tensor, SharedView(name, pointer, scalar.constant(dtypes.int32, 0), 0, tensor.layout))
        for inst in collect(func, AllocateGlobalInst):
            self.lend(inst)
        for axis, index in enumerate(func.metadata.block_indices):
            if not is_special(index):
                context.builder.declare(index, scalar.block_idx(axis))
        self.statement(func.body)
        with self._placed(func.span):
            for param in func.params:
                cxx.type_name(scalar.dtype_of(param))
        params = _params(func)
        read_only = [param.var for param in params if param.is_pointer and not param.written]
        kernel = names.legal(f"{func.name}_kernel")
        lent = tuple(self.workspaces.values())
        shared_limit.check(func, self.shared, self.names, self.target)
        x, y, z = (scalar_eval.to_host(extent, scalar.name_hint) for extent in func.metadata.grid_blocks)
        return LoweredModule(
            module=context.builder.finish(kernel, [*func.params, *(w.var for w in lent)], read_only=read_only),
            kernel=kernel,
            params=params,
            workspaces=lent,
            grid=(x, y, z),
            num_threads=func.metadata.num_threads,
            shared_bytes=self.shared.plan.nbytes,
            statements=tuple(self.statements),
            shared=tuple(self._shared_range(tensor, offset) for tensor, offset in self.shared.tensors.items()),
            shared_of=tuple(self.shared_of),
        )

    def _shared_range(self, tensor: SharedTensor, offset: int) -> SharedRange:
        return SharedRange(self.names.name(tensor), tensor, offset, tensor.layout.count_size() * tensor.dtype.nbytes)

    def _made_at(self, tensor: SharedTensor) -> Span | None:
        return next(
            (inst.span for inst in collect(self.func, AllocateSharedInst) if inst.shared_output is tensor), None
        )

    @contextmanager
    def _placed(self, span: Span | None) -> Generator[None]:
        """Gives what goes wrong inside, and knows no place, this one."""
        try:
            yield
        except errors.TilekitError as error:
            raise error.located(span) from error.__cause__

    def _accessed(self, tensors: Iterable[Tensor]) -> int:
        """The only tensor in shared memory that one of these is, or shows."""
        roots = {shared_views.root(tensor, self.views) for tensor in tensors if isinstance(tensor, SharedTensor)}
        return list(self.shared.tensors).index(roots.pop()) if len(roots) == 1 else NO_ONE_TENSOR

    def _origin(self, stmt: Stmt, accessed: int) -> int:
        """The number that the lines of a statement carry."""
        self.statements.append(stmt)
        self.shared_of.append(accessed)
        return len(self.statements) - 1

    def lend(self, inst: AllocateGlobalInst) -> None:
        """Make a workspace a parameter of the kernel."""
        tensor = inst.tensor
        with self._placed(inst.span):
            elements = scalar_eval.to_host(inst.num_elements, scalar.name_hint)
        var = scalar.var(self.names.name(tensor), PointerType(tensor.dtype))
        self.workspaces[tensor] = Workspace(var, f"({elements}) * {tensor.dtype.nbytes}", inst.requires_clean)
        self.context.bind_global(tensor, var)

    def statement(self, stmt: Stmt) -> None:
        """The code of a statement; its lines outside of instructions know where it was written."""
        match stmt:
            case InstStmt():
                self.instruction(stmt)
            case SeqStmt():
                for child in stmt.seq:
                    self.statement(child)
            case TensorItemValueStmt() | TensorItemPtrStmt():
                origin = self._origin(stmt, self._accessed([stmt.tensor]))
                with self.context.builder.instruction(origin, ""):
                    self.element(stmt)
            case _:
                with self.context.builder.at(self._origin(stmt, NO_ONE_TENSOR)):
                    self.scalars(stmt)

    def scalars(self, stmt: Stmt) -> None:
        """A statement that computes with scalars, or that decides what is computed."""
        builder = self.context.builder
        match stmt:
            case ForStmt():
                with builder.for_range(stmt.iter_var, stmt.extent, stmt.unroll_factor):
                    self.statement(stmt.body)
            case WhileStmt():
                with builder.while_loop(stmt.cond):
                    self.statement(stmt.body)
            case IfStmt():
                with builder.if_then(stmt.cond):
                    self.statement(stmt.then_body)
                if stmt.else_body is not None:
                    with builder.otherwise():
                        self.statement(stmt.else_body)
            case DeclareStmt():
                builder.declare(stmt.var, stmt.init)
            case LetStmt():
                for variable, value in zip(stmt.bind_vars, stmt.bind_values, strict=True):
                    builder.declare(variable, value)
                self.statement(stmt.body)
            case AssignStmt():
                builder.assign(stmt.var, stmt.value)
            case BreakStmt():
                builder.break_()
            case ReturnStmt():
                builder.ret()
            case _:
                raise AssertionError(f"the verifier let a {type(stmt).__name__} through")

    def element(self, stmt: TensorItemValueStmt | TensorItemPtrStmt) -> None:
        """One element of a tensor, or its address, in a variable."""
        context, builder, tensor = self.context, self.context.builder, stmt.tensor
        if self.shared.needs_barrier(stmt):
            self.wait()
        match tensor:
            case RegisterTensor():
                assert isinstance(stmt, TensorItemValueStmt)
                builder.declare(stmt.var, context.read(tensor, 0))
                return
            case SharedTensor():
                view = context.shared(tensor)
                pointer, offset = view.pointer, shared_access.element(context, view, stmt.offsets)
            case GlobalTensor():
                pointer, offset = context.global_pointer(tensor), tensor.layout.offset(stmt.offsets)
        match stmt:
            case TensorItemValueStmt():
                builder.declare(stmt.var, builder.buffer_load(pointer, offset))
            case TensorItemPtrStmt():
                builder.declare(stmt.ptr_var, scalar.add(pointer, offset))

    def wait(self) -> None:
        """A barrier that the kernel does not ask for: two of its tensors lie in one place, one after the other."""
        self.context.builder.comment("this memory was something else's: nobody may be using it any more")
        self.context.builder.evaluate(prims.syncthreads())

    def instruction(self, stmt: InstStmt) -> None:
        inst = stmt.inst
        emit = registry.find(inst, self.target).emit
        accessed = NO_ONE_TENSOR if inst in self.shared.workspaces else self._accessed(inst.inputs)
        origin = self._origin(stmt, IN_LANES if _divides_in_lanes(inst) else accessed)
        text = printer.print_instruction(inst, self.names)
        with self._placed(inst.span), self.context.builder.instruction(origin, text):
            if self.shared.needs_barrier(inst):
                self.wait()
            self.context.workspace = self.shared.workspaces.get(inst, 0)
            emit(inst, self.context)


def _divides_in_lanes(inst: Instruction) -> bool:
    """Whether it divides elements of a tile, or by a number that is not the same everywhere in it."""
    if isinstance(inst, ElementwiseBinaryInst):
        return inst.op in ("floordiv", "mod")
    parts = (part for expr in inst.exprs for part in scalar.walk(expr) if isinstance(part, (Div, Mod)))
    return any(not (scalar.is_constant(part.b) or _is_apart(part, inst.bound_vars)) for part in parts)


def _is_apart(expr: Expr, variables: Iterable[Var]) -> bool:
    return set(scalar.free_vars(expr)).isdisjoint(variables)


def _changing(func: Function) -> frozenset[RegisterTensor | Var]:
    """The register tiles that several instructions write, and the scalar variables that are assigned."""
    written = Counter(t for inst in collect(func, Instruction) for t in inst.writes if isinstance(t, RegisterTensor))
    assigned = {stmt.var for stmt in collect(func, AssignStmt)}
    return frozenset(assigned | {tile for tile, count in written.items() if count > 1})


def _params(func: Function) -> tuple[KernelParam, ...]:
    """The parameters as a launch sees them, with what the kernel does behind each pointer."""
    origins = pointers.origins(func)
    read: set[Var] = set()
    written: set[Var] = set()
    for load in collect(func, (LoadGlobalGenericInst, CopyAsyncGenericInst, LockSemaphoreInst)):
        read |= pointers.sources_of(load.ptr, origins)
    for store in collect(func, (StoreGlobalGenericInst, ReleaseSemaphoreInst)):
        written |= pointers.sources_of(store.ptr, origins)
    views = pointers.views(func)
    elements = [element.tensor for element in collect(func, TensorItemValueStmt)]
    for tensor in (*elements, *(tensor for inst in collect(func, Instruction) for tensor in inst.reads)):
        for pointer in views.get(tensor, ()):
            read |= pointers.sources_of(pointer, origins)
    return tuple(KernelParam(v, v in written, v not in origins or v in read) for v in func.params)
