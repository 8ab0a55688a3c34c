"""What all tests share: marks by folder, hypothesis profiles, and where the package comes from."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

import fxframework

from .install import environments

TESTS = Path(__file__).parent

# Collecting makes millions of objects that stay. To look through them again and again for garbage
# takes as long as making them, and so it does whenever a test asks for a collection.
gc.disable()

# Compiling a kernel may fall into any example, so no deadlines. CI tries the same examples every
# time, so that a third of them find what all of them would; elsewhere each run tries others. So how
# many there are is said here: a test asks for fewer where one takes long, and for more never.
hypothesis.settings.register_profile("local", deadline=None, max_examples=60)
hypothesis.settings.register_profile("thorough", deadline=None, max_examples=2000)
hypothesis.settings.register_profile(
    "ci", hypothesis.settings.get_profile("ci"), deadline=None, max_examples=20
)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_report_header() -> str:
    """Say which fxframework is tested: an installed wheel, or this checkout."""
    return f"fxframework: {fxframework.__version__} from {Path(fxframework.__file__).parent}"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests of bench/ and oracle/ their marks."""
    for item in items:
        if item.path.is_relative_to(TESTS):
            room = item.path.relative_to(TESTS).parts[0]
            if room in {"bench", "oracle"}:
                item.add_marker(room)


def pytest_collection_finish() -> None:
    """Leave what collecting made out of later garbage collections, which begin here."""
    gc.freeze()
    gc.enable()


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Pass a folder that holds no tests; a selection that matches none stays a failure."""
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        asked = [Path(arg.split("::")[0]) for arg in session.config.args]
        if not any(path.is_file() or any(path.rglob("test_*.py")) for path in asked):
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
