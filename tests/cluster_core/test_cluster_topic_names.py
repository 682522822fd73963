"""Names of topics: which are legal, which collide."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cordwood.cluster.topic_names import LENGTH_MAX, check_name, collision
from cordwood.errors import Error, Refused
from cordwood.ids import TopicName


@pytest.mark.parametrize("name", ["a", "A-z_0.9", "...", "-", "_", "__consumer_offsets", "x" * LENGTH_MAX])
def test_legal_names(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize(
    "name", ["", ".", "..", "x" * (LENGTH_MAX + 1), "a b", "a/b", "../a", "a\\b", "ä", "a\n", "\0", "a:b", "٣"]
)
def test_illegal_names(name: str) -> None:
    with pytest.raises(Refused) as refusal:
        check_name(name)
    assert refusal.value.error == Error.INVALID_TOPIC
    assert refusal.value.message


@given(st.text())
def test_a_legal_name_is_one_plain_part_of_a_path(name: str) -> None:
    try:
        check_name(name)
    except Refused:
        return
    assert name.isascii()
    assert not {"/", "\\", "\0", " "} & set(name)
    assert name not in ("", ".", "..")
    assert len(f"{name}-2147483647") <= 260


@pytest.mark.parametrize(
    ("name", "others", "found"),
    [
        ("a.b", ["a_b"], "a_b"),
        ("a_b", ["a.b"], "a.b"),
        ("a.b.c", ["x", "a_b.c"], "a_b.c"),
        ("a.b", ["a.b"], None),
        ("ab", ["a.b", "a_b"], None),
        ("a.b", ["a-b", "ab"], None),
    ],
)
def test_dots_and_underscores_collide(name: str, others: list[str], found: str | None) -> None:
    assert collision(TopicName(name), [TopicName(other) for other in others]) == found
