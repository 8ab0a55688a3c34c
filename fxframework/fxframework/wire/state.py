"""State: what earlier records of a stretch say about later ones.

Tables of texts that references name by number, registers, and the byte order. ``State`` is that of
one record after another. ``Registrations`` and ``register_columns`` are that of many: what text a
number has, or a register holds, as of each record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from fxframework.wire.expressions import Expression, Register, expression, wrapped

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fxframework.kernels.arrays import I64

else:
    from fxframework.kit.lazy import numpy as np

SMALL = 1 << 20
"""Numbers of texts below it are looked up as they are."""
BEYOND = 1 << 40
"""A dense number that is greater than all others."""
SPAN = 1 << 17
"""More than the rows of a run: ``number * SPAN + row`` sorts by number, then by row."""


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
        if not shown.startswith(prefix) or not shown.endswith(">"):
            return None
        digits = shown[len(prefix) : -1]
        if digits.isascii() and digits.isdecimal():
            return int(digits)
        return None

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
        self.registers: dict[Expression, int] = {
            register: register.initial for register in registers
        }
        self.absent: dict[bytes, int] = {}
        """Of bytes that end texts, from which byte on the file has none (``spans.place_of``)."""
        self._texts: dict[TextTable, dict[int, str]] = {}
        self._numbers: dict[TextTable, dict[str, int]] = {}

    def text(self, table: TextTable, index: int) -> str | None:
        """Return the text of a number; None if nothing declared it."""
        return self._texts.get(table, {}).get(index)

    def index(self, table: TextTable, text: str) -> int | None:
        """Return the last number that was declared for a text; None if there is none."""
        index = self._numbers.get(table, {}).get(text)
        # The number may have another text by now.
        if index is None or self.text(table, index) != text:
            return None
        return index

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
            if name == "define":
                self.define(*arguments)
            else:
                self.clear(*arguments)

    def texts(self, table: TextTable) -> Iterator[tuple[int, str]]:
        """Yield the numbers and texts of a table."""
        yield from self._texts.get(table, {}).items()


class Change(NamedTuple):
    """What some records do to a register: set it to values, or add them."""

    ordinals: I64
    """The rows of the records in the run, in order."""
    values: I64
    adds: NDArray[np.bool_]


def register_columns(
    initial: int, count: int, changes: list[Change], restarts: Change | None = None
) -> tuple[I64, I64]:
    """Return a register before and after each of ``count`` records, int64 of shape (count,).

    Sums wrap to 64 bits. No two changes are of one record; ``restarts`` happen before records.
    """
    if restarts is not None:
        changes = [restarts, *changes]  # a stable order has them before the others
    ordinals = np.concatenate([change.ordinals for change in changes])
    values = np.concatenate([change.values for change in changes])
    adds = np.concatenate([change.adds for change in changes])
    # A record makes a change that those behind it see; restarts are seen by the record itself.
    is_after = np.ones(ordinals.size, np.int64)
    if restarts is not None:
        is_after[: restarts.ordinals.size] = 0
    order = np.argsort(ordinals, kind="stable")
    ordinals = ordinals[order]
    values = values[order]
    adds = adds[order]
    # After a change the register is the sum of all that was added so far, and what was left over
    # when it was last set: sets 5, adds 1, adds 2 are 5 - 0, then 5 + 1 and 5 + 3.
    sums = np.cumsum(np.where(adds, values, 0))
    last_set = np.maximum.accumulate(np.where(adds, -1, np.arange(values.size)))
    left_over = np.where(last_set < 0, initial, (values - sums)[last_set])
    held = np.concatenate([np.array([initial], np.int64), left_over + sums])
    before = np.repeat(held, np.diff(ordinals + is_after[order], prepend=0, append=count))
    after = np.repeat(held, np.diff(ordinals, prepend=0, append=count))
    return before, after


class Registrations:
    """The codes of the texts of a table by number, as of any record of a run.

    ``begin`` takes the definitions of a run, ``find`` looks up, ``settle`` ends the run. Numbers
    are made *dense*, so that they index an array: small ones stay what they are, large ones are
    numbered in the order they come, from SMALL on.
    """

    def __init__(self) -> None:
        from fxframework.kernels.pools import PairMap

        self.codes = np.full(256, -1, np.int32)
        """The code of each text at the beginning of the run, by dense number; -1 for none.

        Of the last number there is never one.
        """
        self.large = PairMap()
        self.keys: I64 | None = None
        """Dense number and row of each definition of the run (see SPAN), in order; None if none
        changes a code."""
        self.clears = np.zeros(0, np.int64)
        """The rows of records that clear the table, in order."""
        self.last_row = -1
        """The row of the last definition of the run."""
        self.codes_behind: NDArray[np.int32] | None = None
        """The codes behind it, once they are asked for."""

    def begin(self, ordinals: I64, numbers: I64, codes: NDArray[np.int32], clears: I64) -> None:
        """Take in the definitions of a run, in the order of its rows."""
        dense = self._dense(numbers, enter=True)
        self.clears = clears
        if not clears.size and (self.codes[dense] == codes).all():
            return  # as where a writer declares the same again
        self.last_row = int(ordinals.max(initial=-1))
        keys = dense * SPAN + ordinals
        order = np.argsort(keys, kind="stable")
        self.keys = keys[order]
        self.defined = codes[order]

    def find(
        self, numbers: I64, ordinals: I64, out: NDArray[np.int32] | None = None
    ) -> NDArray[np.int32]:
        """Return the codes of texts as of some rows, in ``out``; -1 where nothing declared one."""
        dense = self._dense(numbers, enter=False)
        can_be_behind = self.keys is not None and not self.clears.size
        if can_be_behind and int(ordinals.min(initial=SPAN)) > self.last_row:
            # All is declared before it is referred to, as where a writer begins with it.
            if self.codes_behind is None:
                self.codes_behind = self.codes.copy()
                self._define_in(self.codes_behind, SPAN, -1)
            return self.codes_behind.take(dense, mode="clip", out=out)
        codes = self.codes.take(dense, mode="clip", out=out)  # the last one is -1
        if self.keys is None:
            return codes
        if self.clears.size:
            clears_before = np.searchsorted(self.clears, ordinals)
            of_clear = self.clears.take(clears_before - 1, mode="clip")
            last_clear = np.where(clears_before > 0, of_clear, -1)
            codes[last_clear >= 0] = -1
        is_declared = np.zeros(self.codes.size, bool)
        is_declared[self.keys // SPAN] = True
        rows = np.flatnonzero(is_declared.take(dense, mode="clip"))
        # The last definition of the number in an earlier row: a record's own definitions count
        # from the next one on.
        definition = np.searchsorted(self.keys, dense[rows] * SPAN + ordinals[rows]) - 1
        keys = self.keys.take(definition, mode="clip")
        is_defined = (definition >= 0) & (keys // SPAN == dense[rows])
        if self.clears.size:
            is_defined &= keys % SPAN > last_clear[rows]
        codes[rows[is_defined]] = self.defined[definition[is_defined]]
        return codes

    def settle(self, end: int) -> None:
        """Let the definitions of rows before ``end`` be those at the beginning of the next run."""
        cleared = self.clears[self.clears < end]
        last_clear = int(cleared[-1]) if cleared.size else -1
        if last_clear >= 0:
            self.codes.fill(-1)
        self._define_in(self.codes, end, last_clear)
        self.keys = None
        self.codes_behind = None
        self.clears = self.clears[:0]

    def _define_in(self, codes: NDArray[np.int32], end: int, last_clear: int) -> None:
        """Enter in ``codes`` the definitions of the run behind a row and before another one."""
        if self.keys is None:
            return
        rows = self.keys % SPAN
        settled = np.flatnonzero((rows < end) & (rows > last_clear))
        dense = self.keys[settled] // SPAN
        # Only the last definition of each number: assignment promises no order.
        is_last = np.append(dense[1:] != dense[:-1], True)[: dense.size]
        codes[dense[is_last]] = self.defined[settled[is_last]]

    def define(self, number: int, code: int) -> None:
        """Declare one text, between runs."""
        dense = self._dense(np.array([wrapped(number)]), enter=True)
        self.codes[dense] = code

    def clear(self) -> None:
        """Forget all texts, between runs."""
        self.codes.fill(-1)

    def _dense(self, numbers: I64, *, enter: bool) -> I64:
        """Return numbers made dense: small ones as they are, others behind them.

        Without ``enter``, large numbers that never came before are BEYOND.
        """
        if not numbers.size:
            return numbers
        dense = numbers
        if int(numbers.view(np.uint64).max()) >= SMALL:
            dense = self._with_large(numbers, enter=enter)
        if enter:
            self._make_room(int(dense.max()) + 1)
        return dense

    def _make_room(self, count: int) -> None:
        """Have codes for so many dense numbers, and one more."""
        room = self.codes.size
        if count >= room:
            further = np.full(max(count + 1, 2 * room) - room, -1, np.int32)
            self.codes = np.concatenate([self.codes, further])

    def _with_large(self, numbers: I64, *, enter: bool) -> I64:
        """Return numbers made dense, some of which are large."""
        numbers = np.ascontiguousarray(numbers)
        is_large = (numbers < 0) | (numbers >= SMALL)
        order_of = self.large.enter if enter else self.large.find
        order = order_of(numbers[is_large])
        dense = numbers.copy()
        dense[is_large] = np.where(order < 0, BEYOND, order + SMALL)
        return dense


class ScopedRegistrations(Registrations):
    """Registrations of several speakers, each of which numbers its own texts.

    ``scopes`` says who speaks, and ``lenders`` of whose texts speakers have those that they did not
    declare: one number for all records, or one by row of the run. Numbers have ``nbits`` bits.
    """

    def __init__(self, nbits: int) -> None:
        super().__init__()
        self.nbits = nbits
        self.scopes: I64 | int = 0
        self.lenders: I64 | int = 0

    def scoped(self, scopes: Any, numbers: I64, ordinals: I64) -> I64:
        """Return numbers with the scopes of the rows that have them."""
        if isinstance(scopes, np.ndarray):
            scopes = scopes[ordinals]
        elif scopes == 0:
            return numbers
        return (scopes << self.nbits) + numbers  # type: ignore[no-any-return]

    def begin(self, ordinals: I64, numbers: I64, codes: NDArray[np.int32], clears: I64) -> None:
        """Take in the definitions of a run, in the order of its rows."""
        super().begin(ordinals, self.scoped(self.scopes, numbers, ordinals), codes, clears)

    def find_own(
        self, numbers: I64, ordinals: I64, out: NDArray[np.int32] | None = None
    ) -> NDArray[np.int32]:
        """Return the codes of texts that the speakers have declared themselves; -1 for others."""
        return super().find(self.scoped(self.scopes, numbers, ordinals), ordinals, out)

    def find_lent(self, numbers: I64, ordinals: I64) -> NDArray[np.int32]:
        """Return the codes of texts that the lenders have declared; -1 for others."""
        return super().find(self.scoped(self.lenders, numbers, ordinals), ordinals)

    def define(self, number: int, code: int) -> None:
        """Declare one text of the speaker, between runs."""
        nothing = np.zeros(1, np.int64)
        super().define(int(self.scoped(self.scopes, np.array([number]), nothing)[0]), code)
