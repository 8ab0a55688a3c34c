"""Runner: opens a scenario's devices, runs its steps, and returns the report."""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Iterator
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, get_args

from fxframework.errors import (
    FxError,
    MissingExtraError,
    OutputError,
    UsageError,
    WriteRefusedError,
    checked_type,
)
from fxframework.kit.steps import REPORT, Outcome, Run, Status
from fxframework.replay.report import Report, StepReport
from fxframework.replay.scenario import MAX_SEED, TARGET, Device, Scenario, Step, load

if TYPE_CHECKING:
    from fxframework.host import Host

GOLDEN = ".golden"
"""Suffix of the folder of golden files beside a scenario."""


def replay(
    scenario: str | os.PathLike[str] | Scenario,
    out: str | os.PathLike[str] | None = None,
    *,
    seed: int | None = None,
    host: Host | None = None,
    update_golden: bool = False,
    allow_outside: bool = False,
    force: bool = False,
) -> Report:
    """Run a scenario, given as a file or as a loaded scenario.

    ``out`` is the folder for outputs and the report; without it they are only in the Report.
    ``seed`` replaces the scenario's own; golden files are then not compared. ``update_golden``
    writes them. ``allow_outside`` lets the scenario name files outside of its folder, which it
    then reads, and with ``update_golden`` writes.

    Errors of steps are in the report and are not raised. Raises ScenarioError and UnreadableError
    for a scenario that cannot be run, WriteRefusedError if ``out`` is not empty and ``force`` is
    not given, and UsageError for updating golden files with another seed.
    """
    if host is None:
        from fxframework.host import default_host

        host = default_host()
    if not isinstance(scenario, Scenario):
        scenario = load(Path(scenario), host, allow_outside=allow_outside)
    seed = _checked_seed(scenario, seed, update_golden=update_golden)
    out_folder = None
    write_output = None
    if out is not None:
        out_folder = prepare(Path(out), force=force)
        write_output = functools.partial(_write, out_folder)
    run = Run(
        name=scenario.name,
        host=host,
        seed=seed,
        own_seed=seed == scenario.seed,
        update_golden=update_golden,
        allow_outside=allow_outside,
        on_output=write_output,
    )
    if scenario.path is not None:
        run.folder = scenario.path.parent
        run.golden = scenario.path.with_suffix(GOLDEN)
    with opened(scenario, run) as failures:
        report = _run_steps(scenario, run, failures)
    if out_folder is not None:
        import orjson

        # Without durations, so that two reports of one scenario are the same bytes.
        options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
        data = orjson.dumps(report.to_json(timing=False), option=options)
        _write(out_folder, REPORT, data)
    host.notify("fx_replay_finished", report=report)
    return report


def _checked_seed(scenario: Scenario, seed: int | None, *, update_golden: bool) -> int:
    """Return the seed, by default that of the scenario. Raises UsageError."""
    checked_type(seed, (int, NoneType), "seed", "an int or None")
    if seed is None:
        return scenario.seed
    if not 0 <= seed <= MAX_SEED:
        raise UsageError(
            f"a seed of {seed} is out of range", remedy=f"give a number from 0 to {MAX_SEED}"
        )
    if update_golden and seed != scenario.seed:
        raise UsageError(
            f"golden files apply only to the scenario's own seed, {scenario.seed}, not to {seed}",
            remedy="omit --seed or --update-golden",
        )
    return seed


def prepare(out: Path, *, force: bool = False) -> Path:
    """Create the output folder. Raises WriteRefusedError if it is not empty, unless forced."""
    try:
        if out.exists() and not out.is_dir():
            raise WriteRefusedError(
                "not a folder", path=str(out), remedy="name a folder with --out"
            )
        if not force and out.is_dir() and any(out.iterdir()):
            raise WriteRefusedError(
                "the folder is not empty",
                path=str(out),
                remedy="name another one with --out, or replace its files: --force on the "
                "command line, force=True in Python",
            )
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteRefusedError(
            f"cannot write there: {error.strerror or error}", path=str(out)
        ) from error
    return out


def _write(folder: Path, name: str, data: bytes) -> None:
    """Write a file of a folder atomically, without the compression of a Sink.

    Raises OutputError if it cannot be written; nothing of it is left behind.
    """
    path = folder / name
    part = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(data)
        part.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink()
        raise OutputError(error, path=str(path)) from error


@contextlib.contextmanager
def opened(scenario: Scenario, run: Run) -> Iterator[list[StepReport]]:
    """Open the devices of a scenario; yield reports of those that failed; close all at the end."""
    failures: list[StepReport] = []
    stack = contextlib.ExitStack()
    for device in scenario.devices:
        error = _open_device(device, run, stack)
        if error is not None:
            is_target = device.name == TARGET
            failures.append(
                StepReport(
                    index=-1,
                    do=TARGET if is_target else f"device.{device.name}",
                    status="failed",
                    message=_message(error),
                    error=error,
                )
            )
            if is_target:
                break  # the other devices need it
    # The last to be added is the first to be called: captures may read images of devices.
    stack.callback(_close_captures, run)
    try:
        yield failures
    except BaseException:
        with contextlib.suppress(Exception):  # keep the first exception
            stack.close()
        raise
    stack.close()


def _run_steps(scenario: Scenario, run: Run, failures: list[StepReport]) -> Report:
    """Run the steps up to the first that raises; the others are skipped, as without a device."""
    reports = list(failures)
    why_skipped = f"{failures[-1].do} could not be opened" if failures else ""
    for step in scenario.steps:
        if why_skipped:
            report = StepReport(
                index=step.index, do=step.kind.name, status="skipped", message=why_skipped
            )
        else:
            report = _run_step(step, run)
            if report.error is not None:
                why_skipped = f"{step.path} failed"
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


def _open_device(device: Device, run: Run, stack: contextlib.ExitStack) -> Exception | None:
    """Open a device, which ``stack`` closes; return the exception, None on success."""
    try:
        opened_device = device.kind.open(device.parameters, run, device.name)
    except Exception as error:  # noqa: BLE001 (code of plugins; reported)
        return error
    if device.name == TARGET:
        run.target = opened_device
    run.devices[device.name] = opened_device
    close_device = getattr(opened_device, "close", None)
    if close_device is not None:
        stack.callback(close_device)
    return None


def _close_captures(run: Run) -> None:
    for capture in run.captures.values():
        capture.close()


def _run_step(step: Step, run: Run) -> StepReport:
    """Run a step; an exception of it is in its report."""
    error: Exception | None = None
    start_time = time.perf_counter()
    try:
        outcome = step.kind.run(step.parameters, run)
        if outcome is None:
            outcome = Outcome()
        elif not isinstance(outcome, Outcome):
            raise TypeError(f"the step returned {outcome!r}, not an Outcome")
        _check_outcome(outcome)
    except MissingExtraError:
        raise  # ends the command with the install line
    except Exception as raised:  # noqa: BLE001 (reported)
        error = raised
        outcome = Outcome.failed(_message(raised))
    return StepReport(
        index=step.index,
        do=step.kind.name,
        status=outcome.status,
        message=outcome.message,
        facts=outcome.facts,
        seconds=time.perf_counter() - start_time,
        error=error,
    )


def _check_outcome(outcome: Outcome) -> None:
    """Check that the report, which is text and JSON, can have an outcome. Raises TypeError."""
    import orjson

    if outcome.status not in get_args(Status):
        raise TypeError(
            f"the status of the outcome is {outcome.status!r}, not ok, failed or skipped"
        )
    if not isinstance(outcome.message, str):
        raise TypeError(f"the message of the outcome is {outcome.message!r}, not a string")
    try:
        orjson.dumps(dict(outcome.facts))
    except TypeError as error:
        raise TypeError(f"the facts of the step are not JSON: {error}") from error


def _message(error: BaseException) -> str:
    """Return the message of an exception for a report, with its notes and remedy."""
    notes: Any = getattr(error, "__notes__", ())
    remedy = error.remedy if isinstance(error, FxError) else ""
    message = "; ".join(filter(None, [str(error), *notes, remedy]))
    if isinstance(error, FxError):
        return message
    # Other messages, such as that of a KeyError, say little without the type.
    kind = type(error).__name__
    return f"{kind}: {message}" if message else kind
