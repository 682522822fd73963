"""The checksum of record batches, by the ``crc32c`` package's extension module.

The package itself, as it is imported, has its version looked up among all that is installed. That takes longer than any
other import of a broker, or of a Spark task, so the extension is loaded without it.
"""

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Final, cast

from cordwood.ports import Buffer


def _extension() -> ModuleType:
    package = find_spec("crc32c")
    found = package and PathFinder.find_spec("_crc32c", package.submodule_search_locations)
    if not found or not found.loader:
        import crc32c

        return crc32c
    module = module_from_spec(found)
    found.loader.exec_module(module)
    return module


crc32c: Final = cast(Callable[[Buffer], int], _extension().crc32c)
