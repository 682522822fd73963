"""A pipeline's directory: the specification, and where everything else is.

::

    DIR/spark-pipeline.yml    the specification, in Spark's form
    DIR/transformations/      SQL and Python files, if the specification says so
    DIR/tables/               the tables, as Parquet
    DIR/state/                the streams' checkpoints, if the specification says so
    DIR/.cordwood/            journal, log, lock, and the catalog of the tables

Only one process at a time runs a pipeline: the one that holds the lock.
"""

import fcntl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cordwood.client.raw_settings import RawSettings
from cordwood.errors import ConfigError
from cordwood.spark.option_names_kafka import check_kafka_name

SPEC_NAMES: Final = ("spark-pipeline.yml", "spark-pipeline.yaml")
BOOTSTRAP_KEY: Final = "spark.cordwood.bootstrap"
GROUP_KEY: Final = "spark.cordwood.group"
KAFKA_PREFIX: Final = "spark.cordwood.kafka."
"""Goes before the names of Kafka's settings, for a cluster that requires TLS or a password."""


@dataclass(frozen=True, slots=True)
class Project:
    """A directory with a specification in it."""

    root: Path
    spec: Path
    name: str
    configuration: Mapping[str, str]

    @classmethod
    def open(cls, directory: str) -> "Project":
        """
        Raises:
            ConfigError: it is not a pipeline's directory, or the specification cannot be read.
        """
        root = Path(directory).absolute()
        found = [root / name for name in SPEC_NAMES if (root / name).is_file()]
        if not found:
            what = f"has no {SPEC_NAMES[0]}" if root.is_dir() else "is not a directory"
            raise ConfigError(f"{directory} {what}; `cordwood pipeline init {directory}` makes one with an example")
        if len(found) > 1:
            raise ConfigError(f"{directory} has {' and '.join(SPEC_NAMES)}; keep one of them")
        content = _content(found[0])
        return cls(root, found[0], str(content.get("name", root.name)), _configuration(found[0], content))

    @property
    def bootstrap(self) -> str | None:
        """The cluster's address; None if the specification does not say."""
        return self.configuration.get(BOOTSTRAP_KEY)

    @property
    def group(self) -> str | None:
        """The group that shows the streams' progress; None if the specification names none."""
        return self.configuration.get(GROUP_KEY)

    def settings(self, bootstrap: str | None, *, client_id: str, timeout_ms: int) -> RawSettings | None:
        """How to reach the cluster; None if neither *bootstrap* nor the specification says where it is.

        Raises:
            ConfigError: what the specification says about it cannot be used.
        """
        address = bootstrap or self.bootstrap
        if address is None:
            return None
        self._check_names()
        given = {
            name.removeprefix(KAFKA_PREFIX): value
            for name, value in self.configuration.items()
            if name.startswith(KAFKA_PREFIX)
        }
        ours = {"client.id": client_id, "default.api.timeout.ms": str(timeout_ms)}
        try:
            return RawSettings.of_properties({**ours, **given, "bootstrap.servers": address})
        except ConfigError as error:
            raise ConfigError(f"{self.spec}: {KAFKA_PREFIX}{error}") from None

    def _check_names(self) -> None:
        try:
            for name in self.configuration:
                if name.startswith(KAFKA_PREFIX):
                    check_kafka_name(name.removeprefix(KAFKA_PREFIX), prefix=KAFKA_PREFIX)
        except ConfigError as error:
            raise ConfigError(f"{self.spec}: {error}") from None

    @property
    def tables(self) -> Path:
        return self.root / "tables"

    @property
    def hidden(self) -> Path:
        return self.root / ".cordwood"

    @property
    def journal(self) -> Path:
        return self.hidden / "journal.jsonl"

    @property
    def log(self) -> Path:
        """What Spark, and the pipeline's own files, have printed."""
        return self.hidden / "spark.log"

    @property
    def metastore(self) -> Path:
        return self.hidden / "catalog"

    def fingerprint(self) -> tuple[tuple[str, int, int], ...]:
        """A value that changes when a file of the pipeline is edited."""
        skipped = (self.tables, self.hidden, self.root / "state")
        files = [
            path
            for path in sorted(self.root.rglob("*"))
            if path.suffix in (".py", ".sql", ".yml", ".yaml") and not any(path.is_relative_to(s) for s in skipped)
        ]
        return tuple((str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in files)

    @contextmanager
    def locked(self) -> Iterator[int]:
        """Hold the lock; yields its descriptor, so that another process can hold it too.

        Raises:
            ConfigError: the pipeline is running already.
        """
        self.hidden.mkdir(exist_ok=True)
        with (self.hidden / "lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ConfigError(
                    f"the pipeline in {self.root} is running already; `cordwood pipeline status {self.root}` shows it"
                ) from None
            yield file.fileno()

    def is_running(self) -> bool:
        try:
            with self.locked():
                return False
        except ConfigError:
            return True


def _content(spec: Path) -> Mapping[object, object]:
    try:
        import yaml
    except ImportError:
        raise ConfigError("Spark is not installed (yaml is missing); run: pip install 'cordwood[spark]'") from None
    try:
        content = yaml.safe_load(spec.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{spec} cannot be read: {error}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{spec} is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{spec} has no settings; it needs name, storage and libraries at least")
    return content


def _configuration(spec: Path, content: Mapping[object, object]) -> dict[str, str]:
    found = content.get("configuration") or {}
    if not isinstance(found, dict):
        raise ConfigError(
            f"{spec}: configuration must be names with values, each on a line, such as {BOOTSTRAP_KEY}: …"
        )
    for name, value in found.items():
        if not isinstance(value, str):
            raise ConfigError(f"{spec}: {name} is {value!r}, which is not text; put it in quotes")
    return {str(name): value for name, value in found.items()}
