# SPDX-License-Identifier: Apache-2.0
"""What a compile did, pass by pass, and the source that came out of it: to look at, to compare, and to edit.

TL_LOWER_TRACE=1 python my_script.py      # from outside: 1, html, terminal or both

from tilekit.tools import lower_trace as lt

lt.enable(mode="both")                    # for the rest of the process
lt.lower_trace(program, [a_pass, …])      # a chain of passes, once
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilekit.tools.lower_trace.chain import lower_trace
    from tilekit.tools.lower_trace.switch import disable, enable, reset

__all__ = ["disable", "enable", "lower_trace", "reset"]

# the edit store, which every notebook has, lies in this folder too: it needs none of these
_LATER = {
    "disable": "tilekit.tools.lower_trace.switch",
    "enable": "tilekit.tools.lower_trace.switch",
    "lower_trace": "tilekit.tools.lower_trace.chain",
    "reset": "tilekit.tools.lower_trace.switch",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(importlib.import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
