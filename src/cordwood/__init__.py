"""Cordwood: stacked logs, ready for Spark. A commit log that speaks Apache Kafka's protocol."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cordwood.testing import Broker

__all__ = ["Broker", "__version__"]
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """Import ``Broker`` only when somebody asks for it, so that ``cordwood serve`` does not have to wait for it."""
    if name == "Broker":
        from cordwood.testing import Broker

        return Broker
    raise AttributeError(f"module 'cordwood' has no attribute {name!r}")
