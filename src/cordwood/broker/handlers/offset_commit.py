"""OffsetCommit (8), versions 2-10: a group says how far it has read. See ``group/offsets/commit``."""

from functools import partial
from typing import TYPE_CHECKING

from cordwood.broker.callers import Asking
from cordwood.broker.connection import Call
from cordwood.group import offsets
from cordwood.wire.messages import OffsetCommitRequest

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker


def handle(broker: "Broker", call: Call, request: OffsetCommitRequest) -> None:
    refused = partial(offsets.refused_commit, broker.image, request, call.api_version)
    broker.groups.gather(request.group_id, request, Asking(broker, call, refused), offsets.commit)
