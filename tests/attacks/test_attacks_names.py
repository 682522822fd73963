"""Names and texts: too long for an answer, with control characters, made to leave the data directory."""

import logging
from pathlib import Path

import pytest

from attacks.arena import Arena, create_topic
from cordwood.errors import Error
from cordwood.wire.messages import (
    AlterConfigsRequest,
    AlterConfigsRequestConfig,
    AlterConfigsRequestResource,
    AlterConfigsResponse,
    ApiVersionsRequest,
    ApiVersionsResponse,
    CreatePartitionsRequest,
    CreatePartitionsRequestTopic,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsRequestTopic,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsRequestTopic,
    DeleteTopicsResponse,
    DescribeConfigsRequest,
    DescribeConfigsRequestResource,
    DescribeConfigsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestConfig,
    IncrementalAlterConfigsRequestResource,
    IncrementalAlterConfigsResponse,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from support.batches import produce, values_batch
from support.process import BrokerProcess
from support.raw import RawClient, encoded, framed

TOPIC, BROKER = 2, 4
LONG = "x" * 32_760  # with any word around it, longer than a string can be

ESCAPES = ["../../escaped", "..", ".", "/etc/escaped", "a/b", "a\\b", "a\0b", "%2e%2e%2f", "a\nb", "\x1b[2J", "ä", ""]


@pytest.mark.parametrize("version", [2, 5, 7])
def test_a_long_name_given_twice_gets_an_answer(client: RawClient, version: int) -> None:
    topic = CreateTopicsRequestTopic(name=LONG, num_partitions=1, replication_factor=1)
    answer = client.ask(CreateTopicsRequest(topics=[topic, topic]), CreateTopicsResponse, version=version)
    assert {topic.error_code for topic in answer.topics} == {Error.INVALID_REQUEST}


def test_a_long_unknown_setting_gets_an_answer(client: RawClient, topic: str) -> None:
    assert create_topic(client, topic, {LONG: "1"}).error_code == Error.INVALID_CONFIG


def test_a_long_value_gets_an_answer(client: RawClient, topic: str) -> None:
    assert create_topic(client, topic, {"retention.ms": LONG}).error_code == Error.INVALID_CONFIG


def test_a_long_text_that_is_more_bytes_than_letters_gets_an_answer(client: RawClient, topic: str) -> None:
    assert create_topic(client, topic, {"retention.ms": "ä" * 16_380}).error_code == Error.INVALID_CONFIG


@pytest.mark.parametrize("kind", [TOPIC, BROKER])
def test_settings_of_something_with_a_long_name_are_refused(client: RawClient, kind: int) -> None:
    resource = DescribeConfigsRequestResource(resource_type=kind, resource_name=LONG)
    described = client.ask(DescribeConfigsRequest(resources=[resource]), DescribeConfigsResponse)
    assert described.results[0].error_code != Error.NONE
    changed = IncrementalAlterConfigsRequestResource(resource_type=kind, resource_name=LONG)
    altered = client.ask(IncrementalAlterConfigsRequest(resources=[changed]), IncrementalAlterConfigsResponse)
    assert altered.responses[0].error_code != Error.NONE
    replaced = AlterConfigsRequestResource(resource_type=kind, resource_name=LONG)
    answer = client.ask(AlterConfigsRequest(resources=[replaced]), AlterConfigsResponse)
    assert answer.responses[0].error_code != Error.NONE


@pytest.mark.parametrize("operation", [0, 1, 2, 3, 4, -1])
def test_a_long_setting_is_refused_whatever_is_done_to_it(client: RawClient, operation: int) -> None:
    change = IncrementalAlterConfigsRequestConfig(name=LONG, config_operation=operation, value=LONG)
    resource = IncrementalAlterConfigsRequestResource(resource_type=BROKER, resource_name="", configs=[change])
    client.ask(IncrementalAlterConfigsRequest(resources=[resource]), IncrementalAlterConfigsResponse)
    without_value = AlterConfigsRequestConfig(name=LONG, value=None)
    replaced = AlterConfigsRequestResource(resource_type=BROKER, resource_name="", configs=[without_value])
    answer = client.ask(AlterConfigsRequest(resources=[replaced]), AlterConfigsResponse)
    assert answer.responses[0].error_code == Error.INVALID_REQUEST


def test_other_requests_with_a_long_name_get_an_answer(client: RawClient) -> None:
    client.ask(MetadataRequest(topics=[MetadataRequestTopic(name=LONG)]), MetadataResponse)
    client.ask(FindCoordinatorRequest(key_type=9, coordinator_keys=[LONG]), FindCoordinatorResponse)
    more = [CreatePartitionsRequestTopic(name=LONG, count=2, assignments=None)] * 2
    client.ask(CreatePartitionsRequest(topics=more), CreatePartitionsResponse)
    client.ask(DeleteTopicsRequest(topics=[DeleteTopicsRequestTopic(name=LONG)] * 2), DeleteTopicsResponse)


@pytest.mark.parametrize("name", ESCAPES)
def test_no_name_becomes_a_path_elsewhere(client: RawClient, broker: BrokerProcess, name: str) -> None:
    before = _everything_beside(broker.data)
    assert create_topic(client, name).error_code == Error.INVALID_TOPIC
    by_asking = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)
    assert client.ask(by_asking, MetadataResponse).topics[0].error_code == Error.INVALID_TOPIC
    client.send(produce(name, values_batch(b"x")), version=11, client_id=name)
    client.receive_frame()
    client.send(MetadataRequest(topics=None), client_id=name)
    client.receive_frame()
    assert _everything_beside(broker.data) == before


def test_the_longest_name_fits_with_many_partitions(client: RawClient) -> None:
    name = "n" * 249
    assert create_topic(client, name, partitions=101).error_code == Error.NONE
    gone = client.ask(DeleteTopicsRequest(topics=[DeleteTopicsRequestTopic(name=name)]), DeleteTopicsResponse)
    assert gone.responses[0].error_code == Error.NONE


def test_names_that_differ_in_dots_alone_collide_in_every_way_of_creating(client: RawClient) -> None:
    pair = [MetadataRequestTopic(name="dots.and_lines"), MetadataRequestTopic(name="dots_and.lines")]
    answer = client.ask(MetadataRequest(topics=pair, allow_auto_topic_creation=True), MetadataResponse)
    assert [topic.error_code == Error.NONE for topic in answer.topics] == [True, False]
    assert create_topic(client, "dots_and.lines").error_code == Error.INVALID_TOPIC


def test_a_topic_asked_for_twice_is_created_once(client: RawClient, topic: str) -> None:
    twice = [MetadataRequestTopic(name=topic)] * 2
    answer = client.ask(MetadataRequest(topics=twice, allow_auto_topic_creation=True), MetadataResponse)
    assert {found.error_code for found in answer.topics} == {Error.NONE}


@pytest.mark.parametrize("forged", ["\n2026-01-01 00:00:00,000 CRITICAL forged", "\r\n", "\x1b[31mred", "\x85\u2028"])
def test_no_client_forges_a_log_line(broker: BrokerProcess, forged: str) -> None:
    """The name of a client, of its software, of a topic, of a setting: none of them makes a new line in the log."""
    with RawClient(broker.bootstrap) as client:
        software = ApiVersionsRequest(client_software_name=forged, client_software_version=forged)
        assert client.ask(software, ApiVersionsResponse).error_code == Error.INVALID_REQUEST
        create_topic(client, forged, {forged: forged})
        client.send(MetadataRequest(topics=[MetadataRequestTopic(name=forged)]), client_id=forged)
        client.receive_frame()
        client.send_bytes(framed(encoded(MetadataRequest(topics=None), version=12, client_id=forged)[4:] + b"!"))
        assert client.closed()
    with RawClient(broker.bootstrap) as client:
        client.send(produce("nowhere", values_batch(b"x"), acks=0), version=11, client_id=forged)
        assert client.closed()
    assert broker.says("UNKNOWN_TOPIC_OR_PARTITION")
    for line in broker.log:
        assert "forged" not in line
        assert line.isprintable()
        assert line.split()[2] in logging.getLevelNamesMapping()


def test_secrets_are_not_described(client: RawClient, arena: Arena) -> None:
    resource = DescribeConfigsRequestResource(resource_type=BROKER, resource_name="1", configuration_keys=None)
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True, include_documentation=True)
    client.send(request, version=4)
    frame = client.receive_frame()
    assert b"password" in frame
    assert SECRET.encode() not in frame
    assert SECRET not in arena.process.log_text()


def test_secrets_are_not_told_by_a_refusal(client: RawClient) -> None:
    change = IncrementalAlterConfigsRequestConfig(name="ssl.keystore.password", config_operation=2, value=SECRET)
    resource = IncrementalAlterConfigsRequestResource(resource_type=BROKER, resource_name="1", configs=[change])
    client.send(IncrementalAlterConfigsRequest(resources=[resource]))
    assert SECRET.encode() not in client.receive_frame()


SECRET = "correct-horse-battery-staple"
ARENA_SETTINGS = {"ssl.keystore.password": SECRET}


def _everything_beside(data: Path) -> set[str]:
    return {path.name for path in data.parent.rglob("*") if data not in path.parents}
