"""ListGroups (16), versions 0-5: the groups that this broker coordinates.

- 4: only those in certain states; 5: only those of certain types, such as classic and consumer.

While some of them are being loaded, the request fails: from a partial list, nobody could tell what is missing.
"""

from typing import TYPE_CHECKING

from cordwood.broker.callers import Gathering
from cordwood.broker.connection import Call
from cordwood.coordinator.outcome import answer
from cordwood.errors import Error, Refused
from cordwood.group import offsets
from cordwood.wire.messages import ListGroupsRequest, ListGroupsResponse

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker


def handle(broker: "Broker", call: Call, request: ListGroupsRequest) -> None:
    shards = broker.groups.serving()
    for shard, part in zip(shards, Gathering(broker, call, len(shards), _gathered).parts, strict=True):
        broker.groups.handle_shard(
            shard,
            part,
            lambda state, caller, now: answer(
                caller, offsets.list_groups(state, states=request.states_filter, types=request.types_filter)
            ),
        )


def _gathered(answers: list[object | Refused]) -> ListGroupsResponse:
    response = ListGroupsResponse()
    for found in answers:
        if isinstance(found, list):
            response.groups += found
        elif isinstance(found, Refused) and found.error is not Error.NOT_COORDINATOR:
            return ListGroupsResponse(error_code=found.error)
    return response
