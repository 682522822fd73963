"""The pieces of the simulator: time, streams of bytes, disks that die in two ways."""

from random import Random

import pytest

from cordwood.errors import StorageError
from cordwood.ids import TopicName, TopicPartition
from cordwood.record.build import build_values
from cordwood.sim.clock import MONO_START_MS, WALL_START_MS, SimClock
from cordwood.sim.disk import SimDisk
from cordwood.sim.history import Stored, dump
from cordwood.sim.network import BROKER, Frames, Link, Network
from cordwood.sim.trace import Trace


class Ear:
    """An end of a connection that remembers what it heard."""

    def __init__(self) -> None:
        self.data = b""
        self.pieces = 0
        self.losses = 0

    def received(self, data: bytes, /) -> None:
        self.data += data
        self.pieces += 1

    def lost(self) -> None:
        self.losses += 1


def run(clock: SimClock) -> None:
    while len(clock):
        clock.step()[1]()


# ---------------------------------------------------------------------- time


def test_time_jumps_to_what_comes_next() -> None:
    clock, happened = SimClock(Random(1)), []
    for delay_ms in (500, 20, 300):
        clock.after(delay_ms, f"{delay_ms}", lambda ms=delay_ms: happened.append((ms, clock.now.mono_ms)))  # type: ignore[misc]
    run(clock)
    assert happened == [(ms, MONO_START_MS + ms) for ms in (20, 300, 500)]
    assert clock.now.wall_ms == WALL_START_MS + 500


def test_the_walls_clock_may_be_set_and_the_other_may_not() -> None:
    clock = SimClock(Random(1))
    clock.shift_wall(-5_000)
    assert (clock.now.wall_ms, clock.now.mono_ms) == (WALL_START_MS - 5_000, MONO_START_MS)


def test_the_order_within_one_millisecond_is_the_seeds() -> None:
    def order(seed: int) -> str:
        clock, happened = SimClock(Random(seed)), []
        for name in "abcdef":
            clock.after(0, name, lambda name=name: happened.append(name))  # type: ignore[misc]
        run(clock)
        return "".join(happened)

    assert order(1) == order(1)
    assert len({order(seed) for seed in range(10)}) > 5


def test_a_trace_has_time_and_names_and_no_debugging() -> None:
    shown: list[str] = []
    trace = Trace(SimClock(Random(1)), shown.append)
    trace.line("who", "does what")
    voice = trace.voice("broker")
    voice.warning("%s is %d", "it", 5)
    voice.debug("nobody cares")
    assert trace.lines == shown == ["    1000 who          does what", "    1000 broker       it is 5"]


# ---------------------------------------------------------------------- the network


def connected(seed: int) -> tuple[SimClock, Network, Link, Ear, Ear]:
    clock = SimClock(Random(seed))
    network = Network(clock, Random(seed))
    client, server = Ear(), Ear()
    network.listeners[BROKER] = lambda link: link.up.attach(server)
    return clock, network, network.connect(client, "host"), client, server


@pytest.mark.parametrize("seed", range(20))
def test_bytes_arrive_whole_and_in_order(seed: int) -> None:
    clock, _, link, client, server = connected(seed)
    sent = [bytes([number]) * (number + 1) for number in range(40)]
    for number, data in enumerate(sent):
        link.up.write(data)  # some of it before anybody listens
        link.down.write(data)
        if number == 20:
            run(clock)
    run(clock)
    assert server.data == client.data == b"".join(sent)
    assert server.pieces > 30


def test_a_broken_connection_loses_what_is_on_its_way_and_tells_both_ends_once() -> None:
    clock, network, link, client, server = connected(1)
    run(clock)
    link.up.write(b"lost")
    link.down.write(b"lost")
    assert network.cut_one() is link
    link.cut()
    run(clock)
    assert (server.data, client.data, server.losses, client.losses) == (b"", b"", 1, 1)
    assert network.cut_one() is None


def test_a_connection_that_breaks_before_it_arrives_never_does() -> None:
    clock, _, link, client, server = connected(1)
    link.cut()
    run(clock)
    assert (client.losses, server.losses) == (1, 0)


def test_a_silent_connection_tells_nobody() -> None:
    clock, network, link, client, server = connected(1)
    run(clock)
    assert network.silence_one() is link
    link.up.write(b"unheard")
    link.down.write(b"unheard")
    run(clock)
    assert (server.data, client.data, client.losses) == (b"", b"", 0)
    link.cut()
    run(clock)
    assert (server.losses, client.losses) == (1, 1)
    assert network.silence_one() is None


def test_nobody_listens() -> None:
    clock, network, _, client, _ = connected(1)
    network.listeners.clear()
    run(clock)
    assert client.losses == 1


def test_frames_are_put_together_again() -> None:
    frames = Frames()
    stream = b"\0\0\0\3abc" + b"\0\0\0\0" + b"\0\0\0\1d"
    assert [bytes(f) for f in frames.feed(stream)] == [b"abc", b"", b"d"]
    assert [bytes(f) for byte in stream for f in frames.feed(bytes([byte]))] == [b"abc", b"", b"d"]


# ---------------------------------------------------------------------- the disk


def test_a_killed_process_loses_its_files_and_nothing_in_them() -> None:
    disk = SimDisk(Random(1))
    file = disk.open("a", create=True)
    file.append(b"unsynced")
    disk.power_fails_after = disk.fails_after = 0
    disk.kill()
    with pytest.raises(StorageError):
        file.append(b"more")
    assert disk.read("a") == b"unsynced"
    disk.open("a").append(b", and more")


def test_a_removed_tree_stays_removed_without_power() -> None:
    for seed in range(20):
        disk = SimDisk(Random(seed))
        disk.make_directory("d")
        disk.open("d/a", create=True).sync()
        disk.remove_tree("d")
        disk.crash()
        assert disk.list("") == []


def test_a_dump_has_all_whole_batches_of_all_segments() -> None:
    disk, partition = SimDisk(Random(1)), TopicPartition(TopicName("t"), 0)
    assert dump(disk, partition) == []
    disk.make_directory("t-0")
    first = build_values([b"a", b"b"])
    disk.open("t-0/00000000000000000000.log", create=True).append(first)
    disk.open("t-0/00000000000000000000.index", create=True).append(b"?")
    disk.open("t-0/00000000000000000007.log", create=True).append(first[:-1])
    assert dump(disk, partition) == [Stored(0, b"a"), Stored(1, b"b")]
