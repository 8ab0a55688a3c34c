"""What all tests share: marks by folder, and where the package comes from."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest

import fxframework

from . import properties
from .install import environments

TESTS = Path(__file__).parent

# Collecting makes millions of objects that stay. To look through them again and again for garbage
# takes as long as making them, and so it does whenever a test asks for a collection.
gc.disable()

hypothesis.settings.load_profile(properties.SAME)


def pytest_report_header() -> str:
    """Say which fxframework is tested: an installed wheel, or this checkout."""
    return f"fxframework: {fxframework.__version__} from {Path(fxframework.__file__).parent}"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the benchmarks out before they are imported, where none of them would run."""
    if collection_path == TESTS / "bench" and config.option.markexpr == "not bench":
        return True
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests of bench/ and oracle/, and the properties of contracts, their marks."""
    marks: dict[Path, str | None] = {}
    for item in items:
        if isinstance(item, pytest.Function) and tries_examples(item.function):
            item.add_marker("hypothesis")
        path = item.path
        if path not in marks:
            room = path.relative_to(TESTS).parts[0] if path.is_relative_to(TESTS) else None
            marks[path] = room if room in {"bench", "oracle"} else None
        mark = marks[path]
        if mark is not None:
            item.add_marker(mark)


def tries_examples(function: Callable[..., object]) -> bool:
    """Return whether a test of a contract hands a property to hypothesis itself."""
    code = getattr(function, "__code__", None)
    return code is not None and any(name.startswith("_try") for name in code.co_names)


def pytest_runtest_setup() -> None:
    """Let a property try the same examples after any other; skip it when exploring is over."""
    properties.forget_earlier_tests()
    end = os.environ.get(properties.UNTIL)
    if end is not None and time.time() > float(end):
        pytest.skip("the time for exploring is over")


def pytest_collection_finish() -> None:
    """Leave what collecting made out of later garbage collections, which begin here."""
    gc.freeze()
    gc.enable()


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Pass a folder that holds no tests; a selection that matches none stays a failure."""
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        paths = [Path(argument.split("::")[0]) for argument in session.config.args]
        if not any(path.is_file() or any(path.rglob("test_*.py")) for path in paths):
            session.exitstatus = pytest.ExitCode.OK


@pytest.fixture(scope="session")
def core(tmp_path_factory: pytest.TempPathFactory) -> Iterator[environments.Environment]:
    """A core install in a clone's own folder: fxframework, and nothing of an extra."""
    folder = environments.clone(tmp_path_factory.mktemp("core") / "clone")
    with environments.core(folder / ".venv") as environment:
        yield environment


@pytest.fixture(scope="session")
def here() -> Iterator[environments.Environment]:
    """The environment that the tests run in, with every extra."""
    with environments.Here() as environment:
        yield environment
