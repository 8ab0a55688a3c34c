"""``fxf convert``: converts captures to another format."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import attrs
import click

from fxframework import rules
from fxframework.cli import complete
from fxframework.cli.filters import part_options
from fxframework.cli.options import command as _command
from fxframework.cli.session import Session, worst
from fxframework.cli.text import fields
from fxframework.conversion import plan
from fxframework.errors import ExitCode, Severity, UsageError, install_line, missing_packages
from fxframework.kit.shown import amount, printable
from fxframework.model.timeline import parse_alignments
from fxframework.targets import (
    check_suffix,
    nothing_to_write,
    passed_over,
    target_name,
    targets_for,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fxframework.cli.render import Screen
    from fxframework.conversion import Conversion, ConversionReport
    from fxframework.model.capture import Capture
    from fxframework.model.diagnostics import Diagnostic
    from fxframework.model.selection import Selection
    from fxframework.targets import Target


@_command(captures=True, times=True, name="convert")
@click.option(
    "-t",
    "--to",
    metavar="EXPORTER",
    shell_complete=complete.targets,
    help="Exporter or format, overriding the suffix of OUT.",
)
@click.option(
    "--table",
    metavar="NAME",
    help="Write this table, to an OUT that holds one: .csv, .arrow or .parquet. Short for "
    "-o table=NAME.",
)
@click.option(
    "--align",
    multiple=True,
    metavar="NAME:HOW",
    help="Align an input's clock: offset=NS, FROM=TO (ns; twice for drift), or tsc; repeatable.",
)
@click.option(
    "--split",
    metavar="INTO",
    help="Write parts of this size (100MB) or length (10s), or so many (8): OUT-001, OUT-002, …",
)
@click.option("--force", is_flag=True, help="Replace OUT; print binary output to a terminal.")
@click.option(
    "--list", "listing", is_flag=True, help="List the possible outputs of IN; takes no OUT."
)
@click.argument(
    "paths", nargs=-1, required=True, metavar="IN... OUT", shell_complete=complete.files
)
@part_options
def command(
    session: Session,
    to: str | None,
    table: str | None,
    align: tuple[str, ...],
    split: str | None,
    force: bool,
    listing: bool,
    paths: tuple[str, ...],
    names: Selection,
) -> ExitCode:
    """Convert captures to the format or exporter that the suffix of OUT, or -t, names.

    `fxf convert --list IN` lists the possible outputs. - is standard input or output. OUT appears
    complete or not at all, compressed if it ends in .gz or .zst. It replaces an existing file only
    with --force.

    --since, --until and the options under Parts and Log options select a part of each capture. A
    part in the capture's own format keeps everything that it needs. With --split, each part is a
    file that can be opened by itself.
    """
    if listing:
        return session.each(paths, lambda text: _list(session, text))
    if table is not None:
        session.settings.options["table"] = table
    *inputs, out = paths
    if not inputs:
        raise UsageError(
            f"convert needs IN and OUT, and got {out!r} only",
            remedy="name the output last; - is standard output; --list lists what IN can become",
        )
    if session.settings.json and out == "-":
        raise UsageError(
            "--json reports on standard output, where the output goes", remedy="name a file as OUT"
        )
    if not to:
        check_suffix(session.host, inputs, out)
    if split is not None:
        return _split(session, inputs, out, split, to, align, names, force=force)
    # Open all captures at once: they become one output, on one timeline.
    with contextlib.ExitStack() as stack:
        captures = [stack.enter_context(session.open(text, also=None)) for text in inputs]
        conversion = planned(session, captures, out, to, align, names)
        if not to:
            alternatives = passed_over(session.host, captures, out, conversion.target)
            if alternatives:
                session.screen.note(
                    f"{printable(out)} is written by {target_name(conversion.target)}; its suffix "
                    f"also belongs to {', '.join(alternatives)}: choose with -t {alternatives[0]}"
                )
        if out == "-" and conversion.binary and session.screen.out_is_terminal and not force:
            raise UsageError(
                f"{target_name(conversion.target)} is binary, and standard output is a terminal",
                remedy="send it to a file or a pipe, or give --force",
            )
        report = carry_out(session, conversion, out, force=force)
        return _finished(session, captures, [report], _as_json(report))


def _split(
    session: Session,
    inputs: Sequence[str],
    out: str,
    into: str,
    to: str | None,
    align: Sequence[str],
    names: Selection,
    *,
    force: bool,
) -> ExitCode:
    """Convert one capture to several outputs."""
    from fxframework.splitting import Split, split

    split_rule = Split.parse(into)
    if len(inputs) > 1 or align:
        raise UsageError(
            "--split takes one capture, and no --align",
            remedy="write the captures as one first, and split that one",
        )
    with session.open(inputs[0], also=None) as capture:
        working = session.screen.working(f"splitting {capture.name}", capture.source)
        with working:
            split_reports = split(
                session.host,
                capture,
                out,
                split_rule,
                to=to,
                part=session.selection(capture, names),
                options=session.settings.options,
                strict=session.settings.strict,
                open_sink=lambda name: session.sink(name, force=force),
            )
        part_documents = [_as_json(report) for report in split_reports]
        return _finished(session, [capture], split_reports, {"parts": part_documents})


def _finished(
    session: Session,
    captures: Sequence[Capture],
    reports: Sequence[ConversionReport],
    body: Mapping[str, Any],
) -> ExitCode:
    """Print what was written, with ``body`` as JSON; return the exit status."""
    exit_statuses = [session.status(capture) for capture in captures]
    for report in reports:
        _show(session, report)
        warn_of_findings(session, report.findings)
        if any(finding.severity >= Severity.DATA_LOSS for finding in report.findings):
            exit_statuses.append(ExitCode.FINDINGS)
    if session.settings.json:
        session.screen.json("convert", body)
    return worst(*exit_statuses)


def planned(
    session: Session,
    captures: Sequence[Capture],
    out: str,
    to: str | None,
    align: Sequence[str],
    names: Selection,
) -> Conversion:
    """Plan a conversion; report how each capture is aligned to the clock of the first one."""
    conversion = plan(
        session.host,
        captures,
        out,
        to=to,
        parts=[session.selection(capture, names) for capture in captures],
        options=session.settings.options,
        strict=session.settings.strict,
        alignments=parse_alignments(align),
    )
    for alignment in conversion.alignments:
        fitted_line = alignment.line
        if alignment.assumed:
            session.screen.warn(
                rules.UNRELATED_CLOCKS.code, f"{printable(alignment.name)}: {alignment.reason}"
            )
        elif not fitted_line.is_identity:
            shift_text = f"a rate of {fitted_line.rate}"
            if fitted_line.rate == 1:
                shift_text = f"{fitted_line.start - fitted_line.origin:+,} ns"
            session.screen.note(f"{printable(alignment.name)}: {shift_text} ({alignment.reason})")
    return conversion


def carry_out(
    session: Session, conversion: Conversion, out: str, *, force: bool
) -> ConversionReport:
    """Run the conversion, with progress, and commit the output."""
    capture_names = ", ".join(capture.name for capture in conversion.captures)
    sources = [capture.source for capture in conversion.captures]
    with (
        session.sink(out, force=force) as sink,
        session.screen.working(f"converting {capture_names}", *sources, noun="written") as working,
    ):
        working.watch(lambda: sink.written)
        report = conversion.run(sink)
    # A compressing sink knows its size only after it is closed.
    return attrs.evolve(report, nbytes=sink.written)


def warn_of_findings(session: Session, findings: Iterable[Diagnostic]) -> None:
    """Print the findings of a writer of severity WARNING and above."""
    for finding in findings:
        if finding.severity >= Severity.WARNING:
            session.screen.warn(finding.code, finding.message)


def note_dropped(session: Session, name: str, dropped: Mapping[str, int]) -> None:
    """Print the counts of what a target cannot hold."""
    if dropped:
        dropped_counts = ", ".join(
            f"{dropped_kind} ({count:,})" for dropped_kind, count in dropped.items()
        )
        session.screen.note(f"not written as {name}: {dropped_counts}")


def _show(session: Session, report: ConversionReport) -> None:
    screen = session.screen
    note_dropped(session, report.to, report.dropped)
    screen.skipped(report.skipped)
    if report.outside:
        counts_outside = ", ".join(f"{count:,} {what}" for what, count in report.outside.items())
        screen.detail(f"outside of the part: {counts_outside}")
    if report.out != "<stdout>":
        screen.note(f"wrote {report.out}: {report.to}, {amount(report.nbytes, 'byte')}")


def _as_json(report: ConversionReport) -> dict[str, Any]:
    return {
        "inputs": [attrs.asdict(input) for input in report.inputs],
        **fields(report, "out to"),
        "action": str(report.action),
        **fields(report, "bytes=nbytes dropped left_out=outside skipped"),
        "renumbered": {str(id): own_id for id, own_id in report.renumbered.items()},
    }


# --- Possible targets --------------------------------------------------------------------------


def _list(session: Session, text: str) -> ExitCode:
    """Print the formats and exporters that can write a capture, with their suffixes."""
    with session.open(text) as capture:
        offered_targets = [_offer(target, capture) for target in targets_for(session.host, capture)]
        if session.settings.json:
            list_document = {
                "path": capture.name,
                "format": capture.format,
                "targets": offered_targets,
            }
            session.screen.json("convert-list", list_document)
        else:
            _print_targets(session.screen, capture, offered_targets)
        return ExitCode.OK


def _print_targets(screen: Screen, capture: Capture, targets: Sequence[Mapping[str, Any]]) -> None:
    title = f"{printable(capture.name)}: {capture.format} can become"
    screen.print(screen.paint(title, bold=True))
    rows = [("TO", "SUFFIXES", "WHAT IT IS")]
    extras_by_line: dict[str, dict[str, None]] = {}
    for target in targets:
        remarks = []
        if target["empty"]:
            remarks.append(f"nothing to write: {target['empty']}")
        if target["install"]:
            remarks.append(f"needs the extra {target['extra']}")
            extras_by_line.setdefault(target["install"], {})[target["extra"]] = None
        title = target["title"]
        if remarks:
            title += f" ({'; '.join(remarks)})"
        rows.append((target["to"], " ".join(target["suffixes"]) or "–", title))
    screen.wrapped_columns(rows)
    for line, missing_extras in extras_by_line.items():
        screen.note(f"to install the extra {', '.join(missing_extras)}: {line}")
    whole_names = [target["to"] for target in targets if target["whole"] and not target["empty"]]
    if whole_names:
        verb = "needs" if len(whole_names) == 1 else "need"
        screen.note(
            f"{', '.join(whole_names)} {verb} whole tables in memory; of a large capture, choose a "
            "part with --since and --until, or raise -o max_memory=BYTES"
        )


def _offer(target: Target, capture: Capture) -> dict[str, Any]:
    """Return what --list says of a target."""
    extra_name = getattr(target, "extra", "")
    packages_missing = missing_packages(extra_name)
    return {
        "to": target_name(target),
        "suffixes": target.suffixes,
        "title": target.title,
        "extra": extra_name,
        "install": install_line(extra_name, packages_missing[0]) if packages_missing else "",
        "empty": nothing_to_write(target, capture),
        "whole": not getattr(target, "streams", True),
    }
