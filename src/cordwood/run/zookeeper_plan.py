"""From a ``multi`` of the port to one of ZooKeeper, which needs everything spelled out.

ZooKeeper does not create parents or delete nodes with children, and the feed must say which version each node will
have. So parents are created explicitly, nodes below a deleted one are listed one by one, and versions that the caller
left open are read. What was read may be out of date when the ``multi`` arrives. ZooKeeper then refuses it,
``Resolved.guessed_wrong`` says that the wrong assumption was ours and not the caller's, and the store plans again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, assert_never

from cordwood.errors import StoreConflict
from cordwood.ports import Check, Create, Delete, MetadataChange, Node, Set, StoreOp

from .zookeeper_client import OperationRefused, Parent, StoredNode
from .zookeeper_feed import apply_change
from .zookeeper_tree import Reads, all_below, parents

PACKET_BYTES_MAX: Final = 1_000_000
"""ZooKeeper closes the connection when a request has more than 1,048,575 bytes (its ``jute.maxbuffer``)."""
_ACCESS_LIST_BYTES: Final = 160  # an upper bound, with a long user name
_HEAD_BYTES: Final = 9 + 4 + 4 + 4 + 4  # an operation's header; lengths of path and data; version or flags


@dataclass(slots=True)
class Resolved:
    """A ``multi`` with everything spelled out, and the change that it will make."""

    operations: list[StoreOp | Parent] = field(default_factory=list)
    assumed: list[bool] = field(default_factory=list)
    """For each operation: does it rest on something we have read, so that its refusal does not yet mean a conflict?"""
    careful: bool = False
    nodes: dict[str, Node] = field(default_factory=dict)
    deleted: dict[str, None] = field(default_factory=dict)

    def add(self, operation: StoreOp | Parent, *, assumed: bool) -> None:
        self.operations.append(operation)
        self.assumed.append(assumed)

    @property
    def change(self) -> MetadataChange:
        return MetadataChange(list(self.nodes.values()), list(self.deleted))

    def guessed_wrong(self, refusal: OperationRefused) -> bool:
        """Did ZooKeeper refuse an assumption of ours? Then planning again helps; otherwise the caller must know."""
        if refusal.index >= len(self.operations):
            return True  # the feed itself is gone
        if self.assumed[refusal.index] or refusal.has_children:
            return True
        # One of its parents may be gone; or it may exist only as a parent, which a careful plan checks.
        creates = isinstance(self.operations[refusal.index], Create)
        return creates and (refusal.missing or (refusal.exists and not self.careful))

    def check(self) -> None:
        assert len(self.operations) == len(self.assumed)


class Planner:
    """Resolves ``multi``s. It remembers which parents exist; like everything that was read, this may be out of date."""

    def __init__(self) -> None:
        self._parents: set[str] = set()

    def forget(self) -> None:
        """An assumption was wrong."""
        self._parents.clear()

    def resolve(self, operations: Sequence[StoreOp], reads: Reads, *, careful: bool = False) -> Resolved:
        """
        Args:
            careful: also check whether new nodes exist already, perhaps as empty parents.

        Raises:
            StoreConflict: it cannot be done in the store's current state.
        """
        known = self._read(operations, reads, careful)
        below = {
            operation.path: all_below(operation.path, reads)
            for operation in operations
            if isinstance(operation, Delete)
        }
        multi = _Multi(known, below, self._parents, Resolved(careful=careful))
        for operation in operations:
            multi.add(operation)
        return multi.resolved

    def succeeded(self, resolved: Resolved) -> None:
        """The ``multi`` was done, so its parents exist."""
        self._parents.update(operation.path for operation in resolved.operations if isinstance(operation, Parent))

    def _read(self, operations: Sequence[StoreOp], reads: Reads, careful: bool) -> dict[str, StoredNode | None]:
        """Read what must be known of the store: versions left open, and which parents exist."""
        wanted: dict[str, None] = {}
        made: set[str] = set()
        for operation in operations:
            if isinstance(operation, Set) and operation.version is None:
                wanted[operation.path] = None
            elif isinstance(operation, Create):
                wanted |= dict.fromkeys(self._uncertain(operation.path, made, careful))
                made.add(operation.path)
        known = dict(zip(wanted, reads.read(list(wanted)), strict=True)) if wanted else {}
        self._parents.update(path for path, node in known.items() if node is not None and node.data is None)
        return known

    def _uncertain(self, path: str, made: set[str], careful: bool) -> Iterator[str]:
        for parent in parents(path):
            if parent in made:
                return  # everything below a new node is new
            if parent not in self._parents:
                yield parent
        if careful:
            yield path


class _Multi:
    """One ``multi`` while it is spelled out: every operation sees what the earlier ones will have done."""

    def __init__(
        self,
        known: dict[str, StoredNode | None],
        below: dict[str, list[str]],
        parents_there: set[str],
        resolved: Resolved,
    ) -> None:
        self._known = known
        self._below = below
        self._parents_there = parents_there
        self._versions: dict[str, int | None] = {}
        """Versions of nodes changed by the operations so far; None: deleted."""
        self._renewed: set[str] = set()
        """Nodes that these have created or deleted: only later operations can have put anything below them."""
        self.resolved = resolved

    def add(self, operation: StoreOp) -> None:
        match operation:
            case Create():
                self._add_create(operation)
            case Set(path, data, version):
                before = self._version(path) if version is None else version
                self.resolved.add(Set(path, data, before), assumed=version is None)
                self._changed(Node(path, data, before + 1))
            case Delete(path):
                self._add_deletes(operation)
                apply_change(self.resolved.nodes, MetadataChange(deleted=[path]))
                self.resolved.deleted[path] = None
            case Check():
                self.resolved.add(operation, assumed=False)
            case _:
                assert_never(operation)

    def _add_create(self, operation: Create) -> None:
        path, data = operation.path, operation.data
        there = None if path in self._versions or self._is_below_renewed(path) else self._known.get(path)
        if there is None or operation.ephemeral:
            self._add_parents(path)
            self.resolved.add(operation, assumed=False)
            self._renewed.add(path)
            self._changed(Node(path, data, 0))
        elif there.data is None:
            # It was created only as a parent of other nodes: for whoever creates it now, it does not exist yet.
            self.resolved.add(Set(path, data, there.version), assumed=True)
            self._changed(Node(path, data, there.version + 1))
        else:
            raise StoreConflict(f"{path} exists already")

    def _changed(self, node: Node) -> None:
        self._versions[node.path] = node.version
        apply_change(self.resolved.nodes, MetadataChange([node]))

    def _version(self, path: str) -> int:
        if path in self._versions:
            version = self._versions[path]
        else:
            node = self._known.get(path)
            version = None if node is None else node.version
        if version is None:
            raise StoreConflict(f"{path} does not exist")
        return version

    def _add_parents(self, path: str) -> None:
        for parent in parents(path):
            if not self._exists(parent):
                self.resolved.add(Parent(parent), assumed=True)
                self._versions[parent] = 0
                self._renewed.add(parent)

    def _exists(self, path: str) -> bool:
        if path in self._versions:
            return self._versions[path] is not None
        if self._is_below_renewed(path):
            return False
        return path in self._parents_there or self._known.get(path) is not None

    def _is_below_renewed(self, path: str) -> bool:
        return any(parent in self._renewed for parent in parents(path))

    def _add_deletes(self, operation: Delete) -> None:
        """Delete the nodes below first, from the bottom up: those in the store, and new ones."""
        start = operation.path + "/"
        there = {path for path in self._below[operation.path] if self._versions.get(path, 0) is not None}
        there |= {path for path, version in self._versions.items() if version is not None and path.startswith(start)}
        for path in sorted(there, reverse=True):
            self.resolved.add(Delete(path), assumed=True)
            self._versions[path] = None
        self.resolved.add(operation, assumed=False)
        self._versions[operation.path] = None
        self._renewed.add(operation.path)


def packet_bytes(operations: Sequence[StoreOp | Parent]) -> int:
    """About how large ZooKeeper's request for these will be, without the record in the feed; rather too high."""
    return sum(_operation_bytes(operation) for operation in operations)


def _operation_bytes(operation: StoreOp | Parent) -> int:
    match operation:
        case Create(path, data):
            return _HEAD_BYTES + len(path.encode()) + len(data) + _ACCESS_LIST_BYTES
        case Parent(path):
            return _HEAD_BYTES + len(path.encode()) + _ACCESS_LIST_BYTES
        case Set(path, data):
            return _HEAD_BYTES + len(path.encode()) + len(data)
        case Delete(path) | Check(path):
            return _HEAD_BYTES + len(path.encode())
        case _:
            assert_never(operation)
