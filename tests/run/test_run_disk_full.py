"""A disk without room: writes are refused with Kafka's error, everything else goes on, and nothing is lost."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from attacks.arena import create_topic, produced, read_all
from cordwood.errors import Error
from cordwood.wire.messages import (
    DeleteTopicsRequest,
    DeleteTopicsRequestTopic,
    DeleteTopicsResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from support.batches import PRODUCE_VERSION, produce, values_batch
from support.process import BrokerProcess
from support.raw import RawClient
from support.waiting import eventually

LARGE = b"x" * 300_000
FILE_BYTES_MAX = 1 << 20
KEEP = {"retention.ms": -1}
OFTEN = {"log.flush.offset.checkpoint.interval.ms": 50, "log.retention.check.interval.ms": 50}

# No file may grow beyond the limit: the write that would do it fails, as it does when there is no more room.
LIMITED = [
    sys.executable,
    "-c",
    "import os, resource, sys;"
    f"resource.setrlimit(resource.RLIMIT_FSIZE, ({FILE_BYTES_MAX}, {FILE_BYTES_MAX}));"
    "os.execv(sys.argv[1], sys.argv[1:])",
]


def test_a_write_without_room_is_a_storage_error_and_nothing_else(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, wrapper=LIMITED, settings=OFTEN) as broker, RawClient(broker.bootstrap) as client:
        for topic in ("full", "other"):
            assert create_topic(client, topic, KEEP).error_code == Error.NONE
        outcomes = [produced(client, "full", values_batch(LARGE)).error_code for _ in range(6)]
        assert outcomes == [Error.NONE] * 3 + [Error.KAFKA_STORAGE_ERROR] * 3
        small = produced(client, "full", values_batch(b"small"))
        assert (small.error_code, small.base_offset) == (Error.NONE, 3), "what fits is written, where it belongs"
        assert produced(client, "other", values_batch(b"other")).error_code == Error.NONE
        assert read_all(client, "full") == [LARGE] * 3 + [b"small"]
        assert broker.says("File too large")
        assert broker.stop() == 0
    with BrokerProcess(tmp_path) as broker, RawClient(broker.bootstrap) as client:
        assert read_all(client, "full") == [LARGE] * 3 + [b"small"]
        assert read_all(client, "other") == [b"other"]
        assert produced(client, "full", values_batch(LARGE)).base_offset == 4


def test_a_producer_that_wants_no_answer_is_cut_off(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, wrapper=LIMITED) as broker, RawClient(broker.bootstrap) as client:
        create_topic(client, "full", KEEP)
        for _ in range(4):
            client.send(produce("full", values_batch(LARGE), acks=0), version=PRODUCE_VERSION)
        assert client.closed()
        assert broker.says("acks=0 failed: KAFKA_STORAGE_ERROR")
        assert broker.stop() == 0


def test_what_was_acknowledged_before_the_disk_was_full_survives_a_kill(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, wrapper=LIMITED) as broker:
        with RawClient(broker.bootstrap) as client:
            create_topic(client, "full", {**KEEP, "flush.messages": 1})
            for _ in range(5):
                produced(client, "full", values_batch(LARGE))
        broker.kill()
    with BrokerProcess(tmp_path) as broker, RawClient(broker.bootstrap) as client:
        assert read_all(client, "full") == [LARGE] * 3


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of a few megabytes, where this process may mount one."""
    mount = shutil.which("mount")
    if mount is None or sys.platform != "linux":
        pytest.skip("no file system of a few megabytes to be had here")
    made = subprocess.run([mount, "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(tmp_path)], capture_output=True)
    if made.returncode:
        pytest.skip("no right to mount a file system")
    yield tmp_path
    subprocess.run(["umount", str(tmp_path)], check=True)


def test_a_start_on_a_full_disk_says_what_is_missing_and_loses_nothing(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    with BrokerProcess(small_disk / "data") as broker, RawClient(broker.bootstrap) as client:
        create_topic(client, "kept")
        assert produced(client, "kept", values_batch(b"kept")).error_code == Error.NONE
        broker.kill()
    _fill(ballast)
    fails = BrokerProcess(small_disk / "data")
    with pytest.raises(AssertionError, match=r"metadata.sqlite cannot be used: database or disk is full; make room"):
        fails.start()
    fails.end()
    ballast.unlink()
    with BrokerProcess(small_disk / "data") as broker, RawClient(broker.bootstrap) as client:
        assert read_all(client, "kept") == [b"kept"]


def test_a_full_disk_stops_nothing_but_writes(small_disk: Path) -> None:
    """Metadata, checkpoints and new topics need room as well: all of that fails, and works again when there is room."""
    ballast = small_disk / "ballast"
    settings = {**OFTEN, "log.retention.ms": -1}
    with BrokerProcess(small_disk / "data", settings=settings) as broker, RawClient(broker.bootstrap) as client:
        for topic in ("full", "kept"):
            assert create_topic(client, topic).error_code == Error.NONE
        assert produced(client, "kept", values_batch(b"kept")).error_code == Error.NONE
        kept = [b"kept"]

        def is_too_full_for_checkpoints() -> bool:
            """Without news there would be none to write; a few more records fit behind the first."""
            _fill(ballast)
            if produced(client, "kept", values_batch(b"kept")).error_code == Error.NONE:
                kept.append(b"kept")
            return "the checkpoints could not be written" in broker.log_text()

        eventually(is_too_full_for_checkpoints, what="a checkpoint that fails")
        _fill(ballast)  # a checkpoint that was under way has replaced its file, and so made room
        assert produced(client, "full", values_batch(LARGE)).error_code == Error.KAFKA_STORAGE_ERROR
        assert create_topic(client, "new").error_code != Error.NONE
        assert client.ask(InitProducerIdRequest(transaction_timeout_ms=1), InitProducerIdResponse).error_code != 0
        assert read_all(client, "kept") == kept
        ballast.unlink()
        assert produced(client, "full", values_batch(LARGE)).error_code == Error.NONE
        assert create_topic(client, "new").error_code == Error.NONE
        assert produced(client, "new", values_batch(b"new")).error_code == Error.NONE
        gone = DeleteTopicsRequest(topics=[DeleteTopicsRequestTopic(name="full")])
        assert client.ask(gone, DeleteTopicsResponse).responses[0].error_code == Error.NONE
        eventually(lambda: not list((small_disk / "data").glob("full-*")), what="the removal of the files")
        assert broker.stop() == 0
    with BrokerProcess(small_disk / "data") as broker, RawClient(broker.bootstrap) as client:
        assert read_all(client, "kept") == kept
        assert read_all(client, "new") == [b"new"]


def _fill(path: Path) -> None:
    with path.open("ab", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return
