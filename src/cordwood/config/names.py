"""What to say about an unknown name: the nearest known one."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from cordwood.errors import ConfigError


def unknown_name(
    what: str, name: str, known: Iterable[str], *, elsewhere: Mapping[str, str] | None = None
) -> ConfigError:
    """The error for an unknown *name*, with its nearest known neighbour.

    *elsewhere* has names that are known in another place, and what means the same here.

    >>> unknown_name("topic setting", "retention.msec", ["retention.ms", "segment.ms"])
    ConfigError('unknown topic setting retention.msec; did you mean retention.ms?')
    """
    meant = dict(elsewhere or {})
    meant.update((one, one) for one in known)
    near = get_close_matches(name.lower(), meant, n=1, cutoff=0.6)
    hint = f"; did you mean {meant[near[0]]}?" if near else ""
    return ConfigError(f"unknown {what} {name}{hint}")
