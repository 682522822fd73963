"""Coordinators that are fenced: they serve no group, and whoever asks them is sent elsewhere at once."""

from broker.cluster_harness import Cluster
from broker.harness import Client
from cordwood.errors import Error
from cordwood.wire.messages import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

SESSION_MS = 10_000
IMPATIENCE = 50
"""So many times in a row a client without patience asks."""


def cluster_with_groups() -> tuple[Cluster, int]:
    """A cluster, and which broker coordinates its groups."""
    cluster = Cluster(
        3,
        offsets_topic_num_partitions=1,
        offsets_topic_replication_factor=3,
        group_initial_rebalance_delay_ms=0,
    )
    client = cluster[1].connect()
    client.send(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
    cluster.advance(100)
    (found,) = client.take(FindCoordinatorResponse).coordinators
    assert found.error_code == Error.NONE
    return cluster, found.node_id


def send_join(client: Client, member_id: str) -> None:
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"x")],
    )
    client.send(request, 9)


def join(cluster: Cluster, client: Client, member_id: str = "") -> JoinGroupResponse:
    """Join, in two steps if the broker wants that."""
    send_join(client, member_id)
    cluster.advance(10)
    response = client.take(JoinGroupResponse)
    again = response.error_code == Error.MEMBER_ID_REQUIRED
    return join(cluster, client, response.member_id) if again else response


def sync(cluster: Cluster, client: Client, joined: JoinGroupResponse) -> Error:
    request = SyncGroupRequest(
        group_id="g",
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        protocol_type="consumer",
        protocol_name="range",
    )
    client.send(request, 5)
    cluster.advance(10)
    return Error(client.take(SyncGroupResponse).error_code)


def beat(client: Client, joined: JoinGroupResponse) -> Error:
    request = HeartbeatRequest(group_id="g", generation_id=joined.generation_id, member_id=joined.member_id)
    return Error(client.ask(request, 4, HeartbeatResponse).error_code)


def stable_member(cluster: Cluster, node: int) -> tuple[Client, JoinGroupResponse]:
    client = cluster[node].connect()
    joined = join(cluster, client)
    assert joined.error_code == Error.NONE
    assert sync(cluster, client, joined) is Error.NONE
    assert beat(client, joined) is Error.NONE
    return client, joined


def test_a_fenced_coordinator_begins_no_generations() -> None:
    """However often its members come back: it could not write what comes of them."""
    cluster, node = cluster_with_groups()
    client, joined = stable_member(cluster, node)
    cluster[node].lose_session()
    errors: set[Error] = set()
    for _ in range(IMPATIENCE):
        again = join(cluster, client, joined.member_id)
        errors.add(Error(again.error_code))
        if again.error_code == Error.NONE:
            assert again.generation_id == joined.generation_id, "no generation begins that cannot be written"
            errors.add(sync(cluster, client, again))
    assert errors == {Error.NOT_COORDINATOR}


def test_members_of_a_fenced_coordinator_are_sent_elsewhere() -> None:
    cluster, node = cluster_with_groups()
    client, joined = stable_member(cluster, node)
    waiting = cluster[node].connect()
    send_join(waiting, "")
    send_join(waiting, waiting.take(JoinGroupResponse).member_id)
    assert not waiting.inbox, "it waits for the other member"
    cluster[node].lose_session()
    assert waiting.take(JoinGroupResponse).error_code == Error.NOT_COORDINATOR
    assert beat(client, joined) is Error.NOT_COORDINATOR


def test_a_coordinator_that_counts_again_knows_its_groups() -> None:
    """Members could not reach it for a while, so their sessions begin anew."""
    cluster, node = cluster_with_groups()
    client, joined = stable_member(cluster, node)
    for other in {1, 2, 3} - {node}:
        cluster[other].kill()
        cluster[other].end_session()
    cluster[node].lose_session()
    cluster.advance(2 * SESSION_MS)
    cluster[node].regain_session()
    cluster.advance(100)
    assert beat(client, joined) is Error.NONE
    cluster.advance(SESSION_MS)
    assert beat(client, joined) is Error.UNKNOWN_MEMBER_ID
