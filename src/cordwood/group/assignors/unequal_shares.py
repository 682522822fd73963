"""Sharing among members that subscribe to different topics: loads as equal as the subscriptions allow.

Three steps, all of them on *counts* (how many partitions of a topic a member has), never on single partitions:

1. Free partitions go to the least loaded subscriber; topics with the most partitions for each subscriber come first,
   because there the choice is smallest.
2. In each topic, the most loaded member that has some of it gives to the least loaded subscriber while that helps. The
   next step would find these moves too, but takes four times as long when half of the members are new.
3. What remains are chains: A cannot give to C, but A can give to B, and B something else to C (``chains``).

Then partitions are picked to fit the counts. A member keeps as many of its partitions as its count allows, so giving
one away and getting it back on the way costs nothing. A group that is already balanced does not change.
"""

from collections.abc import Mapping
from heapq import heapify, heapreplace
from uuid import UUID

from .chains import level_chains
from .claims import Claims, claim
from .loads import Loads
from .spec import Assignment, GroupSpec


def share_unequally(spec: GroupSpec, subscribed: Mapping[str, frozenset[UUID]]) -> Assignment:
    """Shares for the members of ``subscribed``, whatever their subscriptions."""
    claims = claim(spec, subscribed)
    members, topics = list(subscribed), list(claims.free)
    loads = _loads(claims, members, topics, subscribed)
    order = _tightest_first(loads, [spec.partitions[topic] for topic in topics])
    for topic in order:
        _hand_out(loads, topic, len(claims.free[topics[topic]]))
    for topic in order:
        _level(loads, topic)
    level_chains(loads)
    return _picked(claims, loads, members, topics)


def _loads(claims: Claims, members: list[str], topics: list[UUID], subscribed: Mapping[str, frozenset[UUID]]) -> Loads:
    """Members and topics become numbers, which are cheap to compare and to look up."""
    number = {topic: index for index, topic in enumerate(topics)}
    numbers = {names: sorted(number[topic] for topic in names) for names in set(subscribed.values())}
    subscribers: list[list[int]] = [[] for _ in topics]
    for member, member_id in enumerate(members):
        for topic in numbers[subscribed[member_id]]:
            subscribers[topic].append(member)
    loads = Loads(subscribers, len(members))
    for member, member_id in enumerate(members):
        for name, partitions in claims.owned[member_id].items():
            loads.add(member, number[name], len(partitions))
    return loads


def _tightest_first(loads: Loads, counts: list[int]) -> list[int]:
    """Topics by partitions per subscriber, the most first; at equal ratios, those with fewer subscribers first."""

    def rank(topic: int) -> tuple[float, int, int]:
        subscribers = len(loads.subscribers[topic])
        return (-counts[topic] / subscribers, subscribers, topic)

    return sorted(range(len(counts)), key=rank)


def _hand_out(loads: Loads, topic: int, count: int) -> None:
    """Hand out free partitions, each to the subscriber that has the least at that moment."""
    if not count:
        return
    takers = [(loads.total[member], member) for member in loads.subscribers[topic]]
    heapify(takers)
    for _ in range(count):
        load, member = takers[0]
        heapreplace(takers, (load + 1, member))
        loads.add(member, topic, 1)


def _level(loads: Loads, topic: int) -> None:
    """Move partitions of one topic from the most to the least loaded, as long as that makes loads more equal.

    A member can be in both heaps, and only the entry by which it was last chosen is up to date. That does no harm: a
    giver stays within one of the top, a taker within one of the bottom, so the other entry only matters when everything
    is level.
    """
    total = loads.total
    givers = [(-total[member], member) for member in loads.subscribers[topic] if loads.has(member, topic)]
    takers = [(total[member], member) for member in loads.subscribers[topic]]
    heapify(givers)
    heapify(takers)
    while givers and -givers[0][0] - takers[0][0] > 1:
        (_, giver), (_, taker) = givers[0], takers[0]
        loads.move(topic, giver=giver, taker=taker)
        heapreplace(takers, (total[taker], taker))
        # A member that has nothing of this topic left sinks below all others.
        heapreplace(givers, (-total[giver] if loads.has(giver, topic) else 1, giver))


def _picked(claims: Claims, loads: Loads, members: list[str], topics: list[UUID]) -> Assignment:
    """The partitions that fit the counts: first what a member had, then what is free, in order."""
    assignment: Assignment = {member_id: {} for member_id in members}
    for topic, name in enumerate(topics):
        counts = {member: loads.has(member, topic) for member in loads.subscribers[topic]}
        kept: dict[int, list[int]] = {}
        free = set(claims.free[name])
        for member, count in counts.items():
            had = sorted(claims.owned[members[member]].get(name, ()))
            kept[member] = had[:count]
            free.update(had[count:])
        deck = sorted(free, reverse=True)
        for member, count in counts.items():
            partitions = kept[member]
            while len(partitions) < count:
                partitions.append(deck.pop())
            if partitions:
                assignment[members[member]][name] = frozenset(partitions)
        assert not deck, "counts add up to all partitions"
    return assignment
