"""Runner: opens a scenario's devices, runs its steps, and gives the report."""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fxframework.errors import FxError, MissingExtraError, UsageError, WriteRefusedError
from fxframework.kit.steps import Outcome, Run
from fxframework.replay.report import Report, StepReport
from fxframework.replay.scenario import TARGET, Device, Scenario, Step, load

if TYPE_CHECKING:
    from fxframework.host import Host

__all__ = ["GOLDEN", "open_device", "prepare", "replay"]

GOLDEN = ".golden"
"""Suffix of the folder of golden files beside a scenario."""
REPORT = "report.json"
"""The report in the folder of outputs; without times, so that it is the same every time."""


def replay(
    scenario: str | os.PathLike[str] | Scenario,
    out: str | os.PathLike[str] | None = None,
    *,
    seed: int | None = None,
    host: Host | None = None,
    update_golden: bool = False,
    force: bool = False,
) -> Report:
    """Run a scenario: a file, or one that was loaded.

    ``out`` is the folder in which outputs and the report are left; without one they are in the
    Report. ``seed`` replaces the scenario's own; golden files are then not compared.
    ``update_golden`` writes them.

    What a step meets is in the report, never raised. Raises ScenarioError and UnreadableError for
    a scenario that cannot be run, WriteRefusedError where ``out`` holds something already, unless
    ``force`` is given, and UsageError for golden files of another seed.
    """
    if host is None:
        from fxframework.host import default_host

        host = default_host()
    if not isinstance(scenario, Scenario):
        scenario = load(Path(scenario), host)
    own_seed = seed is None or seed == scenario.seed
    if update_golden and not own_seed:
        raise UsageError(
            f"golden files are those of the scenario's own seed, {scenario.seed}, not of {seed}",
            remedy="leave out --seed, or --update-golden",
        )
    folder = None if out is None else prepare(Path(out), force=force)
    path = scenario.path
    run = Run(
        name=scenario.name,
        host=host,
        seed=scenario.seed if seed is None else seed,
        own_seed=own_seed,
        folder=None if path is None else path.parent,
        golden=None if path is None else path.with_suffix(GOLDEN),
        update_golden=update_golden,
        on_output=None if folder is None else functools.partial(_write, folder),
    )
    with contextlib.ExitStack() as stack:
        report = _run(scenario, run, stack)
    if folder is not None:
        import orjson

        options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
        data = orjson.dumps(report.to_json(timing=False), option=options)
        _write(folder, REPORT, data)
    host.notify("fx_replay_finished", report=report)
    return report


def prepare(out: Path, *, force: bool = False) -> Path:
    """Make the folder of outputs. Raises WriteRefusedError where there is something in it."""
    try:
        if out.exists() and not out.is_dir():
            raise WriteRefusedError(
                "not a folder", path=str(out), remedy="name a folder with --out"
            )
        if not force and out.is_dir() and any(out.iterdir()):
            raise WriteRefusedError(
                "the folder holds something already",
                path=str(out),
                remedy="name another one with --out, or replace what is in it: --force on the "
                "command line, force=True in Python",
            )
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteRefusedError(
            f"cannot write there: {error.strerror or error}", path=str(out)
        ) from error
    return out


def _write(folder: Path, name: str, data: bytes) -> None:
    """Write a file of a folder: whole or not at all, and never packed, as a Sink would do."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(data)
    part.replace(path)


def _run(scenario: Scenario, run: Run, stack: contextlib.ExitStack) -> Report:
    reports: list[StepReport] = []
    stopped = ""
    for device in scenario.devices:
        error = open_device(device, run, stack)
        if error is not None:
            place = TARGET if device.name == TARGET else f"device.{device.name}"
            message = _message(error)
            reports.append(
                StepReport(index=-1, do=place, status="failed", message=message, error=error)
            )
            stopped = f"{place} could not be opened"
            if device.name == TARGET:
                break  # the others are parts of it
    # Captures close their sources when the run is over.
    stack.callback(_close, run)
    for step in scenario.steps:
        if stopped:
            report = StepReport(
                index=step.index, do=step.kind.name, status="skipped", message=stopped
            )
        else:
            report = _step(step, run)
            if report.error is not None:
                stopped = f"{step.path} failed"
        reports.append(report)
        run.host.notify("fx_step_finished", step=report)
    return Report(
        scenario=scenario.name,
        file="" if scenario.path is None else scenario.path.name,
        seed=run.seed,
        own_seed=run.own_seed,
        steps=tuple(reports),
        outputs=dict(run.outputs),
        goldens=run.shared("golden.written", dict),
    )


def open_device(device: Device, run: Run, stack: contextlib.ExitStack) -> Exception | None:
    """Open a device, which ``stack`` closes; gives what went wrong, None where nothing did."""
    try:
        opened = device.kind.open(device.parameters, run, device.name)
    except Exception as error:  # noqa: BLE001 (a plugin's; it is reported)
        return error
    if device.name == TARGET:
        run.target = opened
    run.devices[device.name] = opened
    close = getattr(opened, "close", None)
    if close is not None:
        stack.callback(close)
    return None


def _close(run: Run) -> None:
    for capture in run.captures.values():
        capture.close()


def _step(step: Step, run: Run) -> StepReport:
    error: Exception | None = None
    with _stopwatch() as seconds:
        try:
            outcome = step.kind.run(step.parameters, run)
            if outcome is None:
                outcome = Outcome()
            elif not isinstance(outcome, Outcome):
                raise TypeError(f"the step returned {outcome!r}, not an Outcome")
        except MissingExtraError:
            raise  # not the scenario's fault: the command ends with the line that installs it
        except Exception as caught:  # noqa: BLE001 (whatever a step meets is reported)
            error = caught
            outcome = Outcome.failed(_message(caught))
    return StepReport(
        index=step.index,
        do=step.kind.name,
        status=outcome.status,
        message=outcome.message,
        facts=outcome.facts,
        seconds=seconds[0],
        error=error,
    )


@contextlib.contextmanager
def _stopwatch() -> Iterator[list[float]]:
    seconds = [0.0]
    begin = time.perf_counter()
    try:
        yield seconds
    finally:
        seconds[0] = time.perf_counter() - begin


def _message(error: BaseException) -> str:
    """The message of an exception in a report, with its notes and its remedy."""
    text = str(error)
    notes: Any = getattr(error, "__notes__", ())
    if isinstance(error, FxError):
        return "; ".join(filter(None, [text, *notes, error.remedy]))
    message = "; ".join(filter(None, [text, *notes]))
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
