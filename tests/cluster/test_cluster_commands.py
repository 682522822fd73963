"""The commands for clusters: ``cluster up`` and ``status``, ``topics reassign`` and ``elect-leaders``."""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from cluster.harness import Cluster, Topic
from support.waiting import eventually

RECORDS = 20_000
RECORD_BYTES = 200
"""Several fetches of a follower: a throttle lets the first one through."""


@pytest.fixture
def cluster(plain_cluster: Cluster) -> Iterator[Cluster]:
    yield plain_cluster
    plain_cluster.heal()


def cordwood(cluster: Cluster, *words: str, text: str = "", status: int = 0) -> str:
    """What a command prints to standard output; to standard error too, if it fails."""
    command = [sys.executable, "-m", "cordwood", *words, "--bootstrap", cluster.bootstrap]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=100)
    assert done.returncode == status, done.stderr
    return done.stdout if status == 0 else done.stdout + done.stderr


def filled(cluster: Cluster, name: str, *, partitions: int = 2, replicas: int = 2) -> Topic:
    topic = cluster.create(name, partitions, replicas=replicas)
    cordwood(cluster, "produce", name, text=f"{'x' * RECORD_BYTES}\n" * RECORDS)
    return topic


def replicas(cluster: Cluster, topic: Topic, *, node: int | None = None) -> list[set[int]]:
    return [set(state.replica_nodes) for _, state in sorted(cluster.states(topic, node=node).items())]


def moved(cluster: Cluster, topic: Topic, wanted: list[set[int]]) -> None:
    """Wait until all brokers know that it is so: the next command may ask any of them."""
    eventually(
        lambda: all(replicas(cluster, topic, node=node) == wanted for node in cluster.awake()),
        what=f"replicas {wanted} of {topic.name}",
    )
    cluster.wait_in_sync(topic)


def leaders(cluster: Cluster, topic: Topic, *, node: int) -> dict[int, int]:
    return {number: state.leader_id for number, state in cluster.states(topic, node=node).items()}


def throttles(cluster: Cluster, topic: Topic) -> list[str]:
    described = cordwood(cluster, "topics", "describe", topic.name)
    return [line.strip() for line in described.splitlines() if ".throttled.replicas=" in line]


def test_status_tells_of_a_broker_that_is_away(cluster: Cluster, name: str) -> None:
    topic = cluster.create(name)
    whole = json.loads(cordwood(cluster, "cluster", "status", "--json"))
    assert whole["controller"] in cluster.nodes
    assert {one["broker"]: one["address"] for one in whole["brokers"]} == {
        number: node.bootstrap for number, node in cluster.nodes.items()
    }
    assert [one for one in whole["troubled"] if one["topic"] == name] == []
    away = cluster.followers(topic)[0]
    cluster.kill(away)
    cluster.wait_out_of_sync(topic, away)

    def is_told() -> bool:
        rows = [line.split() for line in cordwood(cluster, "cluster", "status", "--all").splitlines()]
        troubles = [row[-1] for row in rows if row[0] == name]
        is_away = [str(away), "away", "-", "0"] in [row[:4] for row in rows]
        return is_away and troubles == ["under-replicated"] * topic.partitions

    eventually(is_told, what="news of the broker's end")


def test_partitions_move_to_the_brokers_named(cluster: Cluster, name: str) -> None:
    topic = filled(cluster, name)
    records = cluster.ends(topic)
    cordwood(cluster, "topics", "reassign", name, "--to", "2,3")
    moved(cluster, topic, [{2, 3}, {2, 3}])
    assert cluster.ends(topic) == records
    assert "has its replicas there already" in cordwood(cluster, "topics", "reassign", name, "--to", "2,3")
    cordwood(cluster, "topics", "reassign", name, "--to", "1,2,3", "--replication-factor", "3", "--partitions", "1")
    moved(cluster, topic, [{2, 3}, {1, 2, 3}])
    assert cordwood(cluster, "topics", "reassign", name, "--status") == f"nothing of {name} is being moved\n"


def test_a_throttled_move_takes_its_time_and_can_be_cancelled(cluster: Cluster, name: str) -> None:
    topic = filled(cluster, name, partitions=1)
    before = replicas(cluster, topic)
    (elsewhere,) = set(cluster.nodes) - before[0]
    move = ["topics", "reassign", name, "--to", f"{elsewhere},{min(before[0])}", "--throttle", "1000"]
    assert "1 partition is being moved" in cordwood(cluster, *move, "--no-wait")
    assert len(throttles(cluster, topic)) == 2
    status = cordwood(cluster, "topics", "reassign", name, "--status").splitlines()
    assert status[0].endswith("0 of 1 partitions")
    assert status[2].split()[0] == "0"
    assert "cancelled" in cordwood(cluster, "topics", "reassign", name, "--cancel")
    moved(cluster, topic, before)
    eventually(lambda: throttles(cluster, topic) == [], what="the end of the throttle")
    assert "nothing of" in cordwood(cluster, "topics", "reassign", name, "--cancel", status=1)


def test_a_throttle_goes_when_the_move_is_done(cluster: Cluster, name: str) -> None:
    topic = filled(cluster, name, partitions=1)
    (elsewhere,) = set(cluster.nodes) - replicas(cluster, topic)[0]
    goal = f"{elsewhere},{min(replicas(cluster, topic)[0])}"
    cordwood(cluster, "topics", "reassign", name, "--to", goal, "--throttle", "1000", "--no-wait")
    cordwood(cluster, "topics", "reassign", name, "--to", goal, "--throttle", "100000000")
    eventually(lambda: throttles(cluster, topic) == [], what="the end of the throttle")


def test_a_move_to_a_broker_that_is_unknown_is_refused(cluster: Cluster, name: str) -> None:
    cluster.create(name, replicas=1)
    said = cordwood(cluster, "topics", "reassign", name, "--to", "9", status=1)
    assert said.startswith(f"cordwood: partition 0 of {name} is not moved: ")


def test_leaders_go_back_to_where_they_belong(cluster: Cluster, name: str) -> None:
    topic = cluster.create(name, 3)
    preferred = {number: state.replica_nodes[0] for number, state in cluster.states(topic).items()}
    node = cluster.leader(topic)
    cluster.kill(node)
    cluster.wait_for_other_leader(topic, node)
    said = cordwood(cluster, "topics", "elect-leaders", name, status=1)
    assert "its preferred leader is away or not in sync" in said
    cluster.restart(node)
    cluster.wait_in_sync(topic)
    cordwood(cluster, "topics", "elect-leaders")
    eventually(
        lambda: all(leaders(cluster, topic, node=number) == preferred for number in cluster.nodes),
        what="everybody's knowledge of the new leaders",
    )
    assert cordwood(cluster, "topics", "elect-leaders", name) == "0 partitions elected\n"


def test_an_unclean_election_wants_topics_named(cluster: Cluster) -> None:
    assert "name the topics" in cordwood(cluster, "topics", "elect-leaders", "--unclean", status=1)
