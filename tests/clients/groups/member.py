"""A member of a group in a process of its own: ``python -m clients.groups.member``, so that it can be killed.

It reads a wish as its first line, then joins, reads and commits until a line says "close" or there are no more lines.
What happens to it, it prints (events.py). It never reads ahead of what it says: a record that a client hands over is
told of before anything else is done with it.
"""

import json
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import monotonic

from clients.groups.events import Event, Kind, Place, Wish, to_line

POLL_S = 0.05
STDOUT = 1


class Voice:
    """Tells what happens to a member, and keeps what it has read and not committed."""

    def __init__(self, wish: Wish) -> None:
        self.wish = wish
        self.owned: set[Place] = set()
        self.uncommitted: dict[Place, int] = {}
        self.records_since_commit = 0
        self.commits_taken = True
        self.closing = threading.Event()

    def say(self, kind: Kind, places: Iterable[Place] = (), offsets: Iterable[int] = (), *, text: str = "") -> None:
        """One line in one write: a kill leaves no half of it."""
        event = Event(monotonic(), self.wish.member, kind, tuple(places), tuple(offsets), text)
        os.write(STDOUT, (to_line(event) + "\n").encode())

    def assigned(self, places: Iterable[Place]) -> None:
        got = [place for place in places if place not in self.owned]
        self.say("assigned", got)
        self.owned.update(got)

    def given_up(self, places: Iterable[Place]) -> None:
        """Stopped reading these. Whoever could not commit what it had read does not know since when."""
        gone = self._forget(places)
        self.say("revoked" if self.commits_taken else "lost", gone)

    def lost(self, places: Iterable[Place]) -> None:
        self.say("lost", self._forget(places))

    def _forget(self, places: Iterable[Place]) -> list[Place]:
        gone = [place for place in places if place in self.owned]
        self.owned.difference_update(gone)
        for place in gone:
            self.uncommitted.pop(place, None)
        return gone

    def read(self, place: Place, first: int, after: int) -> None:
        self.say("read", [place], [first, after])
        self.uncommitted[place] = after
        self.records_since_commit += after - first

    @property
    def wants_to_commit(self) -> bool:
        return self.records_since_commit >= self.wish.commit_every

    @contextmanager
    def commit(self) -> Iterator[dict[Place, int]]:
        """Around the client's own way to commit, which raises if it fails: what to commit, maybe nothing.

        What failed is tried again after the next poll, in which the client may learn why, and be told what it lost.
        """
        offsets, self.uncommitted, self.records_since_commit = self.uncommitted, {}, 0
        self.commits_taken = True
        if offsets:
            self.say("committing", offsets, offsets.values())
        try:
            yield offsets
        except Exception as error:
            self.commits_taken = False
            self.uncommitted = offsets | self.uncommitted
            self.records_since_commit = self.wish.commit_every
            self.say("failed", offsets, offsets.values(), text=repr(error))
        else:
            if offsets:
                self.say("committed", offsets, offsets.values())


def main() -> None:
    wish = Wish(**json.loads(sys.stdin.readline()))
    voice = Voice(wish)
    threading.Thread(target=_listen, args=(voice.closing,), daemon=True).start()
    try:
        _client(wish.client)(voice)
    except Exception as error:
        voice.say("error", text=repr(error))
        raise
    voice.say("closed")


def _client(name: str) -> Callable[[Voice], None]:
    """Imported when it is known which: the others take their time."""
    if name == "confluent-kafka":
        from clients.groups.member_confluent import run
    elif name == "aiokafka":
        from clients.groups.member_aiokafka import run
    else:
        assert name == "kafka-python", name
        from clients.groups.member_kafka_python import run
    return run


def _listen(closing: threading.Event) -> None:
    """Whatever line comes, or the end of all lines, means to leave the group and end."""
    sys.stdin.readline()
    closing.set()


if __name__ == "__main__":
    main()
