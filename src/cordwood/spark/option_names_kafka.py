"""The names of the Java consumer's settings, which options may have after ``kafka.``.

Most have no effect here, because the part of that client which they configure does not exist: they are accepted so that
a job needs no change. What Spark's Kafka source refuses is refused here, with the reason. A name that the Java consumer
does not know either is taken for a typo.
"""

import difflib
from typing import Final

from cordwood.errors import ConfigError

EFFECTIVE: Final = frozenset(
    {
        "bootstrap.servers",
        "client.id",
        "client.rack",
        "default.api.timeout.ms",
        "fetch.max.bytes",
        "isolation.level",
        "max.partition.fetch.bytes",
        "request.timeout.ms",
        "retry.backoff.ms",
        "sasl.jaas.config",
        "sasl.mechanism",
        "sasl.password",
        "sasl.username",
        "security.protocol",
        "socket.connection.setup.timeout.ms",
        "ssl.ca.location",
        "ssl.certificate.location",
        "ssl.endpoint.identification.algorithm",
        "ssl.key.location",
        "ssl.key.password",
        "ssl.keystore.location",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.type",
    }
)
WITHOUT_EFFECT: Final = frozenset(
    {
        "allow.auto.create.topics",
        "auto.commit.interval.ms",
        "auto.include.jmx.reporter",
        "check.crcs",
        "client.dns.lookup",
        "connections.max.idle.ms",
        "enable.metrics.push",
        "exclude.internal.topics",
        "fetch.max.wait.ms",
        "fetch.min.bytes",
        "group.id",
        "group.instance.id",
        "group.protocol",
        "group.remote.assignor",
        "heartbeat.interval.ms",
        "max.poll.interval.ms",
        "max.poll.records",
        "metadata.max.age.ms",
        "metadata.recovery.rebootstrap.trigger.ms",
        "metadata.recovery.strategy",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "partition.assignment.strategy",
        "receive.buffer.bytes",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "retry.backoff.max.ms",
        "security.providers",
        "send.buffer.bytes",
        "session.timeout.ms",
        "socket.connection.setup.timeout.max.ms",
        "ssl.cipher.suites",
        "ssl.enabled.protocols",
        "ssl.engine.factory.class",
        "ssl.keymanager.algorithm",
        "ssl.keystore.password",
        "ssl.protocol",
        "ssl.provider",
        "ssl.secure.random.implementation",
        "ssl.trustmanager.algorithm",
        "ssl.truststore.password",
    }
)
KAFKA: Final = EFFECTIVE | WITHOUT_EFFECT
PREFIXES_WITHOUT_EFFECT: Final = ("sasl.kerberos.", "sasl.login.", "sasl.oauthbearer.")
"""Of ways to log in that do not exist here."""

FORBIDDEN: Final = {
    "auto.offset.reset": "set startingOffsets to earliest or latest: Spark keeps the offsets of a query, and a stream "
    "that is started again goes on where it was",
    "key.deserializer": "keys come as bytes: make something of them with DataFrame functions",
    "value.deserializer": "values come as bytes: make something of them with DataFrame functions",
    "enable.auto.commit": "offsets are committed when their micro-batch is done, if option group is set",
    "interceptor.classes": "there is nothing that would run them",
    "sasl.client.callback.handler.class": "there is nothing that would run it; set sasl.jaas.config",
    "ssl.keystore.key": "put the key into a PEM file and set ssl.key.location",
    "ssl.keystore.certificate.chain": "put the certificates into a PEM file and set ssl.certificate.location",
}


def check_kafka_name(name: str, *, prefix: str = "kafka.") -> None:
    """
    Raises:
        ConfigError: a setting cannot be used, or does not exist.
    """
    if name in FORBIDDEN:
        raise ConfigError(f"option {prefix}{name} is not supported; {FORBIDDEN[name]}")
    if name in KAFKA or name.startswith(PREFIXES_WITHOUT_EFFECT):
        return
    near = difflib.get_close_matches(name, sorted(KAFKA), n=1, cutoff=0.5)
    hint = f"did you mean {prefix}{near[0]}?" if near else "Kafka's consumer has no such setting"
    raise ConfigError(f"there is no option {prefix}{name}; {hint}")
