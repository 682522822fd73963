"""Groups that change their protocol while they are in use (``group.consumer.migration.policy``).

*Up*: the first member of the consumer protocol that joins a classic group makes it a consumer group. The existing
members stay classic members, with the partitions that they have, and the group's generation becomes its epoch. They are
told to rejoin, and are served by ``classic_members`` from then on.

*Down*: when all remaining members speak the classic protocol, the group becomes a classic group again, and rebalances.
"""

from collections.abc import Collection, Mapping
from uuid import UUID

from cordwood.coordinator.outcome import Caller, Outcome
from cordwood.errors import Error, ProtocolError, Refused
from cordwood.group import classic
from cordwood.group.classic import ClassicGroup
from cordwood.group.classic.creation import write_failure
from cordwood.group.groups import Group
from cordwood.group.state import GroupState
from cordwood.group.stored import ClassicMemberMetadata, ClassicProtocol
from cordwood.ports import Instant
from cordwood.wire.messages import ConsumerProtocolSubscription

from .draft import Draft
from .embedded import by_id, decode_assignment, decode_subscription, encode_assignment, spoken_version
from .group import PROTOCOL_TYPE, ConsumerGroup
from .loading import cancel_deadlines, set_session_deadline, start_deadlines
from .member import Current, Description, Held, Member
from .records import assignment_epoch_record, current_record, description_record, epoch_record, target_record
from .subscriptions import NAMES_MAX
from .topics import metadata_hash

UPGRADING = ("upgrade", "bidirectional")
DOWNGRADING = ("downgrade", "bidirectional")
DISABLED = "disabled"
ASSIGNORS_OF_ALL = ("range", "roundrobin", "sticky", "cooperative-sticky")
"""With these assignors, consumers need nothing in an assignment but its partitions.

Some leaders add something all the same: librdkafka repeats what each member said when it joined. Kafka refuses to
upgrade such a group, and its consumers of the new protocol end with a fatal error.
"""


# ---------------------------------------------------------------------- upgrade


def upgraded(state: GroupState, group: Group, now: Instant) -> Draft:
    """A classic group as a consumer group, for the member that joins it. Raises ``Refused`` if it cannot be one."""
    assert isinstance(group, ClassicGroup)
    if group.is_empty:
        return Draft(ConsumerGroup(group.id), group.tombstones())
    _check_upgrade(state, group)
    try:
        members = _members(state, group)
    except ProtocolError as error:
        raise _not_a_consumer_group(group, f"what its members say makes no sense: {error}") from None

    draft = Draft(ConsumerGroup(group.id), group.tombstones())
    draft.write(*(description_record(group.id, each.id, each.description) for each in members))
    if draft.group.subscriptions.name_count > NAMES_MAX:
        raise _not_a_consumer_group(group, "it subscribes to too many topics")
    draft.write(epoch_record(group.id, group.generation, metadata_hash(state.image, draft.group.topics)))
    draft.write(
        *(target_record(group.id, each.id, _shall_have(each)) for each in members),
        assignment_epoch_record(group.id, group.generation, 0),
        *(current_record(group.id, each.id, each.current) for each in members),
    )
    draft.is_unsettled = group.state is not classic.State.STABLE
    draft.when_decided(lambda: _release(state, group, draft, now))
    return draft


def _release(state: GroupState, group: ClassicGroup, draft: Draft, now: Instant) -> None:
    """Callers that wait in the classic group are told to rejoin, and have a session timeout's time for that."""
    turn = classic.Turn(state, group, now)
    turn.release(Error.REBALANCE_IN_PROGRESS)
    draft.replies += turn.outcome.replies
    for member_id in group.roster.members:
        if member_id in draft.group.members:  # a static one may have a successor
            set_session_deadline(state, group.id, draft.group.members[member_id], now)


def _check_upgrade(state: GroupState, group: ClassicGroup) -> None:
    config = state.config
    if config.group_consumer_migration_policy not in UPGRADING:
        raise _not_a_consumer_group(group, "its protocol may not be changed")
    if not group.is_of_consumers:
        raise _not_a_consumer_group(group, "its members are not consumers")
    if len(group.roster) > config.group_consumer_max_size:
        raise _not_a_consumer_group(group, "it has too many members")


def _not_a_consumer_group(group: ClassicGroup, why: str) -> Refused:
    return Refused(Error.GROUP_ID_NOT_FOUND, f"Group {group.id} cannot become a consumer group: {why}.")


def _members(state: GroupState, group: ClassicGroup) -> list[Member]:
    said = {each.id: _subscription(group, each) for each in group.roster.members.values()}
    held = _held(state, group, said)
    return [_member(group, each, said[each.id], held[each.id]) for each in group.roster.members.values()]


def _subscription(group: ClassicGroup, member: classic.Member) -> ConsumerProtocolSubscription:
    return decode_subscription(member.metadata(group.protocol) or next(iter(member.protocols.values())))


def _held(
    state: GroupState, group: ClassicGroup, said: Mapping[str, ConsumerProtocolSubscription]
) -> Mapping[str, Held]:
    """What each member has: what it was assigned, and what it said it had when it joined.

    The latter counts if it has no assignment, as after a generation that was abandoned: a cooperative consumer goes on
    reading in the meantime. If two members claim a partition, the first one gets it.
    """
    assigned = [(each.id, _assigned(group, each)) for each in group.roster.members.values()]
    newest_first = sorted(said, key=lambda member_id: -said[member_id].generation_id)
    owned = [(each, {part.topic: part.partitions for part in said[each].owned_partitions}) for each in newest_first]
    taken: set[tuple[UUID, int]] = set()
    held: dict[str, dict[UUID, dict[int, int]]] = {member_id: {} for member_id in said}
    for member_id, named in (*assigned, *owned):
        for topic_id, partitions in by_id(named, state.image).items():
            for partition in partitions:
                if (topic_id, partition) not in taken:
                    taken.add((topic_id, partition))
                    held[member_id].setdefault(topic_id, {})[partition] = group.generation
    return held


def _assigned(group: ClassicGroup, member: classic.Member) -> dict[str, list[int]]:
    assignment = decode_assignment(member.assignment)
    if assignment.user_data and group.protocol not in ASSIGNORS_OF_ALL:
        raise _not_a_consumer_group(group, "its members have an assignor of their own")
    return {each.topic: each.partitions for each in assignment.assigned_partitions}


def _member(
    group: ClassicGroup, member: classic.Member, subscription: ConsumerProtocolSubscription, held: Held
) -> Member:
    description = Description(
        instance_id=member.instance_id,
        rack_id=subscription.rack_id or None,
        client_id=member.client_id,
        client_host=member.client_host,
        topics=frozenset(subscription.topics),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=classic_metadata(member.session_timeout_ms, member.protocols),
    )
    return Member(member.id, description, Current(group.generation, group.generation, assigned=held))


def classic_metadata(session_timeout_ms: int, protocols: dict[str, bytes]) -> ClassicMemberMetadata:
    return ClassicMemberMetadata(
        session_timeout_ms=session_timeout_ms,
        supported_protocols=[ClassicProtocol(name=name, metadata=metadata) for name, metadata in protocols.items()],
    )


def _shall_have(member: Member) -> dict[UUID, frozenset[int]]:
    return {topic_id: frozenset(partitions) for topic_id, partitions in member.current.assigned.items()}


# ---------------------------------------------------------------------- downgrade


def can_downgrade(state: GroupState, members: Collection[Member]) -> bool:
    """Should a group with exactly these members be a classic group?"""
    config = state.config
    return (
        0 < len(members) <= config.group_max_size
        and config.group_consumer_migration_policy in DOWNGRADING
        and all(member.is_classic for member in members)
        and _are_a_group(members)
    )


def _are_a_group(members: Collection[Member]) -> bool:
    """Do they share a protocol, and is each instance there once? This is so unless the log was tampered with."""
    known = [{each.name for each in _protocols(member)} for member in members]
    static = [member.description.instance_id for member in members if member.description.instance_id is not None]
    return bool(set.intersection(*known)) and len(static) == len(set(static))


def _protocols(member: Member) -> list[ClassicProtocol]:
    return member.description.classic.supported_protocols if member.description.classic is not None else []


def downgrade(
    state: GroupState, draft: Draft, now: Instant, *replies: tuple[Caller, object], rebalance: bool
) -> Outcome:
    """Turn the group in *draft*, all of whose members speak the classic protocol, into a classic group.

    Like every classic group, it is put in its place at once, and removed again if its record cannot be written. That
    record contains what was drafted: of the consumer group, only its end must be written.
    """
    consumer_group, original = draft.group, draft.original
    group = ClassicGroup.of_members(
        consumer_group.id,
        consumer_group.epoch,
        [_classic_member(state, each) for each in consumer_group.members.values()],
        now,
        PROTOCOL_TYPE,
    )
    turn = classic.Turn(state, group, now)
    turn.outcome.records += [*original.tombstones(), group.propose()]
    turn.outcome.replies += replies
    state.groups[group.id] = group
    for member_id in (*original.members, *consumer_group.members):
        cancel_deadlines(state, group.id, member_id)
    classic.start_sessions(turn)
    if rebalance:
        classic.prepare(turn, "no member speaks the consumer protocol any more")
    turn.outcome.failed = lambda refusal: _undo(turn, original, write_failure(refusal))
    return turn.outcome


def _undo(turn: classic.Turn, original: ConsumerGroup, refusal: Refused) -> None:
    turn.forget()
    turn.state.groups[original.id] = original
    start_deadlines(turn.state, original, turn.now)
    for caller, _ in turn.outcome.replies:
        caller.refuse(refusal)


def _classic_member(state: GroupState, member: Member) -> classic.Member:
    """It is assigned what it has. It should have nothing else, or the group rebalances."""
    description = member.description
    assert description.classic is not None
    protocols = {each.name: each.metadata for each in description.classic.supported_protocols}
    return classic.Member(
        id=member.id,
        instance_id=description.instance_id,
        client_id=description.client_id,
        client_host=description.client_host,
        rebalance_timeout_ms=description.rebalance_timeout_ms,
        session_timeout_ms=description.classic.session_timeout_ms,
        protocols=protocols,
        assignment=encode_assignment(_has(member.current), state.image, spoken_version(protocols.values())),
    )


def _has(current: Current) -> dict[UUID, set[int]]:
    """It may still be reading what it was told to give up."""
    has: dict[UUID, set[int]] = {}
    for held in (current.assigned, current.revoking):
        for topic_id, partitions in held.items():
            has.setdefault(topic_id, set()).update(partitions)
    return has
