"""Links to other brokers: whom a broker dials and when, what it does about silence, and whom it takes for dead."""

from uuid import UUID

import pytest

from broker.cluster_harness import Cluster, Member
from cordwood.cluster.layout import Incarnation, broker_data, broker_path, incarnation_data, incarnation_path
from cordwood.effects import Dial, Effect, HangUp, Transmit
from cordwood.ids import LinkId, NodeId
from cordwood.ports import Create, Delete, LinkLoss, Set, StoreOp
from cordwood.wire.frame import response_frame
from cordwood.wire.messages import ApiVersionsRequest, ApiVersionsResponse

SEVEN = NodeId(7)
ADDRESS = {"PLAINTEXT": ("PLAINTEXT", "10.0.0.7", 9092)}
LIFE = incarnation_data(Incarnation(UUID(int=7), ""))


class Lone(Member):
    """A broker whose links end in the test's hands."""

    def __init__(self, cluster: Cluster, node: int, **settings: object) -> None:
        self.orders: list[Effect] = []
        super().__init__(cluster, node, **settings)

    def _do(self, effect: Effect) -> None:
        if isinstance(effect, Dial | Transmit | HangUp):
            self.orders.append(effect)
        else:
            super()._do(effect)


class LoneCluster(Cluster):
    member_class = Lone


class World:
    """Broker 1, and broker 7 of which there is only what the store says."""

    def __init__(self, **settings: object) -> None:
        self.cluster = LoneCluster(1, **settings)
        member = self.cluster[1]
        assert isinstance(member, Lone)
        self.member = member
        self.broker = member.broker
        self.answers: list[object | None] = []

    def store(self, *operations: StoreOp) -> None:
        change = self.cluster.store.multi(operations)
        self.member.deliver(change)
        self.cluster.run()

    def register(self, address: dict[str, tuple[str, str, int]] | None = None) -> None:
        self.store(
            Create(broker_path(SEVEN), broker_data(address or ADDRESS, None)), Create(incarnation_path(SEVEN), LIFE)
        )

    def take(self) -> list[Effect]:
        orders, self.member.orders = self.member.orders, []
        return orders

    def dialled(self) -> LinkId:
        """The link that was dialled, which is all that was asked for."""
        (dial,) = self.take()
        assert isinstance(dial, Dial)
        return dial.link

    def up(self, link: LinkId) -> None:
        self.member.execute(self.broker.link_up(link, self.member.now))

    def lost(self, link: LinkId, loss: LinkLoss) -> None:
        self.member.execute(self.broker.link_lost(link, loss, loss.value, self.member.now))
        self.cluster.run()

    def ask(self) -> None:
        self.broker.peers.request(SEVEN, ApiVersionsRequest(), 0, self.answers.append)
        self.member.execute(self.broker._take_effects())

    def answer(self, link: LinkId, correlation_id: int) -> None:
        response = ApiVersionsResponse(error_code=35)
        chunks = response_frame(correlation_id=correlation_id, api_key=18, api_version=0, message=response)
        frame = bytearray(b"".join(bytes(chunk) for chunk in chunks if isinstance(chunk, bytes)))[4:]
        self.member.execute(self.broker.link_received(link, memoryview(frame), self.member.now))


def test_a_broker_is_dialled_when_it_registers_and_not_when_it_is_oneself() -> None:
    world = World()
    assert world.take() == []
    world.register()
    (dial,) = world.take()
    assert dial == Dial(LinkId(1), "10.0.0.7", 9092)
    world.up(LinkId(1))
    assert world.broker.peers.is_up(SEVEN)


def test_a_broker_that_goes_is_not_dialled_any_more() -> None:
    world = World()
    world.register()
    link = world.dialled()
    world.up(link)
    world.ask()
    world.take()
    world.store(Delete(broker_path(SEVEN)))
    assert world.take() == [HangUp(link)]
    assert world.answers == [None]
    world.cluster.advance(60_000)
    assert world.take() == []
    world.up(link)
    world.lost(link, LinkLoss.CLOSED)
    assert not world.broker.peers.is_up(SEVEN), "what is heard of an old link says nothing"


def test_another_address_or_another_life_is_dialled_anew() -> None:
    world = World()
    world.register()
    first = world.dialled()
    moved = {"PLAINTEXT": ("PLAINTEXT", "10.0.0.8", 9092)}
    world.store(Set(broker_path(SEVEN), broker_data(moved, None), 0))
    hang_up, dial = world.take()
    assert hang_up == HangUp(first)
    assert dial == Dial(LinkId(2), "10.0.0.8", 9092)
    world.store(Set(incarnation_path(SEVEN), LIFE, 0))
    assert [type(effect) for effect in world.take()] == [HangUp, Dial]
    world.store(Set(broker_path(SEVEN), broker_data(moved, None, shutting_down=True), 1))
    assert world.take() == [], "the same way leads there"


@pytest.mark.parametrize(("name", "host"), [("INTERNAL", "10.1.0.7"), ("PLAINTEXT", "10.0.0.7")])
def test_the_listener_for_brokers_is_dialled(name: str, host: str) -> None:
    world = World(
        inter_broker_listener_name=name,
        listeners="PLAINTEXT://10.0.0.1:9092,INTERNAL://10.1.0.1:9093",
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT",
    )
    world.register({**ADDRESS, "INTERNAL": ("PLAINTEXT", "10.1.0.7", 9093)})
    (dial,) = world.take()
    assert isinstance(dial, Dial)
    assert dial.host == host


def test_a_lost_link_is_made_again_at_once_then_with_growing_pauses() -> None:
    world = World(replica_fetch_backoff_ms=150)
    world.register()
    link = world.dialled()
    world.up(link)
    world.lost(link, LinkLoss.CLOSED)
    link = world.dialled()
    for pause_ms in (50, 100, 150, 150):
        world.lost(link, LinkLoss.UNREACHABLE)
        world.cluster.advance(pause_ms - 1)
        assert world.take() == []
        world.cluster.advance(1)
        link = world.dialled()
    world.up(link)
    world.lost(link, LinkLoss.CLOSED)
    assert world.dialled() > link, "at once again"


def test_who_was_there_and_refuses_now_is_dead() -> None:
    world = World()
    world.register()
    link = world.dialled()
    world.lost(link, LinkLoss.REFUSED)
    assert SEVEN in world.broker.image.brokers, "nobody has seen it there"
    world.cluster.advance(50)
    link = world.dialled()
    world.up(link)
    world.lost(link, LinkLoss.CLOSED)
    link = world.dialled()
    assert SEVEN in world.broker.image.brokers
    world.lost(link, LinkLoss.REFUSED)
    assert SEVEN not in world.broker.image.brokers
    world.cluster.advance(60_000)
    assert world.take() == []


def test_a_dial_that_nobody_answers_is_given_up() -> None:
    world = World()
    world.register()
    link = world.dialled()
    world.cluster.advance(4999)
    assert world.take() == []
    world.cluster.advance(1)
    assert world.take() == [HangUp(link)]
    world.cluster.advance(50)
    world.dialled()


def test_answers_come_in_the_order_of_the_questions() -> None:
    world = World()
    world.register()
    link = world.dialled()
    world.up(link)
    world.ask()
    world.ask()
    assert [type(effect) for effect in world.take()] == [Transmit, Transmit]
    world.answer(link, 1)
    world.answer(link, 2)
    assert [type(answer) for answer in world.answers] == [ApiVersionsResponse] * 2


@pytest.mark.parametrize("wrong", ["another id", "nothing was asked", "no answer at all"])
def test_an_answer_that_makes_no_sense_ends_the_link(wrong: str) -> None:
    world = World()
    world.register()
    link = world.dialled()
    world.up(link)
    if wrong != "nothing was asked":
        world.ask()
        world.take()
    if wrong == "no answer at all":
        garbage = memoryview(bytearray(b"\0\0\0\1garbage"))
        world.member.execute(world.broker.link_received(link, garbage, world.member.now))
    else:
        world.answer(link, 99)
    hang_up, dial = world.take()
    assert hang_up == HangUp(link)
    assert isinstance(dial, Dial)
    assert world.answers == ([] if wrong == "nothing was asked" else [None])


def test_a_question_that_is_not_answered_in_time_ends_the_link() -> None:
    world = World(replica_socket_timeout_ms=1000)
    world.register()
    link = world.dialled()
    world.up(link)
    world.ask()
    world.cluster.advance(600)
    world.answer(link, 1)
    world.ask()
    world.take()
    world.cluster.advance(999)
    assert world.take() == []
    world.cluster.advance(1)
    hang_up, dial = world.take()
    assert hang_up == HangUp(link)
    assert isinstance(dial, Dial)
    assert world.answers[1:] == [None]
    world.up(dial.link)
    world.cluster.advance(10_000)
    assert world.take() == [], "silence is no fault where nothing was asked"


def said(world: World) -> list[str]:
    """What was logged of the link to broker 7 since this was last asked."""
    lines = [line for line in world.member.logger.lines if "broker 7" in line]
    world.member.logger.lines.clear()
    return lines


def test_a_link_that_is_lost_and_stands_again_is_spoken_of_twice() -> None:
    world = World(replica_fetch_backoff_ms=50)
    world.register()
    link = world.dialled()
    world.up(link)
    said(world)
    world.lost(link, LinkLoss.CLOSED)
    assert said(world) == ["no link to broker 7: closed"]
    for _ in range(5):
        world.lost(world.dialled(), LinkLoss.UNREACHABLE)
        world.cluster.advance(50)
        assert said(world) == []
    world.up(world.dialled())
    assert said(world) == ["linked to broker 7 at 10.0.0.7:9092"]


def test_a_broker_that_takes_a_link_and_does_not_answer_is_not_back() -> None:
    """So it is with one that is cut off or stopped: the system takes connections in its place."""
    world = World(replica_socket_timeout_ms=2000)
    world.register()
    link = world.dialled()
    world.up(link)
    said(world)
    for expected in (["no link to broker 7: a request was not answered in time"], [], []):
        world.ask()
        world.cluster.advance(2000)
        assert said(world) == expected
        link = next(order.link for order in world.take() if isinstance(order, Dial))
        world.up(link)
        assert said(world) == []
    world.ask()
    world.answer(link, 4)
    assert said(world) == ["linked to broker 7 at 10.0.0.7:9092"]
    world.ask()
    world.answer(link, 5)
    assert said(world) == []


def test_a_broker_that_registers_again_and_is_not_reached_is_not_spoken_of_again() -> None:
    world = World()
    world.register()
    world.lost(world.dialled(), LinkLoss.UNREACHABLE)
    assert said(world) == ["no link to broker 7: unreachable"]
    world.store(Set(incarnation_path(SEVEN), LIFE, 0))
    world.lost(world.dialled(), LinkLoss.UNREACHABLE)
    assert said(world) == []
