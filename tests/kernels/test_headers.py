"""Headers: what the annotations of a kernel declare to C, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fxframework.kernels.declarations import DeclarationError
from fxframework.kernels.headers import Kernels, Module

from ..cases import cases

NAMES = "Array, Bytes, Column, Fallible, View, f64, flag, i32, i64, inline, public, status, u8, u64"
HEAD = f"""from __future__ import annotations
from typing import final
from fx_some.numbers import BIG, HALF, LEAST, ORDER, SMALL, WHOLE
from fx_some import numbers
from fxframework.kernels.annotations import {NAMES}, virtual, void, with_gil
from fxframework.kernels.kernel import Kernel
from fxframework.kernels.notes import Notes
from fxframework.kernels.rows import Rows
"""
NUMBERS = """from enum import IntEnum
class Kind(IntEnum):
    SMALL = 7
BIG, HALF, LEAST = 2**64 - 1, 0.5, -(2**63)
SMALL, = map(int, Kind)
from fxframework.io.words import Bits
ORDER, WHOLE = Bits("order", 4, 43), Bits("value", 0, 63)
"""


def module(tmp_path: Path, source: str, name: str = "kernel") -> Module:
    folder = tmp_path / "fx_some"
    folder.mkdir(exist_ok=True)
    (folder / "numbers.py").write_text(NUMBERS)
    (folder / f"{name}.py").write_text(HEAD + source)
    kernels = Kernels({"fx_some": folder})
    try:
        found = kernels.module(f"fx_some.{name}")
        assert found is not None
        assert found.header
    finally:
        kernels.constants.close()
    return found


CLASS = """
class A(Kernel):
    data: Bytes
    at: i64
    notes: Notes

    def __init__(self, data, notes):
        self.data = data
        self.at = 0
        self.notes = notes

"""
DECLARED = {
    "def f(self, n: int) -> i64:\n        m = n\n        return m": (
        '@cython.final\n    @cython.locals(m="long long")\n'
        "    cdef long long f(self, long long n) noexcept nogil"
    ),
    "def f(self, n) -> status:\n        self.notes.add(n, 0, 0, 0)\n        return 0": (
        "cdef int f(self, long long n) except -1 nogil"
    ),
    "def step(self) -> Fallible[i64]:\n        return 0": (
        "cdef int64_t step(self) except? -9 nogil"
    ),
    "@virtual\n    def f(self) -> void:\n        self.at = 1": "cdef void f(self) noexcept nogil",
    "@with_gil\n    def f(self) -> status:\n        return 0": (
        "cdef int f(self) except -1 with gil"
    ),
    "def f(self, n: u64 = 0) -> u64:\n        m: u64 = n\n        return m": (
        '@cython.locals(m="unsigned long long")\n'
        "    cdef unsigned long long f(self, unsigned long long n=*) noexcept nogil"
    ),
    "def f(self, a: Array[i32], n: f64) -> f64:\n        x = n * a[0]\n        return x": (
        '@cython.locals(x="double")\n    cdef double f(self, int[::1] a, double n) noexcept nogil'
    ),
    "def f(self) -> i64:\n        d = self.data\n        n = d[0] + len(d)\n        return n": (
        '@cython.locals(n="long long")\n    cdef long long f(self) noexcept nogil'
    ),
}


@cases("method", DECLARED)
def test_methods_are_declared(method: str, tmp_path: Path) -> None:
    found = module(tmp_path, f"{CLASS}    {method}\n")
    assert "cdef class A(Kernel):\n    cdef const unsigned char[::1] data" in found.header
    assert DECLARED[method] in found.header
    assert found.uses == [f"fxframework.kernels.{name}" for name in ("kernel", "notes", "rows")]


def test_constants_are_literals_of_64_bits(tmp_path: Path) -> None:
    text = """    def f(self, n: i64) -> i64:
        if n == SMALL or n == LEAST:
            return n << 1 | 1 << n | 0x80000000
        return n & BIG if n < HALF else numbers.SMALL
    def g(self):
        return SMALL
"""
    found = module(tmp_path, CLASS + text)
    for line in (
        'const long long _SMALL "7LL"',
        'const long long _LEAST "(-0x7fffffffffffffffLL - 1)"',
        'const long long _1 "1LL"',
        'const long long _0x80000000 "2147483648LL"',
        'const unsigned long long _BIG "0xffffffffffffffffULL"',
        'const double _HALF "0.5"',
    ):
        assert line in found.header
    assert "        if n == _SMALL or n == _LEAST:\n" in found.staged
    assert "            return n << 1 | _1 << n | _0x80000000\n" in found.staged
    assert "        return n & _BIG if n < _HALF else _SMALL\n" in found.staged
    assert "        return SMALL\n" in found.staged  # in a method of Python
    assert found.sources[0] == "fx_some.numbers"


def test_fields_of_words_are_shifts_and_masks(tmp_path: Path) -> None:
    text = """    def f(self, n: i64) -> i64:
        m = ORDER.get(self.data[n] + SMALL)
        return numbers.ORDER.put(
            ORDER.get(m)) | m
    def g(self):
        return ORDER.get(1)
"""
    found = module(tmp_path, CLASS + text)
    assert "        m = ((self.data[n] + _SMALL) >> 4 & _0xffffffffff)\n" in found.staged
    put = "((_0 | (\n((m) >> 4 & _0xffffffffff))) << 4)"
    assert f"        return {put} | m\n" in found.staged
    assert 'const long long _0xffffffffff "1099511627775LL"' in found.header
    assert "        return ORDER.get(1)\n" in found.staged  # in a method of Python
    assert '@cython.locals(m="long long")' in found.header
    assert found.sources[0] == "fx_some.numbers"


def test_columns_are_listed_once(tmp_path: Path) -> None:
    found = module(
        tmp_path,
        "@final\nclass Some(Rows):\n    at: Column[i64]\n    kind: Column[u8]\n",
    )
    assert "@cython.final\ncdef class Some(Rows):\n    cdef long long[::1] at" in found.header
    assert "COLUMNS = (('at', 'i8'), ('kind', 'u1'))" in found.staged


def test_functions_can_be_included(tmp_path: Path) -> None:
    """What is generated from the declaration of a format: accessors, and constants."""
    module(
        tmp_path,
        "@inline\ndef kind_of(word: i64) -> i64:\n    low = word >> 8\n    return low & SMALL\n",
        "access",
    )
    found = module(
        tmp_path,
        "from fx_some.access import kind_of\n"
        f"{CLASS}    def f(self, n: i64) -> i64:\n        k = kind_of(n)\n        return k\n",
    )
    assert "from fx_some.access cimport kind_of" in found.header
    assert '@cython.locals(k="long long")' in found.header
    assert "import kind_of" not in found.staged
    access = found.kernels.module("fx_some.access")
    assert access is not None
    assert access.included
    assert access.header.endswith(
        "cdef inline long long kind_of(long long word) noexcept nogil:\n    cdef long long low\n"
        "    low = word >> 8\n    return low & _SMALL\n"
    )


def test_a_module_can_have_source_of_c(tmp_path: Path) -> None:
    found = module(
        tmp_path,
        "from fxframework.kernels.annotations import c_source, external\n"
        'TEXT: c_source = """\nstatic int twice(int n) { return 2 * n; }\n"""\n'
        "@external\ndef twice(n: i32) -> i32:\n    return 2 * n\n"
        "def four_times(n: int) -> int:\n    return twice(twice(n))\n",
    )
    assert (
        'cdef extern from *:\n    """\n    \n'
        '    static int twice(int n) { return 2 * n; }\n    """\n'
        "    int twice(int n) noexcept nogil\n"
    ) in found.header
    assert "def twice" not in found.staged
    assert "return twice(twice(n))" in found.staged


REFUSED = {
    "12: n is declared twice": "def f(self) -> void:\n        n: i64 = 0\n        n: u64 = 0",
    "A.more is not declared": "def f(self) -> void:\n        self.more = 0",
    "A.b is not set in __init__": "b: i64",
    "A.at is declared twice": "at: u64",
    "i46 is not defined": "b: i46",
    "a number of C cannot be None": "b: i64 | None",
    "Array[str] is not the type of a value": "b: Array[str]",
    "status is not the type of a value": "b: status",
    "f cannot raise and calls g, which may": (
        "def f(self) -> void:\n        self.g()\n    def g(self) -> status:\n        return 0"
    ),
    "f cannot raise and calls add, which may": (
        "def f(self) -> void:\n        self.notes.add(0, 0, 0, 0)"
    ),
    "step of A has other types": "def step(self) -> i64:\n        return 0",
    "f of B overrides a method that is not @virtual": (
        "def f(self) -> void:\n        pass\nclass B(A):\n    def f(self) -> void:\n        pass"
    ),
    "f is @public: make A @final": "@public\n    def f(self) -> i64:\n        return 0",
    "A.f is with_gil, but its result is not of C": (
        "@with_gil\n    def f(self) -> int:\n        pass"
    ),
    "f: parameters of C are by position": "def f(self, *, n: i64) -> void:\n        pass",
    "n is a parameter already": "def f(self, n: i64) -> void:\n        n: u64 = 0",
    "WHOLE is a whole word": "def f(self) -> i64:\n        return WHOLE.get(self.at)",
    "the value of NONE cannot be computed": "def f(self) -> i64:\n        return numbers.NONE",
}


@cases("what", REFUSED)
def test_what_contradicts_itself_is_refused_with_its_line(what: str, tmp_path: Path) -> None:
    text = REFUSED[what]
    # Attributes come first in a class.
    source = f"{CLASS}    {text}\n"
    with pytest.raises(DeclarationError) as caught:
        module(tmp_path, source)
    file, line, message = str(caught.value).split(":", 2)
    assert Path(file) == tmp_path / "fx_some" / "kernel.py"
    assert re.search(re.escape(what.partition(": ")[2] if what[0] == "1" else what), message)
    assert 9 < int(line) <= 9 + source.count("\n")


def test_names_are_imported_one_by_one(tmp_path: Path) -> None:
    with pytest.raises(DeclarationError, match=r"import the names of fx_some\.numbers"):
        module(tmp_path, "from fx_some.numbers import *\n")
