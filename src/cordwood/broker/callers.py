"""The way back from a coordinator to a client: one call, or one that is answered by several parts together."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from cordwood.broker.connection import Call
from cordwood.errors import Refused

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker


class Asking:
    """A client's call as a coordinator's ``Caller``. *shape* turns a refusal into the API's response."""

    __slots__ = ("_broker", "_call", "_shape", "api_version")

    def __init__(self, broker: "Broker", call: Call, shape: Callable[[Refused], object]) -> None:
        self._broker = broker
        self._call = call
        self._shape = shape
        self.api_version = call.api_version

    @property
    def client_id(self) -> str:
        return self._call.client_id or ""

    @property
    def client_host(self) -> str:
        """As Kafka writes it, with a slash where a host name could be."""
        return f"/{self._call.connection.peer.host}"

    def reply(self, response: object, /) -> None:
        self._broker.reply(self._call, response)

    def refuse(self, refusal: Refused, /) -> None:
        self._broker.reply(self._call, self._shape(refusal))


class Part:
    """One of the several questions that make up a call."""

    __slots__ = ("_gathering", "_index", "client_host", "client_id")

    def __init__(self, gathering: "Gathering", index: int, asking: Asking) -> None:
        self._gathering = gathering
        self._index = index
        self.client_id = asking.client_id
        self.client_host = asking.client_host

    @property
    def api_version(self) -> int:
        return self._gathering.api_version

    def reply(self, response: object, /) -> None:
        self._gathering.arrived(self._index, response)

    def refuse(self, refusal: Refused, /) -> None:
        self._gathering.arrived(self._index, refusal.with_traceback(None))  # the traceback would keep kilobytes alive


class Gathering:
    """A call that is answered when all its parts are, each by a response or a refusal, in the order of the parts."""

    def __init__(
        self, broker: "Broker", call: Call, count: int, shape: Callable[[list[object | Refused]], object]
    ) -> None:
        self._broker = broker
        self._call = call
        self._shape = shape
        self._answers: list[object | Refused] = [None] * count
        self._missing = count
        asking = Asking(broker, call, _unshaped)
        self.parts = [Part(self, index, asking) for index in range(count)]
        if not count:
            self._finish()

    @property
    def api_version(self) -> int:
        return self._call.api_version

    def arrived(self, index: int, answer: object | Refused) -> None:
        assert self._answers[index] is None, "a part was answered twice"
        self._answers[index] = answer
        self._missing -= 1
        if not self._missing:
            self._finish()

    def _finish(self) -> None:
        self._broker.reply(self._call, self._shape(self._answers))


def _unshaped(refusal: Refused) -> object:
    return refusal
