"""Many requests that are never finished, against the limit for all of them together."""

from contextlib import ExitStack

from attacks.arena import MIB, REQUEST_BYTES_MAX, create_topic
from support.batches import PRODUCE_VERSION, produce, values_batch
from support.process import BrokerProcess
from support.raw import RawClient, crowd
from support.waiting import eventually

ARENA_SETTINGS = {"queued.max.request.bytes": 2 * REQUEST_BYTES_MAX}

HALF = REQUEST_BYTES_MAX.to_bytes(4, "big") + b"x" * (REQUEST_BYTES_MAX - MIB)


def send_what_is_taken(clients: list[RawClient]) -> None:
    """Send half a request on each connection, until nobody takes any more."""
    left = dict.fromkeys(clients, memoryview(HALF))

    def nothing_is_taken() -> bool:
        before = sum(map(len, left.values()))
        for client in clients:
            left[client] = left[client][client.send_some(bytes(left[client])) :]
        return before == sum(map(len, left.values()))

    eventually(lambda: nothing_is_taken() and b"" in left.values(), what="the end of what is taken")


def test_half_requests_take_no_more_than_the_limit(broker: BrokerProcess) -> None:
    before = broker.forget_peak()
    with crowd(broker.bootstrap, 20) as clients:
        send_what_is_taken(clients)
        assert broker.peak_rss_bytes - before < 4 * REQUEST_BYTES_MAX


def test_who_waited_behind_them_is_served_when_they_are_gone(broker: BrokerProcess, topic: str) -> None:
    with ExitStack() as stack:
        honest = stack.enter_context(RawClient(broker.bootstrap))
        create_topic(honest, topic)
        with crowd(broker.bootstrap, 20) as clients:
            for client in clients:
                client.send_bytes(HALF[:10])
            honest.send(produce(topic, values_batch(b"y" * 900_000)), version=PRODUCE_VERSION)
        assert honest.receive_frame()


def test_connections_that_wait_and_go_leave_nothing_behind(broker: BrokerProcess) -> None:
    before = broker.forget_peak()
    with crowd(broker.bootstrap, 3) as clients:
        send_what_is_taken(clients)
        for _ in range(500):
            with RawClient(broker.bootstrap) as client:
                client.send_bytes(HALF[:5000])
        assert broker.peak_rss_bytes - before < 4 * REQUEST_BYTES_MAX
    eventually(lambda: broker.open_files < 200, what="the end of the connections")
