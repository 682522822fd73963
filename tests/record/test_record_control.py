"""Markers that end transactions."""

import pytest

from cordwood.errors import CorruptData
from cordwood.record.batch import header_at
from cordwood.record.build import Record, build
from cordwood.record.control import ControlType, EndMarker, build_end_marker, end_marker


@pytest.mark.parametrize("control_type", list(ControlType))
def test_a_marker_is_read_back(control_type: ControlType) -> None:
    marker = EndMarker(control_type, coordinator_epoch=4, timestamp=99)
    batch = build_end_marker(marker, producer_id=7, producer_epoch=2)
    header = header_at(batch)
    assert (header.is_control, header.is_transactional, header.producer_id, header.producer_epoch) == (True, True, 7, 2)
    assert header.base_sequence == -1
    assert end_marker(batch, header) == marker


def test_types_we_do_not_know_are_not_markers() -> None:
    batch = build([Record(0, 0, bytes([0, 0, 0, 2]), b"")], control=True)
    assert end_marker(batch, header_at(batch)) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, bytes(6)),
        (bytes(3), bytes(6)),
        (bytes(4), bytes(5)),
        (bytes(4), None),
        (b"\xff\xff\x00\x00", bytes(6)),
        (bytes(4), b"\xff\xff\x00\x00\x00\x00"),
    ],
)
def test_broken_markers_are_corrupt(key: bytes | None, value: bytes | None) -> None:
    batch = build([Record(0, 0, key, value)], control=True)
    with pytest.raises(CorruptData):
        end_marker(batch, header_at(batch))
