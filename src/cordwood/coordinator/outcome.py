"""What a handler of a state machine returns: records to write, and replies to send once those are committed."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from cordwood.coordinator.state_record import StateRecord
from cordwood.errors import Refused


class Caller(Protocol):
    """Who asked, and the way to answer. A handler may keep it and answer when a later event brings the answer."""

    @property
    def client_id(self) -> str: ...

    @property
    def client_host(self) -> str: ...

    @property
    def api_version(self) -> int: ...

    def reply(self, response: object, /) -> None: ...

    def refuse(self, refusal: Refused, /) -> None:
        """Answer with an error, in the form that the API has for it."""


class Gathers(Enum):
    """How an outcome may wait so that its records are written together with others: see ``Shard.gather``."""

    BY_KEY = "it rests on nothing that others which gather change; of several changes of one key the last counts"
    AHEAD = "the machine has let its records happen to copies, which take the originals' places when they are written"


@dataclass(slots=True)
class Outcome:
    """Records and replies. The records are written as one batch, all or none.

    If it *splits*, its records are independent of each other: what does not fit into one batch is written as several,
    in order, and what has been written stays if the rest cannot be.

    If the records cannot be written, *failed* is called. It may undo what was prepared outside of the durable state,
    and must answer the callers in *replies*; without it, they are all refused.

    If it *gathers*, it may wait a little for others.
    """

    records: list[StateRecord] = field(default_factory=list)
    replies: list[tuple[Caller, object]] = field(default_factory=list)
    failed: Callable[[Refused], None] | None = None
    gathers: Gathers | None = None
    splits: bool = False


def answer(caller: Caller, response: object, *records: StateRecord) -> Outcome:
    """The usual outcome: one reply, and the records that it depends on."""
    return Outcome(list(records), [(caller, response)])
