"""Everything that can happen to a classic group, in any order: what must hold all the same.

Members here are simple-minded clients, as many as there are names. Each has at most one call under way and believes
what it is told. Beside the invariants of the group itself (``check`` runs after every event) these hold: who leads is
a member; an assignment is what the leader of that very generation gave; generations never come again; whoever waits has
a deadline that will end it; a reload finds what was stored.
"""

from dataclasses import dataclass, field

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from cordwood.errors import Error, Refused
from cordwood.group import classic
from cordwood.group.classic import ClassicGroup, State
from cordwood.group.timers import ClassicSession, JoinPhase, PendingMember, SyncPhase
from cordwood.wire.messages import JoinGroupResponse, LeaveGroupRequest, LeaveGroupRequestMember, SyncGroupResponse
from group.classic_driver import GROUP, ClassicDriver
from group.group_harness import Asker

NAMES = ("ann", "bob", "cat", "dan")
PROTOCOLS = ({"a": b"1"}, {"a": b"2"}, {"a": b"1", "b": b"1"}, {"b": b"1", "a": b"2"})
WRITE_ERRORS = (Error.COORDINATOR_NOT_AVAILABLE, Error.RECORD_LIST_TOO_LARGE, Error.NOT_COORDINATOR)

names = st.sampled_from(NAMES)


@dataclass
class Client:
    """What a client knows."""

    name: str
    member_id: str = ""
    generation: int = -1
    protocol: str | None = None
    leads: bool = False
    peers: list[str] = field(default_factory=list)
    is_static: bool = False
    protocols: dict[str, bytes] = field(default_factory=lambda: PROTOCOLS[0])
    call: Asker | None = None
    started_ms: int = 0


class Groups(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.driver = ClassicDriver(group_max_size=3)
        self.clients = {name: Client(name) for name in NAMES}
        self.given: tuple[int, dict[str, bytes]] = -1, {}
        """The newest generation whose leader was heard, and what it gave to each member."""
        self.newest = 0
        self.serial = 0

    # ------------------------------------------------------------------ what clients do

    @rule(name=names, static=st.booleans(), protocols=st.sampled_from(PROTOCOLS), version=st.sampled_from([3, 5, 8, 9]))
    def join(self, name: str, static: bool, protocols: dict[str, bytes], version: int) -> None:
        """A client joins, with what it knows of itself; a call that is under way is given up."""
        client = self.clients[name]
        instance = f"i-{name}" if static and version >= 5 else None
        client.is_static, client.protocols = instance is not None, protocols
        client.call = self.driver.join(
            client.member_id, instance=instance, protocols=protocols, version=version, session_ms=10_000, client_id=name
        )
        self.started(client)

    @rule(name=names, protocols=st.sampled_from(PROTOCOLS))
    def come_back(self, name: str, protocols: dict[str, bytes]) -> None:
        """A static client that has forgotten everything."""
        self.clients[name] = Client(name)
        self.join(name, True, protocols, 9)

    @rule(name=names)
    def sync(self, name: str) -> None:
        client = self.clients[name]
        assignments = {}
        if client.leads:
            self.serial += 1
            assignments = {peer: f"{self.serial} for {peer}".encode() for peer in client.peers}
        was_completing = self.group is not None and self.group.state is State.COMPLETING
        client.call = self.driver.sync(
            client.member_id, client.generation, assignments, protocol_type="consumer", protocol=client.protocol or "a"
        )
        if was_completing and self.group is not None and self.group.state is State.STABLE:
            assert client.leads, "only the leader ends the phase"
            self.given = client.generation, assignments
        self.started(client)

    @rule(count=st.integers(1, 4))
    def settle(self, count: int) -> None:
        """Some clients do as they should for a while."""
        for _ in range(4):
            for client in list(self.clients.values())[:count]:
                if client.call is None:
                    self.act(client)
            self.time_passes(1500)

    def act(self, client: Client) -> None:
        group = self.group
        is_in = group is not None and client.member_id in group.roster.members
        if is_in and group is not None and client.generation == group.generation and group.state is not State.PREPARING:
            self.sync(client.name)
        else:
            self.join(client.name, client.is_static, client.protocols, 9)

    def started(self, client: Client) -> None:
        client.started_ms = self.driver.now.mono_ms
        self.hear()

    @rule(name=names)
    def beat(self, name: str) -> None:
        client = self.clients[name]
        error = self.driver.beat(client.member_id, client.generation)
        if error in (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION):
            client.leads = False

    @rule(name=names, by_instance=st.booleans())
    def leave(self, name: str, by_instance: bool) -> None:
        pair = ("", f"i-{name}") if by_instance else (self.clients[name].member_id, None)
        leaver = LeaveGroupRequestMember(member_id=pair[0], group_instance_id=pair[1])
        asker = self.driver.call(classic.leave, LeaveGroupRequest(group_id=GROUP, members=[leaver]), 5)
        assert not asker.waits
        self.hear()

    # ------------------------------------------------------------------ what befalls them

    @rule(ms=st.sampled_from([0, 1, 1000, 3000, 9999, 10_000, 60_000, 300_000]))
    def time_passes(self, ms: int) -> None:
        self.driver.advance(ms)
        self.hear()

    @rule(error=st.sampled_from(WRITE_ERRORS))
    def next_write_fails(self, error: Error) -> None:
        self.driver.fail_next_write(Refused(error))

    @rule()
    def reload(self) -> None:
        """A restart: connections break, and clients ask again later."""
        for client in self.clients.values():
            client.call = None
        before = self.group
        self.driver.reload()
        after = self.group
        assert (before is None) == (after is None)
        if before is not None and after is not None:
            assert after.state in (State.EMPTY, State.STABLE)
            assert after.generation <= before.generation
            self.newest = after.generation
            if after.state is State.EMPTY or after.generation != self.given[0]:
                self.given = -1, {}

    @property
    def group(self) -> ClassicGroup | None:
        found = self.driver.state.groups.get(GROUP)
        return found if isinstance(found, ClassicGroup) else None

    # ------------------------------------------------------------------ what they hear

    def hear(self) -> None:
        for client in self.clients.values():
            if client.call is not None and not client.call.waits:
                (answer,) = client.call.answers
                client.call = None
                if isinstance(answer, JoinGroupResponse):
                    self.joined(client, answer)
                elif isinstance(answer, SyncGroupResponse):
                    self.synced(client, answer)
                else:
                    assert isinstance(answer, Refused)
                    client.leads = False

    def joined(self, client: Client, answer: JoinGroupResponse) -> None:
        client.leads = False
        if answer.error_code == Error.NONE:
            client.member_id, client.generation = answer.member_id, answer.generation_id
            client.protocol = answer.protocol_name
            client.leads = answer.leader == answer.member_id and not answer.skip_assignment
            client.peers = [member.member_id for member in answer.members]
            assert bool(answer.members) == (answer.leader == answer.member_id)
            assert not answer.members or client.member_id in client.peers
        elif answer.error_code == Error.MEMBER_ID_REQUIRED:
            client.member_id = answer.member_id
        elif answer.error_code in (Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID):
            client.member_id, client.generation = "", -1

    def synced(self, client: Client, answer: SyncGroupResponse) -> None:
        """Who came back as another member has what its former self had."""
        if answer.error_code == Error.NONE and answer.assignment:
            generation, given = self.given
            assert client.generation == generation
            assert answer.assignment in given.values()
            assert client.is_static or given[client.member_id] == answer.assignment

    # ------------------------------------------------------------------ what must hold

    @invariant()
    def generations_only_grow(self) -> None:
        """But for a reload, which may take back what no member has an assignment of."""
        generation = self.group.generation if self.group is not None else 0  # it may have been deleted
        assert generation >= self.newest or self.group is None
        self.newest = generation

    @invariant()
    def whoever_waits_has_a_deadline(self) -> None:
        group, deadlines = self.group, self.driver.state.deadlines
        if group is None:
            return
        if group.state is State.PREPARING:
            assert JoinPhase(GROUP) in deadlines
        if group.pending_sync:
            assert SyncPhase(GROUP) in deadlines
        for member in group.roster.members.values():
            assert ClassicSession(GROUP, member.id) in deadlines or member.joining or member.syncing
        for member_id in group.pending:
            assert PendingMember(GROUP, member_id) in deadlines

    @invariant()
    def nobody_waits_for_ever(self) -> None:
        """The first phase can be longer than a rebalance timeout only while nobody has joined."""
        for client in self.clients.values():
            if client.call is not None:
                assert self.driver.now.mono_ms - client.started_ms <= 300_000 + 60_000

    @invariant()
    def the_stored_part_is_what_a_reload_gives(self) -> None:
        machine = self.driver.reloaded()
        group, again = self.group, machine.state.groups.get(GROUP)
        assert (group is None) == (again is None)
        if group is not None:
            assert isinstance(again, ClassicGroup)
            assert again.stored == group.stored
            if group.state in (State.EMPTY, State.STABLE) and again.generation == group.generation:
                assert (again.state, again.protocol, again.protocol_type) == (
                    group.state,
                    group.protocol,
                    group.protocol_type,
                )
                assert [*again.roster.members] == [*group.roster.members]
                assert again.roster.leader == group.roster.leader


TestGroups = Groups.TestCase
TestGroups.settings = settings(max_examples=120, stateful_step_count=30, deadline=None)
