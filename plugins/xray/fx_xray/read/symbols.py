"""Names of functions: from the maps that the reader's options name, by the ids of a trace.

Texts become codes of the string pool here (``code_of``, ``FunctionNames``).

With -fxray-shared (LLVM 20) an id has the number of its object in the upper eight of its 32 bits,
so each object has a map of its own. Basic mode writes the whole id, the flight data recorder 28
bits of it: four bits of the number are left.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Self

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_xray import rules
from fx_xray.format import MAX_FUNCTION_ID, OBJECT_IDS
from fx_xray.read.instr_map import (
    Fault,
    Function,
    Functions,
    InstrumentationMap,
    demangle,
    read_map,
)
from fxframework.errors import Rule, UsageError
from fxframework.io import arena
from fxframework.kernels.arrays import I64
from fxframework.model.diagnostics import Diagnostics
from fxframework.model.strings import StringPool

KEPT_OBJECTS: Final = 16
"""Numbers of objects that the flight data recorder tells apart."""
MOST_OBJECTS: Final = 256
FEW: Final = 1 << 16
"""Functions that are looked up at once."""
NUMBERED: Final = 1 << 20
"""Function ids below this, or four times as many as there are, are looked up in a table."""
NO_FUNCTIONS: Final = Functions({})
_NUMBERED: Final = re.compile(r"(\d{1,9})=(.*)", re.DOTALL)


@attrs.frozen(eq=False)
class Symbols:
    """What the maps say of the functions of a trace. False where no map was given."""

    maps: Mapping[int, InstrumentationMap] = attrs.field(factory=dict)
    """By number of object, in the order in which they were named; 0 is the program itself."""
    demangled: bool = True
    given: Mapping[int, str] = attrs.field(factory=dict)
    """Names that the trace itself has, by id; they are used for what no map says."""
    whole_ids: bool = False
    """Whether ids have all 32 bits, as in basic mode."""

    @classmethod
    def of(
        cls,
        options: Mapping[str, Any],
        given: Mapping[int, str] | None = None,
        *,
        whole_ids: bool = False,
    ) -> Self:
        """Return the maps that ``instr_map`` and ``demangle`` of a reader's options ask for.

        ``instr_map`` is ``FILE``, or ``FILE,1=FILE,…`` with the numbers of shared objects. Raises
        UsageError for a text of another form, UnreadableError for a file that has no map.
        """
        text = str(options.get("instr_map") or "")
        maps = {number: read_map(path) for number, path in _files(text).items()}
        return cls(maps, bool(options.get("demangle", True)), given or {}, whole_ids)

    def __bool__(self) -> bool:
        return bool(self.maps)

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Entries of the maps that are invalid (INVALID_MAP_ENTRY)."""
        faults: list[Fault] = []
        for instr_map in self.maps.values():
            faults += instr_map.faults
        return tuple(faults)

    def object(self, id: int) -> int:
        """Number of the object that a function is in, as in its id."""
        number, _ = self._places(id)[0]
        return number

    def name(self, id: int) -> str | None:
        """Return the name of a function, demangled where that was asked for; None: not known."""
        name = self.function(id).name
        if name is None:
            name = self.given.get(id)
        return demangle(name) if name is not None and self.demangled else name

    def function(self, id: int) -> Function:
        """Return what the map of its object says of a function."""
        functions, own = self._found(id)
        return functions.of(own)

    def source(self, id: int) -> str | None:
        """file:line:column of a function; None: not known, as without debug information."""
        functions, own = self._found(id)
        return functions.source(own) or None

    def ambiguous(self, id: int) -> bool:
        """Return whether several of the maps may be of the function's object (AMBIGUOUS_OBJECT).

        Only for ids as the flight data recorder keeps them; those of basic mode are whole.
        """
        return bool(self.maps) and len(self._places(id)) > 1

    def _found(self, id: int) -> tuple[Functions, int]:
        """Return the functions among which a function is, and its id there."""
        number, own = self._places(id)[0]
        found = self.maps.get(number)
        return (NO_FUNCTIONS if found is None else found.functions), own

    def _places(self, id: int) -> list[tuple[int, int]]:
        """Return the numbers of the objects that an id may be of, with its id there.

        The likeliest first.
        """
        kept, own = divmod(id, OBJECT_IDS)
        main = self.maps.get(0)
        if kept and main is not None and main.functions.of(id).address:
            # A program of very many functions, which are numbered through.
            return [(0, id)]
        if self.whole_ids or id > MAX_FUNCTION_ID:
            return [(kept, own)]
        alike = [number for number in self.maps if number % KEPT_OBJECTS == kept]
        return [(number, own) for number in alike] or [(kept, own)]


def code_of(text: str | None, strings: StringPool) -> int:
    """Return the code of a text; -1 of none."""
    return -1 if text is None else strings.intern(text.encode(errors="surrogateescape"))


class FunctionNames:
    """Codes of the names of functions."""

    def __init__(
        self, options: Mapping[str, Any], strings: StringPool, *, whole_ids: bool = False
    ) -> None:
        self._options = options
        self.strings = strings
        self.given: Mapping[int, str] | None = None
        """The names that the trace itself has, once it is scanned; None if it cannot have any."""
        self.whole_ids = whole_ids
        """Whether the trace is of basic mode; see ``Symbols``."""
        self.functions: I64 = np.zeros(0, np.int64)
        """Ids of all functions of the trace, ascending."""

    @cached_property
    def symbols(self) -> Symbols:
        """What the maps say that the options name."""
        return Symbols.of(self._options, self.given, whole_ids=self.whole_ids)

    @cached_property
    def named(self) -> NDArray[np.bool_]:
        """By place in ``functions``: whether it has a name."""
        symbols = self.symbols
        if not (symbols or symbols.given):
            return np.zeros(self.functions.size, np.bool_)
        known = (symbols.name(id) is not None for id in map(int, self.functions))
        return np.fromiter(known, np.bool_, self.functions.size)

    def report(self, diagnostics: Diagnostics) -> None:
        """Report functions that have no name, and maps that are invalid."""
        for rule, value in self._findings():
            diagnostics.add(rule, value=value)

    def _findings(self) -> Iterator[tuple[Rule, object]]:
        """Yield the rules, each with a value."""
        ids = self.functions
        symbols = self.symbols
        missing = ids[~self.named]
        if not symbols:
            if missing.size:
                count: object = f"{missing.size} of {ids.size}"
                if self.given is None:
                    count = ids.size
                yield rules.NO_FUNCTION_NAMES, count
            return
        for fault in symbols.faults:
            yield rules.INVALID_MAP_ENTRY, fault
        if missing.size:
            more = f" and {missing.size - 1} more" if missing.size > 1 else ""
            yield rules.NAMES_MISSING, f"function {missing[0]}{more} of {ids.size}"
        for id in map(int, ids):
            if symbols.ambiguous(id):
                yield rules.AMBIGUOUS_OBJECT, id

    @cached_property
    def codes(self) -> NDArray[np.int32]:
        """By place in ``functions``: the code of the name, or of the number."""
        codes = np.empty(self.functions.size, np.int32)
        symbols = self.symbols
        named = self.named
        for place in map(int, np.flatnonzero(named)):
            codes[place] = code_of(symbols.name(int(self.functions[place])), self.strings)
        codes[~named] = self.strings.intern_numbers(self.functions[~named])
        return codes

    def of(self, functions: NDArray[np.uint32]) -> NDArray[np.int32]:
        """Return the codes of the names of functions, by their ids; same shape."""
        ids = self.functions
        codes = self.codes
        out: NDArray[np.int32] = arena.empty(functions.size, np.int32)
        if not ids.size:
            return out
        if int(ids[-1]) < max(NUMBERED, 4 * ids.size):
            table = np.full(int(ids[-1]) + 1, -1, np.int32)
            table[ids] = codes
            return table.take(functions, out=out, mode="clip")  # all of them are in the table
        for start in range(0, functions.size, FEW):
            some = slice(start, start + FEW)
            out[some] = codes[np.searchsorted(ids, functions[some])]
        return out


# --- Options --------------------------------------------------------------------------------------


def _files(text: str) -> dict[int, str]:
    """Return the files that an option names, by number of object."""
    if not text:
        return {}
    if Path(text).exists():
        return {0: text}
    found: dict[int, str] = {}
    for place, part in enumerate(text.split(",")):
        numbered = _NUMBERED.fullmatch(part)
        if numbered is None and place:
            raise _odd(text, f"{part!r} does not say of which object it is")
        number = 0
        path = part
        if numbered:
            number = int(numbered[1])
            path = numbered[2]
        if not path:
            raise _odd(text, f"{part!r} names no file")
        if number >= MOST_OBJECTS:
            raise _odd(text, f"object {number}: their numbers are below {MOST_OBJECTS}")
        if number in found:
            raise _odd(text, f"object {number} has two maps")
        found[number] = path
    return found


def _odd(text: str, why: str) -> UsageError:
    return UsageError(
        f"instr_map is {text!r}: {why}", remedy="write it as FILE, or as FILE,1=FILE,2=FILE"
    )
