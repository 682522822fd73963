"""What a ConsumerGroupHeartbeat must and must not say, whatever the group is."""

from typing import Final

from cordwood.errors import Error, Refused
from cordwood.wire.messages import ConsumerGroupHeartbeatRequest

from .member import JOINING, LEFT, LEFT_FOR_A_WHILE

MEMBER_ID_FROM_CLIENT_VERSION: Final = 1
"""Since this version, a member chooses its id itself; before, it is given one when it joins."""

BLANKS: Final = "".join(map(chr, range(0x21)))
"""The characters that Java's trim() removes."""


def check_request(request: ConsumerGroupHeartbeatRequest, api_version: int, assignors: tuple[str, ...]) -> None:
    """Raises ``Refused`` with INVALID_REQUEST or UNSUPPORTED_ASSIGNOR."""
    epoch = request.member_epoch
    if api_version >= MEMBER_ID_FROM_CLIENT_VERSION or epoch > JOINING or epoch == LEFT:
        _check_not_blank("member id", request.member_id)
    _check_not_blank("group id", request.group_id)
    _check_not_blank("instance id", request.instance_id)
    _check_not_blank("rack id", request.rack_id)
    if epoch == JOINING:
        _check_joining(request)
    elif epoch == LEFT_FOR_A_WHILE and request.instance_id is None:
        raise _invalid("Only a static member, with an instance id, can leave for a while.")
    elif epoch < LEFT_FOR_A_WHILE:
        raise _invalid(f"There is no member epoch {epoch}.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise Refused(
            Error.UNSUPPORTED_ASSIGNOR, f"There is no assignor {request.server_assignor}, only {', '.join(assignors)}."
        )


def is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Does the member say everything? It does if it is not sure that the broker knows, and wants the same in return."""
    subscribes = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    return request.rebalance_timeout_ms != -1 and subscribes and request.topic_partitions is not None


def _check_joining(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise _invalid("Whoever joins must tell its rebalance timeout.")
    if request.topic_partitions is None or request.topic_partitions:
        raise _invalid("Whoever joins must have no partitions, and say so.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise _invalid("Whoever joins must subscribe to topics, by their names or by a regular expression.")


def _check_not_blank(what: str, text: str | None) -> None:
    if text is not None and not text.strip(BLANKS):
        raise _invalid(f"The {what} is empty.")


def _invalid(message: str) -> Refused:
    return Refused(Error.INVALID_REQUEST, message)
