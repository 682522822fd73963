"""The densest requests: as many entries as a frame can hold, in every array of every API that is served.

A name of one letter takes two bytes of a frame, and a hundred times that once it is an object with an answer of its
own. So there is a limit on what one request may hold, beside the one on its bytes.
"""

from collections.abc import Iterator

import pytest

from attacks.arena import REQUEST_BYTES_MAX, create_topic
from cordwood.broker.handlers import HANDLERS
from cordwood.wire.messages import ApiVersionsRequest
from cordwood.wire.registry import APIS
from cordwood.wire.runtime import ENTRIES_MAX, uvarint
from cordwood.wire.types import FieldSpec, MessageSpec, Scalar, spec_of
from support.process import BrokerProcess
from support.raw import RawClient, encoded, framed, newest

API_VERSIONS = ApiVersionsRequest(client_software_name="raw", client_software_version="1")
PRODUCE = 0
TOPIC = "d"  # it exists: an entry that names it costs more than one that names nothing


def _filled(spec: MessageSpec, version: int, **values: object) -> object:
    """A struct whose names are the topic's."""
    names = {
        field.name: TOPIC
        for field in spec.present(version)
        if not field.array and isinstance(field.type, Scalar) and field.type.code == "string" and field.tag is None
    }
    acks = {"acks": 1} if spec.key == PRODUCE else {}  # else nobody answers
    return spec.cls(**{**names, **acks, **values})


def _element(field: FieldSpec, version: int) -> object:
    if isinstance(field.type, MessageSpec):
        return _filled(field.type, version)
    return {"string": TOPIC, "16s": field.default}.get(field.type.code, 0)


def _arrays(spec: MessageSpec, version: int) -> Iterator[tuple[str, ...]]:
    """The names of arrays, each with those of the arrays that it lies in."""
    for field in spec.present(version):
        if field.array:
            yield (field.name,)
            if isinstance(field.type, MessageSpec):
                yield from ((field.name, *inner) for inner in _arrays(field.type, version))


def _with_entries(spec: MessageSpec, version: int, path: tuple[str, ...], count: int) -> object:
    (field,) = [field for field in spec.fields if field.name == path[0]]
    if len(path) == 1:
        return _filled(spec, version, **{path[0]: [_element(field, version)] * count})
    assert isinstance(field.type, MessageSpec)
    return _filled(spec, version, **{path[0]: [_with_entries(field.type, version, path[1:], count)]})


def densest(request: type, version: int, path: tuple[str, ...], entries_max: int) -> bytes:
    """As many entries as a frame can hold, but no more than *entries_max*."""
    spec = spec_of(request)
    one, two = (len(encoded(_with_entries(spec, version, path, n), version=version)) for n in (100, 101))
    count = min((REQUEST_BYTES_MAX - 1000) // (two - one), entries_max)
    return encoded(_with_entries(spec, version, path, count), version=version)


CASES = [
    pytest.param(api.request, version, path, id=f"{api.name}-{version}-{'.'.join(path)}")
    for api in (APIS[key] for key in HANDLERS)
    for version in sorted({api.versions.start, api.versions.stop - 1})
    for path in _arrays(spec_of(api.request), version)
]


@pytest.mark.parametrize(("request_type", "version", "path"), CASES)
def test_the_densest_request_stops_nobody(
    broker: BrokerProcess, request_type: type, version: int, path: tuple[str, ...]
) -> None:
    with RawClient(broker.bootstrap) as client:
        create_topic(client, TOPIC)
        client.send_bytes(densest(request_type, version, path, ENTRIES_MAX - len(path)))
        assert client.receive_frame()


@pytest.mark.parametrize("api_key", [0, 1, 10, 19])
def test_more_entries_than_the_limit_close_the_connection(broker: BrokerProcess, api_key: int) -> None:
    request = APIS[api_key].request
    version = APIS[api_key].versions.stop - 1
    path = next(_arrays(spec_of(request), version))
    with RawClient(broker.bootstrap) as client:
        client.send_bytes(densest(request, version, path, ENTRIES_MAX + 1))
        assert client.closed()
    assert broker.says(f"more than {ENTRIES_MAX} entries in one request")


@pytest.mark.parametrize("count", [1, 1000, ENTRIES_MAX])
def test_tagged_fields_by_the_thousand_are_passed_over(client: RawClient, count: int) -> None:
    head, body = _split(API_VERSIONS)
    client.send_bytes(framed(head[:-1] + _tags(count) + body))
    assert client.receive_frame()
    client.send_bytes(framed(head + body[:-1] + _tags(count)))
    assert client.receive_frame()


@pytest.mark.parametrize("where", ["header", "body"])
def test_more_tagged_fields_than_the_limit_close_the_connection(client: RawClient, where: str) -> None:
    head, body = _split(API_VERSIONS)
    tags = _tags(ENTRIES_MAX + 1)
    client.send_bytes(framed(head[:-1] + tags + body if where == "header" else head + body[:-1] + tags))
    assert client.closed()


@pytest.mark.parametrize("tags", [(5, 5), (5, 4), (0, 0), (1, 2, 1)], ids=str)
def test_tagged_fields_that_do_not_rise_close_the_connection(client: RawClient, tags: tuple[int, ...]) -> None:
    """Twice the same, or out of order: in the header, and in the body."""
    head, body = _split(API_VERSIONS)
    section = bytes([len(tags)]) + b"".join(bytes([tag, 0]) for tag in tags)
    client.send_bytes(framed(head[:-1] + section + body))
    assert client.closed()


def test_tagged_fields_that_do_not_rise_in_the_body_close_the_connection(client: RawClient) -> None:
    head, body = _split(API_VERSIONS)
    client.send_bytes(framed(head + body[:-1] + b"\x02\x05\x00\x05\x00"))
    assert client.closed()


def test_a_tagged_field_longer_than_the_frame_closes_the_connection(client: RawClient) -> None:
    head, body = _split(API_VERSIONS)
    client.send_bytes(framed(head + body[:-1] + b"\x01\x05\xff\xff\xff\xff\x0f"))
    assert client.closed()


def _split(request: object) -> tuple[bytes, bytes]:
    """Header and body of a request in its newest version; the header ends in its tags, of which there are none."""
    frame = encoded(request, version=newest(request), client_id=None)[4:]
    return frame[:11], frame[11:]


def _tags(count: int) -> bytes:
    section = bytearray(uvarint(count))
    for tag in range(100, 100 + count):
        section += uvarint(tag) + b"\0"
    return bytes(section)
