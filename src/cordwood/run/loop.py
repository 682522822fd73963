"""The event loop that the broker runs on: uvloop where it exists."""

import asyncio


def new_event_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:  # not available for this platform
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
