"""Apache Kafka and its tools, fetched once through Maven and kept in a cache directory of the project.

Owns the jars and the command line of a JVM; other modules deal with the broker process and the tools' output.
The real-client tests use this module too.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

KAFKA_VERSION: Final = "4.3.1"
ARTIFACTS: Final = ("kafka_2.13", "kafka-tools")
CACHE: Final = Path(__file__).resolve().parent.parent / ".cache"

# What Kafka's own start scripts pass to every JVM.
PERFORMANCE_FLAGS: Final = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15",
    "-Djava.awt.headless=true",
)
# For short commands: a fast start, no second core taken by compiler or collector threads, and no verification of the
# bytecode in Kafka's jars, which takes a sixth of the start.
SHORT_LIVED_FLAGS: Final = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Xshare:auto",
    "-Djava.awt.headless=true",
    "-XX:+IgnoreUnrecognizedVMOptions",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",
)

POM: Final = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>cordwood</groupId>
  <artifactId>peer</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>{dependencies}</dependencies>
</project>
"""
DEPENDENCY: Final = """
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>{artifact}</artifactId>
      <version>{version}</version>
    </dependency>"""


class PeerMissingError(Exception):
    """Java or Maven is not on this machine, or Maven could not bring the jars. The message says what to do."""


def java() -> str:
    """The path of a JDK's `java` that can also compile a single source file."""
    found = shutil.which("java")
    if found is None or shutil.which("javac") is None or not _runs(found):
        raise PeerMissingError(
            "Apache Kafka's tools need a JDK of version 17 or later: install one "
            "(Debian: apt-get install default-jdk-headless maven; macOS: brew install openjdk maven)."
        )
    return found


@cache
def _runs(program: str) -> bool:
    """Whether it runs at all: macOS has a java that only says that there is none."""
    return subprocess.run([program, "-version"], capture_output=True).returncode == 0


def kafka_jars() -> Path:
    """The directory of Kafka's jars; Maven fills it the first time (about 20 s)."""
    jars = CACHE / f"kafka-{KAFKA_VERSION}"
    if not jars.is_dir():
        _download(jars)
    return jars


def classpath() -> str:
    return f"{kafka_jars()}/*"


def java_command(
    main: str,
    arguments: Sequence[str],
    *,
    flags: Sequence[str] = PERFORMANCE_FLAGS,
    heap: Sequence[str] = ("-Xmx512M",),
    classes: Path | None = None,
) -> list[str]:
    """The command line that runs `main`: a class of the jars or of `classes`, or the path of a single `.java` file."""
    path = classpath() if classes is None else f"{classes}{os.pathsep}{classpath()}"
    return [java(), *heap, *flags, "-cp", path, main, *arguments]


def compile_java(sources: Sequence[Path], classes: Path) -> None:
    """Compile files that use Kafka's jars into the directory `classes`: all of them or none."""
    java()
    path = classpath()
    with tempfile.TemporaryDirectory(dir=CACHE) as work:
        command = ["javac", "-d", f"{work}/classes", "-cp", path, *map(str, sources)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        _move(Path(work) / "classes", classes)


def java_version() -> str:
    done = subprocess.run([java(), "-version"], capture_output=True, text=True, check=True)
    return done.stderr.splitlines()[0]


def _download(jars: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise PeerMissingError(
            "Apache Kafka comes through Maven: install it (Debian: apt-get install maven; macOS: brew install maven)."
        )
    CACHE.mkdir(exist_ok=True)
    # Filled under another name, then renamed: nobody uses an incomplete copy, and two runs do not fill the same one.
    with tempfile.TemporaryDirectory(dir=CACHE) as work:
        directory = Path(work)
        (directory / "pom.xml").write_text(_pom())
        done = subprocess.run(
            [
                maven,
                "-q",
                "-B",
                "-ntp",
                "dependency:copy-dependencies",
                "-DincludeScope=runtime",
                "-DoutputDirectory=jars",
            ],
            cwd=directory,
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            raise PeerMissingError(f"Maven could not fetch Apache Kafka {KAFKA_VERSION}:\n{done.stdout[-2000:]}")
        _move(directory / "jars", jars)


def _move(made: Path, wanted: Path) -> None:
    """Give a finished directory its name, unless another run was first."""
    try:
        made.rename(wanted)
    except OSError:
        assert wanted.is_dir()


def _pom() -> str:
    return POM.format(
        dependencies="".join(DEPENDENCY.format(artifact=artifact, version=KAFKA_VERSION) for artifact in ARTIFACTS)
    )
