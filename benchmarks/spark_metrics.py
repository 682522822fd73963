"""The targets of the Spark part, relative to Spark's own Kafka connector. Pure."""

from math import inf
from typing import Final

from .metrics import Metric

_RATE_UNIT: Final = "k records/s"
READ_DIRECT: Final = Metric("direct", "from its files", _RATE_UNIT, 3.0, more_is_better=True)
READ_FETCH: Final = Metric("fetch", "over Fetch", _RATE_UNIT, 2.0, more_is_better=True)
STREAM_DIRECT: Final = Metric("direct", "from its files", _RATE_UNIT, 2.0, more_is_better=True)
STREAM_FETCH: Final = Metric("fetch", "over Fetch", _RATE_UNIT, 2.0, more_is_better=True)
WRITE: Final = Metric("write", "throughput", "k rows/s", 2.0, more_is_better=True)
BATCH_FOUR: Final = Metric("batch_four", "median micro-batch, 4 partitions", "ms", 1.3)
BATCH_ONE: Final = Metric("batch_one", "median micro-batch, 1 partition", "ms", 1.3)
FIRST_QUERY: Final = Metric("first_query", "first query", "s", inf)
KERNELS: Final = Metric("kernels", "of that, numba and kernels", "s", 1.0, absolute=True)
PEAK: Final = Metric("peak", "peak of a Python worker", "MB", inf)
PEAK_GROWTH_DIRECT: Final = Metric("growth_direct", "10 × the records, from files", "×", 1.1, absolute=True)
PEAK_GROWTH_FETCH: Final = Metric("growth_fetch", "10 × the records, over Fetch", "×", 1.1, absolute=True)
