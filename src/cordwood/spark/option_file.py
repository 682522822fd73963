"""Options in a file: for what must not be visible in the text of a query, or of a view.

Anybody who can read the file can read the options, so it should belong to the user who runs the driver; only the driver
reads it.
"""

import atexit
import json
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cordwood.errors import ConfigError

NAME: Final = "optionsFile"
_SEEN: Final = re.compile(r"kafka\.(bootstrap\.servers|client\.id|isolation\.level)|schema\.registry\.(url|subject)")
_GUARDED: Final = re.compile(r"kafka\..*|schema\.registry\..*")


def resolved(given: Mapping[str, str]) -> Mapping[str, str]:
    """The options, with those of the file if one is named.

    Raises:
        ConfigError: the file cannot be read, or has an option that was also given directly.
    """
    paths = [value for name, value in given.items() if name.lower() == NAME.lower()]
    if not paths:
        return given
    found = _read(paths[0])
    others = {name: value for name, value in given.items() if name.lower() != NAME.lower()}
    twice = {name.lower() for name in found} & {name.lower() for name in others}
    if twice:
        raise ConfigError(f"option {min(twice)} is given, and is in {NAME} too; leave one of them out")
    return {**others, **found}


def _read(path: str) -> dict[str, str]:
    try:
        found = json.loads(Path(path).read_text("utf-8"))
    except (OSError, ValueError) as reason:
        raise ConfigError(f"option {NAME}: {path} cannot be read: {reason}") from None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise ConfigError(f'option {NAME}: {path} is not a JSON object of texts, such as {{"kafka.client.id": "x"}}')
    if any(name.lower() == NAME.lower() for name in found):
        raise ConfigError(f"option {NAME}: {path} names another one")
    return found


def hidden(given: Mapping[str, str]) -> dict[str, str]:
    """The options, with all that might be secret moved into a file. Only this user can read it, or list its directory.
    Both are deleted when the process ends."""
    secrets = {name: value for name, value in given.items() if _is_guarded(name.lower())}
    if not secrets:
        return dict(given)
    directory = Path(tempfile.mkdtemp(prefix="cordwood-options-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    path = directory / "options.json"
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        json.dump(secrets, file)
    return {**{name: value for name, value in given.items() if name not in secrets}, NAME: str(path)}


def _is_guarded(name: str) -> bool:
    return _GUARDED.fullmatch(name) is not None and _SEEN.fullmatch(name) is None
