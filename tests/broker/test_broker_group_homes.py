"""Which partition of the offsets' topic a group belongs to."""

import pytest

from cordwood.broker.coordinators import partition_for


@pytest.mark.parametrize(
    ("group", "partition"),
    [("neg-10", 30), ("neg-11", 29), ("neg-12", 28)],
)
def test_a_hash_below_zero_loses_its_sign(group: str, partition: int) -> None:
    """Where Kafka 4.3 put these groups."""
    assert partition_for(group, 50) == partition


@pytest.mark.parametrize(
    ("group", "hash_code"),
    [
        ("", 0),
        ("a", 97),
        ("group", 98629247),
        ("polygenelubricants", 0),  # Java's hash of it is the smallest int, which has no positive counterpart
        ("\U0001f600", 1772899),  # two units of 16 bits
        ("x" * 300, 1757771264),
    ],
)
def test_the_hash_is_javas(group: str, hash_code: int) -> None:
    assert partition_for(group, 1 << 31) == hash_code
