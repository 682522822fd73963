"""What a member of a group tells: the words that members print and tests read, one line of JSON each.

Times are those of the system's monotonic clock, which all processes of a machine share.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

Kind = Literal[
    "assigned",  # may read these partitions from now on
    "revoked",  # has stopped reading them, and committed what it had read
    "lost",  # was told that others may have them already
    "read",  # got records of one partition: offsets are the first and the one after the last
    "committing",  # is about to commit these offsets
    "committed",  # was told that they are committed
    "failed",  # was told that they are not
    "error",  # the client had something to say
    "closed",  # has left the group by itself; the process may go on
    "killed",  # was killed; only the test says so
]
TERMINAL: Final = frozenset({"closed", "killed"})


class Place(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that a member says, or that is said of it."""

    at: float
    member: str
    kind: Kind
    places: tuple[Place, ...] = ()
    offsets: tuple[int, ...] = ()
    text: str = ""


def to_line(event: Event) -> str:
    return json.dumps(
        {
            "at": event.at,
            "member": event.member,
            "kind": event.kind,
            "places": event.places,
            "offsets": event.offsets,
            "text": event.text,
        }
    )


def from_line(line: str) -> Event:
    found: Mapping[str, Any] = json.loads(line)
    return Event(
        at=found["at"],
        member=found["member"],
        kind=found["kind"],
        places=tuple(Place(*place) for place in found.get("places", ())),
        offsets=tuple(found.get("offsets", ())),
        text=found.get("text", ""),
    )


@dataclass(frozen=True, slots=True)
class Wish:
    """How a member is to be: the first line that it reads."""

    member: str
    client: str
    bootstrap: str
    group: str
    topics: tuple[str, ...] = ()
    pattern: str = ""
    """A regular expression for whole names, instead of topics."""
    protocol: str = "classic"
    assignor: str = "range"
    """Of the client in the classic protocol, of the broker in the other."""
    instance: str = ""
    session_timeout_ms: int = 2_000
    heartbeat_ms: int = 250
    metadata_age_ms: int = 500
    commit_every: int = 40
    """Records read between two commits; what is left is committed when a partition is given up."""
