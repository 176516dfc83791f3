# SPDX-License-Identifier: Apache-2.0
"""What a name is bound to, by Python's rule: rebinding a name never changes what another name sees.

In straight-line code a name is bound to the new value. A name that a run-time loop or branch rebinds owns storage there
and rebinding writes it, because afterwards nobody knows at compile time how often that happened. A second name for a
tile gets its own copy, which a later pass removes unless one of the two is written.

A tile is written in place by `+=`, by `x[i] = …`, by `out=` and by `assign`. A parameter of a helper method is the
caller's tile, so the caller sees that too. Memory is different: names and parts of it show the same elements.

An attribute of an object is a variable of the running kernel if its first assignment names a type. Any other one exists
while the kernel is compiled, so run-time control flow cannot set it; what it can do is write its tile in place.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeAlias, cast

from tilekit import dtypes
from tilekit.diag import errors
from tilekit.dtypes import DataType
from tilekit.ir.instructions.register import AllocateRegisterInst, AssignInst
from tilekit.ir.stmt import Stmt
from tilekit.ir.surface import describe
from tilekit.ir.tensor import RegisterTensor, SharedTensor, Tensor
from tilekit.lang import handover, objects, values
from tilekit.lang.builder import Builder
from tilekit.lang.frame import Frame, Unavailable
from tilekit.lang.methods import KernelMethods, LoopRange
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Expr, Var

# makes the error for two values that cannot be one
Mismatch: TypeAlias = "Callable[[Any, Any], errors.LanguageError]"


class Bindings:
    """Binds the names of every open call, and writes the storage of those that own some."""

    def __init__(self, kernel: KernelMethods, builder: Builder) -> None:
        self.kernel = kernel
        self.builder = builder
        self.frames: list[Frame] = []
        # the attributes that are variables of the running kernel: whoever assigns to one writes its variable
        self.variables: set[Var] = set()
        # the block of statements that each object of a `Class` was made in
        self._homes: dict[int, tuple[KernelMethods, object]] = {}

    @property
    def frame(self) -> Frame:
        return self.frames[-1]

    # -------------------------------------------------------------------------------------------------- who holds it

    def references(self, tensor: Tensor) -> int:
        """How many names and attributes lead to `tensor`."""
        owners = objects.reachable(self.roots())
        attributes = sum(objects.count(value, tensor) for owner in owners for value in vars(owner).values())
        return attributes + sum(frame.references(tensor) for frame in self.frames)

    def roots(self) -> list[object]:
        """Everything that can be reached at this moment can be reached from one of these."""
        return [self.kernel, *(value for frame in self.frames for value in frame.names.values())]

    def belongs_to_caller(self, tensor: Tensor) -> bool:
        """Whether a tile was handed to the current call as an argument."""
        return self.references(tensor) > self.frame.activation.references(tensor)

    def copy_of(self, tensor: RegisterTensor) -> RegisterTensor:
        """A new tile with the present contents of `tensor`."""
        return self.builder.emit(AssignInst.create(RegisterTensor.create(tensor.dtype, tensor.shape), tensor))

    def separate(self) -> None:
        """Give attributes tiles of their own before run-time control flow, in which no attribute can get another one.

        A tile that names hold too was handed to a method: writing it there is meant for the attribute.
        """
        for owner in filter(self.may_set, objects.reachable(self.roots())):
            for name, tile in list(vars(owner).items()):
                if not isinstance(tile, RegisterTensor) or self.references(tile) == 1:
                    continue
                if not any(value is tile for frame in self.frames for value in frame.names.values()):
                    copy = self.copy_of(tile)
                    self.builder.names.setdefault(copy, name)
                    vars(owner)[name] = copy

    def detach(self, tile: RegisterTensor) -> bool:
        """Give names that hold an attribute's tile copies of it; whether the attribute alone holds it then.

        These are parameters of the methods that run here, in which nothing else depends on where the names lead.
        """
        holders = [(frame, name) for frame in self.frames for name, value in frame.names.items() if value is tile]
        is_straight = all(frame.depth == self.builder.depth for frame, _ in holders)
        if not is_straight or self.references(tile) != 1 + len(holders):
            return False
        for frame, name in holders:
            frame.names[name] = copy = self.copy_of(tile)
            self.builder.names.setdefault(copy, name)
        return True

    def snapshot(self, value: Any) -> Any:
        """The value as it is now: what a later statement may write in place is copied."""
        if isinstance(value, Expr) and any(map(self._is_owned, scalar.free_vars(value))):
            return self.builder.declare(scalar.name_hint(value) if isinstance(value, Var) else "t", value)
        if isinstance(value, RegisterTensor) and self._is_owned(value):
            return self.copy_of(value)
        if isinstance(value, LoopRange):
            parts = {name: self.snapshot(getattr(value, name)) for name in ("start", "stop", "step")}
            return dataclasses.replace(value, **parts)
        return value

    def _is_owned(self, storage: Any) -> bool:
        if isinstance(storage, Var) and storage in self.variables:
            return True
        if isinstance(storage, RegisterTensor) and any(
            storage in _tiles(owner) for owner in objects.reachable(self.roots()) if not self.may_set(owner)
        ):
            return True
        return any(frame.names.get(name) is storage for frame in self.frames for name in frame.owned)

    def settled(self, value: Any) -> Any:
        """What a method returns: attributes in it may be assigned to before the caller has looked at it."""
        if isinstance(value, tuple):
            return tuple(map(self.settled, cast("tuple[Any, ...]", value)))
        if isinstance(value, Expr) and any(v in self.variables for v in scalar.free_vars(value)):
            return self.snapshot(value)
        return value

    # ---------------------------------------------------------------------------------------------------- attributes

    def made_in(self, made: KernelMethods) -> None:
        """Remember that an object is made here."""
        self._homes[id(made)] = made, self.builder.innermost

    def may_set(self, owner: object) -> bool:
        """Whether what is set on `owner` while compiling happens exactly once when the kernel runs."""
        _, home = self._homes.get(id(owner), (owner, None))
        return self.builder.depth == 0 if home is None else home is self.builder.innermost

    def variable(self, owner: object, name: str) -> Var | None:
        """The run-time variable that an attribute is, if it is one."""
        found = vars(owner).get(name) if isinstance(owner, KernelMethods) else None
        return found if isinstance(found, Var) and found in self.variables else None

    def declare(self, owner: object, name: str, value: Expr) -> None:
        """Make an attribute a variable with this first value."""
        variable = self.builder.declare(name, value, mutable=True)
        self.variables.add(variable)
        vars(owner)[name] = variable

    def assign(self, variable: Var, value: Any, name: str) -> None:
        """`owner.name = value` for an attribute that is a variable."""
        typed = values.annotated(value, scalar.dtype_of(variable), name)
        if typed is not variable:
            self.builder.assign(variable, typed)

    # ------------------------------------------------------------------------------------------------------- binding

    def bind(self, name: str, value: Any, *, since: int | None = None, frame: Frame | None = None) -> None:
        """`name = value`; with `since`, statements from that number on made the value, and for this name alone."""
        frame = frame or self.frame
        value = handover.unwrap(value)
        kind = frame.declared.get(name)
        if kind is not None and values.is_number(value):
            value = values.annotated(value, kind, name)
        if name in frame.owned and name in frame.names:
            self._write_owned(name, frame.names[name], value, since)
            return
        frame.names[name] = self.named(name, value)

    def named(self, name: str, value: Any) -> Any:
        """The value as a new name sees it: a variable for an expression, a copy of a tile that has a name already."""
        if isinstance(value, dtypes.Literal):
            value = scalar.as_expr(value)
        if isinstance(value, RegisterTensor) and self.references(value):
            value = self.copy_of(value)
        if isinstance(value, Tensor):
            self.builder.names.setdefault(value, name)
        if isinstance(value, Expr) and isinstance(scalar.dtype_of(value), DataType):
            return value if scalar.is_constant(value) else self.builder.declare(name, value)
        return self.snapshot(value)

    def parameter(self, name: str, annotation: Any, value: Any) -> Any:
        """What a helper's parameter is bound to: scalars by value, tiles by reference, host values as they are."""
        typed = values.annotated(value, annotation, name)
        if isinstance(typed, Expr) and not isinstance(typed, Var):
            return self.named(name, typed)
        return typed if isinstance(typed, Tensor) else self.snapshot(typed)

    # ----------------------------------------------------------------------------------------------- names with storage

    def own(self, name: str, *, rebound: bool, updated: bool) -> bool:
        """Give a name that run-time control flow writes storage of its own; whether it has some now.

        `rebound` by plain assignment, `updated` by augmented assignment, which writes a tile in place anyway.
        """
        frame = self.frame
        value = frame.names[name]
        if isinstance(kind := frame.declared.get(name), type):
            raise errors.LanguageError(
                "TK114",
                f"{name} is a compile-time {kind.__name__}, and run-time control flow cannot change it",
                help=f"declare it as a run-time type, for example {name}: int32",
            )
        if values.is_number(value):
            frame.names[name] = self.builder.declare(name, scalar.as_expr(value), mutable=True)
        elif isinstance(value, RegisterTensor):
            return self._own_tile(name, value, rebound, updated)
        return True

    def _own_tile(self, name: str, tile: RegisterTensor, rebound: bool, updated: bool) -> bool:
        if self.references(tile) == 1:
            return True
        if updated and self.belongs_to_caller(tile):
            if not rebound:
                return False
            raise errors.LanguageError(
                "TK114",
                f"{name} is the caller's tile, and run-time control flow both writes it in place and rebinds it",
                help="use another name for the new tile",
            )
        self.frame.names[name] = copy = self.copy_of(tile)
        self.builder.names.setdefault(copy, name)
        return True

    def _write_owned(self, name: str, storage: Any, value: Any, since: int | None) -> None:
        before, after = describe(storage), describe(value)
        after = "another one" if before == after else after

        def complaint() -> errors.LanguageError:
            return errors.LanguageError(
                "TK114",
                f"{name} is {before} before this loop or branch and would become {after} in it",
                help=_advice(name, storage, value),
            )

        self._write(storage, value, since, complaint)

    def _write(
        self, storage: Any, value: Any, since: int | None, complaint: Callable[[], errors.LanguageError]
    ) -> None:
        """Let `storage` hold `value`."""
        if values.same(storage, value):
            return
        if isinstance(storage, Var) and values.is_number(value):
            self.builder.assign(storage, _as_type_of(storage, value, complaint))
            return
        if not isinstance(storage, RegisterTensor) or not isinstance(value, RegisterTensor):
            raise complaint()
        if (storage.dtype, storage.shape) != (value.dtype, value.shape):
            raise complaint()
        if since is None or self.references(value) or not self.builder.redirect(value, storage, since):
            self.builder.emit(AssignInst.create(storage, value))

    # ------------------------------------------------------------------------------------------------------- joining

    def merged(self, name: str, sides: list[tuple[list[Stmt], Any]], mismatch: Mismatch) -> Any:
        """One value for `name` after a run-time choice: each side's statements, and what they leave in it."""
        values_of = [value for _, value in sides]
        first = values_of[0]
        if not any(map(values.is_runtime, values_of)) and all(values.same(first, value) for value in values_of):
            return first
        storage = self._storage_for(name, values_of)
        if isinstance(storage, Unavailable):
            return storage

        for (statements, _), value in zip(sides, values_of, strict=True):

            def complaint(value: Any = value) -> errors.LanguageError:
                return mismatch(first, value)

            with self.builder.block(statements):
                self._write(storage, value, 0, complaint)
        return storage

    def _storage_for(self, name: str, candidates: list[Any]) -> Any:
        """Storage without a value for one of these, declared here."""
        model = next((value for value in candidates if values.is_runtime(value)), candidates[0])
        if isinstance(model, RegisterTensor):
            storage = RegisterTensor.create(model.dtype, model.shape)
            self.builder.names.setdefault(storage, name)
            return self.builder.emit(AllocateRegisterInst.create(storage))
        if values.is_number(model):
            kind = scalar.dtype_of(scalar.as_expr(model))
            if not values.is_runtime(model) and any(isinstance(value, float) for value in candidates):
                kind = dtypes.float32
            return self.builder.reserve(name, kind)
        return Unavailable(f"is {describe(model)} on one path through an if, and another value on the other")


def _tiles(owner: KernelMethods) -> list[RegisterTensor]:
    """The tiles that an object holds directly, which are what its attributes assign to under control flow."""
    return [value for value in vars(owner).values() if isinstance(value, RegisterTensor)]


def _as_type_of(
    storage: Var, value: bool | int | float | Expr | dtypes.Literal, complaint: Callable[[], errors.LanguageError]
) -> Expr:
    """`value` for a variable: a Python number takes its type, an expression must have it."""
    wanted = scalar.dtype_of(storage)
    if isinstance(value, Expr):
        if scalar.dtype_of(value) != wanted:
            raise complaint()
        return value
    if not isinstance(wanted, DataType) or not (values.is_exact(value, wanted) or isinstance(value, bool)):
        raise complaint()
    return scalar.cast(scalar.as_expr(value), wanted)


def _advice(name: str, storage: Any, value: Any) -> str | None:
    if isinstance(value, Expr) and isinstance(storage, Expr):
        wanted, given = scalar.dtype_of(storage), scalar.dtype_of(value)
        return f"write {wanted}(…), or declare it before: {name}: {given} = …"
    if isinstance(storage, SharedTensor) and isinstance(value, SharedTensor):
        return "make one tensor of the two, with one more dimension, and change the index: s[stage]"
    if isinstance(value, float) and isinstance(storage, Expr):
        return f"declare it before: {name}: float32 = …"
    return "use another name for the new value"
