"""``fxf salvage``: what is sound of a damaged capture, and what was lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from fxframework.cli.app import command as _command
from fxframework.cli.convert import (
    RecordTarget,
    by_suffix,
    meant_by_suffix,
    option_names,
    target_options,
    tell_dropped,
)
from fxframework.cli.render import amount, printable
from fxframework.cli.session import Session, require_readable, worst
from fxframework.errors import (
    FRAMEWORK_RULES,
    ExitCode,
    Severity,
    UsageError,
)

if TYPE_CHECKING:
    from fxframework.io.sink import Sink
    from fxframework.kit.salvage import Loss
    from fxframework.model.capture import Capture
    from fxframework.registry import Writer

LISTED = 20
"""Losses that are told without -v."""


@_command(captures=True, name="salvage", short_help="Write what is sound of a damaged capture.")
@click.option("--force", is_flag=True, help="Replace OUT.")
@click.argument("file", metavar="IN")
@click.argument("out", metavar="OUT")
def command(session: Session, force: bool, file: str, out: str) -> ExitCode:
    """Write what is sound of a damaged capture, and tell what was lost, and where.

    OUT's suffix is that of a format: mostly that of IN, which is rewritten record by record, or
    one that can be made from IN's tables. The exit status is 0 where nothing was lost and 3 where
    something was. Where nothing is sound it is 1, and OUT is not written.
    """
    session.whole("salvage")
    with session.open(file, also=option_names(session.host)) as capture:
        writer = _writer(session, capture, out)
        options = target_options(session, [capture], writer)
        require_readable(capture)
        result = _Result(writer, capture.summary().records)
        with session.host.sink(out, force=force) as sink:
            result.out = sink.name
            with session.screen.working(f"salvaging {capture.name}", "written") as working:
                working.watch(lambda: sink.written)
                for loss in _write(session, capture, writer, options, sink, result):
                    result.add(capture, loss, keep=_keeps(session, result))
            result.nbytes = sink.written
        _report(session, capture, result)
        return worst(result.status, ExitCode.FINDINGS if result.lossy else ExitCode.OK)


class _Result:
    """What came of it."""

    def __init__(self, writer: Writer, records: int) -> None:
        self.writer = writer
        self.records = records
        self.out = ""
        self.nbytes = 0
        self.dropped: Mapping[str, int] = {}
        self.composed = False
        """Whether it was made from tables, so that records cannot be counted."""
        self.losses: list[tuple[Loss, Severity]] = []
        self.count = 0
        self.lost_records = 0
        self.lost_bytes = 0
        self.lossy = False
        self.status = ExitCode.OK

    def add(self, capture: Capture, loss: Loss, *, keep: bool) -> None:
        """Count a loss, and keep it where it is to be told."""
        severity = _severity(capture, loss)
        self.count += 1
        self.lost_records += loss.nbytes > 0
        self.lost_bytes += loss.nbytes
        self.lossy = self.lossy or severity >= Severity.DATA_LOSS
        if keep:
            self.losses.append((loss, severity))


def _keeps(session: Session, result: _Result) -> bool:
    """Whether one more loss is to be told."""
    everything = session.settings.json or session.settings.verbose
    return bool(everything) or len(result.losses) < LISTED


def _severity(capture: Capture, loss: Loss) -> Severity:
    """How much a loss matters: as its finding does; of padding nothing is lost."""
    try:
        return capture.diagnostics.rule(loss.code).severity
    except KeyError:
        return Severity.WARNING if loss.what == "padding" else Severity.DATA_LOSS


# --- what to write, and writing it -------------------------------------------------------------


def _writer(session: Session, capture: Capture, out: str) -> Writer:
    """The writer that OUT's suffix names. UsageError where it can do nothing with the capture."""
    writers = session.host.writers
    found = by_suffix(writers.values(), out)
    fitting = [writer for writer in found if _can_salvage(writer, capture)]
    meant = meant_by_suffix(session.host, fitting, capture)
    if meant is not None:
        return meant
    possible = [writer for writer in writers.values() if _can_salvage(writer, capture)]
    suffixes = ", ".join(suffix for writer in possible for suffix in writer.suffixes)
    remedy = f"name OUT after a format that can be written from it: {suffixes or 'there is none'}"
    if not found:
        raise UsageError(f"no format has the suffix of {out!r}", remedy=remedy)
    names = ", ".join(writer.format for writer in found)
    if fitting:
        raise UsageError(f"the suffix of {out} is that of several formats: {names}", remedy=remedy)
    raise UsageError(f"a {capture.format} capture cannot be written as {names}", remedy=remedy)


def _can_salvage(writer: Writer, capture: Capture) -> bool:
    return writer.format == capture.format or writer.composes(capture.tables)


def _write(
    session: Session,
    capture: Capture,
    writer: Writer,
    options: Mapping[str, Any],
    sink: Sink,
    result: _Result,
) -> Iterator[Loss]:
    """Write what is sound; give each loss as it is met."""
    if writer.format != capture.format:
        assert writer.compose is not None  # noqa: S101 (it composes this capture)
        result.composed = True
        export = writer.compose(sink, options)
        export.write(capture)
        result.dropped = export.close()
        capture.scan()
        yield from _found(capture, everything=True)
        return
    yield from _found(capture, everything=False)
    if writer.salvage is not None:
        yield from writer.salvage(capture, sink, options)
    else:
        from fxframework.kit.salvage import salvage_records

        target = RecordTarget(session, capture, writer, options, sink)
        yield from salvage_records(capture, target.write)
        result.status = target.close()


def _found(capture: Capture, *, everything: bool) -> Iterator[Loss]:
    """The capture's own findings of lost data; those alone that no record shows, or all."""
    from fxframework.kit.salvage import Loss

    for finding in capture.diagnostics.sorted():
        if finding.severity >= Severity.DATA_LOSS and (
            everything or finding.code in FRAMEWORK_RULES
        ):
            yield Loss(finding.offset or 0, 0, "finding", finding.message, finding.code)


# --- telling -----------------------------------------------------------------------------------


def _report(session: Session, capture: Capture, result: _Result) -> None:
    screen = session.screen
    if session.settings.json:
        screen.json("salvage", _document(capture, result))
    if session.settings.json or session.settings.quiet:
        return
    tell_dropped(session, result.writer.format, result.dropped)
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
        screen.say(f"  … and {amount(result.count - len(result.losses))} more (-v shows all)")
    screen.note(_closing(capture, result))


def _closing(capture: Capture, result: _Result) -> str:
    """How much was written, and how much of the capture was lost."""
    if result.composed:
        told = f"made from the tables of {capture.name}"
        lost = amount(result.count, "finding") + " of lost data"
    else:
        size = capture.source.size
        told = amount(result.records - result.lost_records, "record")
        lost = (
            f"{amount(result.lost_records, 'record')}, {amount(result.lost_bytes, 'byte')} "
            f"({_percent(result.lost_bytes, size)} of {amount(size)})"
        )
    return f"wrote {result.out}: {told}, {amount(result.nbytes, 'byte')}; lost: {lost}"


def _percent(part: int, whole: int) -> str:
    """A share in percent: of something never 0, and never 100 where something is left."""
    if part in {0, whole}:
        return f"{100 if part else 0} %"
    share = 100 * part / whole
    if share < 0.01:
        return "under 0.01 %"
    return f"{min(share, 99.99):.2f} %"


def _document(capture: Capture, result: _Result) -> dict[str, Any]:
    return {
        "path": capture.name,
        "format": capture.format,
        "size": capture.source.size,
        "out": result.out,
        "to": result.writer.format,
        "records": {
            "written": None if result.composed else result.records - result.lost_records,
            "lost": None if result.composed else result.lost_records,
        },
        "bytes": {
            "written": result.nbytes,
            "lost": None if result.composed else result.lost_bytes,
        },
        "dropped": result.dropped,
        "losses": [
            {
                "offset": loss.offset,
                "bytes": loss.nbytes,
                "code": loss.code or None,
                "severity": severity.key,
                "what": loss.what,
                "message": loss.message,
            }
            for loss, severity in result.losses
        ],
    }
