"""Which event loop the broker runs on: uvloop where there is one."""

import asyncio


def new_event_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:  # there is none for this platform
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
