"""How many partitions of each topic each member has. Members and topics are numbers from zero.

Invariant: a member's total is the sum of its counts, no count is zero, and counts are of subscribed topics only.
"""


class Loads:
    """Counts that move between members."""

    __slots__ = ("counts", "subscribers", "total")

    def __init__(self, subscribers: list[list[int]], members: int) -> None:
        self.subscribers = subscribers
        self.counts: list[dict[int, int]] = [{} for _ in range(members)]
        self.total = [0] * members

    def has(self, member: int, topic: int) -> int:
        """How many partitions of the topic the member has."""
        return self.counts[member].get(topic, 0)

    def add(self, member: int, topic: int, count: int) -> None:
        """Give the member *count* more partitions of the topic, or take some away if negative."""
        counts = self.counts[member]
        counts[topic] = counts.get(topic, 0) + count
        assert counts[topic] >= 0, "nobody gives what it has not"
        if not counts[topic]:
            del counts[topic]
        self.total[member] += count

    def move(self, topic: int, *, giver: int, taker: int) -> None:
        """One partition of the topic moves from one member to another."""
        self.add(giver, topic, -1)
        self.add(taker, topic, 1)

    def check(self) -> None:
        """Assert the invariant."""
        subscribed = [set(members) for members in self.subscribers]
        for member, counts in enumerate(self.counts):
            assert sum(counts.values()) == self.total[member], "a total is the sum of its counts"
            assert all(count > 0 for count in counts.values()), "no count is zero"
            assert all(member in subscribed[topic] for topic in counts), "only subscribers have partitions"
