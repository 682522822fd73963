"""kcat as a member of a group, which goes on where it was. It knows the classic protocol only."""

from clients.drivers import Librdkafka, Sent
from clients.kcat import Kcat


def test_kcat_goes_on_where_its_group_was(kcat: Kcat, bootstrap: str, topic: str, name: str) -> None:
    def consume(count: int) -> list[int]:
        return [int(line) for line in kcat.run("-q", "-c", str(count), *first_time, "-G", name, topic).split()]

    first_time = ("-X", "auto.offset.reset=earliest")
    Librdkafka(bootstrap).produce(topic, [Sent(b"%d" % number, partition=number % 4) for number in range(40)])
    first, second = consume(15), consume(25)
    assert sorted(first + second) == list(range(40))
