r"""Java's regular expressions as Python's, for options that Spark's Kafka source passes to Java. Pure.

Most of the two languages is the same. What is not is either translated here or refused: a pattern must never mean
something other than it did. Two facts about the names of topics make that easier: they are ASCII, so it does not matter
what ``\w`` makes of other letters, and they contain no line ends, so all the ways to say "the end" are one.
"""

import re
from collections.abc import Iterable
from typing import Final

from cordwood.errors import ConfigError

_CLASSES: Final = {
    "Lower": "az",
    "Upper": "AZ",
    "Alpha": "AZaz",
    "Digit": "09",
    "Alnum": "09AZaz",
    "Punct": "!/:@[`{~",
}
"""Java's ASCII classes: pairs of first and last characters, in order."""
_NAMED_CLASS: Final = re.compile(r"\\([pP])(?:\{(\w*)\}|(.?))")
_QUOTED: Final = re.compile(r"\\Q(.*?)(?:\\E|$)", re.DOTALL)
_BACK_REFERENCE: Final = re.compile(r"\\k<([A-Za-z][A-Za-z0-9]*)>")
_NAMED_GROUP: Final = re.compile(r"\(\?<([A-Za-z][A-Za-z0-9]*)>")
_SAME: Final = re.compile(
    r"""
      \\ (?: [dDwWsSBAZtnrfa] | b(?!\{) | x[0-9A-Fa-f]{2} | u[0-9A-Fa-f]{4} | [1-9](?![0-9]) | [^A-Za-z0-9] )
    | \( (?! \? )
    | \(\? (?: [:=!>] | <[=!] | [ims]+ [:)] )
    | \{ [0-9]+ (?: ,[0-9]* )? \}
    | [^\\(\[{]
    """,
    re.VERBOSE | re.DOTALL,
)
"""What both languages write alike, with the same meaning."""
_CHARACTER: Final = re.compile(r"\\(?:[tnrfa]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|[^A-Za-z0-9])|[^\\]", re.DOTALL)
_SHORT_CLASS: Final = re.compile(r"\\[dDwWsS]")


def translated(pattern: str) -> str:
    r"""
    >>> translated(r"(?<kind>\p{Alpha}+)-\d")
    '(?P<kind>[A-Za-z]+)-\\d'

    Raises:
        ConfigError: there is something in it that only Java has; the text says what.
    """
    made = []
    at = 0
    while at < len(pattern):
        piece, at = _class(pattern, at) if pattern[at] == "[" else _piece(pattern, at)
        made.append(piece)
    return "".join(made)


def _piece(pattern: str, at: int) -> tuple[str, int]:
    """The translation of what stands outside of brackets, and where the rest begins."""
    if found := _SAME.match(pattern, at):
        return found[0], found.end()
    if found := _NAMED_GROUP.match(pattern, at):
        return f"(?P<{found[1]}>", found.end()
    if found := _NAMED_CLASS.match(pattern, at):
        return f"[{_ranges(found)}]", found.end()
    if found := _BACK_REFERENCE.match(pattern, at):
        return f"(?P={found[1]})", found.end()
    if found := _QUOTED.match(pattern, at):
        return re.escape(found[1]), found.end()
    if pattern.startswith("\\z", at):
        return "\\Z", at + 2
    raise _unsupported(pattern, at)


# Between brackets


def _class(pattern: str, start: int) -> tuple[str, int]:
    """A character class, and where the rest begins. Each character is escaped, so that none has a special meaning."""
    negated = pattern.startswith("^", start + 1)
    at = first = start + 1 + negated
    made: list[str] = []
    while at < len(pattern):
        if pattern[at] == "]" and at > first:
            return f"[{'^' * negated}{''.join(made)}]", at + 1
        item, at = _item(pattern, at)
        made.append(item)
    raise ConfigError(f"the class {pattern[start : start + 20]!r} has no end")


def _item(pattern: str, at: int) -> tuple[str, int]:
    """One character, a range of them, or a class by its short name."""
    if found := _SHORT_CLASS.match(pattern, at):
        return found[0], found.end()
    if found := _NAMED_CLASS.match(pattern, at):
        return _ranges(found), found.end()
    first, at = _character(pattern, at)
    if pattern.startswith("-", at) and pattern[at + 1 : at + 2] not in ("]", ""):
        last, at = _character(pattern, at + 1)
        return f"{first}-{last}", at
    return first, at


def _character(pattern: str, at: int) -> tuple[str, int]:
    if pattern[at] == "[":
        raise ConfigError("classes within classes, such as [a[b]], are Java's alone; write it as one class")
    if pattern.startswith("&&", at):
        raise ConfigError(
            "&& between classes is Java's alone; write what is left of the class, or use (?!...) before it"
        )
    found = _CHARACTER.match(pattern, at)
    if found is None:
        raise _unsupported(pattern, at)
    return found[0] if len(found[0]) > 1 else re.escape(found[0]), found.end()


# Classes with names


def _ranges(found: re.Match[str]) -> str:
    """The inside of brackets for a named class, or for its complement."""
    name = found[2] if found[2] is not None else found[3]
    if name not in _CLASSES:
        raise ConfigError(
            f"{found[0]} is Java's alone, but for {', '.join(f'{found[0][:2]}{{{known}}}' for known in _CLASSES)}"
        )
    ends = _CLASSES[name]
    pairs = list(zip(map(ord, ends[::2]), map(ord, ends[1::2]), strict=True))
    return "".join(
        f"{_escaped(first)}-{_escaped(last)}" for first, last in (_others(pairs) if found[1] == "P" else pairs)
    )


def _others(pairs: Iterable[tuple[int, int]]) -> Iterable[tuple[int, int]]:
    at = 0
    for first, last in pairs:
        yield at, first - 1
        at = last + 1
    yield at, 0x10FFFF


def _escaped(code: int) -> str:
    return chr(code) if chr(code).isalnum() and code < 128 else f"\\U{code:08x}"


def _unsupported(pattern: str, at: int) -> ConfigError:
    """What begins here is not the same in both languages, or is an error in Java too."""
    length = {"\\": 2, "(": 4, "{": 1}.get(pattern[at], 1)
    return ConfigError(
        f"{pattern[at : at + length]!r} at position {at} is not a regular expression, or not the same in Java and here"
    )
