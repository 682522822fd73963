"""Compiled loops, called without the compiler.

``kernels.py``, ``kernels_json.py`` and ``kernels_write.py`` hold loops as plain Python. A ``Kernel`` among them is
called as machine code: numba compiles all kernels together, once on a machine (`kernel_build.py`), and the result is
kept in a file. Every later process only loads the file, which takes a twentieth of the time that numba takes to load.

A kernel takes integers and arrays of the kinds in ``ARRAYS``, and returns an integer. The calling convention is the one
that numba uses internally: each array is passed as (owner, owner, items, item size, address, shape…, strides…), the
first two null; the result is written where the first argument points. The builder checks that this is so.
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
    """A kind of array: its item type, and how many dimensions it has."""

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
"""The kind of a parameter; None is an integer."""

Native = Callable[..., int]


class Kernel:
    """One loop. Calling it runs the machine code; ``python`` is the function that was compiled."""

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
    """The function at an address, as one that takes what the kernel takes.

    *owner* holds the memory that contains the function, and is kept alive as long as the function is.
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
