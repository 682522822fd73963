"""Pipelines: the journal and what is made of it, the example from its first run to its end, and the demo's job."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest
from pyspark.sql import SparkSession

from cordwood.cli.demo_orders import make_orders
from cordwood.cli.demo_spark import produce_customers, show_outcome
from cordwood.cli.main import main
from cordwood.client.connect import ClientError, Cluster
from cordwood.client.raw import RawClient, RawSettings, Security
from cordwood.errors import ConfigError
from cordwood.record.build import Record, build
from cordwood.spark.pipelines import journal
from cordwood.spark.pipelines.engine import Engine
from cordwood.spark.pipelines.journal import BYTES_MAX, Entry, Journal, Tail, read
from cordwood.spark.pipelines.news import RESTLESS_S, News
from cordwood.spark.pipelines.project import KAFKA_PREFIX, Project
from cordwood.spark.pipelines.reasons import LENGTH_MAX, flow_failure, reason
from cordwood.spark.pipelines.status import Status, status_of
from cordwood.spark.pipelines.worker import Order
from cordwood.testing import Broker
from spark.spark_home import JVM_OPTIONS
from spark.spark_topics import Kafka
from support.scripted import ScriptedBroker, hang_up
from support.tls import TlsServer, make_certificate
from support.waiting import eventually

CORDWOOD = [sys.executable, "-m", "cordwood"]
PATIENCE_S = 150

# The journal


def test_a_journal_is_read_as_it_grows(tmp_path: Path) -> None:
    log, tail = Journal(tmp_path / "journal"), Tail(tmp_path / "journal")
    first = Entry(journal.BATCH, 5, flow="a", rows=3, end={"t": {"0": 3}}, latest={"t": {"0": 5}})
    log.write(first)
    assert list(tail.new()) == [first]
    assert first.lag == 2
    log.write(second := Entry(journal.RUN, 6, state=journal.COMPLETED))
    log.close()
    assert list(tail.new()) == [second]
    assert read(tmp_path / "journal") == [first, second]


def test_a_line_is_read_when_all_of_it_is_there(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    tail = Tail(path)
    path.write_text('{"kind": "ru')
    assert list(tail.new()) == []
    path.write_text('{"kind": "run", "time_ms": 1}\nnot ours\n{"kind": "run", "time_ms": 2, "colour": "red"}\n')
    assert list(tail.new()) == [Entry("run", 1)]


def test_a_long_journal_loses_its_older_half(tmp_path: Path) -> None:
    line = json.dumps({"kind": "run", "time_ms": 7}) + "\n"
    count = BYTES_MAX // len(line) + 1
    (tmp_path / "journal").write_text(line * count)
    Journal(tmp_path / "journal").close()
    kept = read(tmp_path / "journal")
    assert count // 2 - 2 <= len(kept) <= count // 2
    assert set(map(repr, kept)) == {repr(Entry("run", 7))}


def test_rates_are_those_of_the_time_in_which_rows_came() -> None:
    batches = [Entry("batch", 1, flow="a", rows=rows, took_ms=100) for rows in (0, 10, 30, 0)]
    flow = status_of(batches).flows["a"]
    assert (flow.rows, flow.rows_per_s, flow.batch_ms, flow.took_ms) == (40, 200, 100, 400)


def test_a_run_that_begins_has_not_failed_yet() -> None:
    failed = [Entry("run", 1, state=journal.RUNNING), Entry("run", 2, state=journal.FAILED, text="why")]
    assert (status_of(failed).run, status_of(failed).text) == (journal.FAILED, "why")
    assert status_of([*failed, Entry("run", 3, state=journal.RUNNING)]).text == ""


# What Spark says


def test_our_own_sentence_is_found_in_a_page_of_sparks() -> None:
    text = (
        "[STREAM_FAILED] Query [id = 1] terminated with exception: [PYTHON_DATA_SOURCE_ERROR] Failed:\n"
        "Traceback (most recent call last):\n  File source.py, line 7\n    raise\n"
        "cordwood.client.raw_errors.UnknownTopic: there is no topic a; make it first\n SQLSTATE: 38000\n"
        "=== Streaming Query ===\nIdentifier: x\n\nJVM stacktrace:\norg.apache.X\n\tat org.apache.Y(Z.scala:1)"
    )
    assert reason(text) == "there is no topic a; make it first"


def test_of_other_python_errors_the_last_line_counts() -> None:
    text = "Traceback (most recent call last):\n  File x\nValueError: one\nDuring\npyspark.errors.PySparkError: two\n"
    assert reason(text) == "two"


def test_advice_and_plans_are_left_out() -> None:
    message = (
        "Failed to resolve flow: 'spark_catalog.default.customers'.\n"
        "Error: [TABLE_OR_VIEW_NOT_FOUND] The table or view `ordres` cannot be found. Verify the spelling of it.\n"
        "Search path: [`system`.`builtin`].\n SQLSTATE: 42P01; line 5 pos 5;\n'UnresolvedRelation [ordres]\n"
    )
    assert flow_failure(message) == (
        "spark_catalog.default.customers",
        "[TABLE_OR_VIEW_NOT_FOUND] The table or view `ordres` cannot be found.; line 5 pos 5",
    )


def test_no_reason_is_endless_or_empty() -> None:
    assert len(reason("x" * 10 * LENGTH_MAX)) == LENGTH_MAX + 1
    assert reason("\n") == "Spark gave no reason"


# The project


def test_an_edit_changes_the_fingerprint_and_a_result_does_not(tmp_path: Path) -> None:
    assert main(["pipeline", "init", str(tmp_path)]) == 0
    project = Project.open(str(tmp_path))
    before = project.fingerprint()
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "part.sql").write_text("")
    assert project.fingerprint() == before
    (tmp_path / "transformations" / "customers.sql").write_text("SELECT 1")
    assert project.fingerprint() != before


def test_how_to_reach_the_cluster_is_in_the_specification(tmp_path: Path) -> None:
    assert main(["pipeline", "init", str(tmp_path)]) == 0
    project = Project.open(str(tmp_path))
    more = {f"{KAFKA_PREFIX}security.protocol": "SSL", f"{KAFKA_PREFIX}ssl.ca.location": "/ca.pem"}
    found = replace(project, configuration={**project.configuration, **more}).settings(
        "h:1", client_id="me", timeout_ms=5
    )
    expected = RawSettings("h:1", client_id="me", timeout_ms=5, security=Security(protocol="SSL", ca_file="/ca.pem"))
    assert found == expected
    wrong = replace(project, configuration={f"{KAFKA_PREFIX}security.protocol": "TLS"})
    assert wrong.settings(None, client_id="me", timeout_ms=5) is None
    with pytest.raises(ConfigError, match=r"spark-pipeline.yml: spark\.cordwood\.kafka\.security\.protocol is 'TLS'"):
        wrong.settings("h:1", client_id="me", timeout_ms=5)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("security.protocols", r"did you mean spark\.cordwood\.kafka\.security\.protocol\?"),
        ("enable.auto.commit", r"spark\.cordwood\.kafka\.enable\.auto\.commit is not supported"),
    ],
)
def test_a_setting_of_kafka_that_can_not_be_used_is_refused(tmp_path: Path, name: str, reason: str) -> None:
    assert main(["pipeline", "init", str(tmp_path)]) == 0
    project = replace(Project.open(str(tmp_path)), configuration={f"{KAFKA_PREFIX}{name}": "SSL"})
    with pytest.raises(ConfigError, match=rf"spark-pipeline.yml: .*{reason}"):
        project.settings("h:1", client_id="me", timeout_ms=5)


# News


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def _news(settings: RawSettings | None, *, took_s: float = 0.5) -> tuple[News, Clock]:
    """A run has just ended."""
    clock = Clock()
    news = News(settings, clock)
    news.run_begins()
    clock.now_s += took_s
    news.run_ended()
    return news, clock


def test_records_that_have_come_are_news(kafka: Kafka, name: str) -> None:
    kafka.produce(kafka.make(name, 2), [b"a", b"b"])
    news, _ = _news(RawSettings(kafka.bootstrap))
    assert news.has_come([{name: {"0": 1, "1": 0}}], has_others=False)
    assert not news.has_come([{name: {"0": 2, "1": 0}}], has_others=False)
    assert not news.has_come([{name: {"0": 2, "1": 0}, "gone": {"0": 7}}], has_others=False)
    kafka.grow(name, 3)
    kafka.produce(name, [b"c"], partition=2)
    assert news.has_come([{name: {"0": 2, "1": 0}}], has_others=False)


@pytest.mark.parametrize(("took_s", "after_s"), [(0.5, RESTLESS_S), (20.0, 200.0)])
def test_what_nobody_reports_is_found_before_long(kafka: Kafka, name: str, took_s: float, after_s: float) -> None:
    """A new topic that a pattern matches, a topic that is read as a batch."""
    kafka.produce(kafka.make(name), [b"a"])
    news, clock = _news(RawSettings(kafka.bootstrap), took_s=took_s)
    clock.now_s += after_s - 0.1
    assert not news.has_come([{name: {"0": 1}}], has_others=False)
    clock.now_s += 0.1
    assert news.has_come([{name: {"0": 1}}], has_others=False)


def test_where_nobody_can_say_a_run_will(tmp_path: Path) -> None:
    """A cluster that is away, or wants TLS, has no news for ever, for all that we know."""
    with ScriptedBroker([hang_up]) as away:
        unreachable = RawSettings(away.bootstrap, timeout_ms=50, retry_backoff_ms=10)
    with TlsServer(make_certificate(tmp_path, "server")) as secret, ScriptedBroker([hang_up]) as behind:
        secret.lead_to(int(behind.bootstrap.rpartition(":")[2]))
        plainly = RawSettings(secret.address, timeout_ms=50, retry_backoff_ms=10)
        for settings in (unreachable, plainly, None):
            news, clock = _news(settings, took_s=60.0)
            assert not news.has_come([{"t": {"0": 1}}], has_others=False)
            clock.now_s += RESTLESS_S
            assert news.has_come([{"t": {"0": 1}}], has_others=False)


@pytest.mark.parametrize("has_others", [False, True])
def test_sources_that_are_no_topics_are_looked_into_now_and_then(has_others: bool) -> None:
    news, clock = _news(None, took_s=60.0)
    assert not news.has_come([{}], has_others=has_others)
    clock.now_s += RESTLESS_S
    assert news.has_come([{}], has_others=has_others)


def test_a_cluster_that_wants_tls_is_asked_as_the_specification_says(tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path, "server")
    assert main(["pipeline", "init", str(tmp_path / "shop")]) == 0
    project = Project.open(str(tmp_path / "shop"))
    more = {f"{KAFKA_PREFIX}security.protocol": "SSL", f"{KAFKA_PREFIX}ssl.ca.location": str(certificate.certificate)}
    project = replace(project, configuration={**project.configuration, **more})
    server = TlsServer(certificate)
    with server, Broker(settings={"advertised.listeners": f"PLAINTEXT://{server.address}"}) as broker:
        server.lead_to(broker.port)
        settings = project.settings(server.address, client_id="me", timeout_ms=5_000)
        assert settings is not None
        with RawClient(settings) as client:
            client.topics(["t"], create=True)
            client.produce("t", {0: bytes(build([Record(0, 0, None, b"a")]))})
        news, _ = _news(settings)
        assert news.has_come([{"t": {"0": 0}}], has_others=False)
        assert not news.has_come([{"t": {"0": 1}}], has_others=False)


# The whole


@pytest.fixture
def orders(kafka: Kafka) -> Iterator[Kafka]:
    for topic in ("orders", "large-orders"):
        kafka.make(topic, 2)
    yield kafka
    for topic in ("orders", "large-orders"):
        kafka.delete(topic)


def _order(kafka: Kafka, customer: str, cents: int, count: int) -> None:
    kafka.produce("orders", [json.dumps({"item": customer, "cents": cents}).encode()] * count)


def _large(kafka: Kafka) -> int:
    return len(kafka.read("large-orders"))


def _states(project: Project) -> list[str]:
    return [entry.state for entry in read(project.journal) if entry.kind == journal.RUN]


def _at_leisure(condition: Callable[[], bool]) -> Callable[[], bool]:
    """Look now and then: Spark needs the processor more than we do."""
    pause = Event()
    return lambda: not pause.wait(0.25) and condition()


def _rows(project: Project, flow: str) -> int:
    return sum(entry.rows for entry in read(project.journal) if entry.flow == flow)


@pytest.mark.xdist_group("spark-pipeline")
@pytest.mark.timeout(400)
@pytest.mark.usefixtures("spark_home")
def test_the_example_runs_and_goes_on_and_says_what_is_wrong(
    orders: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", JVM_OPTIONS)
    assert main(["pipeline", "init", str(tmp_path / "shop"), "--bootstrap", orders.bootstrap]) == 0
    project = Project.open(str(tmp_path / "shop"))
    options = [str(project.root), "--master", "local[2]"]

    _order(orders, "ada", 5000, count=3)
    first = subprocess.run([*CORDWOOD, "pipeline", "run", *options], capture_output=True, text=True)
    assert (first.returncode, first.stderr) == (0, ""), project.log.read_text()[-3000:]
    assert "customers: completed" in first.stdout
    assert "orders: 3 rows in 1 batch" in first.stdout
    assert _large(orders) == 3
    assert sum(orders.committed("shop", "orders").values()) == 3

    watch = subprocess.Popen(
        [*CORDWOOD, "pipeline", "watch", *options, "--interval-ms", "100"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        _order(orders, "bob", 6000, count=2)
        _order(orders, "bob", 60, count=1)
        eventually(_at_leisure(lambda: _rows(project, "large_orders") == 6), what="new orders", within_s=PATIENCE_S)
        sql = project.root / "transformations" / "customers.sql"
        right = sql.read_text()
        sql.write_text(right.replace("FROM orders", "FROM ordres"))
        eventually(_at_leisure(lambda: _states(project)[-1] == journal.FAILED), what="a failure", within_s=PATIENCE_S)
        sql.write_text(right)
        eventually(
            _at_leisure(lambda: _states(project)[-1] == journal.COMPLETED), what="the repair", within_s=PATIENCE_S
        )
        watch.send_signal(signal.SIGINT)
        shown, _ = watch.communicate(timeout=PATIENCE_S)
    finally:
        watch.kill()
    assert watch.returncode == 0
    assert "the run failed, and will be tried again: customers: [TABLE_OR_VIEW_NOT_FOUND] The table or view " in shown
    assert _large(orders) == 5
    assert sum(orders.committed("shop", "orders").values()) == 6
    assert _table(project, "customers") == {"cents": 5000 * 3 + 6000 * 2 + 60, "orders": 6}
    status = subprocess.run([*CORDWOOD, "pipeline", "status", str(project.root)], capture_output=True, text=True)
    assert ["orders", "completed"] in [line.split()[:2] for line in status.stdout.splitlines()]
    assert (project.root / "status.png").exists()


def test_a_run_that_was_stopped_has_not_failed(tmp_path: Path) -> None:
    """Whatever the loss of Spark does to it afterwards: here it has never had one."""
    assert main(["pipeline", "init", str(tmp_path / "shop")]) == 0
    project = Project.open(str(tmp_path / "shop"))
    engine = Engine(project, Order(str(project.root)))
    with closing(engine._journal):
        engine.abort()
        assert not engine._ran()
    assert status_of(read(project.journal)).run != journal.FAILED


def _table(project: Project, name: str) -> Mapping[str, int]:
    """The sums of a table, by somebody who is not Spark."""
    from pyarrow import parquet

    rows = parquet.read_table(project.tables / name, columns=["cents", "orders"]).to_pylist()
    return {column: sum(row[column] for row in rows) for column in ("cents", "orders")}


def test_the_demos_job_finds_what_it_should_and_shows_it(
    spark: SparkSession, kafka: Kafka, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from cordwood.spark.example.job import Job
    from cordwood.spark.example.main import run
    from cordwood.spark.pipelines.recorder import Recorder

    topics = {which: f"{name}-{which}" for which in ("orders", "customers", "revenue")}
    job = Job(kafka.bootstrap, str(tmp_path), **topics, group=name, batch_records=150)
    orders, cluster = make_orders(400, end_ms=1_700_000_000_000), Cluster(kafka.bootstrap)
    kafka.make(job.orders, 1)
    producer = kafka.producer("none")
    for order in orders:
        producer.produce(job.orders, order.as_json(), order.customer, timestamp=order.time_ms)
    assert producer.flush(30) == 0
    cities = produce_customers(cluster, job, orders[-1].time_ms)

    recorder = Recorder(Journal(job.journal), tmp_path)
    spark.streams.addListener(recorder)
    run(job, spark)
    status, tail = Status(), Tail(job.journal)

    def is_told() -> bool:
        for entry in tail.new():
            status.take(entry)
        return [status.flows[flow].rows for flow in sorted(status.flows)] == [400, 400]

    eventually(_at_leisure(is_told), what="Spark's listener")
    spark.streams.removeListener(recorder)
    show_outcome(cluster, job, orders, cities, status, str(tmp_path / "plot.png"))
    shown = capsys.readouterr().out
    assert "A stream put all orders into a Parquet table: 3 batches" in shown
    assert "Every sum is right, and every order is in the Parquet table once." in shown
    assert (tmp_path / "plot.png").stat().st_size > 1000
    assert kafka.committed(job.group, job.orders) == {0: 400}
    # It would have noticed if something were missing.
    with pytest.raises(ClientError, match="other sums"):
        show_outcome(cluster, job, orders, dict.fromkeys(cities, "Graz"), status, None)
    with pytest.raises(ClientError, match="400 of 399 orders"):
        show_outcome(cluster, job, orders[:-1], cities, status, None)
