"""The feed's own rules, without a ZooKeeper."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cordwood.errors import CorruptData
from cordwood.ports import MetadataChange, Node
from cordwood.run.zookeeper_feed import (
    NOTHING_SEEN,
    Ephemerals,
    apply_change,
    change_numbers,
    decode_change,
    encode_change,
    fold,
    mark_of,
    news,
)

PATHS = st.sampled_from(["/a", "/a/b", "/a/b/c", "/ab", "/b"])
NODES = st.builds(Node, PATHS, st.binary(max_size=20), st.integers(0, 2**31 - 1))
CHANGES = st.builds(MetadataChange, st.lists(NODES, max_size=4), st.lists(PATHS, max_size=3))


@given(CHANGES)
def test_a_change_is_read_as_it_was_written(change: MetadataChange) -> None:
    assert decode_change(encode_change(change)) == change


def test_a_change_is_known_by_its_mark() -> None:
    change = MetadataChange([Node("/a", b"", 0)], [])
    assert mark_of(encode_change(change, "mine-1")) == "mine-1"
    assert decode_change(encode_change(change, "mine-1")) == change


@pytest.mark.parametrize("data", [None, b"", b"\xff", b"{", b"[]", b"7", b'{"version":1}', b'{"mark":7}'])
def test_what_has_no_mark_is_nobodys(data: bytes | None) -> None:
    assert mark_of(data) == ""


@given(
    st.binary(max_size=200)
    | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(lambda v: json.dumps(v).encode())
)
def test_what_is_no_change_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptData):
        decode_change(data)


@given(CHANGES, st.data())
def test_a_spoiled_change_is_refused_or_is_another_change(change: MetadataChange, data: st.DataObject) -> None:
    text = bytearray(encode_change(change))
    text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    try:
        spoiled = decode_change(bytes(text))
    except CorruptData:
        return
    assert all(isinstance(node.path, str) and isinstance(node.data, bytes) for node in spoiled.nodes)


@given(st.lists(CHANGES, max_size=6), st.lists(NODES, max_size=4))
def test_folded_changes_do_what_they_did_one_by_one(changes: list[MetadataChange], start: list[Node]) -> None:
    apart = {node.path: node for node in start}
    together = dict(apart)
    for change in changes:
        apply_change(apart, change)
    apply_change(together, fold(changes))
    assert together == apart


def test_numbers_of_changes() -> None:
    names = ["change-0000000012", "note", "change-0000000003", "change-12", "change-00000000xx"]
    assert change_numbers(names) == [3, 12]
    assert news([], NOTHING_SEEN) == []
    assert news([0, 1], NOTHING_SEEN) == [0, 1]
    assert news([3, 4, 5], 3) == [4, 5]
    assert news([3, 4, 5], 5) == []
    assert news([4, 5], 3) == [4, 5]
    assert news([5, 6], 3) is None, "4 is gone"
    assert news([1, 2], NOTHING_SEEN) is None, "0 is gone"
    assert news([4, 6], 3) is None, "5 took no part"
    assert news([0, 1], 3) is None, "the count has begun anew"


BROKERS = ("/brokers/ids/1", "/brokers/ids/2")
MOVES = st.tuples(st.sampled_from(["make", "delete", "vanish"]), st.sampled_from(BROKERS))
HAPPENINGS = st.lists(
    st.tuples(st.sampled_from(["move", "move", "follow", "look", "read"]), st.lists(MOVES, min_size=1, max_size=4)),
    max_size=30,
)


@settings(max_examples=500, deadline=None)
@given(HAPPENINGS, st.booleans())
def test_what_is_told_of_ephemeral_nodes_comes_to_be_what_is(
    happenings: list[tuple[str, list[tuple[str, str]]]], look_first: bool
) -> None:
    """However looks and changes lie in time: others end up with what is there, and hear of no life that is over."""
    world = World()
    for kind, moves in happenings:
        world.happen(kind, moves)
        world.ephemerals.check()
    for _ in range(2):
        world.happen("look" if look_first else "follow", [])
        world.happen("follow" if look_first else "look", [])
    assert world.told == world.lives


class World:
    """Brokers that come and go, and one that follows when a watch tells it to.

    A life is the position at which a node was made. A watch fires once for what changed since it was set.
    """

    def __init__(self) -> None:
        self.position = 0
        self.lives: dict[str, int] = {}
        self.feed: list[tuple[int, MetadataChange]] = []
        self.seen = 0
        self.told: dict[str, int] = {}
        self.over: set[int] = set()
        self.ephemerals = Ephemerals()
        self.watch_fired = False

    def happen(self, kind: str, moves: list[tuple[str, str]]) -> None:
        match kind:
            case "move":
                self._move(moves)
            case "follow":
                self._follow()
            case "look" if self.watch_fired:
                self._look(moves)
            case "read":
                self.seen = len(self.feed)
                self.told = dict(self.lives)
                self.ephemerals.reset(self.told)
                self.ephemerals.look("/brokers/ids", self.lives, self.position)
                self.watch_fired = False

    def _move(self, moves: list[tuple[str, str]]) -> None:
        for kind, path in moves:
            if (kind == "make") == (path in self.lives):
                continue
            self.position += 1
            self.watch_fired = True
            if kind == "make":
                self.lives[path] = self.position
                self.feed.append((self.position, MetadataChange([Node(path, b"%d" % self.position, 0)], [])))
            else:
                del self.lives[path]
                if kind == "delete":
                    self.feed.append((self.position, MetadataChange([], [path])))

    def _follow(self) -> None:
        for position, change in self.feed[self.seen :]:
            self._tell(self.ephemerals.pass_on(change, position))
        self.seen = len(self.feed)

    def _look(self, meanwhile: list[tuple[str, str]]) -> None:
        """As the store does it; a look that finds something new asks the feed, and time goes by."""
        self.watch_fired = False
        present, position = list(self.lives), self.position
        gone, unknown = self.ephemerals.look("/brokers/ids", present, position)
        self._tell(MetadataChange([], gone))
        if unknown:
            self._move(meanwhile)
            self._follow()
            self.ephemerals.look("/brokers/ids", present, position)

    def _tell(self, change: MetadataChange) -> None:
        for path in change.deleted:
            if path in self.told:
                self.over.add(self.told.pop(path))
        for node in change.nodes:
            life = int(node.data)
            assert life not in self.over, "it was told to be gone already"
            self.told[node.path] = life
