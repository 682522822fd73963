"""The sink's options, read and checked: where rows go, and how."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Self, TypeVar

from cordwood.client.raw_settings import RawSettings
from cordwood.errors import ConfigError
from cordwood.record.batch import Codec

T = TypeVar("T")

PREFIX: Final = "kafka."

_ACKS: Final = {"all": -1, "-1": -1, "1": 1, "0": 1}
"""Nothing can be repeated that nobody answers for, so rows are always confirmed by one broker at least."""
_CODECS: Final = {codec.name.lower(): codec for codec in Codec}
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
    """None: as much as the topic takes."""
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
        level = _number(kafka, f"compression.{codec.name.lower()}.level", least=-(2**17))
        return cls(
            settings=_sink_settings(options, kafka),
            topic=given.get("topic"),
            acks=acks,
            codec=codec,
            level=level,
            idempotent=idempotence and acks == -1,
            row_bytes_max=_number(kafka, "max.request.size"),
            under_way=min(_number(kafka, "max.in.flight.requests.per.connection") or _UNDER_WAY_MAX, _UNDER_WAY_MAX),
        )


def raw_settings(options: Mapping[str, str]) -> RawSettings:
    """What the options with ``kafka.`` before their names say of the cluster."""
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


def _number(kafka: Mapping[str, str], name: str, *, least: int = 1) -> int | None:
    if name not in kafka:
        return None
    try:
        found = int(kafka[name])
    except ValueError:
        found = least - 1
    if not least <= found < 2**31:
        raise ConfigError(f"option {PREFIX}{name} is {kafka[name]!r}; write a whole number, at least {least}")
    return found
