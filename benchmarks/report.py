"""What a run leaves behind: a table to read, and a JSON file to compare with later runs."""

import datetime
import json
import os
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

import psutil

from cordwood.broker import dispatch

from . import peer
from .growth import FLAT_BOUND, OPERATIONS, GrowthPoint, flatness
from .metrics import GB, Figure

PACKAGES: Final = ("cordwood", "uvloop", "crc32c", "cramjam", "confluent-kafka", "pyspark", "pyarrow", "numba")


@dataclass(frozen=True, slots=True)
class Report:
    quick: bool
    rounds: int
    figures: Sequence[Figure]
    growth: Sequence[GrowthPoint]


def table(report: Report) -> str:
    """The figures as text: ours, Kafka's, the ratio, the target, whether it is met."""
    head = ("row", "figure", "unit", "cordwood", f"kafka {peer.KAFKA_VERSION}", "ratio", "target", "")
    lines = [_cells(figure) for figure in report.figures]
    text = _aligned([head, *lines])
    wanted = [figure for figure in report.figures if figure.metric.has_target]
    met = sum(figure.met for figure in wanted)
    text += f"\n{met} of {len(wanted)} targets met; medians of {report.rounds} rounds; the {_build()} build.\n"
    if report.growth:
        text += "\n" + _growth_table(list(report.growth))
    return text


def line(figure: Figure) -> str:
    """One figure, as soon as it is known."""
    row, title, unit, ours, kafka, ratio, target, verdict = _cells(figure)
    return f"{row}: {title} {ours} by {kafka} {unit} = {ratio} (target {target}) {verdict}"


def save(report: Report, path: Path) -> None:
    path.write_text(json.dumps(as_json(report), indent=1, ensure_ascii=False) + "\n")


def as_json(report: Report) -> dict[str, object]:
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "build": _build(),
        "quick": report.quick,
        "rounds": report.rounds,
        "machine": _machine(),
        "versions": _versions(),
        "figures": [_figure_json(figure) for figure in report.figures],
        "growth": [{"log_bytes": point.log_bytes, "cpu_us_per_request": point.cpu_us} for point in report.growth],
    }


def _cells(figure: Figure) -> tuple[str, ...]:
    metric = figure.metric
    ours = _number(figure.ours_median)
    kafka, ratio = ("–", "–") if figure.alone else (_number(figure.kafka_median), f"{figure.ratio:.2f}×")
    verdict = "" if not metric.has_target else "ok" if figure.met else "MISSED"
    return (figure.row, metric.title, metric.unit, ours, kafka, ratio, metric.target, verdict)


def _growth_table(points: list[GrowthPoint]) -> str:
    head = ("broker CPU, µs a request", *OPERATIONS)
    lines = [
        (f"log of {point.log_bytes / 1e6:,.0f} MB", *(f"{point.cpu_us[name]:.0f}" for name in OPERATIONS))
        for point in points
    ]
    last = ("longest by shortest", *(f"{flatness(points, name):.2f}×" for name in OPERATIONS))
    return _aligned([head, *lines, last]) + f"\nFlat means at most {FLAT_BOUND:g}×.\n"


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _number(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.3f}"


def _figure_json(figure: Figure) -> dict[str, object]:
    return {
        "row": figure.row,
        "figure": figure.metric.title,
        "unit": figure.metric.unit,
        "cordwood": figure.ours_median,
        "kafka": None if figure.alone else figure.kafka_median,
        "ratio": None if figure.alone else figure.ratio,
        "target": figure.metric.target,
        "met": figure.met if figure.metric.has_target else None,
        "cordwood_rounds": list(figure.ours),
        "kafka_rounds": list(figure.kafka),
    }


def _machine() -> dict[str, object]:
    """What affects speed, and nothing that identifies the machine."""
    return {
        "system": f"{platform.system()} {platform.release()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / GB, 1),
        "load_average": os.getloadavg(),
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    names = [line.split(":", 1)[1].strip() for line in _lines(info) if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def _versions() -> dict[str, str]:
    python = f"{platform.python_version()}, built {platform.python_build()[1]} with {platform.python_compiler()}"
    versions = {"python": python, "kafka": peer.KAFKA_VERSION, "java": peer.java_version()}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    return versions


def _build() -> str:
    """Compiled, as released, or pure, from the sources."""
    return "compiled" if (dispatch.__file__ or "").endswith(tuple(EXTENSION_SUFFIXES)) else "pure"


def _commit() -> str:
    try:
        done = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()
