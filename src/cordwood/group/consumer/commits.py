"""May a member of a consumer group commit or fetch offsets with the epoch that it names?"""

from uuid import UUID

from cordwood.errors import Error, Refused
from cordwood.group.groups import CheckPartition

from .member import Member

CONSUMER_PROTOCOL_FROM_VERSION = 9
"""OffsetCommit has member epochs since this version."""


def check_commit(member: Member, epoch: int, *, transactional: bool, api_version: int) -> CheckPartition | None:
    """A member that was not told of its newest epoch may commit what it has had since an epoch that it knows."""
    if not transactional and not member.is_classic and api_version < CONSUMER_PROTOCOL_FROM_VERSION:
        raise Refused(
            Error.UNSUPPORTED_VERSION,
            f"Members of the consumer protocol commit with version {CONSUMER_PROTOCOL_FROM_VERSION} or later.",
        )
    if epoch == member.current.epoch:
        return None
    if epoch > member.current.epoch:
        raise _stale(member, f"Epoch {epoch} is later than the member's, which is {member.current.epoch}.")

    def check_partition(topic: str, topic_id: UUID, partition: int) -> None:
        since = member.current.since(topic_id, partition)
        if since is None:
            raise _stale(member, f"The member does not have partition {topic}-{partition}.")
        if epoch < since:
            raise _stale(member, f"The member has partition {topic}-{partition} since {since}, later than {epoch}.")

    return check_partition


def check_epoch(member: Member, epoch: int) -> None:
    """Is it the member's epoch?"""
    if epoch != member.current.epoch:
        raise _stale(member, f"The member's epoch is {member.current.epoch}, not {epoch}.")


def _stale(member: Member, message: str) -> Refused:
    return Refused(Error.ILLEGAL_GENERATION if member.is_classic else Error.STALE_MEMBER_EPOCH, message)
