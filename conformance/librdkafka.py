"""librdkafka, a client in C: its test runner, one process for each test so that one that hangs takes no other along.

The whole source tree is in the npm package of a client that is built on it.
"""

import os
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Final

from .suite import FAILED, PASSED, SKIPPED, Outcome, Suite, build, filled, lines_of, tool

PACKAGE: Final = "@confluentinc/kafka-javascript"
VERSION: Final = "1.10.1"
TEST_LIMIT_S: Final = 180.0
SMOKE: Final = "0001 0012 0017 0022 0030 0039 0049"
EVEN: Final = (
    "0002 0008 0014 0016 0018 0020 0026 0034 0036 0038 0040 0042 0044 0048 0050 0054 0056 0060 0064 0068 0070 0076 "
    "0082 0084 0086 0088 0090 0094 0102 0110 0112 0114 0118 0122 0130 0132 0140"
)
# Run a second time with groups of the consumer protocol.
GROUPS: Final = "0018 0030 0034 0040 0050 0056 0102 0118 0130 0140"
# The runner's quick mode would skip all of these.
IN_FULL: Final = "0018 0026 0050 0082 0102 0122 0132"
COLOUR: Final = re.compile(r"\x1b\[\d+m")
ROW: Final = re.compile(r"\| (\d{4}_\w+) +\| +(\w+) \| +[\d.]+s +\| *(.*)")
FAILURE: Final = re.compile(r'### Test "(\d{4}_\w+)" failed')
NEEDS_NO_BROKER: Final = "negative test flags"
ALL_PASSED: Final = "ALL TESTS PASSED"


def fetch() -> Path:
    return filled(f"librdkafka-{VERSION}", _fill)


def _fill(directory: Path) -> None:
    npm = tool("npm", "Debian: apt-get install npm; macOS: brew install node")
    for compiler in ("cc", "c++", "make"):
        tool(compiler, "Debian: apt-get install build-essential; macOS: xcode-select --install")
    build([npm, "pack", "--silent", f"{PACKAGE}@{VERSION}"], directory)
    (archive,) = directory.glob("*.tgz")
    build(["tar", "xzf", archive.name, "--strip-components=3", "package/deps/librdkafka"], directory)
    jobs = f"-j{os.cpu_count()}"
    build(["./configure", "--disable-curl", "--disable-sasl"], directory)
    build(["make", jobs, "libs"], directory)
    build(["make", jobs, "-C", "tests", "build"], directory)


def suite(name: str, numbers: str, protocol: str, left_out: Mapping[str, str]) -> Suite:
    def run(directory: Path, bootstrap: str) -> Iterator[Outcome]:
        # Named after the broker, so that two concurrent runs do not share it.
        conf = directory / f"{bootstrap}.conf"
        conf.write_text(f"bootstrap.servers={bootstrap}\ntest.topic.random=true\n")
        environment = {
            "RDKAFKA_TEST_CONF": str(conf),
            "TEST_KAFKA_VERSION": "3.8.0",
            "TEST_CONSUMER_GROUP_PROTOCOL": protocol,
            "LD_LIBRARY_PATH": "../src:../src-cpp",
            "DYLD_LIBRARY_PATH": "../src:../src-cpp",
        }
        for number in sorted(numbers.split()):
            yield from _run_one(directory / "tests", number, {**environment, "TESTS": number})

    return Suite(name, PACKAGE, VERSION, {"num.partitions": "4"}, left_out, fetch, run)


def _run_one(directory: Path, number: str, environment: Mapping[str, str]) -> Iterator[Outcome]:
    """One number may be several tests. Those that need no broker are not counted."""
    command = ["./test-runner", "-p1", "-L", *(() if number in IN_FULL else ("-Q",))]
    lines = [COLOUR.sub("", line) for line in lines_of(command, directory, environment, TEST_LIMIT_S)]
    rows = [row for line in lines if (row := ROW.match(line)) and NEEDS_NO_BROKER not in row[3]]
    if any(ALL_PASSED in line for line in lines):
        yield from (Outcome(row[1], SKIPPED if row[2] == "SKIPPED" else PASSED, row[3]) for row in rows)
        return
    # The runner aborts when a test fails, mostly before it prints its table; the reason is on the next line.
    failures = [Outcome(found[1], FAILED, below) for line, below in pairwise(lines) if (found := FAILURE.match(line))]
    yield failures[0] if failures else Outcome(number, FAILED, f"it did not come to an end: {''.join(lines[-1:])}")


SUITES: Final = (
    suite(
        "librdkafka",
        f"{SMOKE} {EVEN}",
        "classic",
        {
            "`0098`, `0103`": "transactions",
            "`0126`, `0142`": "SASL",
            "`0170` to `0184`": "share groups (KIP-932)",
            "`0052`": "it calls Kafka's shell scripts",
            "`0028`": "librdkafka lists it as a known issue",
            "`0092`": "it sets `message.format.version`, which Kafka 4 does not have",
            "`0150`, and all that the runner calls local": "they need no broker",
            "what the runner's quick mode skips, but for the tests of which it would leave nothing": "time",
            "odd numbers outside the smoke set": "time",
        },
    ),
    suite(
        "librdkafka-kip848",
        GROUPS,
        "consumer",
        {
            "tests without groups": "they are in the row above",
            "`0132`": "it is about assignors of the classic protocol",
            "`0026`, `0122`": "time",
        },
    ),
)
