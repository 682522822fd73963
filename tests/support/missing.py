"""What a machine may lack, such as Java, Maven and kcat: tests that need it are skipped, and say what to install.

Not in CI (the variable ``CI`` is set): there, nobody would see that they did not run, so they fail.
"""

import os
from collections.abc import Generator
from typing import NoReturn

import pytest
from benchmarks.peer import PeerMissingError


def missing(sentence: str) -> NoReturn:
    """End a test for want of something; *sentence* says of what, and how to come by it."""
    if os.environ.get("CI"):
        pytest.fail(sentence, pytrace=False)
    pytest.skip(sentence)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, None, None]:
    """Whoever asks for Kafka's jars, in a fixture or a test, has asked for Java and Maven."""
    try:
        yield
    except PeerMissingError as error:
        missing(str(error))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, None, None]:
    try:
        yield
    except PeerMissingError as error:
        missing(str(error))
