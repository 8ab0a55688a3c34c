"""``fxf salvage``: writes the sound part of a damaged capture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fxframework.cli import complete
from fxframework.cli.convert import note_dropped, warn_of_findings
from fxframework.cli.options import command as _command
from fxframework.cli.session import Session
from fxframework.cli.text import amount, fields, printable
from fxframework.conversion import MOST_LOSSES, SalvageReport, plan_salvage
from fxframework.errors import ExitCode

if TYPE_CHECKING:
    from fxframework.model.capture import Capture

LISTED = 20
"""Number of losses listed without -v."""


@_command(captures=True, name="salvage", short_help="Write the sound part of a damaged capture.")
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
    everything = session.settings.json or session.settings.verbose > 0
    with session.open(file, also=None) as capture:
        work = plan_salvage(
            session.host,
            capture,
            out,
            options=session.settings.options,
            strict=session.settings.strict,
        )
        with (
            session.sink(out, force=force) as sink,
            session.screen.working(
                f"salvaging {capture.name}", capture.source, noun="written"
            ) as working,
        ):
            working.watch(lambda: sink.written)
            report = work.run(sink, keep=MOST_LOSSES if everything else LISTED)
        report.nbytes = sink.written  # of a compressed file, known only now
        _show(session, capture, report, everything=everything)
        warn_of_findings(session, report.findings)
        return ExitCode.FINDINGS if report.lossy else ExitCode.OK


def _show(session: Session, capture: Capture, result: SalvageReport, *, everything: bool) -> None:
    screen = session.screen
    if session.settings.json:
        screen.json("salvage", _document(result))
    if session.settings.json or session.settings.quiet:
        return
    note_dropped(session, result.to, result.dropped)
    if result.count:
        screen.note(f"{capture.name}: {amount(result.count, 'loss', 'losses')}")
    for loss, _ in result.losses:
        screen.say(
            printable(
                f"  0x{loss.offset:08x}  {amount(loss.nbytes, 'byte')}, "
                f"{loss.code or '–'} {loss.what}: {loss.message}"
            )
        )
    if result.count > len(result.losses):
        more = f"the first {MOST_LOSSES:,} are listed" if everything else "-v shows all"
        screen.say(f"  … and {amount(result.count - len(result.losses))} more ({more})")
    screen.note(_closing(capture, result))
    if result.remaining:
        found = ", ".join(f"{code} ({count:,})" for code, count in result.remaining.items())
        screen.note(f"{result.out} still has findings of lost data: {found}")


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


def _percent(part: int, whole: int) -> str:
    """Format a share in percent; 0 and 100 only if exact."""
    if part in {0, whole}:
        return f"{100 if part else 0} %"
    share = 100 * part / whole
    if share < 0.01:
        return "under 0.01 %"
    return f"{min(share, 99.99):.2f} %"


def _document(result: SalvageReport) -> dict[str, Any]:
    return {
        **fields(result, "path format size out to"),
        "records": {
            "written": result.written,
            "lost": None if result.merged else result.lost_records,
        },
        "bytes": {
            "written": result.nbytes,
            "lost": None if result.merged else result.lost_bytes,
        },
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
