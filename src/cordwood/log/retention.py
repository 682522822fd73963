"""Which of a log's oldest segments may be deleted."""

from collections.abc import Callable, Sequence

from cordwood.config.topic import TopicConfig

from .segment import Segment, count_before


def segments_before_start(segments: Sequence[Segment], *, start_offset: int, high_watermark: int) -> int:
    """How many of the oldest segments lie wholly before the log's start, and do not reach the high watermark."""
    return count_before(segments, min(start_offset, high_watermark))


def segments_to_delete(
    segments: Sequence[Segment],
    config: TopicConfig,
    *,
    start_offset: int,
    end_offset: int,
    high_watermark: int,
    now_ms: int,
) -> int:
    """How many of the oldest segments to delete.

    With any cleanup policy: those that lie wholly before the log's start. With the policy ``delete`` also those without
    which the log still has ``retention.bytes``, and those whose newest record is older than ``retention.ms``. Never one
    that reaches the high watermark, and never an empty last one.
    """
    count = segments_before_start(segments, start_offset=start_offset, high_watermark=high_watermark)

    def delete_while(breached: Callable[[Segment], bool]) -> None:
        nonlocal count
        while count < len(segments):
            is_last = count + 1 == len(segments)
            next_base = end_offset if is_last else segments[count + 1].base_offset
            segment = segments[count]
            if high_watermark < next_base or (is_last and not segment.size) or not breached(segment):
                return
            count += 1

    if "delete" not in config.cleanup_policy:
        return count
    if config.retention_bytes >= 0:
        excess = sum(segment.size for segment in segments[count:]) - config.retention_bytes

        def makes_too_large(segment: Segment) -> bool:
            nonlocal excess
            excess -= segment.size
            return excess >= 0

        delete_while(makes_too_large)
    if config.retention_ms >= 0:
        delete_while(lambda segment: now_ms - segment.largest_timestamp > config.retention_ms)
    return count
