"""Requests from a seed: of every API and version that is served, with values that nobody expects.

Every field of every request is drawn by its declared type: extremes, names that exist and names that cannot, nothing
where nothing is allowed, the same thing twice. Such frames can also be damaged as bytes.
"""

from random import Random
from uuid import UUID

from cordwood.broker.handlers import HANDLERS
from cordwood.config import BROKER_SETTINGS, TOPIC_SETTINGS
from cordwood.record.batch import Codec
from cordwood.record.build import Record, build
from cordwood.wire.registry import APIS
from cordwood.wire.types import BYTES, RECORDS, STRING, UUID_BYTES, FieldSpec, MessageSpec, Scalar, spec_of
from support.batches import altered, one_record, values_batch
from support.raw import encoded, framed

TOPICS = ["fuzz", "fuzz-compacted", "fuzz-gzip", "fuzz-synced"]
CONFIGS: dict[str, dict[str, object]] = {
    "fuzz": {},
    "fuzz-compacted": {"cleanup.policy": "compact"},
    "fuzz-gzip": {"compression.type": "gzip", "message.timestamp.type": "LogAppendTime"},
    "fuzz-synced": {"flush.messages": 1, "segment.index.bytes": 4},
}

_BITS = {"b": 8, "h": 16, "i": 32, "q": 64}
_UNSIGNED_BITS = {"H": 16, "I": 32}
# They would lock the tests out, not the attackers.
_UNTOUCHED = {"max.connections", "max.connections.per.ip", "max.connection.creation.rate"}
_SETTINGS = sorted({*TOPIC_SETTINGS, *BROKER_SETTINGS} - _UNTOUCHED - {"max.connections.per.ip.overrides"})
_WORDS = ["", "1", "0", "-1", "true", "x", "compact", "delete", "gzip", "zstd", "LogAppendTime", "1e400", "9" * 30]
_NAMES = [
    "",
    ".",
    "..",
    "a/b",
    "no-such-topic",
    "__consumer_offsets",
    "x" * 249,
    "x" * 250,
    "y" * 32767,
    "\0",
    "\n",
    "ü",
]
_SHORT_WAITS_MS = [-1, 0, 1, 5]


class Generator:
    """An endless supply of frames. The topics' ids become known while the broker answers."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self.topic_ids: list[UUID] = []

    def frame(self, *, damaged: bool = False) -> tuple[str, bytes]:
        """What it is, for whoever has to find out which one did it, and its bytes."""
        api = APIS[self._random.choice(sorted(HANDLERS))]
        version = self._random.choice(api.versions)
        request = self._struct(spec_of(api.request), version)
        client_id = self._random.choice([None, "", "fuzz", "\n", "c" * 300])
        frame = encoded(request, version=version, correlation_id=self._number(32), client_id=client_id)
        if damaged:
            frame = self._damaged(frame)
        return f"{api.name} v{version} {request!r:.2000}", frame

    def _struct(self, spec: MessageSpec, version: int) -> object:
        return spec.cls(**{field.name: self._field(field, version) for field in spec.present(version)})

    def _field(self, field: FieldSpec, version: int) -> object:
        if version in field.null and self._random.random() < 0.15:
            return None
        if field.tag is not None and self._random.random() < 0.5:
            return field.fresh_default()
        if not field.array:
            return self._value(field, version)
        values = [self._value(field, version) for _ in range(self._random.choice([0, 1, 1, 1, 2, 3]))]
        if values and self._random.random() < 0.2:
            values.append(values[0])
        return values

    def _value(self, field: FieldSpec, version: int) -> object:
        kind = field.type
        if isinstance(kind, MessageSpec):
            return self._struct(kind, version)
        if "wait_ms" in field.name:
            return self._random.choice(_SHORT_WAITS_MS)
        if kind is STRING:
            return self._text(field.name)
        if kind is RECORDS:
            return self._records()
        if kind is BYTES:
            return self._random.randbytes(self._random.choice([0, 1, 100]))
        if kind is UUID_BYTES:
            return self._random.choice([UUID(int=0), UUID(int=1), UUID(int=2**128 - 1), *self.topic_ids])
        return self._scalar(kind, field.name)

    def _scalar(self, kind: Scalar, name: str) -> object:
        if kind.code == "?":
            return self._random.random() < 0.5
        if kind.code == "d":
            return self._random.choice([0.0, -1.0, 1e308, float("inf"), float("nan")])
        if name == "acks":  # a failure without an answer closes the connection
            return self._random.choice([1, 1, 1, 1, -1, -1, -1, 0, 2])
        if "resource_type" in name:
            return self._random.choice([2, 4, 2, 4, 0, 8, 16, 32, -1, 127])
        if kind.code in _UNSIGNED_BITS:
            return self._random.choice([0, 1, (1 << _UNSIGNED_BITS[kind.code]) - 1])
        return self._number(_BITS[kind.code])

    def _number(self, bits: int) -> int:
        small = [-1, 0, 0, 0, 1, 2]
        extreme = [-(1 << bits - 1), (1 << bits - 1) - 1, -2, -3, -4, -5, -6, -7, 1 << bits - 2]
        return self._random.choice(small if self._random.random() < 0.7 else extreme)

    def _text(self, name: str) -> str:
        likely = TOPICS if "value" not in name and "config" not in name else _SETTINGS
        pool = self._random.choice([likely, likely, TOPICS, _NAMES, _WORDS, _SETTINGS, ["", "1"]])
        return self._random.choice(pool)

    def _records(self) -> bytes | None:
        random = self._random
        codec = random.choice(list(Codec))
        keys = [None, b"", b"k"]
        count = random.choice([1, 1, 2, 5])
        made = [Record(n, random.choice([0, -1, 10**12]), random.choice(keys), b"v" * n) for n in range(count)]
        batch = bytes(build(made, codec=codec))
        match random.randrange(6):
            case 0:
                return batch
            case 1:
                fields = dict.fromkeys(["producer_id", "producer_epoch", "base_sequence"], random.choice([0, 1]))
                return altered(batch, **fields)
            case 2:
                bits = {"attributes": 16, "last_offset_delta": 32, "base_timestamp": 64, "max_timestamp": 64}
                bits |= {"producer_id": 64, "producer_epoch": 16, "base_sequence": 32, "record_count": 32}
                name = random.choice(sorted(bits))
                return altered(batch, **{name: self._number(bits[name])})
            case 3:
                return altered(values_batch(b"v"), random.randbytes(random.randrange(100)), attributes=codec)
            case 4:
                return one_record(timestamp_delta=self._number(64), offset_delta=self._number(64))
            case _:
                return random.choice([b"", random.randbytes(100), batch + batch, batch[:-1], None])

    def _damaged(self, frame: bytes) -> bytes:
        """Other bytes, fewer or more of them, mostly with a length that fits."""
        random = self._random
        body = bytearray(frame[4:])
        for _ in range(random.choice([1, 1, 2, 5])):
            position = random.randrange(len(body))
            match random.randrange(5):
                case 0:
                    body[position] = random.choice([0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)])
                case 1:
                    del body[position:]
                case 2:
                    body[position:position] = random.randbytes(random.choice([1, 2, 4, 8]))
                case 3:
                    body[position : position + 4] = random.choice([b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", bytes(4)])
                case _:
                    del body[position : position + random.choice([1, 2, 4])]
            if not body:
                return framed(b"\0")
        if random.random() < 0.03:
            return random.randbytes(4) + bytes(body)
        return framed(bytes(body))
