"""The checksum of record batches: the ``crc32c`` package's, or our own (``native/crc.c``).

The compiled build has its own, on processors where that is faster. Of the package, only the extension module is loaded:
importing the package itself looks up its version among all installed packages, which takes longer than any other import
of a broker or of a Spark task.
"""

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Final

from cordwood.ports import Buffer
from cordwood.wire.native import native


def _extension() -> ModuleType:
    package = find_spec("crc32c")
    found = package and PathFinder.find_spec("_crc32c", package.submodule_search_locations)
    if not found or not found.loader:
        import crc32c

        return crc32c
    module = module_from_spec(found)
    found.loader.exec_module(module)
    return module


crc32c: Final[Callable[[Buffer], int]] = getattr(native, "crc32c", None) or _extension().crc32c
