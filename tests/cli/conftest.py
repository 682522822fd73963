"""A broker for all tests of the command line, and a way to run commands against it."""

import io
import logging
import re
import sys
from collections.abc import Iterator

import pytest

from cli.runner import Outcome, Run
from cordwood import Broker
from cordwood.cli.main import main

# Groups that wait for nobody, and members that report often.
IMPATIENT = {
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.min.heartbeat.interval.ms": 200,
    "group.consumer.heartbeat.interval.ms": 200,
}


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    with Broker(settings=IMPATIENT) as running:
        yield running


@pytest.fixture(autouse=True)
def no_handler_is_left() -> Iterator[None]:
    """`serve` writes its log to standard error, which is another stream in every test."""
    logger = logging.getLogger("cordwood")
    handlers, level = list(logger.handlers), logger.level
    yield
    logger.handlers[:] = handlers
    logger.setLevel(level)


@pytest.fixture
def run(broker: Broker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command with the broker's address and with this standard input."""
    monkeypatch.setenv("CORDWOOD_BOOTSTRAP", broker.bootstrap)

    def runner(*arguments: str, stdin: str | bytes = "") -> Outcome:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        status = main(arguments)
        captured = capsys.readouterr()
        return Outcome(status, captured.out, captured.err)

    return runner


@pytest.fixture
def topic(request: pytest.FixtureRequest, run: Run) -> str:
    """A new topic with four partitions, named after the test."""
    name = re.sub(r"[^0-9A-Za-z-]+", "-", str(request.node.name))
    assert run("topics", "create", name, "--partitions", "4").status == 0
    return name
