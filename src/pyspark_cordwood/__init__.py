"""Spark looks for modules of this name's kind: ``format("cordwood")`` works without being registered."""

from cordwood.spark.source import CordwoodSource as DefaultSource

__all__ = ["DefaultSource"]
