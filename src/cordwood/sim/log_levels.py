"""Loggers that exist only in a dictionary: the root, and one below it."""

from cordwood.config.loggers import ROOT


class SimLogLevels:
    """Levels that nothing depends on."""

    def __init__(self) -> None:
        self._levels: dict[str, str | None] = {ROOT: "WARN", "cordwood": "INFO"}

    def all(self) -> dict[str, str]:
        root = self._levels[ROOT]
        assert root is not None
        return {name: level or root for name, level in self._levels.items()}

    def set(self, name: str, level: str | None) -> None:
        assert name in self._levels
        self._levels[name] = level
