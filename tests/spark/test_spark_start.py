"""What the process that plans a stream loads: the query waits for it, so it is no more than planning needs."""

import subprocess
import sys

from cordwood.spark import kernel_library
from spark.spark_topics import Kafka

PLANNING = """
import sys
from pyspark.sql.datasource import CaseInsensitiveDict
from cordwood.spark.source import CordwoodSource

options = {"kafka.bootstrap.servers": sys.argv[1], "subscribe": sys.argv[2], "startingOffsets": "earliest"}
source = CordwoodSource(CaseInsensitiveDict(options))
reader = source.streamReader(source.schema())
reader.prepareForTriggerAvailableNow()
start = reader.initialOffset()
end = reader.latestOffset(start, reader.getDefaultReadLimit())
assert len(reader.partitions(start, end)) == 1, "there is something to read"
print(*sys.modules)
"""


def test_planning_a_stream_loads_only_what_it_needs(kafka: Kafka, name: str) -> None:
    kernel_library.library()
    kafka.produce(kafka.make(name), [b"a", b"b"])
    command = [sys.executable, "-c", PLANNING, kafka.bootstrap, name]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    loaded = set(done.stdout.split())
    messages = "cordwood.wire.messages."
    assert {name for name in loaded if name.startswith(messages)} == {f"{messages}metadata", f"{messages}produce_fetch"}
    assert not loaded & {"ssl", "numba", "cordwood.wire.registry", "cordwood.record.batch", "cordwood.spark.decode"}
