"""`python -m conformance`: test suites of other projects, each against a new broker. `make conformance` runs this."""

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.brokers import SIDES, StartError
from benchmarks.peer import PeerMissingError
from benchmarks.processes import Processes

from . import franz_go, kafka_python, librdkafka, page
from .suite import FAILED, Outcome, Suite, SuiteError

SUITES: Final = (franz_go.SUITE, kafka_python.SUITE, *librdkafka.SUITES)


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    # Leave through every `with`, so that no child process is left behind.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    surprises = []
    try:
        for suite in SUITES:
            if suite.name in options.only:
                surprises += _run(suite, options.against)
    except (SuiteError, StartError, PeerMissingError) as error:
        print(f"conformance: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    print(f"wrote {page.PAGE.name}; failed without a known reason: {', '.join(surprises) or 'none'}")
    return 1 if surprises else 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m conformance", description="Test suites that others wrote.")
    parser.add_argument("--against", choices=SIDES, default="cordwood", help="the broker to test (cordwood)")
    names = [suite.name for suite in SUITES]
    parser.add_argument("--only", choices=names, nargs="+", default=names, help="some suites alone")
    return parser.parse_args(arguments)


def _run(suite: Suite, side: str) -> list[str]:
    """Save the outcomes, and return the tests that failed unexpectedly."""
    print(f"{suite.name}: fetching and building {suite.package} {suite.version}, unless that was done", flush=True)
    directory = suite.fetch()
    outcomes: list[Outcome] = []
    with (
        tempfile.TemporaryDirectory(prefix="cordwood-conformance-", ignore_cleanup_errors=True) as name,
        Processes(Path(name)) as processes,
    ):
        broker = SIDES[side](processes, Path(name) / "data", suite.settings)
        begin = time.monotonic()
        for outcome in suite.run(directory, broker.bootstrap):
            outcomes.append(outcome)
            minutes, seconds = divmod(int(time.monotonic() - begin), 60)
            line = f"[{suite.name} {len(outcomes):3} {minutes:02d}:{seconds:02d}] {outcome.state} {outcome.test}"
            print(f"{line} {outcome.reason}".rstrip(), flush=True)
        if broker.process.poll() is not None:
            raise StartError(f"{side} ended during {suite.name}:\n{processes.last_words(broker.process)}")
    page.save(side, suite, outcomes)
    page.write(SUITES)
    known = suite.known if side == "cordwood" else {}
    return [outcome.test for outcome in outcomes if outcome.state == FAILED and outcome.test not in known]


if __name__ == "__main__":
    sys.exit(main())
