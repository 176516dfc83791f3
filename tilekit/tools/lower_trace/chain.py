# SPDX-License-Identifier: Apache-2.0
"""A chain of passes run once over a program, with what each of them changed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias, cast

from tilekit import textdiff
from tilekit.config import TraceMode
from tilekit.diag import ArgumentError
from tilekit.events import Null, Stage, step
from tilekit.ir.func import Function as TileFunction
from tilekit.ir.prog import Program
from tilekit.lowir import passes as hidet_passes
from tilekit.lowir.nodes import Function as HidetFunction
from tilekit.lowir.nodes import IRModule
from tilekit.tools.lower_trace import page, run
from tilekit.tools.lower_trace.compile_sink import CompileSink
from tilekit.tools.lower_trace.console import Console
from tilekit.tools.lower_trace.journal import Run, Step
from tilekit.tools.lower_trace.recording import Lines, Listener, Recording
from tilekit.tools.lower_trace.settings import read_mode, read_path
from tilekit.tools.lower_trace.terminal import CONTEXT, Terminal
from tilekit.transforms import Pass as TilePass

Subject: TypeAlias = Program | IRModule
AnyPass: TypeAlias = TilePass | hidet_passes.Pass | Callable[[Any], Any]
PHASE = "lower_trace"


def lower_trace(
    func_or_mod: Program | TileFunction | IRModule | HidetFunction,
    passes: AnyPass | tuple[str, AnyPass] | Sequence[AnyPass | tuple[str, AnyPass]],
    mode: str = "terminal",
    context: int = CONTEXT,
    html_path: str | os.PathLike[str] = "lower_trace_report.html",
) -> list[dict[str, Any]]:
    """Run passes over a program, one after the other, and show what each changed; nothing else is traced.

    Parameters
    ----------
    func_or_mod
        A program or a function of the tile IR, or a module or a function of Hidet IR.
    passes
        A pass, or a list of passes, each of them alone or as `(name, pass)`. What is no pass of ours is called with
        the program.
    mode
        `"terminal"`, `"html"` or `"both"`.
    context
        How many unchanged lines are printed around each change.
    html_path
        Where the page is written.

    Returns
    -------
    list of dict
        For each step `name`, `before_script`, `after_script`, `diff_lines`, `insertions`, `deletions`, `changed`.

    Raises
    ------
    ConfigError
        The mode is none.
    Exception
        What a pass raised. The step is shown with the program that it was given, and written into the page.

    Examples
    --------
    >>> import tilekit
    >>> from tilekit import float32, transforms
    >>> from tilekit.tools import lower_trace as lt
    >>> class Double(tilekit.Script):
    ...     def __call__(self, x_ptr: ~float32):
    ...         self.attrs.blocks = [1]
    ...         self.attrs.warps = 1
    ...         g = self.global_view(x_ptr, dtype=float32, shape=[32])
    ...         self.store_global(g, self.load_global(g, offsets=[0], shape=[32]) * 2.0, offsets=[0])
    >>> program = Double().compile(tilekit.spec(float32, (32,)), device="cpu").transpiled_programs[0]
    >>> [step["changed"] for step in lt.lower_trace(program, transforms.get_default_passes()[5:7])]
    [True, True]
    """
    chosen = read_mode(mode)
    if chosen is TraceMode.OFF:
        raise ArgumentError("TK913", f"mode={mode!r} shows nothing", help="it is one of terminal, html, both")
    if not isinstance(context, int) or isinstance(context, bool) or context < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentError("TK625", f"context is a number of lines from 0 on, not {context!r}")
    page_file = Path(read_path("html_path", html_path))
    console, lines = Console(), Lines()
    terminal: list[Listener] = [Terminal(console, 0, context)] if chosen.prints else []
    recording = Recording(run.new_head(chosen, datetime.now(UTC)), [lines, *terminal], console.say)
    sink = recording.compile(PHASE, phase=PHASE)
    failed = True
    try:
        subject = _subject(func_or_mod)
        for name, each in _named(passes):
            subject = _run(each, name, subject, sink)
        failed = False
    finally:
        sink.done(None)
        recording.close()
        if chosen.makes_page:
            _write(page_file, lines.journal, failed)
    return _results(recording.run, context)


def _subject(given: Program | TileFunction | IRModule | HidetFunction) -> Subject:
    match given:
        case TileFunction():
            return Program.create({given.name: given})
        case HidetFunction():
            return IRModule({given.name: given})
        case Program() | IRModule():
            return given
        case _:
            raise ArgumentError(
                "TK625",
                f"lower_trace takes a program or a function of the tile IR or of Hidet IR, not {type(given).__name__}",
                help="handle.last.program is the program of a kernel",
            )


def _named(
    passes: AnyPass | tuple[str, AnyPass] | Sequence[AnyPass | tuple[str, AnyPass]],
) -> Iterator[tuple[str, AnyPass]]:
    """The passes in order, each with its name."""
    match passes:
        case (str() as name, each) if not isinstance(each, (str, tuple)):
            yield name, _checked(cast("AnyPass", each))
        case list() | tuple():
            for each in cast("Sequence[AnyPass | tuple[str, AnyPass]]", passes):
                yield from _named(each)
        case _:
            each = cast("AnyPass", passes)
            yield _name(each), _checked(each)


def _checked(each: AnyPass) -> AnyPass:
    if isinstance(each, type) or not callable(each):
        hint = f"make an object of it: {each.__name__}()" if isinstance(each, type) else None
        raise ArgumentError("TK625", f"{each!r} is no pass", help=hint)
    return each


def _name(each: AnyPass) -> str:
    if isinstance(each, (TilePass, hidet_passes.Pass)):
        return each.name
    return getattr(each, "__name__", type(each).__name__)


def _run(each: AnyPass, name: str, subject: Subject, sink: CompileSink) -> Subject:
    stage = Stage.HIDET if isinstance(subject, IRModule) else Stage.TILE
    with step(sink, stage, name, subject) as underway:
        match each, subject:
            case TilePass(), Program():
                after = each.process_program(subject, sink)
            case hidet_passes.Pass(), IRModule():
                after = each(subject, Null())
            case TilePass() | hidet_passes.Pass(), _:
                raise ArgumentError("TK625", f"{name} is a pass over another IR than {_kind(subject)}")
            case _:
                after = each(subject)
        underway.made(after)
    return after


def _kind(subject: Subject) -> str:
    """What a pass is given; one that somebody wrote may have made anything of it."""
    match subject:
        case Program():
            return "that of the tile program"
        case IRModule():
            return "that of the Hidet module"
        case _:
            return f"{subject!r}, which the pass before it made"


def _write(path: Path, journal: str, failed: bool) -> None:
    try:
        path.write_bytes(page.render([journal], path.stem))
    except OSError:
        if not failed:  # else there is something worse to tell
            raise


def _results(traced: Run, context: int) -> list[dict[str, Any]]:
    (compile,) = traced.compiles
    return [_result(traced, each, context) for each in compile.steps if each.depth == 0]


def _result(traced: Run, each: Step, context: int) -> dict[str, Any]:
    before, after = (traced.lines(text) if text else [] for text in (each.before, each.after))
    return {
        "name": each.name,
        "before_script": "\n".join(before),
        "after_script": "\n".join(after),
        "diff_lines": textdiff.unified(before, after, context),
        "insertions": each.added or 0,
        "deletions": each.removed or 0,
        "changed": each.changed,
    }
