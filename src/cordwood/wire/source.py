"""The source of one generated function, as it grows."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from struct import Struct
from typing import Any, cast


class Source:
    """The lines of one function, and the constants that they refer to."""

    def __init__(self, constants: dict[str, object]) -> None:
        self.lines: list[str] = []
        self.constants = dict(constants)
        self._depth = 0
        self._count = 0
        self._known: dict[object, str] = {}

    def line(self, text: str) -> None:
        self.lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, opening: str) -> Iterator[None]:
        """A line that ends in a colon, and the block below it."""
        self.line(opening)
        self._depth += 1
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self.line("pass")
        self._depth -= 1

    def local(self, stem: str) -> str:
        """A name that is unique within the function."""
        self._count += 1
        return f"{stem}{self._count}"

    def constant(self, stem: str, value: object, *, key: object) -> str:
        """The name of a constant: always the same for the same key."""
        name = self._known.get(key)
        if name is None:
            name = self._known[key] = stem if stem not in self.constants else self.local(f"{stem}_")
            self.constants[name] = value
        return name

    def packer(self, codes: str, method: str) -> tuple[str, int]:
        """A bound method of the struct with these codes (by name), and the struct's size."""
        layout = Struct(">" + codes)
        return self.constant(
            f"{method}_{codes}".replace("?", "bool"), getattr(layout, method), key=(codes, method)
        ), layout.size

    def __str__(self) -> str:
        return "\n".join(self.lines) + "\n"

    def function(self, name: str, label: str) -> Callable[..., Any]:
        """The function itself."""
        exec(compile(str(self), label, "exec"), self.constants)
        return cast(Callable[..., Any], self.constants[name])
