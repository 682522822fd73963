"""The groups of one partition of ``__consumer_offsets``, and what their handlers need to decide.

Only ``GroupMachine.apply`` changes the durable part (groups as far as they are stored, committed offsets). What a
classic group does between two generations (who has joined, who waits for an answer) is not stored, here as in Kafka:
its handlers change it, and a reload forgets it.
"""

from collections.abc import Callable
from uuid import UUID

from cordwood.cluster.image import MetadataImage
from cordwood.config import BrokerConfig, GroupConfig
from cordwood.coordinator.deadlines import Deadlines
from cordwood.group.committed import CommittedOffsets
from cordwood.group.groups import Decided, Group
from cordwood.group.memory import GroupMemory
from cordwood.group.stored import OFFSETS_TOPIC
from cordwood.ids import TopicName
from cordwood.ports import Entropy, Logger


class GroupState:
    """Groups by id, their offsets and deadlines."""

    def __init__(
        self,
        *,
        config: Callable[[], BrokerConfig],
        image: MetadataImage,
        entropy: Entropy,
        logger: Logger,
        memory: GroupMemory | None = None,
    ) -> None:
        """*memory* is shared by all shards; without it, these are all the groups there are."""
        self.groups: dict[str, Group] = {}
        self.ahead: dict[str, Decided] = {}
        """Groups for which more has been decided than written: for handlers that gather, and nobody else."""
        self.offsets = CommittedOffsets()
        self.deadlines: Deadlines[object] = Deadlines()
        self.groups_to_expire: list[str] = []
        """Those that the current round of ``offsets.expiry`` has still to look at, in reverse order."""
        self.image = image
        self.logger = logger
        self.memory = memory or GroupMemory(lambda: self.config.max_groups_bytes, lambda: [self])
        self._config = config
        self._entropy = entropy
        self._common_settings = config(), GroupConfig.merge({}, config())
        """The settings of all groups without any of their own, and the broker's settings that they were made from."""

    @property
    def config(self) -> BrokerConfig:
        """The settings now in force."""
        return self._config()

    @property
    def batch_bytes_max(self) -> int:
        """The largest batch that the offsets topic accepts."""
        topic = self.image.topics.get(TopicName(OFFSETS_TOPIC))
        own = topic.config.get("max.message.bytes") if topic is not None else None
        return int(own) if own is not None else self.config.topic_defaults.max_message_bytes

    def settings_of(self, group_id: str) -> GroupConfig:
        """A group's own settings over the broker's."""
        config = self._config()
        overrides = self.image.group_configs.get(group_id)
        if overrides:
            return GroupConfig.merge(overrides, config)
        if self._common_settings[0] is not config:
            self._common_settings = config, GroupConfig.merge({}, config)
        return self._common_settings[1]

    def new_uuid(self) -> UUID:
        """A random UUID, as clients make them."""
        return UUID(int=self._entropy.getrandbits(128), version=4)

    def check(self) -> None:
        self.offsets.check()
        for group_id, decided in self.ahead.items():
            assert decided.group.id == group_id in self.groups
            assert decided.records
            decided.group.check()
        for group_id, group in self.groups.items():
            assert group.id == group_id
            group.check()
