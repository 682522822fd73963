"""Members of groups as a test sees them: started, listened to, asked to leave, killed.

A Python member has a process of its own. Java members share a JVM, which takes a while to start, unless they are to be
killed.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from time import monotonic
from typing import Final
from uuid import uuid4

from benchmarks import peer

from clients.groups.events import TERMINAL, Event, Kind, Place, Wish, from_line
from clients.groups.history import faults, owned, secured
from clients.groups.kinds import Kind as MemberKind
from clients.java.bridge import compiled_classes
from support.waiting import eventually

TESTS: Final = Path(__file__).parents[2]
ROOT: Final = TESTS.parent

SETTLE_S: Final = 40.0
"""Enough for any rebalance on a busy machine: it decides nothing but when a test gives up."""


class Host:
    """A process that members live in."""

    def __init__(self, command: Sequence[str]) -> None:
        self.members: dict[str, Member] = {}
        self.last_words: list[str] = []
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env={**os.environ, "PYTHONPATH": f"{TESTS}{os.pathsep}{ROOT}"},
        )
        self._listeners = [threading.Thread(target=listen, daemon=True) for listen in (self._hear, self._hear_errors)]
        for listener in self._listeners:
            listener.start()

    def _hear(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            event = from_line(line)
            self.members[event.member].events.append(event)

    def _hear_errors(self) -> None:
        assert self._process.stderr is not None
        self.last_words.extend(self._process.stderr)

    def tell(self, words: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()

    def end(self) -> None:
        """At once; all that it said before is heard."""
        if self._process.stdin is None or self._process.stdin.closed:
            return
        self._process.kill()
        self._process.wait()
        for listener in self._listeners:
            listener.join()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert stream is not None
            stream.close()


class JavaHost:
    """The JVM of all Java members that are not to be killed, for many tests. It starts when there is a first one."""

    def __init__(self) -> None:
        self._host: Host | None = None

    def get(self) -> Host:
        self._host = self._host or _java()
        return self._host

    def end(self) -> None:
        if self._host is not None:
            self._host.end()


class Member:
    """One member, from its start to its end."""

    def __init__(self, wish: Wish, host: Host, *, alone: bool) -> None:
        self.wish = wish
        self.host = host
        self.alone = alone
        self.events: list[Event] = []
        self._leaving = False
        host.members[wish.member] = self
        host.tell(asdict(wish))

    @property
    def name(self) -> str:
        return self.wish.member

    @property
    def owned(self) -> set[Place]:
        return owned(list(self.events))

    @property
    def ended(self) -> bool:
        return any(event.kind in TERMINAL for event in list(self.events))

    def told(self, kind: Kind) -> list[Event]:
        return [event for event in list(self.events) if event.kind == kind]

    @property
    def read_count(self) -> int:
        return sum(event.offsets[1] - event.offsets[0] for event in self.told("read"))

    def complains_of(self, *words: str) -> bool:
        """Has its client said one of these?"""
        texts = [event.text for event in [*self.told("error"), *self.told("failed")]]
        return any(word in text for word in words for text in texts)

    def ask_to_leave(self) -> None:
        """Once; it may have ended by itself."""
        if not self._leaving:
            self._leaving = True
            with suppress(BrokenPipeError):
                self.host.tell({"close": self.name})

    def leave(self) -> None:
        """Ask it to leave, and wait until it has."""
        self.ask_to_leave()
        eventually(lambda: self.ended, within_s=SETTLE_S, what=f"{self.name}'s farewell")

    def declare_lost(self) -> None:
        """For a member that is not told what it lost, and that the test knows to be no member any more."""
        self.events.append(Event(monotonic(), self.name, "lost", tuple(self.owned)))

    def kill(self) -> float:
        """kill -9. When it was."""
        assert self.alone, "others live in the same process"
        self.host.end()
        at = monotonic()
        self.events.append(Event(at, self.name, "killed"))
        return at


class Crew:
    """All members that a test starts, of any number of groups. At the end none is left."""

    def __init__(self, wish: Wish, java: JavaHost) -> None:
        self.wish = wish
        """What members are like if nothing else is said."""
        self.members: list[Member] = []
        self.judged = True
        self._java = java
        self._mark = uuid4().hex[:6]

    def start(self, kind: MemberKind, *, alone: bool = False, **changes: object) -> Member:
        """Start a member. It joins while the test goes on. *alone*: it may be killed, as Python members always may."""
        name = f"{kind.client}-{len(self.members)}-{self._mark}"
        words = {"member": name, "client": kind.client, "protocol": kind.protocol, "assignor": kind.assignor, **changes}
        wish = replace(self.wish, **words)  # type: ignore[arg-type]
        if kind.client == "java":
            host = _java() if alone else self._java.get()
        else:
            host = Host([sys.executable, "-m", "clients.groups.member"])
        self.members.append(Member(wish, host, alone=alone or kind.client != "java"))
        return self.members[-1]

    @property
    def alive(self) -> list[Member]:
        return [member for member in self.members if not member.ended]

    def events(self, group: str | None = None) -> list[Event]:
        """What all members of a group said; without a name, of the group that members join by themselves."""
        group = self.wish.group if group is None else group
        return [event for member in self.members if member.wish.group == group for event in list(member.events)]

    def read_all(self, ends: dict[Place, int], group: str | None = None) -> None:
        """Wait until the group has read everything up to these offsets, so that nothing is left to be read again."""
        name = self.wish.group if group is None else group
        members = [member for member in self.members if member.wish.group == name]

        def all_is_read() -> bool:
            events = self.events(name)
            return ends.items() <= reached(events).items() and ends.items() <= secured(events).items()

        explained(members, all_is_read, f"{name}'s end of reading")

    def all_leave(self) -> None:
        """All at once, the killed ones excepted."""
        leaving = self.alive
        for member in leaving:
            member.ask_to_leave()
        eventually(lambda: all(member.ended for member in leaving), within_s=SETTLE_S, what="everybody's farewell")

    def check(self, ends: dict[Place, int] | None = None) -> None:
        """No partition had two owners, and nothing was read twice or left out. *ends*: each group read up to here."""
        for group in sorted({member.wish.group for member in self.members}):
            found = faults(self.events(group), ends)
            assert not found, "\n".join([*found, _lives([one for one in self.members if one.wish.group == group])])

    def forget(self) -> None:
        """Judge nothing at the end: the test has made the group skip records."""
        self.judged = False

    def end(self) -> None:
        shared = [member for member in self.alive if not member.alone]
        for member in shared:
            member.ask_to_leave()
        for member in self.members:
            if member.alone:
                member.host.end()
        eventually(lambda: all(member.ended for member in shared), within_s=SETTLE_S, what="the last farewell")


def _java() -> Host:
    flags = peer.SHORT_LIVED_FLAGS
    return Host(peer.java_command("JavaMember", [], flags=flags, heap=("-Xmx256M",), classes=compiled_classes()))


def reached(events: Iterable[Event]) -> dict[Place, int]:
    """How far a group came in each partition."""
    furthest: dict[Place, int] = {}
    for event in events:
        if event.kind == "read":
            [place], (_, after) = event.places, event.offsets
            furthest[place] = max(furthest.get(place, 0), after)
    return furthest


def places(topic: str, count: int) -> set[Place]:
    return {Place(topic, number) for number in range(count)}


def settle(members: Sequence[Member], wanted: Iterable[Place], sizes: Sequence[int]) -> None:
    """Wait until these members own all these partitions, each by one of them, so many each."""
    goal = (sorted(sizes), set(wanted))
    explained(members, lambda: _shares(members) == goal, f"shares of {list(sizes)}")


def _shares(members: Sequence[Member]) -> tuple[list[int], set[Place]]:
    shares = [member.owned for member in members]
    return sorted(map(len, shares)), set().union(*shares)


def explained(members: Sequence[Member], condition: Callable[[], bool], what: str) -> None:
    """Wait for something that these members bring about; if they do not, tell what they went through."""
    try:
        eventually(condition, within_s=SETTLE_S, what=what)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{_lives(members)}") from None


def _lives(members: Sequence[Member]) -> str:
    lines = [
        f"{one.at:.3f} {one.member} {one.kind} {_short(one.places)} {one.offsets} {one.text}"
        for one in sorted((event for member in members for event in _condensed(member.events)), key=lambda one: one.at)
    ]
    words = [line.rstrip() for member in members for line in member.host.last_words[-20:] if line.strip()]
    return "\n".join([*words, *lines])[-8_000:]


def _condensed(events: Iterable[Event]) -> list[Event]:
    """What a member reads of a partition without a word about anything else, as one event: else it hides the rest."""
    told: list[Event] = []
    since: dict[Place, int] = {}
    """Where in *told* the reads are that may be added to."""
    for event in list(events):
        if event.kind != "read":
            since.clear()
        elif (at := since.setdefault(event.places[0], len(told))) < len(told):
            told[at] = replace(told[at], offsets=(told[at].offsets[0], event.offsets[1]))
            continue
        told.append(event)
    return told


def _short(places: Iterable[Place]) -> str:
    return ", ".join(f"{place.topic[-12:]}-{place.partition}" for place in places)
