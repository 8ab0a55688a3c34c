"""Values: the argument type that a Python value gets, at every bound."""

from __future__ import annotations

import decimal
import enum
import math
import struct
from typing import Any

import hypothesis
import numpy as np
from hypothesis import strategies as st

from fx_trace.kinds import ArgType
from fx_trace.write import arguments as fx
from fxframework.kit import arguments as kit

from ...cases import cases

BOUNDS = [
    (0, "int32"),
    (-1, "int32"),
    ((1 << 31) - 1, "int32"),
    (-(1 << 31), "int32"),
    (1 << 31, "uint32"),
    ((1 << 32) - 1, "uint32"),
    (1 << 32, "int64"),
    (-(1 << 31) - 1, "int64"),
    ((1 << 63) - 1, "int64"),
    (-(1 << 63), "int64"),
    (1 << 63, "uint64"),
    ((1 << 64) - 1, "uint64"),
]
NUMPY = [
    *[(name, "int32") for name in ("int8", "int16", "int32")],
    *[(name, "uint32") for name in ("uint8", "uint16", "uint32")],
    ("int64", "int64"),
    ("uint64", "uint64"),
    *[(name, "double") for name in ("float16", "float32", "float64")],
    ("bool", "bool"),
]
WRAPPERS = [
    kit.Int32, kit.Uint32, kit.Int64, kit.Uint64, kit.Double, kit.String, kit.Pointer, kit.Koid,
]  # fmt: skip


class Level(enum.IntEnum):
    HIGH = 1 << 40


class Word(str):
    __slots__ = ()


def typed(value: Any) -> tuple[str, Any]:
    found = fx.type_of(value)
    assert found is not None
    return found[0].name.lower(), found[1]


@cases(("value", "kind"), BOUNDS)
def test_an_int_takes_the_narrowest_type_that_holds_it(value: int, kind: str) -> None:
    assert typed(value) == (kind, value)


@hypothesis.given(st.integers(-(1 << 63), (1 << 64) - 1))
def test_no_narrower_type_would_hold_it(value: int) -> None:
    kind, same = typed(value)
    order = ["int32", "uint32", "int64", "uint64"]
    fits = [
        name
        for name in order
        if fx.RANGES[ArgType[name.upper()]][0] <= value <= fx.RANGES[ArgType[name.upper()]][1]
    ]
    assert same == value
    assert kind == fits[0]


@cases("value", [1 << 64, -(1 << 63) - 1])
def test_an_int_that_nothing_holds_is_outside_of_the_range_of_its_type(value: int) -> None:
    found = fx.type_of(value)
    assert found is not None
    least, most = fx.RANGES[found[0]]
    assert not least <= value <= most


@cases(
    ("value", "kind", "same"),
    [
        (None, "null", None),
        (True, "bool", True),
        (False, "bool", False),
        (1.5, "double", 1.5),
        (math.inf, "double", math.inf),
        ("é", "string", "é"),
        ("", "string", ""),
        (b"\0\xff", "blob", b"\0\xff"),
        (bytearray(b"ab"), "blob", b"ab"),
        (memoryview(b"abcd")[1:3], "blob", b"bc"),
        (memoryview(struct.pack("<2Q", 1, 2)).cast("Q"), "blob", struct.pack("<2Q", 1, 2)),
        (Level.HIGH, "int64", 1 << 40),
        (Word("x"), "string", "x"),
        (np.str_("x"), "string", "x"),
        (np.bytes_(b"x"), "blob", b"x"),
        (np.array(7, np.uint8), "uint32", 7),
        (np.array(5, ">i4"), "int32", 5),
    ],
)  # fmt: skip
def test_other_values(value: Any, kind: str, same: Any) -> None:
    found = typed(value)
    assert found == (kind, same)
    assert type(found[1]) is type(same)


def test_the_sign_of_zero_stays() -> None:
    assert math.copysign(1, typed(-0.0)[1]) == -1


@cases(("name", "kind"), NUMPY)
def test_numbers_of_numpy_keep_their_width(name: str, kind: str) -> None:
    scalar = np.dtype(name).type(1)
    found, value = typed(scalar)
    assert (found, value) == (kind, 1)
    assert type(value) in (int, float, bool)


@cases("name", ["int8", "int16", "int32", "int64", "uint8", "uint32", "uint64"])
def test_bounds_of_numpy(name: str) -> None:
    info = np.iinfo(name)
    for bound in (info.min, info.max):
        assert typed(np.dtype(name).type(bound))[1] == bound


@cases("wrapper", WRAPPERS)
def test_a_wrapper_says_the_type_outright(wrapper: type[kit.Typed]) -> None:
    assert fx.type_of(wrapper(1)) == (ArgType[wrapper.__name__.upper()], 1)


@cases("value", [b"ab", bytearray(b"ab"), memoryview(b"ab")])
def test_a_blob_wraps_bytes(value: Any) -> None:
    assert fx.type_of(kit.Blob(value)) == (ArgType.BLOB, b"ab")


@cases(
    "value",
    [
        ..., [1], (1,), {"a": 1}, {1}, 1j, decimal.Decimal(1), range(3),
        np.array([1, 2]), np.longdouble(1) if np.longdouble is not np.float64 else 1j,
        np.complex64(1), np.datetime64(1, "ns"), kit.Blob(5), kit.Blob("text"), kit.Blob(None),
    ],
    ids=repr,
)  # fmt: skip
def test_what_has_no_argument_type(value: Any) -> None:
    assert fx.type_of(value) is None


def test_wrapped_values_are_equal_by_type_and_value() -> None:
    assert kit.Koid(1) == kit.Koid(1)
    assert kit.Koid(1) != kit.Pointer(1)
    assert len({kit.Koid(1), kit.Koid(1), kit.Koid(2)}) == 2
