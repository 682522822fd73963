"""The state machine of the groups of one partition of ``__consumer_offsets``.

Its handlers are in modules beside it, one package for each concern, as functions of (state, request, caller, now) that
return an ``Outcome``. Two tables tie them together: ``_APPLY`` says how each kind of record changes the state,
``_EXPIRED`` what happens when a deadline passes.
"""

from collections.abc import Iterator, Sequence

from cordwood.coordinator.deadlines import Deadlines
from cordwood.coordinator.outcome import Outcome
from cordwood.coordinator.state_record import StateRecord
from cordwood.group import classic, consumer, offsets
from cordwood.group.state import GroupState
from cordwood.group.stored import decode_record, encode_record
from cordwood.group.tables import Apply, Expired
from cordwood.ids import TopicName
from cordwood.ports import Instant

_APPLY: Apply = {**offsets.APPLY, **classic.APPLY, **consumer.APPLY}
_EXPIRED: Expired = {**offsets.EXPIRED, **classic.EXPIRED, **consumer.EXPIRED}


class GroupMachine:
    """A ``Machine`` over the groups of a shard."""

    def __init__(self, state: GroupState) -> None:
        self.state = state

    @property
    def deadlines(self) -> Deadlines[object]:
        return self.state.deadlines

    encode = staticmethod(encode_record)
    decode = staticmethod(decode_record)

    def apply(self, record: StateRecord, /) -> None:
        _APPLY[type(record.key)](self.state, record.key, record.value)

    def adopt(self) -> None:
        ahead, self.state.ahead = self.state.ahead, {}
        for group_id, decided in ahead.items():
            self.state.groups[group_id] = decided.group

    def abandon(self) -> None:
        self.state.ahead = {}

    def loaded(self, now: Instant, /) -> Outcome:
        """Every loaded group sets its own deadlines; the outcome may repair what an older broker left half done."""
        outcome = Outcome()
        for part in (offsets, classic, consumer):
            outcome.records += part.loaded(self.state, now).records
        return outcome

    def ended(self) -> Outcome:
        return classic.unloaded(self.state)

    def topics_changed(self, names: Sequence[TopicName], now: Instant) -> Iterator[Outcome]:
        """Topics were created, changed or deleted; each outcome must be carried out before the next is asked for."""
        yield consumer.topics_changed(self.state, names, now)
        yield offsets.topics_deleted(self.state, names, now)

    def expired(self, key: object, now: Instant, /) -> Outcome:
        return _EXPIRED[type(key)](self.state, key, now)

    def check(self) -> None:
        self.state.check()
