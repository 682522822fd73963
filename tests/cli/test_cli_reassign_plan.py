"""Where `cordwood topics reassign` puts replicas."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from cordwood.cli.reassign_plan import plan

BROKERS = list(range(1, 8))


@st.composite
def topics(draw: st.DrawFn) -> tuple[dict[int, list[int]], list[int], int]:
    partitions = draw(st.integers(1, 30))
    current = {p: draw(st.permutations(BROKERS))[: draw(st.integers(1, 4))] for p in range(partitions)}
    brokers = draw(st.lists(st.sampled_from(BROKERS), min_size=1, unique=True))
    return current, brokers, draw(st.integers(1, len(brokers)))


@given(topics())
def test_replicas_and_leaders_are_spread_over_the_brokers_named(
    case: tuple[dict[int, list[int]], list[int], int],
) -> None:
    current, brokers, replicas = case
    found = plan(current, brokers, replicas)
    assert found.keys() == current.keys()
    assert all(len(set(mine)) == len(mine) == replicas and set(mine) <= set(brokers) for mine in found.values())
    load = Counter(dict.fromkeys(brokers, 0)) + Counter(broker for mine in found.values() for broker in mine)
    assert max(load.values()) - min(load[broker] for broker in brokers) <= 1


@given(topics())
def test_a_plan_carried_out_moves_nothing_any_more(case: tuple[dict[int, list[int]], list[int], int]) -> None:
    current, brokers, replicas = case
    found = plan(current, brokers, replicas)
    again = plan(found, brokers, replicas)
    assert [set(mine) for mine in again.values()] == [set(mine) for mine in found.values()]


racks = st.fixed_dictionaries(dict.fromkeys(BROKERS, st.sampled_from(["a", "b", "c", None])))


@given(topics(), racks)
def test_no_rack_has_more_than_it_must(
    case: tuple[dict[int, list[int]], list[int], int], places: dict[int, str | None]
) -> None:
    current, brokers, replicas = case
    named = {broker: rack for broker, rack in places.items() if rack is not None}
    found = plan(current, brokers, replicas, named)
    for mine in found.values():
        assert len(set(mine)) == len(mine) == replicas
        assert set(mine) <= set(brokers)
        used = Counter(places[broker] for broker in mine)
        others = [places[broker] for broker in brokers if broker not in mine]
        assert max(used.values()) - min([used[rack] for rack in others], default=max(used.values())) < 2
    again = plan(found, brokers, replicas, named)
    assert [set(mine) for mine in again.values()] == [set(mine) for mine in found.values()]


def test_a_replica_moves_to_a_rack_that_has_none() -> None:
    places = {1: "a", 2: "a", 3: "b", 4: "b"}
    found = plan({0: (1, 2), 1: (3, 4), 2: (1, 3)}, [1, 2, 3, 4], 2, places)
    assert all({places[broker] for broker in mine} == {"a", "b"} for mine in found.values())
    assert sum(len({*found[p]} - {*old}) for p, old in {0: (1, 2), 1: (3, 4), 2: (1, 3)}.items()) == 2


def test_racks_count_more_than_shares() -> None:
    found = plan({p: (1 + p, 1 + (p + 1) % 3) for p in range(3)}, [1, 2, 3, 4], 2, {1: "a", 2: "a", 3: "a", 4: "b"})
    assert all(4 in mine for mine in found.values())
    assert Counter(broker for mine in found.values() for broker in mine) == {1: 1, 2: 1, 3: 1, 4: 3}


def test_replicas_stay_where_they_may() -> None:
    current = {0: (1, 2), 1: (2, 3), 2: (3, 1)}
    assert plan(current, [1, 2, 3], 2) == current
    found = plan(current, [1, 2, 3, 4], 2)
    moved = sum(len(set(found[p]) - set(current[p])) for p in current)
    assert moved == 1


def test_one_more_replica_keeps_those_there_are() -> None:
    current = {p: (1 + p % 3, 1 + (p + 1) % 3) for p in range(6)}
    found = plan(current, [1, 2, 3], 3)
    assert all(set(current[p]) < set(found[p]) for p in current)


def test_nobody_leads_everything() -> None:
    found = plan(dict.fromkeys(range(9), (1, 2, 3)), [1, 2, 3], 3)
    assert Counter(mine[0] for mine in found.values()) == {1: 3, 2: 3, 3: 3}
