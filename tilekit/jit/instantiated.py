# SPDX-License-Identifier: Apache-2.0
"""The handle of a kernel: one script class with its arguments; calling it compiles what is needed and launches."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from functools import cached_property
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal

from tilekit import config, target
from tilekit.diag import errors
from tilekit.diag.errors import TilekitError
from tilekit.diag.sources import Sources
from tilekit.jit import arguments, callsite, observer, pipelines, script_key, session
from tilekit.jit.dispatch import Dispatch
from tilekit.jit.instance import JitInstance
from tilekit.jit.machine import Machine
from tilekit.lang import autotune, source
from tilekit.lang.params import CallParameters
from tilekit.runtime.launch import CheckStats
from tilekit.runtime.tensors import Device, DeviceKind
from tilekit.target import Target

if TYPE_CHECKING:
    from tilekit.jit.benched import Bench
    from tilekit.jit.bisected import Bisection
    from tilekit.jit.contestants import Peer, Subject
    from tilekit.jit.explained import Explanation
    from tilekit.jit.kernel import Kernel, LayoutRow
    from tilekit.jit.tuning.schedules import Schedules
    from tilekit.jit.tuning.table import HoldsFor, Table, Tuned
    from tilekit.jit.watched import Watched
    from tilekit.transforms.recorder import Recorder

_lock = threading.RLock()


def _of_last(name: str, doc: str, what: str = "source") -> Any:
    """A property of the kernel that ran last; `what` is named where there is no kernel yet."""
    return property(lambda handle: getattr(handle._last(what), name), doc=doc)


class InstantiatedScript:
    """One per script class and arguments.

    Calling it checks the arguments, compiles for their kinds if that was not done yet, and launches where the tensors
    live. `kernels` are all that it compiled, newest last; `last` is the one that ran last.
    """

    def __init__(self, script_cls: type, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self.script_cls = script_cls
        self.script_name = script_cls.__name__
        self._arguments = (args, kwargs)
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
            self._schedules = autotune.schedules(script_cls, args, kwargs)
        except TilekitError as error:
            raise error.with_sources(self.sources) from None
        self.jit_instances: dict[arguments.JitKey, JitInstance] = {}
        self.last: Kernel | None = None
        # which of several schedules runs depends on integers by their values
        self._dispatch = Dispatch(self.parameters, by_value=len(self._schedules) > 1)
        self._target: Target | None = session.chosen_target()

    @staticmethod
    def of(script_cls: type, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> InstantiatedScript:
        """The handle for these arguments: always the same one."""
        pinned: Mapping[str, Any] | None = getattr(script_cls, "debug_schedule", None)
        key = (script_key.normalize(args), script_key.normalize(kwargs), script_key.normalize(pinned))
        with _lock:
            handles = script_cls.__dict__.get("_handles")
            if handles is None:
                handles = script_cls._handles = {}  # type: ignore[attr-defined]
            if key not in handles:
                # the kernel is made later, and for what the key says
                handles[key] = InstantiatedScript(script_cls, script_key.snapshot(args), script_key.snapshot(kwargs))
            elif (chosen := session.chosen_target()) is not None:
                handles[key].use_target(chosen)
            return handles[key]

    def __reduce__(self) -> tuple[object, ...]:
        """A copy, also of what holds it, is the handle itself, and another process makes its own."""
        return InstantiatedScript.of, (self.script_cls, *self._arguments)

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
            if not kwargs:
                dispatch = self._dispatch
                found = dispatch.known.repeated.again(args) or dispatch.launch(args)
                if found is not None:
                    self.last = found
                    return
            found_under = self._dispatch.circumstances()
            call = self._checked(args, kwargs)
            observer.called(self, call.key, args, kwargs)
            kernel = self._taken(call)
            kernel.launch(call.launch)
            if not kwargs:
                self._dispatch.learn(args, kernel, found_under)
        except TilekitError as error:
            raise self._at_call(error, sys._getframe(1)) from None
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
        try:
            if not args and not kwargs and self.kernel_params:
                return self._last("last call").check(blocks=blocks, seed=seed)
            values = arguments.bind(self.script_name, self.parameters, args, kwargs)
            here = [value.cpu() if getattr(value, "is_cuda", False) else value for value in values]
            call = arguments.check(self.script_name, self.parameters, here)
            return self._taken(call, tunes=False).check(*call.launch, blocks=blocks, seed=seed)
        except TilekitError as error:
            raise self._at_call(error, sys._getframe(1)) from None
        except KeyboardInterrupt as stop:
            raise stop.with_traceback(None) from None

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
            self.last = self._kernel(call, tunes=False)
            return self.last.watch(name, block=block, line=line, step=step, args=call.launch)
        except TilekitError as error:
            raise self._at_call(error, sys._getframe(1)) from None

    def bisect(
        self,
        *args: Any,
        against: Callable[..., Any] | None = None,
        blocks: Literal["all"] | int = 64,
        seed: int = 0,
        **kwargs: Any,
    ) -> Bisection:
        """Find the first step of a compile whose program is wrong, on any machine.

        As `Kernel.bisect`, with the arguments of a call, and for a kernel that may not even compile; nothing is
        launched. None means the kernel and the arguments of the last call. What a person edited is judged wherever a
        call would run it: of the kernel itself, in a notebook, and in what is traced.

        Examples
        --------
        >>> import numpy as np
        >>> import tilekit
        >>> from tilekit import float32
        >>> from tilekit.ir.functors import IRRewriter
        >>> from tilekit.transforms import Pass, after
        >>> class Next(IRRewriter):
        ...     def visit_LoadGlobalInst(self, inst):
        ...         return inst.replace(offsets=tuple(offset + 1 for offset in inst.offsets))
        >>> class NextPass(Pass):
        ...     def process_function(self, func):
        ...         return Next().visit(func)
        >>> class Copy(tilekit.Script):
        ...     def __call__(self, x_ptr: ~float32, y_ptr: ~float32):
        ...         self.attrs.blocks = [2]
        ...         self.attrs.warps = 1
        ...         x = self.global_view(x_ptr, dtype=float32, shape=[64])
        ...         y = self.global_view(y_ptr, dtype=float32, shape=[64])
        ...         tile = self.load_global(x, offsets=[self.blockIdx.x * 32], shape=[32])
        ...         self.store_global(y, tile, offsets=[self.blockIdx.x * 32])
        >>> with tilekit.passes(after("copy_elimination", NextPass())):
        ...     found = Copy().bisect(tilekit.spec(float32, (64,)), tilekit.spec(float32, (64,)))
        >>> found.culprit
        'next'
        """
        try:
            if not args and not kwargs and self.kernel_params:
                return self._last("last call").bisect(against=against, blocks=blocks, seed=seed)
            call = self._checked(args, kwargs, allow_specs=True)
            instance, machine, last = self._instance(call.key), self._machine(call.device), self.last
            kernel = next((each for each in instance.built_for(machine) if each is last), None)
            refused: TilekitError | None = None
            if kernel is None and observer.may_edit(self.script_name):
                try:
                    kernel = self._kernel(call, tunes=False)
                except TilekitError as error:
                    refused = error
            if kernel is not None:
                return kernel.bisect(*call.launch, against=against, blocks=blocks, seed=seed)
            found, bisect = instance.first_program(), importlib.import_module("tilekit.jit.bisect")
            asked = {"against": against, "blocks": blocks, "seed": seed, "sources": self.sources}
            made = bisect.bisect(self.script_name, found.fresh(), bisect.route_of(machine), call.launch, **asked)
            if made.is_good and refused is not None:  # no step of the compiler is to blame, so an edit is
                raise refused
            return made
        except TilekitError as error:
            raise self._at_call(error, sys._getframe(1)) from None

    def tune(
        self,
        *args: Any,
        budget: float | str | None = None,
        executor: Executor | None = None,
        jobs: int | None = None,
        **kwargs: Any,
    ) -> Schedules:
        """Find the best schedule for calls like this one, and use it from now on; no tensor changes.

        All schedules are compiled side by side. On a GPU each is timed in a process of its own, on copies of the
        arguments, so that one which crashes or hangs costs a row of the table; on the CPU the simulator's counters
        rank them, which is an estimate and never counts for a GPU. The first call on a GPU does this by itself.

        Parameters
        ----------
        args, kwargs
            As in a call. What is found holds for these values of the integers that are passed at launch.
        budget
            Seconds, or text such as "5 min"; what is measured by then counts. An interrupt does the same.
        executor
            Who compiles in place of processes of our own: any `concurrent.futures.Executor`, such as
            `dask.distributed.Client(…).get_executor()`.
        jobs
            At most so many processes compile at a time; never more than the option `parallel_workers`.

        Returns
        -------
        Schedules
            Every candidate, the best one first where it is shown.

        Raises
        ------
        ArgumentError
            TK636 if copies of the arguments do not fit beside them.
        TilekitError
            That of the first schedule, if none compiles or runs.

        Examples
        --------
        >>> import numpy as np
        >>> import tilekit
        >>> from tilekit import float32
        >>> @tilekit.autotune("block", [32, 64])
        ... class Twice(tilekit.Script):
        ...     def __init__(self, block: int):
        ...         super().__init__()
        ...         self.block = block
        ...     def __call__(self, x_ptr: ~float32):
        ...         self.attrs.blocks = [64 // self.block]
        ...         self.attrs.warps = 1
        ...         g = self.global_view(x_ptr, dtype=float32, shape=[64])
        ...         at = self.blockIdx.x * self.block
        ...         self.store_global(g, self.load_global(g, offsets=[at], shape=[self.block]) * 2.0, offsets=[at])
        >>> twice = Twice()
        >>> twice.tune(np.zeros(64, dtype=np.float32)).best.schedule
        {'block': 32}
        """
        try:
            call = self._checked(args, kwargs)
            session = importlib.import_module("tilekit.jit.tuning.session")
            seconds = None if budget is None else session.seconds_of(budget)
            instance, machine = self._instance(call.key), self._machine(call.device)
            if not all(found.contiguous for found in call.facts.values()):
                arguments.check_contiguous(self.script_name, call.facts, instance.strided(machine.config))
            try:
                return session.tune(
                    instance.space(machine), self._tuning_key(call), call.launch,
                    budget=seconds, jobs=jobs, executor=executor,
                )  # fmt: skip
            finally:  # also of a tuning that was interrupted, the best so far counts
                self._choose_again()
        except TilekitError as error:
            raise self._at_call(error, sys._getframe(1)) from None

    @cached_property
    def tuned(self) -> Tuned:
        """What tuning has found: `export(path)` and `load(path)` pass it on."""
        made = importlib.import_module("tilekit.jit.tuning.table").Tuned
        return made(self.script_name, self._tables, self._holds_for, self._choose_again)

    def _tables(self) -> list[Table]:
        return importlib.import_module("tilekit.jit.tuning.choice").tables_of(list(self.jit_instances.values()))

    def _holds_for(self, there: HoldsFor) -> HoldsFor | None:
        table = importlib.import_module("tilekit.jit.tuning.table")
        try:
            where = Device(DeviceKind(there.get("device")))
            return table.holds_for(self._machine(where, target.parse(there.get("target", ""))))
        except (TilekitError, ValueError, LookupError):
            return None

    @property
    def schedules(self) -> Schedules:
        """Every schedule of the script's space: a list of them, which shows what is known of each."""
        known = None if self.last is None else self.last.schedules
        if known is not None:
            return known
        return importlib.import_module("tilekit.jit.tuning.schedules").untried(self._schedules, self.script_name)

    def _taken(self, call: arguments.Call, *, tunes: bool = True) -> Kernel:
        """The kernel for a call, if it can take these tensors; it counts as the last one from now on."""
        kernel = self._kernel(call, tunes=tunes)
        arguments.check_contiguous(self.script_name, call.facts, kernel.specialized.strided)
        self.last = kernel
        return kernel

    def _kernel(self, call: arguments.Call, *, tunes: bool = True) -> Kernel:
        """The kernel for a call, of the schedule that tuning has found; a first call on a GPU `tunes`, looks do not."""
        instance, machine = self._instance(call.key), self._machine(call.device)
        if len(self._schedules) == 1:
            return instance.kernel(machine)
        # who has one schedule never needs this
        choice = importlib.import_module("tilekit.jit.tuning.choice")
        key, given = self._tuning_key(call), call.launch if tunes else None
        return choice.kernel_for(instance, machine, key, self.tuned, given)

    def _at_call(self, error: TilekitError, frame: FrameType) -> TilekitError:
        """The error as a person meets it: their call is what matters, our frames below it are not."""
        return callsite.place(error, self.script_name, frame).with_sources(self.sources).with_traceback(None)

    def _choose_again(self) -> None:
        """Other schedules may be the best ones now."""
        for instance in self.jit_instances.values():
            instance.chosen.clear()
        self._dispatch.forget()

    def _tuning_key(self, call: arguments.Call) -> tuple[tuple[str, int], ...]:
        """The integers that are passed at launch, by name."""
        names = [self.parameters.param_names[i] for i in self.parameters.kernel_params]
        tuning = {self.parameters.param_names[i] for i in self.parameters.tuning_params}
        return tuple((name, value) for name, value in zip(names, call.launch, strict=True) if name in tuning)

    def bench(
        self,
        *args: Any,
        against: Mapping[str, Peer] | None = None,
        sizes: Sequence[Any] | Mapping[str, Any] | None = None,
        make: Callable[..., Any] | None = None,
        flops: float | Callable[..., float] | None = None,
        bytes: float | Callable[..., float] | None = None,
        tolerance: float | None = None,
        even_if_wrong: bool = False,
        rounds: int = 5,
    ) -> Bench:
        """Measure the kernel beside others, right first: who gives other results is not timed.

        All take turns, `rounds` times. On a GPU each call begins with a cold L2 cache and lies in the queue before its
        turn comes; times are those of GPU events. On the CPU the simulator is timed, which says nothing about a GPU.
        The tensors of the arguments do not change. An interrupt keeps what is done.

        Parameters
        ----------
        args
            As in a call; none means those of the last call.
        against
            Peers by name. A peer is called with all arguments if its signature takes so many, else with the tensors
            that the kernel reads: `torch.matmul`, `lambda a, b: a @ b`. Its result is what it returns, or what it
            wrote where the kernel writes. As (peer, prepare), it is called with what `prepare` returns, which is not
            timed. A peer that fails is a row with its error.
        sizes, make
            In place of arguments: `sizes=[256, 512], make=lambda n: (n, torch.randn(n), torch.empty(n))`; a tuple is
            spread, `make=lambda m, n: …`. Or a mapping from names to arguments or to what makes them.
        flops, bytes
            The operations of a call, and the bytes that it must move: a number, or a function that is called as a
            peer is. With neither, the bytes of the tensors that the kernel reads and writes.
        tolerance
            The relative error ‖result - reference‖ / ‖reference‖ that rounding explains. By default twice the
            precision of the coarsest tensor of floats; whole numbers must be the same.
        even_if_wrong
            Time also what gives other results.
        rounds
            How often each takes its turn.

        Returns
        -------
        Bench
            A table; `.to_pandas()`, `.figure()`.

        Raises
        ------
        KernelError
            TK645 if the kernel differs from its first peer, which is asked for float64 if it can do that.
        ArgumentError
            TK634 if the arguments of the last call are gone, TK643 for what cannot be measured.

        Examples
        --------
        >>> import torch
        >>> import tilekit
        >>> from tilekit import float32
        >>> class Double(tilekit.Script):
        ...     def __call__(self, x_ptr: ~float32, y_ptr: ~float32):
        ...         self.attrs.blocks = [2]
        ...         self.attrs.warps = 1
        ...         gx = self.global_view(x_ptr, dtype=float32, shape=[64])
        ...         gy = self.global_view(y_ptr, dtype=float32, shape=[64])
        ...         x = self.load_global(gx, offsets=[self.blockIdx.x * 32], shape=[32])
        ...         self.store_global(gy, x * 2.0, offsets=[self.blockIdx.x * 32])
        >>> result = Double().bench(torch.randn(64), torch.empty(64), against={"torch": lambda x: 2 * x})
        >>> [(row.name, row.bytes, row.relative_error) for row in result.rows]
        [('Double', 512, 0.0), ('torch', 512, 0.0)]
        """
        bench = importlib.import_module("tilekit.jit.bench")
        asked = bench.Asked(against or {}, flops, bytes, tolerance, even_if_wrong, rounds)
        try:
            if not args and sizes is None and self.kernel_params:
                return self._last("last call").bench(
                    against=against, flops=flops, bytes=bytes, tolerance=tolerance, even_if_wrong=even_if_wrong,
                    rounds=rounds,
                )  # fmt: skip
            chosen = bench.sizes_of(self.script_name, args, sizes, make)
            return bench.bench(self.script_name, self._subject, chosen, asked)
        except TilekitError as error:
            raise self._at_call(error, sys._getframe(1)) from None
        except KeyboardInterrupt as stop:
            raise stop.with_traceback(None) from None

    def _subject(self, args: Sequence[Any]) -> Subject:
        """The kernel for the arguments of a call, and where its parameters are among them."""
        values = list(arguments.bind(self.script_name, self.parameters, args, {}))
        call = arguments.check(self.script_name, self.parameters, values)
        kernel = self._taken(call)
        for i, value in zip(self.kernel_params, call.launch, strict=True):
            values[i] = value
        return importlib.import_module("tilekit.jit.contestants").Subject(kernel, values, self.kernel_params)

    def compile(
        self, *args: Any, target: str | Target | None = None, device: str | None = None, **kwargs: Any
    ) -> JitInstance:
        """Compile every schedule for these arguments without launching; needs no data and no GPU.

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
            instance, machine = self._asked(args, kwargs, target, device)
            if len(self._schedules) > 1:
                importlib.import_module("tilekit.jit.tuning.session").compile_all(instance.space(machine))
            self.last = instance.kernel(machine)
            return instance
        except TilekitError as error:
            raise self._at_call(error, sys._getframe(1)) from None

    def explain(
        self, *args: Any, target: str | Target | None = None, device: str | None = None, **kwargs: Any
    ) -> Explanation:
        """Say whether a new process would find the kernel for these arguments, and if not, which input has changed.

        Parameters
        ----------
        args, kwargs, target, device
            As for `compile`.
        """
        # an explanation is for people: nobody waits for this module at a launch
        explain = importlib.import_module("tilekit.jit.explained").explain
        return explain(*self._asked(args, kwargs, target, device))

    def _asked(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], target: str | Target | None, device: str | None
    ) -> tuple[JitInstance, Machine]:
        """What is compiled for arguments that may have no data, and for which machine."""
        if device not in (None, "cpu", "cuda"):
            raise errors.ArgumentError("TK630", f"{self.script_name} is compiled for cuda or cpu, not for {device!r}")
        call = self._checked(args, kwargs, allow_specs=True)
        where = call.device if device is None else Device(DeviceKind(device))
        return self._instance(call.key), self._machine(where or Device(DeviceKind.CUDA), _target(target))

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
        return self._instance(self._checked(args, kwargs, allow_specs=True).key)

    def use_target(self, name: str | Target | None) -> None:
        """Compile for this target from now on; None gives the choice back to the device."""
        self._target = _target(name)
        self._dispatch.forget()

    def _checked(self, args: Sequence[Any], kwargs: Mapping[str, Any], *, allow_specs: bool = False) -> arguments.Call:
        values = arguments.bind(self.script_name, self.parameters, args, kwargs)
        return arguments.check(self.script_name, self.parameters, values, allow_specs=allow_specs)

    def _instance(self, key: arguments.JitKey) -> JitInstance:
        with _lock:
            known = self.jit_instances.get(key)
            if known is None or known.is_outdated(config.resolve()):
                self.jit_instances[key] = JitInstance(
                    self.script_cls, self.parameters, self._schedules, key, self.sources
                )
            return self.jit_instances[key]

    def _machine(self, device: Device | None, chosen: Target | None = None) -> Machine:
        device = device or Device(DeviceKind.CPU)
        named, options = chosen or session.chosen_target() or self._target, config.resolve()
        pipeline = pipelines.in_force(options.cache_dir)
        return Machine(device, named or session.machine_target(device.index), options, pipeline)

    # ---------------------------------------------------------------- what hangs on the kernel that ran last

    source: str = _of_last("source", "The generated CUDA C of the last kernel.")
    ptx: str = _of_last("ptx", "The PTX of the last kernel, for its target; see `Kernel.ptx`.")
    sass: str = _of_last("sass", "The machine code of the last kernel, for its target; see `Kernel.sass`.")
    patched: bool = _of_last("patched", "Whether what a person edited runs in place of what was generated.")
    edit_state: str = _of_last("edit_state", "What was decided about a person's edit of it; `clean` without one.")
    trace: Recorder = _of_last("trace", "The passes of the last kernel, before and after.", "trace")
    layouts: list[LayoutRow] = _of_last(
        "layouts", "The layout of every tile of the last kernel, who chose it and why.", "layouts"
    )
    printed: str = _of_last("printed", "Everything that the last launch or check of the last kernel printed.", "output")

    def lines(self, language: str, line: int) -> dict[str, list[int]]:
        """The lines that a line of the last kernel was made from, and those that were made from it.

        As `Kernel.lines`.

        Examples
        --------
        >>> import tilekit
        >>> from tilekit import float32
        >>> class Double(tilekit.Script):
        ...     def __call__(self, x_ptr: ~float32):
        ...         self.attrs.blocks = [2]
        ...         self.attrs.warps = 1
        ...         g = self.global_view(x_ptr, dtype=float32, shape=[64])
        ...         x = self.load_global(g, offsets=[self.blockIdx.x * 32], shape=[32])
        ...         self.store_global(g, x * 2.0, offsets=[self.blockIdx.x * 32])
        >>> double = Double()
        >>> _ = double.compile(tilekit.spec(float32, (64,)), device="cpu")
        >>> line = 1 + next(n for n, text in enumerate(double.source.splitlines()) if "2.0f" in text)
        >>> [str(double.last.program).splitlines()[n - 1].strip() for n in double.lines("cuda", line)["tile"]]
        ['t_1: f32[32] = mul(x, t)']
        """
        return self._last("source").lines(language, line)

    def _last(self, what: str) -> Kernel:
        if self.last is None:
            raise errors.ArgumentError(
                "TK631",
                f"{self.script_name} has not been compiled yet, so it has no {what}",
                help="call it, or compile it without data: handle.compile(…)",
            )
        return self.last

    def __repr__(self) -> str:
        count = len(self._schedules)
        plural = "schedule" if count == 1 else "schedules"
        if self.last is None:
            return f"{self.script_name}: {count} {plural}, compiles at its first call"
        return f"{self.script_name}: {count} {plural}, last {self.last}"


def _target(name: str | Target | None) -> Target | None:
    return target.parse(name) if isinstance(name, str) else name
