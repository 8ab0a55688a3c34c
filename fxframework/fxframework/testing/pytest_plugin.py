"""pytest fixtures: an emulated target, crashtest, scenarios, and runs held against a stored one.

pytest loads this module through its entry point ``fxframework``. Fixtures import the rest of
fxframework on first use.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from fxframework.analysis.comparison import Comparison
    from fxframework.replay import Report
    from fxframework.testing.crashtest import CrashReport

__all__ = ["crashtest", "emulated_target", "no_slower_than", "replay", "trace_buffer", "vmo"]

UPDATE = "--fxf-update-golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that writes golden files."""
    group = parser.getgroup("fxframework", "fxframework: emulated targets and scenarios")
    group.addoption(
        UPDATE,
        action="store_true",
        default=False,
        help="let the fixtures `replay` and `no_slower_than`, and the contracts, write golden "
        "files, not compare with them",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark, and pass on the option that writes golden files."""
    if config.getoption(UPDATE, default=False):
        os.environ["FXF_UPDATE_GOLDEN"] = "1"
    config.addinivalue_line(
        "markers",
        "emulated_target(**parameters): what the fixture `emulated_target` is made with: `seed`, "
        "and what a scenario may say under [target], such as cpus=2",
    )


@pytest.fixture
def emulated_target(request: pytest.FixtureRequest) -> Iterator[Any]:
    """An emulated machine (``fx_emulator.target.Target``): clock, CPUs, kernel, devices.

    ``@pytest.mark.emulated_target(seed=1, cpus=2)`` sets its parameters.
    """
    from fxframework.host import default_host
    from fxframework.kit.steps import Run
    from fxframework.replay.scenario import ScenarioError, parse_target

    mark = request.node.get_closest_marker("emulated_target")
    if mark is not None and mark.args:
        pytest.fail("emulated_target takes named parameters, such as emulated_target(seed=1)")
    parameters = {} if mark is None else dict(mark.kwargs)
    host = default_host()
    run = Run(name=request.node.name, host=host, seed=parameters.pop("seed", 0))
    try:
        target = parse_target(parameters, host)
    except ScenarioError as error:
        pytest.fail(str(error))
    machine = target.kind.open(target.parameters, run, target.name)
    yield machine.target
    machine.close()


@pytest.fixture
def vmo(emulated_target: Any) -> Callable[..., Any]:
    """A function that makes VMOs: ``vmo(size=4096, *, name=…, resizable=False)``."""
    count = 0

    def make(size: int = 4096, *, name: str = "", resizable: bool = False) -> Any:
        nonlocal count
        count += 1
        return emulated_target.vmo(name or f"vmo {count}", size, resizable=resizable)

    return make


@pytest.fixture
def trace_buffer(emulated_target: Any) -> Callable[..., Any]:
    """A function that makes trace buffers: ``trace_buffer(size=4096, mode="oneshot")``.

    A ``TraceWriter`` writes records to the buffer; its ``memory`` is the image.
    """
    count = 0

    def make(size: int = 4096, mode: str = "oneshot", *, name: str = "") -> Any:
        nonlocal count
        count += 1
        return emulated_target.trace_provider(name or f"trace {count}", size=size, mode=mode)

    return make


@pytest.fixture
def crashtest() -> Callable[..., CrashReport]:
    """``fxframework.testing.crashtest.crashtest``, which fails the test for an invalid image."""
    from fxframework.testing.crashtest import CrashTestError
    from fxframework.testing.crashtest import crashtest as run

    def test(*arguments: Any, **options: Any) -> CrashReport:
        report = run(*arguments, **options)
        if not report.ok:
            raise CrashTestError(report)
        return report

    return test


@pytest.fixture
def replay(request: pytest.FixtureRequest) -> Callable[..., Report]:
    """A function that replays scenarios: ``replay("boot.toml", seed=None, out=None, check=True)``.

    Paths are relative to the test's folder. The test fails if an expectation fails, unless
    ``check`` is False. Returns the report.
    """
    from fxframework.replay import replay as run

    update = request.config.getoption(UPDATE, default=False)

    def test(
        scenario: Any, *, seed: int | None = None, out: Any = None, check: bool = True
    ) -> Report:
        if isinstance(scenario, str | Path):
            scenario = request.path.parent / scenario
        report = run(scenario, out, seed=seed, update_golden=update and seed is None)
        if check and not report.ok:
            pytest.fail(report.to_text(timing=False), pytrace=False)
        return report

    return test


@pytest.fixture
def no_slower_than(request: pytest.FixtureRequest) -> Callable[..., Comparison]:
    """A function that fails the test if runs are slower than stored ones.

    ``no_slower_than("golden.fxt", "mine.fxt", threshold=0.05, fail_on=("slower",))``: the first
    argument is a stored capture, or a folder or a pattern of several, relative to the test's
    folder; the others are the runs to hold against it, as paths or open captures; ``options`` are
    those of ``fxframework.compare``, which it returns. With ``--fxf-update-golden``, a single run
    given as a path becomes the stored capture.
    """
    import glob
    import shutil

    from fxframework.analysis.comparison import check_verdicts
    from fxframework.verbs import compare

    update = request.config.getoption(UPDATE, default=False)

    def test(
        golden: str | Path,
        *runs: Any,
        threshold: float = 0.05,
        fail_on: str | Sequence[str] = ("slower",),
        **options: Any,
    ) -> Comparison:
        failing_verdicts = check_verdicts([fail_on] if isinstance(fail_on, str) else fail_on)
        stored = request.path.parent / golden
        if update and len(runs) == 1 and isinstance(runs[0], str | Path):
            stored.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(runs[0], stored)
        if not runs:
            pytest.fail("no_slower_than needs at least one run", pytrace=False)
        if not stored.exists() and not glob.has_magic(str(stored)):
            pytest.fail(f"{stored} does not exist: `pytest {UPDATE}` stores a run", pytrace=False)
        comparison = compare(str(stored), list(runs), threshold=threshold, **options)
        if comparison.fails(failing_verdicts):
            pytest.fail(comparison.to_text(), pytrace=False)
        return comparison

    return test
