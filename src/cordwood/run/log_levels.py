"""The levels of the broker's loggers in this process: the one it was given, those below it, and the root."""

import logging
from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

from cordwood.config.loggers import LEVELS, ROOT

NUMBERS: Final = (5, logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)
"""Python's numbers for ``LEVELS``. Python has none for TRACE, only room below DEBUG."""


class ProcessLogLevels:
    """Python's loggers, with Kafka's names for their levels."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger

    def all(self) -> dict[str, str]:
        return {name: _level(logger) for name, logger in self._loggers()}

    def set(self, name: str, level: str | None) -> None:
        logger = dict(self._loggers())[name]
        logger.setLevel(logging.NOTSET if level is None else NUMBERS[LEVELS.index(level)])

    def _loggers(self) -> Iterator[tuple[str, logging.Logger]]:
        yield ROOT, self._logger.root
        yield self._logger.name, self._logger
        for name, logger in list(self._logger.manager.loggerDict.items()):
            if name.startswith(f"{self._logger.name}.") and isinstance(logger, logging.Logger):
                yield name, logger


def _level(logger: logging.Logger) -> str:
    """The logger's level. Python allows numbers between two levels; they count as the next higher one."""
    return LEVELS[min(bisect_left(NUMBERS, logger.getEffectiveLevel()), len(LEVELS) - 1)]
