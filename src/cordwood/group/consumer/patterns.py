"""Subscriptions by regular expression: the broker finds the topics, and looks again when there are new ones.

A new pattern is resolved at once, in the heartbeat that brings it. Kafka resolves it in the background, so the member
learns of its topics one heartbeat later.
"""

from cordwood.cluster.image import MetadataImage
from cordwood.errors import Error, Refused
from cordwood.group.patterns import compile_pattern

from .draft import Draft
from .group import ConsumerGroup
from .records import no_pattern_record, pattern_record

REFRESH_INTERVAL_MIN_MS = 1000
"""Looking at all topics takes a while, and topics may be created one after another."""

PATTERNS_MAX = 100
"""Different patterns in one group. Most groups have one, or two while it is being changed."""

REFRESHED_AT_ONCE = 3
"""How many patterns are resolved in one heartbeat: one made for the purpose may take 0.1 s for 1,000 topics."""


def change_pattern(draft: Draft, old: str, new: str, image: MetadataImage, now_ms: int) -> None:
    """A member that *draft* describes uses another pattern than before. Raises ``Refused`` if that is not valid."""
    forget_unused(draft, old)
    if new and new not in draft.group.patterns:
        if len(draft.group.subscriptions.patterns) > PATTERNS_MAX:
            raise Refused(Error.INVALID_REGULAR_EXPRESSION, f"The group has {PATTERNS_MAX} patterns, the most it may.")
        _resolve(draft, new, image, now_ms)


def forget_unused(draft: Draft, pattern: str) -> None:
    """If no member uses a pattern any more, there is no need to know what it matches."""
    if pattern and pattern not in draft.group.subscriptions.patterns:
        draft.write(no_pattern_record(draft.group.id, pattern))


def is_refresh_due(group: ConsumerGroup, interval_ms: int, now_ms: int) -> bool:
    if not group.subscriptions.patterns:
        return False
    if group.patterns_to_refresh:
        return True
    age_ms = now_ms - group.patterns_timestamp
    is_future = age_ms < 0  # the clock went back, and who knows how far
    return is_future or age_ms > interval_ms or (group.new_topics and age_ms > REFRESH_INTERVAL_MIN_MS)


def refresh(draft: Draft, image: MetadataImage, now_ms: int) -> bool:
    """Look for the topics of patterns, a few at each heartbeat until all are done. Do any match others than before?"""
    before = dict(draft.group.patterns)
    for text in draft.next_patterns(REFRESHED_AT_ONCE):
        if text not in draft.group.subscriptions.patterns:
            continue
        try:
            _resolve(draft, text, image, now_ms)
        except Refused:  # another broker may have accepted a pattern that is too costly here
            _keep(draft, text, now_ms)
    return any(
        before.get(text) is None or before[text].topics != now.topics for text, now in draft.group.patterns.items()
    )


def _resolve(draft: Draft, text: str, image: MetadataImage, now_ms: int) -> None:
    topics = compile_pattern(text).resolve(image.topics)
    draft.write(pattern_record(draft.group.id, text, topics, now_ms))


def _keep(draft: Draft, text: str, now_ms: int) -> None:
    """A pattern matches what it did, and need not be looked at again soon."""
    known = draft.group.patterns.get(text)
    draft.write(pattern_record(draft.group.id, text, () if known is None else known.topics, now_ms))
