"""Everything about the package stands in ``pyproject.toml``. This file is for the build that is asked for by name:

    pip install mypy setuptools
    CORDWOOD_COMPILE=1 pip install --no-build-isolation .

compiles the modules that every request passes through, with mypyc. The sources stay as they are, and so does what the
broker does; ``docs/decisions/011-compiled-modules.md`` has what it wins.
"""

import os

from setuptools import setup

# None with a lambda or an inner function in what requests pass through: compiled, these are cycles of references.
COMPILED = """
    effects ports
    broker/broker broker/connection broker/dispatch broker/fetch_sessions broker/timers broker/handlers/produce
    log/log log/produced log/producers log/scan log/segment
    partition/partition
    record/batch
    run/client_socket run/clock run/disk
    wire/frame wire/runtime
"""

if os.environ.get("CORDWOOD_COMPILE") == "1":
    from mypyc.build import mypycify

    modules = [f"src/cordwood/{name}.py" for name in COMPILED.split()]
    # Types are `make check`'s business; here other packages, which have them, may not be there yet.
    lenient = [
        "--follow-imports=silent",
        "--ignore-missing-imports",
        "--no-warn-return-any",
        "--no-warn-unused-ignores",
    ]
    extensions = mypycify([*lenient, *modules], group_name="cordwood")
else:
    extensions = []

setup(ext_modules=extensions)
