"""Everything about the package is in ``pyproject.toml``; this file is for the compiled build, which is made on request:

    pip install mypy setuptools
    CORDWOOD_COMPILE=1 pip install --no-build-isolation .

compiles the modules that every request passes through, with mypyc, and the codec of messages, which is written in C.
The sources stay as they are, and the broker behaves the same; ``docs/decisions/011-compiled-modules.md`` says what is
gained.

``make compiled`` does it twice: ``count`` makes a build that counts what runs, and ``counted``, after that build was
trained, makes one that is laid out accordingly. The counts are in ``build/``, beside the object files.
"""

import os
from glob import glob

from setuptools import Extension, setup

# Three kinds of modules cannot be listed here: those with a lambda or an inner function on the path of requests, which
# are cycles of references when compiled; those that declare wire messages; and those with a NamedTuple that has a field
# of type object, which mypyc builds but which cannot be imported. `make compiled` checks that all can be imported.
COMPILED = """
    effects ids ports
    coordinator/deadlines coordinator/outcome coordinator/shard
    group/committed group/groups group/memory group/routing group/state group/timers
    group/classic/answers group/classic/group group/classic/heartbeats group/classic/joiner group/classic/joining
    group/classic/member group/classic/rebalance group/classic/roster group/classic/syncing group/classic/turn
    group/consumer/draft group/consumer/group group/consumer/heartbeat group/consumer/joining group/consumer/member
    group/consumer/owners group/consumer/reconcile group/consumer/records group/consumer/request group/consumer/steps
    group/consumer/subscriptions group/consumer/target group/consumer/topics group/consumer/weight
    group/offsets/apply group/offsets/commit
    broker/acks broker/callers broker/coordinators broker/fetcher broker/in_sync broker/leaders broker/peers
    broker/read_replicas broker/replicas broker/replication broker/throttle
    broker/handlers/consumer_group_heartbeat broker/handlers/fetch broker/handlers/heartbeat broker/handlers/join_group
    broker/handlers/offset_commit broker/handlers/sync_group
    record/build
    broker/broker broker/connection broker/dispatch broker/fetch_sessions broker/timers broker/handlers/produce
    log/epochs log/index log/log log/produced log/producers log/replay log/scan log/search log/segment
    partition/follower partition/partition partition/truncation
    record/batch
    run/client_socket run/clock run/disk run/lease run/peer_link run/receive_buffers run/requests
    wire/client_frame wire/envelope wire/frame wire/runtime
"""

# Code that the training never reached is compiled as if there were no counts, because it may well be hot in use.
# All threads share the counters, which may therefore be off by a few.
OPTIONS = {
    "1": [],
    "count": ["-fprofile-generate", "-fprofile-update=prefer-atomic"],
    "counted": ["-fprofile-use", "-fprofile-partial-training", "-fprofile-correction", "-Wno-missing-profile"],
}

wanted = os.environ.get("CORDWOOD_COMPILE", "")
if wanted not in ("", "0", *OPTIONS):
    raise SystemExit(f"CORDWOOD_COMPILE={wanted}: it is 1 to compile the hot modules, and 0 or nothing not to")

if wanted in OPTIONS:
    from mypyc.build import mypycify

    modules = [f"src/cordwood/{name}.py" for name in COMPILED.split()]
    # Types are `make check`'s business; here other packages, which have them, may not be there yet.
    lenient = [
        "--follow-imports=silent",
        "--ignore-missing-imports",
        "--no-warn-return-any",
        "--no-warn-unused-ignores",
    ]
    codec = Extension("cordwood.wire._native", sorted(glob("native/*.c")), depends=sorted(glob("native/*.h")))
    extensions = [codec, *mypycify([*lenient, *modules], group_name="cordwood")]
    for extension in extensions:
        extension.extra_compile_args += OPTIONS[wanted]
        extension.extra_link_args += OPTIONS[wanted]
else:
    extensions = []

setup(ext_modules=extensions)
