"""Offsets that a transaction has committed, and that count once the transaction is committed.

There are no transactions yet, hence no such offsets. All code that must respect them asks here.
"""

from cordwood.group.state import GroupState


def has_pending(state: GroupState, group_id: str, topic: str, partition: int) -> bool:
    """Does an open transaction hold an offset of this partition for the group?"""
    return False
