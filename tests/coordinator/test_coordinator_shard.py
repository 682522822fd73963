"""A shard over the smallest state machine there is: names and numbers."""

from dataclasses import dataclass, field
from random import Random
from uuid import UUID

from broker.harness import Lines
from cordwood.config import TopicConfig
from cordwood.coordinator.deadlines import Deadlines
from cordwood.coordinator.outcome import Gathers, Outcome, answer
from cordwood.coordinator.shard import COMMIT_TIMEOUT_MS, DUE_AT_ONCE, GATHERED_MAX, Shard, ShardState
from cordwood.coordinator.state_record import StateRecord
from cordwood.errors import CorruptData, Error, Refused
from cordwood.ids import NodeId, TopicId, TopicName, TopicPartition
from cordwood.log.recovery import open_log
from cordwood.partition.partition import Partition
from cordwood.ports import Instant
from cordwood.record.batch import batches
from cordwood.record.build import Record, build, build_values
from cordwood.sim.disk import SimDisk

NOW = Instant(1000, 1000)
ONE = NodeId(1)


class Numbers:
    """A state machine that remembers a number for each name."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.deadlines: Deadlines[object] = Deadlines()
        self.expired_keys: list[object] = []
        self.times_loaded = 0
        self.waiting: list[Asker] = []
        self.ahead: dict[str, int] = {}

    def encode(self, record: StateRecord, /) -> tuple[bytes, bytes | None]:
        value = record.value
        return str(record.key).encode(), None if value is None else str(value).encode()

    def decode(self, key: bytes, value: bytes | None, /) -> StateRecord | None:
        if key == b"?":
            return None
        try:
            return StateRecord(key.decode(), None if value is None else int(value))
        except ValueError as error:
            raise CorruptData("no number") from error

    def apply(self, record: StateRecord, /) -> None:
        assert isinstance(record.key, str)
        if record.value is None:
            self.numbers.pop(record.key, None)
        else:
            assert isinstance(record.value, int)
            self.numbers[record.key] = record.value

    def add_ahead(self, name: str, caller: "Asker") -> Outcome:
        """One more than was decided last; that is the answer."""
        number = self.ahead.get(name, self.numbers.get(name, 0)) + 1
        self.ahead[name] = number
        return Outcome([StateRecord(name, number)], [(caller, number)], gathers=Gathers.AHEAD)

    def adopt(self) -> None:
        self.numbers |= self.ahead
        self.ahead = {}

    def abandon(self) -> None:
        self.ahead = {}

    def loaded(self, now: Instant, /) -> Outcome:
        self.times_loaded += 1
        return Outcome()

    def expired(self, key: object, now: Instant, /) -> Outcome:
        self.expired_keys.append(key)
        return Outcome([StateRecord(key, None)])

    def ended(self) -> Outcome:
        return Outcome(replies=[(caller, "over") for caller in self.waiting])

    def check(self) -> None:
        pass


@dataclass(slots=True)
class Asker:
    client_id: str = ""
    client_host: str = ""
    api_version: int = 0
    answers: list[object] = field(default_factory=list)

    def reply(self, response: object, /) -> None:
        self.answers.append(response)

    def refuse(self, refusal: Refused, /) -> None:
        self.answers.append(refusal.error)


class World:
    """A partition on a simulated disk, and shards over it."""

    def __init__(self, **config: str) -> None:
        settings = TopicConfig.parse({name.replace("_", "."): text for name, text in config.items()})
        self.disk = SimDisk(Random(1))
        log = open_log(self.disk, "t-0", settings, now=NOW)
        self.partition = Partition(TopicPartition(TopicName("t"), 0), TopicId(UUID(int=1)), log, ONE)
        self.partition.become(leader=ONE, epoch=0, isr=(ONE,))
        self.wanted_syncs = 0
        self.logger = Lines()

    def shard(self) -> tuple[Shard, Numbers]:
        machine = Numbers()
        shard = Shard(
            self.partition, machine, self.logger, record_bytes_max=1 << 20, want_sync=lambda _: self._want_sync()
        )
        return shard, machine

    def _want_sync(self) -> None:
        self.wanted_syncs += 1

    def loaded(self) -> tuple[Shard, Numbers]:
        shard, machine = self.shard()
        while shard.state is ShardState.LOADING:
            shard.load_slice(NOW)
        shard.check()
        return shard, machine

    def sync(self) -> None:
        job = self.partition.log.files_to_sync()
        self.partition.log.synced(job, NOW)
        self.partition.commit(job.up_to)


def put(shard: Shard, name: str, number: int | None, response: object = "done") -> Asker:
    asker = Asker()
    shard.handle(asker, lambda: answer(asker, response, StateRecord(name, number)), NOW)
    return asker


def test_records_change_the_state_and_the_reply_follows() -> None:
    shard, machine = World().loaded()
    assert put(shard, "a", 1).answers == ["done"]
    assert machine.numbers == {"a": 1}
    shard.check()


def test_loading_gives_the_same_state() -> None:
    world = World()
    shard, machine = world.loaded()
    for number in range(100):
        put(shard, f"n{number % 30}", number if number % 7 else None)
    again, loaded = world.loaded()
    assert loaded.numbers == machine.numbers
    assert loaded.times_loaded == 1
    assert again.applied_end == shard.applied_end


def test_a_large_log_is_loaded_in_slices() -> None:
    world = World()
    shard, machine = world.loaded()
    for number in range(40):
        put(shard, "x" * 9000 + str(number), number)
    again, loaded = world.shard()
    slices = 0
    while again.load_slice(NOW):
        slices += 1
        assert again.state is ShardState.LOADING
        asker = put(again, "a", 1)
        assert asker.answers == [Error.COORDINATOR_LOAD_IN_PROGRESS]
    assert slices > 3
    assert loaded.numbers == machine.numbers


def test_a_reply_waits_until_its_records_are_synced() -> None:
    world = World(flush_messages="1")
    shard, machine = world.loaded()
    asker = put(shard, "a", 1)
    assert machine.numbers == {"a": 1}
    assert asker.answers == []
    assert world.wanted_syncs == 1
    shard.check()
    world.sync()
    assert asker.answers == ["done"]
    assert not world.partition.watchers


def test_nobody_is_told_of_what_is_not_committed() -> None:
    world = World(flush_messages="1")
    shard, machine = world.loaded()
    put(shard, "a", 1)
    reader = Asker()
    shard.handle(reader, lambda: answer(reader, machine.numbers["a"]), NOW)
    assert reader.answers == []
    world.sync()
    assert reader.answers == [1]


def test_who_waits_when_the_leadership_goes_is_sent_away() -> None:
    world = World(flush_messages="1")
    shard, _ = world.loaded()
    asker = put(shard, "a", 1)
    shard.end()
    assert asker.answers == [Error.NOT_COORDINATOR]
    assert put(shard, "a", 1).answers == [Error.NOT_COORDINATOR]
    assert not world.partition.watchers


def test_who_waits_for_the_machine_itself_is_told_too() -> None:
    shard, machine = World().loaded()
    machine.waiting.append(Asker())
    shard.end()
    assert machine.waiting[0].answers == ["over"]


def test_a_write_that_fails_changes_nothing() -> None:
    world = World()
    shard, machine = world.loaded()
    put(shard, "a", 1)
    world.disk.kill()
    assert put(shard, "a", 2).answers == [Error.COORDINATOR_NOT_AVAILABLE]
    assert machine.numbers == {"a": 1}
    assert "could not be written" in world.logger


def test_an_outcome_may_see_to_its_failure_itself() -> None:
    world = World()
    shard, _ = world.loaded()
    world.disk.kill()
    told: list[Error] = []
    asker = Asker()
    outcome = Outcome([StateRecord("a", 1)], [(asker, "done")], lambda refusal: told.append(refusal.error))
    shard.finish(outcome, NOW)
    assert told == [Error.COORDINATOR_NOT_AVAILABLE]
    assert asker.answers == []


def test_a_change_that_is_too_large_is_refused() -> None:
    shard, machine = World(max_message_bytes="1000").loaded()
    assert put(shard, "x" * 2000, 1).answers == [Error.RECORD_LIST_TOO_LARGE]
    assert machine.numbers == {}


def test_without_leadership_nothing_is_written() -> None:
    world = World()
    shard, machine = world.loaded()
    world.partition.become(leader=NodeId(2), epoch=1, isr=(NodeId(2),))
    assert put(shard, "a", 1).answers == [Error.NOT_COORDINATOR]
    assert machine.numbers == {}


def test_deadlines_that_have_come_are_dealt_with() -> None:
    shard, machine = World().loaded()
    put(shard, "a", 1)
    put(shard, "b", 2)
    machine.deadlines.set("a", 1500)
    machine.deadlines.set("b", 2500)
    shard.run_due(Instant(2000, 2000))
    assert machine.expired_keys == ["a"]
    assert machine.numbers == {"b": 2}


def test_very_many_deadlines_are_dealt_with_in_several_goes() -> None:
    shard, machine = World().loaded()
    for number in range(DUE_AT_ONCE + 1):
        machine.deadlines.set(str(number), 1500)
    shard.run_due(Instant(2000, 2000))
    assert len(machine.expired_keys) == DUE_AT_ONCE
    shard.run_due(Instant(2000, 2000))
    assert len(machine.expired_keys) == DUE_AT_ONCE + 1


def test_records_that_make_no_sense_end_the_shard() -> None:
    world = World()
    shard, _ = world.loaded()
    put(shard, "a", 1)
    world.partition.append(memoryview(_batch(b"b", b"no number")), required_acks=-1, now=NOW)
    again, _ = world.shard()
    again.load_slice(NOW)
    assert again.state is ShardState.OVER
    assert "cannot be loaded" in world.logger


def test_kinds_of_records_that_nobody_knows_are_passed_over() -> None:
    world = World()
    world.partition.append(memoryview(_batch(b"?", b"anything")), required_acks=-1, now=NOW)
    world.partition.append(memoryview(build_values([b"without a key"])), required_acks=-1, now=NOW)
    shard, machine = world.loaded()
    assert put(shard, "a", 1).answers == ["done"]
    assert machine.numbers == {"a": 1}


def _batch(key: bytes, value: bytes) -> bytearray:
    return build([Record(0, NOW.wall_ms, key, value)])


def gather(shard: Shard, name: str, number: int, response: object = "done") -> Asker:
    asker = Asker()
    shard.gather(Outcome([StateRecord(name, number)], [(asker, response)], gathers=Gathers.BY_KEY), NOW)
    shard.check()
    return asker


def _batches(world: World) -> int:
    log = world.partition.log
    found = log.read(log.log_start_offset, 1 << 20, up_to_offset=log.end_offset)
    return len(list(batches(memoryview(found.read())))) if found is not None else 0


def test_what_has_gathered_is_written_as_one_batch() -> None:
    world = World()
    shard, machine = world.loaded()
    askers = [gather(shard, "a", 1), gather(shard, "b", 2), gather(shard, "a", 3)]
    assert machine.numbers == {}
    assert [asker.answers for asker in askers] == [[], [], []]
    shard.write_gathered(NOW)
    assert machine.numbers == {"a": 3, "b": 2}
    assert [asker.answers for asker in askers] == [["done"], ["done"], ["done"]]
    assert _batches(world) == 1
    assert world.loaded()[1].numbers == machine.numbers


def test_only_the_first_that_gathers_says_so() -> None:
    shard, _ = World().loaded()
    outcome = Outcome([StateRecord("a", 1)], gathers=Gathers.BY_KEY)
    assert shard.gather(outcome, NOW)
    assert not shard.gather(outcome, NOW)
    shard.write_gathered(NOW)
    assert shard.gather(outcome, NOW)


def test_an_outcome_that_does_not_gather_comes_after_those_that_did() -> None:
    shard, machine = World().loaded()
    first, second = gather(shard, "a", 1), Asker()
    assert not shard.gather(answer(second, "plain", StateRecord("a", 2)), NOW)
    assert (first.answers, second.answers) == (["done"], ["plain"])
    assert machine.numbers == {"a": 2}


def test_a_handler_sees_what_has_gathered() -> None:
    shard, machine = World().loaded()
    gather(shard, "a", 1)
    reader = Asker()
    shard.handle(reader, lambda: answer(reader, machine.numbers["a"]), NOW)
    assert reader.answers == [1]


def test_a_deadline_finds_what_has_gathered() -> None:
    shard, machine = World().loaded()
    machine.deadlines.set("a", 1500)
    gather(shard, "a", 1)
    shard.run_due(Instant(2000, 2000))
    assert machine.expired_keys == ["a"]
    assert machine.numbers == {}


def test_all_that_has_gathered_is_refused_if_it_can_not_be_written() -> None:
    world = World()
    shard, machine = world.loaded()
    askers = [gather(shard, "a", 1), gather(shard, "b", 2)]
    world.disk.kill()
    shard.write_gathered(NOW)
    assert [asker.answers for asker in askers] == 2 * [[Error.COORDINATOR_NOT_AVAILABLE]]
    assert machine.numbers == {}


def test_what_is_too_much_for_one_batch_has_several() -> None:
    world = World(max_message_bytes="1000")
    shard, machine = world.loaded()
    names = ["x" * 600, "y" * 2000, "z" * 600]
    askers = [gather(shard, name, number) for number, name in enumerate(names)]
    shard.write_gathered(NOW)
    assert [asker.answers for asker in askers] == [["done"], [Error.RECORD_LIST_TOO_LARGE], ["done"]]
    assert machine.numbers == {names[0]: 0, names[2]: 2}
    assert _batches(world) == 2


def test_of_several_changes_of_one_key_the_last_is_written() -> None:
    world = World()
    shard, machine = world.loaded()
    askers = [gather(shard, "a", number) for number in range(5)] + [gather(shard, "b", 7)]
    shard.write_gathered(NOW)
    assert [asker.answers for asker in askers] == 6 * [["done"]]
    assert machine.numbers == {"a": 4, "b": 7}
    assert world.partition.log.end_offset == 2
    assert world.loaded()[1].numbers == machine.numbers


def test_very_much_does_not_wait_for_more() -> None:
    shard, machine = World().loaded()
    for number in range(GATHERED_MAX + 1):
        gather(shard, str(number), number)
    assert len(machine.numbers) == GATHERED_MAX


def test_replies_to_what_has_gathered_wait_for_the_sync() -> None:
    world = World(flush_messages="1")
    shard, _ = world.loaded()
    askers = [gather(shard, "a", 1), gather(shard, "b", 2)]
    shard.write_gathered(NOW)
    shard.check()
    assert [asker.answers for asker in askers] == [[], []]
    world.sync()
    assert [asker.answers for asker in askers] == [["done"], ["done"]]


def test_what_has_gathered_when_the_leadership_goes_is_sent_away() -> None:
    world = World()
    shard, machine = world.loaded()
    asker = gather(shard, "a", 1)
    shard.end()
    shard.write_gathered(NOW)
    assert asker.answers == [Error.NOT_COORDINATOR]
    assert machine.numbers == {}
    assert _batches(world) == 0


def add_ahead(shard: Shard, machine: Numbers, name: str) -> Asker:
    asker = Asker()
    shard.make_way("adding", NOW)
    shard.gather(machine.add_ahead(name, asker), NOW)
    shard.check()
    return asker


def test_what_is_decided_ahead_sees_what_was_decided_before_and_happens_when_it_is_written() -> None:
    world = World()
    shard, machine = world.loaded()
    askers = [add_ahead(shard, machine, name) for name in "aab"]
    assert machine.numbers == {}
    assert [asker.answers for asker in askers] == [[], [], []]
    shard.write_gathered(NOW)
    assert [asker.answers for asker in askers] == [[1], [2], [1]]
    assert machine.numbers == world.loaded()[1].numbers == {"a": 2, "b": 1}
    assert _batches(world) == 1


def test_another_kind_of_request_finds_written_what_was_decided_ahead() -> None:
    shard, machine = World().loaded()
    asker = add_ahead(shard, machine, "a")
    shard.make_way("another", NOW)
    assert asker.answers == [1]
    assert machine.numbers == {"a": 1}


def test_nothing_that_was_decided_ahead_has_happened_if_it_can_not_be_written() -> None:
    world = World()
    shard, machine = world.loaded()
    askers = [add_ahead(shard, machine, "a"), add_ahead(shard, machine, "a")]
    world.disk.kill()
    shard.write_gathered(NOW)
    assert [asker.answers for asker in askers] == 2 * [[Error.COORDINATOR_NOT_AVAILABLE]]
    assert (machine.numbers, machine.ahead) == ({}, {})


def test_what_was_decided_ahead_is_written_in_order_up_to_the_first_that_can_not_be() -> None:
    world = World(max_message_bytes="1000")
    shard, machine = world.loaded()
    askers = [add_ahead(shard, machine, name) for name in ("x" * 600, "y" * 600, "z" * 2000, "x" * 600)]
    shard.write_gathered(NOW)
    errors = [Error.RECORD_LIST_TOO_LARGE], [Error.COORDINATOR_NOT_AVAILABLE]
    assert [asker.answers for asker in askers] == [[1], [1], *errors]
    assert machine.numbers == world.loaded()[1].numbers == {"x" * 600: 1, "y" * 600: 1}
    assert machine.ahead == {}


def test_what_was_decided_ahead_goes_with_the_leadership() -> None:
    shard, machine = World().loaded()
    asker = add_ahead(shard, machine, "a")
    shard.end()
    assert asker.answers == [Error.NOT_COORDINATOR]
    assert (machine.numbers, machine.ahead) == ({}, {})


def test_an_answer_that_rests_on_nothing_that_waits_does_not_wait() -> None:
    world = World()
    shard, machine = world.loaded()
    first, second = add_ahead(shard, machine, "a"), Asker()
    shard.make_way("adding", NOW)
    assert not shard.gather(answer(second, "nothing new"), NOW)
    assert (first.answers, second.answers) == ([], ["nothing new"])
    shard.check()


def test_who_has_waited_too_long_for_the_commit_is_refused_and_the_state_stays() -> None:
    world = World(flush_messages="1")
    shard, machine = world.loaded()
    machine.deadlines.set("b", 99_000)
    early, late = put(shard, "a", 1), Asker()
    later = Instant(1500, 1500)
    undone: list[Refused] = []
    shard.finish(Outcome([StateRecord("b", 2)], [(late, "done")], undone.append), later)
    assert shard.earliest() == NOW.mono_ms + COMMIT_TIMEOUT_MS
    shard.run_due(Instant(6000, NOW.mono_ms + COMMIT_TIMEOUT_MS))
    assert (early.answers, late.answers) == ([Error.COORDINATOR_NOT_AVAILABLE], [])
    shard.check()
    assert shard.earliest() == later.mono_ms + COMMIT_TIMEOUT_MS
    shard.run_due(Instant(7000, 7000))
    assert late.answers == [Error.COORDINATOR_NOT_AVAILABLE]
    assert machine.numbers == {"a": 1, "b": 2}
    assert not undone
    assert not world.partition.watchers
    assert shard.earliest() == 99_000
    world.sync()
    assert (len(early.answers), len(late.answers)) == (1, 1)


def test_an_outcome_that_splits_is_written_as_so_many_batches_as_it_takes() -> None:
    world = World(max_message_bytes="1000")
    shard, machine = world.loaded()
    asker = Asker()
    records = [StateRecord(f"{number}" + "x" * 300, number) for number in range(9)]
    shard.finish(Outcome(records, [(asker, "done")], splits=True), NOW)
    assert asker.answers == ["done"]
    assert len(machine.numbers) == 9
    assert world.loaded()[1].numbers == machine.numbers
    assert _batches(world) > 3


def test_of_an_outcome_that_splits_what_is_written_stays() -> None:
    world = World(max_message_bytes="1000")
    shard, machine = world.loaded()
    asker = Asker()
    shard.finish(Outcome([StateRecord("a" * 600, 1), StateRecord("b" * 2000, 2)], [(asker, "done")], splits=True), NOW)
    assert asker.answers == [Error.RECORD_LIST_TOO_LARGE]
    assert machine.numbers == world.loaded()[1].numbers == {"a" * 600: 1}
    shard.check()
