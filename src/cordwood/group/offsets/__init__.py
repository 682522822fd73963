"""Committing, fetching, deleting and expiring offsets; listing and deleting groups.

- ``commit`` (OffsetCommit 2-10), ``delete`` (OffsetDelete 0): handlers, (state, request, caller, now) -> Outcome
- ``fetch_group`` (OffsetFetch 1-10, one of its groups), ``list_groups`` (ListGroups, one shard's share): they only read
- ``delete_group`` (DeleteGroups, one of its groups): the records to write
- ``topics_deleted``: the metadata has changed
"""

from .apply import APPLY
from .commit import commit, refused_commit
from .delete import delete, delete_group
from .expiry import EXPIRED as _EXPIRY
from .expiry import loaded
from .fetch import fetch_group
from .listing import list_groups
from .topics import EXPIRED as _TOPICS
from .topics import topics_deleted

EXPIRED = {**_EXPIRY, **_TOPICS}

__all__ = [
    "APPLY",
    "EXPIRED",
    "commit",
    "delete",
    "delete_group",
    "fetch_group",
    "list_groups",
    "loaded",
    "refused_commit",
    "topics_deleted",
]
