"""What every metadata store must do, whoever keeps the nodes."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from cordwood.errors import StoreConflict
from cordwood.ports import Check, Create, Delete, MetadataChange, MetadataStore, Node, Set, StoreOp
from cordwood.run.sqlite_store import SqliteStore
from cordwood.sim.store import SimStore
from support.zookeeper import open_store

Reopen = Callable[[MetadataStore], MetadataStore]


@pytest.fixture(params=["sqlite", "sim", "zookeeper", "zookeeper, shared"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[MetadataStore, Reopen]]:
    """A store, and how to open it again after its owner is gone."""
    if request.param == "sim":
        store = SimStore()
        yield store, lambda store: store
        return
    open_it = _opener(request, tmp_path)
    opened = [open_it()]

    def reopen(store: MetadataStore) -> MetadataStore:
        store.close()
        opened.append(open_it())
        return opened[-1]

    yield opened[0], reopen
    opened[-1].close()


def _opener(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], MetadataStore]:
    if request.param == "sqlite":
        return partial(SqliteStore, str(tmp_path / "metadata.sqlite"))
    connect: str = request.getfixturevalue("zookeeper")
    return partial(open_store if request.param == "zookeeper" else Told, connect)


class Told:
    """A store that tells of changes by itself: what ``multi`` has told is what it would have returned."""

    def __init__(self, connect: str) -> None:
        self._told: list[MetadataChange] = []
        self._store = open_store(connect, deliver=self._told.extend)
        self._store.load()
        self._store.begin()

    def load(self) -> Iterable[Node]:
        return self._store.load()

    def multi(self, operations: Sequence[StoreOp], /) -> MetadataChange:
        assert self._store.multi(operations) == MetadataChange([], [])
        (change,) = self._told
        self._told.clear()
        return change

    def purge(self) -> None:
        self._store.purge()

    def close(self) -> None:
        self._store.close()


@pytest.fixture
def store(opened: tuple[MetadataStore, Reopen]) -> MetadataStore:
    return opened[0]


def test_a_new_node_has_version_zero(store: MetadataStore) -> None:
    assert store.multi([Create("/a", b"1")]).nodes == [Node("/a", b"1", 0)]
    assert list(store.load()) == [Node("/a", b"1", 0)]


def test_each_set_counts_the_version(store: MetadataStore) -> None:
    store.multi([Create("/a", b"1")])
    assert store.multi([Set("/a", b"2", 0)]).nodes == [Node("/a", b"2", 1)]
    assert store.multi([Set("/a", b"3")]).nodes == [Node("/a", b"3", 2)]


@pytest.mark.parametrize(
    "operation",
    [
        Create("/a", b""),
        Set("/a", b"", 7),
        Set("/b", b""),
        Delete("/a", 7),
        Delete("/b"),
        Check("/a", 7),
        Check("/b", 0),
    ],
)
def test_a_refused_operation_undoes_the_whole_multi(
    store: MetadataStore, operation: Create | Set | Delete | Check
) -> None:
    store.multi([Create("/a", b"1")])
    with pytest.raises(StoreConflict):
        store.multi([Create("/c", b"new"), Set("/a", b"changed", 0), operation])
    assert list(store.load()) == [Node("/a", b"1", 0)]


def test_a_later_operation_sees_an_earlier_one(store: MetadataStore) -> None:
    store.multi([Create("/a", b"1"), Set("/a", b"2", 0), Check("/a", 1)])
    assert list(store.load()) == [Node("/a", b"2", 1)]


def test_parents_of_a_new_node_need_not_be_there(store: MetadataStore) -> None:
    store.multi([Create("/a/b/c", b"1")])
    store.multi([Create("/a/b/d", b"2"), Create("/a/e/f", b"3")])
    store.multi([Delete("/a/b/c")])
    assert list(store.load()) == [Node("/a/b/d", b"2", 0), Node("/a/e/f", b"3", 0)]


def test_a_node_may_come_after_those_below_it(store: MetadataStore) -> None:
    store.multi([Create("/a/b/c", b"1")])
    store.multi([Create("/a", b"2")])
    assert [(node.path, node.data) for node in store.load()] == [("/a", b"2"), ("/a/b/c", b"1")]
    with pytest.raises(StoreConflict):
        store.multi([Create("/a", b"3")])


def test_delete_takes_the_children_and_no_neighbour(store: MetadataStore) -> None:
    paths = ["/t", "/t-", "/t/p", "/t/p/0", "/t0", "/tt"]
    store.multi([Create(path, b"") for path in paths])
    store.multi([Delete("/t")])
    assert [node.path for node in store.load()] == ["/t-", "/t0", "/tt"]


def test_what_is_deleted_and_made_anew_has_none_of_its_old_children(store: MetadataStore) -> None:
    store.multi([Create("/t", b""), Create("/t/p/0/state", b""), Create("/t/p/1/state", b"")])
    store.multi([Create("/t/p/2/state", b""), Delete("/t"), Create("/t", b"new"), Create("/t/p/0/state", b"new")])
    assert list(store.load()) == [Node("/t", b"new", 0), Node("/t/p/0/state", b"new", 0)]


def test_a_deleted_node_starts_again_at_version_zero(store: MetadataStore) -> None:
    store.multi([Create("/a", b"1"), Set("/a", b"2"), Delete("/a"), Create("/a", b"3")])
    assert list(store.load()) == [Node("/a", b"3", 0)]


def test_what_was_written_is_there_after_reopening(opened: tuple[MetadataStore, Reopen]) -> None:
    store, reopen = opened
    store.multi([Create("/a", b"1"), Create("/b", b"2")])
    assert [node.path for node in reopen(store).load()] == ["/a", "/b"]
