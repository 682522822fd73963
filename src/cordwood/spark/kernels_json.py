"""A compiled loop over JSON records, for a check that Arrow's reader does not offer."""

from .machine import Bytes, Kernel, SmallInts

_QUOTE = 0x22
_BACKSLASH = 0x5C
_COMMA = 0x2C
_OPENING = (0x5B, 0x7B)
_CLOSING = (0x5D, 0x7D)
_DEPTH_MAX = 500


@Kernel
def not_one_value(data: Bytes, ends: SmallInts, count: int) -> int:
    """The number of the first record that has a comma or a closing bracket outside of its value, or is nested deeper
    than Python reads; -1 if there is none.

    Any other record is a single value, if it is valid JSON wherever a value is allowed. *ends* has one entry more than
    there are records.
    """
    for number in range(count):
        depth, in_text, escaped = 0, False, False
        for at in range(ends[number], ends[number + 1]):
            byte = data[at]
            if in_text:
                if escaped:
                    escaped = False
                elif byte == _BACKSLASH:
                    escaped = True
                elif byte == _QUOTE:
                    in_text = False
            elif byte == _QUOTE:
                in_text = True
            elif byte in _OPENING:
                depth += 1
                if depth > _DEPTH_MAX:
                    return number
            elif byte in _CLOSING:
                depth -= 1
                if depth < 0:
                    return number
            elif byte == _COMMA and depth == 0:
                return number
    return -1
