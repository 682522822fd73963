"""A change of a state machine's state, as it is written."""

from typing import NamedTuple


class StateRecord(NamedTuple):
    """A key and its new value; None if the key is deleted."""

    key: object
    value: object | None
