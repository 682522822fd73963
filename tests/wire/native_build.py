"""The codec in C: that of this build or, where the sources run as they are, built for the tests."""

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from functools import cache
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest

from cordwood.ports import FileSlice
from cordwood.wire import runtime

NAME = "cordwood.wire._native"
SOURCE = Path(__file__).resolve().parents[2] / "native"
BUILT = SOURCE.parent / ".cache/native"


@cache
def native() -> ModuleType:
    if NAME in sys.modules:  # the package has imported it
        return sys.modules[NAME]
    loader = ExtensionFileLoader(NAME, str(_built()))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    module.set_up(runtime.make_uuid, FileSlice, runtime.CHUNK_BYTES_MIN)
    return module


def _built() -> Path:
    """One for each state of the source and each Python, kept. Several workers may build it: the last one stays."""
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in sorted(SOURCE.iterdir()))).hexdigest()[:16]
    target = BUILT / f"native-{digest}{suffix}"
    if not target.exists():
        BUILT.mkdir(parents=True, exist_ok=True)
        made = BUILT / f"making-{os.getpid()}{suffix}"
        include = sysconfig.get_path("include")
        link = shlex.split(sysconfig.get_config_var("LDSHARED"))
        if shutil.which(link[0]) is None or not Path(include, "Python.h").exists():
            pytest.skip("needs a C compiler and Python's headers (apt install gcc python3-dev)")
        warn = ["-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers"]
        options = ["-O2", "-fPIC", *warn, f"-I{include}"]
        subprocess.run([*link, *options, *map(str, sorted(SOURCE.glob("*.c"))), "-o", str(made)], check=True)
        made.replace(target)
    return target
