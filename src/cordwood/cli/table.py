"""Rows of text in columns that line up."""

import re
from collections.abc import Iterable, Sequence


def print_table(head: Sequence[str], rows: Iterable[Sequence[str]], *, indent: str = "") -> None:
    """Print rows under their heads; numbers are right-aligned."""
    body = [[_printable(cell) for cell in row] for row in rows]
    columns = list(zip(head, *body, strict=True))
    widths = [max(map(len, column)) for column in columns]
    numeric = [_numeric(column[1:]) for column in columns]
    for row in [head, *body]:
        cells = [c.rjust(w) if n else c.ljust(w) for c, w, n in zip(row, widths, numeric, strict=True)]
        print(indent + "  ".join(cells).rstrip())


def _printable(cell: str) -> str:
    """A group may have any name: characters that would move the cursor are shown as Python writes them."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in cell)


def _numeric(cells: Sequence[str]) -> bool:
    """Are these numbers (at least one), or signs that there is none?"""
    return all(re.fullmatch("-?[0-9]+|[-?]", cell) for cell in cells) and any(cell[-1].isdigit() for cell in cells)
