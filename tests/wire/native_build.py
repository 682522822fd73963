"""The codec in C: that of this build or, where the sources run as they are, built for the tests."""

import fcntl
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from functools import cache
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from cordwood.ports import Chunk, FileSlice
from cordwood.wire import runtime
from cordwood.wire.layout import layout
from cordwood.wire.types import spec_of
from support.missing import missing

NAME = "cordwood.wire._native"
SOURCE = Path(__file__).resolve().parents[2] / "native"
BUILT = SOURCE.parent / ".cache/native"


@cache
def native() -> ModuleType:
    if NAME in sys.modules:  # the package has imported it
        return sys.modules[NAME]
    loader = ExtensionFileLoader(NAME, str(native_file()))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    set_up(module)
    return module


def set_up(module: ModuleType) -> None:
    """As the package does it."""
    module.set_up(runtime.make_uuid, FileSlice, runtime.CHUNK_BYTES_MIN)


def left_alone(*_: object) -> NoReturn:
    raise AssertionError("this was left to the generated function")


def decoder(cls: type, version: int, otherwise: Callable[..., Any] = left_alone) -> Callable[..., tuple[Any, int]]:
    found: Callable[..., tuple[Any, int]] = native().Decoder(layout(spec_of(cls), version), otherwise, 100_000)
    return found


def encoder(cls: type, version: int, otherwise: Callable[..., Any] = left_alone) -> Callable[[Any], list[Chunk]]:
    found: Callable[[Any], list[Chunk]] = native().Encoder(layout(spec_of(cls), version), otherwise)
    return found


def native_file() -> Path:
    if NAME in sys.modules:
        return Path(str(sys.modules[NAME].__file__))
    return _built()


def _built() -> Path:
    """One for each state of the source and each Python, kept. The first worker builds it, and others wait for that."""
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in sorted(SOURCE.iterdir()))).hexdigest()[:16]
    target = BUILT / f"native-{digest}{suffix}"
    BUILT.mkdir(parents=True, exist_ok=True)
    with (BUILT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            _build(target)
    return target


def _build(target: Path) -> None:
    made = target.with_stem(f"making-{os.getpid()}")
    include = sysconfig.get_path("include")
    link = shlex.split(sysconfig.get_config_var("LDSHARED"))
    if shutil.which(link[0]) is None or not Path(include, "Python.h").exists():
        missing("needs a C compiler and Python's headers (apt install gcc python3-dev)")
    warn = ["-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers"]
    options = ["-O2", "-fPIC", *warn, f"-I{include}"]
    subprocess.run([*link, *options, *map(str, sorted(SOURCE.glob("*.c"))), "-o", str(made)], check=True)
    made.replace(target)
