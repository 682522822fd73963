"""DeleteGroups (42), versions 0-2: delete groups without members, with their offsets, each once even if named twice."""

from typing import TYPE_CHECKING

from cordwood.broker.connection import Call
from cordwood.broker.handlers.each_group import ask_each
from cordwood.coordinator.outcome import Caller, Outcome
from cordwood.errors import Error, Refused
from cordwood.group import offsets
from cordwood.group.state import GroupState
from cordwood.wire.messages import DeleteGroupsRequest, DeleteGroupsResponse, DeleteGroupsResponseGroup

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker


def handle(broker: "Broker", call: Call, request: DeleteGroupsRequest) -> None:
    names = list(dict.fromkeys(request.groups_names))

    def delete(state: GroupState, caller: Caller, index: int) -> Outcome:
        # The group's own records come last: if not everything can be written, the group is still there to be deleted
        # again.
        return Outcome(offsets.delete_group(state, names[index]), [(caller, Error.NONE)], splits=True)

    def gathered(answers: list[object | Refused]) -> DeleteGroupsResponse:
        return DeleteGroupsResponse(results=[_result(*pair) for pair in zip(names, answers, strict=True)])

    ask_each(broker, call, names, delete, gathered)


def _result(group_id: str, found: object | Refused) -> DeleteGroupsResponseGroup:
    error = found.error if isinstance(found, Refused) else Error.NONE
    return DeleteGroupsResponseGroup(group_id=group_id, error_code=error)
