r"""Regular expressions of topic names, which a member sends and the broker resolves (KIP-848).

The syntax is RE2's, and a pattern has to match the whole name. Internal topics are matched like any other, as Kafka's
broker does: a client that does not want them says so in its pattern.

The sender of a pattern is not trusted. RE2 needs no more steps for a name than the name has characters times the
pattern has instructions, and what a pattern may cost has three limits here: the length of its text, the size of the
program that it becomes, and the memory for matching. That memory is used up only by patterns made for the purpose, but
then it is megabytes: compile, resolve, and keep the text, not the pattern.

    >>> pattern = compile_pattern(r"orders-\d+")
    >>> pattern.matches("orders-12"), pattern.matches("all-orders-12")
    (True, False)
    >>> pattern.resolve(["orders-2", "payments", "orders-1"])
    ['orders-1', 'orders-2']
"""

from collections.abc import Iterable
from typing import Protocol

import re2

from cordwood.errors import Error, Refused
from cordwood.ids import TopicName

# Parsing takes about 10 ms for each 100,000 characters. Topic names have at most 249.
TEXT_LENGTH_MAX = 32_768

# About 4,000 instructions. Literal text has one for each character, \pL has 1,200. The worst patterns that a search
# found within this limit took 9 ms to compile, 0.6 ms for a name of 30 characters and 13 ms for one of 249.
PROGRAM_BYTES_MAX = 48 * 1024

# With less, RE2 gives up its fast automaton earlier. This is its own default.
MATCHING_BYTES_MAX = 8 * 1024 * 1024


class _Compiled(Protocol):
    """The part of the package's own type that is used here."""

    def fullmatch(self, text: bytes, /) -> object | None: ...


class Pattern:
    """A compiled pattern."""

    __slots__ = ("_compiled", "text")

    def __init__(self, text: str, compiled: _Compiled) -> None:
        self.text = text
        self._compiled = compiled

    def matches(self, name: str) -> bool:
        """Does the pattern match the whole name?"""
        # Given bytes, RE2 does not translate positions back.
        return self._compiled.fullmatch(name.encode()) is not None

    def resolve(self, names: Iterable[TopicName]) -> list[TopicName]:
        """The names that match, in order."""
        return sorted(filter(self.matches, names))


def compile_pattern(text: str) -> Pattern:
    """Compile a pattern that a client sent, or raise ``Refused`` with INVALID_REGULAR_EXPRESSION."""
    if len(text) > TEXT_LENGTH_MAX:
        raise _refused(text, f"it is longer than {TEXT_LENGTH_MAX} characters")
    try:
        source = text.encode()
        # Both limits are one option in RE2, so compile with a small one before the large one is given.
        _compile(source, PROGRAM_BYTES_MAX)
        return Pattern(text, _compile(source, MATCHING_BYTES_MAX))
    except UnicodeEncodeError:
        raise _refused(text, "half of a surrogate pair") from None
    except re2.error as error:
        raise _refused(text, _reason(error)) from None


def _compile(source: bytes, memory_bytes_max: int) -> _Compiled:
    options = re2.Options()
    options.max_mem = memory_bytes_max
    options.log_errors = False
    options.never_capture = True
    compiled: _Compiled = re2.compile(source, options)
    # The package caches the last patterns that it compiled. They must not outlive their use here.
    re2.purge()
    return compiled


def _reason(error: Exception) -> str:
    """RE2's error message, which it gives in bytes that quote the pattern."""
    (reason,) = error.args
    return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)


def _refused(text: str, reason: str) -> Refused:
    return Refused(Error.INVALID_REGULAR_EXPRESSION, f"{reason}, in the regular expression {text!r}")
