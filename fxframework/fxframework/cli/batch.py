"""``fxf batch``: converts many captures into one dataset."""

from __future__ import annotations

import os

import click

from fxframework.cli import complete
from fxframework.cli.options import command as _command
from fxframework.cli.session import Session
from fxframework.cli.text import fields
from fxframework.dataset.batch import BatchReport, batch
from fxframework.dataset.inputs import skipped_text
from fxframework.dataset.manifest import FAILED, LOSSES, OK, SKIPPED, Entry
from fxframework.errors import ExitCode, FxError
from fxframework.kit.shown import amount, printable


@_command(captures=True, guard=False, name="batch")
@click.option("--out", required=True, metavar="DATASET", help="Folder or address of the dataset.")
@click.option("--jobs", type=click.IntRange(1), metavar="N",
              help="Number of processes. Default: one for each processor.")  # fmt: skip
@click.option("--engine", default="pool", metavar="NAME",
              help="pool, dask (a local cluster) or dask=ADDRESS. Default: pool.")  # fmt: skip
@click.option("--resume", is_flag=True,
              help="Keep the captures that are finished, and convert the others.")  # fmt: skip
@click.option("--force", is_flag=True, help="Replace an existing dataset.")
@click.option("--host", default="", metavar="NAME",
              help="Host of the captures; {folder} stands for the folder of each.")  # fmt: skip
@click.argument("inputs", nargs=-1, required=True, metavar="IN...", shell_complete=complete.files)
def command(
    session: Session,
    inputs: tuple[str, ...],
    out: str,
    jobs: int | None,
    engine: str,
    host: str,
    *,
    resume: bool,
    force: bool,
) -> ExitCode:
    """Convert many captures, of any formats, into one Parquet dataset.

    IN is a file, a folder, a quoted pattern (** matches nested folders), @LIST (a file with one
    name per line, optionally followed by a tab and its host) or an address. DATASET has a folder
    table=NAME for each table, with a file for each capture, and _manifest.jsonl, which has the
    result of each. `fxf sql DATASET` queries it.

    A capture that fails is reported, and the others continue; the exit status is then 3. Files of
    folders and patterns that are not captures are skipped.
    """
    session.whole("batch")
    screen = session.screen
    with screen.working(f"converting into {out}") as working:

        def progress(count: int, total: int, nbytes: int, size: int, entry: Entry | None) -> None:
            session.check_interrupt()  # a capture that failed may have failed for that
            working.count(count, total, nbytes, size)
            if entry is not None and entry.outcome != SKIPPED:
                _report(session, entry)

        report = batch(
            inputs,
            out,
            jobs=jobs or os.cpu_count(),
            engine=engine,
            resume=resume,
            force=force,
            host=host,
            format=session.settings.format,
            progress=progress,
            **session.settings.options,
        )
    _show(session, report)
    outcomes = report.outcomes
    if outcomes[FAILED] == len(report.entries) and (report.entries or report.skipped):
        return ExitCode.FAILED
    if outcomes[OK] < len(report.entries):
        return ExitCode.FINDINGS
    return ExitCode.OK


def _report(session: Session, entry: Entry) -> None:
    """Print the result for a capture: its error, its losses, or its rows."""
    if entry.error is not None:
        failure = entry.error
        error = FxError(failure.message, path=entry.file, remedy=failure.remedy)
        error.code = failure.code
        session.screen.error(error, stops=False)
    elif entry.outcome == LOSSES:
        session.screen.losses(
            entry.file, entry.findings, lambda code: session.host.rule(code)[0].severity
        )
    else:
        session.screen.detail(f"{entry.file}: {amount(sum(entry.rows.values()), 'row')}")


def _show(session: Session, report: BatchReport) -> None:
    outcomes = report.outcomes
    if session.settings.json:
        report_document = {
            "out": report.out,
            "captures": len(report.entries),
            "skipped": [item.file for item in report.skipped],
        }
        report_document |= fields(report, "converted=done outcomes rows bytes=nbytes seconds")
        session.screen.json("batch", report_document)
        return
    finished_before = len(report.entries) - report.done
    seconds = max(report.seconds, 1e-6)  # not 0
    megabytes = report.nbytes / 1e6
    screen = session.screen
    if report.skipped:
        screen.note(skipped_text(report.skipped))
    outcome_counts = (
        f"{outcomes[OK]:,} whole, {outcomes[LOSSES]:,} with losses, {outcomes[FAILED]:,} failed"
    )
    if finished_before:
        outcome_counts += f"; {finished_before:,} were finished before"
    capture_text = amount(len(report.entries), "capture")
    row_text = amount(sum(report.rows.values()), "row")
    screen.note(f"wrote {printable(report.out)}: {capture_text} ({outcome_counts}), {row_text}")
    screen.note(
        f"converted {amount(report.done, 'capture')}, {megabytes:,.1f} MB, in "
        f"{report.seconds:,.1f} s: {report.done / seconds:,.1f} captures/s, "
        f"{megabytes / seconds:,.1f} MB/s"
    )
