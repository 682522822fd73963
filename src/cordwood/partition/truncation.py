"""Where two logs diverge, and where a follower must truncate its own so that it agrees with its leader's again.

The leader epochs show it (KIP-101, KIP-279, KIP-595): within one leader epoch there is only one history.
"""

from cordwood.errors import Error, Refused
from cordwood.ids import NO_LEADER_EPOCH
from cordwood.log.epochs import EpochEnd
from cordwood.log.log import Log


def divergence(log: Log, *, last_epoch: int, offset: int) -> EpochEnd | None:
    """Does a reader whose records end at *offset*, with *last_epoch* as its last epoch, differ from *log*?

    If so, return the nearest epoch up to *last_epoch* that the log knows, and where it ends. A reader that names no
    epoch (-1) has nothing that could differ, or cannot say.

    Raises:
        Refused: OFFSET_OUT_OF_RANGE, if the log knows nothing of what the reader has.
    """
    if last_epoch < 0:
        return None
    found = log.end_offset_for(last_epoch)
    if found.epoch < 0 or offset < log.log_start_offset:
        raise Refused(Error.OFFSET_OUT_OF_RANGE)
    if found.epoch < last_epoch or found.end_offset < offset:
        return found
    return None


def truncation_offset(log: Log, leaders: EpochEnd) -> int:
    """The offset to which *log* must be truncated.

    *leaders* is the leader's answer to the follower's newest epoch: the nearest epoch up to it that the leader knows,
    and where that ends in the leader's log. If the follower does not know that epoch, it truncates to the end of the
    last earlier one that it has, and the next fetch asks again.
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
