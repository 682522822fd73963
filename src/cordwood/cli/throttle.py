"""How fast a topic is moved: the settings that Kafka's own tool writes for that, and removes afterwards.

The topic's settings say which replicas are slowed down, those of every participating broker how much.
"""

from collections.abc import Mapping, Sequence

from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ResourceType,
)

from cordwood.client.connect import ANSWER_TIMEOUT_S, ClientError, error_of, sentence
from cordwood.client.insist import insist

RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
LEADERS, FOLLOWERS = REPLICAS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")


class Throttle:
    """The throttle of one topic's moves."""

    def __init__(self, admin: AdminClient, topic: str) -> None:
        self._admin = admin
        self._topic = topic

    def set(self, rate: int, current: Mapping[int, Sequence[int]], targets: Mapping[int, Sequence[int]]) -> None:
        """Slow down the replicas that serve partitions and those that receive them, to *rate* bytes/s on each
        broker."""
        new = {p: [broker for broker in target if broker not in current[p]] for p, target in targets.items()}
        moving = {p for p, brokers in new.items() if brokers}
        brokers = sorted({broker for p in moving for broker in (*current[p], *new[p])})
        serving = [f"{p}:{broker}" for p in sorted(moving) for broker in current[p]]
        taking = [f"{p}:{broker}" for p in sorted(moving) for broker in new[p]]
        if moving:
            self._alter(ResourceType.TOPIC, self._topic, {LEADERS: ",".join(serving), FOLLOWERS: ",".join(taking)})
            for broker in brokers:
                self._alter(ResourceType.BROKER, str(broker), dict.fromkeys(RATES, str(rate)))

    def clear(self, *, others_move: bool) -> None:
        """Remove the topic's throttle, if it has one; and the brokers', unless others may need it."""
        if not self._own(ResourceType.TOPIC, self._topic, REPLICAS):
            return
        self._alter(ResourceType.TOPIC, self._topic, dict.fromkeys(REPLICAS))
        if not others_move:
            for broker in sorted(self._admin.list_topics(timeout=ANSWER_TIMEOUT_S).brokers):
                if self._own(ResourceType.BROKER, str(broker), RATES):
                    self._alter(ResourceType.BROKER, str(broker), dict.fromkeys(RATES))

    def _own(self, kind: ResourceType, name: str, settings: Sequence[str]) -> bool:
        """Does it have one of these settings of its own?"""
        resource = ConfigResource(kind, name)
        future = self._admin.describe_configs([resource], request_timeout=ANSWER_TIMEOUT_S)[resource]
        if (error := error_of(future)) is not None:
            raise ClientError(f"the settings of {name} could not be read: {sentence(error)}")
        dynamic = {ConfigSource.DYNAMIC_TOPIC_CONFIG.value, ConfigSource.DYNAMIC_BROKER_CONFIG.value}
        found = future.result()
        return any(found[setting].source in dynamic for setting in settings if setting in found)

    def _alter(self, kind: ResourceType, name: str, values: Mapping[str, str | None]) -> None:
        """Set them; those without a value are removed."""
        entries = [
            ConfigEntry(
                setting,
                value,
                incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
            )
            for setting, value in values.items()
        ]
        resource = ConfigResource(kind, name, incremental_configs=entries)
        outcome = insist(
            lambda: self._admin.incremental_alter_configs([resource], request_timeout=ANSWER_TIMEOUT_S)[resource]
        )
        if outcome.error is not None:
            what = "broker " * (kind is ResourceType.BROKER) + name
            raise ClientError(f"the throttle of {what} could not be changed: {outcome.text}")
