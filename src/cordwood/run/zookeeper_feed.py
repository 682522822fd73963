"""The feed of changes: how a change is written into ZooKeeper, and what is reported of ephemeral nodes.

Every ``multi`` leaves a numbered node that says exactly what it did, so others can follow without reading what has
changed. The numbers come from ZooKeeper and have no gaps; only the oldest nodes are ever removed. A broker that misses
the change after the last one it saw has fallen behind, and reads everything. Each change carries a *mark* chosen by its
maker, which shows, if the answer was lost, that the change was made.

Ephemeral nodes also vanish by themselves, without a change in the feed. They are looked at directly, and what a look
has found must not be undone by a change that is older than the look.
"""

import base64
import binascii
import json
import re
from collections.abc import Iterable, Sequence
from typing import Final

from cordwood.cluster.layout import BROKERS, CONTROLLER
from cordwood.errors import CorruptData
from cordwood.ports import MetadataChange, Node

FEED: Final = "/metadata_changes"
RECORD: Final = f"{FEED}/change-"
FORMAT: Final = 1
NOTHING_SEEN: Final = -1


def change_path(number: int) -> str:
    return f"{RECORD}{number:010d}"


def change_numbers(names: Iterable[str]) -> list[int]:
    """The numbers of the changes among these names, in order. Other nodes there, perhaps made by hand, are ignored."""
    return sorted(int(found[1]) for name in names if (found := re.fullmatch("change-([0-9]{10})", name)))


def news(numbers: Sequence[int], seen: int) -> list[int] | None:
    """The numbers after the last one seen; None if some of them must be gone already, or numbering has restarted."""
    later = [number for number in numbers if number > seen]
    if later != list(range(seen + 1, seen + 1 + len(later))):
        return None
    if not later and numbers and numbers[-1] < seen:
        return None
    return later


def encode_change(change: MetadataChange, mark: str = "") -> bytes:
    nodes = [{"path": node.path, "version": node.version, **_data_fields(node.data)} for node in change.nodes]
    fields = {"version": FORMAT, "mark": mark, "deleted": list(change.deleted), "nodes": nodes}
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()


def decode_change(data: bytes | None) -> MetadataChange:
    """
    Raises:
        CorruptData: it is not a change; it may have been edited by hand, or written by a later version.
    """
    try:
        value = json.loads(data or b"")
        if value["version"] != FORMAT:
            raise CorruptData(f"it has version {value['version']}, this broker knows {FORMAT}")
        nodes = [Node(_text(node["path"]), _parse_data(node), _number(node["version"])) for node in value["nodes"]]
        return MetadataChange(nodes, [_text(path) for path in value["deleted"]])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CorruptData(f"it is no description of a change: {error!r}") from None


def mark_of(data: bytes | None) -> str:
    """The change's mark; empty if it is malformed, or was written before marks existed."""
    try:
        return _text(json.loads(data or b"").get("mark", ""))
    except (ValueError, AttributeError, RecursionError):
        return ""


def _data_fields(data: bytes) -> dict[str, str]:
    """The data, as readable text if it is text."""
    try:
        return {"data": data.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _parse_data(node: dict[str, object]) -> bytes:
    if "data" in node:
        return _text(node["data"]).encode()
    try:
        return base64.b64decode(_text(node["base64"]), validate=True)
    except binascii.Error as error:
        raise ValueError(error) from None


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is no text")
    return value


def _number(value: object) -> int:
    if not isinstance(value, int):
        raise ValueError(f"{value!r} is no number")
    return value


def fold(changes: Iterable[MetadataChange]) -> MetadataChange:
    """A single change that does what these do in sequence."""
    nodes: dict[str, Node] = {}
    deleted: dict[str, None] = {}
    for change in changes:
        apply_change(nodes, change)
        deleted |= dict.fromkeys(change.deleted)
    return MetadataChange(list(nodes.values()), list(deleted))


def apply_change(nodes: dict[str, Node], change: MetadataChange) -> None:
    """Apply a change to *nodes*, by path."""
    for path in change.deleted:
        for gone in [name for name in nodes if name == path or name.startswith(path + "/")]:
            del nodes[gone]
    for node in change.nodes:
        nodes.pop(node.path, None)  # keep the nodes in the order of the changes
        nodes[node.path] = node


def is_ephemeral(path: str) -> bool:
    """May this node vanish without a change?"""
    return path == CONTROLLER or path.startswith(BROKERS + "/")


class Ephemerals:
    """Which ephemeral nodes have been reported, and what the last look at them found.

    Positions are ZooKeeper's numbers of changes. Invariant (``check``): every node noted as reported is of a kind that
    can vanish, and every node found is in the place where it was looked for.
    """

    def __init__(self) -> None:
        self._told: dict[str, int] = {}
        self._found: dict[str, tuple[int, frozenset[str]]] = {}

    def reset(self, paths: Iterable[str]) -> None:
        """Everything was read again and reported, with these nodes in it."""
        self._told = dict.fromkeys((path for path in paths if is_ephemeral(path)), 0)
        self._found = {}

    def pass_on(self, change: MetadataChange, position: int) -> MetadataChange:
        """What to report of a change: all of it, except nodes that a later look has found to have vanished since."""
        for path in change.deleted:
            for gone in [told for told in self._told if told == path or told.startswith(path + "/")]:
                del self._told[gone]
        stale = [node.path for node in change.nodes if self._vanished_since(node.path, position)]
        for node in change.nodes:
            if is_ephemeral(node.path) and node.path not in stale:
                self._told[node.path] = position
        if not stale:
            return change
        return MetadataChange([node for node in change.nodes if node.path not in stale], change.deleted)

    def look(self, place: str, present: Iterable[str], position: int) -> tuple[list[str], list[str]]:
        """A look has found exactly these nodes in a place: what must be reported?

        Returns:
            Nodes that were reported but are gone; nodes that are there but have not been reported.
        """
        found = frozenset(present)
        self._found[place] = position, found
        gone = [
            path
            for path, told in sorted(self._told.items())
            if _place(path) == place and path not in found and told <= position
        ]
        for path in gone:
            del self._told[path]
        return gone, sorted(path for path in found if path not in self._told)

    def _vanished_since(self, path: str, position: int) -> bool:
        looked_at, found = self._found.get(_place(path), (-1, frozenset()))
        return position <= looked_at and path not in found

    def check(self) -> None:
        assert all(is_ephemeral(path) for path in self._told)
        for place, (_, found) in self._found.items():
            assert all(_place(path) == place for path in found)


def _place(path: str) -> str:
    """The place to look for this node, if it can vanish."""
    if path == CONTROLLER:
        return CONTROLLER
    return BROKERS if path.startswith(BROKERS + "/") else ""
