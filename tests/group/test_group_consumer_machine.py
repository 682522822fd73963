"""Consumer groups under everything that can happen to them, in any order.

Clients are modelled as they are: they own what they were told to have, and what they have not given up. Whatever
happens, no two of them own the same partition, the broker knows of everything that a client owns, epochs only grow, and
a reload at any moment finds the same group. Left alone, everybody gets a fair share of everything.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cordwood.errors import Error, Refused
from cordwood.group import consumer
from cordwood.group.consumer import ConsumerGroup
from cordwood.group.timers import SessionTimeout
from cordwood.ids import TopicName
from cordwood.wire.messages import ConsumerGroupHeartbeatResponse
from group.consumer_members import GROUP, START_AGAIN, TestMember, contents, expect, topics
from group.group_harness import GroupHarness

TOPICS = ("t", "u", "v")
SESSION_MS = 45_000

Subscription = tuple[list[str], str | None]

subscriptions: st.SearchStrategy[Subscription] = st.one_of(
    st.tuples(st.lists(st.sampled_from(TOPICS), unique=True, min_size=1), st.none()),
    st.tuples(st.just([]), st.sampled_from(["t|u", ".*", "v"])),
)
numbers = st.integers(0, 100)


class ConsumerGroups(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.harness = GroupHarness()
        self.clients: list[TestMember] = []
        self.away: list[str] = []
        self.count = 0
        self.epochs = (0, 0)

    @initialize(partitions=st.integers(1, 6), interval_ms=st.sampled_from([0, 1000]))
    def start(self, partitions: int, interval_ms: int) -> None:
        self.harness = GroupHarness(group_consumer_assignment_interval_ms=interval_ms)
        self.harness.topic("t", partitions)

    # ------------------------------------------------------------------ clients

    def pick(self, number: int) -> TestMember:
        return self.clients[number % len(self.clients)]

    def try_join(self, client: TestMember) -> None:
        try:
            client.join()
        except Refused as refusal:
            expect(refusal, Error.UNRELEASED_INSTANCE_ID)

    def try_beat(self, client: TestMember, **fields: object) -> None:
        """A client that is told that it is not a member owns nothing any more, and joins again."""
        if client.epoch <= 0:
            self.try_join(client)
            return
        try:
            client.beat(say_owned=True, **fields)
        except Refused as refusal:
            expect(refusal, *START_AGAIN)
            self.try_join(client)

    def new_client(self, topic_names: list[str], pattern: str | None, instance_id: str | None) -> None:
        self.count += 1
        client = TestMember(self.harness, f"m{self.count}", topic_names, pattern, instance_id)
        client.rebalance_timeout_ms = 10_000
        self.clients.append(client)
        self.try_join(client)

    @precondition(lambda self: len(self.clients) < 5)
    @rule(subscription=subscriptions, static=st.booleans())
    def join(self, subscription: Subscription, static: bool) -> None:
        self.new_client(*subscription, f"i{self.count}" if static else None)

    @precondition(lambda self: self.clients)
    @rule(number=numbers)
    def beat(self, number: int) -> None:
        self.try_beat(self.pick(number))

    @precondition(lambda self: self.clients)
    @rule()
    def everybody_beats(self) -> None:
        for client in self.clients:
            self.try_beat(client)

    @precondition(lambda self: self.clients)
    @rule(bad=numbers, fails=st.booleans())
    def everybody_beats_in_one_turn(self, bad: int, fails: bool) -> None:
        """All are answered when all that was decided is written. One of them says nonsense, in the midst of it."""
        if fails:
            self.harness.fail_next_write(Refused(Error.COORDINATOR_NOT_AVAILABLE))
        with self.harness.turn():
            asked = []
            for number, client in enumerate(self.clients):
                asked.append((client, client.ask_as_usual()))
                if number == bad % len(self.clients) and client.epoch > 0:
                    nonsense = client.ask(member_epoch=client.epoch, subscribed_topic_regex="(")
                    assert isinstance(nonsense.answers[0], Refused)
        for client, asker in asked:
            (answer,) = asker.answers
            if not isinstance(answer, Refused):
                client.heard(asker.take(ConsumerGroupHeartbeatResponse))
            elif answer.error is Error.COORDINATOR_NOT_AVAILABLE:
                client.unsure = client.epoch > 0
            else:
                expect(answer, *START_AGAIN, Error.UNRELEASED_INSTANCE_ID)
                client.epoch = 0

    @precondition(lambda self: self.clients)
    @rule(number=numbers)
    def give_up(self, number: int) -> None:
        self.pick(number).give_up()

    @precondition(lambda self: self.clients)
    @rule(number=numbers)
    def beat_with_nothing_to_say(self, number: int) -> None:
        client = self.pick(number)
        if client.epoch > 0 and not client.unsure:
            answer = client.send(member_epoch=client.epoch)
            if not isinstance(answer, Refused):
                client.heard(answer)

    @precondition(lambda self: self.clients)
    @rule(number=numbers)
    def lose_an_answer(self, number: int) -> None:
        client = self.pick(number)
        if client.epoch > 0:
            client.send(member_epoch=client.epoch, topic_partitions=topics(client.owned))
            client.unsure = True

    @precondition(lambda self: self.clients)
    @rule(number=numbers)
    def fail_a_write(self, number: int) -> None:
        client = self.pick(number)
        if client.epoch > 0:
            self.harness.fail_next_write(Refused(Error.COORDINATOR_NOT_AVAILABLE))
            answer = client.send(member_epoch=client.epoch, topic_partitions=topics(client.owned))
            client.unsure = True
            if not isinstance(answer, Refused):
                client.heard(answer)
            self.harness._write_error = None

    @precondition(lambda self: self.clients)
    @rule(number=numbers, subscription=subscriptions)
    def subscribe(self, number: int, subscription: Subscription) -> None:
        client = self.pick(number)
        client.topics, client.pattern = subscription[0], subscription[1] or ""
        self.try_beat(client, subscribed_topic_names=client.topics, subscribed_topic_regex=client.pattern)

    @precondition(lambda self: self.clients)
    @rule(number=numbers, for_a_while=st.booleans())
    def leave(self, number: int, for_a_while: bool) -> None:
        client = self.pick(number)
        for_a_while &= client.instance_id is not None
        answer = client.send(member_epoch=-2 if for_a_while else -1)
        assert not isinstance(answer, Refused) or answer.error in START_AGAIN
        self.clients.remove(client)
        if for_a_while and client.instance_id is not None:
            self.away.append(client.instance_id)

    @precondition(lambda self: self.clients)
    @rule(number=numbers)
    def can_not_leave(self, number: int) -> None:
        """It hears that it could not be written, and is gone all the same."""
        client = self.pick(number)
        self.harness.fail_next_write(Refused(Error.COORDINATOR_NOT_AVAILABLE))
        answer = client.send(member_epoch=-1)
        assert isinstance(answer, Refused)
        self.harness._write_error = None
        self.clients.remove(client)

    @precondition(lambda self: self.away)
    @rule(subscription=subscriptions)
    def come_back(self, subscription: Subscription) -> None:
        self.new_client(*subscription, self.away.pop())

    @precondition(lambda self: self.clients)
    @rule(number=numbers)
    def die(self, number: int) -> None:
        self.clients.remove(self.pick(number))

    @precondition(lambda self: self.clients)
    @rule(number=numbers, epoch=st.integers(-1, 10), partition=st.integers(0, 6))
    def commit(self, number: int, epoch: int, partition: int) -> None:
        client, group = self.pick(number), self.group
        topic_id = next(iter(self.harness.image.topic_names), None)
        if group is None or topic_id is None:
            return
        try:
            check = group.check_commit(client.id, None, epoch, transactional=False, api_version=9)
            if check is not None:
                check("t", topic_id, partition)
                assert (topic_id, partition) not in self.owned_by_others(client)
        except Refused as refusal:
            expect(refusal, Error.UNKNOWN_MEMBER_ID, Error.STALE_MEMBER_EPOCH)

    # ------------------------------------------------------------------ the world

    @rule(ms=st.sampled_from([1, 500, 1000, 5000, 10_000, SESSION_MS]))
    def wait(self, ms: int) -> None:
        self.harness.advance(ms)

    @rule(ms=st.sampled_from([1000, 10_000, SESSION_MS]))
    def wait_while_something_can_not_be_written(self, ms: int) -> None:
        self.harness.fail_next_write(Refused(Error.COORDINATOR_NOT_AVAILABLE))
        self.harness.advance(ms)
        self.harness._write_error = None

    @rule(name=st.sampled_from(TOPICS), more=st.integers(1, 3))
    def grow_topic(self, name: str, more: int) -> None:
        known = self.harness.image.topics.get(TopicName(name))
        self.harness.topic(name, min((len(known.partitions) if known else 0) + more, 8))
        self.tell_of(name)

    @rule(name=st.sampled_from(TOPICS))
    def delete_topic(self, name: str) -> None:
        if TopicName(name) in self.harness.image.topics:
            self.harness.drop_topic(name)
            self.tell_of(name)

    def tell_of(self, name: str) -> None:
        self.harness.finish(consumer.topics_changed(self.harness.state, [TopicName(name)], self.harness.now))

    @rule()
    def reload(self) -> None:
        self.harness.reload()

    # ------------------------------------------------------------------ what must hold

    @property
    def group(self) -> ConsumerGroup | None:
        group = self.harness.state.groups.get(GROUP)
        assert group is None or isinstance(group, ConsumerGroup)
        return group

    def is_member(self, client: TestMember) -> bool:
        """A client that was removed owns nothing, but has not heard of it yet."""
        return self.group is not None and client.epoch > 0 and client.id in self.group.members

    def owned_by_others(self, client: TestMember) -> set[object]:
        others = [each for each in self.clients if each is not client and self.is_member(each)]
        return {partition for each in others for partition in each.owned}

    @invariant()
    def the_broker_knows_of_everything_that_is_owned(self) -> None:
        for client in self.clients:
            if self.is_member(client) and self.group is not None:
                for topic_id, partition in client.owned:
                    assert self.group.owners.of(topic_id, partition) == client.id

    @invariant()
    def nobody_is_a_member_for_ever(self) -> None:
        for member_id in self.group.members if self.group is not None else ():
            assert SessionTimeout(GROUP, member_id) in self.harness.state.deadlines

    @invariant()
    def epochs_only_grow(self) -> None:
        if self.group is not None:
            epochs = (self.group.epoch, self.group.assignment_epoch)
            assert epochs >= self.epochs
            assert epochs[1] >= self.epochs[1]
            self.epochs = epochs

    @invariant()
    def a_reload_finds_the_same(self) -> None:
        found = self.harness.reloaded().state.groups.get(GROUP)
        assert (found is None) == (self.group is None)
        if self.group is not None:
            assert contents(found) == contents(self.group)

    def teardown(self) -> None:
        """Left alone, long enough for the silent ones to be missed, all get a fair share."""
        for _ in range(14):
            self.harness.advance(5000)
            for client in self.clients:
                self.try_beat(client)
                client.give_up()
                self.try_beat(client)
        if self.group is None or not self.clients:
            return
        assert self.group.state_name == "Stable"
        assert set(self.group.members) == {client.id for client in self.clients}
        assert sum(len(client.owned) for client in self.clients) == len(self.shared_out())
        assert {each for client in self.clients for each in client.owned} == self.shared_out()
        if len({self.group.topics_of(member.description) for member in self.group.members.values()}) == 1:
            counts = [len(client.owned) for client in self.clients]
            assert max(counts) - min(counts) <= 1

    def shared_out(self) -> set[object]:
        assert self.group is not None
        known = [self.harness.image.topics.get(TopicName(name)) for name in self.group.topics]
        return {(topic.id, each.index) for topic in known if topic is not None for each in topic.partitions}


TestConsumerGroups = ConsumerGroups.TestCase
TestConsumerGroups.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
