"""Texts that rows of templates are filled with: those of codes, of doubles and of arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import orjson
from numpy.typing import NDArray

from fxframework.kernels.parts import (
    COPIED,
    MEMBERS,
    MEMBERS_END,
    NATURAL,
    SIGNED,
    TEXT,
)
from fxframework.kernels.sorting import stable_order
from fxframework.kernels.templates import Cell, Templates, signed
from fxframework.kit.json_fields import special_double
from fxframework.model.schema import ARG_TYPES
from fxframework.model.strings import StringPool, TextColumn
from fxframework.model.table import Table

__all__ = [
    "ArgumentTexts",
    "Form",
    "Lines",
    "Members",
    "Numbered",
    "column_of",
    "distinct",
    "doubles",
    "groups",
    "in_pieces",
    "json_double",
    "json_string",
    "printable_json",
    "repeated",
    "stretches",
    "string_bytes",
    "string_lengths",
    "value_forms",
    "where",
]

I64 = NDArray[np.int64]
FEW, DENSE = 2, 1 << 18
"""Numbers from -FEW up to DENSE are looked up in a table."""
PIECE = 1 << 20
"""Characters or bytes of texts that are written together."""
LEAST_ALIKE, MOST_ALIKE = 1e-4, 1e16
"""In this range of magnitudes, orjson and Python format doubles identically."""


def json_string(text: str) -> str:
    r"""Return the text as a JSON string that Perfetto's parser accepts too.

    That parser fails on a backslash directly before the closing quote, and on DEL.
    """
    made = orjson.dumps(text).decode()
    if made.endswith('\\\\"'):
        made = made[:-3] + r'\u005c"'
    return made.replace("\x7f", r"\u007f")


def printable_json(text: str) -> str:
    """Return the text as a JSON string with all unprintable characters escaped."""
    return "".join(
        character if character.isprintable() else _json_escape(character)
        for character in orjson.dumps(text).decode()
    )


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def json_double(value: float) -> str:
    """Return the shortest text that reads back as the double; NaN and infinities as strings."""
    special = special_double(value)
    return f'"{special}"' if special else repr(value)


def groups(keys: NDArray[np.integer] | NDArray[np.bool_]) -> Iterator[tuple[int, I64]]:
    """Yield each key that occurs, with its rows; keys are small numbers from 0 on."""
    found = np.flatnonzero(np.bincount(keys)).tolist()
    for key in found:
        yield key, np.flatnonzero(keys == key) if len(found) > 1 else np.arange(keys.size)


def distinct(numbers: NDArray[np.integer]) -> tuple[NDArray[np.integer], NDArray[np.intp]]:
    """Return the different numbers, ascending, and the index of each number among them."""
    if not numbers.size or not -FEW <= int(numbers.min()) <= int(numbers.max()) < DENSE:
        return np.unique(numbers, return_inverse=True)
    shifted = numbers.astype(np.intp) + FEW
    met = np.zeros(int(shifted.max()) + 1, np.bool_)
    met[shifted] = True
    different = np.flatnonzero(met)
    index = np.empty(met.size, np.intp)
    index[different] = np.arange(different.size)
    return different - FEW, index[shifted]


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
        self._version = templates.version

    def __call__(self, codes: NDArray[np.integer]) -> tuple[int, NDArray[np.integer]]:
        """Return the part of a template for a column of codes."""
        if self._version != self._templates.version:
            self._version = self._templates.version
            self._numbers.fill(-1)
        least, most = (int(codes.min()), int(codes.max())) if codes.size else (-1, -1)
        if self._sparse and not -1 <= least <= most < DENSE:
            different, place = distinct(codes)
            return TEXT, self._made(different.tolist())[place]
        if most + 1 >= self._numbers.size:
            more = np.full(2 * most + 2 - self._numbers.size + 1, -1, np.int32)
            self._numbers = np.concatenate((self._numbers, more))
        places = codes.astype(np.int64) + 1
        numbers = self._numbers[places]
        missing = places[numbers < 0]
        if missing.size:
            missing = np.unique(missing)
            self._numbers[missing] = self._made((missing - 1).tolist())
            numbers = self._numbers[places]
        return TEXT, numbers

    def _made(self, codes: Sequence[int]) -> I64:
        texts = [self._make(code).encode() for code in codes]
        if self._shared:
            return np.array([self._templates.text(text) for text in texts], np.int64)
        return self._templates.texts(texts)


def in_pieces(texts: Iterable[str] | Iterable[bytes]) -> Iterator[bytes]:
    """Concatenate texts as UTF-8, or bytes, and yield them in pieces of about PIECE each."""
    some: list[bytes] = []
    held = 0
    for text in texts:
        some.append(text.encode("utf-8", "replace") if isinstance(text, str) else text)
        held += len(text)
        if held >= PIECE:
            yield b"".join(some)
            some, held = [], 0
    if some:
        yield b"".join(some)


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
    behind = np.cumsum(sizes)
    at = 0
    while at < sizes.size:
        taken = int(behind[at - 1]) if at else 0
        stop = min(at + rows, max(at + 1, int(np.searchsorted(behind, taken + most))))
        yield slice(at, stop)
        at = stop


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
    np.cumsum([len(each) for each in texts], out=bounds[1:])
    return templates.column(np.frombuffer(b"".join(texts), np.uint8), bounds)


def doubles(
    templates: Templates,
    column: NDArray[np.float64],
    show: Callable[[float], str],
    *,
    whole: bool = True,
) -> tuple[int, I64]:
    """Return the part of doubles, as ``repr`` gives them: all at once, but those of other sizes.

    ``show`` renders the very large, the very small, and those that are not finite; all that are
    whole numbers too, unless ``repr`` gives them as well.
    """
    size = np.abs(column)
    # orjson formats these identically to Python, but all at once.
    alike = (size == 0) | ((size >= LEAST_ALIKE) & (size < MOST_ALIKE))
    if not whole:
        with np.errstate(invalid="ignore"):  # a signaling NaN
            alike &= column != np.trunc(column)
    found = orjson.dumps(np.where(alike, column, 0.0), option=orjson.OPT_SERIALIZE_NUMPY)
    text = np.frombuffer(found, np.uint8)[1:-1]
    commas = np.flatnonzero(text == ord(","))
    bounds = np.zeros(column.size + 1, np.int64)
    bounds[1:-1] = commas - np.arange(commas.size)
    bounds[-1] = text.size - commas.size
    numbers = templates.column(text[text != ord(",")], bounds)
    if not alike.all():
        others = [show(value).encode() for value in column[~alike].tolist()]
        numbers[~alike] = column_of(templates, others)
    return COPIED, numbers


class Lines:
    """Collects the texts of rows by their places, and joins them in that order."""

    def __init__(self, templates: Templates) -> None:
        self.templates = templates
        self._parts: list[tuple[I64, I64, I64]] = []

    def put(self, places: I64, *cells: Cell) -> None:
        """Write rows of a template at these places, of shape (rows,)."""
        if places.size:
            self._parts.append((places, *self.templates.write(places.size, *cells)))

    def joined(self) -> tuple[TextColumn, I64]:
        """Return all texts in the order of their places, and the places; forget them."""
        none = np.zeros(0, np.int64)
        parts = self._parts or [(none, none, none)]
        self._parts = []
        places, starts, ends = (np.concatenate(part) for part in zip(*parts, strict=True))
        order = np.argsort(places, kind="stable")
        starts, sizes = starts[order], (ends - starts)[order]
        return TextColumn.gather(self.templates.letters(), starts, sizes), places[order]


# --- Arguments -----------------------------------------------------------------------------------

NULL, INT32, UINT32, INT64, UINT64, DOUBLE, STRING, POINTER, KOID, BOOL, BLOB = sorted(ARG_TYPES)


@attrs.frozen
class Form:
    """How arguments of a type are written: texts around a value, which are those of some rows."""

    value: Callable[[Any, I64], Cell]
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

    ``string`` and ``blob`` render codes, ``double`` what ``doubles`` does not.
    """
    strings = Numbered(templates, string, shared=shared)
    blobs = Numbered(templates, blob, shared=shared)
    signed = Form(lambda args, rows: (SIGNED, args["int"][rows]))
    natural = Form(lambda args, rows: (NATURAL, args["uint"][rows]))

    def truth(args: Any, rows: I64) -> Cell:
        words = templates.text(b"false"), templates.text(b"true")
        return TEXT, np.array(words)[(args["uint"][rows] != 0).astype(np.int64)]

    return {
        NULL: Form(lambda _args, _rows: b"null"),
        INT32: signed,
        UINT32: natural,
        INT64: signed,
        UINT64: natural,
        DOUBLE: Form(lambda args, rows: doubles(templates, args["float"][rows], double)),
        STRING: Form(lambda args, rows: strings(args["str"][rows])),
        POINTER: natural,
        KOID: natural,
        BOOL: Form(truth),
        BLOB: Form(lambda args, rows: blobs(args["str"][rows])),
    }


def repeated(owners: I64, names: NDArray[np.integer]) -> Iterator[tuple[int, int]]:
    """Yield each argument whose owner has earlier ones of its name: 2 for the second, and so on.

    Owners are ascending; both have the shape (args,).
    """
    owner = np.zeros(names.size, np.int64)
    np.cumsum(owners[1:] != owners[:-1], out=owner[1:])
    pairs = owner * (1 << 32) | names
    order = stable_order(pairs)
    if order is None:
        order = np.arange(pairs.size)
    pairs = pairs[order]
    times, last = 1, -1
    for place in (np.flatnonzero(pairs[1:] == pairs[:-1]) + 1).tolist():
        times = times + 1 if place == last + 1 else 2
        last = place
        yield int(order[place]), times


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
    """Arguments as members of rows: a name with what follows it, a value, and what is behind.

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

    def of(self, args: Any, kinds: NDArray[np.integer]) -> list[I64]:
        """Return arguments as columns of ``Templates.hold``; ``kinds`` has the form of each."""
        codes = np.asarray(args["name"])
        befores, parts, values, behinds = np.zeros((4, codes.size), np.int64)
        for kind, rows in groups(kinds):
            form = self.forms[kind]
            cell = form.value(args, rows)
            part, value = (TEXT, self.templates.text(cell)) if isinstance(cell, bytes) else cell
            befores[rows] = self._names[form.before](codes[rows])[1]
            parts[rows] = part
            values[rows] = signed(np.asarray(value))
            behinds[rows] = self.templates.text(form.behind.encode())
        return [befores, parts, values, behinds]
