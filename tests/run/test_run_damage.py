"""Files that somebody else changes, or that the disk spoils: one partition suffers, nothing else does."""

import shutil
from pathlib import Path

import pytest

from attacks.arena import create_topic, fetch_request, produced, read_all
from cordwood.errors import Error
from cordwood.wire.messages import (
    DeleteRecordsRequest,
    DeleteRecordsRequestPartition,
    DeleteRecordsRequestTopic,
    DeleteTopicsRequest,
    DeleteTopicsRequestTopic,
    DeleteTopicsResponse,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsRequestPartition,
    ListOffsetsRequestTopic,
    ListOffsetsResponse,
)
from support.batches import FETCH_VERSION, PRODUCE_VERSION, produce, values_batch
from support.process import BrokerProcess
from support.raw import ClosedByBroker, RawClient

BATCHES = 1000  # more than the broker remembers the places of
SETTINGS = {"log.retention.ms": -1, "log.retention.check.interval.ms": 50, "log.index.interval.bytes": 500}


def fill(data: Path) -> None:
    with BrokerProcess(data, settings=SETTINGS) as broker, RawClient(broker.bootstrap) as client:
        for topic in ("spoiled", "sound"):
            create_topic(client, topic)
        for number in range(BATCHES):
            client.send(produce("spoiled", values_batch(b"x" * 100, timestamp=number)), version=PRODUCE_VERSION)
        for _ in range(BATCHES):
            client.receive_frame()
        assert produced(client, "sound", values_batch(b"sound")).error_code == Error.NONE
        assert broker.stop() == 0


def check(broker: BrokerProcess) -> None:
    """Everything that looks into the spoiled log is tried: each gets an answer or a closed connection, nobody else."""
    requests: list[tuple[object, type, int]] = [
        (fetch_request("spoiled", offset), FetchResponse, FETCH_VERSION) for offset in (0, 1, 400, 500, 999, 1000)
    ]
    for timestamp in (0, 1, 400, 500, 999, -1, -2, -3):
        wanted = ListOffsetsRequestPartition(partition_index=0, timestamp=timestamp)
        topics = [ListOffsetsRequestTopic(name="spoiled", partitions=[wanted])]
        requests.append((ListOffsetsRequest(topics=topics), ListOffsetsResponse, 7))
    deletion = DeleteRecordsRequestTopic(name="spoiled", partitions=[DeleteRecordsRequestPartition(offset=3)])
    for request, answer, version in requests:
        with RawClient(broker.bootstrap) as client:
            try:
                client.ask(request, answer, version=version)
            except ClosedByBroker:
                assert broker.running
    with RawClient(broker.bootstrap) as client:
        client.send(DeleteRecordsRequest(topics=[deletion]))
        client.receive_frame()
        produced(client, "spoiled", values_batch(b"more"))
        assert read_all(client, "sound") == [b"sound"]
        gone = DeleteTopicsRequest(topics=[DeleteTopicsRequestTopic(name="spoiled")])
        assert client.ask(gone, DeleteTopicsResponse).responses[0].error_code == Error.NONE
        assert create_topic(client, "spoiled").error_code == Error.NONE
        assert produced(client, "spoiled", values_batch(b"anew")).base_offset == 0
    assert "CRITICAL" not in broker.log_text()


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("filled")
    fill(data)
    return data


@pytest.fixture
def spoiled(filled: Path, tmp_path: Path) -> Path:
    """A copy of a data directory that was cleanly stopped, for a test to spoil."""
    data = tmp_path / "data"
    shutil.copytree(filled, data)
    return data


@pytest.mark.parametrize("start", [0, 12, 16, 30_000, 80_000])
@pytest.mark.parametrize("garbage", [bytes(2000), b"\xff" * 2000], ids=["zeros", "ones"])
def test_garbage_in_a_log_that_was_cleanly_stopped(spoiled: Path, start: int, garbage: bytes) -> None:
    log = spoiled / "spoiled-0" / "00000000000000000000.log"
    data = bytearray(log.read_bytes())
    data[start : start + len(garbage)] = garbage
    log.write_bytes(data)
    with BrokerProcess(spoiled, settings=SETTINGS) as broker:
        check(broker)
        assert broker.stop() == 0


@pytest.mark.parametrize("suffix", ["index", "timeindex", "snapshot"])
@pytest.mark.parametrize("garbage", [b"", b"x", bytes(800), b"\xff" * 800], ids=["empty", "odd", "zeros", "ones"])
def test_garbage_in_a_file_that_can_be_made_anew(spoiled: Path, suffix: str, garbage: bytes) -> None:
    for file in (spoiled / "spoiled-0").glob(f"*.{suffix}"):
        file.write_bytes(garbage)
    with BrokerProcess(spoiled, settings=SETTINGS) as broker:
        with RawClient(broker.bootstrap) as client:
            assert read_all(client, "spoiled") == [b"x" * 100] * BATCHES
        check(broker)
        assert broker.stop() == 0


@pytest.mark.parametrize("name", ["leader-epoch-checkpoint", "partition.metadata"])
def test_garbage_in_the_files_beside_the_log(spoiled: Path, name: str) -> None:
    (spoiled / "spoiled-0" / name).write_bytes(b"\xff\x00garbage")
    with BrokerProcess(spoiled, settings=SETTINGS) as broker:
        with RawClient(broker.bootstrap) as client:
            assert read_all(client, "spoiled") == [b"x" * 100] * BATCHES
        check(broker)


@pytest.mark.parametrize(
    "name", ["recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "replication-offset-checkpoint"]
)
def test_garbage_in_the_checkpoints(spoiled: Path, name: str) -> None:
    (spoiled / name).write_bytes(b"\xff\x00garbage")
    with BrokerProcess(spoiled, settings=SETTINGS) as broker:
        with RawClient(broker.bootstrap) as client:
            assert read_all(client, "spoiled") == [b"x" * 100] * BATCHES
        check(broker)


@pytest.mark.parametrize("size", [0, 30, 50_000])
def test_a_log_cut_off_under_a_running_broker(spoiled: Path, size: int) -> None:
    with BrokerProcess(spoiled, settings=SETTINGS) as broker:
        with RawClient(broker.bootstrap) as client:
            read_all(client, "spoiled")
        log = spoiled / "spoiled-0" / "00000000000000000000.log"
        with log.open("r+b") as file:
            file.truncate(size)
        check(broker)


def test_a_log_removed_under_a_running_broker(spoiled: Path) -> None:
    with BrokerProcess(spoiled, settings=SETTINGS) as broker:
        shutil.rmtree(spoiled / "spoiled-0")
        with RawClient(broker.bootstrap) as client:
            assert read_all(client, "sound") == [b"sound"]
            produced(client, "spoiled", values_batch(b"more"))
            gone = DeleteTopicsRequest(topics=[DeleteTopicsRequestTopic(name="spoiled")])
            assert client.ask(gone, DeleteTopicsResponse).responses[0].error_code == Error.NONE
        assert "CRITICAL" not in broker.log_text()


def test_a_name_that_is_taken_in_the_data_directory(tmp_path: Path) -> None:
    """A topic whose directory cannot be made is in the metadata, and not served. Others are."""
    with BrokerProcess(tmp_path, settings=SETTINGS) as broker, RawClient(broker.bootstrap) as client:
        (tmp_path / "taken-0").write_text("a file where a directory should be")
        create_topic(client, "taken")
        assert produced(client, "taken", values_batch(b"x")).error_code != Error.NONE
        assert broker.says("taken-0 has no log")
        create_topic(client, "free")
        assert produced(client, "free", values_batch(b"x")).error_code == Error.NONE
        gone = DeleteTopicsRequest(topics=[DeleteTopicsRequestTopic(name="taken")])
        assert client.ask(gone, DeleteTopicsResponse).responses[0].error_code == Error.NONE
        assert broker.stop() == 0
    with BrokerProcess(tmp_path, settings=SETTINGS) as broker, RawClient(broker.bootstrap) as client:
        assert read_all(client, "free") == [b"x"]
