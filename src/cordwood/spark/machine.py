"""Compiled loops, called without the compiler.

``kernels.py``, ``kernels_json.py`` and ``kernels_write.py`` hold loops as plain Python. A ``Kernel`` among them is
called as machine code: numba makes that once on a machine, all kernels together (`kernel_build.py`), and keeps it in a
file. Every process after that only loads the file, which takes a twentieth of what numba takes to load.

A kernel takes whole numbers and arrays of the kinds in ``ARRAYS``, and returns a whole number. What is called is what
numba compiles for its own use: each array comes as (owner, owner, items, item size, address, shape…, strides…), the
first two null; the result goes where the first argument points. The builder checks that this is so.
"""

import ctypes
from collections.abc import Callable
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
SmallInts = NDArray[np.int32]
Table = np.ndarray[tuple[int, int], np.dtype[np.int64]]
Words = np.ndarray[tuple[int, int], np.dtype[np.uint32]]


class Array(NamedTuple):
    """A kind of array: what it holds, and how many dimensions it has."""

    item: np.dtype[np.generic]
    dimensions: int


ARRAYS: Final = {
    Bytes: Array(np.dtype(np.uint8), 1),
    Ints: Array(np.dtype(np.int64), 1),
    SmallInts: Array(np.dtype(np.int32), 1),
    Table: Array(np.dtype(np.int64), 2),
    Words: Array(np.dtype(np.uint32), 2),
}
Kind = Array | None
"""Of a parameter; None is a whole number."""

Native = Callable[..., int]


class Kernel:
    """One loop. Calling it runs the machine code; ``python`` is the loop that it was made of."""

    def __init__(self, python: Callable[..., int]) -> None:
        self.python = python
        self.name = python.__name__
        self.__doc__ = python.__doc__
        annotations = {name: kind for name, kind in python.__annotations__.items() if name != "return"}
        self.kinds: list[Kind] = [ARRAYS.get(kind) for kind in annotations.values()]

    def __call__(self, *arguments: object) -> int:
        return self._native(*arguments)

    @cached_property
    def _native(self) -> Native:
        from .kernel_library import library

        return library()[self.name]


def native(address: int, kernel: Kernel, owner: object) -> Native:
    """The function at some address, as one that takes what the kernel takes.

    *owner* has the memory that the function is in, and lives as long as the function is held.
    """
    assert address, f"{kernel.name} is there"
    name, wanted = kernel.name, kernel.kinds
    width = sum(1 if kind is None else 5 + 2 * kind.dimensions for kind in wanted)
    function = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * width)(address)
    held = (function, owner)

    def call(*arguments: object) -> int:
        assert len(arguments) == len(wanted), f"{name} takes {len(wanted)} arguments"
        flat: list[int] = []
        for kind, argument in zip(wanted, arguments, strict=True):
            _flatten(kind, argument, flat)
        result, error = ctypes.c_int64(), ctypes.c_void_p()
        status = held[0](ctypes.addressof(result), ctypes.addressof(error), *flat)
        assert status == 0, f"{name} raises nothing"
        return result.value

    return call


def _flatten(kind: Kind, argument: object, flat: list[int]) -> None:
    if kind is None:
        assert isinstance(argument, int | np.integer), "a whole number"
        flat.append(int(argument))
        return
    assert isinstance(argument, np.ndarray), "an array"
    assert argument.dtype == kind.item, f"an array of {kind.item}"
    assert argument.ndim == kind.dimensions, f"{kind.dimensions} dimensions"
    assert argument.flags.c_contiguous, "no gaps"
    address = argument.__array_interface__["data"][0]
    flat += (0, 0, argument.size, argument.itemsize, address, *argument.shape, *argument.strides)
