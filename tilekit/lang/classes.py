# SPDX-License-Identifier: Apache-2.0
"""`Class`, the base of the objects that a kernel makes for itself. Importing it brings no compiler."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tilekit.diag import errors

if TYPE_CHECKING:
    # an editor sees `self.load_global`; at run time the transpiler adds the language to the object that it makes
    from tilekit.lang.methods import KernelMethods as Language
else:
    Language = object


class LanguageType(type):
    """Lets a class show the kernel language to `help` and completion without importing it before that."""

    def __getattr__(cls, name: str) -> Any:
        if not name.startswith("_"):
            # the compiler is loaded the first time somebody needs it
            language = importlib.import_module("tilekit.lang.methods").KernelMethods
            if hasattr(language, name):
                return getattr(language, name)
        raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")

    def __dir__(cls) -> list[str]:
        return [*super().__dir__(), *importlib.import_module("tilekit.lang.methods").names()]


class Class(Language, metaclass=LanguageType):
    """The base class of objects that a kernel makes and uses: state with the methods that change it.

    Its `__init__` and its methods are part of the kernel: they are inlined where the kernel calls them, and they have
    every instruction that the kernel has. An attribute is a variable of the running kernel where its first assignment
    names a type (`self.stage: int32 = 0`); everything else exists while the kernel is compiled: numbers, tensors and
    other objects, which are held by reference.

    Examples
    --------
    >>> from tilekit.dtypes import int32
    >>> class Ring(Class):
    ...     def __init__(self, stages: int):
    ...         self.stages: int = stages
    ...         self.stage: int32 = 0
    ...
    ...     def advance(self):
    ...         self.stage = (self.stage + 1) % self.stages
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise errors.LanguageError(
            "TK101",
            f"an object of {cls.__name__} exists only inside a kernel",
            help="make it in __call__, or in a method that __call__ calls",
        )

    def __init__(self) -> None:
        """Subclasses may call this first in their own `__init__`."""
