"""A broker inside the process of a test or a notebook."""

from cordwood.testing.broker import Broker

__all__ = ["Broker"]
