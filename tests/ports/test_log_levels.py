"""Levels of loggers: Python's and the simulator's do the same."""

import logging
from collections.abc import Iterator

import pytest

from cordwood.config.loggers import LEVELS
from cordwood.ports import LogLevels
from cordwood.run.log_levels import ProcessLogLevels
from cordwood.sim.log_levels import SimLogLevels


@pytest.fixture(params=["process", "sim"])
def levels(request: pytest.FixtureRequest) -> Iterator[LogLevels]:
    root, logger = logging.getLogger(), logging.getLogger("cordwood")
    before = root.level, logger.level
    yield ProcessLogLevels(logger) if request.param == "process" else SimLogLevels()
    root.setLevel(before[0])
    logger.setLevel(before[1])


def test_every_level_can_be_set(levels: LogLevels) -> None:
    for name in ("root", "cordwood"):
        for level in LEVELS:
            levels.set(name, level)
            assert levels.all()[name] == level


def test_a_logger_without_a_level_has_its_parents(levels: LogLevels) -> None:
    levels.set("cordwood", "DEBUG")
    levels.set("root", "ERROR")
    assert levels.all()["cordwood"] == "DEBUG"
    levels.set("cordwood", None)
    assert levels.all()["cordwood"] == "ERROR"


def test_the_loggers_of_a_process_are_the_brokers() -> None:
    """A broker may be part of a program that has loggers of its own."""
    for name in ("elsewhere", "given", "given.below", "given.way.below", "givens"):
        logging.getLogger(name)
    found = ProcessLogLevels(logging.getLogger("given")).all()
    assert set(found) == {"root", "given", "given.below", "given.way.below"}


@pytest.mark.parametrize(("number", "level"), [(1, "TRACE"), (7, "DEBUG"), (25, "WARN"), (99, "FATAL")])
def test_a_level_between_two_has_the_name_of_the_next(number: int, level: str) -> None:
    logger = logging.getLogger("between")
    logger.setLevel(number)
    assert ProcessLogLevels(logger).all()["between"] == level
