"""Fixtures of these tests: a host that has the toy format, and a file of it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

# Test folders are no packages, and with --import-mode=importlib nothing puts them on the path.
sys.path.insert(0, str(Path(__file__).parent.parent / "core"))
sys.path.insert(0, str(Path(__file__).parent.parent / "analysis"))

import toy

from fxframework.exporters import plugin as exporters
from fxframework.host import Host


@pytest.fixture
def host() -> Host:
    """A host with the bundled exporters and the toy format, and nothing of what is installed."""
    host = Host(discover=False)
    host.register(exporters, name="exporters", distribution="fxframework")
    host.register(toy, name="toy", distribution="toys", version="2.0")
    assert not host.failures
    return host


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """A sound capture."""
    path = tmp_path / "sample.toy"
    path.write_bytes(toy.SAMPLE)
    return path
