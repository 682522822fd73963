"""What can go wrong with the raw client, each with a sentence that says what happened and what to do.

::

    RawError
    ├── Unavailable            nobody answered within the time allowed
    ├── UnknownTopic           there is no such topic, or no such partition of it
    ├── OffsetOutOfRange       the records at that offset are gone, or not there yet
    ├── AuthenticationFailed   the broker does not accept our credentials, or is not the broker it should be
    └── RequestRefused         any other error code that waiting does not help against

Malformed bytes are none of these: they stay ``ProtocolError`` and ``CorruptData``, as everywhere. ``ConnectionLost``
never leaves the client: it means *try again*, and becomes ``Unavailable`` when the time is up.
"""

from cordwood.errors import CordwoodError, Error


class RawError(CordwoodError):
    """A cluster could not do what it was asked to."""

    def __reduce__(self) -> tuple[object, ...]:
        """Makes errors picklable, whatever arguments their constructors take: they travel from a task to the driver."""
        return _made_again, (type(self), self.args, self.__dict__)


def _made_again(kind: type[RawError], args: tuple[object, ...], state: dict[str, object]) -> RawError:
    made = kind.__new__(kind, *args)
    made.args = args
    made.__dict__.update(state)
    return made


class Unavailable(RawError):
    """The time allowed is up, and no broker has done what it was asked to."""


class AuthenticationFailed(RawError):
    """The broker refused the credentials, or could not prove that it knows them, too."""


class UnknownTopic(RawError):
    """There is no such topic or partition."""

    def __init__(self, topic: str, partition: int | None = None) -> None:
        what = f"topic {topic}" if partition is None else f"partition {partition} of topic {topic}"
        super().__init__(f"there is no {what}; was it deleted, or is the name right?")
        self.topic = topic
        self.partition = partition


class OffsetOutOfRange(RawError):
    """The requested records are not there any more, or never were."""

    def __init__(
        self, topic: str, partition: int, offset: int, *, log_start_offset: int = -1, high_watermark: int = -1
    ) -> None:
        has = f"; it has {log_start_offset} to {high_watermark}" if log_start_offset >= 0 else ""
        super().__init__(
            f"offset {offset} of {topic}-{partition} is out of range{has}: its records were deleted, by retention or "
            "by hand, or the topic was made anew"
        )
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.log_start_offset = log_start_offset
        """-1 if unknown."""
        self.high_watermark = high_watermark


class RequestRefused(RawError):
    """A broker answered with an error code."""

    def __init__(self, what: str, error: Error, message: str | None = None) -> None:
        super().__init__(f"{what}: {message or _TEXTS.get(error) or error.name}")
        self.error = error


class ConnectionLost(RawError):
    """The connection broke, or an answer did not come in time. Another connection may work."""


class Retry(RawError):
    """An error that goes away by itself, such as during a change of leaders."""

    def __init__(self, what: str, error: Error, message: str | None = None) -> None:
        super().__init__(f"{what}: {message or error.name}")
        self.error = error


_TEXTS = {
    Error.TOPIC_AUTHORIZATION_FAILED: "this user may not use the topic",
    Error.GROUP_AUTHORIZATION_FAILED: "this user may not use the group",
    Error.CLUSTER_AUTHORIZATION_FAILED: "this user may not ask that of the cluster",
    Error.MESSAGE_TOO_LARGE: "a batch is larger than the topic's max.message.bytes",
    Error.RECORD_LIST_TOO_LARGE: "a batch is larger than the topic's segments",
    Error.INVALID_TOPIC: "a topic's name is 1 to 249 letters, digits, dots, dashes and underscores",
    Error.UNSUPPORTED_COMPRESSION_TYPE: "the broker does not know this compression",
    Error.UNKNOWN_MEMBER_ID: "the group has members, so its offsets cannot be committed from outside",
    Error.ILLEGAL_GENERATION: "the group has members, so its offsets cannot be committed from outside",
    Error.INVALID_RECORD: "the broker does not take such records: does the topic want keys, or other timestamps?",
}


def error_of(code: int) -> Error:
    """A peer's error code; an unknown code becomes ``UNKNOWN_SERVER_ERROR``."""
    try:
        return Error(code)
    except ValueError:
        return Error.UNKNOWN_SERVER_ERROR
