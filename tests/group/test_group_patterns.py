"""Patterns of topic names: what they match, and that no text hurts."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cordwood.errors import Error, Refused
from cordwood.group.patterns import PROGRAM_BYTES_MAX, TEXT_LENGTH_MAX, Pattern, compile_pattern
from cordwood.ids import TopicName


def names(*texts: str) -> list[TopicName]:
    return [TopicName(text) for text in texts]


@pytest.mark.parametrize(
    ("text", "matching", "other"),
    [
        ("orders", "orders", "orders-1"),
        ("orders", "orders", "my-orders"),
        ("orders-.*", "orders-1", "orders"),
        (r"orders-\d+", "orders-12", "orders-x"),
        ("a|ab", "ab", "abc"),
        ("(?i)orders", "ORDERS", "order"),
        ("^orders$", "orders", "orders-1"),
        (r"\Qa.b\E", "a.b", "aXb"),
        ("[^_].*", "orders", "__consumer_offsets"),
        (r"\pL+", "orders", "orders1"),
        ("", "", "a"),
    ],
)
def test_a_pattern_matches_whole_names(text: str, matching: str, other: str) -> None:
    pattern = compile_pattern(text)
    assert pattern.matches(matching)
    assert not pattern.matches(other)


def test_resolving_gives_the_matching_names_in_order() -> None:
    assert compile_pattern("t.*").resolve(names("t2", "u", "t1", "at")) == names("t1", "t2")


def test_internal_topics_are_matched_like_others() -> None:
    assert compile_pattern(".*offsets").resolve(names("__consumer_offsets")) == names("__consumer_offsets")


@pytest.mark.parametrize("text", ["(", "a**b)", "[a", r"\1", "(?=a)", "*", "a{1001}", r"\p{Nowhere}", "\ud800"])
def test_what_is_no_pattern_is_refused(text: str) -> None:
    assert refusal(text).error is Error.INVALID_REGULAR_EXPRESSION


def refusal(text: str) -> Refused:
    with pytest.raises(Refused) as caught:
        compile_pattern(text)
    return caught.value


def test_a_refusal_says_why_and_quotes_the_pattern() -> None:
    assert str(refusal("a(b")) == "missing ): a(b, in the regular expression 'a(b'"


def test_a_refusal_can_be_sent() -> None:
    assert str(refusal("\ud800(")).encode()


@pytest.mark.parametrize(
    "text",
    [
        "a" * (TEXT_LENGTH_MAX + 1),
        "a" * (PROGRAM_BYTES_MAX // 8),
        r"\pL{100}",
        "[a-z]{0,1000}" * 30,
        "((a{30}){30}){30}",
    ],
)
def test_what_would_cost_too_much_is_refused(text: str) -> None:
    assert refusal(text).error is Error.INVALID_REGULAR_EXPRESSION


def test_a_list_of_a_hundred_names_is_a_pattern() -> None:
    listed = names(*(f"topic-{index * 7919 % 1000:03}.suffix" for index in range(100)))
    assert compile_pattern("|".join(listed)).resolve(listed) == sorted(listed)


@pytest.mark.parametrize("text", ["(" * 16_000 + ")" * 16_000, "(" * 10_000 + "a" + ")*" * 10_000, "a|" * 16_000])
def test_deep_patterns_do_no_harm(text: str) -> None:
    result = attempt(text)
    if isinstance(result, Pattern):
        result.matches("a" * 249)
    else:
        assert result.error is Error.INVALID_REGULAR_EXPRESSION


def attempt(text: str) -> Pattern | Refused:
    try:
        return compile_pattern(text)
    except Refused as refused:
        return refused


def test_nothing_is_written_to_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    refusal("(")
    refusal(r"\pL{1000}")
    compile_pattern("(.*a)?" * 100).matches("ab" * 120)
    assert capfd.readouterr() == ("", "")


PIECES = st.sampled_from(
    [
        *"ab.-_1*+?|()[]{}^$\\,:=!<>#&",
        *("(?:", "(?i)", "(?P<n>", "(?s-i:", "[^", "a-z", "{2}", "{0,99}", "{1000}", "{,3}", "*?"),
        *(r"\d", r"\W", r"\b", r"\A", r"\z", r"\pL", r"\p{Greek}", r"\PN", r"\Q", r"\E", r"\C"),
        *(r"\x{10ffff}", r"\x{110000}", "[[:alpha:]]", "[:digit:]", "\0", "é", "\U0001f600", "\ud800"),
    ]
)
TEXTS = st.one_of(
    st.text(st.characters(), max_size=40),
    st.lists(PIECES, max_size=15).map("".join),
    st.binary(max_size=40).map(lambda raw: raw.decode("latin-1")),
    st.binary(max_size=40).map(lambda raw: raw.decode("utf-8", "surrogateescape")),
)


@settings(max_examples=300)
@given(TEXTS, st.text(st.sampled_from("abAB01._-"), max_size=249))
@example("(?:a{0,99}){9}", "a" * 249)
@example("\x00", "")
def test_every_text_is_a_pattern_or_refused(text: str, name: str) -> None:
    result = attempt(text)
    if isinstance(result, Pattern):
        assert result.text == text
        assert result.resolve(names(name)) == (names(name) if result.matches(name) else [])
    else:
        assert result.error is Error.INVALID_REGULAR_EXPRESSION
        assert str(result).encode()


@given(st.text(st.sampled_from("abcAB01._-"), min_size=1, max_size=249))
def test_a_quoted_name_matches_itself(name: str) -> None:
    pattern = compile_pattern(rf"\Q{name}\E")
    assert pattern.matches(name)
    assert not pattern.matches(name + "a")
