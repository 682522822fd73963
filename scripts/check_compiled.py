"""The last step of ``make compiled``: was everything compiled that should be, and can it be imported?

Some classes compile with mypyc but cannot be created when their module is imported (such as a ``NamedTuple`` with a
field of type ``object``); otherwise the first to notice would be whoever starts the broker. This script must not run
from the source directory, or it would import the sources.
"""

import importlib
import re
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

SETUP = Path(__file__).resolve().parent.parent / "setup.py"


def main() -> int:
    (listed,) = re.findall(r'^COMPILED = """(.*?)"""', SETUP.read_text(), re.MULTILINE | re.DOTALL)
    names = ["cordwood.wire._native", *("cordwood." + name.replace("/", ".") for name in listed.split())]
    for name in (*names, "cordwood.cli.main", "cordwood.run.server"):
        importlib.import_module(name)
    plain = [name for name in names if not _file(name).endswith(tuple(EXTENSION_SUFFIXES))]
    if plain:
        print(f"not compiled: {', '.join(plain)}", file=sys.stderr)
        return 1
    print(f"{len(names)} modules are compiled and can be imported")
    return 0


def _file(name: str) -> str:
    return sys.modules[name].__file__ or ""


if __name__ == "__main__":
    sys.exit(main())
