"""Options: texts and values become what they say, or a UsageError."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs
import pytest

import fxframework as fxf
from fxframework.errors import FxError, UsageError
from fxframework.host import default_host
from fxframework.io.limits import Limits
from fxframework.registry import LIMIT_OPTIONS, Option, parse_options
from fxframework.targets import target_name, targets_for

from ..cases import cases
from ..samples import samples


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


@cases("given", [1 << 64, str(1 << 64), "9" * 4200 + "T", -(1 << 63) - 1, 10**4200])
def test_integers_beyond_64_bits_are_refused(given: Any) -> None:
    with pytest.raises(UsageError, match=r"option it takes an integer of at (most|least)"):
        option(int).accept(given)
    assert option(int).accept(-(1 << 63)) == -(1 << 63)
    assert option(int).accept((1 << 64) - 1) == (1 << 64) - 1


def test_a_number_that_no_float_holds_is_refused() -> None:
    with pytest.raises(UsageError, match="takes a number"):
        option(float).accept(10**400)


@cases("name", [each.name for each in LIMIT_OPTIONS if each.type is int])
def test_limits_fit_the_numbers_of_kernels(name: str) -> None:
    format, data = samples()["boot.fxt"]
    host = default_host()
    with host.open(data, format=format, options={name: (1 << 63) - 1}) as capture:
        capture.scan()
    for beyond in (1 << 63, 10**30):
        with pytest.raises(UsageError, match=f"option {name} takes an integer of at most"):
            host.open(data, format=format, options={name: str(beyond)})
        with pytest.raises(ValueError, match=name):
            Limits(**{name: beyond})


NUMBERS = (-1, -(1 << 63), 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 1 << 64)


@cases("name", ["boot.fxt", "logs.fxlog", "calls.xray", "busy.inspect"])
def test_options_of_any_number_give_a_result_or_a_clear_error(name: str, tmp_path: Path) -> None:
    format, data = samples()[name]
    host = default_host()
    with host.open(data, format=format) as capture:
        reader, targets = host.reader(capture.format), targets_for(host, capture)
    for known in (one for one in reader.options if one.type is int):
        for number in NUMBERS:
            given = {known.name: number}
            with suppress(FxError), host.open(data, format=format, options=given) as capture:
                capture.summary()
    for target in targets:
        for known in (one for one in target.options if one.type is int):
            for number in NUMBERS:
                with suppress(FxError):
                    fxf.convert(
                        data, tmp_path / "out", to=target_name(target), format=reader.format,
                        force=True, **{known.name: number},
                    )  # fmt: skip


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
