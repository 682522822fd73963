"""What happened, one line for each event. Equal seeds give equal traces, byte for byte."""

from collections.abc import Callable

from cordwood.sim.clock import SimClock


class Trace:
    """The lines of a run."""

    def __init__(self, clock: SimClock, echo: Callable[[str], None] | None = None) -> None:
        self._clock = clock
        self._echo = echo
        self.lines: list[str] = []

    def line(self, who: str, what: str) -> None:
        text = f"{self._clock.now.mono_ms:>8} {who:<12} {what}"
        self.lines.append(text)
        if self._echo is not None:
            self._echo(text)

    def voice(self, who: str) -> "Voice":
        """The logger of one broker."""
        return Voice(self, who)


class Voice:
    """A logger whose lines are those of a trace."""

    def __init__(self, trace: Trace, who: str) -> None:
        self._trace = trace
        self._who = who

    def debug(self, msg: str, /, *args: object) -> None:
        pass

    def info(self, msg: str, /, *args: object) -> None:
        self._trace.line(self._who, msg % args)

    warning = error = info
