"""docs/conformance.md, made from the results of the last runs against each broker, in results/."""

import datetime
import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks.peer import KAFKA_VERSION

from .suite import FAILED, PASSED, SKIPPED, Outcome, Suite

ROOT: Final = Path(__file__).resolve().parent.parent
RESULTS: Final = ROOT / "conformance" / "results"
PAGE: Final = ROOT / "docs" / "conformance.md"
TITLES: Final = {"cordwood": "cordwood", "kafka": f"Apache Kafka {KAFKA_VERSION}"}
HEAD: Final = f"""# Conformance

Tests that the authors of Kafka clients wrote for their clients and Apache Kafka, run against one `cordwood serve`, and
against one Apache Kafka with the same settings. `make conformance` fetches them, runs them and writes this page;
`make conformance ARGS="--against kafka"` fills the last column. Subtests count as tests; skipped is what skips itself.
In brackets: the day, and the commit.

| suite | version | {" | ".join(TITLES.values())} |
| --- | --- | --- | --- |
"""

# For one suite: the names of its tests by outcome, and when and on which commit it ran.
Result = Mapping[str, Sequence[str]]


def save(side: str, suite: Suite, outcomes: Sequence[Outcome]) -> None:
    """Save the outcomes of a suite, and keep those of the others."""
    git = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    ran = [datetime.datetime.now(datetime.UTC).date().isoformat(), *(git.stdout.split() if side == "cordwood" else ())]
    states = {state: [each.test for each in outcomes if each.state == state] for state in (PASSED, FAILED, SKIPPED)}
    (RESULTS / f"{side}.json").write_text(
        json.dumps({**_load(side), suite.name: {"ran": ran, **states}}, indent=1) + "\n"
    )


def write(suites: Sequence[Suite]) -> None:
    results = {side: _load(side) for side in TITLES}
    text = HEAD
    for suite in suites:
        cells = [_cell(results[side].get(suite.name)) for side in TITLES]
        text += f"| {suite.name} | `{suite.package}` {suite.version} | {' | '.join(cells)} |\n"
    text += "\n## What fails\n\n" + ("".join(_failures(suites, results)) or "Nothing.\n")
    text += "\n## What is left out\n\n"
    text += "".join(f"- {suite.name}: {what}: {why}.\n" for suite in suites for what, why in suite.left_out.items())
    PAGE.write_text(text)


def _cell(result: Result | None) -> str:
    if result is None:
        return "–"
    passed, failed, skipped = (len(result[state]) for state in (PASSED, FAILED, SKIPPED))
    return f"{passed + failed} run, {passed} passed, {failed} failed; {skipped} skipped ({', '.join(result['ran'])})"


def _failures(suites: Sequence[Suite], results: Mapping[str, Mapping[str, Result]]) -> Iterator[str]:
    for side, title in TITLES.items():
        for suite in suites:
            for test in results[side].get(suite.name, {}).get(FAILED, ()):
                reason = suite.known.get(test) if side == "cordwood" else None
                yield f"- {title}, {suite.name}: `{test}`{f': {reason}' if reason else ''}.\n"


def _load(side: str) -> Mapping[str, Result]:
    path = RESULTS / f"{side}.json"
    loaded: dict[str, Result] = json.loads(path.read_text()) if path.exists() else {}
    return loaded
