"""The blocking client: what it brings and stores, what it waits for, and what it does not believe."""

import pickle
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from struct import pack
from uuid import UUID

import pytest

from cordwood.client.raw import (
    EARLIEST,
    LATEST,
    AuthenticationFailed,
    FoundOffset,
    OffsetOutOfRange,
    RawClient,
    RawSettings,
    RequestRefused,
    Security,
    Unavailable,
    UnknownTopic,
)
from cordwood.client.raw_fetch import whole_batches
from cordwood.client.raw_sasl import Scram
from cordwood.client.raw_settings import parse_jaas
from cordwood.errors import ConfigError, CorruptData, Error, ProtocolError
from cordwood.record.batch import batches
from cordwood.record.build import Record, build, records
from cordwood.testing import Broker
from cordwood.wire.frame import read_request, read_request_head
from cordwood.wire.messages import (
    FetchRequest,
    FetchResponse,
    FetchResponsePartition,
    FetchResponseTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
    ProduceRequest,
    ProduceResponse,
    ProduceResponsePartition,
    ProduceResponseTopic,
    SaslAuthenticateResponse,
    SaslHandshakeResponse,
)
from support.scripted import ScriptedBroker, hang_up, message, raw, versions

SETTINGS = {"num.partitions": 2, "log.retention.ms": -1}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(settings=SETTINGS) as running:
        yield running


@pytest.fixture
def client(broker: Broker) -> Iterator[RawClient]:
    with RawClient(RawSettings(broker.bootstrap, timeout_ms=10_000, unknown_topic_timeout_ms=100)) as connected:
        yield connected
        connected.check()


def batch(*values: bytes, timestamp: int = 1_000, producer_id: int = -1, sequence: int = -1) -> bytes:
    made = [Record(number, timestamp + number, b"k", value) for number, value in enumerate(values)]
    epoch = 0 if producer_id >= 0 else -1
    return bytes(build(made, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence))


def values(data: memoryview | bytes) -> list[bytes | None]:
    found = batches(memoryview(data))
    return [record.value for one, header in found for record in records(one, header, limit=1 << 20)]


def test_topics_are_made_on_demand_only(client: RawClient) -> None:
    assert client.topics(["demand"]) == {}
    made = client.topics(["demand"], create=True)["demand"]
    assert list(made.partitions) == [0, 1]
    assert client.topics()["demand"] == client.topics(["demand"])["demand"] == made
    assert made.id.int


def test_batches_come_back_as_they_were_stored(client: RawClient) -> None:
    client.topics(["round"], create=True)
    assert client.produce("round", {0: batch(b"a", b"b"), 1: batch(b"c")}) == {0: 0, 1: 0}
    assert client.produce("round", {0: batch(b"d")}) == {0: 2}
    fetched = client.fetch("round", 0, 0)
    assert values(fetched.records) == [b"a", b"b", b"d"]
    assert (fetched.next_offset, fetched.high_watermark, fetched.log_start_offset) == (3, 3, 0)


def test_an_offset_inside_a_batch_brings_the_whole_batch(client: RawClient) -> None:
    client.topics(["inside"], create=True)
    client.produce("inside", {0: batch(b"a", b"b")})
    assert values(client.fetch("inside", 0, 1).records) == [b"a", b"b"]


def test_a_batch_that_the_limit_cuts_is_left_out(client: RawClient) -> None:
    client.topics(["cut"], create=True)
    one = batch(b"x" * 1000)
    for _ in range(3):
        client.produce("cut", {0: one})
    fetched = client.fetch("cut", 0, 0, max_bytes=2 * len(one) + 100)
    assert (len(fetched.records), fetched.next_offset) == (2 * len(one), 2)


def test_a_range_is_read_to_its_end_and_not_further(client: RawClient) -> None:
    client.topics(["range"], create=True)
    big = batch(*[b"%d" % n + b"x" * 20_000 for n in range(10)])
    for _ in range(8):
        client.produce("range", {0: big})
    answers = [(bytes(a.records), a.next_offset) for a in client.fetch_range("range", 0, 15, 55, max_bytes=300_000)]
    assert [following for _, following in answers] == [20, 30, 40, 50, 60]
    assert len(values(b"".join(data for data, _ in answers))) == 50


def test_a_range_given_up_leaves_the_client_usable(client: RawClient) -> None:
    client.topics(["given-up"], create=True)
    for _ in range(4):
        client.produce("given-up", {0: batch(b"x" * 100_000)})
    answers = client.fetch_range("given-up", 0, 0, 4, max_bytes=100_100)
    assert next(answers).next_offset == 1
    answers.close()  # type: ignore[attr-defined]
    assert client.offsets({("given-up", 0): LATEST})[("given-up", 0)].offset == 4


def test_offsets_by_position_and_by_time(client: RawClient) -> None:
    client.topics(["times"], create=True)
    client.produce("times", {0: batch(b"a", b"b", b"c", timestamp=5_000)})
    assert client.offsets({("times", 0): LATEST, ("times", 1): EARLIEST}) == {
        ("times", 0): FoundOffset(3, -1),
        ("times", 1): FoundOffset(0, -1),
    }
    assert client.offsets({("times", 0): 5_001}) == {("times", 0): FoundOffset(1, 5_001)}
    assert client.offsets({("times", 0): 6_000}) == {("times", 0): FoundOffset(-1, -1)}


def test_an_offset_that_is_not_there_is_named(client: RawClient) -> None:
    client.topics(["outside"], create=True)
    with pytest.raises(OffsetOutOfRange, match="offset 7 of outside-0 is out of range") as caught:
        client.fetch("outside", 0, 7)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (copy.topic, copy.partition, copy.offset, str(copy)) == ("outside", 0, 7, str(caught.value))


def test_an_unknown_topic_is_named(client: RawClient) -> None:
    with pytest.raises(UnknownTopic, match="no topic nobody"):
        client.fetch("nobody", 0, 0)
    client.topics(["few"], create=True)
    with pytest.raises(UnknownTopic, match="no partition 9 of topic few"):
        client.offsets({("few", 9): LATEST})


def test_a_batch_with_a_sequence_number_is_stored_once(client: RawClient) -> None:
    client.topics(["once"], create=True)
    producer_id, epoch = client.init_producer_id()
    assert epoch == 0
    one = batch(b"a", producer_id=producer_id, sequence=0)
    assert [client.produce("once", {0: one}), client.produce("once", {0: one})] == [{0: 0}, {0: 0}]
    assert values(client.fetch("once", 0, 0).records) == [b"a"]


def test_a_batch_that_is_too_large_is_refused_in_words(client: RawClient) -> None:
    client.topics(["large"], create=True)
    with pytest.raises(RequestRefused, match=r"max\.message\.bytes|larger") as caught:
        client.produce("large", {0: batch(b"x" * 1_100_000)})
    assert caught.value.error is Error.MESSAGE_TOO_LARGE


def test_a_publisher_keeps_the_order(client: RawClient) -> None:
    client.topics(["published"], create=True)
    producer_id, _ = client.init_producer_id()
    publisher = client.publisher("published", under_way=3)
    for number in range(20):
        one = batch(b"%d" % number, producer_id=producer_id, sequence=number)
        publisher.send({0: one, 1: one})
        publisher.check()
    publisher.flush()
    assert values(client.fetch("published", 1, 0).records) == [b"%d" % number for number in range(20)]


def test_a_publisher_starts_over_when_the_connection_breaks(tmp_path: Path) -> None:
    with Broker(data=str(tmp_path)) as first:
        port = first.port
        client = RawClient(RawSettings(first.bootstrap, timeout_ms=20_000))
        client.topics(["broken"], create=True)
        producer_id, _ = client.init_producer_id()
        publisher = client.publisher("broken")
        for number in range(3):
            publisher.send({0: batch(b"%d" % number, producer_id=producer_id, sequence=number)})
    with client, Broker(data=str(tmp_path), port=port):
        for number in range(3, 6):
            publisher.send({0: batch(b"%d" % number, producer_id=producer_id, sequence=number)})
        publisher.flush()
        assert values(client.fetch("broken", 0, 0).records) == [b"%d" % number for number in range(6)]


class Leader:
    """A scripted broker that leads a partition. Its answers to Produce come in order, the last one again and again;
    None hangs up."""

    def __init__(self, *errors: Error | None) -> None:
        self._errors = list(errors)
        self.asked: list[bytes | None] = []
        self.server = ScriptedBroker([self._answer])
        self.all = [self]

    def _answer(self, frame: memoryview) -> bytes | None:
        match read_request_head(frame).api_key:
            case 18:
                return versions(frame)
            case 3:
                return message(self._metadata())(frame)
        request = read_request(read_request_head(frame), frame)
        assert isinstance(request, ProduceRequest)
        (wanted,) = request.topic_data[0].partition_data
        assert isinstance(wanted.records, (bytes, memoryview))
        self.asked += values(bytes(wanted.records))
        error = self._errors.pop(0) if len(self._errors) > 1 else self._errors[0]
        if error is None:
            return None
        part = ProduceResponsePartition(index=wanted.index, error_code=error, base_offset=len(self.asked))
        topic = ProduceResponseTopic(name="t", topic_id=UUID(int=9), partition_responses=[part])
        return message(ProduceResponse(responses=[topic]))(frame)

    def _metadata(self) -> MetadataResponse:
        ports = [int(leader.server.bootstrap.rpartition(":")[2]) for leader in self.all]
        partitions = [
            MetadataResponsePartition(partition_index=number, leader_id=number, leader_epoch=4)
            for number in range(len(ports))
        ]
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=n, host="127.0.0.1", port=port) for n, port in enumerate(ports)],
            topics=[MetadataResponseTopic(name="t", topic_id=UUID(int=9), partitions=partitions)],
        )


@pytest.mark.parametrize("under_way", [1, 2, 3])
def test_a_batch_that_is_refused_for_now_is_sent_again_whatever_became_of_those_behind_it(under_way: int) -> None:
    leader = Leader(Error.NOT_LEADER_OR_FOLLOWER, Error.NONE)
    with leader.server, RawClient(RawSettings(leader.server.bootstrap, retry_backoff_ms=10)) as client:
        publisher = client.publisher("t", under_way=under_way)
        for value in (b"a", b"b", b"c"):
            publisher.send({0: batch(value)})
        publisher.flush()
    assert Counter(leader.asked) == {b"a": 2, b"b": 1, b"c": 1}, "only the first was refused"


@pytest.mark.parametrize("dying", [0, 1])
def test_what_one_leader_has_is_not_sent_again_because_another_died(dying: int) -> None:
    leaders = [Leader(None, Error.NONE) if number == dying else Leader(Error.NONE) for number in range(2)]
    with leaders[0].server, leaders[1].server:
        for leader in leaders:
            leader.all = leaders
        with RawClient(RawSettings(leaders[0].server.bootstrap, retry_backoff_ms=10)) as client:
            publisher = client.publisher("t", under_way=3)
            publisher.send({0: batch(b"a"), 1: batch(b"b")})
            publisher.flush()
    assert [len(leader.asked) for leader in leaders] == [2 - dying, 1 + dying]


def test_a_broker_that_is_away_is_waited_for(tmp_path: Path) -> None:
    with Broker(data=str(tmp_path)) as first:
        port = first.port
        client = RawClient(RawSettings(first.bootstrap, timeout_ms=30_000, retry_backoff_ms=10))
        client.topics(["away"], create=True)
        client.produce("away", {0: batch(b"a")})
        answers = client.fetch_range("away", 0, 0, 2)
        assert next(answers).next_offset == 1
    found: list[int] = []
    waiting = threading.Thread(target=lambda: found.append(next(answers).next_offset))
    waiting.start()
    with client, Broker(data=str(tmp_path), port=port) as second, RawClient(RawSettings(second.bootstrap)) as other:
        other.produce("away", {0: batch(b"b")})
        waiting.join(20)
        assert found == [2]


def test_a_broker_that_stays_away_is_an_error_that_says_so() -> None:
    with ScriptedBroker([hang_up]) as nobody:
        settings = RawSettings(nobody.bootstrap, timeout_ms=200, retry_backoff_ms=10)
    with (
        RawClient(settings) as client,
        pytest.raises(Unavailable, match=r"tried for 0\.2 s at .*Is the broker running"),
    ):
        client.topics()


def test_where_partitions_lie_is_told(client: RawClient, broker: Broker) -> None:
    client.topics(["lies"], create=True)
    found = client.log_dirs([("lies", 0), ("lies", 1)])
    assert {place.path for place in found.values()} == {broker.data}
    assert (Path(broker.data) / "lies-1").is_dir()


def test_offsets_are_committed_for_a_group_without_members(client: RawClient) -> None:
    client.topics(["committed"], create=True)
    assert client.committed("nobody") == {}
    client.commit("job", {("committed", 1): 4, ("committed", 0): 7})
    assert client.committed("job") == {("committed", 0): 7, ("committed", 1): 4}


# What a broker may not do


def asked(broker: ScriptedBroker) -> object:
    with RawClient(RawSettings(broker.bootstrap, timeout_ms=300, retry_backoff_ms=10)) as client:
        return client.topics()


def test_an_answer_of_a_gigabyte_is_not_believed() -> None:
    with (
        ScriptedBroker([versions, raw(pack(">i", 2**31 - 1))]) as broker,
        pytest.raises(ProtocolError, match="is it a"),
    ):
        asked(broker)


def test_a_web_server_is_not_a_broker() -> None:
    page = raw(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    with ScriptedBroker([page]) as broker, pytest.raises(ProtocolError, match="is it a Kafka broker"):
        asked(broker)


def test_the_answer_to_another_question_is_not_taken() -> None:
    answer = pack(">iib", 5, 999, 0)  # a size, a correlation id, no tags
    with ScriptedBroker([versions, raw(answer)]) as broker, pytest.raises(ProtocolError, match="another request"):
        asked(broker)


def test_an_address_that_can_not_be_is_not_dialled() -> None:
    answer = MetadataResponse(brokers=[MetadataResponseBroker(node_id=1, host="x", port=70_000)])
    with ScriptedBroker([versions, message(answer)]) as broker, pytest.raises(ProtocolError, match="70000"):
        asked(broker)


def test_a_broker_that_speaks_nothing_we_speak_is_named() -> None:
    def no_apis(frame: memoryview) -> bytes:
        return pack(">iihbiB", 12, int.from_bytes(frame[4:8], "big"), 0, 1, 0, 0)

    with ScriptedBroker([no_apis]) as broker, pytest.raises(RequestRefused, match=r"Apache Kafka 2\.8 or newer"):
        asked(broker)


def test_batches_out_of_order_are_not_taken() -> None:
    first, second = batch(b"a"), batch(b"b")
    with pytest.raises(CorruptData, match="comes where 1 is next"):
        whole_batches(memoryview(first + second), 0)
    with pytest.raises(CorruptData, match="comes where 5 is next"):
        whole_batches(memoryview(first), 5)


def test_old_record_formats_are_named() -> None:
    old = bytearray(batch(b"a"))
    old[16] = 1
    with pytest.raises(CorruptData, match="record format 1"):
        whole_batches(memoryview(old), 0)


# The nearest replica


class Replica:
    """A scripted broker of a cluster of two: 1 leads the partition, 2 follows. Its answers to Fetch come in order."""

    def __init__(self, *answers: FetchResponsePartition) -> None:
        self._answers = list(answers)
        self.racks: list[str] = []
        self.looks = 0
        self.server = ScriptedBroker([self._answer])
        self.cluster: list[MetadataResponseBroker] = []

    def _answer(self, frame: memoryview) -> bytes | None:
        match read_request_head(frame).api_key:
            case 18:
                return versions(frame)
            case 3:
                self.looks += 1
                partition = MetadataResponsePartition(partition_index=0, leader_id=1, leader_epoch=4)
                topic = MetadataResponseTopic(name="t", topic_id=UUID(int=9), partitions=[partition])
                return message(MetadataResponse(brokers=self.cluster, topics=[topic]))(frame)
        request = read_request(read_request_head(frame), frame)
        assert isinstance(request, FetchRequest)
        self.racks.append(request.rack_id)
        if not self._answers:
            return None
        found = FetchResponseTopic(topic="t", topic_id=UUID(int=9), partitions=[self._answers.pop(0)])
        return message(FetchResponse(responses=[found]))(frame)


def of_offset(offset: int) -> FetchResponsePartition:
    """One record."""
    data = bytearray(batch(b"%d" % offset))
    data[:8] = pack(">q", offset)
    return FetchResponsePartition(high_watermark=3, last_stable_offset=3, log_start_offset=0, records=bytes(data))


def read_from(leader: Replica, follower: Replica, *, rack: str = "a") -> list[bytes | None]:
    """What comes from the two, offsets 0 to 2."""
    with leader.server, follower.server:
        leader.cluster = follower.cluster = [
            MetadataResponseBroker(node_id=node, host="127.0.0.1", port=int(one.server.bootstrap.rpartition(":")[2]))
            for node, one in ((1, leader), (2, follower))
        ]
        with RawClient(RawSettings(leader.server.bootstrap, rack=rack, retry_backoff_ms=10)) as client:
            found = [value for answer in client.fetch_range("t", 0, 0, 3) for value in values(answer.records)]
    assert leader.looks + follower.looks == 1, "who is sent elsewhere goes there at once, without a pause and a look"
    return found


ELSEWHERE = FetchResponsePartition(high_watermark=3, last_stable_offset=3, preferred_read_replica=2, records=b"")
ALL = [b"0", b"1", b"2"]


def test_a_range_is_read_from_the_replica_that_the_leader_names() -> None:
    leader, follower = Replica(ELSEWHERE), Replica(*map(of_offset, range(3)))
    assert read_from(leader, follower) == ALL
    assert (leader.racks, follower.racks) == (["a"], ["a"] * 3)


@pytest.mark.parametrize(
    "trouble",
    [
        FetchResponsePartition(error_code=Error.OFFSET_OUT_OF_RANGE, records=b""),
        FetchResponsePartition(error_code=Error.NOT_LEADER_OR_FOLLOWER, records=b""),
        FetchResponsePartition(error_code=Error.TOPIC_AUTHORIZATION_FAILED, records=b""),
        FetchResponsePartition(high_watermark=1, last_stable_offset=1, log_start_offset=0, records=b""),
        FetchResponsePartition(high_watermark=3, last_stable_offset=3, log_start_offset=0, records=batch(b"old")),
        FetchResponsePartition(partition_index=5, records=b""),
        None,
    ],
    ids=["out of range", "no replica", "refused", "behind", "corrupt", "another partition", "hung up"],
)
def test_what_a_follower_does_not_give_the_leader_does(trouble: FetchResponsePartition | None) -> None:
    leader = Replica(ELSEWHERE, of_offset(1), of_offset(2))
    follower = Replica(of_offset(0), *([trouble] if trouble is not None else []))
    assert read_from(leader, follower) == ALL
    assert leader.racks == ["a", "", ""], "it would name the same follower again"


def test_only_the_leader_knows_what_is_out_of_range() -> None:
    missing = FetchResponsePartition(error_code=Error.OFFSET_OUT_OF_RANGE, log_start_offset=5, records=b"")
    with pytest.raises(OffsetOutOfRange, match="it has 5 to 0"):
        read_from(Replica(ELSEWHERE, missing), Replica(missing))


def test_without_a_rack_nobody_is_asked_for_the_nearest() -> None:
    leader, follower = Replica(*map(of_offset, range(3))), Replica()
    assert read_from(leader, follower, rack="") == ALL
    assert (leader.racks, follower.racks) == ([""] * 3, [])


def test_the_rack_is_that_of_kafkas_client() -> None:
    assert RawSettings.of_properties({"bootstrap.servers": "a:1", "client.rack": "north"}).rack == "north"


# Who we are


def test_scram_is_as_in_the_rfc() -> None:
    """RFC 7677, section 3."""
    scram = Scram("SCRAM-SHA-256", "user", "pencil", "rOprNGfwEbeRWgbNEkqO")
    assert scram.first == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    final = scram.final(f"r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode())
    assert final == f"c=biws,r={nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
    scram.verify(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")
    with pytest.raises(AuthenticationFailed, match="could not prove"):
        scram.verify(b"v=AAAATRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


@pytest.mark.parametrize(
    ("answer", "trouble"),
    [
        (b"r=other,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "nonce"),
        (b"r=mine,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "nonce"),
        (b"r=mine+,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=999999999", "iterations"),
        (b"r=mine+,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=1", "iterations"),
        (b"r=mine+,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=-4096", "iterations"),
        (b"r=mine+,s=***,i=4096", "base64"),
        (b"\xff\xfe", "no text"),
        (b"", "nonce"),
    ],
)
def test_scram_answers_that_make_no_sense_are_refused(answer: bytes, trouble: str) -> None:
    with pytest.raises(AuthenticationFailed, match=trouble):
        Scram("SCRAM-SHA-512", "user", "pencil", "mine").final(answer)


def test_scram_escapes_a_name() -> None:
    assert Scram("SCRAM-SHA-256", "a=b,c", "", "x").first == b"n,,n=a=3Db=2Cc,r=x"


def asked_as_ann(broker: ScriptedBroker) -> object:
    security = Security(protocol="SASL_PLAINTEXT", mechanism="PLAIN", username="ann", password="secret")
    with RawClient(RawSettings(broker.bootstrap, security=security)) as client:
        return client.topics()


def test_a_refused_password_is_said_to_be() -> None:
    answers = [
        versions,
        message(SaslHandshakeResponse(mechanisms=["PLAIN"])),
        message(SaslAuthenticateResponse(error_code=Error.SASL_AUTHENTICATION_FAILED, error_message="no such user")),
    ]
    with ScriptedBroker(answers) as broker:
        with pytest.raises(AuthenticationFailed, match="refused user ann: no such user"):
            asked_as_ann(broker)
        assert broker.connections == 1, "a refused password is not tried again"


def test_a_mechanism_that_is_not_offered_is_named() -> None:
    handshake = SaslHandshakeResponse(error_code=Error.UNSUPPORTED_SASL_MECHANISM, mechanisms=["GSSAPI"])
    trouble = pytest.raises(AuthenticationFailed, match="does not take PLAIN; it offers GSSAPI")
    with ScriptedBroker([versions, message(handshake)]) as broker, trouble:
        asked_as_ann(broker)


def test_settings_are_those_of_kafkas_client() -> None:
    settings = RawSettings.of_properties(
        {
            "bootstrap.servers": "a:1,b:2",
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
            'username="ann" password="se\\"cret";',
            "request.timeout.ms": "5000",
            "isolation.level": "read_committed",
            "ssl.endpoint.identification.algorithm": "",
        }
    )
    assert (settings.security.username, settings.security.password) == ("ann", 'se"cret')
    assert (settings.request_timeout_ms, settings.isolation, settings.security.check_host) == (5000, 1, False)
    assert "cret" not in repr(settings)
    assert pickle.loads(pickle.dumps(settings)) == settings


NAMES = (
    "bootstrap.servers",
    "isolation.level",
    "request.timeout.ms",
    "sasl.mechanism",
    "security.protocol",
    "ssl.truststore.location",
)


@pytest.mark.parametrize(
    ("properties", "trouble"),
    [
        ({}, "bootstrap.servers is missing"),
        ({"bootstrap.servers": "nowhere"}, "bootstrap.servers: nowhere is not an address"),
        ({"bootstrap.servers": "a:1,h:x"}, "bootstrap.servers: h:x is not an address"),
        ({"bootstrap.servers": " , "}, "bootstrap.servers is empty"),
        ({"bootstrap.servers": "a:1", "request.timeout.ms": "soon"}, "request.timeout.ms is 'soon'"),
        ({"bootstrap.servers": "a:1", "request.timeout.ms": "0"}, "request.timeout.ms is '0'"),
        ({"bootstrap.servers": "a:1", "security.protocol": "TLS"}, "security.protocol is 'TLS'"),
        ({"bootstrap.servers": "a:1", "security.protocol": "SASL_SSL"}, "sasl.mechanism is 'GSSAPI'"),
        ({"bootstrap.servers": "a:1", "isolation.level": "all"}, "isolation.level is 'all'"),
        ({"bootstrap.servers": "a:1", "ssl.truststore.location": "x.jks"}, "convert it to PEM"),
        (
            {"bootstrap.servers": "a:1", "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"},
            "security.protocol is SASL_SSL, which needs a user",
        ),
    ],
)
def test_a_setting_that_can_not_be_used_is_named(properties: dict[str, str], trouble: str) -> None:
    with pytest.raises(ConfigError) as error:
        RawSettings.of_properties(properties)
    assert trouble in str(error.value)
    assert str(error.value).split()[0].rstrip(":") in NAMES, "whoever prefixes it names the setting rightly"


def test_a_jaas_line_without_a_password_is_refused() -> None:
    with pytest.raises(ConfigError, match="needs username"):
        parse_jaas('org.apache.kafka.common.security.plain.PlainLoginModule required username="a";')
    with pytest.raises(ConfigError, match="needs one of the modules"):
        parse_jaas('com.sun.security.auth.module.Krb5LoginModule required username="a" password="b";')
