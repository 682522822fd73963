"""Was a group kept right? Judges what its members said of themselves.

Two promises are checked: that no partition had two owners at any moment, and that every record was read, in order, and
only once, except for what a member had read and not committed when it was killed or lost.

A tenure is the time for which a member may read a partition. It begins when the client says so. It ends when the client
has given the partition up, or at the kill. A client that is told that it *lost* a partition learns of it too late: such
a tenure counts up to the last commit that the broker took from this member, since that proves it was one.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Final

from clients.groups.events import TERMINAL, Event, Place

GRACEFUL: Final = frozenset({"revoked", "closed"})


@dataclass(slots=True)
class Tenure:
    """A member's time with a partition, and what it did there."""

    member: str
    place: Place
    since: float
    until: float = inf
    """Up to here it is certain that nobody else may have it."""
    end: str = "open"
    events: list[Event] = field(default_factory=list)
    """What the member said of this partition meanwhile: reads and commits."""

    @property
    def graceful(self) -> bool:
        return self.end in GRACEFUL


def faults(events: Iterable[Event], ends: Mapping[Place, int] | None = None) -> list[str]:
    """All that was wrong in the life of one group. *ends*: all partitions must have been read up to these offsets."""
    told = sorted(events, key=lambda event: event.at)
    by_place: defaultdict[Place, list[Tenure]] = defaultdict(list)
    found: list[str] = []
    for member in sorted({event.member for event in told}):
        for tenure in _tenures([event for event in told if event.member == member], found):
            by_place[tenure.place].append(tenure)
    for place, tenures in sorted(by_place.items()):
        tenures.sort(key=lambda tenure: tenure.since)
        found += _two_owners(tenures)
        found += _reading(tenures, None if ends is None else ends.get(place))
    if ends is not None:
        found += [f"{_name(place)} was never read" for place, end in ends.items() if end and place not in by_place]
    return found


def owned(events: Iterable[Event]) -> set[Place]:
    """What a member may read after these events."""
    mine: set[Place] = set()
    for event in events:
        if event.kind == "assigned":
            mine.update(event.places)
        elif event.kind in ("revoked", "lost"):
            mine.difference_update(event.places)
        elif event.kind in TERMINAL:
            mine.clear()
    return mine


def secured(events: Iterable[Event]) -> dict[Place, int]:
    """How far a group came in each partition for good: what is committed, or read by a member that still owns it.

    Who leaves commits what it has read. What was read by a member that was killed, or lost the partition, is to be read
    again. The events of each member come in their order.
    """
    safe: dict[Place, int] = {}
    reading: defaultdict[str, dict[Place, int]] = defaultdict(dict)
    for event in events:
        if event.kind == "read":
            reading[event.member][event.places[0]] = event.offsets[1]
        elif event.kind == "committed":
            for place, offset in zip(event.places, event.offsets, strict=True):
                safe[place] = max(safe.get(place, 0), offset)
        elif event.kind in ("revoked", "lost"):
            for place in event.places:
                reading[event.member].pop(place, None)
        elif event.kind in TERMINAL:
            reading[event.member].clear()
    for positions in reading.values():
        for place, after in positions.items():
            safe[place] = max(safe.get(place, 0), after)
    return safe


def _tenures(events: Sequence[Event], found: list[str]) -> list[Tenure]:
    """All tenures of one member, whose events these are, in order."""
    tenures: list[Tenure] = []
    open_now: dict[Place, Tenure] = {}
    proof = -inf
    for event in events:
        if event.kind == "assigned":
            for place in event.places:
                if place not in open_now:
                    open_now[place] = Tenure(event.member, place, since=event.at)
                    tenures.append(open_now[place])
        elif event.kind in ("revoked", "lost", "closed", "killed"):
            for place in event.places if event.kind in ("revoked", "lost") else list(open_now):
                if (tenure := open_now.pop(place, None)) is not None:
                    tenure.end = event.kind
                    tenure.until = max(tenure.since, proof) if event.kind == "lost" else event.at
        elif event.kind in ("read", "committing", "committed"):
            proof = event.at if event.kind == "committed" else proof
            for place in event.places:
                if (tenure := open_now.get(place)) is not None:
                    tenure.events.append(event)
                elif event.kind == "read":
                    found.append(f"{event.member} read {_name(place)} at {event.at:.3f}, which it did not own")
    return tenures


def _two_owners(tenures: Sequence[Tenure]) -> list[str]:
    found = []
    longest = tenures[0]
    for tenure in tenures[1:]:
        if tenure.since < longest.until:
            found.append(
                f"{_name(tenure.place)} had two owners: {longest.member} until {longest.until:.3f} ({longest.end}), "
                f"{tenure.member} since {tenure.since:.3f}"
            )
        longest = max(longest, tenure, key=lambda one: one.until)
    return found


def _reading(tenures: Sequence[Tenure], end: int | None) -> list[str]:
    """Follow one partition from owner to owner: where each may begin, and how far it came."""
    found: list[str] = []
    starts = {0}
    for tenure in tenures:
        starts = _follow(tenure, starts, found)
    if end is not None and max(starts) != end:
        found.append(f"{_name(tenures[0].place)} was committed up to {max(starts)}, and ends at {end}")
    return found


def _follow(tenure: Tenure, starts: set[int], found: list[str]) -> set[int]:
    """Where the next owner may begin. The committed offset, or one whose commit was asked for and never answered."""
    position: int | None = None
    committed = min(starts)
    asked: set[int] = set(starts)
    name = f"{tenure.member} at {_name(tenure.place)}"
    for event in tenure.events:
        if event.kind == "read":
            first, position_after = event.offsets
            if position is None and first not in starts:
                found.append(f"{name} began at {first}, not at {_any(starts)}")
            elif position is not None and first != position:
                found.append(f"{name} went on at {first}, not at {position}")
            if position is None:
                committed = first
                asked = {first}
            position = position_after
            continue
        offset = event.offsets[event.places.index(tenure.place)]
        if event.kind == "committing":
            asked.add(offset)
        else:
            committed = offset
            asked = {other for other in asked if other >= offset}
    if position is None:
        return {committed} if tenure.graceful and len(starts) == 1 else asked | {committed}
    if tenure.graceful:
        if committed != position:
            found.append(f"{name} left at {position}, but {committed} was committed")
        return {committed}
    return asked | {committed}


def _any(starts: set[int]) -> str:
    return " or ".join(map(str, sorted(starts)))


def _name(place: Place) -> str:
    return f"{place.topic}-{place.partition}"
