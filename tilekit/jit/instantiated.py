# SPDX-License-Identifier: Apache-2.0
"""The handle of a kernel: one script class with its arguments; calling it compiles what is needed and launches."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from tilekit import config, target
from tilekit.diag import errors
from tilekit.diag.errors import TilekitError
from tilekit.diag.sources import Sources
from tilekit.jit import arguments, callsite, script_key, session
from tilekit.jit.dispatch import Dispatch
from tilekit.jit.instance import JitInstance, Machine
from tilekit.lang import autotune, source
from tilekit.lang.params import CallParameters
from tilekit.runtime.launch import CheckStats
from tilekit.runtime.tensors import Device, DeviceKind
from tilekit.target import Target

if TYPE_CHECKING:
    from tilekit.jit.explained import Explanation
    from tilekit.jit.kernel import Kernel
    from tilekit.jit.watched import Watched

_lock = threading.RLock()


class InstantiatedScript:
    """One per script class and arguments.

    Calling it checks the arguments, compiles for their kinds if that was not done yet, and launches where the tensors
    live. `kernels` are all that it compiled, newest last; `last` is the one that ran last.
    """

    def __init__(self, script_cls: type, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self.script_cls = script_cls
        self.script_name = script_cls.__name__
        self.sources = Sources()
        call = script_cls.__call__
        if getattr(call, "__qualname__", "") == "Script.__call__":
            raise errors.LanguageError(
                "TK107", f"{self.script_name} has no __call__ method", help="__call__ is the kernel: write it"
            )
        try:
            read = source.read(call)
            self.sources.register(read.name, read.code)
            self.parameters = CallParameters.of(call)
            self.space: Mapping[tuple[str, ...], tuple[Any, ...]] = getattr(script_cls, "_autotune_space", {})
            self.schedules = autotune.schedules(script_cls, args, kwargs)
        except TilekitError as error:
            raise error.with_sources(self.sources) from None
        self.jit_instances: dict[arguments.JitKey, JitInstance] = {}
        self.last: Kernel | None = None
        self._dispatch = Dispatch(self.parameters)
        self._target: Target | None = session.chosen_target()

    @staticmethod
    def of(script_cls: type, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> InstantiatedScript:
        """The handle for these arguments: always the same one."""
        key = (script_key.normalize(args), script_key.normalize(kwargs))
        with _lock:
            handles = script_cls.__dict__.get("_handles")
            if handles is None:
                handles = script_cls._handles = {}  # type: ignore[attr-defined]
            if key not in handles:
                handles[key] = InstantiatedScript(script_cls, args, kwargs)
            elif (chosen := session.chosen_target()) is not None:
                handles[key].use_target(chosen)
            return handles[key]

    @property
    def params(self) -> CallParameters:
        return self.parameters

    @property
    def with_default(self) -> bool:
        return self.parameters.with_default

    @property
    def const_params(self) -> tuple[int, ...]:
        return self.parameters.const_params

    @property
    def kernel_params(self) -> tuple[int, ...]:
        return self.parameters.kernel_params

    @property
    def tuning_params(self) -> tuple[int, ...]:
        return self.parameters.tuning_params

    @cached_property
    def __signature__(self) -> Any:
        return self.parameters.signature

    @property
    def kernels(self) -> list[Kernel]:
        """Every kernel compiled so far, newest last."""
        found = [kernel for instance in self.jit_instances.values() for kernel in instance.kernels]
        return sorted(found, key=lambda kernel: kernel.number)

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        try:
            if not kwargs and (found := self._dispatch.launch(args)) is not None:
                self.last = found
                return
            call = self._checked(args, kwargs)
            instance = self._instance(call.key)
            kernel = instance.kernel(self._machine(call.device))
            arguments.check_contiguous(self.script_name, call.facts, kernel.strided)
            self.last = kernel
            kernel.launch(call.launch)
            if not kwargs:
                self._dispatch.learn(args, kernel)
        except TilekitError as error:
            # the user's call is what matters; our frames below it are not
            placed = callsite.place(error, self.script_name, sys._getframe(1))
            raise placed.with_sources(self.sources).with_traceback(None) from None
        except KeyboardInterrupt as stop:
            raise stop.with_traceback(None) from None

    def check(self, *args: Any, blocks: Literal["all"] | int = "all", seed: int = 0, **kwargs: Any) -> CheckStats:
        """Run the kernel for these arguments in the CPU simulator's check mode; no tensor changes.

        It looks for races, copies that nobody waited for, reads of what was never written, and accesses outside of
        tensors, on a machine with a GPU as well: tensors there are copied.

        Parameters
        ----------
        args, kwargs
            As in a call; none means those of the last call.
        blocks
            How many blocks of the grid to run, the corners first; "all" for every one.
        seed
            Draws the order of threads and blocks; 0 is their natural order.

        Returns
        -------
        CheckStats
            What was checked; its text is one sentence.

        Raises
        ------
        KernelError
            The first thing that is wrong, with `data`: kind, tensor, index, first, second, hint.
        """
        if not args and not kwargs and self.kernel_params:
            return self._last("last call").check(blocks=blocks, seed=seed)
        try:
            values = arguments.bind(self.script_name, self.parameters, args, kwargs)
            here = [value.cpu() if getattr(value, "is_cuda", False) else value for value in values]
            call = arguments.check(self.script_name, self.parameters, here)
            kernel = self._instance(call.key).kernel(self._machine(Device(DeviceKind.CPU)))
            arguments.check_contiguous(self.script_name, call.facts, kernel.strided)
            self.last = kernel
            return kernel.check(*call.launch, blocks=blocks, seed=seed)
        except TilekitError as error:
            placed = callsite.place(error, self.script_name, sys._getframe(1))
            raise placed.with_sources(self.sources).with_traceback(None) from None

    def watch(
        self,
        name: str,
        *,
        block: int | Sequence[int] = (0, 0, 0),
        line: int | None = None,
        step: int | None = None,
        args: Sequence[Any] | None = None,
    ) -> Watched:
        """The value of a tensor or a scalar of the kernel at a place, computed in the NumPy evaluator.

        As `Kernel.watch`, of the kernel that ran last; with `args`, of the one for these arguments of a call.

        Examples
        --------
        >>> import numpy as np
        >>> import tilekit
        >>> from tilekit import float32
        >>> class Double(tilekit.Script):
        ...     def __call__(self, x_ptr: ~float32):
        ...         self.attrs.blocks = [2]
        ...         self.attrs.warps = 1
        ...         g = self.global_view(x_ptr, dtype=float32, shape=[64])
        ...         x = self.load_global(g, offsets=[self.blockIdx.x * 32], shape=[32])
        ...         self.store_global(g, x * 2.0, offsets=[self.blockIdx.x * 32])
        >>> double, x = Double(), np.arange(64, dtype=np.float32)
        >>> double(x)
        >>> double.watch("x", block=1).array[:3]  # the launch has doubled them
        array([64., 66., 68.], dtype=float32)
        """
        try:
            if args is None:
                return self._last("last call").watch(name, block=block, line=line, step=step)
            call = self._checked(args, {})
            self.last = self._instance(call.key).kernel(self._machine(call.device))
            return self.last.watch(name, block=block, line=line, step=step, args=call.launch)
        except TilekitError as error:
            placed = callsite.place(error, self.script_name, sys._getframe(1))
            raise placed.with_sources(self.sources).with_traceback(None) from None

    def compile(
        self, *args: Any, target: str | Target | None = None, device: str | None = None, **kwargs: Any
    ) -> JitInstance:
        """Compile for these arguments without launching; needs no data and no GPU.

        Parameters
        ----------
        args, kwargs
            As in a call; instead of a tensor also `tilekit.spec(dtype, shape)` or a torch meta tensor.
        target
            The instruction set, such as "sm_90a"; by default that of the GPU, or sm_90a without one.
        device
            "cuda" or "cpu", what to compile the source for; by default where the tensors live, else "cuda".
        """
        try:
            values = arguments.bind(self.script_name, self.parameters, args, kwargs)
            call = arguments.check(self.script_name, self.parameters, values, allow_specs=True)
            where = call.device if device is None else Device(DeviceKind(device))
            instance = self._instance(call.key)
            machine = self._machine(where or Device(DeviceKind.CUDA), _target(target))
            self.last = instance.kernel(machine)
            return instance
        except TilekitError as error:
            placed = callsite.place(error, self.script_name, sys._getframe(1))
            raise placed.with_sources(self.sources).with_traceback(None) from None

    def explain(
        self, *args: Any, target: str | Target | None = None, device: str | None = None, **kwargs: Any
    ) -> Explanation:
        """Say whether a new process would find the kernel for these arguments, and if not, which input has changed.

        Parameters
        ----------
        args, kwargs, target, device
            As for `compile`.
        """
        values = arguments.bind(self.script_name, self.parameters, args, kwargs)
        call = arguments.check(self.script_name, self.parameters, values, allow_specs=True)
        where = call.device if device is None else Device(DeviceKind(device))
        machine = self._machine(where or Device(DeviceKind.CUDA), _target(target))
        # an explanation is for people: nobody waits for this module at a launch
        return importlib.import_module("tilekit.jit.explained").explain(self._instance(call.key), machine)

    def require_program(self) -> None:
        """Raise what is wrong with the kernel as far as that needs no arguments; nothing is compiled.

        A kernel whose arguments are all passed at launch is checked whole, one with compile-time arguments as far as
        its signature and its schedules.
        """
        if self.parameters.const_params:
            return
        try:
            plain = arguments.JitKey((), (1,) * len(self.parameters.kernel_params))
            self._instance(plain).require_program(config.resolve())
        except TilekitError as error:
            raise error.with_sources(self.sources).with_traceback(None) from None

    def _jit_instance_for(self, *args: Any, **kwargs: Any) -> JitInstance:
        """The specialization for these arguments; nothing is compiled yet."""
        values = arguments.bind(self.script_name, self.parameters, args, kwargs)
        return self._instance(arguments.check(self.script_name, self.parameters, values, allow_specs=True).key)

    def use_target(self, name: str | Target | None) -> None:
        """Compile for this target from now on; None gives the choice back to the device."""
        self._target = _target(name)
        self._dispatch.forget()

    def _checked(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> arguments.Call:
        values = arguments.bind(self.script_name, self.parameters, args, kwargs)
        return arguments.check(self.script_name, self.parameters, values)

    def _instance(self, key: arguments.JitKey) -> JitInstance:
        with _lock:
            if key not in self.jit_instances:
                self.jit_instances[key] = JitInstance(
                    self.script_cls, self.parameters, self.schedules, key, self.sources
                )
            return self.jit_instances[key]

    def _machine(self, device: Device | None, chosen: Target | None = None) -> Machine:
        device = device or Device(DeviceKind.CPU)
        named = chosen or session.chosen_target() or self._target
        return Machine(device, named or session.machine_target(device.index), config.resolve())

    # ---------------------------------------------------------------- what hangs on the kernel that ran last

    @property
    def source(self) -> str:
        """The generated CUDA C of the last kernel."""
        return self._last("source").source

    @property
    def trace(self) -> Any:
        """The passes of the last kernel, before and after."""
        return self._last("trace").trace

    @property
    def layouts(self) -> Any:
        """The layout of every tile of the last kernel, who chose it and why."""
        return self._last("layouts").layouts

    @property
    def printed(self) -> str:
        """Everything that the last launch or check of the last kernel printed."""
        return self._last("output").printed

    def _last(self, what: str) -> Kernel:
        if self.last is None:
            raise errors.ArgumentError(
                "TK631",
                f"{self.script_name} has not been compiled yet, so it has no {what}",
                help="call it, or compile it without data: handle.compile(…)",
            )
        return self.last

    def __repr__(self) -> str:
        count = len(self.schedules)
        plural = "schedule" if count == 1 else "schedules"
        if self.last is None:
            return f"{self.script_name}: {count} {plural}, compiles at its first call"
        return f"{self.script_name}: {count} {plural}, last {self.last}"


def _target(name: str | Target | None) -> Target | None:
    return target.parse(name) if isinstance(name, str) else name
