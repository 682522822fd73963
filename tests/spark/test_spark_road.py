"""Segment files and Fetch: two roads to the same bytes, whatever happens to the files on the way."""

import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from uuid import UUID

import pytest
from pyspark.sql import SparkSession

from cordwood.client.raw import LATEST, OffsetOutOfRange, RawClient, RawSettings
from cordwood.record.batch import batches
from cordwood.record.build import Record, build, records
from cordwood.spark import road
from cordwood.spark.hints import direct_hints
from cordwood.spark.road import DirectHint, Range, chunks
from cordwood.spark.segments import IDENTITY, Segments, Surprise, is_visible
from cordwood.testing import Broker
from cordwood.wire.messages import (
    DeleteRecordsRequest,
    DeleteRecordsRequestPartition,
    DeleteRecordsRequestTopic,
    DeleteRecordsResponse,
)
from spark.engine import Query, batch
from spark.spark_topics import Kafka
from support.proxy import Proxy
from support.raw import RawClient as OneConnection

BATCH_RECORDS = 20
BATCHES = 60
RECORDS = BATCHES * BATCH_RECORDS


class Stored:
    """A topic with a partition of six segments, in a broker that runs."""

    def __init__(self, data: Path) -> None:
        settings = {"num.partitions": 1, "log.segment.bytes": 1 << 20, "log.retention.ms": -1}
        self.broker = Broker(data=str(data), settings=settings)
        self.broker.start()
        self.settings = RawSettings(self.broker.bootstrap, timeout_ms=1_000, retry_backoff_ms=10)
        with RawClient(self.settings) as client:
            client.topics(["t"], create=True)
            for first in range(0, RECORDS, BATCH_RECORDS):
                client.produce("t", {0: _batch(first)})
            assert client.offsets({("t", 0): LATEST})[("t", 0)].offset == RECORDS
            self.hint = direct_hints(client, [("t", 0)])[("t", 0)]
        self.directory = Path(self.hint.log_dir) / "t-0"

    def logs(self) -> list[Path]:
        return sorted(self.directory.glob("*.log"))


def _batch(first: int) -> bytes:
    """About 100 kilobytes."""
    made = [Record(n, first + n, b"%d" % (first + n), b"x" * 5_000) for n in range(BATCH_RECORDS)]
    return bytes(build(made))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stored]:
    stored = Stored(tmp_path_factory.mktemp("shared"))
    yield stored
    stored.broker.stop()


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Stored]:
    stored = Stored(tmp_path)
    yield stored
    stored.broker.stop()


def offsets(
    stored: Stored,
    start: int = 0,
    end: int = RECORDS,
    *,
    direct: DirectHint | None = None,
    isolation: int = 0,
    after_first: Callable[[], object] = lambda: None,
) -> list[int]:
    """The offsets of the wanted records, in the order in which they came."""
    found: list[int] = []
    wanted = Range("t", 0, start, end)
    for number, chunk in enumerate(chunks(stored.settings, wanted, isolation=isolation, direct=direct)):
        if number == 0:
            after_first()
        for data, header in batches(memoryview(chunk.data)):
            found += [record.offset for record in records(data, header, limit=1 << 24)]
    return [offset for offset in found if start <= offset < end]


@pytest.mark.parametrize(("start", "end"), [(0, RECORDS), (7, RECORDS - 3), (500, 501), (0, 1), (RECORDS - 1, RECORDS)])
def test_both_roads_bring_the_same(shared: Stored, start: int, end: int) -> None:
    assert offsets(shared, start, end) == list(range(start, end))
    assert offsets(shared, start, end, direct=shared.hint) == list(range(start, end))


def test_a_range_of_nothing_asks_nobody() -> None:
    nowhere = RawSettings("127.0.0.1:1", timeout_ms=1)
    assert list(chunks(nowhere, Range("t", 0, 5, 5), isolation=0, direct=None)) == []


def test_committed_records_come_from_the_files_too(shared: Stored) -> None:
    assert offsets(shared, direct=shared.hint, isolation=1) == list(range(RECORDS))


def test_the_files_are_enough_once_the_broker_has_answered(own: Stored) -> None:
    assert offsets(own, direct=own.hint, after_first=own.broker.stop) == list(range(RECORDS))


def test_any_start_is_found_with_the_index_and_without(own: Stored) -> None:
    def found() -> list[int]:
        first = []
        for offset in range(0, RECORDS, 37):
            segments = Segments(own.directory, chunk_bytes=1 << 18)
            data, _ = next(segments.read(offset, RECORDS))
            first.append(next(batches(data))[1].base_offset)
            segments.check()
            segments.close()
        return first

    expected = [offset // BATCH_RECORDS * BATCH_RECORDS for offset in range(0, RECORDS, 37)]
    assert found() == expected
    indexes = sorted(own.directory.glob("*.index"))
    assert any(index.stat().st_size for index in indexes)
    for index in indexes:
        index.write_bytes(index.read_bytes() + bytes(800))  # as Kafka reserves space
    assert found() == expected
    for index in indexes:
        index.write_bytes(os.urandom(801))
    assert found() == expected
    for index in indexes:
        index.unlink()
    assert found() == expected


def test_a_batch_that_is_larger_than_a_chunk_is_read_whole(shared: Stored) -> None:
    segments = Segments(shared.directory, chunk_bytes=1_000)
    assert [following for _, following in segments.read(0, 60)] == [20, 40, 60]
    segments.close()


# What a query reads of the files

WHOLE_BYTES = 25_000 * 500


class Counted:
    """A topic that is worth reading from files, in a broker whose answers are counted."""

    def __init__(self, proxy: Proxy) -> None:
        self.proxy = proxy
        self.kafka = Kafka(proxy.address)
        self.kafka.produce(self.kafka.make("t"), [b"%d" % n + b"x" * 500 for n in range(25_000)])

    def has_sent(self, read: Callable[[], int]) -> int:
        """How many bytes went to those who read all."""
        before = self.proxy.bytes_to_clients
        assert read() == 25_000
        return self.proxy.bytes_to_clients - before


@pytest.fixture(scope="module")
def counted() -> Iterator[Counted]:
    proxy = Proxy("127.0.0.1", 0)
    with proxy, Broker(settings={"advertised.listeners": f"PLAINTEXT://{proxy.address}"}) as broker:
        proxy.lead_to(broker.port)
        yield Counted(proxy)


def test_tasks_read_the_files(counted: Counted) -> None:
    options = {"subscribe": "t", "startingOffsets": "earliest"}

    def streamed(**more: str) -> int:
        query = Query(counted.kafka.bootstrap, **options, **more)
        found = sum(map(len, query.drain()))
        query.stop()
        return found

    def of_batch(**more: str) -> int:
        return len(batch(counted.kafka.bootstrap, **options, **more))

    for read in (streamed, of_batch):
        assert counted.has_sent(read) < WHOLE_BYTES // 4
        assert counted.has_sent(partial(read, direct="never")) > WHOLE_BYTES


def test_in_spark_tasks_read_the_files(spark: SparkSession, counted: Counted, tmp_path: Path) -> None:
    options = {"kafka.bootstrap.servers": counted.kafka.bootstrap, "subscribe": "t", "startingOffsets": "earliest"}

    def streamed() -> int:
        frame = spark.readStream.format("cordwood").options(**options).load()
        writer = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path))
        query = writer.trigger(availableNow=True).start()
        assert query.awaitTermination(90)
        return sum(progress.numInputRows for progress in query.recentProgress)

    assert counted.has_sent(lambda: spark.read.format("cordwood").options(**options).load().count()) < WHOLE_BYTES // 4
    assert counted.has_sent(streamed) < WHOLE_BYTES // 4


# Files that change while they are read


def test_segments_that_are_deleted_are_asked_of_the_broker(own: Stored) -> None:
    """The file that is open stays readable; for those after it the broker is asked."""

    def delete() -> None:
        with OneConnection(own.broker.bootstrap) as connection:
            entry = DeleteRecordsRequestPartition(partition_index=0, offset=RECORDS - 5)
            topic = DeleteRecordsRequestTopic(name="t", partitions=[entry])
            answer = connection.ask(DeleteRecordsRequest(topics=[topic], timeout_ms=5_000), DeleteRecordsResponse)
            assert answer.topics[0].partitions[0].error_code == 0
        for log in own.logs()[:-1]:
            log.rename(log.with_suffix(".log.deleted"))

    with pytest.raises(OffsetOutOfRange):
        offsets(own, direct=own.hint, after_first=delete)
    with pytest.raises(OffsetOutOfRange):
        offsets(own, direct=None)
    assert offsets(own, RECORDS - 5, direct=own.hint) == list(range(RECORDS - 5, RECORDS))


def test_records_that_were_deleted_are_not_read_though_they_are_in_the_files(own: Stored) -> None:
    with OneConnection(own.broker.bootstrap) as connection:
        topic = DeleteRecordsRequestTopic(
            name="t", partitions=[DeleteRecordsRequestPartition(partition_index=0, offset=30)]
        )
        connection.ask(DeleteRecordsRequest(topics=[topic], timeout_ms=5_000), DeleteRecordsResponse)
    with pytest.raises(OffsetOutOfRange, match="offset 10 of t-0"):
        offsets(own, 10, 50, direct=own.hint)
    assert offsets(own, 30, 50, direct=own.hint) == list(range(30, 50))


@pytest.mark.parametrize("number", [0, 1, 3, -1])
def test_a_file_that_is_gone_is_asked_of_the_broker(own: Stored, number: int) -> None:
    """The broker has it open still, as it has while compaction puts another into its place."""
    log = own.logs()[number]

    def hide() -> None:
        log.rename(log.with_suffix(".log.swap"))

    with RawClient(own.settings) as client:  # the broker opens all of its files
        assert sum(1 for _ in client.fetch_range("t", 0, 0, RECORDS)) > 0
    assert offsets(own, direct=own.hint, after_first=hide) == list(range(RECORDS))


@pytest.mark.parametrize("keep", [0, 5, 61, 300_000])
def test_a_file_that_is_cut_off_is_never_taken_for_all(own: Stored, keep: int) -> None:
    """Not by what comes out: the broker cannot give what is gone either. But nothing is skipped in silence."""
    copy = own.directory.with_name("copy")
    copy.mkdir()
    for file in own.logs():
        (copy / file.name).write_bytes(file.read_bytes())
    cut = sorted(copy.glob("*.log"))[2]
    os.truncate(cut, keep)
    segments = Segments(copy, chunk_bytes=1 << 20)
    found: list[int] = []

    def read_all() -> None:
        for data, _ in segments.read(0, RECORDS):
            found.extend(n for _, header in batches(data) for n in range(header.base_offset, header.next_offset))

    with pytest.raises(Surprise):
        read_all()
    assert found == list(range(len(found)))
    assert int(cut.stem) <= len(found) < RECORDS


def test_damaged_bytes_are_a_surprise_and_the_broker_is_asked(own: Stored) -> None:
    with own.logs()[3].open("r+b") as file:
        file.write(bytes(61))
    segments = Segments(own.directory, chunk_bytes=1 << 20)
    with pytest.raises(Surprise):
        list(segments.read(0, RECORDS))


def test_after_a_surprise_the_files_are_tried_again(own: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gap between two segments, as compaction leaves it, costs one request."""
    fetched: list[int] = []
    original = RawClient.fetch

    def counted(self: RawClient, topic: str, partition: int, offset: int, **options: int) -> object:
        fetched.append(offset)
        return original(self, topic, partition, offset, **options)

    monkeypatch.setattr(RawClient, "fetch", counted)
    with RawClient(own.settings) as client:
        assert sum(1 for _ in client.fetch_range("t", 0, 0, RECORDS)) > 0
    gone = own.logs()[2]
    gone.rename(gone.with_suffix(".log.swap"))
    assert offsets(own, direct=own.hint) == list(range(RECORDS))
    assert fetched[0] == 0
    assert int(gone.stem) in fetched
    assert len(fetched) <= 4, "most of it came from the files"


def test_too_many_surprises_end_in_fetching_the_rest(shared: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    def surprising(self: Segments, offset: int, end: int) -> Iterator[tuple[memoryview, int]]:
        raise Surprise("always")
        yield memoryview(b""), 0

    monkeypatch.setattr(Segments, "read", surprising)
    monkeypatch.setattr(road, "SURPRISES_MAX", 2)
    assert offsets(shared, direct=shared.hint) == list(range(RECORDS))


def test_aborted_transactions_are_the_brokers_business(own: Stored) -> None:
    segments = Segments(own.directory, chunk_bytes=1 << 20)
    last = own.logs()[-1]
    assert not segments.has_aborted(0)
    last.with_suffix(".txnindex").write_bytes(b"")
    assert not segments.has_aborted(0)
    last.with_suffix(".txnindex").write_bytes(bytes(34))
    assert segments.has_aborted(0)
    own.logs()[0].with_suffix(".txnindex").write_bytes(bytes(34))
    last.with_suffix(".txnindex").unlink()
    assert not segments.has_aborted(RECORDS - 1), "only what comes after counts"
    assert offsets(own, direct=own.hint, isolation=1) == list(range(RECORDS))


# Whose files they are


@pytest.mark.parametrize(
    "wrong",
    [
        {"cluster_id": "another-cluster-000000"},
        {"cluster_id": ""},
        {"node_id": 2},
        {"topic_id": UUID(int=5)},
        {"topic_id": UUID(int=0)},
        {"log_dir": "/nowhere"},
    ],
)
def test_files_of_somebody_else_are_not_read(shared: Stored, wrong: dict[str, object]) -> None:
    hint = shared.hint._replace(**wrong)  # type: ignore[arg-type]
    assert is_visible(shared.hint, "t", 0)
    assert not is_visible(hint, "t", 0)
    assert not is_visible(shared.hint, "t", 1)
    assert offsets(shared, 0, 50, direct=hint) == list(range(50))


def test_the_files_of_a_broker_that_does_not_lead_any_more_are_not_read(shared: Stored, tmp_path: Path) -> None:
    """They may end in records that were never committed, where the leader has others."""
    former = tmp_path / "t-0"
    former.mkdir()
    for file in shared.directory.iterdir():
        (former / file.name).write_bytes(file.read_bytes().replace(b"xxxx", b"yyyy"))
    identity = (Path(shared.hint.log_dir) / IDENTITY).read_text()
    (tmp_path / IDENTITY).write_text(re.sub(r"(?m)^(node|broker)\.id=.*$", r"\1.id=7", identity))
    hint = shared.hint._replace(log_dir=str(tmp_path), node_id=7)
    assert is_visible(hint, "t", 0)
    wanted = Range("t", 0, 0, RECORDS)
    found = b"".join(bytes(chunk.data) for chunk in chunks(shared.settings, wanted, isolation=0, direct=hint))
    assert found == b"".join(log.read_bytes() for log in shared.logs())


def test_chunks_hold_whole_batches_in_order(shared: Stored) -> None:
    wanted = Range("t", 0, 0, RECORDS)
    found = b"".join(bytes(chunk.data) for chunk in chunks(shared.settings, wanted, isolation=0, direct=shared.hint))
    assert found == b"".join(log.read_bytes() for log in shared.logs())
