"""Clients that fall silent, trickle, or never read, against a small limit for idle connections."""

import pytest

from attacks.arena import MIB, create_topic, fetch_request, produced
from cordwood.wire.messages import MetadataRequest
from support.batches import FETCH_VERSION, values_batch
from support.process import BrokerProcess
from support.raw import ClosedByBroker, RawClient, encoded
from support.waiting import eventually

ARENA_SETTINGS = {"connections.max.idle.ms": 400}


@pytest.mark.parametrize("sent", [1, 3, 4, 5, 20])
def test_half_a_frame_and_then_silence_ends_at_the_idle_limit(
    client: RawClient, broker: BrokerProcess, sent: int
) -> None:
    client.send_bytes(encoded(MetadataRequest(topics=None), version=12)[:sent])
    assert client.closed()
    assert broker.says("nothing happened for 400 ms")


def test_half_a_frame_behind_a_request_that_waits_ends_at_the_idle_limit(
    client: RawClient, broker: BrokerProcess, topic: str
) -> None:
    """It may hold room that others wait for, and a fetch may wait for weeks."""
    create_topic(client, topic)
    client.send(fetch_request(topic, max_wait_ms=2**31 - 1), version=FETCH_VERSION)
    client.send_bytes(MIB.to_bytes(4, "big") + b"x")
    assert client.closed()
    assert broker.says("nothing happened for 400 ms")


def test_answers_kept_behind_a_request_that_waits_are_kept_until_the_idle_limit(
    client: RawClient, broker: BrokerProcess, topic: str
) -> None:
    """They take memory, and a fetch may wait for weeks."""
    create_topic(client, topic)
    client.send(fetch_request(topic, max_wait_ms=2**31 - 1), version=FETCH_VERSION)
    client.send(MetadataRequest(topics=None))
    assert client.closed()
    assert broker.says("nothing happened for 400 ms")


def test_a_trickle_of_bytes_does_not_keep_a_connection_open(client: RawClient, broker: BrokerProcess) -> None:
    """Only whole requests count as something that happens."""
    sent = 0

    def one_more_byte() -> bool:
        nonlocal sent
        sent += 1
        try:
            client.send_bytes(b"\0" if sent > 4 else MIB.to_bytes(4, "big")[sent - 1 : sent])
        except ClosedByBroker:
            return True
        return False

    eventually(one_more_byte, within_s=10, what="the end of a connection that trickles")
    assert broker.says("nothing happened for 400 ms")


def test_a_connection_in_use_outlives_the_idle_limit(client: RawClient, topic: str) -> None:
    """A client that waits for its answer is not idle."""
    create_topic(client, topic)
    client.send(fetch_request(topic, max_wait_ms=1500), version=FETCH_VERSION)
    assert client.receive_frame()


def test_a_client_that_never_reads_is_read_no_further_and_closed(broker: BrokerProcess, topic: str) -> None:
    """The broker stops reading from it, so nothing piles up; the idle limit ends it."""
    with RawClient(broker.bootstrap) as other:
        create_topic(other, topic)
        for _ in range(8):
            assert produced(other, topic, values_batch(b"x" * 900_000)).error_code == 0
    before = broker.forget_peak()
    with RawClient(broker.bootstrap, receive_buffer_bytes=4096) as client:
        requests = b"".join(
            encoded(request, version=version)
            for request, version in ((fetch_request(topic), FETCH_VERSION), (MetadataRequest(topics=None), 12))
        )

        def all_sent() -> bool:
            try:
                return not client.send_some(requests * 1000)
            except ClosedByBroker:
                return True

        eventually(all_sent, what="the kernel's buffers to be full")

        def closed() -> bool:
            try:
                client.send_some(requests)
            except ClosedByBroker:
                return True
            return False

        eventually(closed, what="the end of a connection that does not read")
    assert broker.peak_rss_bytes - before < 20 * MIB
