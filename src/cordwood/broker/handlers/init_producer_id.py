"""InitProducerId (22), versions 0-5: an id for an idempotent producer.

- 3: a producer may send its old id and epoch; without a transactional id it still gets a new id, as in Kafka.

While no new block of ids can be had from the metadata store, the answer is COORDINATOR_LOAD_IN_PROGRESS, as in Kafka:
clients retry that, and treat most other errors as fatal.

Transactional ids are refused for now: there is no transaction coordinator yet.
"""

from typing import TYPE_CHECKING

from cordwood.broker.connection import Call
from cordwood.cluster.controller import take_producer_ids
from cordwood.errors import Error, Refused
from cordwood.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from cordwood.ports import StoreOp
from cordwood.wire.messages import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker


def handle(broker: "Broker", call: Call, request: InitProducerIdRequest) -> InitProducerIdResponse | None:
    if request.transactional_id is not None:
        error = Error.INVALID_REQUEST if not request.transactional_id else Error.COORDINATOR_NOT_AVAILABLE
        return InitProducerIdResponse(error_code=error, producer_epoch=-1)
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        return InitProducerIdResponse(error_code=Error.INVALID_REQUEST, producer_epoch=-1)

    def receive(outcome: int | Refused) -> None:
        if isinstance(outcome, Refused):
            broker.reply(call, InitProducerIdResponse(error_code=Error.COORDINATOR_LOAD_IN_PROGRESS, producer_epoch=-1))
        else:
            broker.reply(call, InitProducerIdResponse(producer_id=outcome, producer_epoch=0))

    if not broker.producer_ids.take(receive) and not broker.producer_ids.asking:
        _ask_for_block(broker)
    return None


def _ask_for_block(broker: "Broker") -> None:
    ids = broker.producer_ids
    ids.asking = True
    first = 0

    def plan() -> list[StoreOp]:
        nonlocal first
        first, operations = take_producer_ids(broker.image, broker.node)
        return operations

    def done(refusal: Refused | None) -> None:
        if refusal is not None:
            ids.refused(refusal)
            return
        ids.granted(first)
        if ids.wanted:
            _ask_for_block(broker)

    broker.propose(plan, done)
