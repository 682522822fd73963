"""``cordwood pipeline``: init, run, watch and status of a pipeline's directory."""

import argparse
import os
import shlex
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from cordwood.client.connect import knock
from cordwood.client.raw import RawError
from cordwood.errors import ConfigError, ProtocolError
from cordwood.spark.pipelines import journal
from cordwood.spark.pipelines.example import TOPICS, write_example
from cordwood.spark.pipelines.journal import Tail
from cordwood.spark.pipelines.plot import write_plot
from cordwood.spark.pipelines.project import Project
from cordwood.spark.pipelines.status import Status, lags, status_of
from cordwood.spark.pipelines.worker import Order, Worker

from .options import BOOTSTRAP, positive
from .pipeline_view import View, state_line, table_rows
from .spark_ready import PIPELINE_PACKAGES, require_spark
from .table import print_table

LOOK_S = 0.2
REFRESH_S = 2.0
PLOT_EVERY = 5
CLEAR = "\x1b[H\x1b[J"


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    init = actions.add_parser(
        "init",
        help="write a small example to start from",
        description="Write a small example pipeline that works: topics and tables, SQL and Python, with comments.",
    )
    init.set_defaults(act=_init)

    run = actions.add_parser(
        "run",
        help="bring the pipeline's tables and topics up to date",
        description="Run the pipeline once: everything that is in its topics now goes through it.",
    )
    run.set_defaults(act=_run, watch=False, interval_ms=0)

    watch = actions.add_parser(
        "watch",
        help="keep the pipeline up to date, until Ctrl-C",
        description="Run the pipeline whenever its topics have something new or its files have changed. Ctrl-C ends it "
        "after the run that is under way, a second Ctrl-C at once.",
    )
    watch.add_argument(
        "--interval-ms",
        type=positive,
        default=1000,
        help="how often to check for something new; default: 1000",
    )
    watch.set_defaults(act=_run, watch=True, refresh=False)

    status = actions.add_parser(
        "status",
        help="show rows/s, lag and batch times",
        description="Show what each flow does and how far behind it is, and draw a plot. In a terminal the table is "
        "kept up to date until Ctrl-C.",
    )
    status.add_argument("--once", action="store_true", help="print the table once, also in a terminal")
    status.add_argument("--plot", metavar="FILE", help="where to put the plot, a PNG; default: DIR/status.png")
    status.add_argument("--no-plot", action="store_true", help="draw no plot")
    status.set_defaults(act=_status)

    for action in (init, run, watch, status):
        default = f"$CORDWOOD_BOOTSTRAP, or {BOOTSTRAP}" if action is init else "the specification's"
        action.add_argument("directory", metavar="DIR", help="the pipeline's directory")
        action.add_argument("--bootstrap", metavar="HOST:PORT", help=f"a broker of the cluster; default: {default}")
    for action in (run, watch):
        action.add_argument("--master", default="local[*]", help="Spark's master; default: local[*], this machine")
    run.add_argument(
        "--full-refresh", dest="refresh", action="store_true", help="empty the tables and process everything again"
    )


def run(arguments: argparse.Namespace) -> int:
    status: int = arguments.act(arguments)
    return status


def _init(arguments: argparse.Namespace) -> int:
    usual = os.environ.get("CORDWOOD_BOOTSTRAP", BOOTSTRAP)
    bootstrap = arguments.bootstrap or usual
    there = "" if bootstrap == usual else f" --bootstrap {shlex.quote(bootstrap)}"
    directory = arguments.directory
    for path in write_example(directory, bootstrap=bootstrap):
        print(f"wrote {os.path.relpath(path)}")
    print(
        f"\nTry it, with a broker at {bootstrap} (`cordwood serve` starts one):\n"
        f"  cordwood topics create {' '.join(TOPICS)}{there}\n"
        """  echo 'ada:{"item": "cake", "cents": 5500}' | cordwood produce orders --key-separator :"""
        f"{there}\n"
        f"  cordwood pipeline run {shlex.quote(directory)}"
    )
    return 0


def _run(arguments: argparse.Namespace) -> int:
    project = Project.open(arguments.directory)
    bootstrap = arguments.bootstrap or project.bootstrap
    if bootstrap is not None:
        knock(bootstrap)
    project.settings(bootstrap, client_id="", timeout_ms=1)  # report bad settings before Spark starts
    order = Order(
        directory=str(project.root),
        watch=arguments.watch,
        bootstrap=arguments.bootstrap,
        refresh=arguments.refresh,
        master=arguments.master,
        interval_ms=arguments.interval_ms,
    )
    with project.locked() as lock, _interrupts() as interrupts:
        require_spark(PIPELINE_PACKAGES)  # last of all: a typo is corrected sooner than something is installed
        tail = Tail(project.journal, from_end=True)
        worker = Worker(project, order, lock=lock)
        try:
            return _follow(worker, tail, View(project, watch=arguments.watch), interrupts)
        finally:
            worker.end()


class _Interrupts:
    """How often somebody has asked us to end."""

    def __init__(self) -> None:
        self.count = 0

    def take(self, number: int, frame: FrameType | None) -> None:
        self.count += 1


@contextmanager
def _interrupts() -> Iterator[_Interrupts]:
    """Count Ctrl-C and SIGTERM instead of ending at once, as far as this is the main thread."""
    interrupts = _Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    before = {number: signal.signal(number, interrupts.take) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupts
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _follow(worker: Worker, tail: Tail, view: View, interrupts: _Interrupts) -> int:
    """Show what happens until it is over; returns the command's status."""
    asked = False
    while (ended := worker.wait(LOOK_S)) is None:
        for entry in tail.new():
            view.take(entry)
        if interrupts.count and (asked or not view.can_finish):
            worker.end()
            view.stopped()
            return 0 if view.watch else 128 + signal.SIGINT
        if interrupts.count:
            asked, interrupts.count = True, 0
            worker.finish()
            view.finishing()
        view.tick()
    for entry in tail.new():
        view.take(entry)
    return view.ended(ended)


def _status(arguments: argparse.Namespace) -> int:
    project = Project.open(arguments.directory)
    if not project.journal.exists():
        raise ConfigError(f"the pipeline has not run yet; `cordwood pipeline run {arguments.directory}` runs it")
    plot = None if arguments.no_plot else Path(arguments.plot or project.root / "status.png")
    if arguments.once or not sys.stdout.isatty():
        _show(project, arguments.bootstrap)
        _draw(project, plot)
        return 0
    interrupted = threading.Event()
    with _interrupts() as interrupts:
        rounds = 0
        while not interrupts.count:
            print(CLEAR, end="")
            _show(project, arguments.bootstrap)
            if rounds % PLOT_EVERY == 0:
                plot = _draw(project, plot)
            rounds += 1
            interrupted.wait(REFRESH_S)
    return 0


def _show(project: Project, bootstrap: str | None) -> None:
    status = status_of(journal.read(project.journal))
    lag, trouble = _lags(project, status, bootstrap)
    print(state_line(project.name, status, is_running=project.is_running()))
    if status.flows:
        print()
        print_table(["flow", "state", "rows/s", "lag", "batch time", "batches", "rows"], table_rows(status, lag))
    if status.run == journal.FAILED and status.text:
        print(f"\nThe last run failed: {status.text}\nAll that Spark said is in {project.log}.")
    if trouble:
        print(f"\nThe lag is the one of the last batch: {trouble}")


def _lags(project: Project, status: Status, bootstrap: str | None) -> tuple[dict[str, int], str]:
    """How far behind each flow is, and why that is not up to date, if it is not."""
    reading = [flow for flow in status.flows.values() if flow.end]
    at_last = {flow.name: flow.batches[-1].lag for flow in reading}
    settings = project.settings(bootstrap, client_id="cordwood-status", timeout_ms=3000)
    if settings is None or not reading:
        return at_last, "" if not reading else "the specification names no broker; --bootstrap does"
    try:
        return lags(reading, settings), ""
    except (RawError, ProtocolError) as error:
        return at_last, str(error)


def _draw(project: Project, plot: Path | None) -> Path | None:
    """Draw the plot, if one is wanted and there is something to draw; None if there never will be."""
    if plot is None:
        return None
    status = status_of(journal.read(project.journal))
    if not any(flow.is_stream for flow in status.flows.values()):
        return plot
    try:
        write_plot(status.flows.values(), project.name, plot)
    except ConfigError as error:
        print(f"cordwood: {error}", file=sys.stderr)
        return None
    print(f"\nThe plot is in {plot}.")
    return plot
