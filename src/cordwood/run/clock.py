"""The real clocks."""

from time import monotonic_ns, time_ns
from typing import Final

from cordwood.ports import Instant

_wall_ns: Final = time_ns
_mono_ns: Final = monotonic_ns


def now() -> Instant:
    return Instant(_wall_ns() // 1_000_000, _mono_ns() // 1_000_000)
