"""A journal as a picture: rows per second, lag and batch time of each stream, over time."""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from cordwood.errors import ConfigError

from .status import Flow


def write_plot(flows: Iterable[Flow], title: str, path: Path) -> None:
    """
    Raises:
        ConfigError: matplotlib is not installed, or the file cannot be written.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ConfigError("there is no plot without matplotlib; run: pip install 'cordwood[plot]'") from None
    figure = Figure(figsize=(10, 8), layout="constrained")
    top, middle, bottom = figure.subplots(3, 1, sharex=True)
    for flow in flows:
        if not flow.is_stream:
            continue
        times = [datetime.fromtimestamp(entry.time_ms / 1000, UTC).astimezone() for entry in flow.batches]
        top.plot(times, [entry.rows_per_s for entry in flow.batches], marker=".", label=flow.name)
        if flow.end:
            middle.plot(times, [entry.lag for entry in flow.batches], marker=".", label=flow.name)
        bottom.plot(times, [entry.took_ms / 1000 for entry in flow.batches], marker=".", label=flow.name)
    for axes, what in ((top, "rows/s"), (middle, "lag (records)"), (bottom, "batch time (s)")):
        axes.set_ylabel(what)
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
    top.set_title(title)
    if top.get_legend_handles_labels()[0]:
        top.legend()
    figure.autofmt_xdate()
    try:
        figure.savefig(path, dpi=100)
    except (OSError, ValueError) as error:
        raise ConfigError(f"the plot cannot be written to {path}: {error}") from None
