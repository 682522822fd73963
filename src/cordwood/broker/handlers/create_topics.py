"""CreateTopics (19), versions 2-7: new topics, each by itself: one that is refused does not hold up the others.

- 4: -1 for the numbers of partitions and replicas means the broker's defaults; 5: the answer shows the topic's
  settings.
- 7: and its id. ``validate_only`` checks everything and creates nothing.

If the metadata store was lost on the way and is back, a topic with the id of an earlier attempt is that attempt's, and
was created. Kafka's brokers, which send such a request to their controller once more, answer that it exists already.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from cordwood.broker.connection import Call
from cordwood.broker.portions import patient_until, portions, propose_in_turn, states_max
from cordwood.cluster.controller import PARTITIONS_MAX, TopicPlan, check_number_of_new, create_topic, plan_topic
from cordwood.config import checked_topic, describe_topic
from cordwood.errors import Error, Refused
from cordwood.ids import NO_TOPIC_ID, TopicId, TopicName
from cordwood.ports import StoreOp
from cordwood.wire.messages import (
    CreateTopicsRequest,
    CreateTopicsRequestTopic,
    CreateTopicsResponse,
    CreateTopicsResponseConfig,
    CreateTopicsResponseTopic,
)

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker


def handle(broker: "Broker", call: Call, request: CreateTopicsRequest) -> CreateTopicsResponse | None:
    try:
        check_number_of_new(sum(_number_of(broker, t) for t in request.topics), room=broker.replicas.room)
    except Refused as refusal:
        plans = {topic.name: refusal for topic in request.topics}
        return CreateTopicsResponse(topics=[_answer(broker, name, plans[name], True) for name in plans])
    _create(broker, call, request)
    return None


def _create(broker: "Broker", call: Call, request: CreateTopicsRequest) -> None:
    groups = portions(broker, request.topics, lambda topic: _number_of(broker, topic))
    counts = Counter(topic.name for topic in request.topics)
    plans: list[dict[str, TopicPlan | Refused]] = [{} for _ in groups]
    perhaps: dict[TopicId, TopicPlan] = {}

    def plan(number: int) -> Sequence[StoreOp]:
        planned = plans[number] = _plan_all(broker, groups[number], counts, perhaps)
        if request.validate_only:
            return []
        new = [made for made in planned.values() if isinstance(made, TopicPlan) and not _is_there(broker, made)]
        return [op for topic in new for op in create_topic(broker.image, topic, states_max=states_max(broker))]

    def in_doubt(number: int) -> None:
        perhaps.update((made.id, made) for made in plans[number].values() if isinstance(made, TopicPlan))

    def done(refusals: list[Refused | None]) -> None:
        broker.replicas.additions.when_added(counts, lambda: answer(refusals))

    def answer(refusals: list[Refused | None]) -> None:
        topics = [
            _answer(broker, name, refusal or planned, request.validate_only)
            for refusal, group in zip(refusals, plans, strict=True)
            for name, planned in group.items()
        ]
        broker.reply(call, CreateTopicsResponse(topics=topics))

    until_ms = patient_until(broker, request.timeout_ms)
    steps = [partial(plan, number) for number in range(len(groups))]
    propose_in_turn(broker, steps, done, until_ms=until_ms, in_doubt=in_doubt)


def _is_there(broker: "Broker", planned: TopicPlan) -> bool:
    return broker.image.topic_by_id(planned.id) is not None


def _plan_all(
    broker: "Broker",
    topics: list[CreateTopicsRequestTopic],
    counts: Mapping[str, int],
    perhaps: Mapping[TopicId, TopicPlan],
) -> dict[str, TopicPlan | Refused]:
    """*perhaps*: what earlier attempts have created, or not."""
    plans: dict[str, TopicPlan | Refused] = {}
    for topic in topics:
        if counts[topic.name] > 1:
            plans[topic.name] = Refused(Error.INVALID_REQUEST, f"Topic '{topic.name}' is named twice in one request.")
            continue
        present = broker.image.topics.get(TopicName(topic.name))
        if present is not None and present.id in perhaps:
            plans[topic.name] = perhaps[present.id]
            continue
        try:
            plans[topic.name] = _plan(broker, topic)
        except Refused as refusal:
            plans[topic.name] = refusal
    _refuse_collisions(plans)
    return plans


def _number_of(broker: "Broker", topic: CreateTopicsRequestTopic) -> int:
    """The partitions that a topic will have; an impossible number is refused later."""
    if topic.assignments:
        return len(topic.assignments)
    number = broker.config.num_partitions if topic.num_partitions == -1 else topic.num_partitions
    return number if 0 < number <= PARTITIONS_MAX else 0


def _refuse_collisions(plans: dict[str, TopicPlan | Refused]) -> None:
    """Two new names of one request may collide with each other too."""
    seen: dict[str, str] = {}
    for name, planned in plans.items():
        if isinstance(planned, TopicPlan):
            other = seen.setdefault(name.replace(".", "_"), name)
            if other != name:
                plans[name] = Refused(
                    Error.INVALID_TOPIC, f"Topic '{name}' collides with '{other}': '.' and '_' count as one."
                )


def _plan(broker: "Broker", topic: CreateTopicsRequestTopic) -> TopicPlan:
    manual = {assignment.partition_index: assignment.broker_ids for assignment in topic.assignments}
    if len(manual) < len(topic.assignments):
        raise Refused(Error.INVALID_REPLICA_ASSIGNMENT, "A partition is assigned twice.")
    partitions, replicas = topic.num_partitions, topic.replication_factor
    if not manual:
        partitions = broker.config.num_partitions if partitions == -1 else partitions
        replicas = broker.config.default_replication_factor if replicas == -1 else replicas
    config = {setting.name: setting.value for setting in topic.configs}
    return plan_topic(
        broker.image,
        broker.entropy,
        name=topic.name,
        partitions=partitions,
        replicas=replicas,
        manual=manual,
        config=checked_topic(config, broker.settings.layers),
    )


def _answer(
    broker: "Broker", name: str, planned: TopicPlan | Refused, validate_only: bool
) -> CreateTopicsResponseTopic:
    if isinstance(planned, Refused):
        return CreateTopicsResponseTopic(name=name, error_code=planned.error, error_message=planned.message)
    return CreateTopicsResponseTopic(
        name=name,
        topic_id=NO_TOPIC_ID if validate_only else planned.id,
        num_partitions=len(planned.assignment),
        replication_factor=len(planned.assignment[0]),
        configs=[
            CreateTopicsResponseConfig(
                name=entry.name,
                value=entry.value,
                read_only=entry.read_only,
                config_source=entry.source,
                is_sensitive=entry.sensitive,
            )
            for entry in describe_topic(planned.config, broker.settings.layers)
        ],
    )
