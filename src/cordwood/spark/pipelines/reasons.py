"""Spark's errors, from pages of text to the sentence that matters. Pure."""

import re
from typing import Final

LENGTH_MAX: Final = 600

_JVM = re.compile(r"\n\s*JVM stacktrace:|\n\s+at [\w$.]+\(|=== Streaming Query ===")
_OURS = re.compile(r"^(?:cordwood[\w.]*)\.(?:\w+): (.+)$", re.MULTILINE)
_PYTHON = re.compile(r"^(?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception|Interrupt|Exit): (.+)$", re.MULTILINE)
_FLOW_FAILURE = re.compile(
    r"(?:Failed to resolve flow:|Flow) '?([^\s']+?)'?(?:\.\n| has FAILED.*?\n)Error: (.*)", re.DOTALL
)
_ADVICE = re.compile(
    r"\s*(?:Verify the spelling|Search path:|If you did not qualify|To tolerate the error).*?(?=; line|$)", re.DOTALL
)
_PLAN = re.compile(r";\n.*", re.DOTALL)
_STATE = re.compile(r"\s*SQLSTATE: \w+")


def reason(text: str) -> str:
    """What went wrong, as briefly as possible: our own sentence if there is one, else a Python error's, else the
    beginning of Spark's.

    >>> reason("[STREAM_FAILED] Query ended: Trace\\n  File x\\ncordwood.errors.ConfigError: there is no topic a\\n")
    'there is no topic a'
    >>> reason("[TABLE_OR_VIEW_NOT_FOUND] There is no table. SQLSTATE: 42P01; line 2\\n\\nJVM stacktrace:\\nx")
    '[TABLE_OR_VIEW_NOT_FOUND] There is no table.; line 2'
    """
    if ours := _OURS.findall(text):
        return _cut(str(ours[-1]))
    shown = _ADVICE.sub("", _STATE.sub("", _PLAN.sub("", _JVM.split(text, maxsplit=1)[0]))).strip()
    if "Traceback (most recent call last)" in shown and (errors := _PYTHON.findall(shown)):
        return _cut(str(errors[-1]))
    return _cut(" ".join(shown.split()) or "Spark gave no reason")


def flow_failure(message: str) -> tuple[str, str] | None:
    """The flow, and what is wrong with it, if a pipeline's message is about that.

    >>> flow_failure("Failed to resolve flow: 'spark_catalog.default.a'.\\nError: [X] There is no table b. It is gone.")
    ('spark_catalog.default.a', '[X] There is no table b. It is gone.')
    >>> flow_failure("Flow a is RUNNING.")
    """
    found = _FLOW_FAILURE.match(message)
    return (found[1], reason(found[2])) if found is not None else None


def _cut(text: str) -> str:
    plain = _STATE.sub("", text).strip()
    return plain if len(plain) <= LENGTH_MAX else plain[:LENGTH_MAX] + "…"
