"""Records from the nearest replica: the blocking client reads where it is told that it is."""

from collections.abc import Iterator

import pytest

from cluster.harness import Cluster
from cordwood.client.raw import RawClient, RawSettings
from cordwood.record.build import Record, build

BATCHES = 50


@pytest.fixture
def cluster(plain_cluster: Cluster) -> Iterator[Cluster]:
    yield plain_cluster
    plain_cluster.heal()


def test_a_range_comes_from_the_replica_in_the_readers_rack(cluster: Cluster, name: str) -> None:
    topic = cluster.create(name, 1)
    batch = bytes(build([Record(0, 0, None, b"x" * 50_000)]))
    with RawClient(RawSettings(cluster.bootstrap)) as client:
        for _ in range(BATCHES):
            client.produce(name, {0: batch})
    leader, follower = cluster.leader(topic), cluster.followers(topic)[0]

    def read(client: RawClient) -> Iterator[tuple[int, int]]:
        """Who has answered, and up to where."""
        for answer in client.fetch_range(name, 0, 0, BATCHES, max_bytes=200_000):
            yield answer.node_id, answer.next_offset

    for rack, node in (("", leader), (f"rack-{leader}", leader), (f"rack-{follower}", follower), ("nowhere", leader)):
        with RawClient(RawSettings(cluster.bootstrap, rack=rack)) as client:
            found = list(read(client))
        assert found[0][0] == node
        assert {by for by, _ in found} <= {leader, node}, "what a follower is not told of yet, the leader gives"
        assert found[-1][1] == BATCHES

    with RawClient(RawSettings(cluster.bootstrap, rack=f"rack-{follower}")) as client:
        answers = read(client)
        assert next(answers)[0] == follower
        cluster.kill(follower)
        assert list(answers)[-1] == (leader, BATCHES)
