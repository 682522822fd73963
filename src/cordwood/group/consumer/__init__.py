"""The consumer group protocol (KIP-848): the broker assigns, members follow step by step, and nobody has to stop.

``group``, ``member``, ``owners`` and ``subscriptions`` hold the state, ``apply`` and ``records`` its stored form.
``heartbeat`` is the one request that members send; its steps are in ``joining``, ``steps``, ``target`` (what each
member should have), ``reconcile`` (how it gets there) and ``patterns``. ``leaving`` has the ways out. Groups that
change their protocol are in ``migration``, members that have not changed theirs yet in ``classic_joining`` and
``classic_members``.
"""

from .apply import APPLY
from .classic_joining import classic_join
from .classic_members import classic_heartbeat, classic_leave, classic_sync
from .describing import describe
from .group import ConsumerGroup
from .heartbeat import goodbye, heartbeat
from .leaving import EXPIRED
from .loading import loaded, topics_changed

__all__ = [
    "APPLY",
    "EXPIRED",
    "ConsumerGroup",
    "classic_heartbeat",
    "classic_join",
    "classic_leave",
    "classic_sync",
    "describe",
    "goodbye",
    "heartbeat",
    "loaded",
    "topics_changed",
]
