# SPDX-License-Identifier: Apache-2.0
"""From the program of a schedule to its kernel, found in the cache or compiled; who wants to know of it is told."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilekit.diag import errors
from tilekit.diag.errors import PassError, TilekitError, ToolchainError
from tilekit.diag.sources import Sources
from tilekit.events import Fanout, Sink
from tilekit.jit import observer
from tilekit.jit.kernel import Kernel
from tilekit.jit.machine import Machine
from tilekit.jit.observer import Identity
from tilekit.jit.specialized import Specialized
from tilekit.runtime.compiled import CompiledProgram
from tilekit.runtime.tensors import DeviceKind

_NO_CPU_COMPILER = "TK506"


def build(
    identity: Identity, specialized: Specialized, schedule: Mapping[str, Any], machine: Machine, sources: Sources
) -> Kernel:
    """Compile, or find in the cache; without a C++ compiler for the CPU it is a kernel for the evaluator."""
    start = time.perf_counter()
    watchers = observer.observers()

    def stage(name: str) -> None:
        for watcher in watchers:
            watcher.compiling(identity.script, name)

    machine = machine.now()
    made: CompiledProgram | None = None
    try:
        found = machine.find(specialized.text)
        with observer.listening(identity, cached=found is not None, sources=sources) as sinks:
            made = _compiled(found, specialized, machine, sinks, stage)
    except ToolchainError as error:
        if machine.device.kind is not DeviceKind.CPU or error.code != _NO_CPU_COMPILER:
            raise
        _show_passes(identity, specialized, machine, sources)
    except TilekitError as error:
        if machine.pipeline is not None and not isinstance(error, PassError):
            error.noted(f"it is compiled with custom passes: {machine.pipeline}")
        raise error.with_sources(sources) from error.__cause__
    except RecursionError:
        raise errors.too_deep().with_sources(sources) from None
    kernel = Kernel(identity, specialized, schedule, machine, made, sources, time.perf_counter() - start)
    for watcher in watchers:
        watcher.compiled(kernel)
    return kernel


def _compiled(
    found: CompiledProgram | None,
    specialized: Specialized,
    machine: Machine,
    sinks: Sequence[Sink],
    on_stage: Callable[[str], None],
) -> CompiledProgram:
    """The program, compiled or as it was found in the cache, with the edits of the sinks."""
    if found is None or Fanout(sinks).traces:
        # the compiler is loaded by the first kernel that needs it
        build_program = importlib.import_module("tilekit.drivers").build_program
        given = specialized.given_to(machine.pipeline), *machine.terms, sinks
        return build_program(*given, on_stage=on_stage, pipeline=machine.pipeline)
    edit = Fanout(sinks).codegen(found.source)
    if edit is None:
        return found
    return importlib.import_module("tilekit.runtime.edited").build(found, edit, *machine.terms)


def _show_passes(identity: Identity, specialized: Specialized, machine: Machine, sources: Sources) -> None:
    """Run the passes for who traces, where nothing can be compiled."""
    if observer.tracing(identity.script):
        with observer.listening(identity, cached=False, sources=sources) as sinks:
            tracing = [sink for sink in sinks if sink.traces]
            drivers = importlib.import_module("tilekit.drivers")
            drivers.generate_source(specialized.given_to(machine.pipeline), machine.target, tracing, machine.pipeline)
