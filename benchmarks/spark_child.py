"""What runs in processes of its own for the rows of `spark_fresh.py`. Prints its figures as JSON, on its last line.

python -m benchmarks.spark_child first DIRECTORY FORMAT BOOTSTRAP TOPIC
python -m benchmarks.spark_child peak DIRECTORY BOOTSTRAP TOPIC RECORDS auto|never
python -m benchmarks.spark_child kernels
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psutil

from .metrics import MB
from .spark_load import aggregate
from .spark_metrics import FIRST_QUERY, KERNELS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORKER: Final = "pyspark.worker"
TASKS: Final = 2
LOADED_ANYWAY: Final = ("pyarrow.compute", "pyspark.sql.datasource", "cordwood.record.build", "cordwood.spark.source")


def first(directory: str, kind: str, bootstrap: str, topic: str) -> dict[str, float]:
    """How long the first query of a session takes, once the session exists."""
    session = _session(directory)
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic}
    begin = time.perf_counter()
    _count(session, kind, options)
    took_s = time.perf_counter() - begin
    session.stop()
    return {FIRST_QUERY.key: took_s}


def peak(directory: str, bootstrap: str, topic: str, records: str, direct: str) -> dict[str, float]:
    """The most memory that a worker ever had, in MB, after a tenth of the records and after all."""
    session = _session(directory)
    total = int(records)
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "direct": direct}
    options["maxRecordsPerPartition"] = str(total)  # one task, however large
    found: dict[str, float] = {}
    for name, end in (("small", total // 10), ("large", total)):
        count = _count(session, "cordwood", {**options, "endingOffsets": json.dumps({topic: {"0": end}})})
        assert count == end, f"{count} of {end} records"
        found[name] = _workers_peak_bytes() / MB
    session.stop()
    return found


def kernels() -> dict[str, float]:
    """How long a first query waits for numba: in the process that plans it, and then in its concurrent tasks."""
    return {KERNELS.key: max(_loads_s(1)) + max(_loads_s(TASKS))}


def load() -> dict[str, float]:
    """What numba and the kernels add to a worker that has loaded everything else."""
    for name in LOADED_ANYWAY:
        import_module(name)
    assert "numba" not in sys.modules, "this is what is measured"
    begin = time.perf_counter()
    from cordwood.spark.kernel_library import library

    assert library(), "there are kernels"
    return {KERNELS.key: time.perf_counter() - begin}


def _loads_s(at_once: int) -> list[float]:
    command = [sys.executable, "-m", "benchmarks.spark_child", "load"]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(at_once)]
    answers = [process.communicate()[0] for process in running]
    assert not any(process.returncode for process in running), "it said what is wrong"
    return [json.loads(answer)[KERNELS.key] for answer in answers]


def _session(directory: str) -> "SparkSession":
    from .spark_session import make_session

    return make_session(Path(directory) / "spark-child.log")


def _count(session: "SparkSession", kind: str, options: dict[str, str]) -> int:
    (row,) = aggregate(session.read.format(kind).options(**options).load()).collect()
    return int(row[0])


def _workers_peak_bytes() -> int:
    """Workers stay alive when their tasks are done, and Linux knows the peak memory of each."""
    children = psutil.Process(os.getpid()).children(recursive=True)
    workers = [process for process in children if _is_worker(process)]
    assert workers, "Spark keeps its workers"
    return max(map(_peak_bytes, workers))


def _is_worker(process: psutil.Process) -> bool:
    try:
        return process.cmdline()[-1:] == [WORKER]
    except psutil.Error:  # it has ended, as processes that only plan do
        return False


def _peak_bytes(process: psutil.Process) -> int:
    (line,) = (
        line for line in Path(f"/proc/{process.pid}/status").read_text().splitlines() if line.startswith("VmHWM")
    )
    return int(line.split()[1]) * 1024


COMMANDS: Final[dict[str, Callable[..., dict[str, float]]]] = {
    "first": first,
    "peak": peak,
    "kernels": kernels,
    "load": load,
}

if __name__ == "__main__":
    print(json.dumps(COMMANDS[sys.argv[1]](*sys.argv[2:])))
