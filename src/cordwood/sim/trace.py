"""What happened, one line for each event. Equal seeds give equal traces, byte for byte."""

from collections.abc import Callable

from cordwood.sim.clock import SimClock


class Trace:
    """The lines of a run. It is also the logger of everything in it."""

    def __init__(self, clock: SimClock, echo: Callable[[str], None] | None = None) -> None:
        self._clock = clock
        self._echo = echo
        self.lines: list[str] = []

    def line(self, who: str, what: str) -> None:
        text = f"{self._clock.now.mono_ms:>8} {who:<12} {what}"
        self.lines.append(text)
        if self._echo is not None:
            self._echo(text)

    def debug(self, msg: str, /, *args: object) -> None:
        pass

    def info(self, msg: str, /, *args: object) -> None:
        self.line("broker", msg % args)

    warning = error = info
