"""franz-go, a client in Go: the tests of its package kgo that talk to a broker, from one test binary."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from .suite import CACHE, FAILED, PASSED, SKIPPED, Outcome, Suite, build, filled, lines_of, tool

MODULE: Final = "github.com/twmb/franz-go"
VERSION: Final = "v1.22.2"
LIMIT_S: Final = 400.0
TESTS: Final = (
    "TestPing|TestGroupSimple|TestClient_Produce|TestClient_ProduceLargeMessages|TestConsumeRegex|"
    "Test848RegexBrokerResolves|TestAddRemovePartitions|TestIssue.*|TestPause.*|TestDirectPartitionPurge|"
    "TestConsumeTopicRetrieval.*|TestConsumeMaxDecompressBatchBytes|TestUnknownGroupOffsetFetchPinned|TestGroupETL|"
    "TestPooling|TestHookPollStart"
)
ENDED: Final = re.compile(r"\s*--- (PASS|FAIL|SKIP): (\S+) \(")
STARTED: Final = re.compile(r"=== RUN +(\S+)")
STATES: Final = {"PASS": PASSED, "FAIL": FAILED, "SKIP": SKIPPED}


def fetch() -> Path:
    return filled(f"franz-go-{VERSION}", _fill)


def _fill(directory: Path) -> None:
    go = tool("go", "Debian: apt-get install golang; macOS: brew install go")
    (directory / "go.mod").write_text("module conformance\n\ngo 1.25\n")
    environment = {"GOFLAGS": "-mod=mod -modcacherw", "GOMODCACHE": str(CACHE / "go")}
    build([go, "get", f"{MODULE}@{VERSION}"], directory, environment)
    build([go, "test", "-c", "-o", "kgo.test", f"{MODULE}/pkg/kgo"], directory, environment)


def run(directory: Path, bootstrap: str) -> Iterator[Outcome]:
    environment = {"KGO_SEEDS": bootstrap, "KGO_TEST_RF": "1", "KGO_TEST_RECORDS": "5000", "KGO_LOG_LEVEL": "none"}
    command = [
        "./kgo.test",
        "-test.v",
        f"-test.timeout={LIMIT_S:.0f}s",
        f"-test.run=^({TESTS})$",
        "-test.skip=TestIssue1377",
    ]
    running: set[str] = set()
    for line in lines_of(command, directory, environment, LIMIT_S + 30):
        if started := STARTED.match(line):
            running.add(started[1])
        elif ended := ENDED.match(line):
            running.discard(ended[2])
            yield Outcome(ended[2], STATES[ended[1]])
    yield from (Outcome(test, FAILED, "it did not end") for test in sorted(running))


SUITE: Final = Suite(
    name="franz-go",
    package=MODULE,
    version=VERSION,
    settings={},
    left_out={
        "`TestTxnEtl`": "transactions",
        "`TestShareGroup…`, `TestConsumeRegexShareSkipsInternal`": "share groups (KIP-932)",
        "`TestSCRAMAuth…`": "SASL",
        "all others of the package": "they need no broker",
    },
    fetch=fetch,
    run=run,
)
