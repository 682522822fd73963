"""The group machine without broker and log: a test calls handlers and gets answers, all in one call.

Records are encoded, kept and applied in the order of the outcomes. ``reload`` makes a new machine of them, the way a
restart does, after some of them were compacted; ``fail_next_write`` refuses the next outcome that has records.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar

from broker.harness import START, Lines
from cordwood.cluster.image import MetadataImage, PartitionInfo, TopicInfo
from cordwood.config import BrokerConfig
from cordwood.coordinator.outcome import Gathers, Outcome
from cordwood.errors import Refused
from cordwood.group.machine import GroupMachine
from cordwood.group.state import GroupState
from cordwood.ids import NodeId, TopicId, TopicName
from cordwood.ports import Instant
from cordwood.wire.frame import Encoded

R = TypeVar("R")
Stored = tuple[bytes, bytes | None]
Handler = Callable[[GroupState, Any, "Asker", Instant], Outcome]


@dataclass(slots=True)
class Asker:
    """One who asked, and what became of it."""

    client_id: str = "test"
    client_host: str = "/127.0.0.1"
    api_version: int = 0
    answers: list[object] = field(default_factory=list)

    def reply(self, response: object, /) -> None:
        assert not self.answers, "answered twice"
        self.answers.append(response.message if isinstance(response, Encoded) else response)

    def refuse(self, refusal: Refused, /) -> None:
        self.reply(refusal)

    @property
    def waits(self) -> bool:
        return not self.answers

    def take(self, cls: type[R]) -> R:
        """The answer, which must be there and of this type."""
        assert self.answers, "no answer yet"
        (answer,) = self.answers
        assert isinstance(answer, cls), answer
        return answer


class GroupHarness:
    """A machine, its records, and a clock that stands still until ``advance``."""

    def __init__(self, **settings: object) -> None:
        """*settings* are the broker's, with ``_`` for ``.``"""
        self.config = BrokerConfig.parse({name.replace("_", "."): str(value) for name, value in settings.items()})
        self.image = MetadataImage()
        self.random = Random(7)
        self._compaction = Random(8)
        self.logger = Lines()
        self.now = START
        self.stored: list[Stored] = []
        self._write_error: Refused | None = None
        self._gathered: list[Outcome] | None = None
        self.machine = self._new_machine()

    def _new_machine(self) -> GroupMachine:
        return GroupMachine(
            GroupState(config=lambda: self.config, image=self.image, entropy=self.random, logger=self.logger)
        )

    @property
    def state(self) -> GroupState:
        return self.machine.state

    def call(self, handler: Handler, request: object, version: int, client_id: str = "test") -> Asker:
        """Ask; the answer may come later."""
        asker = Asker(client_id=client_id, api_version=version)
        try:
            outcome = handler(self.state, request, asker, self.now)
        except Refused as refusal:
            asker.refuse(refusal)
            return asker
        self.finish(outcome)
        return asker

    def ask(self, handler: Handler, request: object, version: int, cls: type[R]) -> R:
        """Ask; the answer must come at once."""
        return self.call(handler, request, version).take(cls)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Whatever gathers inside is written when it ends, or refused: answers come no sooner."""
        self._gathered = []
        try:
            yield
        finally:
            gathered, self._gathered = self._gathered, None
            refusal, self._write_error = self._write_error, None
            if refusal is not None:
                self.machine.abandon()
            for outcome in gathered:
                if refusal is not None:
                    self._fail(outcome, refusal)
                else:
                    self.stored += map(self.machine.encode, outcome.records)
            self.machine.adopt()
            for outcome in gathered if refusal is None else ():
                self._answer(outcome)
            self.machine.check()

    def _answer(self, outcome: Outcome) -> None:
        for caller, response in outcome.replies:
            caller.reply(response)

    def finish(self, outcome: Outcome) -> None:
        if self._gathered is not None and outcome.gathers is Gathers.AHEAD:
            self._gathered.append(outcome)
            self.machine.check()
            return
        if outcome.records and self._write_error is not None:
            refusal, self._write_error = self._write_error, None
            self.machine.abandon()
            self._fail(outcome, refusal)
        else:
            for record in outcome.records:
                self.stored.append(self.machine.encode(record))
                if outcome.gathers is not Gathers.AHEAD:
                    self.machine.apply(record)
            if self._gathered is None:
                self.machine.adopt()
            self._answer(outcome)
        self.machine.check()
        self.machine.deadlines.check()

    def _fail(self, outcome: Outcome, refusal: Refused) -> None:
        if outcome.failed is not None:
            outcome.failed(refusal)
            return
        for caller, _ in outcome.replies:
            caller.refuse(refusal)

    def fail_next_write(self, refusal: Refused) -> None:
        self._write_error = refusal

    def advance(self, ms: int) -> None:
        """Let time pass, deadline by deadline."""
        end = self.now.mono_ms + ms
        while (earliest := self.machine.deadlines.earliest()) is not None and earliest <= end:
            self._pass(max(earliest - self.now.mono_ms, 0))
            while (key := self.machine.deadlines.pop_due(self.now.mono_ms)) is not None:
                self.finish(self.machine.expired(key, self.now))
        self._pass(end - self.now.mono_ms)

    def _pass(self, ms: int) -> None:
        self.now = Instant(self.now.wall_ms + ms, self.now.mono_ms + ms)

    def reload(self) -> None:
        """Forget everything and load it from the records, as a restart or a new leader does."""
        self.machine = self.reloaded()
        self.finish(self.machine.loaded(self.now))

    def reloaded(self) -> GroupMachine:
        """Another machine of the same records, before it serves."""
        machine = self._new_machine()
        for key, value in self._compacted():
            record = machine.decode(key, value)
            if record is not None:
                machine.apply(record)
        machine.check()
        return machine

    def _compacted(self) -> list[Stored]:
        """The records as a cleaner leaves them that got to some place, and to another one with tombstones."""
        cleaned_to = self._compaction.choice([0, self._compaction.randint(0, len(self.stored)), len(self.stored)])
        dropped_to = self._compaction.randint(0, cleaned_to)
        newest = {key: place for place, (key, _) in enumerate(self.stored[:cleaned_to])}
        kept = [place for place in newest.values() if place >= dropped_to or self.stored[place][1] is not None]
        return [*(self.stored[place] for place in sorted(kept)), *self.stored[cleaned_to:]]

    def topic(self, name: str, partitions: int = 1) -> TopicId:
        """Let the metadata have a topic with so many partitions."""
        node = NodeId(1)
        known = self.image.topics.get(TopicName(name))
        topic_id = known.id if known is not None else TopicId(self.state.new_uuid())
        self.image.topics[TopicName(name)] = TopicInfo(
            TopicName(name), topic_id, [PartitionInfo(index, (node,), node, 0, (node,)) for index in range(partitions)]
        )
        self.image.topic_names[topic_id] = TopicName(name)
        return topic_id

    def drop_topic(self, name: str) -> None:
        del self.image.topic_names[self.image.topics.pop(TopicName(name)).id]
