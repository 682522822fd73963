"""Which names a topic may have. They become names of directories: the rules also keep them in the data directory."""

import re
from collections.abc import Iterable

from cordwood.errors import Error, Refused
from cordwood.ids import TopicName

LENGTH_MAX = 249  # with a partition's number and a suffix for deletion, it still fits into 255 bytes

_LEGAL = re.compile(r"[A-Za-z0-9._-]+")


def check_name(name: str) -> TopicName:
    """The name, if a topic may have it; otherwise ``Refused(INVALID_TOPIC)`` with the reason."""
    if not name:
        raise Refused(Error.INVALID_TOPIC, "A topic's name cannot be empty.")
    if name in (".", ".."):
        raise Refused(Error.INVALID_TOPIC, "A topic's name cannot be '.' or '..'.")
    if len(name) > LENGTH_MAX:
        raise Refused(
            Error.INVALID_TOPIC, f"A topic's name has at most {LENGTH_MAX} characters; this one has {len(name)}."
        )
    if not _LEGAL.fullmatch(name):
        raise Refused(
            Error.INVALID_TOPIC,
            f"Topic name {name!r} has a character other than ASCII letters, digits, '.', '_' and '-'.",
        )
    return TopicName(name)


def collision(name: TopicName, others: Iterable[TopicName]) -> TopicName | None:
    """Another topic whose name differs only in '.' and '_': in the names of metrics, the two would be the same."""
    if "." not in name and "_" not in name:
        return None
    return next((other for other in others if other != name and folded(other) == folded(name)), None)


def folded(name: str) -> str:
    """A topic's name as it appears in metrics, where '.' and '_' count as one."""
    return name.replace(".", "_")
