"""Topics as views and tables of SQL.

A view has to show new records each time it is queried, but Spark plans a DataFrame of a Python source once and keeps
the plan. What it plans anew for each query is the text of a view. So a view's text reads a table of the catalog, which
has the source's columns and no records of its own, with the options of the topic. Those tables are in a database of
their own, in a temporary directory. The database may outlive the directory, because a Hive catalog remembers it. The
options are part of the text, which every user of the session can read; so those that may be secret are in a file that
only this user can read.
"""

import re
import tempfile
import warnings
import zlib
from collections.abc import Mapping, Sequence
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from cordwood.client.raw import RawClient, RawError
from cordwood.errors import ConfigError

from .as_of import AsOf, limits
from .option_file import hidden
from .sink_options import PREFIX, raw_settings
from .source import CordwoodSource
from .subscription import INTERNAL
from .values import OPTIONS, NoTypesYet, ValueSettings

BOOTSTRAP_KEY: Final = "spark.cordwood.bootstrap"
DATABASE: Final = "cordwood_topics"
_SERVERS: Final = PREFIX + "bootstrap.servers"
_ZONE: Final = "spark.sql.session.timeZone"
_CLEANUP: Final = "cleanup.policy"
_STRATEGIES: Final = ("subscribe", "subscribePattern", "assign")
_VALUE_OPTIONS: Final = frozenset(name.lower() for name in OPTIONS)
_ENDINGS: Final = ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp")


def attach(
    spark: SparkSession,
    bootstrap: str,
    *,
    prefix: str | None = None,
    topics: str | None = None,
    options: Mapping[str, str] | None = None,
) -> list[str]:
    """Make each topic a temporary view, which shows the topic's current records whenever it is queried.

    A compacted topic is shown as its latest value for each key. A name that is not a plain word goes between backticks
    in SQL. Existing views are replaced.

    A topic whose types cannot be known yet (``valueFormat`` is json, and it has no JSON record to infer them from; or
    the registry has no schema for it) is shown with its keys and values as bytes, and a warning names it: attach again
    when it has some. So is the dead-letter topic, without a warning.

    Args:
        bootstrap: the cluster's address, such as 127.0.0.1:9092. ``table`` will use it too.
        prefix: what to put before the topics' names.
        topics: a regular expression that the whole of a topic's name must match; without it, all but internal ones.
        options: of the source, such as ``valueFormat``.

    Returns:
        The names of the views.

    Raises:
        ConfigError: the options are wrong, or say which topics to read.
        RawError: the cluster does not answer.
    """
    _refuse(options or {}, _STRATEGIES, 'attach reads every topic; choose some with topics="a regular expression"')
    given = {_SERVERS: bootstrap, **(options or {})}
    with RawClient(raw_settings(given)) as client:
        wanted = _wanted(client, topics)
        compacted = _compacted(client, wanted)
    views = _names(wanted, prefix or "")
    base = _Base(spark, given)
    for topic, view in views.items():
        query, has_errors = base.query(topic)
        if topic in compacted:
            query = latest_query(f"({query})", has_errors=has_errors)
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {quoted(view)} AS {query}")
    spark.conf.set(BOOTSTRAP_KEY, bootstrap)  # not earlier: a failed call must not get in the way of ``table``
    return list(views.values())


def table(
    spark: SparkSession,
    topic: str,
    *,
    as_of: AsOf | None = None,
    latest: bool | None = None,
    bootstrap: str | None = None,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """A topic as a table: all of its records, or its latest value for each key.

    The table has the records that existed when it was first used; call again to see later ones.

    Args:
        as_of: as the topic was at these offsets ({0: 120, 1: 97}: partitions that are not named are left out), or
            before the first record of this time or later: a datetime, a date, text such as 2026-01-31T12:00:00Z, or
            milliseconds since 1970 as an int. Text without a zone, and a date, are in the session's zone; a datetime
            without one is in this machine's. None: as it is now.
        latest: only the last record of each key, without those whose last value is null. None: if the topic is
            compacted.
        bootstrap: the cluster's address; without it, the one that ``attach`` was called with.
        options: of the source.

    Raises:
        ConfigError: there is no address, or *as_of* cannot be used.
        RawError: the cluster does not answer.
    """
    taken = _STRATEGIES if as_of is None else (*_STRATEGIES, *_ENDINGS)
    _refuse(options or {}, taken, "table reads one topic, up to as_of")
    given = {_SERVERS: bootstrap or _attached(spark), **(options or {})}
    read = limits(topic, as_of, spark.conf.get(_ZONE, None) or "UTC")
    if latest is None:
        with RawClient(raw_settings(given)) as client:
            latest = topic in _compacted(client, [topic])
    frame = spark.read.format("cordwood").options(**given, **read).load()
    if not latest:
        return frame
    return spark.sql(latest_query("{source}", has_errors="_error" in frame.columns), source=frame)


def latest_query(source: str, *, has_errors: bool = False) -> str:
    """The last record of each key. Within a partition that is the one with the highest offset; if a key is in several
    partitions, because their number was changed, it is the most recent of these."""
    kept = "record.value IS NOT NULL OR record._error IS NOT NULL" if has_errors else "record.value IS NOT NULL"
    by_partition = (
        f"SELECT key, max_by(struct(*), offset) AS record FROM {source} WHERE key IS NOT NULL GROUP BY key, partition"
    )
    by_key = (
        f"SELECT max_by(record, struct(record.timestamp, record.offset)) AS record FROM ({by_partition}) GROUP BY key"
    )
    return f"SELECT record.* FROM ({by_key}) WHERE {kept}"


def quoted(name: str) -> str:
    """A name as SQL takes any name.

    >>> quoted("a.b")
    '`a.b`'
    """
    return "`" + name.replace("`", "``") + "`"


def _refuse(options: Mapping[str, str], taken: Sequence[str], reason: str) -> None:
    """
    Raises:
        ConfigError: one of these options was given.
    """
    for name in options:
        if name.lower() in {option.lower() for option in taken}:
            raise ConfigError(f"option {name} cannot be given here: {reason}")


def _wanted(client: RawClient, pattern: str | None) -> list[str]:
    try:
        matches = re.compile(pattern or ".*").fullmatch
    except re.error as reason:
        raise ConfigError(f"topics is {pattern!r}, which is not a regular expression: {reason}") from None
    return sorted(name for name in client.topics() if name not in INTERNAL and matches(name))


def _compacted(client: RawClient, topics: Sequence[str]) -> set[str]:
    """Those of the topics that are compacted; none if we are not allowed to know."""
    if not topics:
        return set()
    try:
        found = client.topic_settings(topics, [_CLEANUP])
    except RawError as reason:
        warnings.warn(f"whether topics are compacted cannot be seen: {reason}", stacklevel=3)
        return set()
    return {topic for topic, settings in found.items() if "compact" in settings.get(_CLEANUP, "").split(",")}


def _names(topics: Sequence[str], prefix: str) -> dict[str, str]:
    """A view's name for each topic. Spark does not distinguish upper and lower case: the first of such twins gets
    it."""
    found: dict[str, str] = {}
    taken: dict[str, str] = {}
    for topic in topics:
        view = prefix + topic
        if view.lower() in taken:
            warnings.warn(f"no view for topic {topic}: {taken[view.lower()]} has the same name", stacklevel=3)
            continue
        taken[view.lower()] = found[topic] = view
    return found


def _attached(spark: SparkSession) -> str:
    found = spark.conf.get(BOOTSTRAP_KEY, None)
    if not found:
        raise ConfigError('where is the topic? Give bootstrap="host:port", or call cordwood.spark.attach first')
    return found


class _Base:
    """The tables that views read, one for each schema."""

    def __init__(self, spark: SparkSession, options: Mapping[str, str]) -> None:
        self._spark = spark
        settings = ValueSettings.of(options)
        self._is_typed = settings.can_fail
        self._dead_letters = settings.dead_letter_topic
        self._tables: set[str] = set()
        if not spark.catalog.databaseExists(DATABASE):
            place = tempfile.mkdtemp(prefix="cordwood-topics-")
            spark.sql(f"CREATE DATABASE IF NOT EXISTS {DATABASE} LOCATION {_text(place)}")
        self._options = hidden(options)

    def query(self, topic: str) -> tuple[str, bool]:
        """All records of a topic; and whether some of them may have a reason in place of their values."""
        if self._is_typed and topic != self._dead_letters:
            try:
                return self._select({**self._options, "subscribe": topic})
            except NoTypesYet as reason:
                warnings.warn(f"topic {topic} is shown as bytes, for now: {reason}", stacklevel=3)
        plain = {name: value for name, value in self._options.items() if name.lower() not in _VALUE_OPTIONS}
        return self._select({**plain, "subscribe": topic})

    def _select(self, options: Mapping[str, str]) -> tuple[str, bool]:
        schema = CordwoodSource(dict(options)).schema()
        given = ", ".join(f"{_text(name)} = {_text(value)}" for name, value in options.items())
        return f"SELECT * FROM {self._table(schema)} WITH ({given})", "_error" in schema.names

    def _table(self, schema: StructType) -> str:
        columns = ", ".join(f"{quoted(field.name)} {_type(field.dataType)}" for field in schema.fields)
        name = f"{DATABASE}.source_{zlib.crc32(columns.encode()):08x}"
        if name not in self._tables:
            self._spark.sql(f"CREATE TABLE IF NOT EXISTS {name} ({columns}) USING cordwood")
            self._tables.add(name)
        return name


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _type(kind: DataType) -> str:
    """A type with every name in it quoted, as Spark's own text of it does not have them."""
    if isinstance(kind, StructType):
        return f"STRUCT<{', '.join(f'{quoted(field.name)}: {_type(field.dataType)}' for field in kind.fields)}>"
    if isinstance(kind, ArrayType):
        return f"ARRAY<{_type(kind.elementType)}>"
    if isinstance(kind, MapType):
        return f"MAP<{_type(kind.keyType)}, {_type(kind.valueType)}>"
    return kind.simpleString()
