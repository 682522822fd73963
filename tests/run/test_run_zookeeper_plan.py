"""What ZooKeeper is asked to do does what the port says: tried on a small model of ZooKeeper, as strict as it is."""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cordwood.errors import StoreConflict
from cordwood.ports import Check, Create, Delete, MetadataChange, Node, Set, StoreOp
from cordwood.run.zookeeper_client import OperationRefused, Parent, StoredNode
from cordwood.run.zookeeper_feed import apply_change
from cordwood.run.zookeeper_plan import PACKET_BYTES_MAX, Planner, Resolved, packet_bytes
from cordwood.run.zookeeper_tree import parents
from cordwood.sim.store import SimStore


class StrictZooKeeper:
    """Nodes with their rules: no node without its parent, none deleted with others below it."""

    def __init__(self) -> None:
        self.nodes: dict[str, tuple[bytes | None, int]] = {}

    def read(self, paths: Sequence[str]) -> list[StoredNode | None]:
        return [
            StoredNode(*self.nodes[path], children=len(self._below(path)), created=0) if path in self.nodes else None
            for path in paths
        ]

    def children(self, paths: Sequence[str]) -> list[list[str] | None]:
        return [self._below(path) if path in self.nodes else None for path in paths]

    def _below(self, path: str) -> list[str]:
        return [name[len(path) + 1 :] for name in self.nodes if name.rpartition("/")[0] == path]

    def multi(self, operations: Sequence[StoreOp | Parent]) -> None:
        before = dict(self.nodes)
        for index, operation in enumerate(operations):
            try:
                self._apply(operation, index)
            except OperationRefused:
                self.nodes = before
                raise

    def _apply(self, operation: StoreOp | Parent, index: int) -> None:
        path = operation.path
        if isinstance(operation, Create | Parent):
            if any(parent not in self.nodes for parent in parents(path)):
                raise OperationRefused(index, f"no parent of {path}", missing=True)
            if path in self.nodes:
                raise OperationRefused(index, f"{path} exists", exists=True)
            self.nodes[path] = (operation.data if isinstance(operation, Create) else None, 0)
            return
        if path not in self.nodes:
            raise OperationRefused(index, f"{path} is missing", missing=True)
        version = self.nodes[path][1]
        if operation.version not in (None, version):
            raise OperationRefused(index, f"{path} has version {version}")
        if isinstance(operation, Set):
            self.nodes[path] = (operation.data, version + 1)
        elif isinstance(operation, Delete):
            if self._below(path):
                raise OperationRefused(index, f"{path} is not empty", has_children=True)
            del self.nodes[path]

    @property
    def explicit(self) -> dict[str, Node]:
        return {path: Node(path, data, version) for path, (data, version) in self.nodes.items() if data is not None}


def carry_out(planner: Planner, zookeeper: StrictZooKeeper, operations: Sequence[StoreOp]) -> MetadataChange:
    """What the store does with a ``multi``."""
    for attempt in range(10):
        resolved: Resolved = planner.resolve(operations, zookeeper, careful=attempt > 0)
        resolved.check()
        try:
            zookeeper.multi(resolved.operations)
        except OperationRefused as refusal:
            planner.forget()
            if not resolved.guessed_wrong(refusal):
                raise StoreConflict(str(refusal)) from None
        else:
            planner.succeeded(resolved)
            return resolved.change
    raise AssertionError("planned again and again, and nobody else was there")


PATHS = st.sampled_from(["/a", "/a/b", "/a/b/c", "/a/b/d", "/a/e/f", "/ab", "/a/b/c/g"])
RIGHT, WRONG = "right", "wrong"
STEP = st.tuples(
    st.sampled_from(["create", "create", "create", "set", "delete", "check"]),
    PATHS,
    st.sampled_from([None, None, None, RIGHT, RIGHT, WRONG]),
)


def operation(step: tuple[str, str, str | None], number: int, versions: Callable[[str], int]) -> StoreOp:
    kind, path, wanted = step
    version = None if wanted is None else versions(path) + (wanted == WRONG)
    data = b"%d" % number
    match kind:
        case "create":
            return Create(path, data)
        case "set":
            return Set(path, data, version)
        case "delete":
            return Delete(path, version)
        case _:
            return Check(path, versions(path) if version is None else version)


def multi_of(steps: Sequence[tuple[str, str, str | None]], versions: dict[str, int]) -> list[StoreOp]:
    """Operations whose right versions are right even behind others of the same multi."""
    expected = dict(versions)
    operations = []
    for number, step in enumerate(steps):
        operations.append(operation(step, number, lambda path: expected.get(path, 0)))
        if step[0] == "create":
            expected[step[1]] = 0
        elif step[0] == "set":
            expected[step[1]] = expected.get(step[1], 0) + 1
    return operations


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.lists(STEP, min_size=1, max_size=5)), max_size=12))
def test_a_multi_does_what_the_port_says(multis: list[tuple[bool, list[tuple[str, str, str | None]]]]) -> None:
    """Beside the store that the simulator uses. Several brokers write: each guesses from what it has seen alone."""
    model, zookeeper, told = SimStore(), StrictZooKeeper(), dict[str, Node]()
    planners = {False: Planner(), True: Planner()}
    for who, steps in multis:
        ours = multi_of(steps, {path: node.version for path, node in zookeeper.explicit.items()})
        theirs = multi_of(steps, {node.path: node.version for node in model.load()})
        if _makes_parents_explicit(ours, zookeeper):
            continue
        try:
            model.multi(theirs)
        except StoreConflict:
            with pytest.raises(StoreConflict):
                carry_out(planners[who], zookeeper, ours)
        else:
            apply_change(told, carry_out(planners[who], zookeeper, ours))
        assert {node.path: node.data for node in model.load()} == {
            path: node.data for path, node in zookeeper.explicit.items()
        }
        assert told == zookeeper.explicit, "the feed does not say what happened"


def _makes_parents_explicit(operations: Sequence[StoreOp], zookeeper: StrictZooKeeper) -> bool:
    """In one multi, what was made as a parent, or by it, is touched as if it were a node: the two stores differ then.

    In ZooKeeper such a parent is there; in the others it is not. Nobody does that on purpose.
    """
    touched = {operation.path for operation in operations}
    implied = {
        parent for operation in operations if isinstance(operation, Create) for parent in parents(operation.path)
    }
    empty = {path for path, (data, _) in zookeeper.nodes.items() if data is None}
    if touched & implied:
        return True
    return bool({op.path for op in operations if not isinstance(op, Create)} & empty)


def test_a_parent_that_holds_nothing_becomes_a_node_like_any_other() -> None:
    planner, zookeeper = Planner(), StrictZooKeeper()
    carry_out(planner, zookeeper, [Create("/t/p/0", b"")])
    assert carry_out(planner, zookeeper, [Create("/t", b"topic")]) == MetadataChange([Node("/t", b"topic", 1)], [])
    assert carry_out(planner, zookeeper, [Set("/t", b"more", 1)]) == MetadataChange([Node("/t", b"more", 2)], [])


def test_a_node_below_one_that_is_set_in_the_same_multi_finds_its_parents() -> None:
    planner, zookeeper = Planner(), StrictZooKeeper()
    carry_out(planner, zookeeper, [Create("/t", b""), Create("/t/p/0", b"")])
    change = carry_out(Planner(), zookeeper, [Set("/t", b"two", 0), Create("/t/p/1", b"")])
    assert [node.path for node in change.nodes] == ["/t", "/t/p/1"]


def test_a_node_and_then_its_parent_may_be_deleted_in_one_multi() -> None:
    planner, zookeeper = Planner(), StrictZooKeeper()
    carry_out(planner, zookeeper, [Create("/t", b""), Create("/t/p/0", b""), Create("/t/p/1", b"")])
    change = carry_out(planner, zookeeper, [Delete("/t/p/0"), Create("/t/p/2", b""), Delete("/t")])
    assert change == MetadataChange([], ["/t/p/0", "/t"])
    assert zookeeper.nodes == {}


def test_parents_that_others_have_deleted_are_made_again() -> None:
    planner, zookeeper = Planner(), StrictZooKeeper()
    carry_out(planner, zookeeper, [Create("/t", b""), Create("/t/p/0", b"")])
    carry_out(Planner(), zookeeper, [Delete("/t")])
    carry_out(planner, zookeeper, [Create("/t/p/1", b"")])
    assert list(zookeeper.explicit) == ["/t/p/1"]


def test_the_estimate_of_a_requests_size_is_not_too_small() -> None:
    from kazoo.protocol.serialization import SetData, Transaction

    path, data = "/brokers/topics/ä", b"x" * 50
    real = len(Transaction([SetData(path, data, 3)] * 100).serialize())
    assert real <= packet_bytes([Set(path, data, 3)] * 100) <= PACKET_BYTES_MAX
