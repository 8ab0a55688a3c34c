"""Rust's names of version 0 (RFC 2603), spelled as LLVM spells them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

__all__ = ["demangle_rust"]

STEPS: Final = 10_000
"""Parts of a name, those that references repeat included; real names have some hundred."""
DEEPEST: Final = 200
"""Parts within each other."""
LONGEST: Final = 1 << 16
"""Characters of a result."""
_TYPES: Final = {
    "a": "i8", "b": "bool", "c": "char", "d": "f64", "e": "str", "f": "f32", "h": "u8",
    "i": "isize", "j": "usize", "l": "i32", "m": "u32", "n": "i128", "o": "u128", "s": "i16",
    "t": "u16", "u": "()", "v": "...", "x": "i64", "y": "u64", "z": "!", "p": "_",
}  # fmt: skip
_SIGNED: Final = frozenset("ailnsx")
_UNSIGNED: Final = frozenset("hjmoty")
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


class _UnknownFormError(Exception):
    """What is not a name of version 0."""


def demangle_rust(mangled: str) -> str:
    """The name as in its source. Raises ValueError for one that is not understood."""
    if not mangled.startswith("_R") or not mangled.isascii():
        raise ValueError("not a Rust name of version 0")
    try:
        return _Name(mangled[2:]).whole()
    except (_UnknownFormError, IndexError, RecursionError) as error:
        raise ValueError("not understood") from error


class _Name:
    """A name behind its prefix, and the place up to which it has been read."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._out: list[str] = []
        self._length = 0
        self._printing = True
        self._steps = 0
        self._depth = 0
        self._bound = 0
        """Lifetimes that are bound around here."""

    def whole(self) -> str:
        """All of it, but for the crate that made it an instance."""
        if self._text[:1].isdigit():
            raise _UnknownFormError  # a version of the encoding that is not defined
        self._path(in_value=True)
        if self._at < len(self._text):
            self._printing = False
            self._path(in_value=False)
        if self._at < len(self._text):
            raise _UnknownFormError
        return "".join(self._out)

    # --- Characters ---

    def _next(self) -> str:
        letter = self._text[self._at]
        self._at += 1
        return letter

    def _take(self, letter: str) -> bool:
        if self._text[self._at : self._at + 1] != letter:
            return False
        self._at += 1
        return True

    def _put(self, text: str) -> None:
        if self._printing:
            self._length += len(text)
            if self._length > LONGEST:
                raise _UnknownFormError
            self._out.append(text)

    def _within(self, read: Callable[[], None]) -> None:
        """Read a part of a part."""
        self._steps += 1
        self._depth += 1
        if self._steps > STEPS or self._depth > DEEPEST:
            raise _UnknownFormError
        read()
        self._depth -= 1

    def _base62(self) -> int:
        if self._take("_"):
            return 0
        value = 0
        while not self._take("_"):
            digit = _DIGITS.find(self._next())
            value = value * 62 + digit
            if digit < 0 or value >> 64:
                raise _UnknownFormError
        return value + 1

    def _optional(self, tag: str) -> int:
        return self._base62() + 1 if self._take(tag) else 0

    def _decimal(self) -> int:
        start = self._at
        if self._take("0"):
            return 0
        while self._text[self._at : self._at + 1].isdigit():
            self._at += 1
        if start == self._at or self._at - start > 9:
            raise _UnknownFormError
        return int(self._text[start : self._at])

    def _identifier(self) -> tuple[str, int]:
        """A name, and its number among those that are the same."""
        number = self._optional("s")
        return self._undisambiguated(), number

    def _undisambiguated(self) -> str:
        unicode = self._take("u")
        length = self._decimal()
        self._take("_")
        name = self._text[self._at : self._at + length]
        if len(name) < length:
            raise _UnknownFormError
        self._at += length
        if not unicode:
            return name
        head, _, tail = name.rpartition("_")
        try:
            return f"{head}-{tail}".encode().decode("punycode") if head else _punycode(tail)
        except (UnicodeError, ValueError) as error:
            raise _UnknownFormError from error

    def _backref(self, start: int, read: Callable[[], None]) -> None:
        """Read what has been read before, at an earlier place."""
        place = self._base62()
        if place >= start:
            raise _UnknownFormError
        if not self._printing:
            return
        here, self._at = self._at, place
        self._within(read)
        self._at = here

    # --- Paths ---

    def _path(self, *, in_value: bool, leave_open: bool = False) -> bool:
        """A path; gives whether its generic arguments are left open, where that is asked for."""
        opened = False

        def read() -> None:
            nonlocal opened
            opened = self._one_path(in_value=in_value, leave_open=leave_open)

        self._within(read)
        return opened

    def _one_path(self, *, in_value: bool, leave_open: bool) -> bool:
        start = self._at
        tag = self._next()
        if tag == "C":
            self._put(self._identifier()[0])
        elif tag == "M":
            self._impl_path()
            self._put("<")
            self._type()
            self._put(">")
        elif tag in "XY":
            if tag == "X":
                self._impl_path()
            self._put("<")
            self._type()
            self._put(" as ")
            self._path(in_value=False)
            self._put(">")
        elif tag == "N":
            self._nested(in_value=in_value)
        elif tag == "I":
            self._path(in_value=in_value)
            self._put("::<" if in_value else "<")
            self._listed(self._generic)
            if leave_open:
                return True
            self._put(">")
        elif tag == "B":
            opened = False

            def read() -> None:
                nonlocal opened
                opened = self._one_path(in_value=in_value, leave_open=leave_open)

            self._backref(start, read)
            return opened
        else:
            raise _UnknownFormError
        return False

    def _impl_path(self) -> None:
        """The place of an implementation, which is not shown."""
        before, self._printing = self._printing, False
        self._optional("s")
        self._path(in_value=False)
        self._printing = before

    def _nested(self, *, in_value: bool) -> None:
        space = self._next()
        if not space.isalpha():
            raise _UnknownFormError
        self._path(in_value=in_value)
        name, number = self._identifier()
        if space.islower():
            if name:
                self._put(f"::{name}")
            return
        self._put("::{")
        self._put({"C": "closure", "S": "shim"}.get(space, space))
        self._put(f":{name}" if name else "")
        self._put(f"#{number}}}")

    def _listed(self, read: Callable[[], None]) -> int:
        """Parts up to an E, with commas between them; gives how many."""
        count = 0
        while not self._take("E"):
            if count:
                self._put(", ")
            read()
            count += 1
        return count

    def _generic(self) -> None:
        if self._take("L"):
            self._lifetime(self._base62())
        elif self._take("K"):
            self._const()
        else:
            self._type()

    def _lifetime(self, index: int) -> None:
        if index == 0:
            self._put("'_")
            return
        depth = self._bound - index
        if depth < 0:
            raise _UnknownFormError
        self._put(f"'{chr(97 + depth)}" if depth < 26 else f"'z{depth - 25}")

    def _binder(self) -> int:
        """Lifetimes that are bound here; gives how many were before."""
        before = self._bound
        count = self._optional("G")
        if count > STEPS:
            raise _UnknownFormError
        if count:
            self._put("for<")
            for place in range(count):
                self._bound += 1
                self._put(", " if place else "")
                self._lifetime(1)
            self._put("> ")
        return before

    # --- Types ---

    def _type(self) -> None:
        self._within(self._one_type)

    def _one_type(self) -> None:
        start = self._at
        tag = self._next()
        if tag in _TYPES:
            self._put(_TYPES[tag])
        elif tag == "A":
            self._put("[")
            self._type()
            self._put("; ")
            self._const()
            self._put("]")
        elif tag == "S":
            self._put("[")
            self._type()
            self._put("]")
        elif tag == "T":
            self._put("(")
            self._put(",)" if self._listed(self._type) == 1 else ")")
        elif tag in "RQ":
            self._put("&")
            if self._take("L"):
                index = self._base62()
                if index:
                    self._lifetime(index)
                    self._put(" ")
            self._put("mut " if tag == "Q" else "")
            self._type()
        elif tag in "PO":
            self._put("*const " if tag == "P" else "*mut ")
            self._type()
        elif tag == "F":
            self._function()
        elif tag == "D":
            self._dynamic()
        elif tag == "B":
            self._backref(start, self._one_type)
        else:
            self._at = start
            self._path(in_value=False)

    def _function(self) -> None:
        before = self._binder()
        self._put("unsafe " if self._take("U") else "")
        if self._take("K"):
            abi = "C" if self._take("C") else self._undisambiguated().replace("_", "-")
            self._put(f'extern "{abi}" ')
        self._put("fn(")
        self._listed(self._type)
        self._put(")")
        if not self._take("u"):
            self._put(" -> ")
            self._type()
        self._bound = before

    def _dynamic(self) -> None:
        self._put("dyn ")
        before = self._binder()
        first = True
        while not self._take("E"):
            self._put("" if first else " + ")
            first = False
            opened = self._path(in_value=False, leave_open=True)
            while self._take("p"):
                self._put(", " if opened else "<")
                opened = True
                self._put(f"{self._undisambiguated()} = ")
                self._type()
            self._put(">" if opened else "")
        self._bound = before
        if not self._take("L"):
            raise _UnknownFormError
        index = self._base62()
        if index:
            self._put(" + ")
            self._lifetime(index)

    # --- Constants ---

    def _const(self) -> None:
        self._within(self._one_const)

    def _one_const(self) -> None:
        start = self._at
        tag = self._next()
        if tag == "p":
            self._put("_")
        elif tag == "B":
            self._backref(start, self._one_const)
        elif tag in _SIGNED or tag in _UNSIGNED:
            negative = tag in _SIGNED and self._take("n")
            digits = self._hex()
            value = int(digits, 16)
            shown = str(value) if len(digits) <= 16 else f"0x{digits}"
            self._put(f"-{shown}" if negative else shown)
        elif tag == "b":
            digits = self._hex()
            if digits not in {"0", "1"}:
                raise _UnknownFormError
            self._put("true" if digits == "1" else "false")
        elif tag == "c":
            self._put(_character(int(self._hex(), 16)))
        else:
            raise _UnknownFormError

    def _hex(self) -> str:
        start = self._at
        while self._text[self._at] in "0123456789abcdef":
            self._at += 1
        digits = self._text[start : self._at]
        if not self._take("_") or not digits or (digits[0] == "0" and digits != "0"):
            raise _UnknownFormError
        return digits


def _punycode(tail: str) -> str:
    return tail.encode().decode("punycode")


def _character(point: int) -> str:
    """A character as Rust writes it."""
    if point > 0x10FFFF or 0xD800 <= point < 0xE000:
        raise _UnknownFormError
    named = {9: r"\t", 13: r"\r", 10: r"\n", 34: '"', 39: r"\'", 92: r"\\"}
    if point in named:
        return f"'{named[point]}'"
    return f"'{chr(point)}'" if 32 <= point < 127 else f"'\\u{{{point:x}}}'"
