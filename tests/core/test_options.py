"""Options: texts and values become what they say, or a UsageError."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from fxframework.errors import UsageError
from fxframework.io.limits import Limits
from fxframework.registry import LIMIT_OPTIONS, Option, parse_options

from ..cases import cases


def option(type: type, default: Any = None) -> Option:
    return Option(name="it", type=type, default=default, help="what it is")


@cases(
    ("type", "given", "value"),
    [
        (bool, "Yes", True),
        (bool, "off", False),
        (bool, True, True),
        (int, "0x10", 16),
        (int, "-3", -3),
        (int, 7, 7),
        (float, "1.5", 1.5),
        (float, 2, 2.0),
        (str, "a=b", "a=b"),
    ],
)
def test_values(type: type, given: Any, value: Any) -> None:
    accepted = option(type).accept(given)
    assert accepted == value
    assert accepted.__class__ is type


@cases(
    ("type", "given"),
    [
        (bool, "2"),
        (bool, 1),
        (int, "1.5"),
        (int, True),
        (int, 1.0),
        (int, "9" * 5000),
        (float, "x"),
        (float, True),
        (str, 3),
        (str, b"x"),
    ],
)
def test_what_does_not_fit(type: type, given: Any) -> None:
    with pytest.raises(UsageError, match="option it takes") as caught:
        option(type).accept(given)
    assert "what it is" in caught.value.remedy


def test_all_known_options_come_back() -> None:
    known = [option(int, 3), attrs.evolve(option(bool, True), name="other")]
    assert parse_options({"it": "4"}, known, whose="x") == {"it": 4, "other": True}
    with pytest.raises(UsageError, match=r"x has no option 'ot'") as caught:
        parse_options({"ot": "4"}, known, whose="x")
    assert "it, other" in caught.value.remedy


def test_every_limit_is_an_option_with_help() -> None:
    assert tuple(limit.name for limit in LIMIT_OPTIONS) == Limits.names()
    defaults = Limits()
    for limit in LIMIT_OPTIONS:
        assert limit.default == getattr(defaults, limit.name)
        assert limit.help
    with pytest.raises(ValueError, match="max_depth"):
        Limits(max_depth=-1)
