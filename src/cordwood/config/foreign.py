"""Kafka's settings that have no meaning here. They load, with a report, so that an existing ``server.properties`` does.

They are listed by the reason why they have no effect. A name that ends in a dot stands for all that begin with it: they
are the business of a plug-in. All others are listed in full, so that a typo is not taken for one of them.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from .setting import Setting

NOT_YET = "it is not served yet"

_REASONS: Mapping[str, str] = {
    "Kafka's own controllers are not part of this broker": """
        broker.heartbeat.interval.ms broker.id.generation.enable broker.session.timeout.ms control.plane.listener.name
        controlled.shutdown.max.retries controlled.shutdown.retry.backoff.ms
        controller.performance.always.log.threshold.ms controller.performance.sample.period.ms
        controller.quorum.append.linger.ms controller.quorum.auto.join.enable controller.quorum.bootstrap.servers
        controller.quorum.election.backoff.max.ms controller.quorum.election.timeout.ms
        controller.quorum.fetch.max.bytes controller.quorum.fetch.snapshot.max.bytes controller.quorum.fetch.timeout.ms
        controller.quorum.request.timeout.ms controller.quorum.retry.backoff.ms controller.quorum.voters
        controller.quota.window.num controller.quota.window.size.seconds controller.socket.timeout.ms
        early.start.listeners initial.broker.registration.timeout.ms internal.metadata.delete.delay.millis
        internal.metadata.log.segment.bytes internal.metadata.max.batch.size.in.bytes
        leader.imbalance.per.broker.percentage metadata.log.dir metadata.log.max.record.bytes.between.snapshots
        metadata.log.max.snapshot.interval.ms metadata.log.segment.bytes metadata.log.segment.ms
        metadata.max.idle.interval.ms metadata.max.retention.bytes metadata.max.retention.ms process.roles
        reserved.broker.max.id server.max.startup.time.ms socket.connection.setup.timeout.max.ms
        socket.connection.setup.timeout.ms unclean.leader.election.interval.ms zookeeper.metadata.migration.enable
    """,
    "it names or tunes Java code": """
        alter.config.policy.class.name auto.include.jmx.reporter client.quota.callback.class config.providers
        config.providers. create.topic.policy.class.name kafka.metrics.polling.interval.secs kafka.metrics.reporters
        metric.reporters metrics.context. metrics.jmx.exclude metrics.jmx.include metrics.num.samples
        metrics.recording.level metrics.sample.window.ms password.encoder.cipher.algorithm password.encoder.iterations
        password.encoder.key.length password.encoder.keyfactory.algorithm password.encoder.old.secret
        password.encoder.secret principal.builder.class security.providers zookeeper.clientCnxnSocket
    """,
    NOT_YET: """
        allow.everyone.if.no.acl.found alter.log.dirs.replication.quota.window.num
        alter.log.dirs.replication.quota.window.size.seconds connection.failed.authentication.delay.ms
        connections.max.reauth.ms cordoned.log.dirs delegation.token.expiry.check.interval.ms
        delegation.token.expiry.time.ms delegation.token.max.lifetime.ms delegation.token.secret.key
        follower.fetch.last.tiered.offset.enable group.share.assignment.interval.ms group.share.assignors
        group.share.delivery.count.limit group.share.heartbeat.interval.ms group.share.initialize.retry.interval.ms
        group.share.max.assignment.interval.ms group.share.max.delivery.count.limit
        group.share.max.heartbeat.interval.ms group.share.max.partition.max.record.locks
        group.share.max.record.lock.duration.ms group.share.max.session.timeout.ms group.share.max.share.sessions
        group.share.max.size group.share.min.assignment.interval.ms group.share.min.delivery.count.limit
        group.share.min.heartbeat.interval.ms group.share.min.partition.max.record.locks
        group.share.min.record.lock.duration.ms group.share.min.session.timeout.ms
        group.share.partition.max.record.locks group.share.persister.class.name group.share.record.lock.duration.ms
        group.share.session.timeout.ms group.streams.assignment.interval.ms group.streams.heartbeat.interval.ms
        group.streams.initial.rebalance.delay.ms group.streams.max.assignment.interval.ms
        group.streams.max.heartbeat.interval.ms group.streams.max.session.timeout.ms group.streams.max.size
        group.streams.max.standby.replicas group.streams.min.assignment.interval.ms
        group.streams.min.heartbeat.interval.ms group.streams.min.session.timeout.ms group.streams.num.standby.replicas
        group.streams.session.timeout.ms num.replica.alter.log.dirs.threads quota.window.num quota.window.size.seconds
        remote.fetch.max.wait.ms remote.list.offsets.request.timeout.ms remote.log.index.file.cache.total.size.bytes
        remote.log.index.file.cache.ttl.ms remote.log.manager.copier.thread.pool.size
        remote.log.manager.copy.max.bytes.per.second remote.log.manager.copy.quota.window.num
        remote.log.manager.copy.quota.window.size.seconds remote.log.manager.expiration.thread.pool.size
        remote.log.manager.fetch.max.bytes.per.second remote.log.manager.fetch.quota.window.num
        remote.log.manager.fetch.quota.window.size.seconds remote.log.manager.follower.thread.pool.size
        remote.log.manager.task.interval.ms remote.log.manager.task.retry.backoff.max.ms
        remote.log.manager.task.retry.backoff.ms remote.log.manager.task.retry.jitter
        remote.log.manager.thread.pool.size remote.log.metadata.custom.metadata.max.bytes
        remote.log.metadata.manager.class.name remote.log.metadata.manager.class.path
        remote.log.metadata.manager.impl.prefix remote.log.metadata.manager.listener.name
        remote.log.reader.max.pending.tasks remote.log.reader.threads remote.log.storage.manager.class.name
        remote.log.storage.manager.class.path remote.log.storage.manager.impl.prefix remote.log.storage.system.enable
        replication.quota.window.num replication.quota.window.size.seconds rlmm.config. rsm.config.
        sasl.client.callback.handler.class sasl.enabled.mechanisms sasl.jaas.config sasl.kerberos.kinit.cmd
        sasl.kerberos.min.time.before.relogin sasl.kerberos.principal.to.local.rules sasl.kerberos.service.name
        sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor sasl.login.callback.handler.class
        sasl.login.class sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds
        sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
        sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms sasl.mechanism.controller.protocol
        sasl.mechanism.inter.broker.protocol sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud
        sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.iss
        sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.assertion.claim.nbf.seconds
        sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.private.key.file
        sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.assertion.template.file
        sasl.oauthbearer.client.credentials.client.id sasl.oauthbearer.client.credentials.client.secret
        sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer
        sasl.oauthbearer.header.urlencode sasl.oauthbearer.jwks.endpoint.refresh.ms
        sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.ms
        sasl.oauthbearer.jwks.endpoint.url sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class
        sasl.oauthbearer.scope sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name
        sasl.oauthbearer.token.endpoint.url sasl.server.callback.handler.class sasl.server.max.receive.size
        share.coordinator.append.linger.ms share.coordinator.cached.buffer.max.bytes
        share.coordinator.cold.partition.snapshot.interval.ms share.coordinator.load.buffer.size
        share.coordinator.snapshot.update.records.per.snapshot share.coordinator.state.topic.compression.codec
        share.coordinator.state.topic.min.isr share.coordinator.state.topic.num.partitions
        share.coordinator.state.topic.prune.interval.ms share.coordinator.state.topic.replication.factor
        share.coordinator.state.topic.segment.bytes share.coordinator.threads share.coordinator.write.timeout.ms
        share.fetch.purgatory.purge.interval.requests ssl.allow.dn.changes ssl.allow.san.changes ssl.cipher.suites
        ssl.client.auth ssl.enabled.protocols ssl.endpoint.identification.algorithm ssl.engine.factory.class
        ssl.key.password ssl.keymanager.algorithm ssl.keystore.certificate.chain ssl.keystore.key ssl.keystore.location
        ssl.keystore.password ssl.keystore.type ssl.principal.mapping.rules ssl.protocol ssl.provider
        ssl.secure.random.implementation ssl.trustmanager.algorithm ssl.truststore.certificates ssl.truststore.location
        ssl.truststore.password ssl.truststore.type super.users telemetry.max.bytes zookeeper.max.in.flight.requests
        zookeeper.ssl.cipher.suites zookeeper.ssl.client.enable zookeeper.ssl.crl.enable zookeeper.ssl.enabled.protocols
        zookeeper.ssl.endpoint.identification.algorithm zookeeper.ssl.keystore.location zookeeper.ssl.keystore.password
        zookeeper.ssl.keystore.type zookeeper.ssl.ocsp.enable zookeeper.ssl.protocol zookeeper.ssl.truststore.location
        zookeeper.ssl.truststore.password zookeeper.ssl.truststore.type
    """,
    "newer versions of Kafka dropped it": """
        delegation.token.master.key group.coordinator.new.enable group.share.enable group.share.max.groups
        inter.broker.protocol.version inter.broker.start.timeout.ms log.message.downconversion.enable
        log.message.format.version log.message.timestamp.difference.max.ms offsets.commit.required.acks
        quota.consumer.default quota.producer.default unstable.api.versions.enable unstable.feature.versions.enable
        zookeeper.sync.time.ms
    """,
    "it belongs to another product": "confluent.",
}
FOREIGN: Final = {name: reason for reason, names in _REASONS.items() for name in names.split()}
_FAMILIES: Final = tuple(name for name in FOREIGN if name.endswith("."))

_LISTENER: Final = "listener.name."
_OF_LISTENERS: Final = ("max.connection.creation.rate", "max.connections", "num.network.threads")
"""Settings that mean something here, and that Kafka can also have for a single listener."""


def _reason(name: str) -> str | None:
    if name.startswith(_LISTENER):
        return NOT_YET if _is_of_listener(name) else None
    family = next((prefix for prefix in _FAMILIES if name.startswith(prefix) and name != prefix), None)
    return FOREIGN.get(family or name)


def _is_of_listener(name: str) -> bool:
    """A setting for one listener: the setting's name follows the listener's, and perhaps a SASL mechanism's."""
    parts = name.removeprefix(_LISTENER).split(".")
    rests = [".".join(parts[start:]) for start in (1, 2)]
    return any(rest in FOREIGN or rest in _OF_LISTENERS for rest in rests)


def is_foreign(name: str) -> bool:
    """Is this a setting of Kafka that is accepted here, but has no effect?"""
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
