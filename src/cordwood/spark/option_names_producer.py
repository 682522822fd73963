"""The names of the Java producer's settings, which options of the sink may have after ``kafka.``.

Those for parts of that client which do not exist here (buffers, lingering, metrics) are accepted, but have no effect:
the sink has a task's rows at hand, so it fills its batches at once. A name that the Java producer does not have either
is taken for a typo.
"""

import difflib
from typing import Final

from cordwood.errors import ConfigError

from .option_names_kafka import EFFECTIVE as CONSUMER_EFFECTIVE
from .option_names_kafka import PREFIXES_WITHOUT_EFFECT
from .option_names_kafka import WITHOUT_EFFECT as CONSUMER_WITHOUT_EFFECT

_CONSUMERS_ONLY: Final = (
    "allow.auto.create",
    "auto.commit",
    "check.crcs",
    "client.rack",
    "exclude.internal",
    "fetch.",
    "group.",
    "heartbeat.",
    "isolation.",
    "max.partition",
    "max.poll",
    "partition.assignment",
    "session.",
)

EFFECTIVE: Final = frozenset(
    {
        "acks",
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.type",
        "compression.zstd.level",
        "delivery.timeout.ms",
        "enable.idempotence",
        "max.in.flight.requests.per.connection",
        "max.request.size",
        *(name for name in CONSUMER_EFFECTIVE if not name.startswith(_CONSUMERS_ONLY)),
    }
)
WITHOUT_EFFECT: Final = frozenset(
    {
        "batch.size",
        "buffer.memory",
        "client.rack",
        "linger.ms",
        "max.block.ms",
        "metadata.max.idle.ms",
        "partitioner.adaptive.partitioning.enable",
        "partitioner.availability.timeout.ms",
        "retries",
        "transaction.timeout.ms",
        *(name for name in CONSUMER_WITHOUT_EFFECT if not name.startswith(_CONSUMERS_ONLY)),
    }
)
KAFKA: Final = EFFECTIVE | WITHOUT_EFFECT

FORBIDDEN: Final = {
    "key.serializer": "keys are text or bytes: make them so with DataFrame functions",
    "value.serializer": "values are text or bytes: make them so with DataFrame functions",
    "interceptor.classes": "there is nothing that would run them",
    "partitioner.class": "there is nothing that would run it; give a column partition instead",
    "partitioner.ignore.keys": "give a column partition instead",
    "transactional.id": "rows are written at least once; a task that is repeated writes its rows again",
    "sasl.client.callback.handler.class": "there is nothing that would run it; set sasl.jaas.config",
    "ssl.keystore.key": "put the key into a PEM file and set ssl.key.location",
    "ssl.keystore.certificate.chain": "put the certificates into a PEM file and set ssl.certificate.location",
}


def check_producer_name(name: str) -> None:
    """
    Raises:
        ConfigError: a setting cannot be used, or does not exist.
    """
    if name in FORBIDDEN:
        raise ConfigError(f"option kafka.{name} is not supported; {FORBIDDEN[name]}")
    if name in KAFKA or name.startswith(PREFIXES_WITHOUT_EFFECT):
        return
    near = difflib.get_close_matches(name, sorted(KAFKA), n=1, cutoff=0.5)
    hint = f"did you mean kafka.{near[0]}?" if near else "Kafka's producer has no such setting"
    raise ConfigError(f"there is no option kafka.{name}; {hint}")
