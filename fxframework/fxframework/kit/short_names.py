"""Short names: C++ functions without the arguments of templates and the types of parameters."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from fxframework.model.capture import Capture, SameRows
from fxframework.model.table import Table

_TOKEN = re.compile(
    r"""
    (?<![\w$])operator\s*                              # an operator whose name has brackets
    (?: \(\) | \[\] | <=> | <<= | >>= | ->\*? | << | >> | <= | >= | < | > )
    | ->                                               # in an expression
    | [<>()]
    """,
    re.VERBOSE,
)
_BEFORE_LIST = re.compile(r"[\w$)\]}'>]")
"""What a list of arguments follows: the end of a name, or of another list."""


def short_cxx(name: str) -> str:
    """Return the name of a C++ function with its lists of arguments and parameters emptied.

    ``ns::f<int>(char*)::{lambda(int)#1}`` becomes ``ns::f<>()::{lambda()#1}``. Brackets without
    their other half, those of operators, and those that follow no name stay as they are, as in
    ``(anonymous namespace)::f``. Any text is allowed; time is linear in its length.
    """
    parts = []
    copied = 0
    for start, end in _lists(name):
        if start >= copied:  # else it is within a list that was emptied
            parts.append(name[copied : start + 1])
            copied = end
    return "".join(parts) + name[copied:]


def _lists(name: str) -> list[tuple[int, int]]:
    """Return where lists of arguments open and close, in the order of their beginnings."""
    lists: list[tuple[int, int]] = []
    open_brackets: list[tuple[str, int, bool]] = []
    operator_end = -1
    for token in _TOKEN.finditer(name):
        text = token.group()
        start = token.start()
        if len(text) > 1:
            operator_end = token.end() if text != "->" else -1
        elif text in "<(":
            # Demanglers write `operator< <int>`, since `operator<<int>` is another operator.
            follows_operator = operator_end >= 0 and name[operator_end:start] in {"", " "}
            follows_name = start > 0 and _BEFORE_LIST.match(name, start - 1) is not None
            is_list = follows_operator or follows_name
            if is_list or text == "(":
                open_brackets.append((text, start, is_list))
        else:
            opener = "<" if text == ">" else "("
            # A parenthesis also ends comparisons in it; `>` that closes nothing is one.
            while text == ")" and open_brackets and open_brackets[-1][0] != opener:
                open_brackets.pop()
            if open_brackets and open_brackets[-1][0] == opener:
                _, opened, is_list = open_brackets.pop()
                if is_list:
                    lists.append((opened, start))
    return sorted(lists)


class ShortNames(SameRows):
    """A capture whose slices and functions have short names.

    Names that become equal are one function where functions are told apart by name.
    """

    def __init__(self, whole: Capture) -> None:
        super().__init__(whole)
        self._named_tables = {"slices"}
        if whole.calls is not None:
            self._named_tables.add(whole.calls.functions)
        self._short_codes = np.zeros(1, np.int32)
        """Code of the short name by that of the name, 0 where it is not known yet."""

    def _part(self, table: Table) -> Table:
        if table.name not in self._named_tables:
            return table
        return table.replaced(name=self._short(table.array("name")))

    def _short(self, codes: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the codes of the short names; -1 for none stays."""
        distinct = np.unique(codes[codes > 0])  # 0 is the empty string
        if distinct.size and distinct[-1] >= self._short_codes.size:
            self._short_codes = np.append(self._short_codes, np.zeros(int(distinct[-1]), np.int32))
        for code in distinct[self._short_codes[distinct] == 0].tolist():
            name = self.strings.bytes_of(code).decode(errors="surrogateescape")
            short_name = short_cxx(name).encode(errors="surrogateescape")
            self._short_codes[code] = self.strings.intern(short_name)
        return np.where(codes < 0, codes, self._short_codes[codes])
