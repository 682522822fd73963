"""Where numba keeps compiled kernels, so that no process but the first one ever waits for the compiler.

Numba puts them beside the source, or into the user's cache where it may not write there. In a container both may be
read-only; then they go into a directory of ours below the system's temporary one. What is loaded from there is code, so
the directory must belong to this user and be closed to all others.
"""

import os
import stat
import tempfile
from pathlib import Path

import numba


def settle() -> None:
    """Choose a directory, unless the user has (``NUMBA_CACHE_DIR``). Call before the first kernel is declared."""
    if numba.config.CACHE_DIR or _writable(Path(__file__).parent) or _writable(_user_cache()):
        return
    own = _own_directory()
    if own is not None:
        numba.config.CACHE_DIR = str(own)


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
