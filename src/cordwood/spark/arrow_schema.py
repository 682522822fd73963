"""The columns of the source as Arrow's types."""

import pyarrow as pa

from .schema import NAMES, Columns

HEADER_TYPE = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
HEADERS_TYPE = pa.list_(pa.field("element", HEADER_TYPE))

FIELDS = (
    pa.field("key", pa.binary()),
    pa.field("value", pa.binary()),
    pa.field("topic", pa.string()),
    pa.field("partition", pa.int32()),
    pa.field("offset", pa.int64()),
    pa.field("timestamp", pa.timestamp("us", tz="UTC")),
    pa.field("timestampType", pa.int32()),
    pa.field("headers", HEADERS_TYPE),
)
assert tuple(field.name for field in FIELDS) == NAMES, "each column once, in Spark's order"


def schema_of(columns: Columns) -> pa.Schema:
    return pa.schema([FIELDS[NAMES.index(name)] for name in columns.names])
