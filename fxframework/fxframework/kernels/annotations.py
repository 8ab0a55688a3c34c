"""Names for the types of kernels, as annotations that type checkers know.

In plain Python they mean nothing; ``headers.py`` declares them to C. Whole numbers: ``i8`` to
``i64``, ``u8`` to ``u64`` and ``flag`` (0 or 1); real numbers: ``f32`` and ``f64``. ``Array[i64]``
is a memoryview of a shape (n,), ``View[i64]`` one that is not written to, ``Bytes`` a ``View[u8]``,
``Column[i64]`` an array that ``Rows`` makes room for.

Results of C methods: ``status`` is 0, and the method may raise; ``Fallible[i64]`` is a number, and
the method may raise; a number, or ``void``, and it cannot.

A kernel that needs C itself has it in a constant of type ``c_source``, and declares its functions
with ``external``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

__all__ = [
    "Array",
    "Bytes",
    "Column",
    "Fallible",
    "View",
    "c_source",
    "external",
    "f32",
    "f64",
    "flag",
    "i8",
    "i16",
    "i32",
    "i64",
    "inline",
    "public",
    "status",
    "u8",
    "u16",
    "u32",
    "u64",
    "virtual",
    "void",
    "with_gil",
]

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

i8: TypeAlias = int
i16: TypeAlias = int
i32: TypeAlias = int
i64: TypeAlias = int
u8: TypeAlias = int
u16: TypeAlias = int
u32: TypeAlias = int
u64: TypeAlias = int
flag: TypeAlias = int
status: TypeAlias = int
f32: TypeAlias = float
f64: TypeAlias = float
void: TypeAlias = None
c_source: TypeAlias = str

if TYPE_CHECKING:
    from typing import Annotated

    Array = memoryview[T]
    Column = memoryview[T]
    View = memoryview[T]
    Bytes = memoryview[int]
    Fallible = Annotated[T, "may raise"]
else:

    class Array:
        """A memoryview of numbers."""

        def __class_getitem__(cls, element: type) -> type:
            return cls

    Bytes = Column = Fallible = View = Array


def with_gil(method: F) -> F:
    """Mark a C method that takes the interpreter's lock: it may call Python."""
    return method


def public(method: F) -> F:
    """Mark a C method, of a final class, that Python can call too."""
    return method


def virtual(method: F) -> F:
    """Mark a C method that subclasses override."""
    return method


def inline(method: F) -> F:
    """Mark a C method whose calls are replaced by its body, or a function that kernels include."""
    return method


def external(function: F) -> F:
    """Mark a function that C source of the module has; the body is what plain Python does."""
    return function
