"""Idempotence: what is a duplicate, what is a gap, who is fenced, and how long it is remembered."""

import pytest

from cordwood.config.topic import TopicConfig
from cordwood.errors import CorruptData, Error
from cordwood.log.snapshot import SnapshotEntry, decode_snapshot, encode_snapshot
from cordwood.record.batch import SEQUENCE_MAX
from cordwood.record.control import ControlType, EndMarker
from log.builders import DIRECTORY, START_MS, Bench, refused


@pytest.fixture
def bench() -> Bench:
    return Bench(TopicConfig())


def test_the_last_five_batches_are_known_again(bench: Bench) -> None:
    bench.append(2)
    for sequence in range(0, 60, 10):
        bench.append(10, producer=(1, 0, sequence))
    for sequence in range(10, 60, 10):
        again = bench.append(10, producer=(1, 0, sequence))
        assert (again.first_offset, again.last_offset, again.duplicate) == (2 + sequence, 2 + sequence + 9, True)
    with refused(Error.OUT_OF_ORDER_SEQUENCE_NUMBER):
        bench.append(10, producer=(1, 0, 0))
    assert bench.log.end_offset == 62
    bench.log.check()


def test_a_batch_is_a_duplicate_only_with_the_same_first_and_last_number(bench: Bench) -> None:
    bench.append(10, producer=(1, 0, 0))
    for count, sequence in ((9, 0), (11, 0), (5, 5)):
        with refused(Error.OUT_OF_ORDER_SEQUENCE_NUMBER):
            bench.append(count, producer=(1, 0, sequence))


def test_a_gap_is_out_of_order(bench: Bench) -> None:
    bench.append(3, producer=(1, 0, 0))
    with refused(Error.OUT_OF_ORDER_SEQUENCE_NUMBER):
        bench.append(3, producer=(1, 0, 4))
    assert bench.append(3, producer=(1, 0, 3)).first_offset == 3


def test_producers_do_not_disturb_each_other(bench: Bench) -> None:
    bench.append(producer=(1, 0, 0))
    bench.append(producer=(2, 0, 0))
    bench.append()
    assert bench.append(producer=(1, 0, 1)).first_offset == 3
    assert bench.append(producer=(2, 0, 0)).duplicate


def test_an_unknown_producer_may_begin_anywhere(bench: Bench) -> None:
    assert bench.append(producer=(1, 5, 77)).first_offset == 0
    assert bench.append(producer=(1, 5, 78)).first_offset == 1


def test_an_older_epoch_is_fenced(bench: Bench) -> None:
    bench.append(producer=(1, 3, 0))
    with refused(Error.INVALID_PRODUCER_EPOCH):
        bench.append(producer=(1, 2, 1))


def test_a_newer_epoch_begins_at_zero(bench: Bench) -> None:
    bench.append(producer=(1, 0, 0))
    with refused(Error.OUT_OF_ORDER_SEQUENCE_NUMBER):
        bench.append(producer=(1, 1, 1))
    assert not bench.append(producer=(1, 1, 0)).duplicate
    assert bench.append(producer=(1, 1, 0)).duplicate
    assert not bench.append(producer=(1, 1, 1)).duplicate


def test_numbers_go_round_after_the_largest(bench: Bench) -> None:
    bench.append(3, producer=(1, 0, SEQUENCE_MAX - 4))
    bench.append(4, producer=(1, 0, SEQUENCE_MAX - 1))
    again = bench.append(4, producer=(1, 0, SEQUENCE_MAX - 1))
    assert (again.first_offset, again.duplicate) == (3, True)
    with refused(Error.OUT_OF_ORDER_SEQUENCE_NUMBER):
        bench.append(producer=(1, 0, 3))
    assert bench.append(producer=(1, 0, 2)).first_offset == 7


def test_zero_follows_the_largest(bench: Bench) -> None:
    bench.append(producer=(1, 0, SEQUENCE_MAX))
    assert bench.append(producer=(1, 0, 0)).first_offset == 1


def test_idle_producers_are_forgotten(bench: Bench) -> None:
    bench.append(producer=(1, 0, 0), timestamp=START_MS)
    bench.append(producer=(2, 0, 0), timestamp=START_MS + 1)
    bench.log.producers.expire(START_MS + 100, expiration_ms=100)
    assert sorted(bench.log.producers.known) == [2]
    assert not bench.append(producer=(1, 0, 9)).duplicate


@pytest.mark.parametrize("how", ["clean", "killed", "power"])
def test_producers_survive_a_restart(bench: Bench, how: str) -> None:
    for sequence in range(0, 30, 3):
        bench.append(3, producer=(1, 0, sequence))
        bench.append(3, producer=(2, sequence, 0))
    bench.sync()
    bench.restart() if how == "clean" else bench.crash(power=how == "power")
    assert bench.append(3, producer=(1, 0, 27)).duplicate
    assert bench.append(3, producer=(2, 27, 0)).duplicate
    with refused(Error.INVALID_PRODUCER_EPOCH):
        bench.append(3, producer=(2, 26, 3))
    with refused(Error.OUT_OF_ORDER_SEQUENCE_NUMBER):
        bench.append(3, producer=(1, 0, 33))
    assert not bench.append(3, producer=(1, 0, 30)).duplicate


@pytest.mark.parametrize("content", [None, b"", b"x" * 100, bytes(10)])
def test_a_broken_snapshot_is_replaced_by_reading_the_log(content: bytes | None) -> None:
    bench = Bench()
    for sequence in range(30):
        bench.append(producer=(1, 0, sequence))
    bench.restart()
    for offset in bench.names(".snapshot"):
        path = f"{DIRECTORY}/{offset:020d}.snapshot"
        bench.disk.remove(path)
        if content is not None:
            bench.disk.replace(path, content)
    for clean in (True, False):
        bench.open(clean=clean, recovery_point=30)
        assert bench.append(producer=(1, 0, 29)).duplicate
        assert bench.append(producer=(1, 0, 26)).duplicate


def test_a_snapshot_stands_at_every_segment_and_goes_with_it() -> None:
    bench = Bench()
    for sequence in range(30):
        bench.append(producer=(1, 0, sequence))
    assert bench.names(".snapshot") == bench.names(".log")[1:]
    bench.log.advance_start(12, high_watermark=30)
    bench.log.delete_old_segments(bench.now, high_watermark=30)
    assert bench.names(".log")[0] > 0
    assert bench.names(".snapshot") == bench.names(".log")
    bench.restart()
    assert bench.names(".snapshot") == [*bench.names(".log"), 30]
    bench.append(producer=(1, 0, 30))
    bench.restart()
    assert bench.names(".snapshot") == [*bench.names(".log"), 31]


def test_truncation_takes_the_producers_back() -> None:
    bench = Bench()
    for sequence in range(30):
        bench.append(producer=(1, 0, sequence))
    bench.log.truncate(17, bench.now)
    bench.log.check()
    with refused(Error.OUT_OF_ORDER_SEQUENCE_NUMBER):
        bench.append(producer=(1, 0, 18))
    assert bench.append(producer=(1, 0, 16)).duplicate
    assert bench.append(producer=(1, 0, 17)).first_offset == 17
    assert max(bench.names(".snapshot")) <= 18


class TestTransactions:
    ABORT = EndMarker(ControlType.ABORT, coordinator_epoch=3, timestamp=START_MS)

    def end(self, bench: Bench, marker: EndMarker = ABORT, *, epoch: int = 0) -> None:
        bench.log.append_marker(marker, producer_id=1, producer_epoch=epoch, leader_epoch=0, now=bench.now)

    def test_a_transactional_batch_needs_a_transaction(self, bench: Bench) -> None:
        bench.append(producer=(1, 0, 0), transactional=True)
        bench.append(producer=(1, 0, 1), transactional=True)
        with refused(Error.INVALID_TXN_STATE):
            bench.append(producer=(1, 0, 2))
        self.end(bench)
        assert bench.append(producer=(1, 0, 2)).first_offset == 3

    def test_one_out_of_nowhere_is_refused(self, bench: Bench) -> None:
        from cordwood.record.build import Record
        from log.builders import batch_of

        batch = batch_of([Record(0, 0, None, b"")], producer=(1, 0, 0), transactional=True)
        with refused(Error.INVALID_TXN_STATE):
            bench.log.append(batch, leader_epoch=0, now=bench.now)

    def test_the_last_stable_offset_is_where_the_first_transaction_began(self, bench: Bench) -> None:
        log = bench.log
        bench.append(2)
        bench.append(producer=(1, 0, 0), transactional=True)
        bench.append(producer=(2, 0, 0), transactional=True)
        assert log.last_stable_offset(high_watermark=4) == 2
        assert log.last_stable_offset(high_watermark=1) == 1
        completed = log.append_marker(
            self.ABORT, producer_id=1, producer_epoch=0, leader_epoch=0, now=bench.now
        ).completed
        assert completed == (1, 2, 4, True)
        assert log.last_stable_offset(high_watermark=4) == 2
        assert log.last_stable_offset(high_watermark=5) == 3
        log.append_marker(self.ABORT, producer_id=2, producer_epoch=0, leader_epoch=0, now=bench.now)
        assert log.last_stable_offset(high_watermark=6) == 6
        log.check()

    def test_a_marker_of_an_older_coordinator_or_producer_is_refused(self, bench: Bench) -> None:
        bench.append(producer=(1, 4, 0), transactional=True)
        with refused(Error.INVALID_PRODUCER_EPOCH):
            self.end(bench, epoch=3)
        self.end(bench, epoch=4)
        with refused(Error.TRANSACTION_COORDINATOR_FENCED):
            self.end(bench, self.ABORT._replace(coordinator_epoch=2), epoch=4)

    @pytest.mark.parametrize("clean", [True, False])
    def test_a_transaction_under_way_survives_a_restart_and_expiry(self, bench: Bench, clean: bool) -> None:
        bench.append(producer=(1, 0, 0), transactional=True)
        bench.append()
        bench.restart() if clean else bench.crash(power=False)
        bench.log.producers.expire(START_MS * 100, expiration_ms=1)
        assert bench.log.last_stable_offset(high_watermark=2) == 0
        self.end(bench)
        bench.restart() if clean else bench.crash(power=False)
        assert bench.log.last_stable_offset(high_watermark=3) == 3


class TestSnapshotFormat:
    ENTRY = SnapshotEntry(7, 1, 41, 99, 4, 1_700_000_000_000, -1, -1)

    def test_round_trip(self) -> None:
        entries = [self.ENTRY, self.ENTRY._replace(producer_id=8, transaction_start=90)]
        assert decode_snapshot(encode_snapshot(entries)) == entries
        assert decode_snapshot(encode_snapshot([])) == []

    def test_the_bytes_are_those_of_kafka(self) -> None:
        data = encode_snapshot([self.ENTRY])
        assert data[:2] == b"\x00\x01"
        assert data[6:10] == b"\x00\x00\x00\x01"
        assert len(data) == 10 + 46

    def test_every_damaged_byte_is_noticed(self) -> None:
        data = encode_snapshot([self.ENTRY])
        for position in range(len(data)):
            damaged = bytearray(data)
            damaged[position] ^= 1
            with pytest.raises(CorruptData):
                decode_snapshot(bytes(damaged))
        for size in range(len(data)):
            with pytest.raises(CorruptData):
                decode_snapshot(data[:size])
