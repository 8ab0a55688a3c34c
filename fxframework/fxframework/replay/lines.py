"""Lines: finds the line of each value in a TOML text, for messages.

``tomllib`` does not report positions. ``lines_of`` scans a text that ``tomllib`` has accepted, so
it only needs to recognize headers, keys, strings and brackets.
"""

from __future__ import annotations

import re

KEY_PART = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
"""A bare or a quoted part of a key, such as the three of ``a."b.c".'d'``."""
KEY = rf"{KEY_PART}(?:[ \t]*\.[ \t]*{KEY_PART})*"
PART = re.compile(KEY_PART)
HEADER = re.compile(rf"(\[\[?)[ \t]*({KEY})[ \t]*\]\]?")
TOKEN = re.compile(
    rf"""(?P<blank>\s+|\#[^\n]*)
    |(?P<long>\"\"\"(?:[^\\]|\\.)*?\"{{3,5}}|'''.*?'{{3,5}})
    |(?P<key>{KEY})[ \t]*=
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'[^'\n]*')
    |(?P<bracket>[][{{}},])
    |(?P<plain>[^][{{}},\s\#]+)""",
    re.DOTALL | re.VERBOSE,
)
"""A blank, a key, a value or a bracket; a long string may have several lines."""


def lines_of(text: str) -> dict[str, int]:
    """Return the line, from 1, of each path, such as ``step[3].args.count``."""
    lines: dict[str, int] = {}
    tables = _Tables()
    value_path = ""
    """The path of the value that comes next, if it has a key."""
    around: list[tuple[str, int]] = []
    """The lists and inline tables that are open: their paths, and the indexes of their items."""
    position = 0
    line = 1
    while position < len(text):
        header = None
        # Where a value is to come, or within a list, a bracket begins no table.
        if not value_path and not around:
            header = HEADER.match(text, position)
        token = header or TOKEN.match(text, position)
        assert token is not None  # noqa: S101 (any character begins a token)
        if header is not None:
            is_array = header[1] == "[["
            lines.setdefault(tables.enter(header[2], is_array=is_array), line)
        elif token["key"]:
            path_around = around[-1][0] if around else tables.path
            value_path = _joined(path_around, token["key"])
            lines.setdefault(value_path, line)
        elif token[0] in {"]", "}"}:
            del around[-1:]
            value_path = ""
        elif token[0] == ",":
            around[-1:] = [(path, index + 1) for path, index in around[-1:]]
        elif not token["blank"]:
            if not value_path and around:  # an item of a list has no key
                path, index = around[-1]
                value_path = f"{path}[{index}]"
            lines.setdefault(value_path, line)
            if token[0] in {"[", "{"}:
                around.append((value_path, 0))
            value_path = ""
        position = token.end()
        line += token[0].count("\n")
    return lines


def line_of(lines: dict[str, int], path: str) -> int | None:
    """Return the line of a path, or else of the nearest enclosing path; None if there is none."""
    while path:
        if path in lines:
            return lines[path]
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return None


def _joined(path: str, key: str) -> str:
    """Return the path of a key, which may have several parts, below a path."""
    parts = [part.strip("\"'") for part in PART.findall(key)]
    return ".".join([path, *parts] if path else parts)


class _Tables:
    """The path of the table that a text is in."""

    def __init__(self) -> None:
        self.path = ""
        self._last_index: dict[str, int] = {}
        """By the path of an array of tables, the index of its last table so far."""

    def enter(self, name: str, *, is_array: bool) -> str:
        """Enter a table, of an array if its header has two brackets; return its path."""
        parts = PART.findall(name)
        self.path = ""
        for number, part in enumerate(parts, 1):
            self.path = _joined(self.path, part)
            if is_array and number == len(parts):
                self._last_index[self.path] = self._last_index.get(self.path, -1) + 1
            # [step.args] after [[step]] is within the last step: step[3].args
            if self.path in self._last_index:
                self.path += f"[{self._last_index[self.path]}]"
        return self.path
