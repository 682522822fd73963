"""kafka-python, a client in Python: the integration tests of its source distribution, run by pytest."""

import re
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Final

from .suite import FAILED, PASSED, SKIPPED, Outcome, Suite, build, filled, lines_of

PACKAGE: Final = "kafka-python"
VERSION: Final = version(PACKAGE)
LIMIT_S: Final = 600.0
TEST_LIMIT_S: Final = 60
FILES: Final = [f"test/integration/test_{kind}_integration.py" for kind in ("admin", "consumer", "producer")]
LAST: Final = re.compile(r"=+ .* in [\d.]+s")
ENDED: Final = re.compile(r"test/integration/\w+\.py::(\S+) .*?(PASSED|FAILED|ERROR|SKIPPED)")
STATES: Final = {"PASSED": PASSED, "FAILED": FAILED, "ERROR": FAILED, "SKIPPED": SKIPPED}

# The distribution lacks the module that starts brokers; since the broker is already running, an empty one will do.
SERVICE: Final = """class ExternalService:
    def __init__(self, host, port): ...
    def stop(self): ...
SpawnedService = ExternalService
"""


def fetch() -> Path:
    return filled(f"{PACKAGE}-{VERSION}", _fill)


def _fill(directory: Path) -> None:
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", PACKAGE]
    build([*download, f"{PACKAGE}=={VERSION}"], directory)
    (archive,) = directory.glob("*.tar.gz")
    build(["tar", "xzf", archive.name, "--strip-components=1"], directory)
    (directory / "test/__init__.py").touch()
    (directory / "test/service.py").write_text(SERVICE)


def run(directory: Path, bootstrap: str) -> Iterator[Outcome]:
    environment = {
        "KAFKA_URI": f"kafka://{bootstrap}",
        "KAFKA_VERSION": "4.3",
        "KAFKA_ROOT": str(directory),
        "PYTHONPATH": ".",
    }
    command = [sys.executable, "-u", "-m", "pytest", *FILES, "-v", "-p", "no:cacheprovider", "--tb=no", "-r", "N"]
    command += ["-o", "addopts=", "-o", "log_level=ERROR", "-k", "not acl and not transactional"]
    command += [f"--timeout={TEST_LIMIT_S}", "--timeout-method=signal"]
    line = ""
    for line in lines_of(command, directory, environment, LIMIT_S):
        if ended := ENDED.match(line):
            yield Outcome(ended[1], STATES[ended[2]])
        elif LAST.match(line):
            return
    yield Outcome("the rest", FAILED, f"pytest did not end: {line}")


SUITE: Final = Suite(
    name="kafka-python",
    package=PACKAGE,
    version=VERSION,
    # As the suite sets up a broker of its own.
    settings={
        "node.id": "0",
        "num.partitions": "4",
        "group.min.session.timeout.ms": "1000",
        "advertised.listeners": "PLAINTEXT://127.0.0.1:{port}",
    },
    left_out={
        "`test_transactional_producer_messages`, `test_transactional_producer_offsets`": "transactions",
        "`test_create_describe_delete_acls`": "access control",
        "`test_ssl_integration.py`, `test_sasl_integration.py`": "TLS and SASL",
    },
    fetch=fetch,
    run=run,
    known={
        "test_alter_replica_log_dirs": "AlterReplicaLogDirs is not served: a broker has one data directory",
        "test_describe_metadata_quorum": "DescribeQuorum is not served: there is no Raft quorum",
    },
)
