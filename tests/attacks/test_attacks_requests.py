"""Well-formed requests that ask for too much, name the same thing many times, or count on a mistake."""

import cramjam
import pytest

from attacks.arena import MIB, create_topic, fetch_request, produced
from cordwood.broker.fetch_sessions import PARTITIONS_MAX, WAITING_PARTITIONS_MAX
from cordwood.errors import Error
from cordwood.wire.messages import (
    DeleteRecordsRequest,
    DeleteRecordsRequestPartition,
    DeleteRecordsRequestTopic,
    DeleteRecordsResponse,
    DescribeConfigsRequest,
    DescribeConfigsRequestResource,
    DescribeConfigsResponse,
    DescribeLogDirsRequest,
    DescribeLogDirsRequestTopic,
    DescribeLogDirsResponse,
    DescribeProducersRequest,
    DescribeProducersRequestTopic,
    DescribeProducersResponse,
    FetchRequest,
    FetchRequestForgottenTopic,
    FetchRequestPartition,
    FetchRequestReplicaState,
    FetchRequestTopic,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsRequestPartition,
    ListOffsetsRequestTopic,
    ListOffsetsResponse,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from support.batches import FETCH_VERSION, PRODUCE_VERSION, altered, produce, values_batch
from support.process import BrokerProcess
from support.raw import RawClient, crowd, encoded
from support.waiting import eventually

BROKER = 4
INT_MAX = 2**31 - 1


def test_a_large_topic_named_thousands_of_times_is_described_once(client: RawClient, topic: str) -> None:
    create_topic(client, topic, partitions=500)
    names = [MetadataRequestTopic(name=topic)] * 20_000
    assert len(client.ask(MetadataRequest(topics=names), MetadataResponse).topics) == 1


def test_a_broker_named_thousands_of_times_is_described_once(client: RawClient, broker: BrokerProcess) -> None:
    before = broker.forget_peak()
    resource = DescribeConfigsRequestResource(resource_type=BROKER, resource_name="1", configuration_keys=None)
    request = DescribeConfigsRequest(resources=[resource] * 20_000, include_synonyms=True, include_documentation=True)
    client.send(request)
    assert len(client.receive_frame()) < 8 * MIB
    assert broker.peak_rss_bytes - before < 60 * MIB


def test_many_topics_described_at_once_keep_nobody_waiting(client: RawClient, topic: str) -> None:
    """Each of them costs as much as it should, and there are as many as exist."""
    for number in range(100):
        create_topic(client, f"{topic}-{number}")
    resources = [
        DescribeConfigsRequestResource(resource_type=2, resource_name=f"{topic}-{number}", configuration_keys=None)
        for number in range(100)
    ]
    answer = client.ask(DescribeConfigsRequest(resources=resources, include_synonyms=True), DescribeConfigsResponse)
    assert {result.error_code for result in answer.results} == {Error.NONE}


def test_producers_asked_for_thousands_of_times_take_bounded_memory(
    client: RawClient, broker: BrokerProcess, topic: str
) -> None:
    create_topic(client, topic)
    for producer_id in range(500):
        batch = altered(values_batch(b"x"), producer_id=producer_id, producer_epoch=0, base_sequence=0)
        assert produced(client, topic, batch).error_code == Error.NONE
    before = broker.forget_peak()
    wanted = DescribeProducersRequestTopic(name=topic, partition_indexes=[0] * 20_000)
    client.ask(DescribeProducersRequest(topics=[wanted]), DescribeProducersResponse)
    assert broker.peak_rss_bytes - before < 60 * MIB


def test_offsets_asked_for_twice_are_refused_soon(client: RawClient, topic: str) -> None:
    create_topic(client, topic)
    wanted = [ListOffsetsRequestPartition(partition_index=number // 2, timestamp=-1) for number in range(60_000)]
    request = ListOffsetsRequest(topics=[ListOffsetsRequestTopic(name=topic, partitions=wanted)])
    answer = client.ask(request, ListOffsetsResponse)
    assert {partition.error_code for partition in answer.topics[0].partitions} == {Error.INVALID_REQUEST}


def test_sizes_asked_for_thousands_of_times_keep_nobody_waiting(client: RawClient, topic: str) -> None:
    """The size of a partition is the sum of its segments', and a topic may have one with every batch."""
    create_topic(client, topic, {"segment.index.bytes": 4, "retention.ms": -1})
    frame = encoded(produce(topic, values_batch(b"x")), version=PRODUCE_VERSION)
    for _ in range(10):
        client.send_bytes(frame * 100)
        for _ in range(100):
            client.receive_frame()
    wanted = DescribeLogDirsRequestTopic(topic=topic, partitions=[0] * 90_000)
    answer = client.ask(DescribeLogDirsRequest(topics=[wanted]), DescribeLogDirsResponse)
    assert len(answer.results[0].topics[0].partitions) == 1


def test_records_deleted_one_by_one_in_one_request_keep_nobody_waiting(client: RawClient, topic: str) -> None:
    """A compressed batch may claim any number of records, so offsets to delete cost nothing."""
    create_topic(client, topic, {"retention.ms": -1})
    payload = bytes(cramjam.gzip.compress(b"nothing"))
    batch = altered(values_batch(b"x"), payload, attributes=1, record_count=10**6, last_offset_delta=10**6 - 1)
    assert produced(client, topic, batch).error_code == Error.NONE
    wanted = [DeleteRecordsRequestPartition(offset=offset) for offset in range(50_000)]
    request = DeleteRecordsRequest(topics=[DeleteRecordsRequestTopic(name=topic, partitions=wanted)])
    answer = client.ask(request, DeleteRecordsResponse)
    assert [(p.error_code, p.low_watermark) for p in answer.topics[0].partitions] == [(0, 49_999)]


# ---------------------------------------------------------------------- fetch


def partitions_of(topic: str, *partitions: FetchRequestPartition) -> list[FetchRequestTopic]:
    return [FetchRequestTopic(topic=topic, partitions=list(partitions))]


@pytest.mark.parametrize("offset", [-(2**63), -1, 1, 2**63 - 1])
def test_an_offset_out_of_range_is_told(client: RawClient, topic: str, offset: int) -> None:
    create_topic(client, topic)
    answer = client.ask(fetch_request(topic, offset, max_wait_ms=10_000), FetchResponse, version=FETCH_VERSION)
    assert answer.responses[0].partitions[0].error_code == Error.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize("number", [-(2**31), -1, 0, INT_MAX])
def test_sizes_and_times_beyond_all_bounds_get_an_answer(client: RawClient, topic: str, number: int) -> None:
    create_topic(client, topic)
    produced(client, topic, values_batch(b"x"))
    for fields in (
        {"max_bytes": number},
        {"min_bytes": number, "max_wait_ms": 1},
        {"max_wait_ms": number},
        {"isolation_level": max(min(number, 127), -128)},
    ):
        partition = FetchRequestPartition(partition_max_bytes=number)
        request = FetchRequest(topics=partitions_of(topic, partition))
        for name, value in fields.items():
            setattr(request, name, value)
        answer = client.ask(request, FetchResponse, version=FETCH_VERSION)
        assert answer.responses[0].partitions[0].error_code == Error.NONE


@pytest.mark.parametrize("replica", [0, 1, 2, -2, INT_MAX, -(2**31)])
@pytest.mark.parametrize("version", [12, 15])
def test_a_client_that_poses_as_a_replica_reads_no_more_than_a_client(
    client: RawClient, topic: str, replica: int, version: int
) -> None:
    create_topic(client, topic, {"flush.messages": 1})
    assert produced(client, topic, values_batch(b"x")).error_code == Error.NONE
    request = fetch_request(topic)
    if version >= 15:
        found = client.ask(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), MetadataResponse)
        request.topics[0].topic_id = found.topics[0].topic_id
        request.replica_state = FetchRequestReplicaState(replica_id=replica)
    else:
        request.replica_id = replica
    answer = client.ask(request, FetchResponse, version=version)
    partition = answer.responses[0].partitions[0]
    assert partition.error_code != Error.NONE or partition.high_watermark == 1
    assert partition.error_code == Error.NONE or not partition.records


def test_sessions_are_limited_and_forgotten_ones_leave_nothing_behind(broker: BrokerProcess, topic: str) -> None:
    """Far more sessions than there are places for, each of a client that waited for something and went away."""
    before = broker.rss_bytes
    with RawClient(broker.bootstrap) as client:
        create_topic(client, topic)
        request = fetch_request(topic, max_wait_ms=1)
        request.session_epoch = 0
        frame = encoded(request, version=FETCH_VERSION)
        for _ in range(30):
            client.send_bytes(frame * 100)
            for _ in range(100):
                client.receive_frame()
        assert broker.rss_bytes - before < 20 * MIB
        cpu_s = broker.cpu_s
        for _ in range(50):
            produced(client, topic, values_batch(b"x"))
        assert broker.cpu_s - cpu_s < 1.0, "3,000 readers that are gone are still told of every record"


def test_a_session_of_very_many_partitions_is_not_remembered_for_ever(broker: BrokerProcess, topic: str) -> None:
    """Partitions that do not exist are remembered too: the broker may do without the session."""
    before = broker.rss_bytes
    partitions = [FetchRequestPartition(partition=number) for number in range(40_000)]
    request = FetchRequest(session_epoch=0, topics=partitions_of(topic, *partitions))
    frame = encoded(request, version=FETCH_VERSION)
    for _ in range(15):
        with RawClient(broker.bootstrap) as client:
            client.send_bytes(frame)
            client.receive_frame()
    assert broker.rss_bytes - before < 130 * MIB


def test_a_session_that_grows_too_large_ends(client: RawClient, topic: str) -> None:
    first = FetchRequest(session_epoch=0, topics=partitions_of(topic, FetchRequestPartition()))
    session = client.ask(first, FetchResponse, version=FETCH_VERSION).session_id
    errors = []
    for epoch in range(1, PARTITIONS_MAX // 40_000 + 2):
        more = [FetchRequestPartition(partition=epoch * 40_000 + number) for number in range(40_000)]
        request = FetchRequest(session_id=session, session_epoch=epoch, topics=partitions_of(topic, *more))
        errors.append(client.ask(request, FetchResponse, version=FETCH_VERSION).error_code)
    assert Error.FETCH_SESSION_ID_NOT_FOUND in errors


@pytest.mark.parametrize("session_id", [0, 1, -1, INT_MAX])
@pytest.mark.parametrize("epoch", [-(2**31), -2, -1, 0, 1, INT_MAX])
def test_a_session_that_nobody_has_is_refused_or_begun(
    client: RawClient, topic: str, session_id: int, epoch: int
) -> None:
    create_topic(client, topic)
    request = fetch_request(topic)
    request.session_id, request.session_epoch = session_id, epoch
    answer = client.ask(request, FetchResponse, version=FETCH_VERSION)
    assert answer.error_code in (Error.NONE, Error.FETCH_SESSION_ID_NOT_FOUND, Error.INVALID_FETCH_SESSION_EPOCH)


def test_a_session_used_by_several_requests_at_once_does_no_harm(client: RawClient, topic: str) -> None:
    create_topic(client, topic, partitions=3)
    first = FetchRequest(session_epoch=0, topics=partitions_of(topic, FetchRequestPartition(partition_max_bytes=MIB)))
    session = client.ask(first, FetchResponse, version=FETCH_VERSION).session_id
    forgotten = FetchRequestForgottenTopic(topic=topic, partitions=[0, 0, 1, 7])
    requests = [
        FetchRequest(session_epoch=1),
        FetchRequest(session_epoch=2, topics=partitions_of(topic, FetchRequestPartition(partition=1))),
        FetchRequest(session_epoch=3, forgotten_topics_data=[forgotten]),
        FetchRequest(session_epoch=4),
        FetchRequest(session_epoch=-1),
        FetchRequest(session_epoch=5),
    ]
    for request in requests:
        request.session_id, request.max_wait_ms, request.min_bytes = session, 100, 1
    client.send_bytes(b"".join(encoded(request, version=FETCH_VERSION) for request in requests))
    for _ in requests:
        assert client.receive_frame()


def test_fetches_answered_long_before_their_time_leave_nothing_behind(broker: BrokerProcess, topic: str) -> None:
    """Each may wait for 24 days, and is answered at once by a record: its alarm clock must not stay."""
    with RawClient(broker.bootstrap) as reader, RawClient(broker.bootstrap) as writer:
        create_topic(writer, topic)
        before = broker.rss_bytes
        for offset in range(100):
            request = fetch_request(topic, offset, max_wait_ms=INT_MAX)
            reader.send_bytes(encoded(request, version=FETCH_VERSION) * 100)
            reader.send(MetadataRequest(topics=[]))
            produced(writer, topic, values_batch(b"x"))
            for _ in range(101):
                reader.receive_frame()
        assert broker.rss_bytes - before < 4 * MIB


def test_clients_that_go_away_while_they_wait_leave_nothing_behind(broker: BrokerProcess, topic: str) -> None:
    with RawClient(broker.bootstrap) as client:
        create_topic(client, topic)
        before = broker.rss_bytes
        frame = encoded(fetch_request(topic, max_wait_ms=INT_MAX), version=FETCH_VERSION)
        for _ in range(15):
            with crowd(broker.bootstrap, 50) as clients:
                for other in clients:
                    other.send_bytes(frame * 100)
                client.ask(MetadataRequest(topics=[]), MetadataResponse)
        assert broker.rss_bytes - before < 30 * MIB
        assert produced(client, topic, values_batch(b"x")).error_code == Error.NONE


def test_fetches_of_very_many_partitions_are_answered_before_those_that_wait_take_all_memory(
    broker: BrokerProcess, topic: str
) -> None:
    """All but one of their partitions do not exist, and they may wait for weeks."""
    size = 50_000
    fit = WAITING_PARTITIONS_MAX // size
    partitions = [FetchRequestPartition(partition=number) for number in range(size)]
    request = FetchRequest(max_wait_ms=INT_MAX, min_bytes=1, topics=partitions_of(topic, *partitions))
    frame = encoded(request, version=FETCH_VERSION)
    with RawClient(broker.bootstrap) as client, crowd(broker.bootstrap, 2 * fit) as clients:
        create_topic(client, topic)
        waiting = set(clients)

        def as_many_wait_as_fit() -> bool:
            for other in [other for other in waiting if other.has_answer()]:
                assert other.receive_frame()
                waiting.remove(other)
            return len(waiting) <= fit

        for other in clients:
            other.send_bytes(frame)
            as_many_wait_as_fit()
        eventually(as_many_wait_as_fit, what="answers to those that came first")
        client.ask(MetadataRequest(topics=[]), MetadataResponse)
        as_many_wait_as_fit()
        assert len(waiting) == fit
