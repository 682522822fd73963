"""What a person sees of a pipeline: a moving line while it runs, a few lines when it is done, a table at any time."""

import sys
import time
from datetime import datetime

from cordwood.spark.pipelines import journal
from cordwood.spark.pipelines.journal import Entry, Offsets, distance
from cordwood.spark.pipelines.project import Project
from cordwood.spark.pipelines.status import Flow, Status

from .drawing import gauge, one_line

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
LINE = "\r\x1b[K"


class Catchup:
    """How far the streams of a run have come towards the ends of their topics."""

    def __init__(self) -> None:
        self._begins: dict[str, Offsets] = {}
        self._last: dict[str, Entry] = {}

    def take(self, entry: Entry) -> None:
        self._begins.setdefault(entry.flow, entry.begin)
        self._last[entry.flow] = entry

    @property
    def done(self) -> int:
        return sum(distance(self._begins[flow], last.end) for flow, last in self._last.items())

    @property
    def total(self) -> int:
        ahead = sum(distance(last.end, last.latest) for last in self._last.values())
        return self.done + ahead

    def text(self, elapsed_s: float) -> str:
        """
        >>> catchup = Catchup()
        >>> catchup.take(Entry("batch", 0, flow="f", end={"t": {"0": 5}}, latest={"t": {"0": 20}}))
        >>> catchup.text(2)
        '██████░░░░░░░░░░░░░░░░░░  25 %  5 of 20 records, 2/s'
        """
        share = self.done / self.total if self.total else 1.0
        rate = self.done / max(elapsed_s, 0.001)
        return (
            f"{gauge(share)} {share:4.0%}".replace("%", " %")
            + f"  {self.done:,} of {self.total:,} records, {rate:,.0f}/s"
        )


class View:
    """Shows one run, or one after another."""

    def __init__(self, project: Project, *, watch: bool) -> None:
        self.watch = watch
        self._project = project
        self._visible = sys.stderr.isatty()
        self._session = journal.STARTING
        self._started_s = time.monotonic()
        self._turn = 0
        self._new_run()

    def _new_run(self) -> None:
        self._status = Status()
        self._catchup = Catchup()
        self._run_s = time.monotonic()

    @property
    def can_finish(self) -> bool:
        """Is it worthwhile to wait for the end of a run?"""
        return self.watch

    def take(self, entry: Entry) -> None:
        if entry.kind == journal.SESSION:
            self._session = entry.state
            return
        if entry.kind == journal.RUN and entry.state == journal.RUNNING:
            self._new_run()
        self._status.take(entry)
        if entry.kind == journal.BATCH and entry.end:
            self._catchup.take(entry)
        if entry.kind == journal.RUN and entry.state in (journal.COMPLETED, journal.FAILED):
            self._finished(entry)

    def _finished(self, entry: Entry) -> None:
        self._clear()
        if entry.state == journal.FAILED:
            if self.watch:
                print(f"{_clock(entry)}  the run failed, and will be tried again: {entry.text}", flush=True)
        elif self.watch:
            if line := watch_line(self._status):
                print(f"{_clock(entry)}  {line}", flush=True)
        else:
            for flow in self._status.flows.values():
                print(run_line(flow))
            start_s, took_s = self._run_s - self._started_s, time.monotonic() - self._started_s
            print(f"Done in {took_s:.0f} s, of which Spark took {start_s:.0f} s to start.")

    def tick(self) -> None:
        """Update the moving line."""
        if not self._visible:
            return
        self._turn += 1
        print(
            f"{LINE}{one_line(f'{SPINNER[self._turn % len(SPINNER)]} {self._text()}')}",
            end="",
            file=sys.stderr,
            flush=True,
        )

    def _text(self) -> str:
        now_s = time.monotonic()
        if self._session == journal.STARTING:
            return f"starting Spark, {now_s - self._started_s:.0f} s"
        if self._status.run == journal.RUNNING:
            return self._run_text(now_s - self._run_s)
        if not self.watch or self._session == journal.STOPPED:
            return "stopping Spark"
        if self._status.run == journal.FAILED:
            return "waiting to try again (Ctrl-C ends)"
        return "up to date; waiting for records (Ctrl-C ends)"

    def _run_text(self, elapsed_s: float) -> str:
        if self._catchup.done < self._catchup.total:
            return self._catchup.text(elapsed_s)
        busy = [flow.name for flow in self._status.flows.values() if flow.state == journal.RUNNING]
        return f"running {', '.join(busy) or 'the pipeline'}, {elapsed_s:.0f} s"

    def _clear(self) -> None:
        if self._visible:
            print(LINE, end="", file=sys.stderr, flush=True)

    def finishing(self) -> None:
        self._clear()
        if self._status.run == journal.RUNNING:
            print("Ending after this run; Ctrl-C again ends it at once.", file=sys.stderr, flush=True)

    def stopped(self) -> None:
        self._clear()
        print("Stopped. The next run goes on where this one was.", file=sys.stderr, flush=True)

    def ended(self, status: int) -> int:
        """The process has ended by itself; returns our status."""
        self._clear()
        if self._status.run == journal.FAILED and not self.watch:
            print(f"cordwood: the run failed: {self._status.text}", file=sys.stderr)
            print(f"All that Spark said is in {self._project.log}.", file=sys.stderr)
            return 1
        if status != 0:
            print(f"cordwood: Spark did not get far; {_last_words(self._project)}", file=sys.stderr)
            return 1
        return 0


def _last_words(project: Project) -> str:
    lines = [line.strip() for line in project.log.read_text("utf-8", "replace").splitlines() if line.strip()]
    return f"it said: {lines[-1][:300]}; all of it is in {project.log}" if lines else "it said nothing"


def _clock(entry: Entry) -> str:
    return datetime.fromtimestamp(entry.time_ms / 1000).strftime("%H:%M:%S")


def watch_line(status: Status) -> str:
    """What a run did, on one line; nothing if it did nothing.

    >>> status = Status({"orders": Flow("orders", batches=[Entry("batch", 0, rows=1200, took_ms=500)])})
    >>> watch_line(status)
    'orders +1,200 rows in 0.5 s'
    """
    parts = [
        f"{flow.name} +{flow.rows:,} row{'s' * (flow.rows != 1)} in {flow.took_ms / 1000:.1f} s"
        for flow in status.flows.values()
        if flow.rows
    ]
    return ", ".join(parts)


def run_line(flow: Flow) -> str:
    """What a run did for one flow."""
    if not flow.is_stream:
        return f"{flow.name}: {flow.state or 'nothing to do'}"
    batches = f"{len(flow.batches)} batch{'es' * (len(flow.batches) != 1)}"
    rate = f", {flow.rows_per_s:,.0f} rows/s" if flow.rows_per_s is not None else ""
    lag = f", lag {flow.batches[-1].lag:,}" if flow.end else ""
    return f"{flow.name}: {flow.rows:,} rows in {batches}{rate}{lag}"


def state_line(name: str, status: Status, *, is_running: bool) -> str:
    when = datetime.fromtimestamp(status.run_ms / 1000).strftime("%Y-%m-%d %H:%M:%S") if status.run_ms else ""
    if is_running:
        doing = (
            "starting"
            if status.session == journal.STARTING
            else ("running" if status.run == journal.RUNNING else "waiting for records")
        )
        return f"{name}: {doing}" + (f" since {when}" if when and doing != "starting" else "")
    if status.run in (journal.RUNNING, journal.STOPPED):
        return f"{name}: not running; its last run, at {when}, was stopped"
    return f"{name}: not running; its last run {status.run or 'began'} at {when}"


def table_rows(status: Status, lag: dict[str, int]) -> list[list[str]]:
    return [
        [
            flow.name,
            flow.state or "-",
            f"{flow.rows_per_s:.0f}" if flow.rows_per_s is not None else "-",
            str(lag[flow.name]) if flow.name in lag else "-",
            f"{flow.batch_ms:.0f} ms" if flow.batch_ms is not None else "-",
            str(len(flow.batches)) if flow.is_stream else "-",
            str(flow.rows) if flow.is_stream else "-",
        ]
        for flow in status.flows.values()
    ]
