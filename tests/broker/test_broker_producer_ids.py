"""InitProducerId and FindCoordinator."""

import pytest

from broker.harness import Client, Harness
from cordwood.cluster.layout import PRODUCER_ID_BLOCK_SIZE
from cordwood.errors import Error, StorageError
from cordwood.wire.messages import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
)


def init(client: Client, version: int = 4) -> int:
    response = client.ask(InitProducerIdRequest(), version, InitProducerIdResponse)
    assert (response.error_code, response.producer_epoch) == (Error.NONE, 0)
    return response.producer_id


@pytest.mark.parametrize("version", range(6))
def test_every_version_gets_an_id(version: int) -> None:
    client = Harness().connect()
    assert [init(client, version) for _ in range(3)] == [0, 1, 2]


def test_ids_come_from_blocks_and_never_twice() -> None:
    harness = Harness()
    client = harness.connect()
    ids = [init(client) for _ in range(PRODUCER_ID_BLOCK_SIZE + 2)]
    assert ids == list(range(PRODUCER_ID_BLOCK_SIZE + 2))


@pytest.mark.parametrize("end", ["stop", "kill", "lose_power"])
def test_ids_do_not_repeat_after_a_restart(end: str) -> None:
    harness = Harness()
    assert init(harness.connect()) == 0
    getattr(harness, end)()
    harness.start()
    assert init(harness.connect()) == PRODUCER_ID_BLOCK_SIZE


def test_those_who_come_while_a_block_is_fetched_wait_in_line() -> None:
    harness = Harness()
    harness.hold_metadata = True
    clients = [harness.connect() for _ in range(3)]
    for client in clients:
        client.send(InitProducerIdRequest(), 4)
    assert len(harness.held) == 1
    harness.release()
    assert [client.take(InitProducerIdResponse).producer_id for client in clients] == [0, 1, 2]


def test_more_waiting_than_a_block_has_get_the_next_block() -> None:
    harness = Harness()
    harness.hold_metadata = True
    client = harness.connect()
    for _ in range(PRODUCER_ID_BLOCK_SIZE + 1):
        client.send(InitProducerIdRequest(), 4)
    harness.release()
    ids = [client.take(InitProducerIdResponse).producer_id for _ in range(PRODUCER_ID_BLOCK_SIZE + 1)]
    assert ids == list(range(PRODUCER_ID_BLOCK_SIZE + 1))


def test_another_broker_may_take_the_block_first() -> None:
    harness = Harness()
    harness.conflicts = 1
    assert init(harness.connect()) == 0


def test_a_store_that_fails_is_told_to_all_who_wait() -> None:
    harness = Harness()
    harness.hold_metadata = True
    clients = [harness.connect() for _ in range(2)]
    for client in clients:
        client.send(InitProducerIdRequest(), 4)
    harness.store_error = StorageError("full")
    harness.release()
    for client in clients:
        response = client.take(InitProducerIdResponse)
        # Which clients try again: to most of them any other error is the end.
        loading = Error.COORDINATOR_LOAD_IN_PROGRESS
        assert (response.error_code, response.producer_id, response.producer_epoch) == (loading, -1, -1)
    harness.store_error = None
    harness.hold_metadata = False
    assert init(harness.connect()) == 0


def test_a_producer_that_brings_its_old_id_gets_a_new_one() -> None:
    client = Harness().connect()
    old = init(client)
    request = InitProducerIdRequest(producer_id=old, producer_epoch=0)
    response = client.ask(request, 4, InitProducerIdResponse)
    assert (response.error_code, response.producer_epoch) == (Error.NONE, 0)
    assert response.producer_id != old


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (InitProducerIdRequest(transactional_id=""), Error.INVALID_REQUEST),
        (InitProducerIdRequest(transactional_id="t"), Error.COORDINATOR_NOT_AVAILABLE),
        (InitProducerIdRequest(producer_id=5, producer_epoch=-1), Error.INVALID_REQUEST),
        (InitProducerIdRequest(producer_id=-1, producer_epoch=5), Error.INVALID_REQUEST),
        (InitProducerIdRequest(producer_id=-2, producer_epoch=-1), Error.INVALID_REQUEST),
    ],
)
def test_other_requests_are_refused(request_: InitProducerIdRequest, error: Error) -> None:
    response = Harness().connect().ask(request_, 4, InitProducerIdResponse)
    assert (response.error_code, response.producer_id, response.producer_epoch) == (error, -1, -1)


# ---------------------------------------------------------------------- FindCoordinator


@pytest.mark.parametrize("version", range(4))
@pytest.mark.parametrize("kind", [0, 1])
def test_this_broker_coordinates_everything(version: int, kind: int) -> None:
    request = FindCoordinatorRequest(key="g", key_type=kind if version else 0)
    response = Harness().connect().ask(request, version, FindCoordinatorResponse)
    assert (response.error_code, response.node_id, response.host, response.port) == (0, 1, "192.168.0.1", 9092)


@pytest.mark.parametrize("version", [4, 5, 6])
def test_several_coordinators_are_found_at_once(version: int) -> None:
    request = FindCoordinatorRequest(coordinator_keys=["a", "b"])
    response = Harness().connect().ask(request, version, FindCoordinatorResponse)
    assert [(c.key, c.error_code, c.node_id, c.host, c.port) for c in response.coordinators] == [
        ("a", 0, 1, "192.168.0.1", 9092),
        ("b", 0, 1, "192.168.0.1", 9092),
    ]


def test_other_kinds_are_refused() -> None:
    client = Harness().connect()
    many = client.ask(FindCoordinatorRequest(coordinator_keys=["a"], key_type=9), 4, FindCoordinatorResponse)
    assert (many.coordinators[0].error_code, many.coordinators[0].node_id) == (Error.INVALID_REQUEST, -1)
    one = client.ask(FindCoordinatorRequest(key="a", key_type=9), 3, FindCoordinatorResponse)
    assert (one.error_code, one.node_id) == (Error.INVALID_REQUEST, -1)
    assert one.error_message
