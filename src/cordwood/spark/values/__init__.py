"""Typed values: what a record's bytes mean, decided by options, column by column, without stopping for a bad record.

``make`` reads the options and gives a ``ValueDecoder``, or None where key and value stay bytes. The source uses it so:

- driver, ``schema()``: ``decoder = make(options, sample=…)``; its columns are ``decoder.schema(columns)`` (Arrow) or
  ``decoder.fields`` (names and Spark's types: replace the columns of these names, append the others);
- driver, ``reader(schema)``: ``make(options, value_type=arrow type of schema["value"])``, so that a schema that was
  inferred, or given by the user, is the one that counts, and nothing is inferred twice;
- task: ``batches = decode(chunks, wanted, decoder.needed(columns))``, then
  ``yield from decoder.rows(batches, columns, settings)``.

A decoder can be pickled. What it needs to work (parsers, connections) is made where it is used. Its own modules are
imported when somebody asks for them: most queries leave values as they are.
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
