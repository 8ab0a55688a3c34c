"""Builds that several tests of native programs use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fx_emulator.target import Target

from .building import build

Builder = Callable[..., Path]


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Builder:
    """Builds each program once: ``built("ring.c", "-DBUG", cc=…, level=…, kind=…)``."""
    folder = tmp_path_factory.mktemp("native")
    made: dict[object, Path] = {}

    def get(source: Path, *options: str, cc: str, level: str, kind: str = "shared") -> Path:
        key = (source, options, cc, level, kind)
        if key not in made:
            suffix = {"shared": ".so", "object": ".o", "static": ""}[kind]
            out = folder / f"{source.stem}-{len(made)}{suffix}"
            made[key] = build(source, out, *options, cc=cc, level=level, kind=kind)
        return made[key]

    return get


@pytest.fixture
def target() -> Iterator[Target]:
    """A machine."""
    with Target(seed=1, cpus=2) as made:
        yield made
