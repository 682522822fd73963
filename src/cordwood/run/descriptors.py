"""How many files and sockets this process may have open."""

import resource

_PLENTY = 1 << 20


def descriptors() -> int:
    """The limit in force."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _PLENTY if limit == resource.RLIM_INFINITY else min(int(limit), _PLENTY)


def partitions_max() -> int:
    """Each partition has a file open, and clients, readers and everything else need some, too."""
    return descriptors() // 3


def readers_max() -> int:
    """So many files that are only read now and then stay open."""
    return min(descriptors() // 8, 1024)
