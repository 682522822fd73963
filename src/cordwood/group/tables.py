"""The types of the two tables to which each part of the group machine contributes."""

from collections.abc import Callable, Mapping
from typing import Any

from cordwood.coordinator.outcome import Outcome
from cordwood.group.state import GroupState
from cordwood.ports import Instant

Apply = Mapping[type, Callable[[GroupState, Any, Any], None]]
"""By the type of a record's key: how key and value (None: deleted) change the state."""

Expired = Mapping[type, Callable[[GroupState, Any, Instant], Outcome]]
"""By the type of a deadline's key (see ``timers``): what happens when it passes."""
