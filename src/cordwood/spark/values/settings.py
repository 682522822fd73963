"""The options of typed values: their names, their possible values, and which belong together."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final, Self

from cordwood.errors import ConfigError

VALUE_FORMATS: Final = ("raw", "string", "json", "avro", "protobuf")
KEY_FORMATS: Final = ("raw", "string")
SAMPLE_RECORDS: Final = 1000

OPTIONS: Final[Mapping[str, str]] = {
    "valueFormat": "what values are: raw (bytes, as they are), string, json, avro or protobuf",
    "keyFormat": "what keys are: raw or string",
    "valueSchema": "json: Spark's types, such as 'id BIGINT, name STRING'; avro: the schema, or a file that has it",
    "descriptorFile": "protobuf: a file made by protoc --include_imports --descriptor_set_out",
    "messageName": "protobuf: the full name of the message",
    "schema.registry.url": "values begin with a schema's number, to be looked up at this address",
    "schema.registry.subject": "avro: whose newest schema the columns follow; without it, that of the topic",
    "schema.registry.basic.auth.user.info": "user:password for the registry",
    "sampleRecords": "json without valueSchema: how many records at the topics' beginning the types are taken from; of "
    "the objects among them, if most are objects",
    "timeZone": "json: the zone of a TIMESTAMP that is written without one, such as Europe/Berlin or +01:00; else UTC, "
    "whatever the session's is. A TIMESTAMP of another zone than UTC makes reading slower",
    "deadLetterTopic": "where records go that cannot be decoded; without it they stay, with a reason in _error",
}


class NoTypesYet(ConfigError):
    """The type of a topic's values is not known: it has no record, or no schema, to take it from."""


@dataclass(frozen=True, slots=True)
class ValueSettings:
    """What was asked for."""

    value_format: str = "raw"
    key_format: str = "raw"
    schema: str | None = None
    descriptor_file: str | None = None
    message_name: str | None = None
    registry_url: str | None = None
    registry_subject: str | None = None
    registry_user: str | None = field(default=None, repr=False)
    sample_records: int = SAMPLE_RECORDS
    dead_letter_topic: str | None = None
    time_zone: str | None = None

    def __post_init__(self) -> None:
        _choose("valueFormat", self.value_format, VALUE_FORMATS)
        _choose("keyFormat", self.key_format, KEY_FORMATS)
        if self.value_format == "protobuf" and not (self.descriptor_file and self.message_name):
            raise ConfigError(
                "valueFormat=protobuf needs descriptorFile (made by protoc --include_imports --descriptor_set_out) and "
                "messageName (the message's full name)"
            )
        if self.value_format == "avro" and not (self.schema or self.registry_url):
            raise ConfigError("valueFormat=avro needs valueSchema (the schema, or its file) or schema.registry.url")
        if self.schema is not None and self.value_format not in ("json", "avro"):
            raise ConfigError(f"valueSchema is for the formats json and avro; valueFormat is {self.value_format}")
        if self.time_zone is not None and self.value_format != "json":
            raise ConfigError(f"timeZone is for the format json; valueFormat is {self.value_format}")
        if self.dead_letter_topic is not None and not self.can_fail:
            raise ConfigError("deadLetterTopic needs a valueFormat that can fail: string, json, avro or protobuf")
        if self.dead_letter_topic == "":
            raise ConfigError("deadLetterTopic is empty; write a topic's name, or leave it out")
        if self.sample_records < 1:
            raise ConfigError(f"sampleRecords is {self.sample_records}; take at least 1")

    @property
    def can_fail(self) -> bool:
        return self.value_format != "raw" or self.key_format != "raw"

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Self:
        """From the options of a source, whose names' case does not matter. Options of other parts are ignored."""
        given = {name.lower(): value for name, value in options.items()}

        def option(name: str) -> str | None:
            return given.get(name.lower())

        letters = option("deadLetterTopic")
        return cls(
            value_format=(option("valueFormat") or "raw").lower(),
            key_format=(option("keyFormat") or "raw").lower(),
            schema=option("valueSchema"),
            descriptor_file=option("descriptorFile"),
            message_name=option("messageName"),
            registry_url=option("schema.registry.url"),
            registry_subject=option("schema.registry.subject"),
            registry_user=option("schema.registry.basic.auth.user.info"),
            sample_records=_number("sampleRecords", option("sampleRecords"), SAMPLE_RECORDS),
            dead_letter_topic=None if letters is None else letters.strip(),
            time_zone=option("timeZone"),
        )


def _choose(option: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        near = get_close_matches(value, known, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ConfigError(f"{option} is {value!r}; choose one of {', '.join(known)}{hint}")


def _number(option: str, text: str | None, default: int) -> int:
    if text is None:
        return default
    try:
        return int(text)
    except ValueError:
        raise ConfigError(f"{option} is {text!r}; write a whole number") from None
