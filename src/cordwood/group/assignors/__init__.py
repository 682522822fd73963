"""Who reads which partition, decided by the broker (KIP-848): the assignors that a member can ask for by name."""

from .ranges import RangeAssignor
from .spec import Assignment, Assignor, GroupSpec, MemberSpec
from .uniform import UniformAssignor

__all__ = ["ASSIGNORS", "Assignment", "Assignor", "GroupSpec", "MemberSpec", "RangeAssignor", "UniformAssignor"]

# Nobody changes it. The first one is what a group gets that did not ask.
ASSIGNORS: dict[str, Assignor] = {assignor.name: assignor for assignor in (UniformAssignor(), RangeAssignor())}
