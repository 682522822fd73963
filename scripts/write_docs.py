"""Writes the pages of docs/ that come from the code: `make docs`."""

import sys
from pathlib import Path

from cordwood.broker.handlers import HANDLERS
from cordwood.broker.handlers.api_versions import served_versions
from cordwood.config.document import configuration_page
from cordwood.wire.registry import APIS, Api

DOCS = Path(__file__).parent.parent / "docs"

_HEAD = """\
# Protocol

The APIs of Apache Kafka 4.3 that face a client, with the versions that are served here. What is not served yet is
declared all the same (`src/cordwood/wire/messages/`), so that its bytes are tested from the first day. This page is
written by `make docs`.

| key | API | versions | |
| ---: | --- | --- | --- |
"""


def protocol_page() -> str:
    return _HEAD + "".join(_row(api) for _, api in sorted(APIS.items()))


def _row(api: Api) -> str:
    served = served_versions(api.key)
    first, last = served.start, served.stop - 1
    versions = str(first) if first == last else f"{first}-{last}"
    return f"| {api.key} | {api.name} | {versions} | {_purpose(api)} |\n"


def _purpose(api: Api) -> str:
    """What the first line of its handler says, after name, key and versions."""
    if api.key not in HANDLERS:
        return "not yet"
    line = (sys.modules[HANDLERS[api.key].__module__].__doc__ or "").partition("\n")[0]
    purpose = line.partition(": ")[2]
    return purpose[:1].upper() + purpose[1:]


PAGES = {"configuration.md": configuration_page, "protocol.md": protocol_page}


if __name__ == "__main__":
    for name, page in PAGES.items():
        (DOCS / name).write_text(page())
