"""OffsetCommit (8), versions 2-10: a group says how far it has read. See ``group/offsets/commit``."""

from typing import TYPE_CHECKING, Final

from cordwood.broker.connection import Call
from cordwood.errors import Refused
from cordwood.group import offsets
from cordwood.wire.messages import OffsetCommitRequest

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker

OFFSET_COMMIT: Final = 8


class Committing:
    """A client's call as a coordinator's ``Caller``, like ``callers.Asking``: thousands are made in a second."""

    __slots__ = ("_broker", "_call", "_request", "api_version")

    def __init__(self, broker: "Broker", call: Call, request: OffsetCommitRequest) -> None:
        self._broker = broker
        self._call = call
        self._request = request
        self.api_version = call.api_version

    @property
    def client_id(self) -> str:
        return self._call.client_id or ""

    @property
    def client_host(self) -> str:
        return f"/{self._call.connection.peer.host}"

    def reply(self, response: object, /) -> None:
        self._broker.reply(self._call, response)

    def refuse(self, refusal: Refused, /) -> None:
        broker = self._broker
        response = offsets.refused_commit(broker.image, self._request, self.api_version, refusal)
        broker.reply(self._call, response)


def handle(broker: "Broker", call: Call, request: OffsetCommitRequest) -> None:
    broker.groups.gather(request.group_id, request, Committing(broker, call, request), offsets.commit, OFFSET_COMMIT)
