"""Commits, deletions, expiry and lost topics in any order, against a plain model; and a reload at any point."""

from collections.abc import Callable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cordwood.errors import Error, Refused
from cordwood.group.committed import NEVER_CHOSEN, CommittedOffset
from cordwood.group.state import GroupState
from cordwood.wire.types import NO_UUID
from group.consumer_members import TestMember
from group.offsets_driver import MINUTE_MS, NEWEST, OffsetsDriver

CHECK_MS = 5 * MINUTE_MS
RETENTION_MINUTES = 30
RETENTION_MS = RETENTION_MINUTES * MINUTE_MS
SIMPLE = ("a", "", "ü" * 5)
MEMBERED = "members"
TOPICS = ("t", "u", "v")

groups = st.sampled_from((*SIMPLE, MEMBERED))
topics = st.sampled_from(TOPICS)
partitions = st.integers(0, 4)  # of which topics have four
Place = tuple[str, str, int]


class Offsets(RuleBasedStateMachine):
    """The model is a dictionary, and what is said of expiry in one function."""

    @initialize()
    def begin(self) -> None:
        self.driver = OffsetsDriver(
            offsets_retention_minutes=RETENTION_MINUTES,
            offsets_retention_check_interval_ms=CHECK_MS,
            group_consumer_max_session_timeout_ms=1 << 30,
            group_consumer_session_timeout_ms=1 << 30,
        )
        self.driver.ids["v"] = self.driver.topic("v", 4)
        self.model: dict[Place, CommittedOffset] = {}
        self.member: TestMember | None = None
        self.next_check_ms = self.driver.now.mono_ms + CHECK_MS

    # ------------------------------------------------------------------ clients

    @rule(
        group=groups,
        topic=topics,
        indexes=st.sets(partitions, min_size=1),
        offset=st.integers(-3, 100),
        by_id=st.booleans(),
        retention_minutes=st.sampled_from([None, None, 0, 10, 60]),
        fails=st.sampled_from([False, False, False, True]),
    )
    def commit(
        self,
        group: str,
        topic: str,
        indexes: set[int],
        offset: int,
        by_id: bool,
        retention_minutes: int | None,
        fails: bool,
    ) -> None:
        driver, known = self.driver, self.driver.image.topics.get(topic)  # type: ignore[call-overload]
        retention_ms = -1 if retention_minutes is None else retention_minutes * MINUTE_MS
        version = 2 if retention_minutes is not None else NEWEST if by_id else 9
        member, epoch = ("", -1)
        if group == MEMBERED and self.member is not None:
            member, epoch, version = self.member.id, self.member.epoch, max(version, 9)
            retention_ms = -1
        named = driver.ids[topic] if version == NEWEST else topic
        good = {index for index in indexes if known is not None and index < 4}
        if fails and good:
            driver.fail_next_write(Refused(Error.COORDINATOR_NOT_AVAILABLE))
        asked = {(named, index): offset for index in sorted(indexes)}
        if fails and good:
            assert (
                driver.commit_refused(
                    asked, group, version=version, member=member, epoch=epoch, retention_ms=retention_ms
                )
                is Error.COORDINATOR_NOT_AVAILABLE
            )
            return
        errors = driver.commit(asked, group, version=version, member=member, epoch=epoch, retention_ms=retention_ms)
        assert {index for (_, index), error in errors.items() if error is Error.NONE} == good
        now_ms = driver.now.wall_ms
        expiry_ms = NEVER_CHOSEN if retention_ms == -1 else now_ms + retention_ms
        topic_id = driver.ids[topic] if retention_ms == -1 else NO_UUID
        for index in good:
            self.model[group, topic, index] = CommittedOffset(offset, -1, "", now_ms, expiry_ms, topic_id)

    @rule(group=groups, topic=topics, index=partitions)
    def delete_offset(self, group: str, topic: str, index: int) -> None:
        answer = self.driver.delete({topic: [index]}, group)
        if group == "":
            assert answer is Error.INVALID_GROUP_ID
        elif answer is Error.GROUP_ID_NOT_FOUND:
            assert group not in self.driver.state.groups
        else:
            assert isinstance(answer, dict)
            if answer[topic, index] is Error.NONE:
                self.model.pop((group, topic, index), None)
            else:
                assert topic == "t" or topic not in self.driver.image.topics or index == 4

    @rule(group=groups)
    def delete_group(self, group: str) -> None:
        was_there = group in self.driver.state.groups
        error = self.driver.delete_group(group)
        if group == MEMBERED and self.member is not None:
            assert error is Error.NON_EMPTY_GROUP
        else:
            assert error is (Error.NONE if was_there else Error.GROUP_ID_NOT_FOUND)
            self._forget(lambda place: place[0] == group)

    @precondition(lambda self: self.member is None)
    @rule()
    def member_joins(self) -> None:
        """A consumer of topic t makes a consumer group of whatever was there."""
        self.member = TestMember(self.driver, "m", group_id=MEMBERED, topics=["t"])
        self.member.join()

    @precondition(lambda self: self.member is not None)
    @rule()
    def member_leaves(self) -> None:
        assert self.member is not None
        self.member.leave()
        self.member = None

    # ------------------------------------------------------------------ the world

    @rule(topic=topics)
    def topic_goes_or_comes(self, topic: str) -> None:
        driver = self.driver
        if topic in driver.image.topics:
            driver.delete_topic(topic)
            driver.advance(0)
            self._forget(lambda place: place[1] == topic)
        else:
            driver.ids[topic] = driver.topic(topic, 4)
        self._stay()

    @rule(minutes=st.sampled_from([1, 4, 5, 10, 31]))
    def time_passes(self, minutes: int) -> None:
        end_ms = self.driver.now.mono_ms + minutes * MINUTE_MS
        while self.next_check_ms <= end_ms:
            self.driver.advance(self.next_check_ms - self.driver.now.mono_ms)
            self._expire()
            self.next_check_ms += CHECK_MS
        self.driver.advance(end_ms - self.driver.now.mono_ms)
        self._stay()

    @rule()
    def reload(self) -> None:
        before = picture(self.driver.state)
        self.driver.reload()
        assert picture(self.driver.state) == before
        self.next_check_ms = self.driver.now.mono_ms + CHECK_MS
        self._stay()

    def _stay(self) -> None:
        """The member is heard of, and hears what is new."""
        if self.member is not None:
            self.member.settle()

    def _forget(self, which: Callable[[Place], bool]) -> None:
        self.model = {place: committed for place, committed in self.model.items() if not which(place)}

    def _expire(self) -> None:
        now_ms = self.driver.now.wall_ms
        self._forget(lambda place: self._is_over(place, now_ms))

    def _is_over(self, place: Place, now_ms: int) -> bool:
        group, topic, _ = place
        if group == MEMBERED and self.member is not None and topic == "t":
            return False
        committed = self.model[place]
        if committed.expire_timestamp != NEVER_CHOSEN:
            return now_ms >= committed.expire_timestamp
        return now_ms - committed.commit_timestamp >= RETENTION_MS

    # ------------------------------------------------------------------ what must hold

    @invariant()
    def what_is_fetched_is_the_model(self) -> None:
        found = {
            (group, topic, index): offset
            for group in (*SIMPLE, MEMBERED)
            for (topic, index), offset in self.driver.offsets(group).items()
        }
        assert found == {place: committed.offset for place, committed in self.model.items()}

    @invariant()
    def every_group_with_offsets_exists(self) -> None:
        assert set(self.driver.state.offsets.groups()) <= set(self.driver.state.groups)

    @invariant()
    def a_replay_of_the_log_is_the_same(self) -> None:
        assert picture(self.driver.reloaded().state) == picture(self.driver.state)


def picture(state: GroupState) -> object:
    """All that the log must bring back. A compacted log says nothing of a group that only had offsets, and has none."""
    with_offsets = set(state.offsets.groups())
    return (
        {
            group_id: (group.type, group.state_name, group.protocol_type)
            for group_id, group in state.groups.items()
            if group_id in with_offsets or group.protocol_type
        },
        {
            group_id: {topic: dict(found) for topic, found in state.offsets.topics(group_id).items()}
            for group_id in state.offsets.groups()
        },
    )


TestOffsets = Offsets.TestCase
TestOffsets.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
