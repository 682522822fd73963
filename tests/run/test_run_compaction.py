"""Compaction in a real process: in its thread beside the clients, cut off by signals, gone on with after a start."""

from contextlib import suppress
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from support.process import BrokerProcess
from support.waiting import eventually

KEYS = 50
COUNT = 6_000
CONFIG = {"cleanup.policy": "compact", "internal.segment.bytes": "20000", "min.cleanable.dirty.ratio": "0.01"}


def make_table(broker: BrokerProcess, **config: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    settings = CONFIG | {name.replace("_", "."): value for name, value in config.items()}
    [made] = admin.create_topics([NewTopic("table", 1, 1, config=settings)]).values()
    made.result(10)


def fill(broker: BrokerProcess, word: str, count: int = COUNT) -> dict[bytes, bytes]:
    """Write every key many times; what each was last."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "compression.type": "lz4", "batch.size": 4_000})
    written = {}
    for number in range(count):
        key, value = b"key-%d" % (number % KEYS), f"{word}-{number}".encode() * 3
        producer.produce("table", value, key)
        producer.poll(0)
        written[key] = value
    assert producer.flush(20) == 0
    return written


def read(broker: BrokerProcess) -> list[tuple[int, bytes, bytes]]:
    """Everything from start to end."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "none", "enable.partition.eof": True})
    consumer.assign([TopicPartition("table", 0, 0)])
    found: list[tuple[int, bytes, bytes]] = []
    while True:
        message = consumer.poll(10)
        assert message is not None
        if message.error() is not None:
            break
        offset, key, value = message.offset(), message.key(), message.value()
        assert offset is not None
        assert isinstance(key, bytes)
        assert isinstance(value, bytes)
        found.append((offset, key, value))
    consumer.close()
    return found


def size(data: Path) -> int:
    """Of all segments. One that compaction takes away meanwhile has none."""
    total = 0
    for path in (data / "table-0").glob("*.log"):
        with suppress(FileNotFoundError):
            total += path.stat().st_size
    return total


def is_compacted(data: Path) -> bool:
    checkpoint = data / "cleaner-offset-checkpoint"
    return checkpoint.exists() and "table 0 " in checkpoint.read_text()


def test_a_table_shrinks_while_clients_write_and_is_whole_after_a_kill(tmp_path: Path) -> None:
    settings = {"log.cleaner.backoff.ms": 50}
    with BrokerProcess(tmp_path, settings=settings) as broker:
        make_table(broker)
        fill(broker, "first")
        eventually(lambda: is_compacted(tmp_path), within_s=30, what="compaction")
        written = fill(broker, "second")
        offsets = [offset for offset, _, _ in read(broker)]
        assert offsets == sorted(set(offsets))
        assert len(offsets) < 2 * COUNT
        broker.kill()
    with BrokerProcess(tmp_path, settings=settings) as broker:
        assert {key: value for _, key, value in read(broker)} == written
        written |= fill(broker, "third", COUNT // 2)
        eventually(lambda: size(tmp_path) < 50_000, within_s=30, what="compaction")
        assert {key: value for _, key, value in read(broker)} == written
        assert broker.stop() == 0
        assert "Traceback" not in broker.log_text()
    with BrokerProcess(tmp_path, settings=settings) as broker:
        assert {key: value for _, key, value in read(broker)} == written


def test_a_stop_does_not_wait_for_a_compaction_that_may_take_hours(tmp_path: Path) -> None:
    with BrokerProcess(
        tmp_path, settings={"log.cleaner.backoff.ms": 50, "log.cleaner.io.max.bytes.per.second": 10}
    ) as broker:
        make_table(broker)
        written = fill(broker, "only")
        count = len(read(broker))
        assert broker.stop() == 0
        assert broker.log == []
    with BrokerProcess(tmp_path, settings={"log.cleaner.enable": "false"}) as broker:
        found = read(broker)
        assert len(found) == count == COUNT
        assert {key: value for _, key, value in found} == written
        assert not list((tmp_path / "table-0").glob("*.cleaned"))
