"""Who reads which partition, decided by the broker (KIP-848): the assignors that a member can ask for by name."""

from .ranges import RangeAssignor
from .spec import Assignment, Assignor, GroupSpec, MemberSpec
from .uniform import UniformAssignor

__all__ = ["ASSIGNORS", "Assignment", "Assignor", "GroupSpec", "MemberSpec", "RangeAssignor", "UniformAssignor"]

# Read-only. The first one is the default, for groups that did not ask for one.
ASSIGNORS: dict[str, Assignor] = {assignor.name: assignor for assignor in (UniformAssignor(), RangeAssignor())}
