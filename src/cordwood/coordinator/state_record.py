"""A change of a state machine's state, as it is written."""

from typing import NamedTuple


class StateRecord(NamedTuple):
    """What it is about, and how that is from now on. No value: it is no more."""

    key: object
    value: object | None
