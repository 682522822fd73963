"""Groups with members of both protocols, which change their own protocol back and forth, in any order of events.

Whatever happens, no two clients that the group counts among its members own the same partition, and a reload finds what
is stored. Left alone, everybody has something to do.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cordwood.errors import Error, Refused
from cordwood.group.classic import ClassicGroup, State
from cordwood.group.consumer import ConsumerGroup
from group.classic_clients import ClassicClient
from group.consumer_members import GROUP, START_AGAIN, Partitions, TestMember, contents, expect
from group.group_harness import GroupHarness

numbers = st.integers(0, 100)
Client = ClassicClient | TestMember


class MixedGroups(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.harness = GroupHarness()
        self.clients: list[Client] = []
        self.count = 0

    @initialize(partitions=st.integers(1, 6), policy=st.sampled_from(["bidirectional", "bidirectional", "upgrade"]))
    def start(self, partitions: int, policy: str) -> None:
        self.harness = GroupHarness(group_consumer_migration_policy=policy, group_initial_rebalance_delay_ms=0)
        self.harness.topic("t", partitions)

    # ------------------------------------------------------------------ clients

    @precondition(lambda self: len(self.clients) < 4)
    @rule(classic=st.booleans(), static=st.booleans())
    def join(self, classic: bool, static: bool) -> None:
        self.count += 1
        instance_id = f"i{self.count}" if static else None
        self.add(instance_id, classic=classic)

    def add(self, instance_id: str | None, *, classic: bool) -> None:
        client: Client
        if classic:
            client = ClassicClient(self.harness, instance_id=instance_id)
        else:
            client = TestMember(self.harness, f"m{self.count}", instance_id=instance_id, rebalance_timeout_ms=10_000)
        self.clients.append(client)
        self.step(client)

    def step(self, client: Client) -> None:
        if isinstance(client, ClassicClient):
            client.step()
            return
        try:
            if client.epoch > 0:
                client.settle()
            else:
                client.join()
        except Refused as refusal:
            expect(refusal, *START_AGAIN, Error.UNRELEASED_INSTANCE_ID)
            client.owned, client.told, client.epoch = set(), set(), 0

    @precondition(lambda self: self.clients)
    @rule(number=numbers)
    def one_goes_on(self, number: int) -> None:
        self.step(self.clients[number % len(self.clients)])

    @precondition(lambda self: self.clients)
    @rule()
    def all_go_on(self) -> None:
        for client in self.clients:
            self.step(client)

    @precondition(lambda self: self.clients)
    @rule(number=numbers)
    def leave(self, number: int) -> None:
        client = self.clients.pop(number % len(self.clients))
        if isinstance(client, ClassicClient):
            client.leave()
        else:
            client.send(member_epoch=-1)

    @precondition(lambda self: self.clients)
    @rule(number=numbers)
    def die(self, number: int) -> None:
        del self.clients[number % len(self.clients)]

    @precondition(lambda self: self.clients)
    @rule(number=numbers)
    def change_protocol(self, number: int) -> None:
        """As it is done: stop a client, and start it again with the other protocol."""
        client = self.clients.pop(number % len(self.clients))
        if isinstance(client, TestMember):
            client.send(member_epoch=-2 if client.instance_id is not None else -1)
        elif client.instance_id is None:
            client.leave()
        self.count += 1
        self.add(client.instance_id, classic=isinstance(client, TestMember))

    # ------------------------------------------------------------------ the world

    @rule(ms=st.sampled_from([0, 500, 1000, 5000, 10_000, 20_000]))
    def wait(self, ms: int) -> None:
        self.harness.advance(ms)

    @rule()
    def reload(self) -> None:
        self.harness.reload()
        for client in self.clients:
            if isinstance(client, ClassicClient):  # whoever waits is told by its connection that the broker is gone
                client.joining = client.syncing = None
                client.generation = -1

    # ------------------------------------------------------------------ what must hold

    def counts(self, client: Client) -> bool:
        """Is the client's idea of what it owns the group's as well?"""
        group = self.harness.state.groups.get(GROUP)
        if isinstance(group, ConsumerGroup):
            return client.id in group.members and (isinstance(client, ClassicClient) or client.epoch > 0)
        if isinstance(group, ClassicGroup) and isinstance(client, ClassicClient):
            settled = group.state in (State.STABLE, State.COMPLETING)
            return client.id in group.roster.members and (client.generation == group.generation or not settled)
        return False

    @invariant()
    def nobody_owns_what_another_owns(self) -> None:
        owned: Partitions = set()
        for client in self.clients:
            if self.counts(client):
                assert not owned & client.owned
                owned |= client.owned

    @invariant()
    def a_reload_finds_the_same(self) -> None:
        group, found = self.harness.state.groups.get(GROUP), self.harness.reloaded().state.groups.get(GROUP)
        assert type(group) is type(found)
        if isinstance(group, ConsumerGroup):
            assert contents(found) == contents(group)

    def teardown(self) -> None:
        for _ in range(20):
            for client in self.clients:
                self.step(client)
            self.harness.advance(3000)
        if not self.clients:
            return
        owned = [partition for client in self.clients for partition in client.owned]
        topic = self.harness.image.topics[next(iter(self.harness.image.topics))]
        assert sorted(partition for _, partition in owned) == list(range(len(topic.partitions)))
        group = self.harness.state.groups[GROUP]
        assert group.state_name == "Stable"
        if all(isinstance(client, ClassicClient) for client in self.clients):
            assert isinstance(group, ClassicGroup) or self.policy == "upgrade"

    @property
    def policy(self) -> str:
        return self.harness.config.group_consumer_migration_policy


TestMixedGroups = MixedGroups.TestCase
TestMixedGroups.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)
