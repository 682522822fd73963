"""Deadlines: set, set again, cancelled, due in order."""

from hypothesis import given
from hypothesis import strategies as st

from cordwood.coordinator.deadlines import SPARE_PLACES, Deadlines


def test_the_earliest_is_due_first() -> None:
    deadlines = Deadlines[str]()
    deadlines.set("late", 20)
    deadlines.set("early", 10)
    assert deadlines.earliest() == 10
    assert deadlines.pop_due(9) is None
    assert [deadlines.pop_due(30), deadlines.pop_due(30), deadlines.pop_due(30)] == ["early", "late", None]


def test_a_later_time_replaces_an_earlier_one() -> None:
    deadlines = Deadlines[str]()
    deadlines.set("a", 10)
    deadlines.set("a", 50)
    assert deadlines.pop_due(49) is None
    assert deadlines.pop_due(50) == "a"
    assert len(deadlines) == 0


def test_an_earlier_time_replaces_a_later_one_and_comes_once() -> None:
    deadlines = Deadlines[str]()
    deadlines.set("a", 50)
    deadlines.set("a", 10)
    assert deadlines.pop_due(10) == "a"
    assert deadlines.pop_due(100) is None


def test_one_that_was_put_off_lets_an_earlier_one_go_first() -> None:
    deadlines = Deadlines[str]()
    deadlines.set("put off", 0)
    deadlines.set("on time", 0)
    deadlines.set("put off", 1)
    assert [deadlines.pop_due(5), deadlines.pop_due(5)] == ["on time", "put off"]


def test_what_is_cancelled_never_comes() -> None:
    deadlines = Deadlines[str]()
    deadlines.set("a", 10)
    deadlines.cancel("a")
    deadlines.cancel("never set")
    assert deadlines.pop_due(100) is None
    assert deadlines.earliest() is None


def test_cancelled_ones_do_not_pile_up() -> None:
    deadlines = Deadlines[int]()
    for number in range(5 * SPARE_PLACES):
        deadlines.set(number, 1_000_000 + number)
        deadlines.cancel(number)
    assert len(deadlines._heap) <= 2 * SPARE_PLACES
    deadlines.check()


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 30), st.sampled_from(["set", "cancel", "pop"]))))
def test_it_is_a_dictionary_that_knows_the_time(steps: list[tuple[str, int, str]]) -> None:
    deadlines, model = Deadlines[str](), dict[str, int]()
    for key, time, action in steps:
        if action == "set":
            deadlines.set(key, time)
            model[key] = time
        elif action == "cancel":
            deadlines.cancel(key)
            model.pop(key, None)
        else:
            found = deadlines.pop_due(time)
            due = {key: at for key, at in model.items() if at <= time}
            assert (found is None) == (not due)
            if found is not None:
                assert model.pop(found) == min(due.values())
        deadlines.check()
        assert {key: deadlines.get(key) for key in deadlines} == model
