"""``fxf verify``: lists every violation of the format with its place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from fxframework import rules
from fxframework.cli import complete
from fxframework.cli.options import command as _command
from fxframework.cli.render import explains
from fxframework.cli.session import Session
from fxframework.cli.text import amount, fields, printable
from fxframework.errors import ExitCode, Severity

if TYPE_CHECKING:
    from fxframework.model.capture import Capture
    from fxframework.model.diagnostics import Diagnostic, Diagnostics

SHOWN = 3
"""Findings per code that are shown without -v."""


@_command(captures=True, name="verify", short_help="List every violation of the format.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", shell_complete=complete.files)
def command(session: Session, files: tuple[str, ...]) -> ExitCode:
    """List every violation of the format, with its offset and the bytes there.

    The first three findings of each code are listed, and those of severity info are counted; -v
    lists all. The exit status is 3 if there is a warning or worse.
    """
    session.whole("verify")

    def one(capture: Capture, shown: list[Mapping[str, Any]]) -> ExitCode:
        with session.screen.working(f"reading {capture.name}", capture.source):
            capture.scan()
            records = capture.summary().records
        found = _all(capture.diagnostics)
        if session.settings.json:
            shown.append(_document(capture, found, records))
        else:
            _print(session, capture, found, records)
        worst = capture.diagnostics.worst
        sound = worst is None or worst < Severity.WARNING
        return ExitCode.OK if sound else ExitCode.FINDINGS

    return session.report("verify", files, one)


def _all(diagnostics: Diagnostics) -> list[Diagnostic]:
    """Return the findings by offset, then an entry per code for the findings not listed."""
    from fxframework.model.diagnostics import Diagnostic

    found = diagnostics.sorted()
    listed = Counter(finding.code for finding in found)
    for code, count in sorted(diagnostics.counts.items()):
        if count > listed[code]:
            more = amount(count - listed[code], "more finding")
            rule, message = rules.UNLISTED_FINDINGS, f"{more} of {code}, not listed"
            found.append(Diagnostic(rule.code, rule.severity, None, None, message))
    return found


def _document(capture: Capture, found: list[Diagnostic], records: int) -> dict[str, Any]:
    diagnostics = capture.diagnostics
    worst = diagnostics.worst
    return {
        "path": capture.name,
        "format": capture.format,
        "size": capture.source.size,
        "records": records,
        "worst": None if worst is None else worst.key,
        "counts": diagnostics.counts,
        "findings": [
            {
                **fields(finding, "code severity offset record message"),
                "severity": finding.severity.key,
                **fields(rule, "title section"),
                "remedy": rule.advice(capture.name, finding.offset, explains=explains(capture)),
            }
            for finding in found
            for rule in (diagnostics.rule(finding.code),)
        ],
    }


def _print(session: Session, capture: Capture, found: list[Diagnostic], records: int) -> None:
    screen = session.screen
    everything = bool(session.settings.verbose)
    shown: Counter[str] = Counter()
    for finding in found:
        if finding.severity < Severity.WARNING and not everything:
            continue
        shown[finding.code] += 1
        if shown[finding.code] > SHOWN and not everything:
            continue
        rule = capture.diagnostics.rule(finding.code)
        screen.finding(finding, rule, capture, explained=shown[finding.code] == 1)
    for code, count in sorted(shown.items()):
        more = capture.diagnostics.counts.get(code, count) - min(count, SHOWN)
        if more > 0 and not everything:
            rest = amount(more, "more finding")
            screen.print(f"{screen.paint(code, bold=True)}: {rest} (-v lists them)")
    counts: Counter[Severity] = Counter()
    for code, count in capture.diagnostics.counts.items():
        counts[capture.diagnostics.severity(code)] += count
    name = printable(capture.name)
    listed = ", ".join(
        f"{amount(counts[severity])} {severity.word}"
        for severity in reversed(Severity)
        if counts[severity]
    )
    sound = max(counts, default=Severity.INFO) < Severity.WARNING
    verdict = "sound" if sound else "departs from the format"
    colour = "green" if sound else "red"
    verdict = screen.paint(verdict, fg=colour, bold=True)
    tail = f"; findings: {listed}" if listed else ""
    if listed and not session.settings.verbose and counts[Severity.INFO]:
        tail += " (-v lists the info)"
    screen.print(f"{name}: {verdict}, {amount(records, 'record')}{tail}")
