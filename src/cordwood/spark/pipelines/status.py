"""What a journal says about each flow: pure, except for ``lags``, which asks the cluster."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from cordwood.client.raw import LATEST, RawClient, RawSettings

from . import journal
from .journal import Entry, Offsets, distance

RECENT = 10
"""How many micro-batches rates are based on."""


@dataclass(slots=True)
class Flow:
    """One of a pipeline's flows: what fills a table or a sink."""

    name: str
    state: str = ""
    text: str = ""
    batches: list[Entry] = field(default_factory=list)
    changed_ms: int = 0

    @property
    def is_stream(self) -> bool:
        return bool(self.batches)

    @property
    def rows(self) -> int:
        return sum(entry.rows for entry in self.batches)

    @property
    def took_ms(self) -> int:
        return sum(entry.took_ms for entry in self.batches)

    @property
    def rows_per_s(self) -> float | None:
        """The rate over the last micro-batches that had rows, while they ran."""
        recent = [entry for entry in self.batches if entry.rows][-RECENT:]
        took_ms = sum(entry.took_ms for entry in recent)
        return sum(entry.rows for entry in recent) * 1000 / took_ms if took_ms else None

    @property
    def batch_ms(self) -> float | None:
        recent = self.batches[-RECENT:]
        return sum(entry.took_ms for entry in recent) / len(recent) if recent else None

    @property
    def end(self) -> Offsets:
        """Up to where the flow has read its topics."""
        return self.batches[-1].end if self.batches else {}


@dataclass(slots=True)
class Status:
    """What is known about a pipeline."""

    flows: dict[str, Flow] = field(default_factory=dict)
    session: str = ""
    """What the process is doing, according to its last report."""
    run: str = ""
    """The state of the last run."""
    text: str = ""
    """Why it failed."""
    run_ms: int = 0
    runs: int = 0

    def take(self, entry: Entry) -> None:
        match entry.kind:
            case journal.SESSION:
                self.session = entry.state
            case journal.RUN:
                self.run, self.text, self.run_ms = entry.state, entry.text, entry.time_ms
                self.runs += entry.state == journal.COMPLETED
            case journal.FLOW:
                flow = self._flow(entry)
                flow.state, flow.text = entry.state, entry.text
            case journal.BATCH:
                self._flow(entry).batches.append(entry)

    def _flow(self, entry: Entry) -> Flow:
        flow = self.flows.setdefault(entry.flow, Flow(entry.flow))
        flow.changed_ms = entry.time_ms
        return flow


def status_of(entries: Iterable[Entry]) -> Status:
    status = Status()
    for entry in entries:
        status.take(entry)
    return status


def lags(flows: Iterable[Flow], settings: RawSettings) -> dict[str, int]:
    """How many records each flow has still to read, as the cluster knows it now.

    Raises:
        RawError: the cluster does not answer.
    """
    readers = [flow for flow in flows if flow.end]
    if not readers:
        return {}
    latest = latest_offsets([flow.end for flow in readers], settings)
    return {
        flow.name: distance(flow.end, {topic: latest[topic] for topic in flow.end if topic in latest})
        for flow in readers
    }


def latest_offsets(known: Iterable[Mapping[str, object]], settings: RawSettings) -> Offsets:
    """Where all partitions of these topics end; topics that are gone are left out."""
    names = sorted({topic for offsets in known for topic in offsets})
    with RawClient(settings) as client:
        topics = client.topics(names)
        wanted = {(name, number): LATEST for name, meta in topics.items() for number in meta.partitions}
        found: Offsets = {name: {} for name in topics}
        for (name, number), (offset, _) in client.offsets(wanted).items():
            found[name][str(number)] = offset
    return found
