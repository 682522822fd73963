"""What the members of a group have said about themselves, counted: who would miss a topic, a pattern, an assignor?"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from .member import Description
from .weight import names_bytes

NAMES_MAX: Final = 100_000
"""How many names the members of a group may subscribe to. Members with the same subscription count once."""


class Wish(NamedTuple):
    """A set of names, and how many members subscribe to exactly these."""

    topics: frozenset[str]
    members: int


@dataclass(slots=True)
class Subscriptions:
    """How many members there are for each. What has none is not in there."""

    names: dict[str, int] = field(default_factory=dict)
    wishes: dict[frozenset[str], "Wish"] = field(default_factory=dict)
    patterns: dict[str, int] = field(default_factory=dict)
    assignors: dict[str, int] = field(default_factory=dict)
    classic_protocols: dict[str, int] = field(default_factory=dict)
    classic_members: int = 0
    names_bytes: int = 0
    """The memory that the names take."""

    def copy(self) -> "Subscriptions":
        return Subscriptions(
            self.names.copy(),
            self.wishes.copy(),
            self.patterns.copy(),
            self.assignors.copy(),
            self.classic_protocols.copy(),
            self.classic_members,
            self.names_bytes,
        )

    def add(self, description: Description) -> None:
        self._count(description, 1)

    def remove(self, description: Description) -> None:
        self._count(description, -1)

    def _count(self, description: Description, step: int) -> None:
        count(self.names, description.topics, step)
        self._count_wish(description.topics, step)
        if description.pattern:
            count(self.patterns, (description.pattern,), step)
        if description.server_assignor is not None:
            count(self.assignors, (description.server_assignor,), step)
        if description.classic is not None:
            self.classic_members += step
            count(self.classic_protocols, {each.name for each in description.classic.supported_protocols}, step)

    def _count_wish(self, topics: frozenset[str], step: int) -> None:
        wish = self.wishes.get(topics, Wish(topics, 0))
        if not wish.members:
            self.names_bytes += names_bytes(topics)
        if wish.members + step:
            self.wishes[topics] = Wish(wish.topics, wish.members + step)
        else:
            del self.wishes[topics]
            self.names_bytes -= names_bytes(topics)

    def same(self, topics: frozenset[str]) -> frozenset[str]:
        """The same set of names as other members have, if there is one: thousands of names are kept only once."""
        wish = self.wishes.get(topics)
        return topics if wish is None else wish.topics

    @property
    def name_count(self) -> int:
        """How many names are kept."""
        return sum(map(len, self.wishes))

    def preferred_assignor(self, served: Sequence[str]) -> str:
        """The one of *served* that most members ask for; the first of these if no member asks for one."""
        asked = [name for name in self.assignors if name in served]
        return min([(-self.assignors[name], name) for name in asked])[1] if asked else served[0]


def count(counts: dict[str, int], keys: Iterable[str], step: int) -> None:
    for key in keys:
        total = counts.get(key, 0) + step
        if total:
            counts[key] = total
        else:
            del counts[key]
