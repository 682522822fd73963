"""What a pipeline's process does: it keeps a Spark session, runs the pipeline in it, and writes the journal.

The session is one of Spark Connect, with its server in the same process, since that is the only way to run Spark's
pipelines. The server listens on a free port of this machine, and requires a token.
"""

import json
import os
import re
import sys
import threading
import uuid
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from cordwood.errors import CordwoodError

from . import journal
from .journal import Entry, Journal
from .news import News
from .project import BOOTSTRAP_KEY, Project
from .reasons import flow_failure, reason
from .recorder import Recorder, now_ms, short_name
from .worker import FINISH, Order

_FLOW = re.compile(r"Flow (\S+) (?:is|has) ([A-Z_]+)")
_SERVICE: Final = "org.apache.spark.sql.connect.service.SparkConnectService$"
CLOSE_S: Final = 15.0
_RETRY_S: Final = (5.0, 10.0, 30.0, 60.0)


class Engine:
    """A pipeline and the session that runs it."""

    def __init__(self, project: Project, order: Order) -> None:
        self._project = project
        self._order = order
        self._journal = Journal(project.journal)
        self._recorder = Recorder(self._journal, project.tables)
        self._context: SparkContext | None = None
        self._session: SparkSession | None = None
        self._news = News(project.settings(order.bootstrap, client_id="cordwood-pipeline", timeout_ms=10_000))
        self._fingerprint: object = None
        self._failures: list[str] = []
        self._is_aborted = False
        self.finishing = threading.Event()

    def work(self) -> int:
        """Run once, or until somebody asks to finish; returns the process's status."""
        self._say(journal.SESSION, journal.STARTING)
        self._start()
        self._say(journal.SESSION, journal.RUNNING)
        succeeded = self._run()
        failures = 0 if succeeded else 1
        while self._order.watch and not self.finishing.wait(self._pause_s(failures)):
            if failures or self._has_news():
                failures = 0 if self._run() else failures + 1
        self._say(journal.SESSION, journal.STOPPED)
        return 0 if succeeded or self._order.watch else 1

    def abort(self) -> None:
        """End at once, from any thread. A micro-batch that has not finished is done again by the next run."""
        self._is_aborted = True
        self._say(journal.RUN, journal.STOPPED)
        self._say(journal.SESSION, journal.STOPPED)
        self.close()

    def close(self) -> None:
        """End Spark, and return when it is gone: only one process may have the catalog open."""
        gateway: Any = getattr(self._context, "_gateway", None)
        if gateway is not None and gateway.proc is not None:
            gateway.proc.terminate()
            gateway.proc.wait(CLOSE_S)

    def _pause_s(self, failures: int) -> float:
        if failures:
            return _RETRY_S[min(failures, len(_RETRY_S)) - 1]
        return self._order.interval_ms / 1000

    def _has_news(self) -> bool:
        if self._project.fingerprint() != self._fingerprint:
            return True
        return self._news.has_come(list(self._recorder.ends.values()), has_others=self._recorder.has_others)

    def _say(self, kind: str, state: str, *, flow: str = "", text: str = "") -> None:
        self._journal.write(Entry(kind, now_ms(), state=state, flow=flow, text=text))

    # The session

    def _start(self) -> None:
        os.environ["SPARK_CONNECT_AUTHENTICATE_TOKEN"] = str(uuid.uuid4())
        given = {n: v for n, v in self._project.configuration.items() if n.startswith("spark.")}
        conf = SparkConf().setAll(list({**session_settings(self._project, self._order), **given}.items()))
        self._context = SparkContext.getOrCreate(conf)
        SparkSession(self._context)
        jvm: Any = self._context._jvm
        port = getattr(getattr(jvm, _SERVICE), "MODULE$").localPort()
        # From here on, any request for a session gets one of the server.
        os.environ["SPARK_LOCAL_REMOTE"] = os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
        from pyspark.sql.connect.session import SparkSession as RemoteSession

        remote: Any = RemoteSession.builder.remote(f"sc://localhost:{port}").getOrCreate()
        remote.streams.addListener(self._recorder)
        self._session = remote

    def _configure(self, configuration: Mapping[str, str]) -> dict[str, str]:
        """Set what can be set while a session runs; the rest took effect when it started."""
        assert self._session is not None
        wanted = dict(configuration)
        if self._order.bootstrap is not None:
            wanted[BOOTSTRAP_KEY] = self._order.bootstrap
        for name, value in list(wanted.items()):
            try:
                self._session.conf.set(name, value)
            except PySparkException:
                del wanted[name]
        return wanted

    # One run

    def _run(self) -> bool:
        self._news.run_begins()
        try:
            return self._ran()
        finally:
            self._news.run_ended()

    def _ran(self) -> bool:
        self._say(journal.RUN, journal.RUNNING)
        self._fingerprint = self._project.fingerprint()
        self._failures.clear()
        try:
            for message in self._messages():
                self._take(message)
        except Exception as error:  # anything in the pipeline's own files, or that Spark finds in them
            if not self._is_aborted:  # otherwise Spark was taken away from it, which is not a failure
                print(f"the run failed: {error}", flush=True)
                # A flow's own error is better than what Spark says about the whole.
                text = self._failures[0] if self._failures else _reason_of(error)
                self._say(journal.RUN, journal.FAILED, text=text)
            return False
        self._say(journal.RUN, journal.COMPLETED)
        return True

    def _messages(self) -> Iterator[str]:
        """Run the pipeline, and yield what it reports."""
        assert self._session is not None
        from pyspark.pipelines import cli
        from pyspark.pipelines.spark_connect_graph_element_registry import SparkConnectGraphElementRegistry
        from pyspark.pipelines.spark_connect_pipeline import create_dataflow_graph, start_run

        spec = cli.load_pipeline_spec(self._project.spec)
        graph = create_dataflow_graph(
            self._session,
            default_catalog=spec.catalog,
            default_database=spec.database,
            sql_conf=self._configure(spec.configuration),
        )
        registry = SparkConnectGraphElementRegistry(self._session, graph)
        cli.register_definitions(self._project.spec, registry, spec, self._session, graph)
        results = start_run(
            self._session,
            graph,
            full_refresh=[],
            full_refresh_all=self._order.refresh,
            refresh=[],
            dry=False,
            storage=spec.storage,
        )
        for result in results:
            if "pipeline_event_result" in result:
                yield result["pipeline_event_result"].event.message

    def _take(self, message: str) -> None:
        print(message, flush=True)
        if (failure := flow_failure(message)) is not None:
            flow, text = short_name(failure[0]), failure[1]
            self._failures.append(f"{flow}: {text}")
            self._say(journal.FLOW, journal.FAILED, flow=flow, text=text)
        elif found := _FLOW.match(message):
            self._say(journal.FLOW, found[2].lower(), flow=short_name(found[1]))


def session_settings(project: Project, order: Order) -> dict[str, str]:
    """How the session is set up, unless the specification says otherwise."""
    return {
        "spark.master": order.master,
        "spark.app.name": project.name,
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.sql.artifact.isolation.enabled": "true",
        "spark.sql.artifact.isolation.alwaysApplyClassloader": "true",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # A few tasks for each core suffice on one machine; Spark's default of two hundred is for many.
        "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
        # Only in this catalog do tables outlive the process. It is a directory beside them.
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.warehouse.dir": project.tables.as_uri(),
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={project.metastore};create=true",
        "spark.driver.extraJavaOptions": f'"-Dderby.system.home={project.hidden}"',
        # Sources wait for their brokers themselves. What fails in spite of that would fail again.
        "spark.sql.pipelines.maxFlowRetryAttempts": "0",
    }


def _reason_of(error: Exception) -> str:
    return str(error) if isinstance(error, CordwoodError) else reason(str(error)) or type(error).__name__


def _hold_leash(engine: Engine) -> None:
    """Do what standard input says; its end means that the process should end."""
    for line in sys.stdin.buffer:
        if line == FINISH:
            engine.finishing.set()
    engine.abort()
    os._exit(0)


def main() -> int:
    order = Order(**json.loads(sys.argv[1]))
    engine = Engine(Project.open(order.directory), order)
    threading.Thread(target=_hold_leash, args=(engine,), daemon=True).start()
    try:
        return engine.work()
    finally:
        engine.close()


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)  # threads of Spark Connect would wait for a server that is gone
