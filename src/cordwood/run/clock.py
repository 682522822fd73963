"""The real clocks."""

from time import monotonic_ns, time_ns

from cordwood.ports import Instant


def now() -> Instant:
    return Instant(time_ns() // 1_000_000, monotonic_ns() // 1_000_000)
