"""Compile the kernels, or load them, before anybody waits for them.

On a machine where they never ran that takes some ten seconds; on all others a quarter of a second. The driver calls
this before it starts tasks, so that one process compiles and the others find the result.
"""

import numpy as np
import pyarrow as pa

from cordwood.record.build import Record, build

from .decode import decode
from .encode import Encoder, Rows, Sealer
from .ranges import Chunk, Range
from .schema import HEADERS_TYPE, Columns


def warm() -> None:
    """Run every kernel once, on next to nothing."""
    batch = bytes(build([Record(0, 0, b"k", b"v", [("h", b"v")])]))
    for found in decode([Chunk(batch)], Range("warm", 0, 0, 1), Columns.of(headers=True)):
        assert found.num_rows == 1, "one record went in"
    headers = pa.array([[{"key": "h", "value": b"v"}]], HEADERS_TYPE)
    rows = Rows(pa.array([b"v"]), pa.array([b"k"]), headers)
    for made in Encoder(1).encode(rows, np.zeros(1, np.int64)):
        assert len(Sealer().seal(made[0])) > 0, "one record went in"
