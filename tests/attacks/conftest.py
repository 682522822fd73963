"""One broker for each file of attacks."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from attacks.arena import SETTINGS, Arena
from support.process import BrokerProcess
from support.raw import RawClient


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the attacks of one file on one worker: they share its broker."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


@pytest.fixture(scope="module")
def arena(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    """A file may have settings of its own, in ``ARENA_SETTINGS``, and run its broker under ``ARENA_WRAPPER``."""
    own, wrapper = getattr(request.module, "ARENA_SETTINGS", {}), getattr(request.module, "ARENA_WRAPPER", ())
    arena = Arena(tmp_path_factory.mktemp("arena"), {**SETTINGS, **own}, wrapper)
    yield arena
    arena.close()


@pytest.fixture
def broker(arena: Arena) -> Iterator[BrokerProcess]:
    """The broker to attack; afterwards nobody else may have noticed."""
    arena.begin()
    yield arena.process
    arena.check()


@pytest.fixture
def client(broker: BrokerProcess) -> Iterator[RawClient]:
    with RawClient(broker.bootstrap) as client:
        yield client


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name that no other test uses, legal as a topic's."""
    return "".join(letter if letter.isalnum() else "-" for letter in request.node.name).strip("-")[:200]
