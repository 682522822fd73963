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
"""Of the group with this index. Its outcome answers the caller; it may raise ``Refused``."""


def ask_each(
    broker: "Broker",
    call: Call,
    group_ids: Sequence[str],
    question: Question,
    shape: Callable[[list[object | Refused]], object],
) -> None:
    """Ask of every group; *shape* makes the response of what came back, in the order of the groups."""
    parts = Gathering(broker, call, len(group_ids), shape).parts
    for index, (group_id, part) in enumerate(zip(group_ids, parts, strict=True)):
        broker.groups.handle(group_id, part, partial(_ask, question, index))


def _ask(question: Question, index: int, state: GroupState, caller: Caller, now: Instant) -> Outcome:
    return question(state, caller, index)
