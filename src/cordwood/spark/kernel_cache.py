"""Where compiled kernels are kept, so that only the first process ever waits for the compiler.

That is beside the source, or in the user's cache if the source directory is not writable. In a container both may be
read-only; then they go into a directory of Cordwood's below the system's temporary one. Code is loaded from there, so
the directory must belong to this user and be closed to all others.
"""

import hashlib
import os
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

NAME: Final = "cordwood"
_HERE: Final = Path(__file__).parent
SOURCES: Final = tuple(str(_HERE / name) for name in ("kernels.py", "kernels_json.py", "kernels_write.py"))
_COMPILER: Final = tuple(str(_HERE / name) for name in ("kernel_build.py", "machine.py"))


def prefix(sources: Iterable[str] = SOURCES) -> str:
    """The prefix of files that hold these sources, in their current form, compiled for any machine."""
    text = b"".join(Path(source).read_bytes() for source in (*sources, *_COMPILER))
    return f"kernels-{hashlib.sha256(text).hexdigest()[:16]}-"


def is_filled() -> bool:
    """Have the kernels been compiled before? That it was on another machine with the same disk is too rare to check."""
    return any(directory().glob(f"{prefix()}*.o"))


def directory() -> Path:
    """The first of the directories that can be written to, or the one that the user wants (``NUMBA_CACHE_DIR``)."""
    wanted = os.environ.get("NUMBA_CACHE_DIR")
    if wanted:
        return Path(wanted)
    for found in (_HERE / "__pycache__", _user_cache() / NAME):
        if _writable(found):
            return found
    return _own_directory() or _HERE / "__pycache__"


def _user_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path("~").expanduser() / ".cache")


def _writable(directory: Path) -> bool:
    """Can files be created there, or the directory itself if it does not exist yet?"""
    while not directory.exists() and directory != directory.parent:
        directory = directory.parent
    return directory.is_dir() and os.access(directory, os.W_OK | os.X_OK)


def _own_directory() -> Path | None:
    """A directory that nobody else can put anything into; None if there is none."""
    path = Path(tempfile.gettempdir()) / f"cordwood-numba-{os.getuid()}"
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        found = path.lstat()
    except OSError:
        return None
    private = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
    return path if private else None
