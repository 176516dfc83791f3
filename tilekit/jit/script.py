# SPDX-License-Identifier: Apache-2.0
"""`Script`, the base class of every kernel. Importing it brings no compiler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from tilekit.jit.instantiated import InstantiatedScript
from tilekit.lang.classes import LanguageType

if TYPE_CHECKING:
    # an editor sees `self.load_global`; at run time the transpiler adds the language to the object that it makes
    from tilekit.lang.methods import KernelMethods as Language
else:
    Language = object


class Script(Language, metaclass=LanguageType):
    """The base class of a kernel.

    `__init__` takes compile-time choices, `__call__` is the kernel: its annotated parameters are what callers pass.
    Making an object of a subclass gives an `InstantiatedScript`, which compiles for the arguments it is called with.

    Examples
    --------
    >>> from tilekit.dtypes import float32, int32
    >>> class Double(Script):
    ...     def __call__(self, n: int32, x: ~float32):
    ...         self.attrs.blocks = [(n + 127) // 128]
    ...         self.attrs.warps = 4
    ...         g = self.global_view(x, dtype=float32, shape=[n])
    ...         at = self.blockIdx.x * 128
    ...         self.store_global(g, self.load_global(g, offsets=[at], shape=[128]) * 2.0, offsets=[at])
    >>> double = Double()
    """

    # one schedule instead of the tuning space, while debugging
    debug_schedule: ClassVar[Mapping[str, Any] | None] = None

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return InstantiatedScript.of(cls, args, kwargs)

    def __init__(self) -> None:
        """Subclasses call this first in their own `__init__`."""

    def __call__(self, *args: Any) -> None:
        """The kernel; every subclass has its own."""
        raise NotImplementedError("a script needs a __call__ method: it is the kernel")
