"""Selectors of ffx: parsing, matching over columns, and the selected parts of a capture.

``COMPONENT:TREE/NODE/PATH:PROPERTY``. A file is one tree of one component, so COMPONENT and the
filter of trees may be left out, and match anything (docs/formats/inspect.md). Selected parts are
views, for exporters and queries; no VMO of a part is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_inspect.read.entries import entries
from fx_inspect.read.walk import texts_of
from fxframework.errors import UnreadableError, UsageError, checked_type
from fxframework.kernels.arrays import Bools
from fxframework.kernels.sorting import outermost
from fxframework.model.capture import Capture, Entry, Record, Summary, View
from fxframework.model.strings import StringPool
from fxframework.model.table import Table

ESCAPABLE: Final = "*:/\\ \t"
"""Characters that may follow a backslash."""
CONTROLS: Final = {"n": "\n", "r": "\r", "t": "\t", "0": "\0"}
"""Control characters by the letter after a backslash."""
_CODE_POINT: Final = re.compile(r"u\{([0-9a-fA-F]{1,6})\}")
"""Escape of any character after a backslash, as in Rust."""
BLANKS: Final = " \t"
WILD: Final = "*"
ROOT: Final = "root"
ALL_TREES: Final = "..."
FILE: Final = "@"
"""Prefix of an argument that names a file of selectors."""
_COMPONENT: Final = re.compile(r"(?:[A-Za-z0-9*.\-_<>]|\\:)+")
_FILTER: Final = re.compile(r'\s*name\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s",\]]+))\s*')
_OPENS: Final = re.compile(r"\[\s*(?:name\s*=|\.\.\.)")
"""Start of a filter of trees; any other bracket belongs to a name."""
_BRACKETS: Final = re.compile(r'\[((?:"[^"]*"|[^"\]])*)\]')
_COMMENT: Final = re.compile(r"(?:^|[ \t])//.*$")
REMEDY: Final = (
    "a selector is [COMPONENT:]NODE/PATH[:PROPERTY], such as 'root/a/*:count'; a backslash goes "
    "before a space, tab, colon, slash, star or backslash that belongs to a name"
)


class SelectorError(UsageError):
    """Invalid selector. ``reason`` is stable, ``at`` counts characters from 0."""

    def __init__(self, text: str, reason: str, message: str, at: int) -> None:
        super().__init__(
            f"invalid selector {text!r}: {message} (character {at + 1})", remedy=REMEDY
        )
        self.text = text
        self.reason = reason
        self.at = at


@attrs.frozen
class Pattern:
    """A segment of a path, or a property: a name in which ``*`` stands for any characters."""

    source: str
    """As written in the selector."""
    parts: tuple[str, ...]
    """The parts between the stars."""

    def matches(self, name: str) -> bool:
        """Return whether a name matches."""
        if len(self.parts) == 1:
            return name == self.parts[0]
        start_text, *middle, end_text = self.parts
        if len(name) < len(start_text) + len(end_text):
            return False
        if not (name.startswith(start_text) and name.endswith(end_text)):
            return False
        position = len(start_text)
        stop = len(name) - len(end_text)
        for middle_text in middle:
            position = name.find(middle_text, position, stop)
            if position < 0:
                return False
            position += len(middle_text)
        return True


@attrs.frozen
class Selector:
    """A selection: all below some nodes, or one property of each of them."""

    source: str
    path: tuple[Pattern, ...]
    """A pattern for each name, beginning with the root's."""
    property: Pattern | None = None
    """Pattern of the property; None for everything below the nodes."""
    component: tuple[str, ...] | None = None
    """Segments of the moniker, or None."""
    trees: tuple[str, ...] | None = (ROOT,)
    """Names of trees; None for all."""


# --- Parsing -------------------------------------------------------------------------------------


def parse(text: str) -> Selector:
    """Parse a selector.

    With two parts, ``a:b`` is a path and a property. It is a component and a path if ``a`` cannot
    be a path of a file (its first name does not match ``root``, or it contains ``**``), or if ``b``
    cannot be a property.

    Raises SelectorError.
    """
    start = len(text) - len(text.lstrip(BLANKS))
    inner = _stripped(text)
    is_quoted = len(inner) >= 2 and inner[0] == inner[-1] == '"'
    if is_quoted:
        inner = inner[1:-1]
        start = start + 1
    reader = _Reader(text, blanks=is_quoted)
    parts = [(at + start, part_text) for at, part_text in _split(inner, ":", brackets=True)]
    if len(parts) > 3:
        raise SelectorError(text, "too-many-parts", "it has more than two colons", parts[3][0] - 1)
    component: tuple[int, str] | None = None
    if len(parts) == 3 or (len(parts) == 2 and _is_component(parts[0][1], parts[1][1])):
        component, *parts = parts
    trees, path_start, path = reader.trees(*parts[0])
    selector = Selector(source=text, path=reader.path(path_start, path), trees=trees)
    if len(parts) > 1:
        selector = attrs.evolve(selector, property=reader.pattern(*parts[1], "property"))
    if component is not None:
        selector = attrs.evolve(selector, component=reader.component(*component))
    return selector


def parse_lines(lines: Iterable[str]) -> list[Selector]:
    """Parse the selectors of a file: one a line, with empty lines and ``// comments`` ignored.

    Raises SelectorError.
    """
    bare = (_stripped(_COMMENT.sub("", line.rstrip("\r\n"))) for line in lines)
    return [parse(line) for line in bare if line]


def _stripped(text: str) -> str:
    """Return a text without surrounding blanks, except an escaped one at the end."""
    bare = text.strip(BLANKS)
    backslashes = len(bare) - len(bare.rstrip("\\"))
    return text.lstrip(BLANKS)[: len(bare) + backslashes % 2]


def _is_component(first: str, second: str) -> bool:
    """Return whether the first of two parts is a component, so that the second is a path."""
    if _OPENS.match(second) or first.startswith(("/", "./")):
        return True
    if len(list(_split(second, "/"))) > 1 or "**" in first:
        return True
    if _OPENS.match(first):
        return False
    head = next(iter(_split(first, "/")))[1]
    try:
        return not _Reader(first, blanks=True).pattern(0, head, "name of a node").matches(ROOT)
    except SelectorError:
        return False


def _split(text: str, mark: str, *, brackets: bool = False) -> Iterator[tuple[int, str]]:
    """Yield the parts between unescaped marks, each with its start.

    With ``brackets``, marks within brackets do not count; brackets open at the start of a part.
    """
    begin = 0
    position = 0
    is_inside = False
    is_quoted = False
    while position < len(text):
        character = text[position]
        if character == "\\":
            position += 2
            continue
        if is_inside:
            is_quoted ^= character == '"'
            is_inside = is_quoted or character != "]"
        elif brackets and position == begin and _OPENS.match(text, position):
            is_inside = True
        elif character == mark:
            yield begin, text[begin:position]
            begin = position + 1
        position += 1
    yield begin, text[begin:]


@attrs.frozen
class _Reader:
    """Parses the parts of a selector; errors give the position in the whole selector."""

    text: str
    blanks: bool = False
    """Whether spaces need no backslash, because the selector is in quotes."""

    def wrong(self, reason: str, message: str, at: int) -> SelectorError:
        return SelectorError(self.text, reason, message, at)

    def trees(self, at: int, tree: str) -> tuple[tuple[str, ...] | None, int, str]:
        """Return the filter of trees, the start of the path, and the path."""
        if not _OPENS.match(tree):
            return (ROOT,), at, tree
        brackets = _BRACKETS.match(tree)
        if brackets is None:
            raise self.wrong("open-filter", "the bracket is not closed", at)
        inner = brackets[1]
        path_start = at + brackets.end()
        path = tree[brackets.end() :]
        if inner.strip() == ALL_TREES:
            return None, path_start, path
        names = []
        position = 0
        while True:
            tree_filter = _FILTER.match(inner, position)
            if tree_filter is None:
                raise self.wrong(
                    "bad-filter", "expected name=NAME or ... between brackets", at + 1 + position
                )
            names.append(tree_filter[1] if tree_filter[1] is not None else tree_filter[2])
            position = tree_filter.end()
            if position == len(inner):
                return tuple(names), path_start, path
            if inner[position] != ",":
                raise self.wrong(
                    "bad-filter", "names of trees must be separated by commas", at + 1 + position
                )
            position += 1

    def path(self, at: int, path: str) -> tuple[Pattern, ...]:
        """Return the patterns of a path."""
        if not path:
            raise self.wrong("empty-path", "it has no path of a node", at)
        return tuple(
            self.pattern(at + place, segment, "name of a node")
            for place, segment in _split(path, "/")
        )

    def pattern(self, at: int, raw: str, what: str) -> Pattern:
        """Return the pattern of a segment."""
        if not raw:
            raise self.wrong("empty", f"a {what} is empty", at)
        texts = [""]
        position = 0
        was_star = False
        while position < len(raw):
            character = raw[position]
            is_star = character == WILD
            if character == "\\":
                escaped_text, position = self.escaped(at, raw, position + 1)
                texts[-1] += escaped_text
            elif is_star and was_star:
                raise self.wrong(
                    "recursive", "** is not allowed in a path or property", at + position - 1
                )
            elif is_star:
                texts.append("")
            elif character in ":/" or (character in BLANKS and not self.blanks):
                raise self.wrong(
                    "unescaped", f"{character!r} needs a backslash before it", at + position
                )
            else:
                texts[-1] += character
            was_star = is_star
            position += 1
        return Pattern(raw, tuple(texts))

    def escaped(self, at: int, raw: str, place: int) -> tuple[str, int]:
        """Return the character of an escape, and the position of the escape's last character.

        ``place`` is the position after the backslash.
        """
        character = raw[place : place + 1]
        if character and character in ESCAPABLE:
            return character, place
        if character in CONTROLS:
            return CONTROLS[character], place
        code_point = _CODE_POINT.match(raw, place)
        if code_point is not None and int(code_point[1], 16) < 0x110000:
            return chr(int(code_point[1], 16)), code_point.end() - 1
        raise self.wrong(
            "bad-escape",
            "a backslash must be followed by a space, tab, colon, slash, star or backslash, by n, "
            "r, t or 0, or by u{…} with the number of a character",
            at + place - 1,
        )

    def component(self, at: int, raw: str) -> tuple[str, ...]:
        """Return the segments of a moniker."""
        begin = at + len(raw)
        raw = raw.removeprefix("./").removeprefix("/")
        begin -= len(raw)
        segments = list(_split(raw, "/"))
        for number, (place, segment) in enumerate(segments):
            if not segment:
                raise self.wrong("empty", "a name in the moniker is empty", begin + place)
            if _COMPONENT.fullmatch(segment) is None:
                good = _COMPONENT.match(segment)
                raise self.wrong(
                    "bad-component",
                    "a moniker has letters, digits, any of * . - _ < >, and \\:",
                    begin + place + (good.end() if good else 0),
                )
            recursive = segment == "**" and number == len(segments) - 1
            if "**" in segment and not recursive:
                raise self.wrong(
                    "recursive",
                    "** is only allowed as the last segment of a moniker",
                    begin + place,
                )
        return tuple(segment.replace("\\:", ":") for _, segment in segments)


# --- Matching ------------------------------------------------------------------------------------


class _Named:
    """Tests which codes of a pool are names that match a pattern."""

    def __init__(self, pattern: Pattern, pool: StringPool) -> None:
        self._fits = texts_of(pool, pattern.matches)

    def __call__(self, codes: NDArray[np.integer[Any]]) -> Bools:
        """Return a mask of codes, bool of their shape."""
        distinct_codes, code_places = np.unique(codes, return_inverse=True)
        fits = np.fromiter(
            map(self._fits.__getitem__, distinct_codes.tolist()), np.bool_, distinct_codes.size
        )
        return np.asarray(fits[code_places.reshape(-1)])


class _Marks:
    """The nodes that selectors select, as masks by node id."""

    def __init__(self, capture: Capture, selectors: Sequence[Selector]) -> None:
        table = capture.table("nodes")
        self._ids = table.array("id")
        self._parents = table.array("parent")
        self._names = table.array("name")
        size = int(self._ids.max(initial=-1)) + 2  # one extra for a parent of -1
        self.whole: Bools = np.zeros(size, np.bool_)
        """Nodes selected with everything below them."""
        self.some: list[tuple[Bools, _Named]] = []
        """Nodes with selected properties, and the test of the properties' names."""
        pool = capture.strings
        for selector in selectors:
            nodes = self._fitting(selector.path, pool)
            if selector.property is None:
                self.whole |= nodes
            else:
                self.some.append((nodes, _Named(selector.property, pool)))
        self._spread()
        self.kept = self.whole.copy()
        """Nodes in the result: those with something selected, and all above them."""
        if self.some:
            for batch in capture.batches("properties"):
                self.kept[batch.array("node")[self.properties(batch)]] = True
        self._rise()

    def properties(self, batch: Table) -> Bools:
        """Return a mask of the selected properties of a batch."""
        nodes = batch.array("node")
        mask: Bools = self.whole[nodes]
        for fitting, named in self.some:
            fitting_rows = fitting[nodes]
            if fitting_rows.any():
                mask |= fitting_rows & named(batch.array("name"))
        return mask

    def _fitting(self, path: Sequence[Pattern], pool: StringPool) -> Bools:
        """Return a mask of the nodes of a path."""
        fitting = np.zeros(self.whole.size, np.bool_)
        fitting[-1] = True
        for pattern in path:
            child_rows = np.flatnonzero(fitting[self._parents])
            is_named = _Named(pattern, pool)(self._names[child_rows])
            fitting = np.zeros(self.whole.size, np.bool_)
            fitting[self._ids[child_rows[is_named]]] = True
        return fitting

    def _spread(self) -> None:
        """Select everything below the nodes that are selected whole."""
        # Each node leads to its parent, up to one that is selected, or up to the root.
        is_below = (self._parents >= 0) & ~self.whole[self._ids]
        around = np.arange(self.whole.size)
        around[self._ids[is_below]] = self._parents[is_below]
        self.whole = self.whole[outermost(around)]

    def _rise(self) -> None:
        """Keep all nodes above kept ones."""
        is_in_result = self.kept.tolist()
        ids = self._ids[::-1].tolist()
        parents = self._parents[::-1].tolist()
        for node, parent in zip(ids, parents, strict=True):
            if is_in_result[node]:
                is_in_result[parent] = True
        is_in_result[-1] = False
        self.kept = np.array(is_in_result, np.bool_)


class Chosen(View):
    """The selected nodes and properties of a capture, and all nodes above them.

    Records are the blocks of these nodes, properties and links. ``id`` and ``row`` keep the numbers
    of the whole capture.
    """

    def __init__(self, whole: Capture, selectors: Sequence[Selector]) -> None:
        super().__init__(whole)
        self.selectors = tuple(selectors)
        self._marks = _Marks(whole, selectors)
        self._rows: Bools | None = None

    def choose(self, selectors: Sequence[str]) -> Capture:
        """Return the parts that other selectors select too."""
        return choose(self, selectors)

    def entries(self) -> Iterator[Entry]:
        """Yield the entries of the selected parts."""
        return entries(self)

    def records(self) -> Iterator[Record]:
        """Yield the blocks of the selected parts."""
        offsets_of_rows = [np.zeros(0, np.int64)]
        for name in ("nodes", "properties", "inspect_links"):
            if name in self.schemas:
                offsets_of_rows += [batch.array("offset") for batch in self.batches(name)]
        offsets = set(np.concatenate(offsets_of_rows).tolist())
        return (record for record in self.whole.records() if record.offset in offsets)

    def summary(self) -> Summary:
        """Return the summary of the whole capture, with the numbers of selected rows."""
        rows = {name: sum(len(batch) for batch in self.batches(name)) for name in self.schemas}
        return attrs.evolve(self.whole.summary(), rows=rows)

    def _part(self, table: Table) -> Table:
        mask = self._mask(table)
        return table if mask is None or mask.all() else table.select(mask)

    def _mask(self, table: Table) -> Bools | None:
        marks = self._marks
        if table.name == "nodes":
            return np.asarray(marks.kept[table.array("id")])
        if table.name == "properties":
            return marks.properties(table)
        if table.name == "inspect_links":
            return np.asarray(marks.whole[table.array("node")])
        if table.name == "inspect_slots":
            return np.asarray(self._properties()[table.array("parent")])
        return None

    def _properties(self) -> Bools:
        """Return a mask of the selected rows of `properties`."""
        if self._rows is None:
            rows = [np.zeros(0, np.int64)]
            size = 0
            for batch in self.whole.batches("properties"):
                row = batch.array("row")
                size = max(size, int(row.max(initial=-1)) + 1)
                rows.append(row[self._marks.properties(batch)])
            self._rows = np.zeros(size, np.bool_)
            self._rows[np.concatenate(rows)] = True
        return self._rows


def choose(capture: Capture, selectors: Sequence[str]) -> Capture:
    """Return the parts of a capture that any of some selectors selects (``Capture.choose``).

    ``@FILE`` stands for the selectors in a file. Raises SelectorError for an invalid selector, and
    UnreadableError for a file that cannot be read.
    """
    if isinstance(selectors, str):
        selectors = [selectors]
    parsed: list[Selector] = []
    for text in checked_type(selectors, Iterable, "the selectors", "a list of str"):
        checked_type(text, str, "a selector", "a str")
        if text.startswith(FILE):
            parsed += parse_lines(_lines(text.removeprefix(FILE)))
        else:
            parsed.append(parse(text))
    return Chosen(capture, parsed)


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableError(
            f"cannot read selectors there: {error}", path=path, remedy="check the path"
        ) from error
