"""Where compiled kernels are kept, so that no process but the first one ever waits for the compiler.

That is beside the source, or in the user's cache where one may not write there. In a container both may be read-only;
then they go into a directory of ours below the system's temporary one. What is loaded from there is code, so the
directory must belong to this user and be closed to all others.
"""

import os
import stat
import tempfile
from pathlib import Path
from typing import Final

NAME: Final = "cordwood"


def directory() -> Path:
    """The first of them that can be written to, or where the user wants it (``NUMBA_CACHE_DIR``)."""
    wanted = os.environ.get("NUMBA_CACHE_DIR")
    if wanted:
        return Path(wanted)
    for found in (Path(__file__).parent / "__pycache__", _user_cache() / NAME):
        if _writable(found):
            return found
    return _own_directory() or Path(__file__).parent / "__pycache__"


def _user_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path("~").expanduser() / ".cache")


def _writable(directory: Path) -> bool:
    """May files be made there, or the directory itself where it does not exist yet?"""
    while not directory.exists() and directory != directory.parent:
        directory = directory.parent
    return directory.is_dir() and os.access(directory, os.W_OK | os.X_OK)


def _own_directory() -> Path | None:
    """A directory that nobody else can put anything into; None if there is no such thing."""
    path = Path(tempfile.gettempdir()) / f"cordwood-numba-{os.getuid()}"
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        found = path.lstat()
    except OSError:
        return None
    private = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
    return path if private else None
