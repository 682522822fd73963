"""The uniform assignor: all members get the same number of partitions, of whatever topics, and keep what they have.

Balance comes first, then stickiness. Where all members subscribe to the same topics, a division gives the shares
(``equal_shares``); where they do not, shares are found by moving partitions until no move helps (``unequal_shares``).
Members that subscribe to no existing topic get nothing, and do not make an otherwise equal group unequal.
"""

from .equal_shares import share_equally
from .spec import Assignment, GroupSpec, subscriptions
from .unequal_shares import share_unequally


class UniformAssignor:
    """Equal loads, few moves."""

    name = "uniform"

    def assign(self, spec: GroupSpec) -> Assignment:
        """Share out every subscribed topic so that loads are as equal as the subscriptions allow."""
        subscribed = subscriptions(spec)
        takers = {member_id: topics for member_id, topics in subscribed.items() if topics}
        share = share_equally if len(set(takers.values())) <= 1 else share_unequally
        shared = share(spec, takers)
        return {member_id: shared.get(member_id, {}) for member_id in subscribed}
