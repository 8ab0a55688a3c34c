"""Regular expressions of users take bounded time, and replace what Python's re replaces."""

from __future__ import annotations

import gc
import re
import time
from collections.abc import Iterator

import pytest

from fxframework.errors import LimitError, UsageError
from fxframework.kit import patterns
from fxframework.kit.patterns import BoundedPattern

from ..cases import cases

TEXTS = ["", "aaa!", "1234 5678", "á\udc80\n\0aa", "user=ann token=12", "x" * 50_000 + "aa"]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(patterns, "PATIENCE", 0.3)
    yield
    gc.collect()


@cases("pattern", ["a", "a+", r"\d{4}", "ann|12", re.compile("A+", re.IGNORECASE), r"(.)\1", "^$"])
def test_as_re_does(pattern: str | re.Pattern[str]) -> None:
    bounded = BoundedPattern(pattern, r"<\1>")
    plain = re.compile(pattern)
    for text in TEXTS:
        assert bounded.subn(text) == plain.subn(lambda _: r"<\1>", text)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*$", r"^(([a-z])+.)+[A-Z]$"])
def test_a_pattern_that_never_ends_is_stopped(pattern: str) -> None:
    bounded = BoundedPattern(pattern, "")
    started = time.monotonic()
    with pytest.raises(LimitError, match="takes too long") as raised:
        bounded.subn("a" * 60 + "!")
    assert time.monotonic() - started < 20
    assert "repetition" in raised.value.remedy


def test_an_invalid_pattern_is_refused() -> None:
    with pytest.raises(UsageError, match="invalid regular expression"):
        BoundedPattern("(", "")
