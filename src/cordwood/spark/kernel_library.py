"""The kernels' machine code in this process: loaded from its file, or compiled, and then kept for all others.

The file's name covers everything that the code depends on: the kernels' text, LLVM's version, the processor. Its
contents begin with their own hash, so that a damaged file is compiled anew.
"""

import hashlib
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

import llvmlite
import llvmlite.binding as llvm

from . import kernel_cache, kernels, kernels_json, kernels_write
from .machine import Kernel, Native, native

MODULES: Final = (kernels, kernels_json, kernels_write)
_HASH_BYTES: Final = 32


@cache
def library() -> Mapping[str, Native]:
    """Every kernel by its name, ready to be called."""
    path = kernel_cache.directory() / file_name()
    code = _stored(path)
    if code is None:
        from . import kernel_build  # this loads numba

        try:
            code = kernel_build.object_code(MODULES)
        except kernel_build.UnlikeExpected:
            return kernel_build.dispatchers(MODULES)
        _store(path, code)
    return loaded(code)


def file_name() -> str:
    """
    >>> file_name().startswith("kernels-")
    True
    """
    about = (llvmlite.__version__, llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())
    machine = hashlib.sha256(repr(about).encode()).hexdigest()[:16]
    return f"{kernel_cache.prefix(module.__file__ or '' for module in MODULES)}{machine}.o"


def loaded(code: bytes) -> Mapping[str, Native]:
    """Machine code, as functions."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple().create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    kernels = [value for module in MODULES for value in vars(module).values() if isinstance(value, Kernel)]
    return {kernel.name: native(engine.get_function_address(kernel.name), kernel, engine) for kernel in kernels}


def _stored(path: Path) -> bytes | None:
    """What the file holds; None if there is none, or it is not intact."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    code = data[_HASH_BYTES:]
    return code if hashlib.sha256(code).digest() == data[:_HASH_BYTES] else None


def _store(path: Path, code: bytes) -> None:
    """If this fails, the next process compiles again."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(descriptor, "wb") as file:
            file.write(hashlib.sha256(code).digest() + code)
        Path(temporary).replace(path)
