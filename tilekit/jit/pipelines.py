# SPDX-License-Identifier: Apache-2.0
"""The pipeline in force: the default passes, or those with a person's changes and a key of all that these depend on.

    with tilekit.passes(after("layout_inference", MyPass()), without("bound_aware_simplify")):
        kernel(x)

The key holds the source of the passes, of what they call, and their fields, as that of a script does. What cannot be
tracked has a key that nobody makes again, so what is compiled with it is found by nobody else.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from tilekit.cache import fingerprint
from tilekit.cache.programs import key_of
from tilekit.diag.errors import TilekitError
from tilekit.jit import callsite, session
from tilekit.lang import dependencies
from tilekit.lang.dependencies import Untracked
from tilekit.runtime import device

if TYPE_CHECKING:
    from tilekit.transforms.custom import Change, Pipeline


def passes(*changes: Change) -> AbstractContextManager[None]:
    """Within the block, kernels are compiled with changes to the pipeline; blocks inside of others add theirs.

    A kernel that was compiled without them, in this process or on disk, is another one, and so is what another process
    compiles. The passes and their fields are taken as they are where the block begins.

    Parameters
    ----------
    changes
        What `after`, `before`, `replace` and `without` of `tilekit.transforms` give, applied in this order.

    Raises
    ------
    PassError
        TK412 for a change that names no pass of the pipeline; in the block, TK410 from a kernel whose compile one of
        the passes fails, and TK411 from one that it breaks.

    Examples
    --------
    >>> import numpy as np
    >>> import tilekit
    >>> from tilekit import float32
    >>> from tilekit.ir.functors import IRRewriter
    >>> from tilekit.transforms import Pass, after
    >>> class OncePass(Pass):
    ...     def process_function(self, func):
    ...         return Once().visit(func)
    >>> class Once(IRRewriter):
    ...     def visit_AddInst(self, inst):
    ...         return inst.replace(y=inst.x)
    >>> class Sum(tilekit.Script):
    ...     def __call__(self, x_ptr: ~float32, y_ptr: ~float32):
    ...         self.attrs.blocks = [1]
    ...         self.attrs.warps = 1
    ...         x = self.global_view(x_ptr, dtype=float32, shape=[32])
    ...         y = self.global_view(y_ptr, dtype=float32, shape=[32])
    ...         both = self.load_global(x, offsets=[0], shape=[32]) + self.load_global(y, offsets=[0], shape=[32])
    ...         self.store_global(y, both, offsets=[0])
    >>> x, y = np.full(32, 3, np.float32), np.zeros(32, np.float32)
    >>> with tilekit.passes(after("copy_elimination", OncePass())):
    ...     Sum()(x, y)
    >>> float(y[0])
    6.0
    """
    try:
        _check((*session.pipeline_changes(), *changes))
    except TilekitError as error:
        raise callsite.place(error, "tilekit.passes", sys._getframe(1)) from None
    return session.changed_pipeline(changes)


def stand(changes: Sequence[Change]) -> None:
    """Let these changes hold in every compile from now on, in place of those that stood before.

    Raises
    ------
    PassError
        TK412 for a change that names no pass of the pipeline; then nothing changes.
    """
    _check(changes)
    session.set_pipeline_changes(changes)


def _check(changes: Sequence[Change]) -> None:
    transforms = importlib.import_module("tilekit.transforms")
    transforms.Pipeline(tuple(changes)).applied_to(transforms.get_default_passes())


# the pipeline in force, and at which moment and for which cache somebody last looked what it depends on
_looked: list[tuple[object, Pipeline]] = []


def in_force(root: Path) -> Pipeline | None:
    """The pipeline as somebody changed it, looked at once in each block and cell; None for the default one.

    `root` is the cache that remembers the files of the compiler.
    """
    changes = session.pipeline_changes()
    if not changes:
        return None
    moment = session.moment(), root
    if not _looked or _looked[0][0] != moment:
        _looked[:] = [(moment, _look(changes, root))]
    return _looked[0][1]


def _look(changes: tuple[Change, ...], root: Path) -> Pipeline:
    # whoever has changes has the compiler
    transforms = importlib.import_module("tilekit.transforms")
    key, is_unique = _key(changes, root)
    return transforms.Pipeline(changes, key, is_unique, lambda: _look(changes, root))


def _key(changes: tuple[Change, ...], root: Path) -> tuple[str, bool]:
    """The key of what the changes depend on, and whether it is unique, for that cannot be tracked."""
    try:
        found = dependencies.of_passes(changes)
    except (Untracked, RecursionError) as error:
        reason = error if isinstance(error, Untracked) else "what it depends on is nested too deeply"
        return f"untracked, for {reason}: {os.urandom(16).hex()}", True
    parts = {**found.parts, "the compiler": fingerprint.compiler(root).frontend, "the version of Python": sys.version}
    if found.asks_for_gpu:
        parts["the GPUs of this machine"] = str(device.survey().gpus)
    return key_of(parts), False
