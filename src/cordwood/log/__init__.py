"""One partition's log: segments, indexes, leader epochs, producers, retention, recovery, in Kafka's file formats."""

from .log import AppendResult, Log, SyncJob
from .produced import RecordsRefused
from .recovery import open_log
from .times import FoundOffset

__all__ = ["AppendResult", "FoundOffset", "Log", "RecordsRefused", "SyncJob", "open_log"]
