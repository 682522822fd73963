"""Long log files go up to a multiple of 64 KB while they grow: the system keeps them in larger pieces then."""

import os
from pathlib import Path
from random import Random

import pytest

from attacks.arena import create_topic, produced, read_all
from cordwood.config.topic import TopicConfig
from cordwood.errors import StorageError
from cordwood.log import open_log
from cordwood.log.tail import TAIL_BYTES_MAX, TAIL_MARK, is_tail
from cordwood.ports import Instant
from cordwood.record.build import build_values
from cordwood.run import disk as disk_module
from cordwood.run.disk import RealDisk, RealFile
from cordwood.run.page_cache import ALIGNED_BYTES, has_large_pieces
from support.batches import values_batch
from support.process import BrokerProcess
from support.raw import RawClient

pytestmark = pytest.mark.skipif(not ALIGNED_BYTES, reason="before Linux 6.16, and elsewhere, files are as long as logs")

LONG = 8 * ALIGNED_BYTES
PIECE = bytes(range(256)) * 20
NOW = Instant(1_700_000_000_000, 0)


@pytest.fixture
def disk(tmp_path: Path) -> RealDisk:
    return RealDisk(tmp_path / "data")


def grown(disk: RealDisk, size: int = LONG, piece: bytes = PIECE) -> RealFile:
    file = disk.open("file", create=True)
    file.may_end_in(TAIL_MARK)
    while file.size < size:
        file.append(piece)
    return file


def real_size(disk: RealDisk, path: str = "file") -> int:
    return os.stat(f"{disk.root}/{path}").st_size


def behind(disk: RealDisk, file: RealFile) -> bytes:
    return disk.read("file")[file.size :]


@pytest.mark.parametrize("linux", ["6.16.0", "6.16-rc1", "6.16+deb14-amd64", "6.18.5-arch1-1", "7.0", "10.2.3"])
def test_a_system_with_large_pieces_is_known(linux: str) -> None:
    assert has_large_pieces(linux)


@pytest.mark.parametrize("linux", ["6.15.11", "6.1.0-40-amd64", "5.16.20", "2.6.32", "6", "", "six.sixteen"])
def test_no_other_system_is_taken_for_one(linux: str) -> None:
    assert not has_large_pieces(linux)


def test_a_tail_is_no_longer_than_recovery_takes_for_one() -> None:
    assert ALIGNED_BYTES <= TAIL_BYTES_MAX


def test_a_long_file_goes_up_to_a_multiple(disk: RealDisk) -> None:
    file = grown(disk)
    assert real_size(disk) % ALIGNED_BYTES == 0
    assert 0 < real_size(disk) - file.size < ALIGNED_BYTES
    assert behind(disk, file).startswith(TAIL_MARK)


def test_whatever_is_appended_is_read_and_a_mark_stands_behind_it(disk: RealDisk) -> None:
    random = Random(1)
    file = grown(disk)
    content = disk.read("file")[: file.size]
    for _ in range(2_000):
        piece = random.randbytes(random.choice([1, 10, 100, 4_095, 4_096, 20_000, ALIGNED_BYTES, 100_000]))
        file.append(piece)
        content += piece
        tail = behind(disk, file)
        assert tail.startswith(TAIL_MARK[: len(tail)])
        assert is_tail(tail)
        if random.random() < 0.02:
            content = content[: random.randint(0, len(content))]
            file.truncate(len(content))
        assert file.size == len(content)
        if len(content) > 20 * LONG:
            content = b""
            file.truncate(0)
    assert disk.read("file")[: file.size] == content
    assert file.read(0, len(content) + 100) == content


def test_what_is_behind_the_end_is_not_read(disk: RealDisk) -> None:
    file = grown(disk)
    assert file.read(file.size - 3, 100) == PIECE[-3:]
    assert file.read(file.size, 100) == b""
    assert file.read(file.size + 5, 100) == b""


@pytest.mark.parametrize(
    ("size", "piece"), [(LONG - 2 * len(PIECE), PIECE), (2 * LONG, bytes(2_047))], ids=["short file", "small pieces"]
)
def test_others_are_as_long_as_their_content(disk: RealDisk, size: int, piece: bytes) -> None:
    assert grown(disk, size, piece).size == real_size(disk)


def test_a_file_that_was_not_told_of_a_mark_is_as_long_as_its_content(disk: RealDisk) -> None:
    file = disk.open("file", create=True)
    while file.size < 2 * LONG:
        file.append(PIECE)
    assert real_size(disk) == file.size


def test_a_file_that_is_complete_ends_there_from_now_on(disk: RealDisk) -> None:
    file = grown(disk)
    file.complete()
    assert real_size(disk) == file.size
    file.append(PIECE)
    assert real_size(disk) == file.size
    assert disk.read("file").endswith(PIECE)


def test_a_file_that_is_cut_ends_there_and_goes_on_as_before(disk: RealDisk) -> None:
    file = grown(disk)
    file.truncate(file.size - 1)
    assert real_size(disk) == file.size
    file.append(PIECE)
    assert real_size(disk) % ALIGNED_BYTES == 0
    assert disk.read("file")[: file.size].endswith(PIECE)


def fails(*_: object) -> None:
    raise OSError("the disk fails")


def test_a_file_whose_append_failed_goes_on_as_before(disk: RealDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    file = grown(disk)
    with monkeypatch.context() as patch:
        patch.setattr(disk_module, "_write_all_at", fails)
        with pytest.raises(StorageError):
            file.append(bytes(2 * ALIGNED_BYTES))
    assert real_size(disk) == file.size
    file.append(PIECE)
    assert real_size(disk) % ALIGNED_BYTES == 0


@pytest.mark.parametrize("again", [PIECE, b"little"], ids=["large", "little"])
def test_what_could_not_be_cut_off_goes_with_the_next_append(
    disk: RealDisk, monkeypatch: pytest.MonkeyPatch, again: bytes
) -> None:
    file = grown(disk)
    content = disk.read("file")[: file.size]
    with monkeypatch.context() as patch, (Path(disk.root) / "file").open("ab") as other:
        other.write(bytes(range(100)))  # as far as the disk came
        patch.setattr(os, "ftruncate", fails)
        patch.setattr(disk_module, "_write_all_at", fails)
        with pytest.raises(StorageError):
            file.append(bytes(2 * ALIGNED_BYTES))
    file.append(again)
    assert disk.read("file")[: file.size] == content + again
    assert is_tail(behind(disk, file))


def test_a_file_that_can_not_be_completed_says_so(disk: RealDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    file = grown(disk)
    monkeypatch.setattr(os, "ftruncate", fails)
    with pytest.raises(StorageError, match="the disk fails"):
        file.complete()


def test_what_a_failed_append_left_goes_when_the_file_is_complete(
    disk: RealDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = grown(disk, 2 * len(PIECE))
    size = file.size
    with monkeypatch.context() as patch, (Path(disk.root) / "file").open("ab") as other:
        other.write(bytes(100))  # as far as the disk came
        patch.setattr(os, "ftruncate", fails)
        patch.setattr(disk_module, "_write_at", fails)
        with pytest.raises(StorageError):
            file.append(bytes(2 * ALIGNED_BYTES))
    file.complete()
    assert (file.size, real_size(disk)) == (size, size)


def test_no_file_becomes_longer_than_kafka_can_open(disk: RealDisk) -> None:
    file = disk.open("file", create=True)
    file.may_end_in(TAIL_MARK)
    os.truncate(f"{disk.root}/file", (1 << 31) - ALIGNED_BYTES - len(PIECE) + 1)  # a hole, which takes no room
    file = disk.open("file")
    file.may_end_in(TAIL_MARK)
    file.append(PIECE)
    assert real_size(disk) == file.size < 1 << 31


def test_segments_that_are_complete_end_with_their_last_batch(disk: RealDisk) -> None:
    log = open_log(disk, "t-0", TopicConfig(segment_bytes=2 * LONG), now=NOW)
    batch = build_values([PIECE], timestamp=NOW.wall_ms)
    while len(log.segments) < 2 or log.segments[1].size < 1.5 * LONG:
        log.append(memoryview(bytearray(batch)), leader_epoch=0, now=NOW)
    first, active = log.segments
    assert real_size(disk, first.path(".log")) == first.size
    assert real_size(disk, active.path(".log")) > active.size
    log.prepare_to_close()
    assert real_size(disk, active.path(".log")) == active.size
    log.check()
    again = open_log(disk, "t-0", TopicConfig(segment_bytes=2 * LONG), now=NOW)
    again.append(memoryview(bytearray(batch)), leader_epoch=0, now=NOW)
    assert real_size(disk, active.path(".log")) % ALIGNED_BYTES == 0


def test_a_broker_that_is_killed_begins_where_it_ended_and_says_nothing_of_damage(tmp_path: Path) -> None:
    path = tmp_path / "orders-0" / f"{0:020d}.log"
    with BrokerProcess(tmp_path) as broker:
        with RawClient(broker.bootstrap) as client:
            create_topic(client, "orders")
            for _ in range(150):
                last = produced(client, "orders", values_batch(PIECE)).base_offset
        assert path.stat().st_size % ALIGNED_BYTES == 0
        broker.kill()
    with BrokerProcess(tmp_path) as broker, RawClient(broker.bootstrap) as client:
        assert "cut" not in broker.log_text()
        assert read_all(client, "orders") == [PIECE] * (last + 1)
        assert produced(client, "orders", values_batch(PIECE)).base_offset == last + 1
        assert broker.stop() == 0
    assert is_all_batches(path)


def is_all_batches(path: Path) -> bool:
    data = path.read_bytes()
    size = len(values_batch(PIECE))
    return len(data) % size == 0 and TAIL_MARK not in data
