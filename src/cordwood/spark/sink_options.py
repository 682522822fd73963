"""The sink's options, read and checked: where rows go, and how."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Self, TypeVar

from cordwood.client.raw_settings import RawSettings
from cordwood.errors import ConfigError
from cordwood.record.batch import Codec

T = TypeVar("T")

PREFIX: Final = "kafka."

_ACKS: Final = {"all": -1, "-1": -1, "1": 1, "0": 1}
"""What no broker confirms cannot be retried, so rows are always confirmed by at least one broker."""
_CODECS: Final = {codec.name.lower(): codec for codec in Codec}
_LEVELS: Final = {Codec.GZIP: range(1, 10), Codec.LZ4: range(1, 18), Codec.ZSTD: range(-(2**17), 23)}
"""Those of Kafka's producer. For gzip there is also -1, the library's own choice."""
_UNDER_WAY_MAX: Final = 4
_DELIVERY_TIMEOUT_MS: Final = 120_000


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """What a query wants to write, and how."""

    settings: RawSettings
    topic: str | None = None
    acks: int = -1
    codec: Codec = Codec.NONE
    level: int | None = None
    idempotent: bool = True
    """Batches carry sequence numbers, so that a batch that is sent twice is stored once."""
    row_bytes_max: int | None = None
    """None: as much as the topic allows."""
    batch_bytes_max: int | None = None
    """Assumed for a topic's ``max.message.bytes`` if it cannot be looked up. None: the broker will say."""
    under_way: int = _UNDER_WAY_MAX

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Self:
        """
        Raises:
            ConfigError: the text names the option and says what would be right.
        """
        given = {name.lower(): value.strip() for name, value in options.items()}
        kafka = {name.removeprefix(PREFIX): value for name, value in given.items() if name.startswith(PREFIX)}
        if given.get("topic") == "":
            raise ConfigError("option topic is empty; write a topic's name, or leave it out and give a column topic")
        codec = _choice(kafka, "compression.type", _CODECS, "none")
        acks = _choice(kafka, "acks", _ACKS, "all")
        idempotence = _choice(kafka, "enable.idempotence", {"true": True, "false": False}, "true")
        if acks != -1 and idempotence and "enable.idempotence" in kafka:
            raise ConfigError(
                "option kafka.enable.idempotence needs kafka.acks=all: a new leader must know of all rows"
            )
        levels = {codec: _level(kafka, codec) for codec in _LEVELS}
        return cls(
            settings=_sink_settings(options, kafka),
            topic=given.get("topic"),
            acks=acks,
            codec=codec,
            level=levels.get(codec),
            idempotent=idempotence and acks == -1,
            row_bytes_max=_number(kafka, "max.request.size"),
            under_way=min(_number(kafka, "max.in.flight.requests.per.connection") or _UNDER_WAY_MAX, _UNDER_WAY_MAX),
        )


def raw_settings(options: Mapping[str, str]) -> RawSettings:
    """What the options whose names begin with ``kafka.`` say about the cluster."""
    given = {name.lower(): value.strip() for name, value in options.items()}
    kafka = {name.removeprefix(PREFIX): value for name, value in given.items() if name.startswith(PREFIX)}
    try:
        return RawSettings.of_properties({"client.id": "cordwood-spark", **kafka})
    except ConfigError as error:
        raise ConfigError(f"option {PREFIX}{error}") from None


def _sink_settings(options: Mapping[str, str], kafka: Mapping[str, str]) -> RawSettings:
    settings = raw_settings(options)
    return replace(settings, timeout_ms=_number(kafka, "delivery.timeout.ms") or _DELIVERY_TIMEOUT_MS)


def _choice(kafka: Mapping[str, str], name: str, choices: Mapping[str, T], default: str) -> T:
    text = kafka.get(name, default).lower()
    if text not in choices:
        raise ConfigError(f"option {PREFIX}{name} is {kafka[name]!r}; write {' or '.join(choices)}")
    return choices[text]


def _level(kafka: Mapping[str, str], codec: Codec) -> int | None:
    """How hard to compress; checked for every codec, whichever is used. None: the codec's own default."""
    name, allowed = f"compression.{codec.name.lower()}.level", _LEVELS[codec]
    text = kafka.get(name)
    if text is None or (codec is Codec.GZIP and text == "-1"):
        return None
    if not re.fullmatch(r"[+-]?[0-9]{1,9}", text) or int(text) not in allowed:
        default = "-1 or " if codec is Codec.GZIP else ""
        raise ConfigError(f"option {PREFIX}{name} is {text!r}; write {default}{allowed.start} to {allowed.stop - 1}")
    return int(text)


def _number(kafka: Mapping[str, str], name: str) -> int | None:
    if name not in kafka:
        return None
    try:
        found = int(kafka[name])
    except ValueError:
        found = 0
    if not 1 <= found < 2**31:
        raise ConfigError(f"option {PREFIX}{name} is {kafka[name]!r}; write a whole number, at least 1")
    return found
