"""Texts that rows of templates are filled with: those of codes, of doubles and of arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import orjson
from numpy.typing import NDArray

from fxframework.kernels.arrays import I64
from fxframework.kernels.parts import COPIED, MEMBERS, MEMBERS_END, NATURAL, SIGNED, TEXT
from fxframework.kernels.sorting import dense, stable_order
from fxframework.kernels.templates import Cell, Templates, signed
from fxframework.kit.json_fields import special_double
from fxframework.model.schema import ArgType
from fxframework.model.strings import StringPool, TextColumn
from fxframework.model.table import Table

TABLE_SIZE = 1 << 18
"""Most sparse numbers that are looked up in a table."""
PIECE = 1 << 20
"""Characters or bytes of texts that are written together."""
LEAST_ALIKE = 1e-4
"""From this magnitude on, orjson and Python format doubles identically."""
END_ALIKE = 1e16
"""Below this magnitude, they do."""


def json_string(text: str) -> str:
    r"""Return the text as a JSON string that Perfetto's parser accepts too.

    That parser fails on a backslash directly before the closing quote, and on DEL.
    """
    quoted = orjson.dumps(text).decode()
    if quoted.endswith('\\\\"'):
        quoted = quoted[:-3] + r'\u005c"'
    return quoted.replace("\x7f", r"\u007f")


def printable_json(text: str) -> str:
    """Return the text as a JSON string with all unprintable characters escaped."""
    quoted = orjson.dumps(text).decode()
    if quoted.isprintable():
        return quoted
    characters = (
        character if character.isprintable() else _json_escape(character) for character in quoted
    )
    return "".join(characters)


def _json_escape(character: str) -> str:
    """Return a character as one escape sequence, or as two for a surrogate pair."""
    digits = character.encode("utf-16-be", "surrogatepass").hex()
    units = (digits[start : start + 4] for start in range(0, len(digits), 4))
    return "".join(f"\\u{unit}" for unit in units)


def json_double(value: float) -> str:
    """Return the shortest text that reads back as the double; NaN and infinities as strings."""
    name = special_double(value)
    return f'"{name}"' if name else repr(value)


def groups(keys: NDArray[np.integer] | NDArray[np.bool_]) -> Iterator[tuple[int, I64]]:
    """Yield each key that occurs, with its rows; keys are small numbers from 0 on."""
    present_keys = np.flatnonzero(np.bincount(keys)).tolist()
    if len(present_keys) == 1:  # often; without comparing all keys
        yield present_keys[0], np.arange(keys.size)
        return
    for key in present_keys:
        yield key, np.flatnonzero(keys == key)


def _fit_table(numbers: NDArray[np.integer]) -> bool:
    """Return whether all of some numbers are from -1 up to ``TABLE_SIZE``."""
    return int(numbers.min()) >= -1 and int(numbers.max()) < TABLE_SIZE


class Numbered:
    """Texts of codes, or of other numbers from -1 on: each is made once and gets a number.

    Equal texts have one number, unless they are not ``shared``. Where numbers are ``sparse``, large
    ones are not looked up in a table.
    """

    def __init__(
        self,
        templates: Templates,
        make: Callable[[int], str],
        *,
        shared: bool = True,
        sparse: bool = False,
    ) -> None:
        self._templates = templates
        self._make = make
        self._shared = shared
        self._sparse = sparse
        self._numbers = np.full(1, -1, np.int32)
        """Number of the text of each code, from code -1 on; -1 for a text not made yet."""
        self._version = templates.version

    def __call__(self, codes: NDArray[np.integer]) -> tuple[int, NDArray[np.integer]]:
        """Return the part of a template for a column of codes."""
        if self._version != self._templates.version:  # it has forgotten its texts
            self._version = self._templates.version
            self._numbers.fill(-1)
        if self._sparse and codes.size and not _fit_table(codes):
            place, different_codes = dense(codes)
            return TEXT, self._numbers_of(different_codes.tolist())[place]
        greatest_code = int(codes.max()) if codes.size else -1
        if greatest_code + 1 >= self._numbers.size:
            # To twice the size, so that the table is copied a bounded number of times.
            new_size = 2 * greatest_code + 3
            more_numbers = np.full(new_size - self._numbers.size, -1, np.int32)
            self._numbers = np.concatenate((self._numbers, more_numbers))
        places = codes.astype(np.int64) + 1
        numbers = self._numbers[places]
        missing_places = places[numbers < 0]
        if missing_places.size:
            missing_places = np.unique(missing_places)
            self._numbers[missing_places] = self._numbers_of((missing_places - 1).tolist())
            numbers = self._numbers[places]
        return TEXT, numbers

    def _numbers_of(self, codes: Sequence[int]) -> I64:
        """Make the texts of codes, and return their numbers."""
        texts = [self._make(code).encode() for code in codes]
        if self._shared:
            return self._templates.shared_texts(texts)
        return self._templates.texts(texts)


def in_pieces(texts: Iterable[str] | Iterable[bytes]) -> Iterator[bytes]:
    """Concatenate texts as UTF-8, or bytes, and yield them in pieces of about PIECE each."""
    waiting_texts: list[bytes] = []
    waiting_size = 0
    for text in texts:
        waiting_texts.append(text.encode("utf-8", "replace") if isinstance(text, str) else text)
        waiting_size += len(text)
        if waiting_size >= PIECE:
            yield b"".join(waiting_texts)
            waiting_texts = []
            waiting_size = 0
    if waiting_texts:
        yield b"".join(waiting_texts)


def string_lengths(pool: StringPool) -> I64:
    """Return the bytes of each string of a pool, and 0 for null."""
    return np.append(pool.pool.array("lengths"), 0)


def string_bytes(table: Table) -> I64:
    """Return the bytes of the strings of each row."""
    nbytes = np.zeros(len(table), np.int64)
    for name in table.columns:
        column = table[name]
        if isinstance(column, TextColumn):
            nbytes += np.diff(column.offsets)
        elif table.schema.column(name).kind == "code":  # a column may add its strings when made
            nbytes += string_lengths(table.pool)[column]
    return nbytes


def stretches(sizes: I64, most: int, rows: int = 1 << 62) -> Iterator[slice]:
    """Yield slices of rows that have ``most`` bytes and ``rows`` rows at most, but at least one.

    ``sizes`` has the bytes of each row.
    """
    ends = np.cumsum(sizes)  # bytes up to the end of each row
    start = 0
    while start < sizes.size:
        bytes_before = int(ends[start - 1]) if start else 0
        stop = int(np.searchsorted(ends, bytes_before + most))
        stop = min(start + rows, max(start + 1, stop))
        yield slice(start, stop)
        start = stop


def where(
    templates: Templates,
    rows: NDArray[np.bool_],
    texts: NDArray[np.integer] | str,
    others: str = "",
) -> tuple[int, NDArray[np.integer]]:
    """Return the part for texts, one or by row, in some rows, and for another one elsewhere."""
    number = templates.text(texts.encode()) if isinstance(texts, str) else texts
    return TEXT, np.where(rows, number, templates.text(others.encode()))


def column_of(templates: Templates, texts: Sequence[bytes]) -> I64:
    """Return the numbers of texts, as ``Templates.column`` does."""
    bounds = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(text) for text in texts], out=bounds[1:])
    return templates.column(np.frombuffer(b"".join(texts), np.uint8), bounds)


def json_doubles(templates: Templates, column: NDArray[np.float64]) -> I64:
    """Return the numbers of the texts of finite doubles, as orjson shows them."""
    array_text = orjson.dumps(column, option=orjson.OPT_SERIALIZE_NUMPY)  # [0.5,2.0]
    text = np.frombuffer(array_text, np.uint8)[1:-1]
    is_comma = text == ord(",")
    commas = np.flatnonzero(is_comma)
    # Without the commas, a number ends where its comma was, less one for each comma before that.
    bounds = np.zeros(column.size + 1, np.int64)
    bounds[1:-1] = commas - np.arange(commas.size)
    bounds[-1] = text.size - commas.size
    return templates.column(text[~is_comma], bounds)


def doubles(
    templates: Templates, column: NDArray[np.float64], show: Callable[[float], str]
) -> tuple[int, I64]:
    """Return the part for doubles as ``repr`` shows them.

    Most are formatted all at once. ``show`` formats those that are very large, very small or not
    finite.
    """
    magnitudes = np.abs(column)
    # orjson formats these identically to Python, but all at once.
    is_alike = (magnitudes == 0) | ((magnitudes >= LEAST_ALIKE) & (magnitudes < END_ALIKE))
    numbers = json_doubles(templates, np.where(is_alike, column, 0.0))
    if not is_alike.all():
        other_texts = [show(value).encode() for value in column[~is_alike].tolist()]
        numbers[~is_alike] = column_of(templates, other_texts)
    return COPIED, numbers


class Lines:
    """Collects the texts of rows by their places, and joins them in that order."""

    def __init__(self, templates: Templates) -> None:
        self.templates = templates
        self._parts: list[tuple[I64, I64, I64]] = []
        """For the rows of each ``put``: places, and starts and ends of the texts."""

    def put(self, places: I64, *cells: Cell) -> None:
        """Write rows of a template at these places, of shape (rows,)."""
        if places.size:
            starts, ends = self.templates.write(places.size, *cells)
            self._parts.append((places, starts, ends))

    def joined(self) -> tuple[TextColumn, I64]:
        """Return all texts in the order of their places, and the places; forget them."""
        no_rows = np.zeros(0, np.int64)
        parts = self._parts or [(no_rows, no_rows, no_rows)]
        self._parts = []
        places, starts, ends = parts[0]
        if len(parts) > 1:
            places, starts, ends = map(np.concatenate, zip(*parts, strict=True))
        # Those of one kind are in order as they were written.
        if (places[1:] < places[:-1]).any():
            order = np.argsort(places, kind="stable")
            places, starts, ends = places[order], starts[order], ends[order]
        return TextColumn.gather(self.templates.letters(), starts, ends - starts), places


# --- Arguments -----------------------------------------------------------------------------------


@attrs.frozen
class Form:
    """How arguments of a type are written: the value, and the texts before and behind it."""

    value: Callable[[Any, I64], Cell]
    """Returns the part for the values of some rows of `args`."""
    before: str = ""
    behind: str = ""


def value_forms(
    templates: Templates,
    *,
    string: Callable[[int], str],
    blob: Callable[[int], str],
    double: Callable[[float], str] = json_double,
    shared: bool = True,
) -> dict[int, Form]:
    """Return the form of each type: as in JSON; pointers and koids are numbers.

    ``string`` and ``blob`` render codes, ``double`` the values that ``doubles`` passes to ``show``.
    """
    strings = Numbered(templates, string, shared=shared)
    blobs = Numbered(templates, blob, shared=shared)
    signed = Form(lambda args, rows: (SIGNED, args["int"][rows]))
    natural = Form(lambda args, rows: (NATURAL, args["uint"][rows]))

    def truth(args: Any, rows: I64) -> Cell:
        false = templates.text(b"false")
        true = templates.text(b"true")
        is_true = args["uint"][rows] != 0
        return TEXT, np.where(is_true, true, false)

    return {
        ArgType.NULL: Form(lambda _args, _rows: b"null"),
        ArgType.INT32: signed,
        ArgType.UINT32: natural,
        ArgType.INT64: signed,
        ArgType.UINT64: natural,
        ArgType.DOUBLE: Form(lambda args, rows: doubles(templates, args["float"][rows], double)),
        ArgType.STRING: Form(lambda args, rows: strings(args["str"][rows])),
        ArgType.POINTER: natural,
        ArgType.KOID: natural,
        ArgType.BOOL: Form(truth),
        ArgType.BLOB: Form(lambda args, rows: blobs(args["str"][rows])),
    }


def repeated(owners: I64, names: NDArray[np.integer]) -> Iterator[tuple[int, int]]:
    """Yield each argument whose owner has earlier ones of its name: 2 for the second, and so on.

    Owners are ascending; both have the shape (args,).
    """
    # Owners are numbered from 0, and owner and name become one number to sort by.
    owner_numbers = np.zeros(names.size, np.int64)
    np.cumsum(owners[1:] != owners[:-1], out=owner_numbers[1:])
    pairs = owner_numbers * (1 << 32) | names
    order = stable_order(pairs)
    if order is None:
        order = np.arange(pairs.size)
    pairs = pairs[order]
    repeated_places = np.flatnonzero(pairs[1:] == pairs[:-1]) + 1
    occurrence = 1
    previous_place = -1
    for place in repeated_places.tolist():
        if place == previous_place + 1:
            occurrence += 1
        else:
            occurrence = 2
        previous_place = place
        yield int(order[place]), occurrence


@attrs.frozen
class Members:
    """Arguments as members; ``keys``, ascending, has the record or row of each."""

    keys: I64
    first: int = 0
    """Number of the first member."""

    def of(self, keys: I64) -> list[Cell]:
        """Return the parts of a template for the members of each key."""
        return [
            (MEMBERS, np.searchsorted(self.keys, keys) + self.first),
            (MEMBERS_END, np.searchsorted(self.keys, keys, side="right") + self.first),
        ]


class ArgumentTexts:
    """Arguments as members of rows: name, text before the value, value, and text behind it.

    ``name`` renders the name of a code; ``forms`` are by type.
    """

    def __init__(
        self,
        templates: Templates,
        name: Callable[[int], str],
        forms: Mapping[int, Form],
        *,
        shared: bool = True,
    ) -> None:
        self.templates = templates
        self.forms = forms

        def named(before: str) -> Numbered:
            return Numbered(templates, lambda code: name(code) + before, shared=shared)

        self._names = {form.before: named(form.before) for form in forms.values()}
        """The names with the text before the value, by that text."""

    def of(self, args: Any, kinds: NDArray[np.integer]) -> list[I64]:
        """Return arguments as columns of ``Templates.hold``; ``kinds`` has the form of each."""
        name_codes = np.asarray(args["name"])
        befores, parts, values, behinds = np.zeros((4, name_codes.size), np.int64)
        for kind, rows in groups(kinds):
            form = self.forms[kind]
            cell = form.value(args, rows)
            if isinstance(cell, bytes):
                cell = TEXT, self.templates.text(cell)
            parts[rows], value = cell
            values[rows] = signed(np.asarray(value))
            _, befores[rows] = self._names[form.before](name_codes[rows])
            behinds[rows] = self.templates.text(form.behind.encode())
        return [befores, parts, values, behinds]
