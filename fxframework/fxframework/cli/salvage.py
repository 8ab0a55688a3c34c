"""``fxf salvage``: writes the sound part of a damaged capture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fxframework.cli import complete
from fxframework.cli.convert import note_dropped, warn_of_findings
from fxframework.cli.options import command as _command
from fxframework.cli.session import Session
from fxframework.cli.text import fields
from fxframework.conversion import MOST_LOSSES, SalvageReport, plan_salvage
from fxframework.errors import ExitCode
from fxframework.kit.shown import amount, printable

if TYPE_CHECKING:
    from fxframework.model.capture import Capture

LISTED = 20
"""Number of losses listed without -v."""


@_command(captures=True, name="salvage")
@click.option("--force", is_flag=True, help="Replace OUT.")
@click.argument("file", metavar="IN", shell_complete=complete.files)
@click.argument("out", metavar="OUT", shell_complete=complete.files)
def command(session: Session, force: bool, file: str, out: str) -> ExitCode:
    """Write the sound part of a damaged capture, and list what was lost, with offsets.

    The suffix of OUT names a format: usually that of IN, which is rewritten record by record, or
    one that can be written from IN's tables. OUT is read back: its records are counted, and lost
    data that it still shows is reported. The exit status is 0 if nothing was lost and 3 if
    something was. If nothing is sound it is 1, and OUT is not written.
    """
    session.whole("salvage")
    lists_all = session.settings.json or session.settings.verbose > 0
    with session.open(file, also=None) as capture:
        salvage = plan_salvage(
            session.host,
            capture,
            out,
            options=session.settings.options,
            strict=session.settings.strict,
        )
        label = f"salvaging {capture.name}"
        with (
            session.sink(out, force=force) as sink,
            session.screen.working(label, capture.source, noun="written") as working,
        ):
            working.watch(lambda: sink.written)
            report = salvage.run(sink, keep=MOST_LOSSES if lists_all else LISTED)
        report.nbytes = sink.written  # of a compressed file, known only now
        _show(session, capture, report, lists_all=lists_all)
        warn_of_findings(session, report.findings)
        if report.lossy:
            return ExitCode.FINDINGS
        return ExitCode.OK


def _show(session: Session, capture: Capture, result: SalvageReport, *, lists_all: bool) -> None:
    screen = session.screen
    if session.settings.json:
        screen.json("salvage", _document(result))
    if session.settings.json or session.settings.quiet:
        return
    note_dropped(session, result.to, result.dropped)
    if result.count:
        screen.note(f"{capture.name}: {amount(result.count, 'loss', 'losses')}")
    for loss, _ in result.losses:
        place = f"0x{loss.offset:08x}  {amount(loss.nbytes, 'byte')}"
        screen.say(printable(f"  {place}, {loss.code or '–'} {loss.what}: {loss.message}"))
    unlisted = result.count - len(result.losses)
    if unlisted > 0:
        hint = f"the first {MOST_LOSSES:,} are listed" if lists_all else "-v shows all"
        screen.say(f"  … and {amount(unlisted)} more ({hint})")
    screen.note(_closing(capture, result))
    if result.remaining:
        counts = ", ".join(f"{code} ({count:,})" for code, count in result.remaining.items())
        screen.note(f"{result.out} still has findings of lost data: {counts}")


def _closing(capture: Capture, result: SalvageReport) -> str:
    """Return the closing line: how much was written, and how much was lost."""
    written = [amount(result.nbytes, "byte")]
    if result.written is not None:
        written.insert(0, amount(result.written, "record"))
    if result.merged:
        written.insert(0, f"made from the tables of {capture.name}")
        lost = amount(result.count, "finding") + " of lost data"
    else:
        size = capture.source.size
        lost = (
            f"{amount(result.lost_records, 'record')}, {amount(result.lost_bytes, 'byte')} "
            f"({_percent(result.lost_bytes, size)} of {amount(size)})"
        )
    return f"wrote {result.out}: {', '.join(written)}; lost: {lost}"


def _percent(part: int, total: int) -> str:
    """Format a share in percent; 0 and 100 only if exact."""
    if part == 0:
        return "0 %"
    if part == total:
        return "100 %"
    share = 100 * part / total
    if share < 0.01:
        return "under 0.01 %"
    return f"{min(share, 99.99):.2f} %"


def _document(result: SalvageReport) -> dict[str, Any]:
    # Of an output that is made from tables, nobody knows what of the records is in it.
    lost_records: int | None = None
    lost_bytes: int | None = None
    if not result.merged:
        lost_records = result.lost_records
        lost_bytes = result.lost_bytes
    return {
        **fields(result, "path format size out to"),
        "records": {"written": result.written, "lost": lost_records},
        "bytes": {"written": result.nbytes, "lost": lost_bytes},
        **fields(result, "dropped remaining"),
        "loss_counts": {code or "none": count for code, count in sorted(result.counts.items())},
        "losses": [
            {
                **fields(loss, "offset bytes=nbytes"),
                "code": loss.code or None,
                "severity": severity.key,
                **fields(loss, "what message"),
            }
            for loss, severity in result.losses
        ],
    }
