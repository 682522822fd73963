"""Requests of every API that is served, drawn from a seed: whatever comes, the broker stays up and answers others.

A failure names the seed and the last requests. To try more seeds: FUZZ_SEEDS=1000-2000 pytest …
"""

import os
from collections import deque
from contextlib import suppress
from uuid import UUID

import pytest

from attacks.arena import create_topic
from attacks.generator import CONFIGS, TOPICS, Generator
from cordwood.wire.messages import (
    AlterConfigsRequest,
    AlterConfigsRequestResource,
    AlterConfigsResponse,
    ApiVersionsRequest,
    ApiVersionsResponse,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from support.process import BrokerProcess
from support.raw import ClosedByBroker, RawClient, encoded

ROUNDS = 15
ON_ONE_CONNECTION = 25
LAST = 777_777_777
API_VERSIONS = ApiVersionsRequest(client_software_name="fuzz", client_software_version="1")


def _seeds() -> list[int]:
    first, _, last = os.environ.get("FUZZ_SEEDS", "1-12").partition("-")
    return list(range(int(first), int(last or first) + 1))


@pytest.mark.parametrize("seed", _seeds())
def test_no_request_stops_the_broker(broker: BrokerProcess, seed: int) -> None:
    generator = Generator(seed)
    recent: deque[str] = deque(maxlen=ON_ONE_CONNECTION + 1)
    for _ in range(ROUNDS):
        with RawClient(broker.bootstrap) as client:
            generator.topic_ids = _prepare(client)
            with suppress(ClosedByBroker):
                _attack(client, generator, recent)
        for _ in range(3):
            with RawClient(broker.bootstrap) as client, suppress(ClosedByBroker):
                what, frame = generator.frame(damaged=True)
                recent.append(what)
                client.send_bytes(frame)
                client.finish_sending()
                while True:
                    client.receive_frame()
        with RawClient(broker.bootstrap) as client:
            try:
                client.ask(API_VERSIONS, ApiVersionsResponse)
            except (ClosedByBroker, TimeoutError):
                pytest.fail(f"seed {seed}, one of these:\n" + "\n".join(recent) + f"\n{broker.log_text()[:3000]}")


def _attack(client: RawClient, generator: Generator, recent: deque[str]) -> None:
    """Send many requests, and wait until all are answered."""
    for _ in range(ON_ONE_CONNECTION):
        what, frame = generator.frame()
        recent.append(what)
        client.send_bytes(frame)
    client.send_bytes(encoded(API_VERSIONS, version=3, correlation_id=LAST))
    while int.from_bytes(client.receive_frame()[:4], "big") != LAST:
        pass


def _prepare(client: RawClient) -> list[UUID]:
    """Have the topics there, and no setting that an earlier request may have altered. The topics' ids."""
    for name in ("", "1"):
        resource = AlterConfigsRequestResource(resource_type=4, resource_name=name, configs=[])
        client.ask(AlterConfigsRequest(resources=[resource]), AlterConfigsResponse)
    for name in TOPICS:
        create_topic(client, name, CONFIGS[name])
    wanted = [MetadataRequestTopic(name=name) for name in TOPICS]
    return [topic.topic_id for topic in client.ask(MetadataRequest(topics=wanted), MetadataResponse).topics]
