"""Java's properties files, as Kafka's ``server.properties`` is one.

A line is a name, then ``=`` or ``:`` or white space, then a value. ``#`` and ``!`` begin comments, an odd number of
backslashes at a line's end joins it with the next one, and ``\\n``, ``\\t``, ``\\u00e9`` and the like are escapes.
"""

import re
from collections.abc import Iterator

from cordwood.errors import ConfigError

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_SEPARATOR = re.compile(r"((?:[^\\=:\s]|\\.)*)[ \t\f]*(?:[=:][ \t\f]*)?", re.DOTALL)


def parse_properties(text: str) -> dict[str, str]:
    """The names and values of a properties file; a name's last line wins.

    Raises:
        ConfigError: an escape is broken.

    >>> parse_properties("log.dirs = /data \\\\\\n  /more\\n# a comment\\nnode.id:1")
    {'log.dirs': '/data /more', 'node.id': '1'}
    """
    return dict(_pair(line) for line in _logical_lines(text))


def _logical_lines(text: str) -> Iterator[str]:
    """Lines without comments and blanks, continued ones joined."""
    pending = ""
    for line in re.split(r"\r\n|\r|\n", text):
        line = line.lstrip(" \t\f")
        if not pending and (not line or line[0] in "#!"):
            continue
        pending += line
        backslashes = len(pending) - len(pending.rstrip("\\"))
        if backslashes % 2:
            pending = pending[:-1]
            continue
        yield pending
        pending = ""
    if pending:
        yield pending


def _pair(line: str) -> tuple[str, str]:
    match = _SEPARATOR.match(line)
    assert match is not None
    return _unescaped(match[1]), _unescaped(line[match.end() :])


def _unescaped(text: str) -> str:
    return re.sub(r"\\(u[0-9a-fA-F]{4}|.)", _character, text, flags=re.DOTALL)


def _character(escape: re.Match[str]) -> str:
    letter = escape[1]
    if len(letter) == 5:
        return chr(int(letter[1:], 16))
    if letter == "u":
        raise ConfigError(f"broken escape {escape.string[escape.start() : escape.start() + 6]}; it needs four digits")
    return _ESCAPES.get(letter, letter)
