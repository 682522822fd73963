"""Append: places in the log, the topic's rules for producers, all or nothing."""

from dataclasses import replace

import pytest

from cordwood.config.topic import TopicConfig
from cordwood.errors import Error, StorageError
from cordwood.log import RecordsRefused
from cordwood.record.batch import LOG_APPEND_TIME, Codec, batches, check_crc, header_at
from cordwood.record.build import Record, build, build_values, records, seal
from log.builders import START_MS, TINY, Bench, batch_of, instant, outcome, read_values, refused


def test_batches_get_offsets_one_after_the_other() -> None:
    bench = Bench()
    assert outcome(bench.append(3)) == (0, 2, -1, 0, False, None)
    assert outcome(bench.append(1)) == (3, 3, -1, 0, False, None)
    assert bench.log.end_offset == 4
    assert bench.offsets() == [0, 1, 2, 3]
    bench.log.check()


def test_the_place_is_stamped_into_the_callers_bytes() -> None:
    bench = Bench()
    bench.append(2, epoch=4)
    batch = batch_of([Record(0, START_MS, None, b"x")])
    bench.log.append(batch, leader_epoch=5, now=bench.now)
    header = header_at(batch)
    assert (header.base_offset, header.leader_epoch) == (2, 5)
    check_crc(batch, header)


def test_what_is_refused_leaves_no_trace() -> None:
    bench = Bench()
    bench.append()
    with refused(Error.CORRUPT_MESSAGE):
        bench.log.append(memoryview(build_values([b"x"])[:-1] + b"y"), leader_epoch=1, now=bench.now)
    assert bench.log.end_offset == 1
    assert bench.log.latest_epoch == 0
    bench.log.check()


def test_a_failed_write_leaves_no_trace() -> None:
    bench = Bench()
    bench.append(producer=(1, 0, 0))
    bench.disk.fails_after = 0
    with pytest.raises(StorageError):
        bench.append(producer=(1, 0, 1))
    bench.log.check()
    assert bench.log.end_offset == 1
    assert bench.append(producer=(1, 0, 1)).first_offset == 1


def test_clients_may_not_write_control_batches() -> None:
    bench = Bench()
    batch = build([Record(0, 0, bytes(4), bytes(6))], control=True, producer_id=1, producer_epoch=0, base_sequence=0)
    with refused(Error.INVALID_RECORD):
        bench.log.append(memoryview(batch), leader_epoch=0, now=bench.now)


def test_a_batch_beyond_max_message_bytes_is_too_large() -> None:
    size = len(build_values([b"12345"], timestamp=START_MS))
    bench = Bench(replace(TINY, max_message_bytes=size))
    bench.append(key=None, value=b"12345")
    with refused(Error.MESSAGE_TOO_LARGE):
        bench.append(key=None, value=b"123456")


def test_a_batch_beyond_a_segment_is_too_large() -> None:
    with refused(Error.RECORD_LIST_TOO_LARGE):
        Bench().append(value=bytes(400))


def test_a_changed_setting_holds_for_the_next_batch() -> None:
    bench = Bench()
    bench.append()
    bench.log.update_config(replace(TINY, max_message_bytes=10))
    with refused(Error.MESSAGE_TOO_LARGE):
        bench.append()


class TestTimestamps:
    HOUR_MS = 3_600_000

    def test_far_ahead_is_refused_by_default(self) -> None:
        bench = Bench()
        bench.append(timestamp=START_MS + self.HOUR_MS)
        with refused(Error.INVALID_TIMESTAMP):
            bench.append(timestamp=START_MS + self.HOUR_MS + 1)

    def test_long_ago_and_none_are_fine_by_default(self) -> None:
        bench = Bench()
        bench.append(timestamp=0)
        bench.append(timestamp=-1)
        assert bench.log.end_offset == 2

    def test_limits_of_its_own_bind_every_record(self) -> None:
        bench = Bench(replace(TINY, message_timestamp_before_max_ms=100, message_timestamp_after_max_ms=50))
        times = [START_MS, START_MS - 100, START_MS + 50, -1]
        bench.log.append(
            batch_of([Record(n, t, None, b"") for n, t in enumerate(times)]), leader_epoch=0, now=bench.now
        )
        for wrong in (START_MS - 101, START_MS + 51):
            batch = batch_of([Record(0, START_MS, None, b""), Record(1, wrong, None, b"")])
            header = header_at(batch).replaced(max_timestamp=START_MS)  # the header does not give it away
            with pytest.raises(RecordsRefused) as caught:
                bench.log.append(memoryview(seal(bytearray(batch), header)), leader_epoch=0, now=bench.now)
            assert caught.value.error is Error.INVALID_TIMESTAMP
            assert [number for number, _ in caught.value.record_errors] == [1]

    def test_whose_timestamp_is_too_young_is_not_said_where_nobody_looked(self) -> None:
        """Clients take it that all are at fault where none is named, and none but those that are."""
        young = START_MS + self.HOUR_MS + 1
        bench = Bench()
        for times, numbers in (([young], [0]), ([START_MS, young], [])):
            batch = batch_of([Record(n, t, None, b"") for n, t in enumerate(times)])
            with pytest.raises(RecordsRefused) as caught:
                bench.log.append(batch, leader_epoch=0, now=bench.now)
            assert caught.value.error is Error.INVALID_TIMESTAMP
            assert [number for number, _ in caught.value.record_errors] == numbers

    @pytest.mark.parametrize("config", [{"cleanup_policy": ("compact",)}, {"compression_type": "gzip"}])
    def test_whose_timestamp_is_too_young_is_said_where_records_are_looked_at(self, config: dict[str, object]) -> None:
        bench = Bench(replace(TINY, **config))  # type: ignore[arg-type]
        times = [START_MS, START_MS + self.HOUR_MS + 1, START_MS]
        with pytest.raises(RecordsRefused) as caught:
            bench.log.append(
                batch_of([Record(n, t, b"k", b"") for n, t in enumerate(times)]), leader_epoch=0, now=bench.now
            )
        assert caught.value.error is Error.INVALID_TIMESTAMP
        assert [number for number, _ in caught.value.record_errors] == [1]

    def test_a_header_that_is_made_anew_has_its_records_timestamps(self) -> None:
        bench = Bench(replace(TINY, compression_type="gzip"))
        batch = batch_of([Record(0, START_MS, None, b""), Record(1, START_MS - 5, None, b"")])
        header = header_at(batch).replaced(max_timestamp=START_MS + 2 * self.HOUR_MS)
        bench.log.append(memoryview(seal(bytearray(batch), header)), leader_epoch=0, now=bench.now)
        assert [header.max_timestamp for header in bench.headers()] == [START_MS]

    def test_log_append_time_is_this_brokers(self) -> None:
        bench = Bench(replace(TINY, message_timestamp_type="LogAppendTime"))
        result = bench.append(2, timestamp=5)
        assert result.log_append_time_ms == START_MS
        (header,) = bench.headers()
        assert header.has_log_append_time
        assert header.max_timestamp == START_MS
        found = bench.log.find_timestamp(START_MS)
        assert found is not None
        assert (found.offset, found.timestamp) == (0, START_MS)

    def test_log_append_time_knows_no_limits(self) -> None:
        bench = Bench(replace(TINY, message_timestamp_type="LogAppendTime"))
        assert bench.append(timestamp=2**60).first_offset == 0

    def test_a_producer_may_not_claim_log_append_time(self) -> None:
        batch = memoryview(build([Record(0, 5, None, b""), Record(1, 5, None, b"")], log_append_time_ms=7))
        bench = Bench(replace(TINY, message_timestamp_type="LogAppendTime"))
        with pytest.raises(RecordsRefused) as caught:
            bench.log.append(batch, leader_epoch=0, now=bench.now)
        assert caught.value.error is Error.INVALID_TIMESTAMP
        assert caught.value.record_errors == []  # which is all of them
        bench = Bench()
        bench.log.append(batch, leader_epoch=0, now=bench.now)
        (header,) = bench.headers()
        assert not header.attributes & LOG_APPEND_TIME
        check_crc(batch, header)


class TestCompaction:
    COMPACT = replace(TINY, cleanup_policy=("compact",))

    @pytest.mark.parametrize("policy", [("compact",), ("compact", "delete")])
    def test_every_record_needs_a_key(self, policy: tuple[str, ...]) -> None:
        bench = Bench(replace(TINY, cleanup_policy=policy))
        bench.append(2)
        with pytest.raises(RecordsRefused) as caught:
            bench.log.append(
                batch_of([Record(0, 0, b"k", b""), Record(1, 0, None, b""), Record(2, 0, None, b"")]),
                leader_epoch=0,
                now=bench.now,
            )
        assert caught.value.error is Error.INVALID_RECORD
        assert [number for number, _ in caught.value.record_errors] == [1, 2]
        assert bench.log.end_offset == 2

    def test_records_that_make_no_sense_are_invalid(self) -> None:
        bench = Bench(self.COMPACT)
        batch = bytearray(build([Record(0, 0, b"key", b"value")]))
        batch[-3:] = b"\xff\xff\xff"
        with refused(Error.INVALID_RECORD):
            bench.log.append(memoryview(seal(batch, header_at(batch))), leader_epoch=0, now=bench.now)

    def test_records_out_of_order_are_invalid(self) -> None:
        bench = Bench(self.COMPACT)
        batch = build([Record(0, 0, b"k", b""), Record(0, 0, b"k", b""), Record(2, 0, b"k", b"")])
        with refused(Error.INVALID_RECORD):
            bench.log.append(memoryview(batch), leader_epoch=0, now=bench.now)

    def test_a_bomb_is_invalid(self) -> None:
        bench = Bench(self.COMPACT)
        batch = build([Record(0, 0, b"k", bytes(65 << 20))], codec=Codec.ZSTD)
        assert len(batch) < 10_000
        bench.log.update_config(replace(self.COMPACT, segment_bytes=1 << 20))
        with refused(Error.INVALID_RECORD):
            bench.log.append(memoryview(batch), leader_epoch=0, now=bench.now)


@pytest.mark.parametrize("source", list(Codec), ids=lambda codec: codec.name)
@pytest.mark.parametrize("wanted", ["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_batches_are_stored_with_the_topics_codec(source: Codec, wanted: str) -> None:
    bench = Bench(TopicConfig(compression_type=wanted))
    bench.append()
    original = [Record(n, START_MS + n, b"key", b"value" * n, [("h", b"1")]) for n in range(5)]
    batch = build(original, codec=source, producer_id=3, producer_epoch=1, base_sequence=10)
    assert bench.log.append(memoryview(batch), leader_epoch=2, now=bench.now).last_offset == 5
    piece = bench.log.read(1, 10_000, up_to_offset=6)
    assert piece is not None
    ((stored, header),) = batches(memoryview(piece.read()))
    expected = source if wanted == "producer" else Codec.NONE if wanted == "uncompressed" else Codec[wanted.upper()]
    assert header.codec is expected
    assert (header.base_offset, header.leader_epoch, header.producer_id, header.base_sequence) == (1, 2, 3, 10)
    assert header.max_timestamp == START_MS + 4
    assert list(records(stored, header, limit=10_000)) == [r._replace(offset=r.offset + 1) for r in original]


def test_a_batch_that_grows_too_large_when_stored_otherwise_is_refused() -> None:
    bench = Bench(TopicConfig(compression_type="uncompressed", max_message_bytes=1000))
    with refused(Error.MESSAGE_TOO_LARGE):
        bench.log.append(
            memoryview(build([Record(0, 0, None, bytes(5000))], codec=Codec.GZIP)), leader_epoch=0, now=bench.now
        )


class TestRoll:
    def test_by_size(self) -> None:
        bench = Bench(replace(TINY, segment_bytes=300))
        size = len(batch_of([Record(0, START_MS, b"key", b"value")]))
        assert 3 * size < 300 < 4 * size
        bench.fill(7)
        assert bench.names(".log") == [0, 3, 6]

    def test_by_age_of_the_records(self) -> None:
        bench = Bench(TopicConfig(segment_ms=100))
        for timestamp in (50, 150, 151, 160, 251, 252):
            bench.append(timestamp=timestamp)
        assert bench.names(".log") == [0, 2, 5]

    def test_by_age_of_the_segment_if_records_have_no_time(self) -> None:
        bench = Bench(TopicConfig(segment_ms=100))
        for now in (0, 100, 101, 150, 201, 202):
            bench.now = instant(START_MS + now)
            bench.append(timestamp=-1)
        assert bench.names(".log") == [0, 2, 5]

    def test_jitter_rolls_earlier(self) -> None:
        bench = Bench(TopicConfig(segment_ms=1000, segment_jitter_ms=999))
        bench.append(timestamp=0)
        bench.append(timestamp=1000)
        assert bench.names(".log") == [0, 1]

    def test_by_a_full_offset_index(self) -> None:
        bench = Bench(TopicConfig(segment_index_bytes=40, index_interval_bytes=0))
        bench.fill(13)
        # Five entries of 8 bytes fit, and the first batch of a segment gets none.
        assert bench.names(".log") == [0, 6, 12]

    def test_by_a_full_time_index(self) -> None:
        bench = Bench(TopicConfig(segment_index_bytes=40, index_interval_bytes=0))
        for timestamp in range(7):
            bench.append(timestamp=timestamp)
        # Three entries of 12 bytes fit, the last of which is kept for the end of the segment.
        assert bench.names(".log") == [0, 3, 6]
        bench.log.check()

    def test_by_the_largest_relative_offset(self) -> None:
        bench = Bench(TopicConfig())
        near = memoryview(build([Record(2**31 - 1, 0, None, b"")]))
        bench.log.append_as_follower(near, now=bench.now)
        assert bench.names(".log") == [0]
        bench.append()
        assert bench.names(".log") == [0, 2**31]
        bench.log.check()

    def test_an_empty_segment_is_not_rolled(self) -> None:
        bench = Bench()
        bench.log.roll(bench.now)
        assert bench.names(".log") == [0]

    def test_a_file_in_the_way_of_a_new_segment_is_emptied(self) -> None:
        bench = Bench()
        bench.append()
        bench.disk.replace("topic-0/00000000000000000001.log", b"leftover")
        bench.disk.replace("topic-0/00000000000000000001.index", b"leftover")
        bench.log.roll(bench.now)
        bench.append(value=b"new")
        assert read_values(bench.log, 1) == [b"new"]
        bench.log.check()
