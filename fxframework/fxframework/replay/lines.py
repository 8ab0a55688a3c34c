"""Lines: finds the line of each value in a TOML text, for messages.

``tomllib`` does not report positions. ``lines_of`` scans a text that ``tomllib`` has accepted, so
it only needs to recognize headers, keys, strings and brackets.
"""

from __future__ import annotations

import re

KEY_PART = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
"""A bare or a quoted part of a key, such as the three of ``a."b.c".'d'``."""
KEY = re.compile(rf"[ \t]*({KEY_PART}(?:[ \t]*\.[ \t]*{KEY_PART})*)[ \t]*=[ \t]*")
HEADER = re.compile(r"[ \t]*(\[\[?)[ \t]*(.*?)[ \t]*\]\]?[ \t]*(?:#.*)?$")
PART = re.compile(KEY_PART)
STRING = re.compile(r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'',
                    re.DOTALL)  # fmt: skip
BLANK = re.compile(r"(?:\s|#[^\n]*)*")
PLAIN = re.compile(r"[^,\]}\n#]*")
"""A value that is not a string, list or table."""


def lines_of(text: str) -> dict[str, int]:
    """Return the line, from 1, of each path, such as ``step[3].args.count``."""
    return _TextScan(text).lines


def line_of(lines: dict[str, int], path: str) -> int | None:
    """Return the line of a path, or else of the nearest enclosing path; None if there is none."""
    while path:
        if path in lines:
            return lines[path]
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return None


def _member(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


class _TextScan:
    """A scan of a text."""

    def __init__(self, text: str) -> None:
        self.lines: dict[str, int] = {}
        self._text = text
        self._position = 0
        self._last_index: dict[str, int] = {}
        """By the path of an array of tables, the index of its last table so far."""
        table_path = ""
        while not self._is_at_end():
            self._skip(BLANK)
            line_end = text.find("\n", self._position)
            if line_end < 0:
                line_end = len(text)
            line = text[self._position : line_end]
            header = HEADER.match(line)
            if header is not None:
                brackets, name = header.groups()
                table_path = self._enter_table(name, is_array=brackets == "[[")
                self._position += len(line)
            elif KEY.match(text, self._position):
                self._scan_pair(table_path)
            else:
                self._position += max(len(line), 1)

    def _is_at_end(self) -> bool:
        return self._position >= len(self._text)

    def _skip(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self._text, self._position)
        if match is not None:
            self._position = match.end()

    def _note_line(self, path: str) -> None:
        line = self._text.count("\n", 0, self._position) + 1
        self.lines.setdefault(path, line)

    def _enter_table(self, name: str, *, is_array: bool) -> str:
        """Enter a table, of an array if its header has two brackets; return its path."""
        path = ""
        parts = [part.strip("\"'") for part in PART.findall(name)]
        for index, part in enumerate(parts):
            path = _member(path, part)
            is_last = index == len(parts) - 1
            if is_last and is_array:
                self._last_index[path] = self._last_index.get(path, -1) + 1
            # [step.args] after [[step]] is within the last step: step[3].args
            if path in self._last_index:
                path = f"{path}[{self._last_index[path]}]"
        self._note_line(path)
        return path

    def _scan_pair(self, table_path: str) -> None:
        """Scan a key and its value."""
        match = KEY.match(self._text, self._position)
        assert match is not None  # noqa: S101 (checked by the caller)
        path = table_path
        for part in PART.findall(match[1]):
            path = _member(path, part)
            path = path.replace('"', "").replace("'", "")
        self._note_line(path)
        self._position = match.end()
        self._scan_value(path)

    def _scan_value(self, path: str) -> None:
        if self._text.startswith("[", self._position):
            self._scan_list(path)
        elif self._text.startswith("{", self._position):
            self._scan_inline_table(path)
        else:
            string = STRING.match(self._text, self._position)
            if string is not None:
                self._position = string.end()
            else:
                self._skip(PLAIN)

    def _scan_list(self, path: str) -> None:
        self._position += 1
        index = 0
        while True:
            self._skip(BLANK)
            if self._is_at_end() or self._text.startswith("]", self._position):
                self._position += 1
                return
            self._note_line(f"{path}[{index}]")
            self._scan_value(f"{path}[{index}]")
            index += 1
            self._skip_comma()

    def _scan_inline_table(self, path: str) -> None:
        self._position += 1
        while True:
            self._skip(BLANK)
            if self._is_at_end() or not KEY.match(self._text, self._position):
                self._position += 1
                return
            self._scan_pair(path)
            self._skip_comma()

    def _skip_comma(self) -> None:
        self._skip(BLANK)
        if self._text.startswith(",", self._position):
            self._position += 1
