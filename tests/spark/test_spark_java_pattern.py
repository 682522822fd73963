"""Java's regular expressions: translated to the same meaning, or refused."""

import re

import pytest

from cordwood.errors import ConfigError
from cordwood.spark.java_pattern import translated
from cordwood.spark.subscription import SubscribePattern, parse

TOPICS = ("a1", "b1", "t1", "t12", "T1", "x-y", "x.y", "x_y", "orders", "orders-eu", "11", "aa", "a&b")


def found(pattern: str) -> list[str]:
    return [topic for topic in TOPICS if re.compile(translated(pattern)).search(topic)]


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        (r"^\p{Alpha}\d$", ["a1", "b1", "t1", "T1"]),
        (r"^\p{Lower}1", ["a1", "b1", "t1", "t12"]),
        (r"^\p{Upper}", ["T1"]),
        (r"^\p{Digit}+$", ["11"]),
        (r"^\P{Digit}+$", ["x-y", "x.y", "x_y", "orders", "orders-eu", "aa", "a&b"]),
        (r"^[\P{Digit}1]+$", [topic for topic in TOPICS if topic != "t12"]),
        (r"^[^\p{Alnum}]", []),
        (r"\p{Punct}", ["x-y", "x.y", "x_y", "orders-eu", "a&b"]),
        (r"^[\p{Punct}xy]+$", ["x-y", "x.y", "x_y"]),
        (r"^(?<x>t)1", ["t1", "t12"]),
        (r"^(?<c>.)\k<c>$", ["11", "aa"]),
        (r"^(.)\1$", ["11", "aa"]),
        (r"(?<=t)1\z", ["t1"]),
        (r"(?<!t)1$", ["a1", "b1", "T1", "11"]),
        (r"\Qx.y\E", ["x.y"]),
        (r"\Qx.", ["x.y"]),
        (r"^[\w-.]+$", [topic for topic in TOPICS if topic != "a&b"]),
        (r"^[]a1]+$", ["a1", "11", "aa"]),
        (r"^[x+--y]+$", ["x-y"]),
        (r"^[a&b]+$", ["aa", "a&b"]),
        (r"^[^a-z\-.]", ["T1", "11"]),
        (r"^o[a-z]++-", ["orders-eu"]),
        (r"^(?>[a-z]+)\d", ["a1", "b1", "t1", "t12"]),
        (r"(?i)^t1", ["t1", "t12", "T1"]),
        (r"^(?i:t)\x31{1}\u0032?$", ["t1", "t12", "T1"]),
        (r"^(?:a|b)(?=1)(?!2)", ["a1", "b1"]),
        (r"orders(-eu)?|x\.y", ["x.y", "orders", "orders-eu"]),
    ],
)
def test_a_pattern_of_java_s_finds_the_same_topics(pattern: str, wanted: list[str]) -> None:
    assert found(pattern) == wanted


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("[[a-z]&&[^b-s]]1", "classes within classes"),
        ("[a-z&&b]1", "&&"),
        ("[a[b]]", "classes within classes"),
        (r"\p{IsAlphabetic}", r"\p{IsAlphabetic} is Java's alone, but for \p{Lower}"),
        (r"[\P{L}]", r"\P{L} is Java's alone, but for \P{Lower}"),
        (r"\pL", r"\pL"),
        (r"\h", r"'\\h' at position 0"),
        (r"a\v", r"'\\v' at position 1"),
        (r"\b{g}", "position 0"),
        (r"\12", "position 0"),
        (r"\012", "position 0"),
        (r"[\b]", "position 1"),
        (r"[\Qa\E]", "position 1"),
        ("(?x)a b", "'(?x)' at position 0"),
        ("(?U)a", "'(?U)' at position 0"),
        ("(?P<x>a)", "'(?P<' at position 0"),
        ("(?#a)", "position 0"),
        ("a{,2}", "position 1"),
        ("a{x}", "position 1"),
        ("[a", "has no end"),
        ("a\\", "position 1"),
        ("[a\\", "position 2"),
        ("a**", "multiple repeat"),
        ("a{99999999999}", "not a regular expression"),
    ],
)
def test_what_python_would_take_for_something_else_is_refused_by_the_options_name(pattern: str, reason: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse("subscribePattern", pattern)
    assert str(error.value).startswith("option subscribePattern is ")
    assert reason in str(error.value)


def test_a_query_has_the_pattern_that_python_understands() -> None:
    assert parse("subscribePattern", r"(?<x>t)\p{Digit}") == SubscribePattern(r"(?P<x>t)[0-9]")
