"""The chart of a run: every figure's ratio to Kafka beside its target, and the cost of requests as a log grows."""

from collections.abc import Sequence
from math import isinf
from pathlib import Path
from typing import Final

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot
from matplotlib.axes import Axes

from . import peer
from .growth import OPERATIONS, GrowthPoint
from .metrics import Figure
from .report import Report

MET: Final = "#2f7d4f"
MISSED: Final = "#b5462f"
GOOD_TO_KNOW: Final = "#9a9a9a"
RATIO_MIN: Final = 0.01
RATIO_MAX: Final = 10.0


def draw(report: Report, path: Path) -> None:
    """Draw the report as a PNG."""
    height = 1.5 + 0.33 * len(report.figures) + (4 if report.growth else 0)
    panels = [len(report.figures) * 0.33 + 1] * bool(report.figures) + [4] * bool(report.growth)
    if not panels:
        return
    figure, axes = pyplot.subplots(
        len(panels), 1, figsize=(11, height), squeeze=False, height_ratios=panels, layout="constrained"
    )
    if report.figures:
        _draw_ratios(axes[0, 0], report.figures)
    if report.growth:
        _draw_growth(axes[-1, 0], report.growth)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


def _draw_ratios(axes: Axes, figures: Sequence[Figure]) -> None:
    names = [f"{figure.row}: {figure.metric.title}" for figure in figures]
    ratios = [min(max(figure.ratio, RATIO_MIN), RATIO_MAX) for figure in figures]
    places = range(len(figures))
    axes.barh(places, ratios, color=[_color(figure) for figure in figures], height=0.65)
    for place, figure in zip(places, figures, strict=True):
        if not isinf(figure.bound_ratio):
            axes.plot([figure.bound_ratio] * 2, [place - 0.4, place + 0.4], color="black", linewidth=2)
        unit = figure.metric.unit if figure.alone else "×"
        axes.text(RATIO_MAX * 0.95, place, f"{figure.ratio:.2f}{unit}", va="center", ha="right", fontsize=8)
    axes.axvline(1.0, color="grey", linewidth=0.8, linestyle="--")
    axes.set_xscale("log")
    axes.set_xlim(RATIO_MIN, RATIO_MAX)
    axes.set_yticks(list(places), names, fontsize=8)
    axes.set_ylim(len(figures) - 0.4, -0.6)
    axes.set_xlabel("Cordwood by Kafka (log scale); black mark: target, green met, red missed, grey has none")
    axes.set_title(f"Cordwood beside Apache Kafka {peer.KAFKA_VERSION}")


def _color(figure: Figure) -> str:
    if not figure.metric.has_target:
        return GOOD_TO_KNOW
    return MET if figure.met else MISSED


def _draw_growth(axes: Axes, points: Sequence[GrowthPoint]) -> None:
    sizes = [point.log_bytes / 1e6 for point in points]
    for name in OPERATIONS:
        axes.plot(sizes, [point.cpu_us[name] for point in points], marker="o", label=name)
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("size of the log, MB")
    axes.set_ylabel("broker CPU, µs a request")
    axes.set_title("Cost of a request as the log grows")
    axes.legend()
