"""The store on a real ZooKeeper: what several brokers see of each other, of faults, and of what people do to it."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, closing
from math import inf
from time import monotonic
from typing import Any, TypeVar

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError

from cordwood.errors import ConfigError, PerhapsDone, StorageError, StoreAway, StoreConflict
from cordwood.ports import Check, Create, Delete, MetadataChange, Node, SessionState, Set, StoreOp
from cordwood.run.zookeeper_address import Address
from cordwood.run.zookeeper_client import ZooKeeperClient
from cordwood.run.zookeeper_feed import FEED, change_numbers, change_path
from cordwood.run.zookeeper_server import Ensemble, ZooKeeperServer, free_ports
from cordwood.run.zookeeper_store import Credentials
from support.proxy import Proxy
from support.waiting import eventually, in_time
from support.zookeeper import open_store

T = TypeVar("T")
SESSION_MS = 1_500
ALIVE, SUSPENDED, LOST = SessionState.ALIVE, SessionState.SUSPENDED, SessionState.LOST


class Witness:
    """A store, and all that it tells, in the order in which it tells it."""

    def __init__(self, connect: str, *, begin: bool = True, **options: Any) -> None:  # noqa: ANN401
        self.events: list[tuple[float, object]] = []
        self.nodes: dict[str, Node] = {}
        self.wrong: list[str] = []
        self._lock = threading.Lock()
        self.store = open_store(
            connect, deliver=self._changed, reloaded=self._reloaded, session_changed=self._note, **options
        )
        if begin:
            self.nodes = {node.path: node for node in self.store.load()}
            self.store.begin()

    def _changed(self, changes: Sequence[MetadataChange]) -> None:
        with self._lock:
            for change in changes:
                self._apply(change)
                self.events.append((monotonic(), change))

    def _apply(self, change: MetadataChange) -> None:
        for path in change.deleted:
            for gone in [name for name in self.nodes if name == path or name.startswith(path + "/")]:
                del self.nodes[gone]
        for node in change.nodes:
            before = self.nodes.get(node.path)
            if before is not None and before.version >= node.version:
                self.wrong.append(f"{node} came after {before}")
            self.nodes[node.path] = node

    def _reloaded(self, nodes: Sequence[Node]) -> None:
        with self._lock:
            self.nodes = {node.path: node for node in nodes}
            self.events.append((monotonic(), list(nodes)))

    def _note(self, state: SessionState) -> None:
        self.events.append((monotonic(), state))

    @property
    def told(self) -> list[object]:
        return [event for _, event in list(self.events)]

    @property
    def states(self) -> list[SessionState]:
        return [event for event in self.told if isinstance(event, SessionState)]

    @property
    def changes(self) -> list[MetadataChange]:
        return [event for event in self.told if isinstance(event, MetadataChange)]

    @property
    def reloads(self) -> int:
        return sum(isinstance(event, list) for event in self.told)

    def when(self, wanted: object) -> float:
        """The moment at which it told of this first."""
        return next(moment for moment, event in list(self.events) if event == wanted)

    def data(self, path: str) -> bytes | None:
        with self._lock:
            node = self.nodes.get(path)
        return None if node is None else node.data

    def sees(self, path: str, data: bytes | None, within_s: float = 10.0) -> None:
        eventually(lambda: self.data(path) == data, within_s=within_s, what=f"{path} is {data!r}")

    def comes_to(self, state: SessionState, within_s: float = 10.0) -> None:
        eventually(lambda: self.states[-1:] == [state], within_s=within_s, what=str(state))

    def has_told(self, count: int) -> None:
        eventually(lambda: len(self.changes) == count, what=f"{count} changes")

    def multi(self, *operations: StoreOp) -> None:
        assert self.store.multi(operations) == MetadataChange([], [])

    def close(self) -> None:
        self.store.close()
        self.store.check()
        assert self.wrong == []


Open = Callable[..., Witness]


@pytest.fixture
def opened() -> Iterator[Open]:
    """Opens stores, and closes them in the end."""
    with ExitStack() as stack:
        yield lambda connect, **options: stack.enter_context(closing(Witness(connect, **options)))


@pytest.fixture
def raw(zookeeper: str) -> Iterator[KazooClient]:
    """What a person does with ZooKeeper's own tools."""
    client = KazooClient(zookeeper)
    client.start_async().wait(10)
    yield client
    client.stop()
    client.close()


@pytest.fixture
def proxy(zookeeper_server: ZooKeeperServer) -> Iterator[Proxy]:
    with Proxy("127.0.0.1", zookeeper_server.port) as proxy:
        yield proxy


def through(proxy: Proxy, connect: str) -> str:
    return proxy.address + connect[connect.index("/") :]


# ------------------------------------------------------------------ the feed


def test_others_are_told_what_changed_with_its_version(zookeeper: str, opened: Open) -> None:
    one, two = opened(zookeeper), opened(zookeeper)
    one.multi(Create("/a", b"1"), Create("/b", bytes(range(256))))
    one.multi(Set("/a", "ä".encode(), 0), Delete("/b"))
    two.sees("/a", "ä".encode())
    assert two.changes == [
        MetadataChange([Node("/a", b"1", 0), Node("/b", bytes(range(256)), 0)], []),
        MetadataChange([Node("/a", "ä".encode(), 1)], ["/b"]),
    ]
    assert two.states == [ALIVE]


def test_a_multi_returns_when_it_has_been_told_of(zookeeper: str, opened: Open) -> None:
    one, two = opened(zookeeper), opened(zookeeper)
    one.multi(Create("/a", b"0"))
    two.multi(Set("/a", b"1"))
    assert two.data("/a") == b"1"
    one.multi(Set("/a", b"2"))
    assert one.data("/a") == b"2"
    assert [change.nodes[0].version for change in one.changes] == [0, 1, 2]


def test_all_see_the_same_changes_in_the_same_order(zookeeper: str, opened: Open) -> None:
    stores = [opened(zookeeper) for _ in range(3)]

    def write(number: int) -> None:
        for count in range(30):
            stores[number].multi(Create(f"/{number}/{count}", b""), Set("/shared", b"%d %d" % (number, count)))

    stores[0].multi(Create("/shared", b""))
    threads = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for store in stores:
        store.has_told(91)
    assert stores[0].changes == stores[1].changes == stores[2].changes
    assert [change.nodes[-1].version for change in stores[0].changes] == list(range(91))
    assert all(store.reloads == 0 for store in stores)


def test_what_changes_before_begin_is_returned_with_the_next_multi(zookeeper: str, opened: Open) -> None:
    one, two = opened(zookeeper, begin=False), opened(zookeeper)
    assert list(one.store.load()) == []
    two.multi(Create("/a", b""), Create("/b", b""))
    two.multi(Delete("/a"))
    change = one.store.multi([Create("/c", b"")])
    assert change == MetadataChange([Node("/b", b"", 0), Node("/c", b"", 0)], ["/a"])
    two.multi(Create("/d", b""))
    eventually(lambda: one.store.multi([]).nodes == [] or True)
    one.store.begin()
    assert one.states == [ALIVE]


def test_what_changes_between_load_and_begin_is_told_at_begin(zookeeper: str, opened: Open) -> None:
    one, two = opened(zookeeper, begin=False), opened(zookeeper)
    one.store.load()
    two.multi(Create("/a", b""))
    two.multi(Create("/b", b""))
    one.store.begin()
    one.sees("/b", b"")
    assert one.states == [ALIVE]
    assert [change.nodes[0].path for change in one.changes] == ["/a", "/b"]


def test_loading_again_forgets_what_was_held_back(zookeeper: str, opened: Open) -> None:
    one = opened(zookeeper, begin=False)
    one.store.multi([Create("/a", b"")])
    one.store.multi([Create("/b", b"")])
    assert [node.path for node in one.store.load()] == ["/a", "/b"]
    one.store.begin()
    one.multi(Create("/c", b""))
    assert [change.nodes[0].path for change in one.changes] == ["/c"]


def test_clusters_on_one_zookeeper_do_not_see_each_other(zookeeper: str, opened: Open) -> None:
    one, two = opened(zookeeper + "/one"), opened(zookeeper + "/two")
    one.multi(Create("/a", b"one"))
    two.multi(Create("/a", b"two"))
    one.multi(Set("/a", b"one more"))
    assert [list(store.store.load()) for store in (one, two)] == [[Node("/a", b"one more", 1)], [Node("/a", b"two", 0)]]


def test_everything_is_read_as_of_one_moment(zookeeper: str, opened: Open) -> None:
    one, two = opened(zookeeper), opened(zookeeper, begin=False)
    one.multi(*[Create(f"/t/{number}/state", b"0") for number in range(200)])
    ended = threading.Event()

    def write() -> None:
        count = 0
        while not ended.is_set():
            count += 1
            one.multi(*[Set(f"/t/{number}/state", b"%d" % count) for number in range(0, 200, 40)])

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(20):
            nodes = {node.path: node for node in two.store.load()}
            assert len({nodes[f"/t/{number}/state"].data for number in range(0, 200, 40)}) == 1
    finally:
        ended.set()
        writer.join()


# ------------------------------------------------------------------ conflicts, parents, children


def test_before_everything_is_read_something_is_written(zookeeper: str, opened: Open, raw: KazooClient) -> None:
    """Only so it is what there is now: a server of an ensemble may be seconds behind, and a new session cannot tell.

    Whoever believes it takes a topic that is not there yet for one that is gone, with its files.
    """
    store = opened(zookeeper, begin=False).store
    versions = []
    for _ in range(3):
        list(store.load())
        versions.append(raw.get(FEED)[1].version)
    assert versions == [1, 2, 3]


def test_of_two_who_change_the_same_version_one_is_refused(zookeeper: str, opened: Open) -> None:
    one, two = opened(zookeeper), opened(zookeeper)
    one.multi(Create("/a", b""))
    two.multi(Set("/a", b"two", 0))
    with pytest.raises(StoreConflict, match="/a has another version"):
        one.multi(Create("/b", b""), Set("/a", b"one", 0))
    assert one.data("/a") == b"two"
    assert "/b" not in one.nodes


def test_who_is_refused_has_been_told_why(zookeeper: str, opened: Open) -> None:
    one, two = opened(zookeeper), opened(zookeeper)
    two.multi(Create("/brokers/ids/2", b"two", ephemeral=True))
    one.sees("/brokers/ids/2", b"two")
    for number in range(20):
        two.multi(Create("/a", b"") if number == 0 else Set("/a", b"", number - 1))
        with pytest.raises(StoreConflict):
            one.multi(Check("/a", number + 1))
        assert one.nodes["/a"].version == number
    two.close()
    with pytest.raises(StoreConflict):
        one.multi(Check("/brokers/ids/2", 0))
    assert "/brokers/ids/2" not in one.nodes


def test_a_change_without_a_version_always_happens(zookeeper: str, opened: Open) -> None:
    stores = [opened(zookeeper) for _ in range(3)]
    stores[0].multi(Create("/a", b""))

    def write(store: Witness) -> None:
        for _ in range(20):
            store.multi(Set("/a", b"again"))

    threads = [threading.Thread(target=write, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert next(iter(stores[0].store.load())).version == 60


def test_a_node_can_be_made_below_parents_that_somebody_has_just_deleted(zookeeper: str, opened: Open) -> None:
    one, two = opened(zookeeper), opened(zookeeper)
    one.multi(Create("/t", b""), Create("/t/p/0/state", b""))
    one.multi(Create("/t/p/1/state", b""))
    two.multi(Delete("/t"))
    one.multi(Create("/t", b"new"), Create("/t/p/0/state", b"new"))
    two.multi(Delete("/t"))
    one.multi(Create("/t/p/0/state", b"newer"))
    assert [node.path for node in two.store.load()] == ["/t/p/0/state"]


def test_delete_takes_children_that_others_make_at_the_same_time(zookeeper: str, opened: Open) -> None:
    one, two = opened(zookeeper), opened(zookeeper)
    for _ in range(20):
        one.multi(Create("/t", b""), Create("/t/0", b""))
        maker = threading.Thread(
            target=lambda: two.store.multi([Create(f"/t/{number}", b"") for number in range(1, 4)])
        )
        maker.start()
        one.multi(Delete("/t"))
        maker.join()
        left = [node.path for node in one.store.load()]
        assert left in ([], ["/t/1", "/t/2", "/t/3"])  # the maker came second, and made parents anew
        for path in left:
            one.multi(Delete(path))


def test_a_check_guards_the_whole_multi(zookeeper: str, opened: Open) -> None:
    one = opened(zookeeper)
    one.multi(Create("/controller_epoch", b"1"))
    one.multi(Check("/controller_epoch", 0), Create("/a", b""))
    one.multi(Set("/controller_epoch", b"2", 0))
    with pytest.raises(StoreConflict, match="/controller_epoch"):
        one.multi(Check("/controller_epoch", 0), Create("/b", b""))


def test_a_multi_that_is_too_large_is_refused_and_costs_nothing(zookeeper: str, opened: Open) -> None:
    one = opened(zookeeper)
    with pytest.raises(StorageError, match="at once; nothing was changed"):
        one.multi(*[Create(f"/t/{number}", bytes(100_000)) for number in range(12)])
    one.multi(Create("/a", b""))
    assert one.states == [ALIVE]


def test_500_partitions_with_the_longest_names_fit_into_one_multi(zookeeper: str, opened: Open) -> None:
    one = opened(zookeeper, credentials=Credentials("cordwood" * 4, "secret"))
    topic = "t" * 249
    paths = [f"/brokers/topics/{topic}/partitions/{number}/state" for number in range(10_000, 10_500)]
    state = b'{"version":1,"controller_epoch":2147483647,"leader":2147483647,"leader_epoch":2147483647,"isr":[%s]}'
    data = state % b",".join([b"2147483647"] * 5)
    one.multi(Create(f"/brokers/topics/{topic}", b""), *[Create(path, data) for path in paths])
    one.multi(*[Set(path, data, 0) for path in paths])
    assert sum(node.version for node in one.store.load()) == 500


def test_a_topic_too_large_for_one_request_can_be_deleted(zookeeper: str, opened: Open) -> None:
    one, two = opened(zookeeper), opened(zookeeper)
    topic = f"/brokers/topics/{'t' * 249}"
    one.multi(Create(topic, b""), Create("/epoch", b""))
    for start in range(0, 2_000, 500):
        one.multi(*[Create(f"{topic}/partitions/{number}/state", b"") for number in range(start, start + 500)])
    with pytest.raises(StoreConflict):
        one.multi(Check("/epoch", 7), Delete(topic, 0))
    assert len(list(one.store.load())) == 2_002
    one.multi(Check("/epoch", 0), Delete(topic, 0))
    assert [node.path for node in one.store.load()] == ["/epoch"]
    two.sees(topic, None)
    assert two.changes[-1] == MetadataChange([], [topic])


# ------------------------------------------------------------------ ephemeral nodes


def test_who_closes_takes_the_ephemeral_nodes_along_at_once(zookeeper: str, opened: Open) -> None:
    one, two = opened(zookeeper), opened(zookeeper, session_timeout_ms=20_000)
    two.multi(Create("/brokers/ids/2", b"two", ephemeral=True), Create("/brokers/incarnations/2", b""))
    two.multi(Create("/controller", b"two", ephemeral=True))
    one.sees("/controller", b"two")
    two.close()
    one.sees("/controller", None)  # long before the end of its session
    one.sees("/brokers/ids/2", None)
    assert one.data("/brokers/incarnations/2") == b""
    assert sorted(path for change in one.changes for path in change.deleted) == ["/brokers/ids/2", "/controller"]


def test_an_ephemeral_node_comes_together_with_what_was_written_with_it(zookeeper: str, opened: Open) -> None:
    one, two = opened(zookeeper), opened(zookeeper)
    for round_number in range(10):
        two.multi(Create("/brokers/ids/2", b"", ephemeral=True), Create(f"/lives/{round_number}", b""))
        one.sees(f"/lives/{round_number}", b"")
        two.multi(Delete("/brokers/ids/2"))
        one.sees("/brokers/ids/2", None)
    made = [change for change in one.changes if any(node.path == "/brokers/ids/2" for node in change.nodes)]
    assert [len(change.nodes) for change in made] == [2] * 10


def test_ephemeral_nodes_may_be_deleted_by_others(zookeeper: str, opened: Open) -> None:
    one, two = opened(zookeeper), opened(zookeeper)
    two.multi(Create("/brokers/ids/2", b"two", ephemeral=True))
    one.multi(Delete("/brokers/ids/2"))
    two.sees("/brokers/ids/2", None)
    two.multi(Create("/brokers/ids/2", b"again", ephemeral=True))
    one.sees("/brokers/ids/2", b"again")


def test_who_starts_sees_the_ephemeral_nodes_and_hears_of_their_end(zookeeper: str, opened: Open) -> None:
    two = opened(zookeeper)
    two.multi(Create("/brokers/ids/2", b"two", ephemeral=True))
    one = opened(zookeeper)
    assert one.data("/brokers/ids/2") == b"two"
    two.close()
    one.sees("/brokers/ids/2", None)


def test_an_ephemeral_node_that_was_made_by_hand_is_seen(zookeeper: str, opened: Open, raw: KazooClient) -> None:
    one = opened(zookeeper)
    raw.create("/brokers/ids/9", b"nine", ephemeral=True)
    one.sees("/brokers/ids/9", b"nine")
    raw.delete("/brokers/ids/9")
    one.sees("/brokers/ids/9", None)


# ------------------------------------------------------------------ the session


def test_a_short_break_costs_no_session_and_no_change(zookeeper: str, opened: Open, proxy: Proxy) -> None:
    one, two = opened(through(proxy, zookeeper)), opened(zookeeper)
    one.multi(Create("/brokers/ids/1", b"one", ephemeral=True))
    proxy.cut()
    one.comes_to(SUSPENDED)
    with pytest.raises(StoreAway, match="no connection") as away:
        one.multi(Create("/a", b""))
    assert not isinstance(away.value, PerhapsDone)
    two.multi(Create("/b", b"two"))
    proxy.heal()
    one.comes_to(ALIVE)
    assert one.told[-2:] == [MetadataChange([Node("/b", b"two", 0)], []), ALIVE]
    one.multi(Create("/a", b""))
    two.sees("/a", b"")
    assert two.data("/brokers/ids/1") == b"one"
    assert one.states == [ALIVE, SUSPENDED, ALIVE]
    assert one.reloads == 0


def test_who_is_cut_off_knows_it_before_the_others_do(zookeeper: str, opened: Open, proxy: Proxy) -> None:
    """It is told so, and even where the machine stood still it knows until when it is certain."""

    def cut_off() -> float:
        """How much later it was told than the others were."""
        one, two = opened(through(proxy, zookeeper), session_timeout_ms=SESSION_MS), opened(zookeeper)
        one.multi(Create("/brokers/ids/1", b"one", ephemeral=True))
        two.sees("/brokers/ids/1", b"one")
        certain_until_s = [one.store.certain_until_s]
        proxy.go_silent()

        def is_lost() -> bool:
            certain_until_s.append(one.store.certain_until_s)
            return one.states[-1:] == [LOST]

        eventually(is_lost, what="the loss of the session")
        two.sees("/brokers/ids/1", None)
        gone_s = two.when(MetadataChange([], ["/brokers/ids/1"]))
        assert max(certain_until_s) < gone_s
        two.multi(Set("/a", b""))
        proxy.heal()
        one.comes_to(ALIVE)
        assert one.data("/a") == b""
        assert one.data("/brokers/ids/1") is None
        assert isinstance(one.told[-2], list), "everything is read before the session counts as alive"
        one.close()
        return one.when(LOST) - gone_s if one.states[:2] == [ALIVE, SUSPENDED] else inf

    opened(zookeeper).multi(Create("/a", b"before"))
    in_time(cut_off, limit_s=0)


def test_answers_that_come_late_prolong_nothing(zookeeper: str, opened: Open, proxy: Proxy) -> None:
    """The server hears us, and we do not hear it: as if this process had been stopped for a while."""
    one, two = opened(through(proxy, zookeeper), session_timeout_ms=SESSION_MS), opened(zookeeper)
    one.multi(Create("/brokers/ids/1", b"one", ephemeral=True))
    proxy.go_silent(to_server=False)
    one.comes_to(LOST)
    proxy.heal()
    one.comes_to(ALIVE)
    two.sees("/brokers/ids/1", None)  # the old session was closed, however long ZooKeeper would have kept it
    one.sees("/brokers/ids/1", None)
    eventually(lambda: one.store.certain_until_s > monotonic(), what="a session that is certain")


def test_nothing_is_certain_without_a_session(zookeeper: str, opened: Open, proxy: Proxy) -> None:
    one = opened(through(proxy, zookeeper), session_timeout_ms=SESSION_MS)
    eventually(lambda: one.store.certain_until_s > monotonic(), what="a session that is certain")
    proxy.cut()
    one.comes_to(LOST)
    assert one.store.certain_until_s < monotonic()


def under_way(one: Witness, *operations: StoreOp) -> "Future[None]":
    """A change that is made while the test goes on."""
    outcome: Future[None] = Future()

    def make() -> None:
        try:
            one.multi(*operations)
            outcome.set_result(None)
        except Exception as error:
            outcome.set_exception(error)

    threading.Thread(target=make, daemon=True).start()
    return outcome


def failure_of(outcome: "Future[None]") -> BaseException | None:
    return outcome.exception(timeout=20)


def test_a_write_that_gets_no_answer_may_have_happened(
    zookeeper: str, opened: Open, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cordwood.run.zookeeper_doubts.DOUBT_S_MAX", 0.1)
    one, two = opened(through(proxy, zookeeper), session_timeout_ms=SESSION_MS), opened(zookeeper)
    proxy.go_silent(to_server=False)
    with pytest.raises(PerhapsDone, match="not known yet"):
        one.multi(Create("/a", b"one"))
    two.sees("/a", b"one")
    assert one.data("/a") is None
    proxy.heal()
    one.sees("/a", b"one")


def test_a_write_whose_answer_is_lost_is_found_when_the_connection_is_back(
    zookeeper: str, opened: Open, proxy: Proxy
) -> None:
    one, two = opened(through(proxy, zookeeper)), opened(zookeeper)
    proxy.go_silent(to_server=False)
    outcome = under_way(one, Create("/a", b"one"))
    two.sees("/a", b"one")
    two.multi(Delete("/a"))
    proxy.break_once()
    proxy.heal()
    assert failure_of(outcome) is None
    assert one.changes == [MetadataChange([Node("/a", b"one", 0)], []), MetadataChange([], ["/a"])]


def test_a_write_that_is_lost_on_the_way_is_known_not_to_have_happened(
    zookeeper: str, opened: Open, proxy: Proxy
) -> None:
    one, two = opened(through(proxy, zookeeper)), opened(zookeeper)
    proxy.go_silent()
    outcome = under_way(one, Create("/a", b"one"))
    two.multi(Create("/b", b"two"))
    proxy.break_once()
    proxy.heal()
    assert type(failure_of(outcome)) is StoreAway
    one.sees("/b", b"two")
    assert one.data("/a") is None


def test_a_write_is_found_by_the_next_session(zookeeper: str, opened: Open, proxy: Proxy) -> None:
    one, two = opened(through(proxy, zookeeper), session_timeout_ms=SESSION_MS), opened(zookeeper)
    proxy.go_silent(to_server=False)
    outcome = under_way(one, Create("/a", b"one"))
    two.sees("/a", b"one")
    one.comes_to(LOST)
    proxy.heal()
    assert failure_of(outcome) is None
    assert one.data("/a") == b"one"


def test_what_the_feed_does_not_hold_any_more_stays_in_doubt(
    zookeeper: str, opened: Open, proxy: Proxy, raw: KazooClient
) -> None:
    one, two = opened(through(proxy, zookeeper)), opened(zookeeper)
    proxy.go_silent(to_server=False)
    outcome = under_way(one, Create("/a", b"one"))
    two.sees("/a", b"one")
    two.multi(Create("/b", b"two"))
    raw.delete(change_path(0))
    proxy.break_once()
    proxy.heal()
    assert isinstance(failure_of(outcome), PerhapsDone)
    one.sees("/b", b"two")


def test_a_store_that_is_closed_says_that_it_does_not_know(zookeeper: str, opened: Open, proxy: Proxy) -> None:
    one, two = opened(through(proxy, zookeeper)), opened(zookeeper)
    proxy.go_silent(to_server=False)
    outcome = under_way(one, Create("/a", b"one"))
    two.sees("/a", b"one")
    proxy.cut()
    one.comes_to(SUSPENDED)
    one.close()
    assert isinstance(failure_of(outcome), PerhapsDone)


def test_what_zookeeper_has_refused_is_certain(zookeeper: str, opened: Open) -> None:
    one = opened(zookeeper)
    one.multi(Create("/brokers/ids/1", b"one", ephemeral=True))
    with pytest.raises(StorageError, match="NoChildrenForEphemerals") as refused:
        one.multi(Create("/brokers/ids/1/below", b""))
    assert type(refused.value) is StorageError


def test_a_deletion_that_was_done_in_part_is_not_told_as_nothing(
    zookeeper: str, opened: Open, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is lost after the first of several portions."""
    one = opened(through(proxy, zookeeper))
    one.multi(Create("/t", b""), *(Create(f"/t/{number}", b"") for number in range(30)))
    monkeypatch.setattr("cordwood.run.zookeeper_store.DELETES_AT_ONCE", 10)
    monkeypatch.setattr("cordwood.run.zookeeper_store.PACKET_BYTES_MAX", 600)
    multi = ZooKeeperClient.multi

    def then_break(client: ZooKeeperClient, *arguments: Any, **options: Any) -> str:  # noqa: ANN401
        name = multi(client, *arguments, **options)
        proxy.cut()
        eventually(lambda: not client.connected)
        return name

    monkeypatch.setattr(ZooKeeperClient, "multi", then_break)
    with pytest.raises(PerhapsDone, match="gone already"):
        one.multi(Delete("/t"))


def test_whoever_has_missed_too_much_reads_everything(
    zookeeper: str, opened: Open, proxy: Proxy, raw: KazooClient
) -> None:
    one, two = opened(through(proxy, zookeeper)), opened(zookeeper)
    two.multi(Create("/a", b""))
    one.sees("/a", b"")
    proxy.cut()
    for count in range(3):
        two.multi(Set("/a", b"%d" % count))
    two.multi(Delete("/a"), Create("/b", b""))
    raw.delete(change_path(2))
    proxy.heal()
    one.sees("/b", b"")
    assert one.data("/a") is None
    assert one.reloads == 1


def test_a_feed_that_a_person_has_removed_is_made_again(zookeeper: str, opened: Open, raw: KazooClient) -> None:
    one, two = opened(zookeeper), opened(zookeeper)
    for count in range(3):
        one.multi(Create(f"/{count}", b""))
    two.sees("/2", b"")
    raw.delete(FEED, recursive=True)
    one.multi(Create("/a", b""))
    two.sees("/a", b"")
    two.multi(Create("/b", b""))
    one.sees("/b", b"")


def test_a_feed_that_goes_right_before_a_change_is_made_again(
    zookeeper: str, opened: Open, raw: KazooClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And by nobody else: the store has no time to be told that it is gone."""
    one = opened(zookeeper)
    multi = ZooKeeperClient.multi
    gone: list[str] = []

    def remove_first(client: ZooKeeperClient, *arguments: Any, **options: Any) -> str:  # noqa: ANN401
        if not gone:
            gone.append(FEED)
            raw.delete(FEED, recursive=True)
        return multi(client, *arguments, **options)

    monkeypatch.setattr(ZooKeeperClient, "multi", remove_first)
    one.multi(Create("/a", b""))
    assert [node.path for node in one.store.load()] == ["/a"]
    assert gone == [FEED]


@pytest.mark.parametrize(
    "data", [b"", b"\xff", b"{", b"[]", b'{"version":7}', b'{"version":1,"nodes":[1],"deleted":[]}']
)
def test_a_change_that_a_person_has_edited_is_not_believed(
    zookeeper: str, opened: Open, raw: KazooClient, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    one, two = opened(zookeeper), opened(zookeeper)
    one.multi(Create("/a", b""))
    two.sees("/a", b"")
    raw.create(f"{FEED}/change-", data, sequence=True)
    eventually(lambda: two.reloads == 1 and one.reloads == 1)
    one.multi(Create("/b", b""))
    two.sees("/b", b"")
    assert "cannot be used" in caplog.text
    assert two.reloads == 1
    assert [node.path for node in opened(zookeeper, begin=False).store.load()] == ["/a", "/b"]


def test_a_note_that_a_person_has_left_in_the_feed_costs_one_reload(
    zookeeper: str, opened: Open, raw: KazooClient
) -> None:
    one, two = opened(zookeeper), opened(zookeeper)
    raw.create(f"{FEED}/note", b"it takes a number that no change will have")
    for count in range(3):
        one.multi(Create(f"/{count}", b""))
    two.sees("/2", b"")
    assert (one.reloads, two.reloads) == (1, 1)


def test_old_changes_are_removed(
    zookeeper: str, opened: Open, monkeypatch: pytest.MonkeyPatch, raw: KazooClient
) -> None:
    monkeypatch.setattr("cordwood.run.zookeeper_store.CHANGES_KEPT", 20)
    monkeypatch.setattr("cordwood.run.zookeeper_store.PURGE_EVERY", 10)
    one, two = opened(zookeeper), opened(zookeeper)
    one.multi(Create("/a", b""))
    for count in range(45):
        one.multi(Set("/a", b"%d" % count))
    two.sees("/a", b"44")
    eventually(lambda: change_numbers(raw.get_children(FEED)) == list(range(21, 46)))
    one.store.purge()
    assert change_numbers(raw.get_children(FEED)) == list(range(26, 46))
    one.multi(Set("/a", b"after"))
    two.sees("/a", b"after")
    assert two.reloads == 0


# ------------------------------------------------------------------ the way to ZooKeeper


def test_a_zookeeper_that_is_not_there_is_named(opened: Open) -> None:
    connect = f"127.0.0.1:{free_ports(1)[0]}/x"

    def open_it() -> float:
        start_s = monotonic()
        with pytest.raises(StorageError, match=rf"{connect} did not answer in time"):
            opened(connect, connection_timeout_ms=300)
        return monotonic() - start_s

    in_time(open_it, limit_s=3.0)


@pytest.mark.parametrize("connect", ["", ",", "host:port", "host:0", "host:2181//x", "host:2181/x/../y", "a:1,,b:2"])
def test_what_is_no_address_is_refused(connect: str) -> None:
    with pytest.raises(ConfigError, match="is not an address of ZooKeeper"):
        Address.parse(connect)


@pytest.mark.parametrize("connect", ["host", "host:2181", "[::1]:2181,b:1/", "a:1,b:2/x/y/"])
def test_addresses(connect: str) -> None:
    assert Address.parse(connect).hosts in connect


def test_with_credentials_nobody_else_writes_and_secrets_are_not_read(
    zookeeper: str, opened: Open, raw: KazooClient
) -> None:
    one = opened(zookeeper, credentials=Credentials("cordwood", "pass:word"))
    one.multi(Create("/brokers/topics/t", b"public"), Create("/config/users/u", b"secret"))
    assert raw.get("/brokers/topics/t")[0] == b"public"
    for path in ("/config/users/u", "/config/users", change_path(0), FEED):
        with pytest.raises(NoAuthError):
            raw.get_children(path)
    for path in ("/brokers/topics", "/brokers/ids", FEED):
        with pytest.raises(NoAuthError):
            raw.create(f"{path}/mine", b"")
    with pytest.raises(StorageError, match="other credentials"):
        opened(zookeeper, credentials=Credentials("cordwood", "wrong"))
    two = opened(zookeeper, credentials=Credentials("cordwood", "pass:word"))
    two.multi(Set("/config/users/u", b"new"))
    one.sees("/config/users/u", b"new")


def test_a_store_that_is_closed_says_so(zookeeper: str, opened: Open) -> None:
    one = opened(zookeeper)
    one.close()
    with pytest.raises(StorageError, match="closed"):
        one.multi(Create("/a", b""))
    one.close()


def test_closing_does_not_wait_for_a_zookeeper_that_does_not_answer(zookeeper: str, opened: Open, proxy: Proxy) -> None:
    def close() -> float:
        proxy.heal()
        one = opened(through(proxy, zookeeper))
        proxy.go_silent()
        outcome = under_way(one, Create("/a", b""))
        start_s = monotonic()
        proxy.cut()
        one.close()
        assert isinstance(failure_of(outcome), StorageError)
        return monotonic() - start_s

    in_time(close, limit_s=3.0)


NONSENSE = {
    "length below zero": b"\xff\xff\xff\xff",
    "length beyond reason": b"\x7f\xff\xff\xff",
    "empty frame": b"\x00\x00\x00\x00",
    "short header": b"\x00\x00\x00\x04abcd",
    "unknown xid": b"\x00\x00\x00\x10" + bytes([0, 0, 0x30, 0x39]) + bytes(12),
    "watch of nothing": b"\x00\x00\x00\x10" + b"\xff\xff\xff\xff" + bytes(12),
    "watch without an end": b"\x00\x00\x00\x1c"
    + b"\xff\xff\xff\xff"
    + bytes(12)
    + b"\x00\x00\x00\x01" * 2
    + b"\x7f\xff\xff\xff",
    "HTTP": b"HTTP/1.1 400 Bad Request\r\n\r\n",
}


@pytest.mark.parametrize("nonsense", NONSENSE.values(), ids=NONSENSE.keys())
def test_a_server_that_sends_nonsense_costs_the_connection_alone(
    zookeeper: str, opened: Open, proxy: Proxy, nonsense: bytes
) -> None:
    one = opened(through(proxy, zookeeper))
    one.multi(Create("/brokers/ids/1", b"", ephemeral=True))
    proxy.send_nonsense(nonsense)
    proxy.send_nonsense(nonsense)
    eventually(lambda: _written(one, Set("/brokers/ids/1", b"still there", 0)), what="a write after nonsense")
    assert LOST not in one.states


def test_the_session_outlives_a_restart_of_the_server(opened: Open, own_zookeeper: ZooKeeperServer) -> None:
    """And without a chroot ZooKeeper's own nodes are not taken for ours."""
    one = opened(own_zookeeper.connect, session_timeout_ms=20_000)
    one.multi(Create("/brokers/ids/1", b"", ephemeral=True))
    own_zookeeper.kill()
    one.comes_to(SUSPENDED)
    own_zookeeper.start()
    one.comes_to(ALIVE)
    assert one.states == [ALIVE, SUSPENDED, ALIVE]
    one.multi(Set("/brokers/ids/1", b"", 0))
    assert [node.path for node in one.store.load()] == ["/brokers/ids/1"]


def test_an_ensemble_may_lose_one_of_three_but_not_two(opened: Open, zookeeper_ensemble: Ensemble) -> None:
    one = opened(zookeeper_ensemble.connect + "/x", session_timeout_ms=6_000)
    one.multi(Create("/brokers/ids/1", b"", ephemeral=True))
    leader = zookeeper_ensemble.leader()
    assert leader is not None
    leader.kill()
    eventually(lambda: _written(one, Set("/brokers/ids/1", b"1")), within_s=20)
    assert LOST not in one.states
    others = [server for server in zookeeper_ensemble.servers if server is not leader]
    two = opened(zookeeper_ensemble.connect + "/x", session_timeout_ms=2_000)
    two.multi(Create("/brokers/ids/2", b"", ephemeral=True))
    others[0].pause()
    two.comes_to(LOST, within_s=20)
    with pytest.raises(StorageError):
        two.multi(Create("/a", b""))
    others[0].resume()
    two.comes_to(ALIVE, within_s=20)
    two.sees("/brokers/ids/2", None, within_s=20)
    two.multi(Create("/a", b""))


def _written(store: Witness, *operations: StoreOp) -> bool:
    try:
        store.store.multi(operations)
    except StorageError:
        return False
    return True
