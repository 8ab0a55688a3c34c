"""Fixtures of the oracle tests: the oracle, or the reason why there is none."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from .browser import CHROMIUM, Browser
from .perfetto import Perfetto, why_not


@pytest.fixture(scope="session")
def perfetto() -> Iterator[Perfetto]:
    """The real Perfetto. Without it the tests skip; with FXF_REQUIRE_ORACLES set they fail."""
    reason = why_not()
    if reason is not None:
        if os.environ.get("FXF_REQUIRE_ORACLES"):
            pytest.fail(reason)
        pytest.skip(reason)
    oracle = Perfetto()
    yield oracle
    oracle.close()


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A headless Chromium. Without it the tests skip; with FXF_REQUIRE_ORACLES set they fail."""
    if CHROMIUM is None:
        if os.environ.get("FXF_REQUIRE_ORACLES"):
            pytest.fail("Chromium is missing")
        pytest.skip("the browser test needs Chromium (Debian's package chromium)")
    browser = Browser(tmp_path_factory.mktemp("chromium"))
    yield browser
    browser.close()
