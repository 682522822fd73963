"""`python -m benchmarks`: measure, print the table, save it as JSON and PNG. `make bench` is this."""

import argparse
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from . import peer, plot, report
from .brokers import StartError
from .processes import Processes, ToolFailedError
from .raw import RawError
from .runner import Run
from .scale import ROW_KEYS


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    signal.signal(signal.SIGTERM, _exit_on_signal)
    try:
        peer.kafka_jars()
        result = _run(options)
    except (peer.PeerMissingError, StartError, ToolFailedError, RawError) as error:
        print(f"\nbenchmarks: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    print("\n" + report.table(result))
    _save(result, options.out)
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Cordwood beside Apache Kafka.")
    parser.add_argument("--rounds", type=int, default=3, help="measured rounds of each row; medians are shown (3)")
    parser.add_argument("--quick", action="store_true", help="less of everything: about 9 minutes, rougher figures")
    parser.add_argument("--only", type=_row_keys, default=None, help=f"some rows alone, of: {','.join(ROW_KEYS)}")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"), help="where JSON and PNG go")
    parser.add_argument("--data", type=Path, default=None, help="where the brokers' temporary data goes")
    return parser.parse_args(arguments)


def _row_keys(text: str) -> list[str]:
    keys = text.split(",")
    unknown = [key for key in keys if key not in ROW_KEYS]
    if unknown:
        raise argparse.ArgumentTypeError(f"no such row: {', '.join(unknown)}")
    return keys


def _exit_on_signal(number: int, frame: FrameType | None) -> None:
    """Leave through every `with`, so that no child process is left behind."""
    raise SystemExit(128 + number)


def _run(options: argparse.Namespace) -> report.Report:
    with (
        tempfile.TemporaryDirectory(prefix="cordwood-bench-", dir=options.data, ignore_cleanup_errors=True) as name,
        Processes(Path(name)) as processes,
    ):
        return Run(processes, Path(name), quick=options.quick, rounds=options.rounds, only=options.only).report()


def _save(result: report.Report, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    name = "quick" if result.quick else "full"
    report.save(result, out / f"{name}.json")
    plot.draw(result, out / f"{name}.png")
    print(f"saved {out / name}.json and .png")


if __name__ == "__main__":
    sys.exit(main())
