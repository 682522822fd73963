"""Writes the pages of docs/ that are generated from the code: `make docs`."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType

from cordwood.broker.handlers import HANDLERS
from cordwood.broker.handlers.api_versions import served_versions
from cordwood.config.document import configuration_page
from cordwood.spark import option_names_kafka as consumer
from cordwood.spark import option_names_producer as producer
from cordwood.spark.option_names import ANY, SINK, SOURCE, VALUES, Option, Use
from cordwood.spark.option_names_kafka import PREFIXES_WITHOUT_EFFECT
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


_SPARK_HEAD = """\
# Topics in Spark

`format("cordwood")` reads and writes topics of this broker and of Apache Kafka, in batches and in streams. Columns and
options are those of Spark's own Kafka connector wherever it has them. Options' names are not case-sensitive, and an
unknown name is refused and the nearest known one suggested. The README has an example and the rules to mind. This page
is written by `make docs`.
"""

_SPARK_KAFKA = """\
## Settings of Kafka's client

Any setting of the Java consumer (for reading) or producer (for writing) is an option with `kafka.` before its name.
`kafka.bootstrap.servers` is required. Settings for a part of that client which does not exist here are accepted, so
that a job needs no change, but have no effect.
"""

_SPARK_REST = """\
## TLS and passwords

`kafka.security.protocol` is PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL. The mechanisms are PLAIN, SCRAM-SHA-256 and
SCRAM-SHA-512, with user and password in `kafka.sasl.jaas.config`, or in `kafka.sasl.username` and
`kafka.sasl.password`. GSSAPI (Kerberos), OAUTHBEARER and delegation tokens do not work. Key stores and trust stores are
PEM files (`kafka.ssl.truststore.type` is `PEM`, too); `keytool -exportcert -rfc` writes the certificates of a Java key
store into one. `optionsFile` names a JSON file with more options, for what must not stand in a query.

## How far a query is

In the progress of a stream, the lag is `latestOffset` minus `endOffset`, for each partition. (Spark takes no metrics
from sources written in Python, so there is no `avgOffsetsBehindLatest`.) With `option("group", …)` the same is there
for every Kafka tool: the source commits to that group what is done, `cordwood groups describe` shows the lag. For a job
on Spark's own connector a listener does it, and the job needs no change:

```python
from cordwood.spark.listener import OffsetCommitter

spark.streams.addListener(OffsetCommitter("127.0.0.1:9092", "orders-job"))
```

`{query}` in the group's name stands for the query's; `queries=[…]` follows some of them only, `properties={…}` has
settings of Kafka's client, such as those for TLS. What cannot be committed goes to the log; the query goes on.

## Views and tables

```python
import cordwood.spark

cordwood.spark.attach(spark, "127.0.0.1:9092", topics="orders|payments", options={"valueFormat": "json"})
spark.sql("SELECT count(*) FROM orders")  # what is there now, each time

cordwood.spark.table(spark, "orders", as_of="2026-01-31T12:00:00Z")  # what was there before that time
cordwood.spark.table(spark, "orders", as_of={0: 120, 1: 97})  # or up to these offsets
```

A compacted topic is shown as its latest value for each key (`latest=False` gives `table` all records). `as_of` is
a time (a datetime, a date, text as ISO 8601 has it, milliseconds as an int) or offsets by partition, each the first one
that is not there. `help(cordwood.spark.table)` has the rest.

## From the broker's files

Where a task runs on the broker's machine and may read its directory, it reads large ranges from the segment files, past
the broker (`direct`). The leader is asked first, so nothing is read that it would not give. `kafka.client.rack` is for
what goes over the network: it comes from a replica in that rack, if the brokers have a `replica.selector.class`.
"""

_USES = {
    Use.READ: "batches and streams",
    Use.BATCH: "batches",
    Use.STREAM: "streams",
    Use.WRITE: "writing",
    Use.ALL: "reading and writing",
}


def spark_page() -> str:
    return "\n".join(
        [
            _SPARK_HEAD,
            "## Reading\n",
            _options(SOURCE),
            "## Keys and values\n",
            _options(VALUES),
            "## Writing\n",
            _options((*SINK, *ANY)),
            _SPARK_KAFKA,
            _names("Reading", consumer),
            _names("Writing", producer),
            _SPARK_REST,
        ]
    )


def _options(options: Sequence[Option]) -> str:
    rows = (
        f"| `{option.name}` | {_USES[option.use]} | {option.text.replace('|', r'&#124;')} |\n" for option in options
    )
    return "| option | for | |\n| --- | --- | --- |\n" + "".join(rows)


def _names(title: str, names: ModuleType) -> str:
    refused = (f"  - `{name}`: {reason}\n" for name, reason in sorted(names.FORBIDDEN.items()))
    return (
        f"**{title}**\n\n- with effect: {_listed(names.EFFECTIVE)}\n"
        f"- without: {_listed(names.WITHOUT_EFFECT)}, and all that begin with {_listed(PREFIXES_WITHOUT_EFFECT)}\n"
        f"- refused:\n{''.join(refused)}"
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


PAGES = {"configuration.md": configuration_page, "protocol.md": protocol_page, "spark.md": spark_page}


if __name__ == "__main__":
    for name, page in PAGES.items():
        (DOCS / name).write_text(page())
