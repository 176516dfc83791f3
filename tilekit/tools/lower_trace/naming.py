# SPDX-License-Identifier: Apache-2.0
"""What a trace is called: by the script that runs, or by the notebook, as far as its front end tells it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tilekit.tools.lower_trace.edits import safe_name


def script_name() -> str:
    """The name of the script or notebook, fit to be the name of a folder."""
    in_notebook = Path(notebook_path()).stem or "notebook"
    return safe_name(in_notebook if _in_notebook() else _of_argv(sys.argv[0] if sys.argv else ""))


def notebook_path() -> str:
    """The file of the notebook, as Jupyter or VS Code tells it; its name alone, or nothing, where they tell less."""
    return os.environ.get("JPY_SESSION_NAME") or getattr(sys.modules.get("__main__"), "__vsc_ipynb_file__", "")


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
