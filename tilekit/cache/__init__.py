# SPDX-License-Identifier: Apache-2.0
"""What was compiled before, as folders that a person can read, keyed by everything that could change them.

    tilekit.cache.explain(kernel, *args)   would this call find its kernel, and if not, what has changed
    tilekit.cache.ls()                     the programs that are there
    tilekit.cache.gc(limit)                make it smaller
    tilekit.cache.verify()                 delete what is damaged
    tilekit.cache.clear()                  delete everything

The same from a terminal: `tilekit cache ls|explain|gc|verify|clear`. Whatever these do, they may do at any
time: what is missing is compiled again.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tilekit import config

if TYPE_CHECKING:
    from tilekit.cache.manage import Listing
    from tilekit.cache.size import Entry


class _Explains(Protocol):
    def explain(self, *args: Any, **kwargs: Any) -> Any: ...


def explain(kernel: _Explains, *args: Any, **kwargs: Any) -> Any:
    """Say whether a new process would find the kernel for these arguments, and if not, which input has changed.

    Parameters
    ----------
    kernel
        The handle, as in a call.
    args, kwargs
        What a call would pass; also `tilekit.spec(dtype, shape)` in place of a tensor.

    Returns
    -------
    Explanation
        `hit`, and its text in words.
    """
    return kernel.explain(*args, **kwargs)


def ls(folder: str | Path | None = None) -> Listing:
    """List what is in the cache, or in this cache folder; the result prints as a table."""
    from tilekit.cache import manage

    return manage.ls(_root(folder))


def gc(limit: int | None = None, folder: str | Path | None = None) -> list[Entry]:
    """Delete what was not used for longest until at most `limit` bytes are left; by default, the limit in force."""
    from tilekit.cache import size

    return size.collect(_root(folder), config.resolve(None if limit is None else {"cache_limit": limit}).cache_limit)


def verify(folder: str | Path | None = None) -> list[Path]:
    """Read everything, delete what is not as it was written, and return where that was."""
    from tilekit.cache import manage

    return manage.verify(_root(folder))


def clear(folder: str | Path | None = None) -> None:
    """Delete everything that tilekit keeps in the cache."""
    from tilekit.cache import manage

    manage.clear(_root(folder))


def _root(folder: str | Path | None) -> Path:
    return config.resolve().cache_dir if folder is None else Path(folder)
