"""Lines: finds the line of each value in a TOML text, for messages.

``tomllib`` does not report positions. ``lines_of`` scans a text that ``tomllib`` has accepted, so
it only needs to recognize headers, keys, strings and brackets.
"""

from __future__ import annotations

import re

__all__ = ["line_of", "lines_of"]

KEY = re.compile(r'[ \t]*((?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|\'[^\']*\')(?:[ \t]*\.[ \t]*'
                 r'(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|\'[^\']*\'))*)[ \t]*=[ \t]*')  # fmt: skip
HEADER = re.compile(r"[ \t]*(\[\[?)[ \t]*(.*?)[ \t]*\]\]?[ \t]*(?:#.*)?$")
PART = re.compile(r'[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|\'[^\']*\'')
STRING = re.compile(r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'',
                    re.DOTALL)  # fmt: skip
BLANK = re.compile(r"(?:\s|#[^\n]*)*")
PLAIN = re.compile(r"[^,\]}\n#]*")


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


class _TextScan:
    """A scan of a text."""

    def __init__(self, text: str) -> None:
        self.lines: dict[str, int] = {}
        self._text = text
        self._at = 0
        table = ""
        rounds: dict[str, int] = {}
        while self._at < len(text):
            self._skip(BLANK)
            line_end = text.find("\n", self._at)
            line = text[self._at : len(text) if line_end < 0 else line_end]
            header = HEADER.match(line)
            if header is not None:
                table = self._header(header[2], array=header[1] == "[[", rounds=rounds)
                self._at += len(line)
            elif KEY.match(text, self._at):
                self._pair(table)
            else:
                self._at += max(len(line), 1)

    def _skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self._text, self._at)
        if found is not None:
            self._at = found.end()

    def _note(self, path: str) -> None:
        self.lines.setdefault(path, self._text.count("\n", 0, self._at) + 1)

    def _header(self, name: str, *, array: bool, rounds: dict[str, int]) -> str:
        """Enter a table; return its path."""
        path = ""
        parts = [part.strip("\"'") for part in PART.findall(name)]
        for number, part in enumerate(parts):
            path = f"{path}.{part}" if path else part
            last = number == len(parts) - 1
            if last and array:
                rounds[path] = rounds.get(path, -1) + 1
            if path in rounds:
                path = f"{path}[{rounds[path]}]"
        self._note(path)
        return path

    def _pair(self, table: str) -> None:
        """Scan a key and its value."""
        found = KEY.match(self._text, self._at)
        assert found is not None  # noqa: S101 (checked by the caller)
        path = table
        for part in PART.findall(found[1]):
            path = f"{path}.{part}" if path else part
            path = path.replace('"', "").replace("'", "")
        self._note(path)
        self._at = found.end()
        self._value(path)

    def _value(self, path: str) -> None:
        text = self._text
        if text.startswith("[", self._at):
            self._at += 1
            number = 0
            while True:
                self._skip(BLANK)
                if self._at >= len(text) or text[self._at] == "]":
                    self._at += 1
                    return
                self._note(f"{path}[{number}]")
                self._value(f"{path}[{number}]")
                number += 1
                self._comma()
        if text.startswith("{", self._at):
            self._at += 1
            while True:
                self._skip(BLANK)
                if self._at >= len(text) or not KEY.match(text, self._at):
                    self._at += 1
                    return
                self._pair(path)
                self._comma()
        string = STRING.match(text, self._at)
        self._at = string.end() if string is not None else self._at
        if string is None:
            self._skip(PLAIN)

    def _comma(self) -> None:
        self._skip(BLANK)
        if self._text.startswith(",", self._at):
            self._at += 1
