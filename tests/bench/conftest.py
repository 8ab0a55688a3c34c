"""What every benchmark needs: to say what it measured."""

from __future__ import annotations

import pytest

from .yardstick import Say


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Say:
    """Print a line past pytest's capture."""

    def say(line: str) -> None:
        with capsys.disabled():
            print(f"\n  {line}", end="")

    return say
