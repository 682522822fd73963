"""The look at a produced batch in C: it takes what the one in Python takes, and leaves to that all it would refuse."""

from random import Random
from struct import pack_into

import crc32c as package
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cordwood.errors import Refused
from cordwood.record.batch import (
    ATTRIBUTES_AT,
    CRC_AT,
    HEADER_SIZE,
    LENGTH_END,
    BatchHeader,
    Codec,
    _looked_at,
    usual_header,
)
from cordwood.record.build import Record, build
from wire.native_build import native

NOW_MS = 1_700_000_000_000


@pytest.fixture(scope="module", autouse=True)
def _needs_a_processor_for_it() -> None:
    if not hasattr(native(), "usual_batch"):
        pytest.skip("this processor does not multiply polynomials 512 bits at a time: Python looks at batches")


def in_c(data: bytes | bytearray) -> BatchHeader | None:
    looked = native().usual_batch(memoryview(data))
    return usual_header(looked, len(data)) if looked is not None else None


def in_python(data: bytes | bytearray) -> BatchHeader | None:
    try:
        return _looked_at(memoryview(bytearray(data)))
    except Refused:
        return None


def batch(
    *values: bytes, codec: Codec = Codec.NONE, producer_id: int = -1, producer_epoch: int = -1, base_sequence: int = -1
) -> bytearray:
    return build(
        [Record(offset, NOW_MS, None, value) for offset, value in enumerate(values)],
        codec=codec,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
    )


def sealed(data: bytearray) -> bytearray:
    """With the length and the checksum that go with its bytes."""
    pack_into(">i", data, 8, len(data) - LENGTH_END)
    pack_into(">I", data, CRC_AT, package.crc32c(memoryview(data)[ATTRIBUTES_AT:]))
    return data


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("size", [0, 1, 50, 63, 64, 8_000, 8_200, 1_100_000])
@pytest.mark.parametrize("count", [1, 2, 40])
def test_every_usual_batch_is_taken_as_it_is(codec: Codec, size: int, count: int) -> None:
    for producer_id, epoch, sequence in ((-1, -1, -1), (2**62, 32_767, 2**31 - 1)):
        values = [bytes(size)] * count
        data = batch(*values, codec=codec, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
        header = in_c(data)
        assert header is not None
        assert header == in_python(data)
        assert header.record_count == count


def test_fields_have_their_signs() -> None:
    data = batch(b"x")
    pack_into(">i", data, 12, -7)  # the leader epoch
    pack_into(">qq", data, 27, -(2**63), 2**63 - 1)  # timestamps
    header = in_c(sealed(data))
    assert header == in_python(data)
    assert header is not None
    assert (header.leader_epoch, header.base_timestamp, header.max_timestamp) == (-7, -(2**63), 2**63 - 1)


def test_whatever_is_wrong_with_a_batch_is_left_to_python() -> None:
    """Each bit of the header and of the first record turned over, with and without a checksum that goes with it."""
    for whole in (batch(b"value", b"v" * 200), batch(b"alone"), batch(b"v" * 9000, codec=Codec.LZ4, producer_id=5)):
        for place in range(HEADER_SIZE + 4):
            for bit in range(8):
                data = bytearray(whole)
                data[place] ^= 1 << bit
                assert in_c(data) == in_python(data), (place, bit)
                if not CRC_AT <= place < ATTRIBUTES_AT:
                    pack_into(">I", data, CRC_AT, package.crc32c(memoryview(data)[ATTRIBUTES_AT:]))
                    assert in_c(data) == in_python(data), (place, bit)


@settings(max_examples=300)
@given(st.integers(0, 2**32), st.integers(0, 90), st.binary(max_size=40))
def test_random_headers_are_taken_by_both_or_by_none(seed: int, cut: int, tail: bytes) -> None:
    random = Random(seed)
    data = batch(*[bytes(random.randrange(90)) for _ in range(random.randrange(1, 4))])
    del data[len(data) - min(cut, len(data)) :]
    data += tail
    for _ in range(random.randrange(3)):
        if data:
            data[random.randrange(len(data))] = random.choice([0, 1, 0x7F, 0x80, 0xFF])
    assert in_c(data) == in_python(data)
    if len(data) >= HEADER_SIZE:
        assert in_c(sealed(data)) == in_python(data)


def test_wrong_arguments_are_refused() -> None:
    for arguments in ((), ("text",), (5,), (b"x", b"y")):
        with pytest.raises(TypeError):
            native().usual_batch(*arguments)
