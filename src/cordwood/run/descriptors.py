"""How many files and sockets this process may have open."""

import resource

_PLENTY = 1 << 20


def descriptors() -> int:
    """The limit on open descriptors that is in force."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _PLENTY if limit == resource.RLIM_INFINITY else min(int(limit), _PLENTY)


def partitions_max() -> int:
    """The most partitions: each has a file open, and clients, readers and everything else need descriptors, too."""
    return descriptors() // 3


def readers_max() -> int:
    """How many files that are only read now and then may stay open."""
    return min(descriptors() // 8, 1024)
