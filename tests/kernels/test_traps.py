"""What C does differently from Python, silently: no kernel may have any of it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("fxframework", "plugins", "emulator")
KERNELS = sorted(
    header
    for folder in FOLDERS
    for header in (ROOT / folder).rglob("*.pxd")
    if header.with_suffix(".py").exists()
)
LARGE = 1 << 31
WIDE = re.compile(
    r"^cdef (?:const )?(?:unsigned )?(?:long long|u?int64_t) (\w+(?:, \w+)*)$", re.MULTILINE
)
"""Names of module constants of 64 bits."""
ATTRIBUTE = re.compile(
    r"^    cdef (?!.*\()(?:readonly |public )?(?:const )?[\w ]*?(?:\[::1\] )?(\w+(?:, \w+)*)$",
    re.MULTILINE,
)


def traps(source: str, header: str) -> Iterator[str]:
    """What a kernel has that it must not have, with the line of the source."""
    tree = ast.parse(source)
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        for node in ast.walk(function):
            match node:
                case ast.BinOp(ast.Constant(int()), ast.LShift(), right):
                    if not isinstance(right, ast.Constant):
                        yield f"{node.lineno}: shifts a literal, which has the width of C's long"
                case ast.Constant(int(value)) if abs(value) >= LARGE and value is not True:
                    yield f"{node.lineno}: {value:#x} is a Python object: name it in the header"
    wide = {name.strip() for names in WIDE.findall(header) for name in names.split(",")}
    # What __init__ alone uses may stay a number of Python.
    used = {
        part.id
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef) and function.name != "__init__"
        for part in ast.walk(function)
        if isinstance(part, ast.Name)
    }
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            large = [
                part for part in ast.walk(node.value)
                if isinstance(part, ast.Constant) and isinstance(part.value, int)
                and abs(part.value) >= LARGE
            ]  # fmt: skip
            name = node.targets[0].id
            if large and name not in wide and name in used:
                yield f"{node.lineno}: {name} has no type of 64 bits in the header"
    if re.search(r"\b(?<!long )long(?! long)\b(?!\w)", re.sub(r"cython\.\w+", "", header)):
        yield "0: the header has a C long, of 32 bits on Windows"
    classes = re.split(r"^cdef class ", header, flags=re.MULTILINE)[1:]
    for declared in classes:
        name = re.match(r"\w+", declared)
        assert name is not None
        found = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name[0]]
        if found:
            yield from class_traps(found[0], declared)


def class_traps(node: ast.ClassDef, declared: str) -> Iterator[str]:
    methods = {one.name: one for one in node.body if isinstance(one, ast.FunctionDef)}
    first: set[str] = set()
    called = ["__init__"]  # and the methods that it calls
    for name in called:
        for part in ast.walk(methods[name]) if name in methods else ():
            if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store):
                first.add(part.attr)
            elif isinstance(part, ast.Attribute) and part.attr not in called:
                called.append(part.attr)
    # Columns that a base class makes room for, by the names that the class lists.
    for listed in (one for one in node.body if isinstance(one, ast.Assign)):
        for part in ast.walk(listed.value):
            first |= set(str(part.value).split()) if isinstance(part, ast.Constant) else set()
    for names in ATTRIBUTE.findall(declared):
        for attribute in names.split(", "):
            if attribute not in first:
                yield f"{node.lineno}: {node.name}.{attribute} is not set in __init__"
    raising, silent = set(), set()
    for text in re.split(r"\n    (?=cp?def |@)", declared):
        method = re.search(r"cp?def [\w \[\]:]*?(\w+)\(", text)
        if method is not None:
            (silent if "noexcept" in text else raising).add(method[1])
    for name in silent & methods.keys():
        for call in ast.walk(methods[name]):
            match call:
                case ast.Call(ast.Attribute(ast.Name("self"), called)) if called in raising:
                    yield f"{call.lineno}: {name} is noexcept and calls {called}, which raises"


@pytest.mark.parametrize("header", KERNELS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_kernel_has_a_trap(header: Path) -> None:
    found = list(traps(header.with_suffix(".py").read_text("utf-8"), header.read_text("utf-8")))
    assert found == []


BROKEN = {
    "shifts a literal": ("def f(n):\n    return 1 << n\n", ""),
    "0x80000000 is a Python object": ("def f(n):\n    return n & 0x80000000\n", ""),
    "MASK has no type": (
        "MASK = 0xFFFFFFFF\ndef f(n):\n    return n & MASK\n",
        "cdef int MASK\n",
    ),
    "C long": ("", "cdef unsigned long x\n"),
    "A.b is not set": (
        "class A:\n    def __init__(self):\n        self.a = 1\n",
        "cdef class A:\n    cdef readonly long long a\n    cdef const int[::1] b\n",
    ),
    "f is noexcept and calls g": (
        "class A:\n    def f(self):\n        self.g()\n    def g(self):\n        pass\n",
        """cdef class A:
    @cython.final
    cdef int f(self) noexcept nogil
    cdef int g(self) except -1 nogil
""",
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_traps_are_found(what: str) -> None:
    assert any(what in trap for trap in traps(*BROKEN[what]))


def test_what_is_no_trap() -> None:
    source = "MASK = 0xFFFFFFFF\ndef f(n):\n    return (1 << 3) & MASK\n"
    assert list(traps(source, "cdef unsigned long long MASK\ncdef long long other\n")) == []


def test_the_kernels_are_there() -> None:
    assert len(KERNELS) > 5
