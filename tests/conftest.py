"""Shared by all tests: what helpers assert is explained like what tests assert; and no test is a matter of time."""

import pytest
from hypothesis import HealthCheck, settings

pytest.register_assert_rewrite("attacks.arena", "support")

pytest_plugins = ["support.missing", "support.zookeeper"]

# A machine that stalls for a second is no fault of what is tested.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest comes first, or one worker would still be at it when the others have nothing left."""
    heavy = ["plain_cluster", "spark", "jvm", "spark-pipeline", "wired_cluster"]

    def rank(item: pytest.Item) -> int:
        marker = item.get_closest_marker("xdist_group")
        return heavy.index(marker.args[0]) if marker and marker.args[0] in heavy else len(heavy)

    items.sort(key=rank)
