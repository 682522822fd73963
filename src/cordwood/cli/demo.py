"""``cordwood demo``: a broker, a group of consumers, and a job on Spark, in a few readable lines.

It checks what it shows: anything that is lost, duplicated, out of order or added up wrongly ends it with an error. If
Spark cannot run, it says what to install, and shows the rest.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

from cordwood.client.connect import ClientError, Cluster
from cordwood.errors import ConfigError

from .demo_orders import make_orders, show_group
from .demo_spark import show_job
from .options import positive
from .spark_ready import missing_for_spark

# A new group waits three seconds for more members. Two threads of one process need no such delay.
REBALANCE_DELAY = "group.initial.rebalance.delay.ms=300"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--orders", type=positive, default=100_000, help="how many orders to send; default: 100000")
    parser.add_argument("--no-spark", action="store_true", help="only the broker, the producer and the consumers")
    parser.add_argument("--plot", metavar="FILE", help="also draw the progress of the job on Spark, as a PNG")


def run(arguments: argparse.Namespace) -> int:
    if arguments.plot is not None and arguments.no_spark:
        raise ConfigError("--plot draws the job on Spark; leave out --no-spark")
    with tempfile.TemporaryDirectory(prefix="cordwood-demo-") as directory, _broker(f"{directory}/logs") as address:
        cluster = Cluster(address)
        orders = make_orders(arguments.orders, time.time_ns() // 1_000_000)
        show_group(cluster, orders)
        if not arguments.no_spark:
            print()
            if (missing := missing_for_spark()) is not None:
                print(f"The second half is a job on Spark. {missing}.")
            else:
                show_job(cluster, orders, f"{directory}/job", arguments.plot)
    print("\nThe broker stopped cleanly, and its data is gone. Start your own with `cordwood serve`.")
    return 0


@contextmanager
def _broker(directory: str) -> Iterator[str]:
    """The broker, started in a process of its own as a user would start it; yields its address."""
    start_s = time.monotonic()
    options = ["--port", "0", "--data", directory, "--log-level", "warning", "--set", REBALANCE_DELAY]
    command = [sys.executable, "-m", "cordwood", "serve", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            ready = re.search(r"ready at (\S+),", process.stdout.readline())
            if ready is None:
                raise ClientError("the broker did not start")
            print(f"A broker is ready at {ready[1]}, {time.monotonic() - start_s:.2f} s after it was started.")
            yield ready[1]
        finally:
            process.terminate()
            process.wait()  # the with statement waits only a moment after Ctrl-C, and the files are deleted next
    if process.returncode != 0:
        raise ClientError(f"the broker ended with status {process.returncode}")
