"""``cordwood cluster status`` and its judgement of partitions; the rest needs a cluster (tests/cluster)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka.admin import PartitionMetadata, TopicMetadata

from cli.runner import Run
from cordwood import Broker
from cordwood.client.health import Trouble, judged


def topic(*, leader: int, replicas: list[int], in_sync: list[int]) -> TopicMetadata:
    partition = PartitionMetadata()
    partition.id, partition.leader, partition.replicas, partition.isrs = 0, leader, replicas, in_sync
    found = TopicMetadata()
    found.topic, found.partitions = "t", {0: partition}
    return found


@pytest.mark.parametrize(
    ("leader", "in_sync", "troubles"),
    [
        (1, [1, 2, 3], ()),
        (1, [1, 2], (Trouble.UNDER_REPLICATED,)),
        (1, [1], (Trouble.UNDER_MIN_ISR, Trouble.UNDER_REPLICATED)),
        (-1, [1], (Trouble.OFFLINE, Trouble.UNDER_MIN_ISR, Trouble.UNDER_REPLICATED)),
    ],
)
def test_what_a_partition_misses(leader: int, in_sync: list[int], troubles: tuple[Trouble, ...]) -> None:
    [partition] = judged("t", topic(leader=leader, replicas=[1, 2, 3], in_sync=in_sync), 2)
    assert partition.troubles == troubles


def test_one_replica_is_enough_where_there_is_only_one() -> None:
    [partition] = judged("t", topic(leader=1, replicas=[1], in_sync=[1]), 2)
    assert partition.troubles == ()


def test_status_of_one_broker(run: Run, broker: Broker) -> None:
    run("topics", "create", "of-one", "--partitions", "3")
    status = run("cluster", "status")
    assert (status.status, status.err) == (0, "")
    words = [line.split() for line in status.lines]
    assert words[0][0] == "cluster"
    assert words[1] == ["broker", "address", "rack", "controller", "leads", "replicas", "in", "sync"]
    number, address, rack, controller, leads, replicas, in_sync = words[2]
    assert (number, address, rack, controller) == ("1", broker.bootstrap, "-", "yes")
    assert leads == replicas == in_sync
    assert int(leads) >= 3
    assert status.lines[3] == "under-replicated: 0, under min ISR: 0, offline: 0"
    assert len(status.lines) == 4


def test_status_as_json(run: Run, broker: Broker) -> None:
    found = json.loads(run("cluster", "status", "--json").out)
    assert found["controller"] == 1
    assert [one["address"] for one in found["brokers"]] == [broker.bootstrap]
    assert found["troubled"] == []


def test_a_cluster_that_can_not_have_a_zookeeper_ends_at_once(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "cordwood", "cluster", "up", "--data", str(tmp_path)]
    without_java = {**os.environ, "JAVA_HOME": "/nowhere"}
    outcome = subprocess.run(command, capture_output=True, text=True, env=without_java, timeout=30)
    assert (outcome.returncode, outcome.stdout) == (1, "")
    assert outcome.stderr.startswith("cordwood: ZooKeeper needs Java 17 or newer, and there is none: install it ")
