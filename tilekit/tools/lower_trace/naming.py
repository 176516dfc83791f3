# SPDX-License-Identifier: Apache-2.0
"""What a trace is called: by the script that runs, or by the notebook, as far as its front end tells it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tilekit.tools.lower_trace.edits import safe_name


def script_name() -> str:
    """The name of the script or notebook, fit to be the name of a folder."""
    name = notebook_name() if _in_notebook() else _of_argv(sys.argv[0] if sys.argv else "")
    return safe_name(name)


def home(folder: Path) -> Path:
    """Where the traces of this script are, among those of all scripts.

    TileLang keeps its own by the same names: in a process that has both, and beside a folder that is TileLang's, ours
    has a name of its own.
    """
    plain = folder / script_name()
    is_others = "tilelang" in sys.modules or _is_others(plain)
    return plain.with_name(f"{plain.name}.tilekit") if is_others else plain


def _is_others(home: Path) -> bool:
    try:
        return any(
            (run / "report.html").exists() and not (run / "journal.jsonl").exists()
            for run in (home / ".run_records").glob("run_*")
        )
    except OSError:  # it cannot be read; whoever writes there says so
        return False


def notebook_name() -> str:
    """What Jupyter or VS Code calls the notebook, without its folder and ending."""
    told = os.environ.get("JPY_SESSION_NAME") or getattr(sys.modules.get("__main__"), "__vsc_ipynb_file__", "")
    return Path(told).stem or "notebook"


def _in_notebook() -> bool:
    """Whether this is the kernel of a notebook, and not a program that was started from one."""
    app = sys.modules.get("ipykernel.kernelapp")
    return app is not None and app.IPKernelApp.initialized()


def _of_argv(program: str) -> str:
    if program in ("", "-"):
        return "python"
    if program == "-c":
        return "command"
    path = Path(program)
    # `python -m package` runs its __main__.py
    return path.parent.name if path.stem == "__main__" else path.stem
