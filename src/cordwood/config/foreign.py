"""Kafka's settings that have no meaning here. They load, so that an existing ``server.properties`` does, with a report.

A few reasons, each with the names it holds for; a name that ends in a dot stands for all that begin with it.
"""

from collections.abc import Iterable, Mapping

from .setting import Setting

NOT_YET = "it is not served yet"

_REASONS: Mapping[str, tuple[str, ...]] = {
    "Kafka's own controllers are not part of this broker": (
        "broker.heartbeat.interval.ms",
        "broker.id.generation.enable",
        "broker.session.timeout.ms",
        "control.plane.listener.name",
        "controlled.shutdown.max.retries",
        "controlled.shutdown.retry.backoff.ms",
        "controller.",
        "early.start.listeners",
        "initial.broker.registration.timeout.ms",
        "internal.metadata.",
        "leader.imbalance.per.broker.percentage",
        "metadata.",
        "process.roles",
        "reserved.broker.max.id",
        "server.max.startup.time.ms",
        "socket.connection.setup.timeout.",
        "unclean.leader.election.interval.ms",
        "zookeeper.metadata.migration.enable",
    ),
    "it names or tunes Java code": (
        "alter.config.policy.class.name",
        "auto.include.jmx.reporter",
        "client.quota.callback.class",
        "config.providers",
        "create.topic.policy.class.name",
        "kafka.metrics.",
        "metric.reporters",
        "metrics.",
        "password.encoder.",
        "principal.builder.class",
        "security.providers",
        "zookeeper.clientCnxnSocket",
    ),
    NOT_YET: (
        "alter.log.dirs.replication.quota.",
        "connection.failed.authentication.delay.ms",
        "connections.max.reauth.ms",
        "cordoned.log.dirs",
        "delegation.token.",
        "follower.fetch.last.tiered.offset.enable",
        "group.share.",
        "group.streams.",
        "listener.name.",
        "num.replica.alter.log.dirs.threads",
        "quota.window.",
        "remote.",
        "replication.quota.window.",
        "rlmm.",
        "rsm.",
        "sasl.",
        "share.",
        "ssl.",
        "super.users",
        "allow.everyone.if.no.acl.found",
        "telemetry.max.bytes",
        "zookeeper.max.in.flight.requests",
        "zookeeper.ssl.",
    ),
    "newer versions of Kafka dropped it": (
        "delegation.token.master.key",
        "inter.broker.protocol.version",
        "inter.broker.start.timeout.ms",
        "log.message.downconversion.enable",
        "log.message.format.version",
        "log.message.timestamp.difference.max.ms",
        "offsets.commit.required.acks",
        "quota.consumer.default",
        "quota.producer.default",
        "group.coordinator.new.enable",
        "unstable.",
        "zookeeper.sync.time.ms",
    ),
    "it belongs to another product": ("confluent.",),
}


def _reason(name: str) -> str | None:
    for reason, names in _REASONS.items():
        if any(name == n or (n.endswith(".") and name.startswith(n)) for n in names):
            return reason
    return None


def is_foreign(name: str) -> bool:
    """Is this a setting of Kafka's that loads here without an effect?"""
    return _reason(name) is not None


def without_effect(names: Iterable[str], known: Mapping[str, Setting]) -> list[str]:
    """One line for each reason why some of the names given have no effect here, with those names.

    >>> without_effect(["process.roles", "controller.quorum.voters"], {})
    ["process.roles, controller.quorum.voters: no effect, Kafka's own controllers are not part of this broker"]
    """
    by_reason: dict[str, list[str]] = {}
    for name in names:
        declared = known.get(name)
        reason = _reason(name) if declared is None else NOT_YET if declared.later else None
        if reason is not None:
            by_reason.setdefault(reason, []).append(name)
    return [f"{', '.join(group)}: no effect, {reason}" for reason, group in by_reason.items()]
