"""Where a follower must cut its log so that it is again a part of its leader's (KIP-101, KIP-279)."""

from cordwood.ids import NO_LEADER_EPOCH
from cordwood.log.epochs import EpochEnd
from cordwood.log.log import Log


def truncation_offset(log: Log, leaders: EpochEnd) -> int:
    """The offset from which on *log* can not stay.

    *leaders* is the leader's answer to the follower's newest epoch: the nearest epoch up to it that the leader knows,
    and where that ends there. If the follower does not know that epoch, it cuts back to the last one that it has before
    it, and the next fetch asks again.
    """
    end = log.end_offset
    if leaders.epoch == NO_LEADER_EPOCH:
        return min(leaders.end_offset, end)
    own = log.end_offset_for(leaders.epoch)
    if own.epoch == NO_LEADER_EPOCH:
        return min(leaders.end_offset, end)
    if own.epoch != leaders.epoch:
        return min(own.end_offset, end)
    return min(own.end_offset, leaders.end_offset, end)
