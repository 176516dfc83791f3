# SPDX-License-Identifier: Apache-2.0
"""The one door to hidet: it loads only the parts that tilekit uses, and steps aside for anyone who wants all of it.

`import hidet` proper takes two seconds, imports torch, needs the `hip` package and loads shared libraries. Its scalar
IR needs none of that. So, if nobody has imported hidet yet, this module puts *light packages* in place of `hidet` and
of those of its packages whose `__init__` pulls in the rest: they have the real path and the real submodules, but their
`__init__` has not run. Two of the modules that we load look for a class of `hidet.graph` while they work; they, and
they alone, find an empty one in a *stand-in* of that package.

As soon as anybody else asks for something that is not there (`import hidet.graph`, `hidet.Tensor`), the real package is
put in place: every stand-in and light package leaves, and hidet's own `__init__` runs in the module object that people
already hold. Submodules that were loaded before stay, so `isinstance` holds across the change.
"""

from __future__ import annotations

import faulthandler
import functools
import importlib
import importlib.machinery
import importlib.metadata
import inspect
import resource
import sys
import threading
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from types import ModuleType
from typing import Any

from tilekit.diag.errors import ToolchainError

VERSION = "0.6.1"

# packages whose __init__ does not run while hidet is light
_LIGHT_PACKAGES = ("hidet", "hidet.ir.primitives", "hidet.ir.primitives.cuda", "hidet.transforms")

# package -> names that stand empty in it, and the modules that may see them
_STAND_INS = {
    "hidet.graph": (),
    "hidet.graph.operator": ("Device",),
    "hidet.graph.tensor": ("Tensor",),
}
_STAND_IN_READERS = frozenset({"hidet.utils.py", "hidet.utils.namer"})

_lock = threading.RLock()
_loading = threading.local()


def lock() -> threading.RLock:
    """The lock for everything that touches hidet's process-wide state; held while hidet is loaded, too."""
    return _lock


class _LightPackage(ModuleType):
    """A package whose `__init__` has not run: asking it for more than its loaded submodules runs it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__version__":
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        submodule = sys.modules.get(f"{self.__name__}.{name}")
        if submodule is not None and not isinstance(submodule, _StandIn):
            return submodule
        promote()
        return getattr(sys.modules[self.__name__], name)


class _StandIn(_LightPackage):
    """Stands where a package of hidet would be that we do not load; only its two known readers see its names."""

    def __getattr__(self, name: str) -> Any:
        if name in _STAND_INS[self.__name__] and _caller() in _STAND_IN_READERS:
            return _placeholder(self.__name__, name)
        return super().__getattr__(name)


@functools.cache  # hidet asks again for each name that it gives
def _placeholder(module: str, name: str) -> type:
    return type(name, (), {"__module__": module})


def _caller() -> str | None:
    """The name of the module whose code asked a stand-in for an attribute."""
    frame = inspect.currentframe()
    for _ in range(2):  # this function, and the __getattr__ that calls it
        frame = frame and frame.f_back
    return frame and frame.f_globals.get("__name__")


class _Finder(MetaPathFinder):
    """Notices that somebody imports a part of hidet that is not loaded, and puts the real package in place first."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith("hidet.") or getattr(_loading, "depth", 0) or not is_light():
            return None
        promote()
        module = sys.modules.pop(fullname, None)
        if module is None:
            return None  # promotion left it to the ordinary finders
        return importlib.machinery.ModuleSpec(fullname, _Loaded(module), is_package=hasattr(module, "__path__"))


class _Loaded(Loader):
    """Hands the import system a module that promotion has loaded already."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module
        self.spec = module.__spec__

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec


_finder = _Finder()

# why the real hidet could not be imported
_failures: list[BaseException] = []


def is_light() -> bool:
    """Whether hidet in this process is the light one, its own `__init__` not run."""
    return isinstance(sys.modules.get("hidet"), _LightPackage)


@contextmanager
def _loading_light() -> Generator[None]:
    """Imports of hidet in this block bring the light parts; limits that they raise go back to what they were."""
    stack, recursion = resource.getrlimit(resource.RLIMIT_STACK), sys.getrecursionlimit()
    # hidet turns the fault handler on, which fails where stderr is captured, as in a `%%capture` cell
    enable, faulthandler.enable = faulthandler.enable, _ignore
    _loading.depth = getattr(_loading, "depth", 0) + 1
    try:
        yield
    finally:
        _loading.depth -= 1
        faulthandler.enable = enable
        resource.setrlimit(resource.RLIMIT_STACK, stack)
        sys.setrecursionlimit(recursion)


def _ignore(*_: object, **__: object) -> None:
    """Do nothing."""


def _make(kind: type[_LightPackage], name: str) -> _LightPackage:
    """A light package or stand-in in `sys.modules`, with the path of the real one."""
    spec = importlib.machinery.PathFinder.find_spec(name, _search_path(name))
    if spec is None:
        raise ToolchainError("TK520", f"the installed hidet has no module {name}", help=_INSTALL)
    module = kind(name)
    module.__spec__ = spec
    module.__loader__ = spec.loader
    module.__file__ = spec.origin
    if spec.submodule_search_locations is not None:
        module.__path__ = list(spec.submodule_search_locations)
    module.__package__ = spec.parent
    sys.modules[name] = module
    return module


def _search_path(name: str) -> Sequence[str] | None:
    parent = name.rpartition(".")[0]
    return list(sys.modules[parent].__path__) if parent else None


_INSTALL = f"pip install 'hidet=={VERSION}'"


def _check_version() -> None:
    try:
        found = importlib.metadata.version("hidet")
    except importlib.metadata.PackageNotFoundError:
        raise ToolchainError("TK520", "hidet is not installed, and tilekit lowers through it", help=_INSTALL) from None
    if found != VERSION:
        message = f"tilekit works with hidet {VERSION}, but {found} is installed"
        raise ToolchainError("TK520", message, help=_INSTALL)


def load(name: str) -> Any:
    """The module `hidet.<name>`, from the light hidet unless the whole of it is here already."""
    with _lock:
        if "hidet" not in sys.modules:
            _enter_light()
        if not is_light():
            importlib.import_module("hidet")  # waits, if another thread is in the middle of it
            return importlib.import_module(f"hidet.{name}")
        with _loading_light():
            _make_parents(name)
            return importlib.import_module(f"hidet.{name}")


def _enter_light() -> None:
    _check_version()
    _make(_LightPackage, "hidet")
    for name in _STAND_INS:
        _make(_StandIn, name)
    sys.meta_path.insert(0, _finder)


def _make_parents(name: str) -> None:
    """Light packages for those parents of `hidet.<name>` that are to stay light."""
    parts = ["hidet", *name.split(".")]
    for depth in range(2, len(parts)):
        parent = ".".join(parts[:depth])
        if parent not in sys.modules and parent in _LIGHT_PACKAGES:
            setattr(sys.modules[parent.rpartition(".")[0]], parts[depth - 1], _make(_LightPackage, parent))


def promote() -> None:
    """Put the real hidet in place of the light one; if its own import fails, leave everything as it was.

    It is tried once: what it registered before it failed would make a second attempt fail in another way.
    """
    with _lock:
        if _failures:
            raise _failures[0].with_traceback(None)
        package = sys.modules.get("hidet")
        if not isinstance(package, _LightPackage):
            return
        before = {name: module for name, module in sys.modules.items() if isinstance(module, _LightPackage)}
        for name in before:
            if name != "hidet":
                del sys.modules[name]
        sys.meta_path.remove(_finder)
        spec = package.__spec__
        assert spec is not None and spec.loader is not None
        package.__class__ = ModuleType  # type: ignore[assignment]  # from here on it is an ordinary package that is being imported
        try:
            spec.loader.exec_module(package)
        except BaseException as failure:
            _failures.append(failure)
            package.__class__ = _LightPackage
            sys.modules.update(before)
            sys.meta_path.insert(0, _finder)
            raise
        _bind_children(before)
        # hidet raises these limits when it is imported: its user gets what its user would have got
        stack_limit = sys.modules["hidet.utils.stack_limit"]
        stack_limit.set_stack_limit()
        stack_limit.set_stack_size()


def _bind_children(parents: Iterable[str]) -> None:
    """Give packages that were imported anew the submodules that were there before them."""
    for name, module in list(sys.modules.items()):
        parent, _, child = name.rpartition(".")
        if parent in parents and parent in sys.modules and child not in vars(sys.modules[parent]):
            setattr(sys.modules[parent], child, module)
