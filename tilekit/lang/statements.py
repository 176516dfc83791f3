# SPDX-License-Identifier: Apache-2.0
"""Executing the statements of a kernel, with Python's rule for names.

In straight-line code a name is bound to the new value. A name that a run-time loop or branch rebinds owns storage there
and rebinding writes it, because afterwards nobody knows at compile time how often that happened. A second name for a
tile gets its own copy, which a later pass removes unless one of the two is written.
"""

from __future__ import annotations

import ast
import inspect
from types import FunctionType
from typing import Any, cast

from tilekit import dtypes
from tilekit.diag import errors
from tilekit.dtypes import DataType, PointerType
from tilekit.ir.instructions.register import AllocateRegisterInst, AssignInst
from tilekit.ir.stmt import BreakStmt, ForStmt, IfStmt, ReturnStmt, SeqStmt, Stmt, WhileStmt
from tilekit.ir.surface import describe
from tilekit.ir.tensor import RegisterTensor, Tensor
from tilekit.lang import methods, operators, source
from tilekit.lang.expressions import Expressions, unsupported
from tilekit.lang.frame import Frame, Unavailable
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Expr, Var


class _Returned(Exception):
    """A helper method reached its return statement."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class _HostBreak(Exception):
    """A break out of a loop that is unrolled at compile time."""


class Statements(Expressions):
    """Executes statement nodes."""

    # run-time blocks that are open in the current helper call, innermost loop kinds: True for a run-time loop
    _loops: list[bool]

    def run(self, function: FunctionType, args: dict[str, Any]) -> None:
        """Execute the kernel's `__call__`."""
        self._loops = []
        read = source.read(function)
        self.sources.register(read.name, read.code)
        self.frames.append(Frame(read, function, None, args))
        try:
            self.body(read.node.body)
        except _Returned:
            pass
        finally:
            self.frames.pop()

    def inline(self, function: FunctionType, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Execute a helper method in a frame of its own, and give what it returns."""
        read = source.read(function)
        self.sources.register(read.name, read.code)
        if any(frame.function is function for frame in self.frames):
            raise errors.LanguageError(
                "TK103", f"{read.name} calls itself: kernel methods are inlined and cannot recurse"
            )
        try:
            bound = inspect.signature(function).bind(*args, **kwargs)
        except TypeError as problem:
            raise errors.LanguageError("TK104", f"{read.name}: {problem}") from None
        bound.apply_defaults()
        frame = Frame(read, function, self.builder.span)
        parameters = inspect.signature(function).parameters
        for name, value in bound.arguments.items():
            frame.names[name] = self._argument(name, parameters[name].annotation, value)
        loops, self._loops = self._loops, []
        depth = self.builder.depth
        self.frames.append(frame)
        try:
            self.body(read.node.body)
        except _Returned as returned:
            if self.builder.depth != depth:
                raise errors.LanguageError(
                    "TK112", "a helper method cannot return from inside run-time control flow"
                ) from None
            return returned.value
        finally:
            self.frames.pop()
            self._loops = loops
        return None

    def _argument(self, name: str, annotation: Any, value: Any) -> Any:
        """A helper's parameter: scalars by value, tiles by reference, host constants as they are."""
        if isinstance(annotation, (DataType, PointerType)) and operators.is_number(value):
            typed = scalar.cast(scalar.as_expr(value), annotation) if isinstance(annotation, DataType) else value
            return self.builder.declare(name, typed)
        if annotation in (int, float, bool, str) and isinstance(value, Expr):
            raise errors.LanguageError(
                "TK106",
                f"parameter {name} is a compile-time {annotation.__name__}, but the argument exists only at run time",
                help=f"annotate it as a run-time type, for example {name}: int32",
            )
        return self.snapshot(value)

    def body(self, nodes: list[ast.stmt]) -> None:
        for node in nodes:
            self.execute(node)

    def execute(self, node: ast.stmt) -> None:
        method = getattr(self, f"exec_{type(node).__name__}", None)
        with self.at(node):
            if method is None:
                raise unsupported(node)
            method(node)

    # ------------------------------------------------------------------------------------------------- assignment

    def exec_Expr(self, node: ast.Expr) -> None:
        self.evaluate(node.value)

    def exec_Pass(self, node: ast.Pass) -> None:
        """Nothing to do."""

    def exec_Assign(self, node: ast.Assign) -> None:
        value = self.evaluate(node.value)
        for target in node.targets:
            self.unpack(target, value)

    def exec_AnnAssign(self, node: ast.AnnAssign) -> None:
        annotation = self.evaluate(node.annotation)
        if node.value is None:
            raise errors.LanguageError(
                "TK103", "an annotation without a value declares nothing", help="give it a first value"
            )
        value = self.evaluate(node.value)
        if isinstance(annotation, DataType) and operators.is_number(value):
            value = scalar.cast(scalar.as_expr(value), annotation)
            if isinstance(node.target, ast.Name):
                self.bind(node.target.id, value, declare=True)
                return
        elif annotation in (int, float, bool, str) and operators.is_runtime(value):
            raise errors.LanguageError(
                "TK106",
                f"{ast.unparse(node.target)} is a compile-time {annotation.__name__}, but its value exists only at run time",
                help="annotate it as a run-time type, for example int32",
            )
        self.unpack(node.target, value)

    def exec_AugAssign(self, node: ast.AugAssign) -> None:
        load = cast("ast.expr", ast.copy_location(_as_load(node.target), node.target))
        old = self.evaluate(load)
        value = self.evaluate(node.value)
        if isinstance(old, RegisterTensor):
            operators.binary(node.op, old, value, self.kernel, out=old)
            return
        self.unpack(node.target, self._host(operators.binary, node.op, old, value, self.kernel))

    def unpack(self, target: ast.expr, value: Any) -> None:
        match target:
            case ast.Name(id=name):
                self.bind(name, value)
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                self._unpack_sequence(targets, value)
            case ast.Attribute(value=owner, attr=attr):
                self._set_attribute(self.evaluate(owner), attr, value)
            case ast.Subscript(value=owner, slice=index):
                container = self.evaluate(owner)
                if operators.is_runtime(container):
                    raise errors.LanguageError("TK103", f"{describe(container)} cannot be written by index")
                self._host(container.__setitem__, self.evaluate(index), self.snapshot(value))
            case _:
                raise unsupported(target)

    def _unpack_sequence(self, targets: list[ast.expr], value: Any) -> None:
        if operators.is_runtime(value):
            raise errors.LanguageError("TK103", f"{describe(value)} cannot be unpacked")
        values = self._host(list, value)
        stars = [i for i, target in enumerate(targets) if isinstance(target, ast.Starred)]
        if not stars and len(values) != len(targets):
            raise errors.LanguageError("TK104", f"{len(values)} values for {len(targets)} names")
        if stars:
            (star,) = stars
            behind = len(targets) - star - 1
            if len(values) < len(targets) - 1:
                raise errors.LanguageError("TK104", f"{len(values)} values for at least {len(targets) - 1} names")
            middle = values[star : len(values) - behind]
            values = [*values[:star], middle, *values[len(values) - behind :]]
        # every right side is evaluated before any name is bound: `a, b = b, a` swaps
        values = [self._apart(value) for value in values]
        for target, part in zip(targets, values, strict=True):
            self.unpack(target.value if isinstance(target, ast.Starred) else target, part)

    def _apart(self, value: Any) -> Any:
        if isinstance(value, RegisterTensor) and self._held_by_owned_name(value):
            return self.copy_of(value)
        return self.snapshot(value)

    def _held_by_owned_name(self, tensor: RegisterTensor) -> bool:
        return any(self.frame.names.get(name) is tensor for name in self.frame.owned)

    def _set_attribute(self, owner: Any, name: str, value: Any) -> None:
        if operators.is_runtime(owner):
            raise errors.LanguageError("TK103", f"{describe(owner)} has no attributes to set")
        if owner is self.kernel and self.builder.depth > 0 and hasattr(owner, name):
            raise errors.LanguageError(
                "TK114", f"self.{name} cannot be rebound under run-time control flow", help="use a local name for it"
            )
        if isinstance(value, RegisterTensor) and self._references(value):
            value = self.copy_of(value)
        self._host(setattr, owner, name, self.snapshot(value))

    def bind(self, name: str, value: Any, *, declare: bool = False) -> None:
        """`name = value`."""
        frame = self.frame
        if name in frame.owned and name in frame.names:
            self._write(name, frame.names[name], value)
            return
        if isinstance(value, dtypes.Literal):
            value = scalar.as_expr(value)
        if isinstance(value, Expr):
            dtype = scalar.dtype_of(value)
            if isinstance(dtype, DataType) and (declare or not scalar.is_constant(value)):
                value = self.builder.declare(name, value)
        elif isinstance(value, RegisterTensor):
            if self._references(value):
                value = self.copy_of(value)
            self.builder.names.setdefault(value, name)
        elif isinstance(value, Tensor):
            self.builder.names.setdefault(value, name)
        frame.names[name] = value

    def _references(self, tensor: RegisterTensor) -> int:
        held = sum(frame.references(tensor) for frame in self.frames)
        return held + sum(value is tensor for value in vars(self.kernel).values())

    def _write(self, name: str, storage: Any, value: Any) -> None:
        """Rebind a name that owns storage: write the storage."""
        if value is storage:
            return
        if isinstance(storage, Var) and operators.is_number(value):
            new = scalar.as_expr(value)
            wanted, given = scalar.dtype_of(storage), scalar.dtype_of(new)
            if wanted is not given and not isinstance(value, Expr):
                new = scalar.cast(new, wanted)
            elif wanted is not given:
                raise errors.LanguageError(
                    "TK114",
                    f"{name} is {wanted} before this loop or branch and would become {given}",
                    help=f"write {wanted}(…), or declare it before: {name}: {given} = …",
                )
            self.builder.assign(storage, new)
            return
        if isinstance(storage, RegisterTensor) and isinstance(value, RegisterTensor):
            if (storage.dtype, storage.shape) != (value.dtype, value.shape):
                raise errors.LanguageError(
                    "TK114",
                    f"{name} is {describe(storage)} before this loop or branch and would become {describe(value)}",
                    help="use another name for the new tile",
                )
            if self._references(storage) > 1:
                raise errors.LanguageError(
                    "TK114",
                    f"{name} is rebound here while another value still holds its tile",
                    help="copy it with self.assign",
                )
            if self._references(value) or not self.builder.redirect(value, storage):
                self.builder.emit(AssignInst.create(storage, value))
            return
        if not operators.is_runtime(storage) and not operators.is_runtime(value) and storage == value:
            return
        raise errors.LanguageError(
            "TK114", f"{name} cannot change from {describe(storage)} to {describe(value)} under run-time control flow"
        )

    def own(self, name: str) -> None:
        """Give a name that is about to be rebound under run-time control flow storage of its own."""
        frame = self.frame
        value = frame.names[name]
        if name in frame.owned or isinstance(value, Unavailable):
            return
        if isinstance(value, (bool, int, float, dtypes.Literal)) or (isinstance(value, Expr)):
            if not isinstance(scalar.dtype_of(scalar.as_expr(value)), DataType):
                return
            variable = self.builder.declare(name, scalar.as_expr(value))
            self.builder.values.pop(variable)
            frame.names[name] = variable
        elif isinstance(value, RegisterTensor) and self._references(value) > 1:
            frame.names[name] = copy = self.copy_of(value)
            self.builder.names.setdefault(copy, name)

    # ----------------------------------------------------------------------------------------------- control flow

    def exec_If(self, node: ast.If) -> None:
        condition = operators.truth(self.evaluate(node.test))
        if isinstance(condition, bool):
            self.body(node.body if condition else node.orelse)
            return
        frame = self.frame
        touched = _assigned(node.body) | _assigned(node.orelse)
        existing = {name for name in touched if name in frame.names and not isinstance(frame.names[name], Unavailable)}
        for name in sorted(existing):
            self.own(name)
        with frame.owning(existing):
            before = dict(frame.names)
            then_body, then_names, then_ends = self._branch(node.body, before)
            else_body, else_names, else_ends = self._branch(node.orelse, before)
        frame.names = before
        for name in sorted(touched - existing):
            self._join(name, (then_body, then_names, then_ends), (else_body, else_names, else_ends))
        self.builder.append(
            IfStmt(
                condition,
                SeqStmt.create(then_body),
                SeqStmt.create(else_body) if else_body else None,
                span=self.builder.span,
            )
        )

    def _branch(self, nodes: list[ast.stmt], before: dict[str, Any]) -> tuple[list[Stmt], dict[str, Any], bool]:
        """One side of a run-time if: its statements, its names, and whether it never reaches the end."""
        self.frame.names = dict(before)
        with self.builder.block() as statements:
            self.body(nodes)
        ends = bool(statements) and isinstance(statements[-1], (BreakStmt, ReturnStmt))
        return statements, self.frame.names, ends

    def _join(self, name: str, *sides: tuple[list[Stmt], dict[str, Any], bool]) -> None:
        """Give `name`, first bound inside the branches, one storage if every branch that goes on binds it."""
        missing = Unavailable("is only bound on some paths through an if: bind it before the if, or on every path")
        going_on = [side for side in sides if not side[2]]
        values = [names.get(name, missing) for _, names, _ in going_on]
        if not going_on or any(isinstance(value, Unavailable) for value in values):
            self.frame.names[name] = missing
            return
        if all(value is values[0] for value in values) or not any(map(operators.is_runtime, values)):
            same = len(values) == 1 or all(value is values[0] or value == values[0] for value in values)
            if same and not isinstance(values[0], RegisterTensor):
                self.frame.names[name] = (
                    values[0] if not isinstance(values[0], Var) else self._merge(name, going_on, values)
                )
                return
        self.frame.names[name] = self._merge(name, going_on, values)

    def _merge(self, name: str, sides: list[tuple[list[Stmt], dict[str, Any], bool]], values: list[Any]) -> Any:
        first = next(value for value in values if operators.is_runtime(value) or value is values[0])
        storage: Any
        if isinstance(first, RegisterTensor):
            storage = RegisterTensor.create(first.dtype, first.shape)
            self.builder.emit(AllocateRegisterInst.create(storage))
            self.builder.names.setdefault(storage, name)
        elif operators.is_number(first):
            kind = scalar.dtype_of(scalar.as_expr(first))
            if not isinstance(kind, DataType):
                return Unavailable("is bound to different pointers on the paths through an if")
            storage = self.builder.declare(name, scalar.constant(kind, 0))
            self.builder.values.pop(storage)
        else:
            return Unavailable(
                f"is bound to {describe(first)} on one path through an if, and to another value on the other"
            )
        for (statements, _, _), value in zip(sides, values, strict=True):
            with self.builder.block() as tail:
                self._write(name, storage, value)
            statements.extend(tail)
        return storage

    def exec_For(self, node: ast.For) -> None:
        items = self.evaluate(node.iter)
        if isinstance(items, range):
            items = methods.LoopRange(items.start, items.stop, items.step)
        if not isinstance(items, methods.LoopRange):
            self._unrolled(node, self.host_items(items))
            return
        if not isinstance(node.target, ast.Name):
            raise errors.LanguageError("TK103", "a run-time loop has one name for its counter")
        if node.orelse and _has_break(node.body):
            raise errors.LanguageError("TK103", "else after a run-time loop with break is not available")
        self._counted(node, node.target.id, items)
        self.body(node.orelse)

    def _unrolled(self, node: ast.For, items: list[Any]) -> None:
        """A loop over host values, executed now, item by item."""
        self._loops.append(False)
        try:
            for item in items:
                self.unpack(node.target, item)
                self.body(node.body)
            else:
                self._loops.pop()
                self.body(node.orelse)
                self._loops.append(False)
        except _HostBreak:
            pass
        finally:
            self._loops.pop()

    def _counted(self, node: ast.For, name: str, items: methods.LoopRange) -> None:
        start, stop, step = items.start, items.stop, items.step
        if isinstance(step, dtypes.Literal):
            step = int(step)
        if isinstance(step, Expr):
            step = scalar.constant_value(step)
        if not isinstance(step, int) or isinstance(step, bool):
            raise errors.LanguageError("TK106", "the step of a loop must be known at compile time")
        if step == 0:
            raise errors.LanguageError("TK104", "the step of a loop cannot be 0")
        add = lambda a, b: operators.binary(ast.Add(), a, b, self.kernel)  # noqa: E731 - three words, used below alone
        distance = (
            operators.binary(ast.Sub(), stop, start, self.kernel) if start != 0 or isinstance(start, Expr) else stop
        )
        if step < 0:
            distance = operators.unary(ast.USub(), distance, self.kernel)
        if abs(step) != 1:
            distance = operators.binary(ast.FloorDiv(), add(distance, abs(step) - 1), abs(step), self.kernel)
        extent = scalar.as_expr(distance)
        plain = step == 1 and not isinstance(start, Expr) and start == 0
        dtype = scalar.dtype_of(extent)
        counter = scalar.var(name if plain else f"{name}_count", dtype)
        touched = _assigned(node.body) - {name}
        with self._region(touched, loop=True) as statements:
            if plain:
                self.frame.names[name] = counter
            else:
                product = operators.binary(ast.Mult(), counter, step, self.kernel) if step != 1 else counter
                self.frame.names[name] = self.builder.declare(name, scalar.as_expr(add(start, product)))
            self.body(node.body)
        unroll = {None: None, "all": -1}.get(items.unroll, items.unroll)  # type: ignore[arg-type]
        self.builder.append(
            ForStmt(counter, extent, SeqStmt.create(statements), cast("int | None", unroll), span=self.builder.span)
        )
        self.frame.names[name] = Unavailable("exists only inside its loop")

    def exec_While(self, node: ast.While) -> None:
        if node.orelse:
            raise errors.LanguageError("TK103", "else after while is not available")
        touched = _assigned(node.body) | _assigned([ast.Expr(node.test)])
        true = scalar.constant(dtypes.boolean, True)
        with self._region(touched, loop=True) as statements:
            condition = operators.truth(self.evaluate(node.test))
            guarded = bool(statements)
            if condition is False:
                return
            if guarded and isinstance(condition, Expr):
                leave = SeqStmt.create([BreakStmt(span=self.builder.span)])
                self.builder.append(IfStmt(scalar.logical_not(condition), leave, span=self.builder.span))
            self.body(node.body)
        test = true if guarded or condition is True else condition
        self.builder.append(WhileStmt(test, SeqStmt.create(statements), span=self.builder.span))

    def _region(self, touched: set[str], *, loop: bool) -> Any:
        return _Region(self, touched, loop)

    def exec_Break(self, node: ast.Break) -> None:
        if self._loops and not self._loops[-1]:
            raise _HostBreak
        self.builder.append(BreakStmt(span=self.builder.span))

    def exec_Return(self, node: ast.Return) -> None:
        value = None if node.value is None else self.evaluate(node.value)
        if len(self.frames) > 1:
            raise _Returned(value)
        if value is not None:
            raise errors.LanguageError(
                "TK112", "a kernel returns nothing", help="store the result in a tensor that the caller gave"
            )
        if self.builder.depth == 0:
            raise _Returned(None)
        self.builder.append(ReturnStmt(span=self.builder.span))

    def exec_Assert(self, node: ast.Assert) -> None:
        condition = operators.truth(self.evaluate(node.test))
        if not isinstance(condition, bool):
            raise errors.LanguageError("TK103", "assert works on what is known at compile time only")
        if not condition:
            message = "" if node.msg is None else f": {self.evaluate(node.msg)}"
            raise errors.LanguageError("TK110", f"assertion failed{message}")


class _Region:
    """The body of a run-time loop: names from outside that it rebinds own storage, names of its own end with it."""

    def __init__(self, statements: Statements, touched: set[str], loop: bool) -> None:
        self.statements = statements
        self.loop = loop
        names = statements.frame.names
        self.existing = {n for n in touched if n in names and not isinstance(names[n], Unavailable)}
        self.fresh = touched - self.existing

    def __enter__(self) -> list[Stmt]:
        for name in sorted(self.existing):
            self.statements.own(name)
        self.owning = self.statements.frame.owning(self.existing)
        self.block = self.statements.builder.block()
        self.statements._loops.append(self.loop)
        self.owning.__enter__()
        return self.block.__enter__()

    def __exit__(self, *problem: Any) -> None:
        self.block.__exit__(*problem)
        self.owning.__exit__(*problem)
        self.statements._loops.pop()
        for name in self.fresh:
            self.statements.frame.names[name] = Unavailable("is first bound inside a loop that may run no iteration")


def _as_load(target: ast.expr) -> ast.expr:
    match target:
        case ast.Name(id=name):
            return ast.Name(name, ast.Load())
        case ast.Attribute(value=owner, attr=attr):
            return ast.Attribute(owner, attr, ast.Load())
        case ast.Subscript(value=owner, slice=index):
            return ast.Subscript(owner, index, ast.Load())
        case _:
            raise unsupported(target)


def _assigned(nodes: list[ast.stmt]) -> set[str]:
    """The names that these statements bind, at any depth."""
    found: set[str] = set()
    for node in nodes:
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                found.add(part.id)
    return found


def _has_break(nodes: list[ast.stmt]) -> bool:
    for node in nodes:
        if isinstance(node, ast.Break):
            return True
        if isinstance(node, ast.If) and (_has_break(node.body) or _has_break(node.orelse)):
            return True
    return False
