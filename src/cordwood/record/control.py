"""Control records: the markers with which a transaction coordinator ends a transaction in a partition."""

from enum import IntEnum
from struct import Struct
from typing import NamedTuple

from cordwood.errors import CorruptData
from cordwood.ports import Buffer

from .batch import BatchHeader
from .build import Record, build, records

_KEY = Struct(">hh")
_VALUE = Struct(">hi")
_BATCH_SIZE_MAX = 64 * 1024


class ControlType(IntEnum):
    """The types of control records. Kafka has more; these are the ones that a partition's log may hold."""

    ABORT = 0
    COMMIT = 1


class EndMarker(NamedTuple):
    """The content of a marker that ends a transaction."""

    type: ControlType
    coordinator_epoch: int
    timestamp: int


def build_end_marker(marker: EndMarker, *, producer_id: int, producer_epoch: int) -> bytearray:
    """A control batch that ends the producer's transaction."""
    key = _KEY.pack(0, marker.type)
    value = _VALUE.pack(0, marker.coordinator_epoch)
    record = Record(0, marker.timestamp, key, value)
    return build([record], producer_id=producer_id, producer_epoch=producer_epoch, transactional=True, control=True)


def end_marker(batch: Buffer, header: BatchHeader) -> EndMarker | None:
    """The marker in a control batch; None if compaction has emptied the batch, or for an unknown type."""
    for record in records(batch, header, limit=_BATCH_SIZE_MAX):
        return _parsed(record)
    return None


def _parsed(record: Record) -> EndMarker | None:
    key, value = record.key or b"", record.value or b""
    if len(key) < _KEY.size:
        raise CorruptData("the key of a control record is cut off")
    version, type_number = _KEY.unpack_from(key)
    if version < 0:
        raise CorruptData(f"a control record cannot have version {version}")
    if type_number not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    if len(value) < _VALUE.size:
        raise CorruptData("the value of a control record is cut off")
    version, coordinator_epoch = _VALUE.unpack_from(value)
    if version < 0:
        raise CorruptData(f"an end marker cannot have version {version}")
    return EndMarker(ControlType(type_number), coordinator_epoch, record.timestamp)
