"""Real clients ride through a failover: nothing is lost, and their applications see no error."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from cluster.harness import Cluster, Topic
from cluster.recorder import Recorder
from cluster.riders import CLIENTS, Rider
from support.waiting import eventually


@pytest.fixture
def cluster(plain_cluster: Cluster) -> Iterator[Cluster]:
    yield plain_cluster
    plain_cluster.heal()


@pytest.mark.java
def test_clients_of_four_kinds_ride_through_a_failover(cluster: Cluster, recorder: Recorder, name: str) -> None:
    topic = cluster.create(name)
    with ExitStack() as stack:
        riders = [Rider(client, cluster.bootstrap, topic.name, recorder) for client in CLIENTS]
        for rider in riders:
            stack.callback(rider.end)
        for rider in riders:
            rider.progress()
        node = cluster.leader(topic)
        cluster.kill(node)
        cluster.wait_for_other_leader(topic, node)
        for rider in riders:
            rider.progress()
        cluster.restart(node)
        _finish(cluster, topic, riders)
        for rider in riders:
            assert rider.errors == [], rider.name
            assert rider.end() == 0, rider.last_words()
            recorder.group(rider.name, [rider.name])
        cluster.judge(recorder, topic)


def _finish(cluster: Cluster, topic: Topic, riders: list[Rider]) -> None:
    for rider in riders:
        rider.stop_sending()
    for rider in riders:
        rider.wait_stopped()
    cluster.wait_in_sync(topic)
    ends = cluster.ends(topic)
    for rider in riders:
        eventually(lambda rider=rider: rider.read_to == ends, within_s=60, what=f"{rider.name}'s end of reading")  # type: ignore[misc]
    cluster.wait_for_disks(topic, ends)
