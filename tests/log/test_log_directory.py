"""The data directory: names, checkpoints, clean stops, deletions."""

from random import Random
from uuid import UUID

import pytest

from cordwood.ids import TopicId, TopicName, TopicPartition
from cordwood.log import Log
from cordwood.log.directory import (
    CLEAN_STOP,
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    LogDirectory,
    StoredPartition,
    decode_topic_id,
    deleted_name,
    encode_topic_id,
    parse_partition_name,
)
from cordwood.record.build import build_values
from cordwood.sim.disk import SimDisk
from log.builders import TINY, instant

ID = TopicId(UUID("01234567-89ab-cdef-0123-456789abcdef"))
OTHER_ID = TopicId(UUID(int=99))
NOW = instant()


def tp(topic: str, partition: int) -> TopicPartition:
    return TopicPartition(TopicName(topic), partition)


def append(log: Log, count: int) -> None:
    for _ in range(count):
        log.append(memoryview(build_values([b"value"])), leader_epoch=0, now=NOW)


def close(directory: LogDirectory, logs: dict[TopicPartition, Log]) -> None:
    for log in logs.values():
        job = log.prepare_to_close()
        for file in job.files:
            file.sync()
        log.synced(job, NOW)
        log.close()
    directory.write_checkpoints(logs, {name: log.end_offset for name, log in logs.items()})
    directory.mark_clean()


def opened(disk: SimDisk) -> LogDirectory:
    directory = LogDirectory(disk)
    directory.load()
    return directory


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("topic-0", tp("topic", 0)),
        ("a-b-c-12", tp("a-b-c", 12)),
        ("t--1", tp("t-", 1)),
        ("-1-0", tp("-1", 0)),
        ("a.b_c-2147483647", tp("a.b_c", 2**31 - 1)),
        ("a-2147483648", None),
        ("a-99999999999", None),
        ("topic", None),
        ("topic-", None),
        ("-0", None),
        ("topic-x", None),
        ("topic-01", None),
        ("topic-+1", None),
        ("topic-１", None),
        ("topic-0\n", None),
        ("topic 1-0", None),
        ("tópic-0", None),
        (".-0", None),
        ("..-0", None),
        (f"{'a' * 249}-0", tp("a" * 249, 0)),
        (f"{'a' * 250}-0", None),
        ("topic-0.0123456789abcdef0123456789abcdef-delete", None),
        ("topic-0.0123456789abcdef0123456789abcdef-future", None),
        ("", None),
    ],
)
def test_only_exact_names_are_partitions(name: str, expected: TopicPartition | None) -> None:
    assert parse_partition_name(name) == expected


def test_deleted_names_are_kafkas_and_never_too_long() -> None:
    assert deleted_name(tp("t", 3), ID) == "t-3.0123456789abcdef0123456789abcdef-delete"
    assert len(deleted_name(tp("a" * 249, 2**31 - 1), ID)) == 255
    assert parse_partition_name(deleted_name(tp("a" * 249, 0), ID)) is None


def test_the_topic_id_is_written_as_kafka_does() -> None:
    assert encode_topic_id(ID) == b"version: 0\ntopic_id: ASNFZ4mrze8BI0VniavN7w"
    assert decode_topic_id(encode_topic_id(ID)) == ID


def test_a_clean_stop_is_seen_once() -> None:
    disk = SimDisk(Random(1))
    directory = opened(disk)
    assert not directory.was_clean
    logs = {tp("t", n): directory.open(tp("t", n), ID, TINY, now=NOW) for n in range(3)}
    append(logs[tp("t", 1)], 12)
    close(directory, logs)
    assert disk.read(CLEAN_STOP) == b'{"version":0,"brokerEpoch":-1}'
    again = LogDirectory(disk)
    assert again.load() == ([StoredPartition(tp("t", n), ID) for n in range(3)], [])
    assert again.was_clean
    assert again.high_watermarks == {tp("t", 0): 0, tp("t", 1): 12, tp("t", 2): 0}
    log = again.open(tp("t", 1), ID, TINY, now=NOW)
    assert (log.end_offset, log.unflushed_messages) == (12, 0)
    for seed in range(10):
        disk._random.seed(seed)
        disk.crash()
        assert not opened(disk).was_clean


def test_the_checkpoints_are_kafkas() -> None:
    disk = SimDisk(Random(1))
    directory = opened(disk)
    log = directory.open(tp("my-topic", 7), ID, TINY, now=NOW)
    append(log, 12)
    job = log.files_to_sync()
    log.synced(job, NOW)
    log.advance_start(3, high_watermark=12)
    directory.write_checkpoints({tp("my-topic", 7): log}, {tp("my-topic", 7): 11})
    base = log.segments[-1].base_offset
    assert disk.read(RECOVERY_POINTS) == f"0\n1\nmy-topic 7 {base}\n".encode()
    assert disk.read(LOG_STARTS) == b"0\n1\nmy-topic 7 3\n"
    assert disk.read(HIGH_WATERMARKS) == b"0\n1\nmy-topic 7 11\n"


def test_prepared_checkpoints_come_into_force_together() -> None:
    disk = SimDisk(Random(1))
    directory = opened(disk)
    log = directory.open(tp("t", 0), ID, TINY, now=NOW)
    files = directory.prepare_checkpoints({tp("t", 0): log}, {tp("t", 0): 0})
    assert not disk.exists(RECOVERY_POINTS)
    for file in files:
        file.sync()
    directory.commit_checkpoints()
    assert disk.read(RECOVERY_POINTS) == b"0\n1\nt 0 0\n"
    directory.commit_checkpoints()


def test_broken_checkpoints_are_not_used() -> None:
    for text in (b"", b"0\n1\n", b"0\n1\nt 0\n", b"0\n1\nt x 0\n", b"0\n1\nt 0 5", b"9\n0\n"):
        disk = SimDisk(Random(1))
        directory = opened(disk)
        log = directory.open(tp("t", 0), ID, TINY, now=NOW)
        append(log, 12)
        close(directory, {tp("t", 0): log})
        for name in (RECOVERY_POINTS, LOG_STARTS, HIGH_WATERMARKS):
            disk.replace(name, text)
        assert opened(disk).open(tp("t", 0), ID, TINY, now=NOW).end_offset == 12


def test_records_survive_a_crash_of_the_whole_directory() -> None:
    for seed in range(15):
        disk = SimDisk(Random(seed))
        directory = opened(disk)
        logs = {tp("t", n): directory.open(tp("t", n), ID, TINY, now=NOW) for n in range(3)}
        for name, log in logs.items():
            append(log, 5 * name.partition + 3)
            for file in log.files_to_sync().files:
                file.sync()
        disk.crash()
        directory = LogDirectory(disk)
        partitions, _ = directory.load()
        assert partitions == [StoredPartition(name, ID) for name in logs]
        ends = [directory.open(name, ID, TINY, now=NOW).end_offset for name in logs]
        assert ends == [3, 8, 13]


def test_a_log_that_came_back_shorter_is_read_whole_after_the_next_crash() -> None:
    disk = SimDisk(Random(1))
    directory = opened(disk)
    log = directory.open(tp("t", 0), ID, TINY, now=NOW)
    append(log, 30)
    close(directory, {tp("t", 0): log})
    log = opened(disk).open(tp("t", 0), ID, TINY, now=NOW)
    log.truncate(2, NOW)
    log = opened(disk).open(tp("t", 0), ID, TINY, now=NOW)
    assert log.end_offset == 2
    assert disk.read(RECOVERY_POINTS) == b"0\n0\n"


def test_a_partition_that_is_set_aside_is_one_no_more() -> None:
    disk = SimDisk(Random(1))
    directory = opened(disk)
    append(directory.open(tp("t", 0), ID, TINY, now=NOW), 3)
    path = directory.set_aside(tp("t", 0), ID)
    assert disk.exists(f"{path}/{0:020d}.log")
    assert LogDirectory(disk).load() == ([], [path])


def test_a_topic_of_the_same_name_does_not_inherit_checkpoints() -> None:
    for crash in (False, True):
        disk = SimDisk(Random(1))
        directory = opened(disk)
        log = directory.open(tp("t", 0), ID, TINY, now=NOW)
        append(log, 30)
        log.advance_start(17, high_watermark=30)
        directory.write_checkpoints({tp("t", 0): log}, {})
        directory.set_aside(tp("t", 0), ID)
        log = directory.open(tp("t", 0), OTHER_ID, TINY, now=NOW)
        assert (log.log_start_offset, log.end_offset) == (0, 0)
        append(log, 4)
        if crash:
            for file in log.files_to_sync().files:
                file.sync()
            disk.crash()
            directory = LogDirectory(disk)
            assert directory.load()[0] == [StoredPartition(tp("t", 0), OTHER_ID)]
            log = directory.open(tp("t", 0), OTHER_ID, TINY, now=NOW)
            assert (log.log_start_offset, log.end_offset) == (0, 4)


def test_checkpoints_prepared_before_a_topic_was_made_again_are_dropped() -> None:
    disk = SimDisk(Random(1))
    directory = opened(disk)
    log = directory.open(tp("t", 0), ID, TINY, now=NOW)
    append(log, 30)
    log.advance_start(17, high_watermark=30)
    directory.write_checkpoints({tp("t", 0): log}, {})
    directory.prepare_checkpoints({tp("t", 0): log}, {})
    directory.set_aside(tp("t", 0), ID)
    directory.open(tp("t", 0), OTHER_ID, TINY, now=NOW)
    directory.commit_checkpoints()
    assert disk.read(LOG_STARTS) == b"0\n0\n"


@pytest.mark.parametrize("content", [None, b"", b"version: 0\ntopic_id: short", b"version: 1\n", b"\xff" * 30])
def test_a_missing_or_broken_topic_id_is_none_and_mended_when_opened(content: bytes | None) -> None:
    disk = SimDisk(Random(1))
    directory = opened(disk)
    directory.open(tp("t", 0), ID, TINY, now=NOW)
    disk.remove("t-0/partition.metadata")
    if content is not None:
        disk.replace("t-0/partition.metadata", content)
    again = LogDirectory(disk)
    assert again.load()[0] == [StoredPartition(tp("t", 0), None)]
    again.open(tp("t", 0), ID, TINY, now=NOW)
    assert LogDirectory(disk).load()[0] == [StoredPartition(tp("t", 0), ID)]


def test_files_that_are_no_partitions_are_left_alone() -> None:
    disk = SimDisk(Random(1))
    for name in ("meta.properties", "cordwood.sqlite", "file-0", "x-delete"):
        disk.replace(name, b"?")
    disk.make_directory("lost+found")
    assert LogDirectory(disk).load() == ([], [])
    assert disk.list("") == ["cordwood.sqlite", "file-0", "lost+found", "meta.properties", "x-delete"]
