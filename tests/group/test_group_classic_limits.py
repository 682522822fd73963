"""Many members, large words, hostile names: bounded, and as fast as it should be."""

from time import process_time

from cordwood.errors import Error
from cordwood.group.classic.joining import BATCHES_MAX, PENDING_MAX
from cordwood.wire.messages import JoinGroupResponse, SyncGroupResponse
from group.classic_driver import DELAY_MS, ClassicDriver

MANY = 500


class _Unchecked(ClassicDriver):
    """Invariants are for small groups: checking them takes time in proportion to the group, at every event."""

    def __init__(self, **settings: object) -> None:
        super().__init__(**settings)
        self.machine.check = lambda: None  # type: ignore[method-assign]
        self.machine.deadlines.check = lambda: None  # type: ignore[method-assign]


def test_what_members_say_is_bounded() -> None:
    driver = _Unchecked()
    large = {"range": bytes(1 << 20)}
    taken = 0
    while (asker := driver.join(protocols=large, version=3)).waits:
        taken += 1
    assert driver.refused(asker) == Error.GROUP_MAX_SIZE_REACHED
    limit = BATCHES_MAX * driver.state.batch_bytes_max
    assert taken == limit // ((1 << 20) + 2000)
    assert driver.group.roster.weight_bytes <= limit
    other = driver.join(group_id="other", version=3)
    driver.advance(DELAY_MS)
    assert other.take(JoinGroupResponse).error_code == Error.NONE


def test_what_a_member_says_anew_replaces_what_it_said() -> None:
    driver = ClassicDriver()
    (member,) = driver.stable(1)
    for size in (1 << 20, 10, 12 << 20, 10 << 20, 0):
        assert driver.join(member, protocols={"range": bytes(size)}).take(JoinGroupResponse).error_code == Error.NONE
    assert driver.group.roster.weight_bytes < 5000
    assert driver.refused(driver.join(member, protocols={"range": bytes(17 << 20)})) == Error.GROUP_MAX_SIZE_REACHED
    assert driver.members == [member]


def test_ids_that_are_given_out_are_bounded() -> None:
    driver = _Unchecked()
    first = driver.new_id()
    for _ in range(PENDING_MAX):
        last = driver.new_id()
    assert len(driver.group.pending) == PENDING_MAX
    assert driver.refused(driver.join(first)) == Error.UNKNOWN_MEMBER_ID
    assert driver.join(last).waits
    assert sum(getattr(key, "group_id", None) == "g" for key in driver.state.deadlines) <= PENDING_MAX + 2


def test_a_rebalance_takes_time_in_proportion_to_the_members() -> None:
    taken = {count: min(_rebalance(count) for _ in range(3)) for count in (MANY // 4, MANY)}
    assert taken[MANY] < 10 * taken[MANY // 4]


def _rebalance(count: int) -> float:
    """Seconds that *count* members take to join, sync, and do both again."""
    driver = _Unchecked(group_initial_rebalance_delay_ms=0)
    started = process_time()
    entered = [driver.enter() for _ in range(count)]
    members = [member for member, _ in entered]
    driver.advance(0)
    driver.assign(members, generation=1)
    askers = [driver.join(member) for member in members]
    assert askers[-1].take(JoinGroupResponse).generation_id == 2
    driver.assign(members, generation=2)
    assert driver.sync(members[-1], 2).take(SyncGroupResponse).error_code == Error.NONE
    return process_time() - started
