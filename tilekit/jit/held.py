# SPDX-License-Identifier: Apache-2.0
"""The arguments of the last call, remembered without keeping anybody's memory, and copied as they overlap."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, cast

from tilekit.runtime import tensors
from tilekit.runtime.tensors import Library


@dataclass(slots=True)  # frozen, it would cost a launch a microsecond
class Held:
    """A view that can be had again as long as somebody keeps what it is a view of."""

    owner: weakref.ref[Any]
    view: Callable[[Any], Any]


def hold(argument: Any) -> Any:
    """What to remember of an argument without keeping its memory; a number as it is."""
    if not tensors.is_tensor(argument):
        return argument
    if tensors.library_of(argument) is Library.TORCH:
        base = argument._base
        return weakref.ref(argument) if base is None else hold_view(argument, base)
    root = _root(argument)
    layout = (argument.shape, argument.dtype, _address(argument) - _address(root), argument.strides)
    return Held(weakref.ref(root), lambda owner: _view(owner, *layout))


def hold_view(view: Any, base: Any) -> Held:
    """What to remember of one of torch's tensors that is a view of `base`."""
    place = (view.shape, view.stride(), view.storage_offset())
    return Held(weakref.ref(base), lambda owner: owner.as_strided(*place))


def recall(held: Any) -> Any:
    """The argument, or None if it is gone."""
    if isinstance(held, weakref.ref):
        return cast("weakref.ref[Any]", held)()
    if not isinstance(held, Held):
        return held
    owner = held.owner()
    return None if owner is None else held.view(owner)


def copies(arguments: Sequence[Any], *, on_cpu: bool = False) -> list[Any]:
    """Copies of the tensors, where they are or on the CPU, that overlap as the originals do; numbers as they are."""
    storages: dict[int, Any] = {}
    return [_copy(argument, storages, on_cpu) if tensors.is_tensor(argument) else argument for argument in arguments]


def copies_of(arguments: Sequence[Any], chosen: Collection[int]) -> list[Any]:
    """The arguments with copies in place of those with the chosen numbers, and of all that share their memory."""
    memory = {_memory(arguments[i]) for i in chosen}
    storages: dict[int, Any] = {}
    return [
        _copy(argument, storages, False) if tensors.is_tensor(argument) and _memory(argument) in memory else argument
        for argument in arguments
    ]


def nbytes(arguments: Sequence[Any]) -> int:
    """The bytes that `copies` would copy."""
    memory = {_memory(argument) for argument in arguments if tensors.is_tensor(argument)}
    return sum(size for _, size in memory)


def _memory(tensor: Any) -> tuple[int, int]:
    """Where the memory that a tensor is a view of begins, and its bytes."""
    if tensors.library_of(tensor) is Library.TORCH:
        storage = tensor.untyped_storage()
        return storage.data_ptr(), storage.nbytes()
    root = _root(tensor)
    return _address(root), root.nbytes


def _copy(tensor: Any, storages: dict[int, Any], on_cpu: bool) -> Any:
    address, _ = _memory(tensor)
    if tensors.library_of(tensor) is Library.TORCH:
        if address not in storages:
            storage = tensor.untyped_storage()
            storages[address] = storage.cpu() if on_cpu and tensor.is_cuda else storage.clone()
        empty = tensor.new_empty(0, device="cpu" if on_cpu else None)
        return empty.set_(storages[address], tensor.storage_offset(), tensor.shape, tensor.stride())
    root = _root(tensor)
    if address not in storages:
        storages[address] = root.copy()
    return _view(storages[address], tensor.shape, tensor.dtype, _address(tensor) - address, tensor.strides)


def _root(array: Any) -> Any:
    """The NumPy array that this one is a view of in the end; its memory may be torch's."""
    while tensors.is_tensor(array.base) and tensors.library_of(array.base) is Library.NUMPY:
        array = array.base
    return array


def _address(array: Any) -> int:
    return array.__array_interface__["data"][0]


def _view(root: Any, shape: Any, dtype: Any, offset: int, strides: Any) -> Any:
    """An array inside another's memory, `offset` bytes from its start."""
    return type(root)(shape, dtype, root, offset, strides)
