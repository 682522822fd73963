"""Requests that name several groups: each group's shard is asked, and the answers are put together."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from cordwood.broker.callers import Gathering
from cordwood.broker.connection import Call
from cordwood.coordinator.outcome import Caller, Outcome
from cordwood.errors import Refused
from cordwood.group.state import GroupState
from cordwood.ports import Instant

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker

Question = Callable[[GroupState, Caller, int], Outcome]
"""A question about the group with this index. Its outcome answers the caller; it may raise ``Refused``."""

GROUPS_AT_ONCE = 1000


def ask_each(
    broker: "Broker",
    call: Call,
    group_ids: Sequence[str],
    question: Question,
    shape: Callable[[list[object | Refused]], object],
) -> None:
    """Ask about every group; *shape* makes the response from the results, which are in the order of the groups.

    Only some are asked about at a time: a request has room for 100,000 of them, and others have their turn in between.
    """
    parts = Gathering(broker, call, len(group_ids), shape).parts

    def ask_some(first: int, now: Instant) -> None:
        last = min(first + GROUPS_AT_ONCE, len(group_ids))
        for index in range(first, last):
            broker.groups.handle(group_ids[index], parts[index], partial(_ask, question, index))
        if last < len(group_ids) and not call.connection.closed:
            broker.timers.at(now.mono_ms + 1, partial(ask_some, last))

    ask_some(0, broker.now)


def _ask(question: Question, index: int, state: GroupState, caller: Caller, now: Instant) -> Outcome:
    return question(state, caller, index)
