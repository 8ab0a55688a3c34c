"""Fixtures of the replay tests: a host with the bundled plugins, and scenarios as texts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fxframework.host import Host
from fxframework.replay import Report, ScenarioError, parse, replay

from .bundled import bundled

HEAD = '[scenario]\nname = "test"\n'


@pytest.fixture(scope="session")
def host() -> Host:
    """What is bundled."""
    return bundled()


@pytest.fixture
def run(host: Host, tmp_path: Path) -> Callable[..., Report]:
    """Runs a scenario that is given as text, without its head."""

    def run(text: str, *, head: str = HEAD, **options: Any) -> Report:
        path = tmp_path / "test.toml"
        path.write_text(head + text)
        return replay(path, host=host, **options)

    return run


@pytest.fixture
def faults(host: Host) -> Callable[..., dict[str, str]]:
    """What is wrong with a scenario that is given as text: messages by paths."""

    def faults(text: str, *, head: str = HEAD) -> dict[str, str]:
        # What stands in no table comes first.
        whole = head + text if text[:1] in {"[", ""} else text + head
        with pytest.raises(ScenarioError) as caught:
            parse(whole, host)
        return {fault.path: fault.message for fault in caught.value.faults}

    return faults
