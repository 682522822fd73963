"""The groups of one partition of ``__consumer_offsets``, and what their handlers are given to decide with.

The durable part (groups as far as they are stored, committed offsets) is changed by ``GroupMachine.apply`` alone. What
a classic group does between two generations (who has joined, who waits for an answer) is not stored, here as in Kafka:
its handlers change it, and a reload forgets it.
"""

from collections.abc import Callable
from uuid import UUID

from cordwood.cluster.image import MetadataImage
from cordwood.config import BrokerConfig
from cordwood.coordinator.deadlines import Deadlines
from cordwood.group.committed import CommittedOffsets
from cordwood.group.groups import Group
from cordwood.ports import Entropy, Logger


class GroupState:
    """Groups by id, their offsets and deadlines."""

    def __init__(
        self, *, config: Callable[[], BrokerConfig], image: MetadataImage, entropy: Entropy, logger: Logger
    ) -> None:
        self.groups: dict[str, Group] = {}
        self.offsets = CommittedOffsets()
        self.deadlines: Deadlines[object] = Deadlines()
        self.image = image
        self.logger = logger
        self._config = config
        self._entropy = entropy

    @property
    def config(self) -> BrokerConfig:
        """The settings now in force."""
        return self._config()

    def new_uuid(self) -> UUID:
        """A random UUID, as clients make them."""
        return UUID(int=self._entropy.getrandbits(128), version=4)

    def check(self) -> None:
        self.offsets.check()
        for group_id, group in self.groups.items():
            assert group.id == group_id
            group.check()
