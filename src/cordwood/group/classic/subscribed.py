"""Which topics a group's members want, as far as the broker can tell.

The broker does not know the meaning of what members of a group tell each other. But consumers all use the same format,
and their offsets should not expire while they are subscribed. So their metadata is decoded, but only when somebody asks
for it.
"""

from collections.abc import Sequence
from typing import Final

from cordwood.errors import ProtocolError
from cordwood.wire import decoder
from cordwood.wire.messages import ConsumerProtocolSubscription

CONSUMER_PROTOCOL_TYPE: Final = "consumer"
VERSION_BYTES: Final = 2


class Subscribed:
    """The topics of one generation. What later versions add follows what version 0 has, and is not looked at."""

    __slots__ = ("_metadata", "_topics")

    def __init__(self, metadata: Sequence[bytes] | None) -> None:
        """*metadata* is each member's, or None if nothing can be known."""
        self._metadata = metadata
        self._topics: frozenset[str] | None = None

    @property
    def topics(self) -> frozenset[str] | None:
        """None: they are not known."""
        if self._topics is None and self._metadata is not None:
            self._topics = _topics_of(self._metadata)
            self._metadata = None
        return self._topics


NOTHING_KNOWN: Final = Subscribed(None)


def _topics_of(metadata: Sequence[bytes]) -> frozenset[str] | None:
    decode = decoder(ConsumerProtocolSubscription, 0)
    found: set[str] = set()
    try:
        for said in set(metadata):
            if len(said) < VERSION_BYTES:
                return None
            subscription, _ = decode(memoryview(said), VERSION_BYTES)
            found.update(subscription.topics)
    except ProtocolError:
        return None
    return frozenset(found)
