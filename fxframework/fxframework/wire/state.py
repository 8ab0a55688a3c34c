"""State: what earlier records of a stretch say about later ones.

Tables of texts that references name by number, registers, and the byte order. Objects keep it
here; programs keep it in arrays (``capture.ProgramState``), behind the same methods.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fxframework.wire.expressions import Expression, Register, expression

__all__ = ["Entry", "State", "TextTable"]


class TextTable:
    """Texts by number: a text field ``defines=names[number]``, other fields ``refers=names``.

    A second definition of a number counts from there on. A number that nothing declared is shown
    as ``<name#N>``, and reported. Nothing fills a ``closed`` table: references are inline or empty.
    """

    def __init__(self, name: str, *, closed: bool = False) -> None:
        self.name = name
        self.closed = closed

    def __getitem__(self, index: Any) -> Entry:
        return Entry(self, expression(index))

    def unknown(self, index: int) -> str:
        """Return what is shown for a number that nothing declared."""
        return f"<{self.name}#{index}>"

    def index_in(self, shown: str) -> int | None:
        """Return the number in such a text; None if it is something else."""
        prefix = f"<{self.name}#"
        digits = shown[len(prefix) : -1]
        fits = shown.startswith(prefix) and shown.endswith(">") and digits.isdecimal()
        return int(digits) if fits and digits.isascii() else None

    def __repr__(self) -> str:
        return f"table {self.name!r}"


class Entry:
    """The place of a text in a table."""

    def __init__(self, table: TextTable, index: Expression) -> None:
        self.table = table
        self.index = index


class State:
    """Tables, registers and byte order at a place of a file.

    ``mirrored`` says that bits of words count from the most significant one, as big-endian machines
    lay bit fields out.
    """

    def __init__(
        self, registers: Iterable[Register] = (), *, big: bool = False, mirrored: bool = False
    ) -> None:
        self.big = big
        self.mirrored = mirrored
        self.registers: dict[Expression, int] = {each: each.initial for each in registers}
        self._texts: dict[TextTable, dict[int, str]] = {}
        self._numbers: dict[TextTable, dict[str, int]] = {}

    def text(self, table: TextTable, index: int) -> str | None:
        """Return the text of a number; None if nothing declared it."""
        return self._texts.get(table, {}).get(index)

    def index(self, table: TextTable, text: str) -> int | None:
        """Return the last number that was declared for a text; None if there is none."""
        index = self._numbers.get(table, {}).get(text)
        return index if index is not None and self.text(table, index) == text else None

    def define(self, table: TextTable, index: int, text: str, start: int, nbytes: int) -> None:
        """Declare a text, which is ``nbytes`` bytes from byte ``start`` of the file."""
        del start, nbytes
        self._texts.setdefault(table, {})[index] = text
        self._numbers.setdefault(table, {})[text] = index

    def clear(self, table: TextTable) -> None:
        """Forget all texts of a table."""
        self._texts.pop(table, None)
        self._numbers.pop(table, None)

    def set(self, register: Expression, value: int) -> None:
        """Set a register."""
        self.registers[register] = value

    def apply(self, sets: Mapping[Expression, int], effects: Iterable[tuple[Any, ...]]) -> None:
        """Apply what a record changes: registers, and texts of tables."""
        for register, value in sets.items():
            self.set(register, value)
        for name, *arguments in effects:
            self.define(*arguments) if name == "define" else self.clear(*arguments)

    def texts(self, table: TextTable) -> Iterator[tuple[int, str]]:
        """Yield the numbers and texts of a table."""
        yield from self._texts.get(table, {}).items()
