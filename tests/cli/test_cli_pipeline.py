"""``cordwood pipeline`` without Spark: arguments, the example, what is said when something is missing, the status."""

import json
import sys
from pathlib import Path

import pytest

from cli.runner import Outcome, Run
from cordwood import Broker
from cordwood.cli.spark_ready import missing_for_spark
from cordwood.client.raw import RawClient
from cordwood.record.build import Record, build
from cordwood.spark.pipelines.project import KAFKA_PREFIX, Project
from support.tls import TlsServer, make_certificate


def refused(outcome: Outcome, sentence: str) -> bool:
    return (outcome.status, outcome.out, outcome.err) == (1, "", f"cordwood: {sentence}\n")


@pytest.fixture
def project(run: Run, tmp_path: Path) -> Project:
    assert run("pipeline", "init", str(tmp_path / "shop")).status == 0
    return Project.open(str(tmp_path / "shop"))


def write_journal(project: Project, *entries: dict[str, object]) -> None:
    project.hidden.mkdir(exist_ok=True)
    project.journal.write_text("".join(json.dumps({"time_ms": 1, **entry}) + "\n" for entry in entries))


@pytest.mark.parametrize(
    "words",
    [
        ["pipeline"],
        ["pipeline", "run"],
        ["pipeline", "start", "d"],
        ["pipeline", "watch", "d", "--interval-ms", "0"],
        ["pipeline", "watch", "d", "--full-refresh"],
        ["pipeline", "run", "d", "--interval-ms", "5"],
    ],
)
def test_what_makes_no_sense_is_status_2(run: Run, words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run(*words)
    assert ended.value.code == 2


def test_the_example_names_this_cluster_and_says_how_to_go_on(run: Run, tmp_path: Path) -> None:
    directory = tmp_path / "my shop"
    outcome = run("pipeline", "init", str(directory), "--bootstrap", "kafka:9092")
    project = Project.open(str(directory))
    hints = [line for line in outcome.lines if line.startswith("  ")]
    assert hints[0] == "  cordwood topics create orders large-orders --bootstrap kafka:9092"
    assert hints[1].endswith("| cordwood produce orders --key-separator : --bootstrap kafka:9092")
    assert hints[2] == f"  cordwood pipeline run '{directory}'"
    assert (project.name, project.group, project.bootstrap) == ("my-shop", "my-shop", "kafka:9092")
    assert project.spec.read_text().count(f"storage: {(directory / 'state').as_uri()}") == 1
    for path in directory.rglob("*.py"):
        compile(path.read_text(), str(path), "exec")


def test_commands_for_the_usual_broker_are_short(run: Run, tmp_path: Path) -> None:
    assert "--bootstrap" not in run("pipeline", "init", str(tmp_path / "shop")).out


def test_a_pipeline_is_not_written_over(run: Run, project: Project) -> None:
    expected = f"{project.root} has a pipeline already; `cordwood pipeline run {project.root}` runs it"
    assert refused(run("pipeline", "init", str(project.root)), expected)


@pytest.mark.parametrize("action", ["run", "watch", "status"])
def test_a_directory_without_a_pipeline_is_said_so(run: Run, tmp_path: Path, action: str) -> None:
    hint = f"`cordwood pipeline init {tmp_path}` makes one with an example"
    assert refused(run("pipeline", action, str(tmp_path)), f"{tmp_path} has no spark-pipeline.yml; {hint}")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("name: [", "is not YAML: while parsing a flow"),
        ("- 1", "has no settings; it needs name, storage and libraries at least"),
        ("configuration: {a: 5}", "a is 5, which is not text; put it in quotes"),
        ("configuration: 5", "configuration must be names with values"),
    ],
)
def test_what_is_wrong_with_a_specification_is_said(run: Run, project: Project, text: str, sentence: str) -> None:
    project.spec.write_text(text)
    outcome = run("pipeline", "run", str(project.root))
    assert outcome.status == 1
    assert sentence in outcome.err
    assert outcome.err.count("\n") == 1


def test_a_broker_that_is_away_is_noticed_before_spark_starts(run: Run, project: Project) -> None:
    outcome = run("pipeline", "run", str(project.root), "--bootstrap", "127.0.0.1:1")
    assert outcome.err.startswith("cordwood: no broker answers at 127.0.0.1:1 (connection refused)")
    assert not project.journal.exists()


def test_without_java_one_sentence_says_what_to_install(
    run: Run, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    sentence = (
        "Spark needs Java 17 or newer, and there is none: install it (Debian: apt install default-jre-headless; "
        "macOS: brew install openjdk)"
    )
    assert refused(run("pipeline", "run", str(project.root)), sentence)


def test_without_spark_one_sentence_says_what_to_install() -> None:
    expected = "Spark is not installed (no_such_package is missing); run: pip install 'cordwood[spark]'"
    assert missing_for_spark(["pyarrow", "no_such_package"]) == expected


def test_two_can_not_run_one_pipeline(run: Run, project: Project) -> None:
    with project.locked():
        outcome = run("pipeline", "run", str(project.root))
    hint = f"`cordwood pipeline status {project.root}` shows it"
    assert refused(outcome, f"the pipeline in {project.root} is running already; {hint}")


def test_a_pipeline_that_never_ran_has_no_status(run: Run, project: Project) -> None:
    expected = f"the pipeline has not run yet; `cordwood pipeline run {project.root}` runs it"
    assert refused(run("pipeline", "status", str(project.root)), expected)


def test_the_lag_is_the_clusters_of_now(run: Run, project: Project, topic: str) -> None:
    run("produce", topic, "--partition", "1", stdin="a\nb\nc\n")
    offsets = {topic: {"0": 0, "1": 1}}
    batch = {"kind": "batch", "flow": "orders", "rows": 50, "took_ms": 500, "end": offsets, "latest": offsets}
    write_journal(
        project,
        {"kind": "run", "state": "running"},
        {"kind": "flow", "state": "completed", "flow": "orders"},
        {**batch},
        {**batch, "batch": 1},
        {"kind": "flow", "state": "completed", "flow": "customers"},
        {"kind": "run", "state": "completed"},
    )
    outcome = run("pipeline", "status", str(project.root), "--no-plot")
    assert outcome.lines[0].startswith("shop: not running; its last run completed at ")
    assert [line.split() for line in outcome.lines[3:]] == [
        ["orders", "completed", "100", "2", "500", "ms", "2", "100"],
        ["customers", "completed", "-", "-", "-", "-", "-"],
    ]
    away = run("pipeline", "status", str(project.root), "--no-plot", "--bootstrap", "127.0.0.1:1")
    assert away.lines[3].split()[3] == "0"
    assert "The lag is the one of the last batch: " in away.out


def test_the_lag_is_read_as_the_specification_says(run: Run, project: Project, tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path, "server")
    server = TlsServer(certificate)
    configuration = {"security.protocol": "SSL", "ssl.ca.location": str(certificate.certificate)}
    lines = "".join(f"\n  {KAFKA_PREFIX}{name}: {value}" for name, value in configuration.items())
    project.spec.write_text(project.spec.read_text().replace("\nconfiguration:", f"\nconfiguration:{lines}"))
    offsets = {"t": {"0": 0}}
    write_journal(project, {"kind": "batch", "flow": "orders", "rows": 1, "end": offsets, "latest": offsets})
    with server, Broker(settings={"advertised.listeners": f"PLAINTEXT://{server.address}"}) as broker:
        server.lead_to(broker.port)
        settings = Project.open(str(project.root)).settings(server.address, client_id="me", timeout_ms=5_000)
        assert settings is not None
        with RawClient(settings) as client:
            client.topics(["t"], create=True)
            client.produce("t", {0: bytes(build([Record(0, 0, None, b"a"), Record(1, 0, None, b"b")]))})
        outcome = run("pipeline", "status", str(project.root), "--no-plot", "--bootstrap", server.address)
    assert outcome.lines[3].split()[:4] == ["orders", "-", "-", "2"], outcome


def test_the_plot_is_a_picture(run: Run, project: Project, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    write_journal(project, {"kind": "batch", "flow": "orders", "rows": 5, "rows_per_s": 2.5, "took_ms": 2000})
    outcome = run("pipeline", "status", str(project.root), "--plot", str(tmp_path / "plot.png"))
    assert outcome.lines[-1] == f"The plot is in {tmp_path / 'plot.png'}."
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_there_is_a_sentence_instead(
    run: Run, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    write_journal(project, {"kind": "batch", "flow": "orders", "rows": 5})
    outcome = run("pipeline", "status", str(project.root))
    assert outcome.status == 0
    assert outcome.err == "cordwood: there is no plot without matplotlib; run: pip install 'cordwood[plot]'\n"


def test_a_failed_run_says_why_and_where_to_look(run: Run, project: Project) -> None:
    write_journal(project, {"kind": "run", "state": "failed", "text": "customers: there is no table ordres"})
    outcome = run("pipeline", "status", str(project.root), "--no-plot")
    assert "The last run failed: customers: there is no table ordres" in outcome.lines
    assert f"All that Spark said is in {project.log}." in outcome.lines
