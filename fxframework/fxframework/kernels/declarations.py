"""What is declared to C: types, methods and classes, and errors about them."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path

__all__ = [
    "DTYPES",
    "FAILED",
    "LARGE",
    "MARKS",
    "MOST",
    "NUMBERS",
    "OBJECT",
    "PYTHON",
    "REAL",
    "RESULTS",
    "VOID",
    "WHOLE",
    "Class",
    "DeclarationError",
    "Method",
    "Type",
    "number",
]

NUMBERS = {
    "i8": "signed char",
    "u8": "unsigned char",
    "i16": "short",
    "u16": "unsigned short",
    "i32": "int",
    "u32": "unsigned int",
    "i64": "long long",
    "u64": "unsigned long long",
    "f32": "float",
    "f64": "double",
    "flag": "bint",
}
DTYPES = {
    "signed char": "i1", "unsigned char": "u1", "short": "i2", "unsigned short": "u2", "int": "i4",
    "unsigned int": "u4", "long long": "i8", "unsigned long long": "u8", "float": "f4",
    "double": "f8",
}  # fmt: skip
PYTHON = {"int": "long long", "bool": "bint", "float": "double"}
"""Types of Python as types of parameters and variables of C."""
RESULTS = {*NUMBERS, "status", "void", "Fallible"}
MARKS = {"with_gil", "public", "virtual", "inline", "external"}
FAILED = -9
"""What a number's method returns when it raised; it may also be a result, but is rare as one."""
MOST = (1 << 63) - 1
LARGE = 1 << 31


class DeclarationError(Exception):
    """A declaration is missing, contradicts another one, or cannot be compiled."""

    def __init__(self, file: Path, line: int, text: str) -> None:
        super().__init__(f"{file}:{line}: {text}")


@dataclass(frozen=True)
class Type:
    """A type of C: a number, an array of numbers, a class of a kernel, or a Python object."""

    c: str
    kind: str
    """``whole``, ``real``, ``array``, ``class``, ``object`` or ``void``."""
    owner: tuple[str, str] = ("", "")
    """Module and name of a class."""

    @property
    def element(self) -> Type:
        """Type of an array's elements."""
        return number(self.c.removesuffix("[::1]").removeprefix("const "))


def number(c: str) -> Type:
    """Return the type of a number."""
    return Type(c, "real" if c in {"float", "double"} else "whole")


WHOLE, REAL, VOID = number("long long"), number("double"), Type("void", "void")
OBJECT = Type("object", "object")


@dataclass
class Method:
    """A C method or function."""

    name: str
    node: ast.FunctionDef
    parameters: list[tuple[str, Type | None, str | None]]
    """Name, type, and default; ``self`` has no type."""
    result: Type
    raising: str
    marks: frozenset[str]
    overrides: bool = False
    locals: dict[str, Type] = field(default_factory=dict)

    @property
    def can_raise(self) -> bool:
        """Whether it may raise."""
        return self.raising != "noexcept"

    @property
    def final(self) -> bool:
        """Whether no subclass overrides it."""
        return "virtual" not in self.marks and not self.overrides

    def signature(self) -> tuple[object, ...]:
        """What a method that overrides it must have too."""
        return ([each[1] for each in self.parameters], self.result, self.raising)

    def declaration(self) -> str:
        """The line of the header."""
        public = "public" in self.marks
        result = self.result.c
        if (public or self.can_raise) and result == "long long":
            # Cython 3.3 writes the value that says "raised" as -9LLLL for a `long long`.
            result = "int64_t"
        taken = [
            name if kind is None else f"{kind.c} {name}{'=*' if default is not None else ''}"
            for name, kind, default in self.parameters
        ]
        words = [] if "external" in self.marks else ["cpdef" if public else "cdef"]
        words += ["inline"] if "inline" in self.marks else []
        words += [result, f"{self.name}({', '.join(taken)})", self.raising]
        return " ".join([*words, "with gil" if "with_gil" in self.marks else "nogil"])


@dataclass
class Class:
    """A class with attributes of C."""

    name: str
    node: ast.ClassDef
    base: tuple[str, str] | None
    final: bool
    attributes: dict[str, Type] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    columns: list[str] = field(default_factory=list)
    methods: dict[str, Method] = field(default_factory=dict)
