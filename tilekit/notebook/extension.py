# SPDX-License-Identifier: Apache-2.0
"""`%load_ext tilekit`: teaches the shell `%%tilus`, how kernels look, and to say cells by their numbers in errors."""

from __future__ import annotations

import ast
import sys
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from IPython.core.magic import no_var_expand, output_can_be_silenced
from IPython.display import display

from tilekit.diag import TilekitError, errors, sources
from tilekit.jit import observer, session
from tilekit.jit.kernel import Kernel
from tilekit.jit.observer import Identity
from tilekit.jit.script import Script
from tilekit.notebook import cell, completion, displays, interrupts, options, own_passes
from tilekit.notebook.edits import NotebookEdits
from tilekit.notebook.options import FirstLine
from tilekit.notebook.panels import at_work
from tilekit.notebook.panels.desk import Desk
from tilekit.notebook.panels.panel import Panel
from tilekit.notebook.running import PlainCells, RunningCell
from tilekit.notebook.summary import not_edited
from tilekit.notebook.tuning import TuningPlots
from tilekit.runtime import device

if TYPE_CHECKING:
    from IPython.core.interactiveshell import ExecutionInfo, ExecutionResult, InteractiveShell

_ATTRIBUTE = "tilekit"  # where rewritten cells find the extension on the shell: see cell.call


def load(shell: InteractiveShell) -> None:
    """Install it; loading twice is loading once."""
    if not hasattr(shell, _ATTRIBUTE):
        extension = Extension(shell)
        extension.open()
        setattr(shell, _ATTRIBUTE, extension)


def unload(shell: InteractiveShell) -> None:
    """Take everything out again."""
    extension = getattr(shell, _ATTRIBUTE, None)
    if extension is not None:
        extension.close()
        delattr(shell, _ATTRIBUTE)


class Extension:
    """What one shell has of tilekit."""

    def __init__(self, shell: InteractiveShell) -> None:
        # IPython says of most of its parts only that they are objects
        self.shell: Any = shell
        self.running: list[RunningCell] = []
        self._outermost: ExecutionInfo | None = None  # the cell that the person runs now
        self._text = ""  # the last `%%tilus` cell that was rewritten
        self._asked_driver = False
        # whether a pass of the person's own has come since kernels were shown
        self._shows_passes = False
        # the panels of each cell that has some
        self._desks: dict[str, Desk] = {}
        # and those that are the value of a cell
        self._values: dict[str, list[Panel]] = {}
        self.edits = NotebookEdits()
        # what cells used so far, by what a rerun does not change: of a kernel that was made again, the new one
        self._used: weakref.WeakValueDictionary[Identity, Kernel] = weakref.WeakValueDictionary()
        self._magic = as_magic(self)
        self._plain_cells = observer.observing(PlainCells(shell, lambda: bool(self.running)))
        self._plots = observer.observing(TuningPlots(shell))

    def open(self) -> None:
        shell = self.shell
        shell.input_transformers_cleanup.insert(0, self.rewrite_lines)
        shell.ast_transformers.append(self)
        shell.events.register("pre_run_cell", self.before_cell)
        shell.events.register("post_run_cell", self.after_cell)
        shell.register_magic_function(self._magic, "cell", "tilus")
        shell.register_magic_function(as_pass_magic(self), "line_cell", own_passes.NAME)
        completion.register(shell)
        displays.register(shell, self.keep_panel)
        sources.set_display(self.display_name)
        self.edits.open()
        self._plain_cells.__enter__()
        self._plots.__enter__()
        if displays.is_live(shell):
            displays.take_errors(shell)

    def close(self) -> None:
        shell = self.shell
        self._close_running()
        shell.input_transformers_cleanup.remove(self.rewrite_lines)
        shell.ast_transformers.remove(self)
        shell.events.unregister("pre_run_cell", self.before_cell)
        shell.events.unregister("post_run_cell", self.after_cell)
        for magics in shell.magics_manager.magics.values():
            magics.pop("tilus", None)
            magics.pop(own_passes.NAME, None)
        session.set_pipeline_changes(())
        completion.unregister(shell)
        displays.unregister(shell)
        displays.leave_errors(shell)
        sources.set_display(None)
        self.edits.close()
        self._plain_cells.__exit__(None, None, None)
        self._plots.__exit__(None, None, None)

    # ------------------------------------------------------------------------------------------------ rewriting a cell

    def rewrite_lines(self, lines: list[str]) -> list[str]:
        """The lines of a cell as IPython shall read them: see `cell.rewrite_lines`.

        A cell inside another one, below `%%time` or `%%capture`, stays a call of the magic: those who run it need not
        know of trees, and some call the file of every cell by the same name.
        """
        outer = self._outermost
        try:
            rewritten = cell.rewrite_lines(lines)
        except cell.Misplaced as problem:
            above = 0 if outer is None else lines_before(outer.raw_cell or "", "".join(lines))
            number = self.shell.execution_count if outer is None else self._cell_number()
            line = FirstLine(problem.text.rstrip(), f"Cell In[{number}]", problem.line + above)
            error = errors.LanguageError(
                "TK801",
                "%%tilus must be on the first line of its cell",
                help="move it to the top, or split the cell in two",
            )
            raise line.placed(error, line.span) from None
        if rewritten is lines or outer is not None:
            return lines
        self._text = "".join(lines)
        return rewritten

    # a terminal asks at each Enter whether the cell is complete, and must then see the magic, which waits for its end
    rewrite_lines.has_side_effects = True  # type: ignore[attr-defined]

    def visit(self, node: ast.Module) -> ast.Module:
        """The tree of a `%%tilus` cell with the calls around it; IPython hands every tree to this method."""
        if cell.first_line(node) is None:
            return node
        # blank lines above the magic were moved below it
        ast.increment_lineno(node.body[0], self._text.partition(options.MAGIC)[0].count("\n"))
        return cell.rewrite_tree(node, show_assignment=self.shell.ast_node_interactivity == "last_expr_or_assign")

    # ------------------------------------------------------------------------------------------------ running a cell

    def before_cell(self, info: ExecutionInfo) -> None:
        session.begin_cell()
        if self._outermost is None or info.store_history:
            self._outermost = info
            if displays.is_live(self.shell):
                for panel in self._values.pop(_cell_id(self.shell), ()):
                    panel.close()

    def after_cell(self, result: ExecutionResult) -> None:
        """However the cell ended, what `begin` set is undone, and panels say what its kernels did wrong."""
        if result.info is self._outermost:
            self._outermost = None
            failed = [running for running in self.running if running.is_open]
            self._close_running()
            for desk in self._desks.values():
                desk.refresh()
            if failed and failed[0].is_live and failed[0].summary.kernels:
                self._show_panels(failed[0].summary.kernels)

    def begin(self, line: str) -> None:
        """The `%%tilus` line of a cell."""
        frame = sys._getframe(1)
        first_line = FirstLine(line, self.display_name(frame.f_code.co_filename), frame.f_lineno)
        try:
            chosen = options.parse(line)
        except TilekitError as error:
            raise first_line.placed(error, error.diagnostic.at or first_line.span) from None
        if chosen.help:
            print(options.HELP)
        self.running.append(RunningCell(self.shell, first_line, chosen))

    def end(self, classes: tuple[str, ...], value: Any, told: tuple[str, ...] = ()) -> Any:
        """The end of a `%%tilus` cell, with the value of its last expression, and the names that speak to `--bench`."""
        defined = [self.shell.user_ns.get(name) for name in classes]
        scripts = [cls for cls in defined if isinstance(cls, type) and issubclass(cls, Script)]
        running = self.running[-1]
        measured = running.bench({name: self.shell.user_ns[name] for name in told})
        kernels = running.summary.kernels
        self._used.update({kernel.identity: kernel for kernel in kernels})
        remarks = [line for kernel in kernels for line in self.edits.remarks(kernel)]
        remarks += not_edited(kernels, list(self._used.values()))
        running.finish(scripts, [*filter(None, [self._driver_problem()]), *remarks])
        if measured is not None:
            display(measured)
        if running.is_live and kernels:
            self._show_panels(kernels)
        return value

    def keep_panel(self, panel: Panel) -> None:
        """Hold a panel that a cell shows until the cell runs again."""
        self._values.setdefault(_cell_id(self.shell), []).append(panel)

    def _show_panels(self, kernels: Sequence[Kernel]) -> None:
        """One bar below the lines of the cell, closed; a rerun of the cell keeps open what was open."""
        desk = Desk(kernels, self.edits)
        place = _cell_id(self.shell)
        before = self._desks.pop(place, None)
        if before is not None:
            desk.take_over(before)
        self._desks[place] = desk
        if self._shows_passes and any(kernel.machine.pipeline for kernel in kernels):
            desk.show_own_passes()
            self._shows_passes = False
        interrupts.listen(self.shell, at_work.stop)
        # the lines above say the kernels in text
        view = desk.bar._repr_mimebundle_()
        display({**view, "text/plain": "passes and source in panels: run the cell to open them"}, raw=True)

    def _driver_problem(self) -> str | None:
        """Why the GPU of this machine cannot be used, the first time that it is asked."""
        if self._asked_driver:
            return None
        self._asked_driver = True
        return device.survey().problem

    def run_inside(self, line: str, body: str) -> Any:
        """Run a cell that stands inside another one, and give the value of its last expression.

        It gets a file name of its own, and where it is the end of the outer cell, the lines of that one.
        """
        self._text = text = f"{options.MAGIC} {line}\n{body}"
        shell = self.shell
        source = shell.transform_cell("".join(cell.rewrite_lines(text.splitlines(keepends=True))))
        tree = shell.transform_ast(shell.compile.ast_parse(source))
        outer = (self._outermost and self._outermost.raw_cell) or ""
        above = cell.lines_above(outer, body)
        if above is not None:
            ast.increment_lineno(tree, above)
            text = outer
        filename = shell.compile.cache(text, self._cell_number(), raw_code=text)
        *before, end = tree.body
        depth = len(self.running)
        try:
            exec(shell.compile(ast.Module(before, []), filename, "exec"), shell.user_ns)
            return eval(shell.compile(ast.Expression(end.value), filename, "eval"), shell.user_ns)
        finally:
            self._close_running(depth)

    def run_pass(self, line: str, body: str | None) -> None:
        """`%%tilus_pass`, or `%tilus_pass` where there is no body."""
        __tracebackhide__ = True
        outer = (self._outermost and self._outermost.raw_cell) or ""
        number = self._cell_number()
        if body is None:
            at = self._line_of_cell()
            place = own_passes.Place(f"Cell In[{number}]", number, outer, at)
        else:
            above = lines_before(outer, body)
            text = outer if above else f"%%{own_passes.NAME} {line}\n{body}"
            place = own_passes.Place(f"Cell In[{number}]", number, text, above or 1)
        before = session.standing_changes()
        print(own_passes.run(self.shell, line, body, place))
        self._shows_passes = session.standing_changes() not in ((), before)

    def _close_running(self, depth: int = 0) -> None:
        while len(self.running) > depth:
            self.running.pop().close()

    # -------------------------------------------------------------------------------------------- what lines are called

    def display_name(self, filename: str) -> str:
        """What a person calls the file: the cell's number where it is one."""
        # IPython keeps these for its own tracebacks; should it stop, a cell is called by its file
        numbers = getattr(self.shell.compile, "_filename_map", {})
        return f"Cell In[{numbers[filename]}]" if filename in numbers else filename

    def _line_of_cell(self) -> int:
        """The line of a cell that runs now."""
        frame = sys._getframe(1)
        while frame.f_back is not None and self.display_name(frame.f_code.co_filename) == frame.f_code.co_filename:
            frame = frame.f_back
        return frame.f_lineno

    def _cell_number(self) -> int:
        """The number of the cell that runs: the shell's own counter is already at the next one."""
        history = self.shell.history_manager
        return self.shell.execution_count if history is None else len(history.input_hist_parsed) - 1


def _cell_id(shell: Any) -> str:
    """What the front end calls the cell that runs; without a name every cell is another one."""
    metadata = shell.kernel.get_parent().get("metadata", {})
    return str(metadata.get("cellId") or f"execution {shell.execution_count}")


def as_magic(extension: Extension) -> Callable[[str, str], Any]:
    """The cell as a magic function: for other magics that hold one, for `%%tilus?`, and for the list of magics."""

    @no_var_expand
    @output_can_be_silenced
    def tilus(line: str, body: str) -> Any:
        return extension.run_inside(line, body)

    tilus.__doc__ = options.HELP
    return tilus


def as_pass_magic(extension: Extension) -> Callable[..., None]:
    """`%%tilus_pass` as IPython calls it."""

    @no_var_expand
    @output_can_be_silenced
    def tilus_pass(line: str, body: str | None = None) -> None:
        __tracebackhide__ = True
        extension.run_pass(line, body)

    tilus_pass.__doc__ = own_passes.HELP
    return tilus_pass


def lines_before(outer: str, inner: str) -> int:
    """How many lines of `outer` lie above `inner`, which is its end; 0 if it is not."""
    outer, inner = outer.rstrip(), inner.rstrip()
    return outer[: len(outer) - len(inner)].count("\n") if outer.endswith(inner) else 0
