"""DeleteGroups (42), versions 0-2: groups without members go, with their offsets. One that is named twice goes once."""

from typing import TYPE_CHECKING

from cordwood.broker.callers import Gathering
from cordwood.broker.connection import Call
from cordwood.coordinator.outcome import answer
from cordwood.errors import Error, Refused
from cordwood.group import offsets
from cordwood.wire.messages import DeleteGroupsRequest, DeleteGroupsResponse, DeleteGroupsResponseGroup

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker


def handle(broker: "Broker", call: Call, request: DeleteGroupsRequest) -> None:
    names = list(dict.fromkeys(request.groups_names))

    def gathered(answers: list[object | Refused]) -> DeleteGroupsResponse:
        return DeleteGroupsResponse(results=[_result(*pair) for pair in zip(names, answers, strict=True)])

    for name, part in zip(names, Gathering(broker, call, len(names), gathered).parts, strict=True):
        broker.groups.handle(
            name,
            part,
            lambda state, caller, now, name=name: answer(  # type: ignore[misc]
                caller, Error.NONE, *offsets.delete_group(state, name)
            ),
        )


def _result(group_id: str, found: object | Refused) -> DeleteGroupsResponseGroup:
    error = found.error if isinstance(found, Refused) else Error.NONE
    return DeleteGroupsResponseGroup(group_id=group_id, error_code=error)
