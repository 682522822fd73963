"""Where tests start Spark from: PySpark's own directory, less the archive that Python would import it from.

Spark puts that archive before everything else on the path of its Python processes. It has no compiled files, so each of
them, and a stream has many, would compile the whole of PySpark first: a second of work instead of a tenth.
"""

import os
from pathlib import Path

import pyspark
from benchmarks.peer import SHORT_LIVED_FLAGS

JVM_OPTIONS = " ".join(SHORT_LIVED_FLAGS)


def make_spark_home(directory: Path) -> None:
    """Make it in a directory that is not there yet, and let this process and those it starts use it."""
    directory.mkdir()
    for name in ("bin", "jars"):
        (directory / name).symlink_to(Path(pyspark.__file__).parent / name)
    os.environ["SPARK_HOME"] = str(directory)
