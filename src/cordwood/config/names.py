"""What to say about a name that nobody knows: the nearest one that is known."""

from collections.abc import Iterable
from difflib import get_close_matches

from cordwood.errors import ConfigError


def unknown_name(what: str, name: str, known: Iterable[str]) -> ConfigError:
    """The error for an unknown *name*, with its nearest known neighbour.

    >>> unknown_name("topic setting", "retention.msec", ["retention.ms", "segment.ms"])
    ConfigError('unknown topic setting retention.msec; did you mean retention.ms?')
    """
    near = get_close_matches(name, known, n=1, cutoff=0.6)
    hint = f"; did you mean {near[0]}?" if near else ""
    return ConfigError(f"unknown {what} {name}{hint}")
