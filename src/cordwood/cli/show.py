"""One record as one line of output."""

import json as json_format
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from confluent_kafka import Message


def _key(message: Message) -> bytes:
    return _raw(message.key())


def _topic(message: Message) -> bytes:
    return _raw(message.topic())


def _partition(message: Message) -> bytes:
    return str(message.partition()).encode()


def _offset(message: Message) -> bytes:
    return str(message.offset()).encode()


def _time(message: Message) -> bytes:
    return time_text(message.timestamp()[1]).encode()


def _headers(message: Message) -> bytes:
    return b",".join(name.encode() + b"=" + _raw(value) for name, value in _header_pairs(message))


COLUMNS: Mapping[str, Callable[[Message], bytes]] = {
    "topic": _topic,
    "partition": _partition,
    "offset": _offset,
    "time": _time,
    "headers": _headers,
    "key": _key,
}


class Show:
    """How records are printed: some columns and the value, or JSON."""

    def __init__(self, columns: Sequence[str], *, json: bool) -> None:
        self._columns = [COLUMNS[name] for name in columns]
        self._json = json

    def line(self, message: Message) -> bytes:
        if self._json:
            return _json_line(message)
        return b"\t".join([*(column(message) for column in self._columns), _raw(message.value())]) + b"\n"


def _raw(data: bytes | str | None) -> bytes:
    if data is None:
        return b"null"
    return data.encode() if isinstance(data, str) else data


def _header_pairs(message: Message) -> list[tuple[str, bytes | str | None]]:
    headers = message.headers() or []
    return list(headers.items()) if isinstance(headers, dict) else list(headers)


def time_text(timestamp_ms: int) -> str:
    """A record's time, to the millisecond, in UTC.

    >>> time_text(0)
    '1970-01-01T00:00:00.000Z'
    """
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):  # a producer may write any number
        return f"{timestamp_ms} ms"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _json_line(message: Message) -> bytes:
    record = {
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "time": time_text(message.timestamp()[1]),
        "headers": [[name, _json_text(value)] for name, value in _header_pairs(message)],
        "key": _json_text(message.key()),
        "value": _json_text(message.value()),
    }
    return json_format.dumps(record, ensure_ascii=False).encode() + b"\n"


def _json_text(data: bytes | str | None) -> object:
    """Text as text; anything else as base64, in an object of its own."""
    if data is None or isinstance(data, str):
        return data
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(data).decode()}
