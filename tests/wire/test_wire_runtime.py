"""The pieces that generated code calls, and the tool that prints it."""

import pickle
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cordwood.errors import ProtocolError
from cordwood.wire.__main__ import main
from cordwood.wire.runtime import make_uuid, read_uvarint, uvarint


@given(st.integers(128, 2**32 - 1))
def test_varints_are_read_as_they_were_written(value: int) -> None:
    data = uvarint(value)
    assert read_uvarint(data, 1, data[0]) == (value, len(data))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "00"),
        (127, "7f"),
        (128, "8001"),
        (16383, "ff7f"),
        (16384, "808001"),
        (2**21 - 1, "ffff7f"),
        (2**21, "80808001"),
        (2**28, "8080808001"),
        (2**32 - 1, "ffffffff0f"),
    ],
)
def test_varints_at_the_borders(value: int, text: str) -> None:
    assert uvarint(value).hex() == text


@pytest.mark.parametrize("text", ["ffffffff10", "808080808001", "ffffffffff"])
def test_varints_beyond_32_bits_are_refused(text: str) -> None:
    data = bytes.fromhex(text)
    with pytest.raises(ProtocolError):
        read_uvarint(data, 1, data[0])


@given(st.uuids())
def test_a_uuid_made_in_a_hurry_is_a_uuid(expected: UUID) -> None:
    made = make_uuid(expected.bytes)
    assert made == expected
    assert hash(made) == hash(expected)
    assert (str(made), made.bytes, made.is_safe) == (str(expected), expected.bytes, expected.is_safe)
    assert pickle.loads(pickle.dumps(made)) == expected


def test_the_generated_source_can_be_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["Produce", "9"]) == 0
    out = capsys.readouterr().out
    assert out.count("def decode(buf, pos):") == 2
    assert out.count("def encode(m):") == 2
    assert "# ProduceRequest v9" in out
    compile(out, "printed", "exec")


@pytest.mark.parametrize("arguments", [[], ["Produce"], ["Nothing", "1"], ["Produce", "x"], ["Produce", "14"]])
def test_the_printer_says_how_to_call_it(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err
