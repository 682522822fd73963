"""What the codec's hot paths cost, beside kio and kafka-python, in one run: ``python benchmarks/micro_wire.py``.

Microseconds per message, the best of several rounds that alternate between the codecs. kio reads only bytes that were
made here, because it aborts the process on hostile ones.
"""

import io
import warnings
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any
from uuid import UUID

from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

from cordwood.wire import decoder, encode, encoder
from cordwood.wire.client_frame import request_frame
from cordwood.wire.frame import read_request, read_request_head, response_frame
from cordwood.wire.messages import (
    FetchRequest,
    FetchRequestPartition,
    FetchRequestTopic,
    FetchResponse,
    FetchResponsePartition,
    FetchResponseTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
    ProduceRequest,
    ProduceRequestPartition,
    ProduceRequestTopic,
    ProduceResponse,
    ProduceResponsePartition,
    ProduceResponseTopic,
)
from cordwood.wire.types import spec_of

with warnings.catch_warnings():  # it reads its schemas with a deprecated function
    warnings.simplefilter("ignore")
    from kafka.protocol.consumer import fetch
    from kafka.protocol.metadata import metadata
    from kafka.protocol.producer import produce

Call = Callable[[], object]

CALLS = 2_000
ROUNDS = 5
TOPIC_ID = UUID(int=2**127 + 1)
KAFKA_PYTHON = {
    name: getattr(module, name)
    for module in (fetch, metadata, produce)
    for name in ("ProduceRequest", "ProduceResponse", "FetchRequest", "FetchResponse", "MetadataResponse")
    if hasattr(module, name)
}


def produce_request(partitions: int) -> ProduceRequest:
    parts = [ProduceRequestPartition(index=index, records=bytes(8000)) for index in range(partitions)]
    topic = ProduceRequestTopic(name="events", topic_id=TOPIC_ID, partition_data=parts)
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])


def produce_response(partitions: int) -> ProduceResponse:
    parts = [
        ProduceResponsePartition(index=index, base_offset=10_000, log_start_offset=0) for index in range(partitions)
    ]
    return ProduceResponse(
        responses=[ProduceResponseTopic(name="events", topic_id=TOPIC_ID, partition_responses=parts)]
    )


def fetch_request(partitions: int) -> FetchRequest:
    parts = [
        FetchRequestPartition(partition=index, fetch_offset=10_000, partition_max_bytes=1 << 20)
        for index in range(partitions)
    ]
    topic = FetchRequestTopic(topic="events", topic_id=TOPIC_ID, partitions=parts)
    return FetchRequest(max_wait_ms=500, min_bytes=1, topics=[topic])


def fetch_response(partitions: int) -> FetchResponse:
    parts = [
        FetchResponsePartition(partition_index=index, high_watermark=9, records=bytes(1000), aborted_transactions=None)
        for index in range(partitions)
    ]
    return FetchResponse(responses=[FetchResponseTopic(topic="events", topic_id=TOPIC_ID, partitions=parts)])


def metadata_response(topics: int) -> MetadataResponse:
    parts = [
        MetadataResponsePartition(partition_index=index, leader_id=1, replica_nodes=[1, 2, 3], isr_nodes=[1, 2, 3])
        for index in range(6)
    ]
    brokers = [MetadataResponseBroker(node_id=node, host="localhost", port=9092) for node in (1, 2, 3)]
    found = [MetadataResponseTopic(name=f"t{index}", topic_id=TOPIC_ID, partitions=parts) for index in range(topics)]
    return MetadataResponse(brokers=brokers, cluster_id="cluster", controller_id=1, topics=found)


CASES: list[tuple[str, object, int]] = [
    ("Produce, 1 partition", produce_request(1), 9),
    ("Produce, 1 partition", produce_request(1), 12),
    ("Produce, 10 partitions", produce_request(10), 12),
    ("Produce answer, 1 partition", produce_response(1), 9),
    ("Produce answer, 1 partition", produce_response(1), 12),
    ("Fetch, 6 partitions", fetch_request(6), 12),
    ("Fetch, 6 partitions", fetch_request(6), 17),
    ("Fetch answer, 6 partitions", fetch_response(6), 12),
    ("Fetch answer, 6 partitions", fetch_response(6), 17),
    ("Metadata answer, 18 partitions", metadata_response(3), 8),
    ("Metadata answer, 18 partitions", metadata_response(3), 12),
]


def kio_calls(message: object, version: int) -> tuple[Call, Call]:
    """(decode, encode) by kio."""
    key = spec_of(type(message)).key
    assert key is not None
    load = load_request_schema if type(message).__name__.endswith("Request") else load_response_schema
    cls: type[Any] = load(key, version)
    data, read, write = encode(message, version), entity_reader(cls), entity_writer(cls)
    entity, _ = read(data, 0)

    def write_it() -> bytes:
        with io.BytesIO() as out:
            write(out, entity)
            return out.getvalue()

    assert write_it() == data
    return lambda: read(data, 0), write_it


def kafka_python_calls(message: object, version: int) -> tuple[Call, Call]:
    """(decode, encode) by kafka-python."""
    cls, data = KAFKA_PYTHON[type(message).__name__], encode(message, version)
    found = cls.decode(data, version=version)
    found._header = None  # its decoder does not set this, but its encoder needs it
    assert bytes(found.encode(version=version)) == data
    return lambda: cls.decode(data, version=version), lambda: found.encode(version=version)


def our_calls(message: object, version: int) -> tuple[Call, Call]:
    """(decode, encode) by the generated functions."""
    view = memoryview(encode(message, version))
    read, write = decoder(type(message), version), encoder(type(message), version)
    return lambda: read(view, 0), lambda: write(message)


def best_us(calls: list[Call]) -> list[float]:
    """The best round of each, measured in turns, so that noise affects all of them alike."""
    rounds = [[one_round(call) for call in calls] for _ in range(ROUNDS)]
    return [min(times) for times in zip(*rounds, strict=True)]


def one_round(call: Call) -> float:
    start = perf_counter_ns()
    for _ in range(CALLS):
        call()
    return (perf_counter_ns() - start) / CALLS / 1000


def frames_us() -> None:
    """Whole frames, as a broker reads and writes them."""
    chunks = request_frame(correlation_id=1, api_version=12, message=produce_request(1), client_id="producer-1")
    frame = memoryview(b"".join(chunks))[4:]  # type: ignore[arg-type]
    answer = produce_response(1)
    head, whole, written = best_us(
        [
            lambda: read_request_head(frame),
            lambda: read_request(read_request_head(frame), frame),
            lambda: response_frame(correlation_id=1, api_key=0, api_version=12, message=answer),
        ]
    )
    print(f"\nProduce v12 as a frame: header {head:.2f}, header and body {whole:.2f}, answer {written:.2f}")


def main() -> None:
    print(f"{'microseconds':<34}{'decode':>8}{'kio':>8}{'k-py':>8}   {'encode':>8}{'kio':>8}{'k-py':>8}")
    for label, message, version in CASES:
        makers = (our_calls, kio_calls, kafka_python_calls)
        decodes, encodes = zip(*(make(message, version) for make in makers), strict=True)
        read, written = best_us(list(decodes)), best_us(list(encodes))
        cells = "".join(f"{us:8.2f}" for us in read) + "   " + "".join(f"{us:8.2f}" for us in written)
        print(f"{label + f' v{version}':<34}{cells}")
    frames_us()


if __name__ == "__main__":
    main()
