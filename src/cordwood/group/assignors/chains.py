"""Chains of moves, where no single move would help: A gives to B, B gives something else to C.

An assignment is as balanced as its subscriptions allow when no chain leads from a member to one that has at least two
partitions fewer. (This is the theory of optimal semi-matchings: alternating paths that reduce the cost.) So chains are
looked for from the most loaded member, breadth first, because every link is a partition that moves.

When no chain from a member helps, it is settled, and so is every member that it can reach: they all have about as many
partitions as it has, chains that reach them from others stay among them, and less loaded members can gain nothing
there. Settled members are never looked at again, so all failed searches together cost no more than reading the
subscriptions once. Successful searches have a limit, which only a group made for the purpose comes near: past it, loads
are as equal as single moves can make them.
"""

from heapq import heapify, heappop, heappush

from .loads import Loads

# A link: which member gives a partition, and of which topic.
_Link = tuple[int, int]


# Members looked at by all the searches of one assignment; about half a second.
REACHED_MAX = 1_000_000


def level_chains(loads: Loads, reached_max: int = REACHED_MAX) -> None:
    """Follow chains until none makes the loads more equal."""
    settled = [False] * len(loads.total)
    givers = [(-total, member) for member, total in enumerate(loads.total)]
    heapify(givers)
    while givers and reached_max > 0:
        load, member = heappop(givers)
        if settled[member] or -load != loads.total[member]:
            continue
        links: dict[int, _Link | None] = {member: None}
        taker = _search(loads, member, links, settled)
        if taker is None:
            for reached in links:
                settled[reached] = True
            continue
        reached_max -= len(links)
        _follow(loads, taker, links)
        heappush(givers, (-loads.total[member], member))
        heappush(givers, (-loads.total[taker], taker))


def _search(loads: Loads, start: int, links: dict[int, _Link | None], settled: list[bool]) -> int | None:
    """The nearest member with at least two partitions fewer; ``links`` gets how each member on the way is reached."""
    total, subscribers = loads.total, loads.subscribers
    enough = total[start] - 2
    queue, seen = [start], set[int]()
    for giver in queue:
        for topic in sorted(loads.counts[giver].keys() - seen):
            fresh = [taker for taker in subscribers[topic] if taker not in links and not settled[taker]]
            links.update(dict.fromkeys(fresh, (giver, topic)))
            least = min(fresh, key=total.__getitem__, default=start)
            if total[least] <= enough:
                return least
            queue += fresh
        seen.update(loads.counts[giver])
    return None


def _follow(loads: Loads, taker: int, links: dict[int, _Link | None]) -> None:
    """Along the chain, each member gives one partition to the next."""
    while link := links[taker]:
        giver, topic = link
        loads.move(topic, giver=giver, taker=taker)
        taker = giver
