"""The keys of deadlines."""

from inspect import getmembers, isclass

from cordwood.group import timers


def test_keys_of_different_kinds_are_never_equal() -> None:
    kinds = [cls for _, cls in getmembers(timers, isclass) if cls.__module__ == timers.__name__]
    keys = [cls(*["same"] * (len(vars(cls)["_fields"]) - 1)) for cls in kinds]
    assert len(set(keys)) == len(kinds) > 5
