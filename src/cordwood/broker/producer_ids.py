"""Ids for idempotent producers: taken from the cluster in blocks, handed out one by one, never twice."""

from collections import deque
from collections.abc import Callable

from cordwood.cluster.layout import PRODUCER_ID_BLOCK_SIZE
from cordwood.errors import Refused

Receiver = Callable[[int | Refused], None]


class ProducerIds:
    """What is left of this broker's block, and who is waiting for the next."""

    def __init__(self) -> None:
        self._left: deque[int] = deque()
        self._waiting: deque[Receiver] = deque()
        self.asking = False
        """Has a new block been asked for?"""

    def take(self, receiver: Receiver) -> bool:
        """Hand out an id now, or put the receiver in the queue; False means that a block must be asked for."""
        if self._left and not self._waiting:
            receiver(self._left.popleft())
            return True
        self._waiting.append(receiver)
        return False

    def granted(self, first: int) -> None:
        self.asking = False
        self._left.extend(range(first, first + PRODUCER_ID_BLOCK_SIZE))
        while self._waiting and self._left:
            self._waiting.popleft()(self._left.popleft())

    def refused(self, refusal: Refused) -> None:
        self.asking = False
        waiting, self._waiting = self._waiting, deque()
        for receiver in waiting:
            receiver(refusal)

    @property
    def wanted(self) -> bool:
        return bool(self._waiting)
