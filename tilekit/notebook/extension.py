# SPDX-License-Identifier: Apache-2.0
"""`%load_ext tilekit`: teaches the shell `%%tilus`, and says cells by their numbers in errors."""

from __future__ import annotations

import linecache
import sys
import time
from typing import TYPE_CHECKING, Any

from IPython.core.magic import no_var_expand
from IPython.display import display

from tilekit.diag import errors, sources
from tilekit.jit import observer, session
from tilekit.jit.instantiated import InstantiatedScript
from tilekit.jit.kernel import Kernel, seconds
from tilekit.jit.script import Script
from tilekit.lang.params import CallParameters
from tilekit.notebook import cell, completion, options
from tilekit.notebook.display import CellSummary
from tilekit.notebook.options import Options
from tilekit.runtime import launch_cuda
from tilekit.runtime.tensors import DeviceKind

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_ATTRIBUTE = "_tilekit_extension"


def load(shell: InteractiveShell) -> None:
    """Install it; loading twice is loading once."""
    if not hasattr(shell, _ATTRIBUTE):
        setattr(shell, _ATTRIBUTE, Extension(shell))


def unload(shell: InteractiveShell) -> None:
    """Take everything out again."""
    extension = getattr(shell, _ATTRIBUTE, None)
    if extension is not None:
        extension.close()
        delattr(shell, _ATTRIBUTE)


class Extension:
    """What one shell has of tilekit."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell
        self.transformer = cell.CellTransformer()
        self.running: RunningCell | None = None
        # the number of lines of the cell above the text that a file name stands for, and the cell's number
        self.cells: dict[str, tuple[int, int]] = {}
        shell.input_transformers_cleanup.append(cell.rewrite_lines)
        shell.ast_transformers.append(self.transformer)
        shell.user_ns_hidden[cell.BEGIN] = shell.user_ns_hidden[cell.END] = None
        shell.user_ns[cell.BEGIN], shell.user_ns[cell.END] = self.begin, self.end
        shell.events.register("post_run_cell", self.after_cell)
        shell.register_magic_function(self.as_magic, "cell", "tilus")
        completion.register(shell)
        sources.set_display(self.display_name)

    def close(self) -> None:
        self.after_cell()
        self.shell.input_transformers_cleanup.remove(cell.rewrite_lines)
        self.shell.ast_transformers.remove(self.transformer)
        for name in (cell.BEGIN, cell.END):
            self.shell.user_ns.pop(name, None)
            self.shell.user_ns_hidden.pop(name, None)
        self.shell.events.unregister("post_run_cell", self.after_cell)
        self.shell.magics_manager.magics["cell"].pop("tilus", None)
        completion.unregister(self.shell)
        sources.set_display(None)

    @no_var_expand
    def as_magic(self, line: str, body: str) -> None:
        """The cell as a magic function, for those who call `run_cell_magic`; `%%tilus --help` lists the options."""
        self.shell.run_cell(f"%%tilus {line}\n{body}", store_history=False).raise_error()

    # ------------------------------------------------------------------------------------------------ one cell's life

    def begin(self, line: str) -> None:
        """The first line of a `%%tilus` cell."""
        self.after_cell()
        self._remember_cell(sys._getframe(1).f_code.co_filename)
        chosen = options.parse(line)
        if chosen.help:
            print(options.HELP)
        self.running = RunningCell(chosen)

    def end(self, classes: tuple[str, ...], value: Any) -> Any:
        """The end of a `%%tilus` cell, with the value of its last expression."""
        running = self.running
        if running is not None:
            defined = [self.shell.user_ns.get(name) for name in classes]
            running.finish([cls for cls in defined if isinstance(cls, type) and issubclass(cls, Script)])
        return value

    def after_cell(self, result: object = None) -> None:
        """However the cell ended, what `begin` set is undone."""
        if self.running is not None:
            self.running.close()
            self.running = None

    # -------------------------------------------------------------------------------------------- what lines are called

    def _remember_cell(self, filename: str) -> None:
        """Learn which cell a file name stands for; a magic above `%%tilus` may have compiled it under a name of its own."""
        raw = self.shell.history_manager.input_hist_raw[-1] if self.shell.history_manager is not None else ""
        lines = raw.splitlines(keepends=True)
        top = next((i for i, line in enumerate(lines) if line.startswith("%%tilus")), 0)
        if not linecache.getlines(filename):
            text = [cell.BEGIN + "\n", *lines[top + 1 :]]
            linecache.cache[filename] = (len("".join(text)), None, text, filename)
        number = len(self.shell.user_ns.get("In", [])) - 1
        self.cells[filename] = (top, number)

    def display_name(self, filename: str) -> str:
        """What a person calls the file: the cell's number where it is one."""
        if filename in self.cells:
            return f"Cell In[{self.cells[filename][1]}]"
        numbers = getattr(self.shell.compile, "_filename_map", {})
        return f"Cell In[{numbers[filename]}]" if filename in numbers else filename


class RunningCell:
    """A `%%tilus` cell while it runs: an observer of every compile and launch."""

    def __init__(self, chosen: Options) -> None:
        self.options = chosen
        self.summary = CellSummary()
        self.handle: Any = None
        self.started: dict[str, float] = {}
        self._observing = observer.observing(self)
        self._observing.__enter__()
        self._target = session.default_target(chosen.target)
        self._target.__enter__()
        self._open = True

    def compiling(self, script: str, stage: str) -> None:
        begin = self.started.setdefault(script, time.perf_counter())
        self.summary.progress = f"{script}: {stage}, {seconds(time.perf_counter() - begin)}"
        self._show()

    def compiled(self, kernel: Kernel) -> None:
        self.summary.progress = ""
        self.started.pop(kernel.script, None)
        self._add(kernel)

    def launched(self, kernel: Kernel) -> None:
        self._add(kernel)

    def _add(self, kernel: Kernel) -> None:
        if kernel not in self.summary.kernels:
            self.summary.kernels.append(kernel)

    def finish(self, classes: list[type]) -> None:
        """Wait for the GPU, compile what `--args` asks for, say what a class still waits for, and show it all."""
        for index in sorted({k.machine.device.index for k in self.summary.kernels if _is_cuda(k) and k.launches}):
            launch_cuda.synchronize(index)
        if self.options.args is not None:
            self._compile_only(classes)
        compiled = {kernel.script for kernel in self.summary.kernels}
        self.summary.notes = [note(cls) for cls in classes if cls.__name__ not in compiled]
        self.summary.progress = ""
        if self.summary.kernels or self.summary.notes:
            self._show()

    def _compile_only(self, classes: list[type]) -> None:
        if len(classes) != 1:
            raise errors.LanguageError(
                "TK802", f"--args compiles the one kernel that the cell defines, and this cell defines {len(classes)}"
            )
        handle: Any = classes[0]()
        handle.compile(*(self.options.args or ()), target=self.options.target)

    def _show(self) -> None:
        if self.handle is None:
            self.handle = display(self.summary, display_id=True)
        else:
            self.handle.update(self.summary)

    def close(self) -> None:
        if self._open:
            self._open = False
            self._observing.__exit__(None, None, None)
            self._target.__exit__(None, None, None)


def note(cls: type) -> str:
    """Check a script class as far as that needs no arguments, and say what it waits for."""
    CallParameters.of(cls.__call__)
    try:
        handle: InstantiatedScript = cls()
    except errors.LanguageError as error:
        if error.code != "TK104":
            raise
        return f"{cls.__name__}: compiles at its first call"
    return repr(handle)


def _is_cuda(kernel: Kernel) -> bool:
    return kernel.machine.device.kind is DeviceKind.CUDA
