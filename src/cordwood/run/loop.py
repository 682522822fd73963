"""Which event loop the broker runs on: uvloop where there is one."""

import asyncio

try:
    from uvloop import new_event_loop
except ImportError:  # no uvloop on this platform
    new_event_loop = asyncio.new_event_loop

__all__ = ["new_event_loop"]
