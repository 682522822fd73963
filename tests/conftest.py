"""Shared by all tests: what helpers assert is explained like what tests assert."""

import pytest

pytest.register_assert_rewrite("attacks.arena", "support")

pytest_plugins = ["support.zookeeper"]
