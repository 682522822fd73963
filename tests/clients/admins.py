"""The three clients' ways to administer topics behind one small face. What a client raises, it raises here too."""

import asyncio
import re
import warnings
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol, TypeVar

import aiokafka
import confluent_kafka
import kafka
from aiokafka import errors as aiokafka_errors
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from aiokafka.admin import NewPartitions as AioNewPartitions
from aiokafka.admin import NewTopic as AioNewTopic
from aiokafka.admin.config_resource import ConfigResource as AioConfigResource
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)
from kafka import errors as kafka_errors
from kafka.admin import ConfigResource as PyConfigResource

from clients.drivers import DEADLINE_S

T = TypeVar("T")

DYNAMIC_TOPIC_CONFIG = 1
STATIC_BROKER_CONFIG = 4
DEFAULT_CONFIG = 5


class Config(NamedTuple):
    """A setting's value, and the number that Kafka gives to where it comes from."""

    value: str | None
    source: int


class Cluster(NamedTuple):
    controller_id: int
    brokers: dict[int, str]


class Admin(Protocol):
    """What each of the three can do."""

    name: str

    def create(
        self,
        topic: str,
        *,
        partitions: int = 1,
        replication_factor: int = 1,
        configs: Mapping[str, str] | None = None,
        validate_only: bool = False,
    ) -> None: ...

    def delete(self, topic: str) -> None: ...

    def topics(self) -> list[str]: ...

    def partitions(self, topic: str) -> list[int]: ...

    def grow(self, topic: str, *, total: int) -> None: ...

    def configs(self, kind: str, name: str) -> dict[str, Config]:
        """All settings of a topic or a broker."""
        ...

    def replace_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        """The topic has these settings and no others."""
        ...

    def delete_records(self, topic: str, before: Mapping[int, int]) -> dict[int, int]:
        """Delete the records before these offsets, -1 being all. The partitions' new first offsets."""
        ...

    def cluster(self) -> Cluster: ...


class LibrdkafkaAdmin:
    name = "confluent-kafka"

    def __init__(self, bootstrap: str) -> None:
        self.client = AdminClient({"bootstrap.servers": bootstrap})

    def create(
        self,
        topic: str,
        *,
        partitions: int = 1,
        replication_factor: int = 1,
        configs: Mapping[str, str] | None = None,
        validate_only: bool = False,
    ) -> None:
        new = NewTopic(topic, partitions, replication_factor, config=dict(configs or {}))
        only(self.client.create_topics([new], validate_only=validate_only))

    def delete(self, topic: str) -> None:
        only(self.client.delete_topics([topic]))

    def topics(self) -> list[str]:
        return list(self.client.list_topics(timeout=DEADLINE_S).topics)

    def partitions(self, topic: str) -> list[int]:
        described = only(self.client.describe_topics(confluent_kafka.TopicCollection([topic])))
        return [partition.id for partition in described.partitions]

    def grow(self, topic: str, *, total: int) -> None:
        only(self.client.create_partitions([NewPartitions(topic, total)]))

    def configs(self, kind: str, name: str) -> dict[str, Config]:
        found = only(self.client.describe_configs([ConfigResource(ResourceType[kind], name)]))
        return {entry.name: Config(entry.value, int(entry.source)) for entry in found.values()}

    def replace_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            asked = self.client.alter_configs([ConfigResource(ResourceType.TOPIC, topic, set_config=dict(configs))])
        only(asked)

    def change_configs(self, topic: str, changes: list[tuple[str, str, str]]) -> None:
        """Operation, name and value of each change; the rest stays."""
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType[operation])
            for operation, name, value in changes
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        only(self.client.incremental_alter_configs([resource]))

    def delete_records(self, topic: str, before: Mapping[int, int]) -> dict[int, int]:
        asked = [confluent_kafka.TopicPartition(topic, place, offset) for place, offset in before.items()]
        futures = self.client.delete_records(asked)
        return {place.partition: future.result(DEADLINE_S).low_watermark for place, future in futures.items()}

    def cluster(self) -> Cluster:
        found = self.client.describe_cluster().result(DEADLINE_S)
        return Cluster(found.controller.id, {node.id: f"{node.host}:{node.port}" for node in found.nodes})


def only(futures: Mapping[Any, "Future[T]"]) -> T:
    """The answer to the only thing asked for."""
    [future] = futures.values()
    return future.result(DEADLINE_S)


class AiokafkaAdmin:
    """aiokafka raises little by itself: most answers carry a code, and it has the exception for each."""

    name = "aiokafka"

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def _run(self, ask: Callable[[AIOKafkaAdminClient], Awaitable[T]]) -> T:
        async def run() -> T:
            client = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
            await client.start()
            try:
                return await ask(client)
            finally:
                await client.close()

        return asyncio.run(asyncio.wait_for(run(), DEADLINE_S))

    def create(
        self,
        topic: str,
        *,
        partitions: int = 1,
        replication_factor: int = 1,
        configs: Mapping[str, str] | None = None,
        validate_only: bool = False,
    ) -> None:
        new = AioNewTopic(topic, partitions, replication_factor, topic_configs=dict(configs or {}))
        answer = self._run(lambda client: client.create_topics([new], validate_only=validate_only))
        [(_, code, text)] = answer.topic_errors
        _raise_aiokafka(code, text)

    def delete(self, topic: str) -> None:
        answer = self._run(lambda client: client.delete_topics([topic]))
        [(_, code)] = answer.topic_error_codes
        _raise_aiokafka(code)

    def topics(self) -> list[str]:
        return list(self._run(lambda client: client.list_topics()))

    def partitions(self, topic: str) -> list[int]:
        [described] = self._run(lambda client: client.describe_topics([topic]))
        _raise_aiokafka(described["error_code"])
        return sorted(partition["partition"] for partition in described["partitions"])

    def grow(self, topic: str, *, total: int) -> None:
        self._run(lambda client: client.create_partitions({topic: AioNewPartitions(total)}))

    def configs(self, kind: str, name: str) -> dict[str, Config]:
        [answer] = self._run(lambda client: client.describe_configs([AioConfigResource(kind, name)]))
        [(code, text, _, _, entries)] = answer.resources
        _raise_aiokafka(code, text)
        return {entry[0]: Config(entry[1], entry[3]) for entry in entries}

    def replace_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        [answer] = self._run(lambda client: client.alter_configs([AioConfigResource("TOPIC", topic, dict(configs))]))
        [(code, text, _, _)] = answer.resources
        _raise_aiokafka(code, text)

    def delete_records(self, topic: str, before: Mapping[int, int]) -> dict[int, int]:
        asked = {
            aiokafka.TopicPartition(topic, place): RecordsToDelete(before_offset=offset)
            for place, offset in before.items()
        }
        answer = self._run(lambda client: client.delete_records(asked))
        return {place.partition: offset for place, offset in answer.items()}

    def cluster(self) -> Cluster:
        found = self._run(lambda client: client.describe_cluster())
        nodes = {node["node_id"]: f"{node['host']}:{node['port']}" for node in found["brokers"]}
        return Cluster(found["controller_id"], nodes)


def _raise_aiokafka(code: int, text: str | None = None) -> None:
    if code:
        raise aiokafka_errors.for_code(code)(text)


class KafkaPythonAdmin:
    name = "kafka-python"

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    @contextmanager
    def client(self) -> Iterator[kafka.KafkaAdminClient]:
        client = kafka.KafkaAdminClient(bootstrap_servers=self.bootstrap)
        try:
            yield client
        finally:
            client.close()

    def create(
        self,
        topic: str,
        *,
        partitions: int = 1,
        replication_factor: int = 1,
        configs: Mapping[str, str] | None = None,
        validate_only: bool = False,
    ) -> None:
        new = {
            "num_partitions": partitions,
            "replication_factor": replication_factor,
            "configs": dict(configs or {}),
        }
        with self.client() as client:
            client.create_topics({topic: new}, validate_only=validate_only)

    def delete(self, topic: str) -> None:
        with self.client() as client:
            client.delete_topics([topic])

    def topics(self) -> list[str]:
        with self.client() as client:
            return list(client.list_topics())

    def partitions(self, topic: str) -> list[int]:
        with self.client() as client:
            [described] = client.describe_topics([topic])
        if described["error_code"]:
            raise kafka_errors.for_code(described["error_code"])
        return sorted(partition["partition_index"] for partition in described["partitions"])

    def grow(self, topic: str, *, total: int) -> None:
        with self.client() as client:
            client.create_partitions({topic: total})

    def configs(self, kind: str, name: str) -> dict[str, Config]:
        with self.client() as client:
            found = client.describe_configs([PyConfigResource(kind, name)], config_filter="all")
        entries = found[kind.lower()][name]
        source = kafka.admin.ConfigSourceType
        return {name: Config(entry["value"], source[entry["config_source"]]) for name, entry in entries.items()}

    def replace_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        """By force: this client would rather keep what it is not told of."""
        with self.client() as client:
            client.reset_configs([PyConfigResource("TOPIC", topic)], incremental=False, raise_on_unknown=False)
        self._alter(topic, dict(configs), incremental=False)

    def change_configs(self, topic: str, changes: list[tuple[str, str, str]]) -> None:
        self._alter(topic, {name: (operation, value) for operation, name, value in changes}, incremental=True)

    def _alter(self, topic: str, configs: Mapping[str, object], *, incremental: bool) -> None:
        with self.client() as client:
            answer = client.alter_configs(
                [PyConfigResource("TOPIC", topic, configs)], incremental=incremental, raise_on_unknown=False
            )
        text = answer["topic"][topic]
        if (failed := re.match(r"\[Error (\d+)]", text)) is not None:  # here this client tells, and does not raise
            raise kafka_errors.for_code(int(failed[1]))(text)
        assert text == "OK"

    def delete_records(self, topic: str, before: Mapping[int, int]) -> dict[int, int]:
        asked = {kafka.TopicPartition(topic, place): offset for place, offset in before.items()}
        with self.client() as client:
            answer = client.delete_records(asked)
        return {place.partition: found["low_watermark"] for place, found in answer.items()}

    def cluster(self) -> Cluster:
        with self.client() as client:
            found = client.describe_cluster()
        nodes = {node["broker_id"]: f"{node['host']}:{node['port']}" for node in found["brokers"]}
        return Cluster(found["controller_id"], nodes)


ADMINS = (LibrdkafkaAdmin, AiokafkaAdmin, KafkaPythonAdmin)


def refusal(call: Callable[[], object]) -> str:
    """What a client calls the error that this call ends with."""
    try:
        call()
    except confluent_kafka.KafkaException as error:
        name: str = error.args[0].name()
        return name
    except (aiokafka_errors.KafkaError, kafka_errors.KafkaError) as error:
        return type(error).__name__
    return "no error"
