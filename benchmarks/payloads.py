"""The values that ProducerPerformance sends, made beforehand.

Given only a size, the tool draws every byte of every record anew, in the thread that sends: with records of 1 KB that
takes most of a core, and what is measured is a random number generator. Given a file, it picks lines from it.
"""

import random
from pathlib import Path
from string import ascii_uppercase
from typing import Final

FILE_BYTES: Final = 1_000_000  # small enough to stay in a processor's cache


def payload_file(directory: Path, record_bytes: int) -> Path:
    """A file of lines of *record_bytes* letters each; the same ones in every run."""
    path = directory / f"payloads-{record_bytes}.txt"
    if not path.exists():
        seeded = random.Random(record_bytes)
        lines = ["".join(seeded.choices(ascii_uppercase, k=record_bytes)) for _ in range(FILE_BYTES // record_bytes)]
        path.write_text("\n".join(lines) + "\n")
    return path
