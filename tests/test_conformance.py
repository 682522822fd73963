"""What the runners of other people's suites print is counted as what it means."""

from pathlib import Path

import pytest
from conformance import franz_go, librdkafka
from conformance.suite import FAILED, PASSED, SKIPPED, Outcome

SUMMARY = """\
============== ALL TESTS PASSED ==============
|\x1b[32m <MAIN>                                   |     PASSED |   0.200s \x1b[0m|
|\x1b[32m 0022_consume_batch                       |     PASSED |   0.057s \x1b[0m|
|\x1b[36m 0022_consume_batch_local                 |    SKIPPED |   0.000s \x1b[0m|\x1b[36m negative test flags\x1b[0m
|\x1b[36m 0022_other                               |    SKIPPED |   0.000s \x1b[0m|\x1b[36m no JSON\x1b[0m
"""
FAILURE = """\
\x1b[0m\x1b[31m### Test "0022_consume_batch" failed at test.c:5261:main() at noon: ###
too few messages
\x1b[36m[<MAIN>                      /  0.000s] TEST FAILURE
\x1b[0m\x1b[31m### Test "<MAIN>" failed at test.c:2286:main() at noon: ###
1 test(s) failed, see previous errors
"""


def _program(path: Path, prints: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{prints}END\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("prints", "outcomes"),
    [
        (SUMMARY, [Outcome("0022_consume_batch", PASSED), Outcome("0022_other", SKIPPED, "no JSON")]),
        (FAILURE, [Outcome("0022_consume_batch", FAILED, "too few messages")]),
        ("no such library\n", [Outcome("0022", FAILED, "it did not come to an end: no such library")]),
    ],
)
def test_librdkafkas_tests_are_told_by_the_table_or_by_the_failure(
    tmp_path: Path, prints: str, outcomes: list[Outcome]
) -> None:
    _program(tmp_path / "tests" / "test-runner", prints)
    suite = librdkafka.suite("librdkafka", "0022", "classic", {})
    assert list(suite.run(tmp_path, "127.0.0.1:9092")) == outcomes


def test_a_go_test_that_does_not_end_has_failed(tmp_path: Path) -> None:
    started = "=== RUN   TestA\n=== RUN   TestA/one\n=== RUN   TestB\n=== RUN   TestC\n"
    _program(
        tmp_path / "kgo.test",
        f"{started}    --- PASS: TestA/one (0.00s)\n--- FAIL: TestA (1.00s)\n--- SKIP: TestB (0.00s)\n",
    )
    assert [(outcome.test, outcome.state) for outcome in franz_go.run(tmp_path, "127.0.0.1:9092")] == [
        ("TestA/one", PASSED),
        ("TestA", FAILED),
        ("TestB", SKIPPED),
        ("TestC", FAILED),
    ]
