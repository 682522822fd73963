"""Typed values: what a record's bytes mean, as the options say, column by column, without stopping at a bad record.

``make`` reads the options and returns a ``ValueDecoder``, or None if key and value stay bytes. The source uses it like
this:

- driver, ``schema()``: ``decoder = make(options, sample=…)``; its columns are ``decoder.schema(columns)`` (Arrow) or
  ``decoder.fields`` (names and Spark's types: replace the columns of these names, append the others);
- driver, ``reader(schema)``: ``make(options, value_type=arrow type of schema["value"])``, so that a schema that was
  inferred, or given by the user, is used, and nothing is inferred twice;
- task: ``batches = decode(chunks, wanted, decoder.needed(columns))``, then ``yield from decoder.rows(batches, columns,
  settings)``.

A decoder can be pickled. What it needs to work (parsers, connections) is created where it is used. The modules that do
the work are imported only when needed: most queries leave values as they are.
"""

from typing import TYPE_CHECKING

from .settings import OPTIONS, NoTypesYet, ValueSettings

if TYPE_CHECKING:
    from .decoder import ERROR_COLUMN, ValueDecoder, make

__all__ = ["ERROR_COLUMN", "OPTIONS", "NoTypesYet", "ValueDecoder", "ValueSettings", "make"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import decoder

    found: object = getattr(decoder, name)
    return found
