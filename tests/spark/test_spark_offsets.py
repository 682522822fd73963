"""Offsets as text, and offsets that a query begins and ends at."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cordwood.client.raw import PartitionMeta, TopicMeta
from cordwood.ids import NO_TOPIC_ID
from cordwood.spark.listener import offsets_of
from cordwood.spark.offsets import Offsets, of_json, parse_offsets, to_json
from cordwood.spark.subscription import Assign, MissingTopic, Subscribe, SubscribePattern, check_found

OFFSETS = st.dictionaries(st.tuples(st.text(min_size=1, max_size=3), st.integers(0, 300)), st.integers(0, 2**63 - 1))


def topics(**partitions: int) -> dict[str, TopicMeta]:
    return {
        name: TopicMeta(name, NO_TOPIC_ID, {number: PartitionMeta(1, 0) for number in range(count)})
        for name, count in partitions.items()
    }


@given(OFFSETS, st.randoms(use_true_random=False))
def test_equal_offsets_have_equal_texts(offsets: Offsets, random: object) -> None:
    shuffled = list(offsets.items())
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert json.dumps(to_json(dict(shuffled))) == json.dumps(to_json(offsets))


@given(OFFSETS)
def test_offsets_survive_their_text(offsets: Offsets) -> None:
    text = json.dumps(to_json(offsets))
    assert of_json(json.loads(text)) == offsets
    assert parse_offsets("startingOffsets", text) == offsets


def test_partitions_are_in_the_order_of_their_numbers() -> None:
    assert json.dumps(to_json({("t", 10): 1, ("t", 2): 1}), separators=(",", ":")) == '{"t":{"2":1,"10":1}}'


def test_progress_of_sources_that_are_not_kafkas_is_left_out() -> None:
    texts = ['{"a":{"0":5}}', "17", None, '{"logOffset":3}', "[", '{"b":{"1":-1}}']
    assert offsets_of(texts) == {("a", 0): 5}


def test_a_pattern_is_found_anywhere_in_a_name_and_finds_no_internal_topic() -> None:
    found = SubscribePattern("or").select(topics(orders=2, storage=1, users=1, __consumer_offsets=1))
    assert found == {("orders", 0), ("orders", 1), ("storage", 0)}
    assert SubscribePattern(".*").select(topics(__consumer_offsets=1, a=1)) == {("a", 0)}


def test_assigned_partitions_are_read_as_far_as_they_exist() -> None:
    assert Assign(frozenset({("a", 0), ("a", 5)})).select(topics(a=2)) == {("a", 0)}


def test_a_subscription_has_all_partitions_of_its_topics() -> None:
    assert Subscribe(("a", "b")).select(topics(a=2, b=1, c=1)) == {("a", 0), ("a", 1), ("b", 0)}


def test_a_missing_topic_is_named_with_the_nearest_one() -> None:
    with pytest.raises(MissingTopic, match=r"no topic order; did you mean orders\?"):
        check_found(Subscribe(("order",)), {}, ["orders", "users"])
