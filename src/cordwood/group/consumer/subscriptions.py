"""What the members of a group have said of themselves, counted: who would miss a topic, a pattern, an assignor?"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from .member import Description


@dataclass(slots=True)
class Subscriptions:
    """How many members there are for each. What nobody has is not in there."""

    names: dict[str, int] = field(default_factory=dict)
    patterns: dict[str, int] = field(default_factory=dict)
    assignors: dict[str, int] = field(default_factory=dict)
    classic_protocols: dict[str, int] = field(default_factory=dict)
    classic_members: int = 0

    def copy(self) -> "Subscriptions":
        return Subscriptions(
            self.names.copy(),
            self.patterns.copy(),
            self.assignors.copy(),
            self.classic_protocols.copy(),
            self.classic_members,
        )

    def add(self, description: Description) -> None:
        self._count(description, 1)

    def remove(self, description: Description) -> None:
        self._count(description, -1)

    def _count(self, description: Description, step: int) -> None:
        count(self.names, description.topics, step)
        if description.pattern:
            count(self.patterns, (description.pattern,), step)
        if description.server_assignor is not None:
            count(self.assignors, (description.server_assignor,), step)
        if description.classic is not None:
            self.classic_members += step
            count(self.classic_protocols, {each.name for each in description.classic.supported_protocols}, step)

    def preferred_assignor(self, served: Sequence[str]) -> str:
        """The one that most members ask for, among those that are served; the first of these if nobody asks."""
        asked = [name for name in self.assignors if name in served]
        return min(asked, key=lambda name: (-self.assignors[name], name)) if asked else served[0]


def count(counts: dict[str, int], keys: Iterable[str], step: int) -> None:
    for key in keys:
        total = counts.get(key, 0) + step
        if total:
            counts[key] = total
        else:
            del counts[key]
