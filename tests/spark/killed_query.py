"""A streaming query in a process of its own, to be killed. Arguments: bootstrap, topic, out, checkpoint."""

import sys

from spark.conftest import make_session

if __name__ == "__main__":
    bootstrap, topic, out, checkpoint = sys.argv[1:]
    session = make_session([])
    session.sparkContext.setLogLevel("ERROR")
    reader = session.readStream.format("cordwood").option("kafka.bootstrap.servers", bootstrap)
    options = {"subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": "100"}
    query = reader.options(**options).load().writeStream.format("json")
    query.option("checkpointLocation", checkpoint).start(out).awaitTermination()
