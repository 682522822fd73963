"""Small pictures in a terminal: bars and lines of blocks, and lines that are overwritten."""

import shutil
from collections.abc import Sequence
from typing import Final

LEVELS: Final = "▁▂▃▄▅▆▇█"
PARTS: Final = " ▏▎▍▌▋▊▉"


def sparkline(values: Sequence[float]) -> str:
    """Values as a row of blocks, the highest one full.

    >>> sparkline([0, 1, 2, 4])
    '▁▃▅█'
    """
    most = max(values, default=0)
    return "".join(LEVELS[round(value / most * (len(LEVELS) - 1)) if most > 0 else 0] for value in values)


def bar(value: float, most: float, width: int) -> str:
    """A value as a bar, whose full width is *most*.

    >>> bar(3, 4, 4), bar(1, 16, 4), bar(0, 0, 4)
    ('███', '▎', '')
    """
    eighths = round(value / most * width * 8) if most > 0 else 0
    full, rest = divmod(min(max(eighths, 0), width * 8), 8)
    return "█" * full + PARTS[rest].strip()


def gauge(share: float, width: int = 24) -> str:
    """How much of something is done.

    >>> gauge(0.5, 4)
    '██░░'
    """
    full = int(min(max(share, 0.0), 1.0) * width)
    return "█" * full + "░" * (width - full)


def one_line(text: str) -> str:
    """As much of it as fits into the terminal's width: what runs into a second line would not be overwritten."""
    room = shutil.get_terminal_size().columns - 1
    return text if len(text) <= room else f"{text[: room - 1]}…"
