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
from fxframework.cli.text import fields
from fxframework.errors import ExitCode, Severity
from fxframework.kit.shown import amount, printable

if TYPE_CHECKING:
    from fxframework.model.capture import Capture
    from fxframework.model.diagnostics import Diagnostic, Diagnostics

SHOWN = 3
"""Findings per code that are shown without -v."""


@_command(captures=True, name="verify")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", shell_complete=complete.files)
def command(session: Session, files: tuple[str, ...]) -> ExitCode:
    """List every violation of the format, with its offset and the bytes there.

    The first three findings of each code are listed, and those of severity info are counted; -v
    lists all. The exit status is 3 if there is a warning or worse.
    """
    session.whole("verify")

    def verify(capture: Capture, shown: list[Mapping[str, Any]]) -> ExitCode:
        with session.screen.working(f"reading {capture.name}", capture.source):
            capture.scan()
            records = capture.summary().records
        findings = _all(capture.diagnostics)
        if session.settings.json:
            shown.append(_document(capture, findings, records))
        else:
            _print(session, capture, findings, records)
        worst_severity = capture.diagnostics.worst
        if worst_severity is None or worst_severity < Severity.WARNING:
            return ExitCode.OK
        return ExitCode.FINDINGS

    return session.report("verify", files, verify)


def _all(diagnostics: Diagnostics) -> list[Diagnostic]:
    """Return the findings by offset, then an entry per code for the findings not listed."""
    from fxframework.model.diagnostics import Diagnostic

    findings = diagnostics.sorted()
    listed_counts = Counter(finding.code for finding in findings)
    for code, count in sorted(diagnostics.counts.items()):
        if count > listed_counts[code]:
            unlisted_text = amount(count - listed_counts[code], "more finding")
            message = f"{unlisted_text} of {code}, not listed"
            rule = rules.UNLISTED_FINDINGS
            findings.append(Diagnostic(rule.code, rule.severity, None, None, message))
    return findings


def _document(capture: Capture, findings: list[Diagnostic], records: int) -> dict[str, Any]:
    diagnostics = capture.diagnostics
    worst_severity = diagnostics.worst
    return {
        "path": capture.name,
        "format": capture.format,
        "size": capture.source.size,
        "records": records,
        "worst": None if worst_severity is None else worst_severity.key,
        "counts": diagnostics.counts,
        "findings": [
            {
                **fields(finding, "code severity offset record message"),
                "severity": finding.severity.key,
                **fields(rule, "title section"),
                "remedy": rule.advice(capture.name, finding.offset, explains=explains(capture)),
            }
            for finding in findings
            for rule in (diagnostics.rule(finding.code),)
        ],
    }


def _print(session: Session, capture: Capture, findings: list[Diagnostic], records: int) -> None:
    screen = session.screen
    shows_all = bool(session.settings.verbose)
    count_by_code: Counter[str] = Counter()
    for finding in findings:
        if finding.severity < Severity.WARNING and not shows_all:
            continue
        count_by_code[finding.code] += 1
        if count_by_code[finding.code] <= SHOWN or shows_all:
            # The rule of a code is explained once.
            is_first = count_by_code[finding.code] == 1
            rule = capture.diagnostics.rule(finding.code)
            screen.finding(finding, rule, capture, explained=is_first)
    if not shows_all:
        for code, count in sorted(count_by_code.items()):
            # More may have been counted than are among the findings.
            hidden_count = capture.diagnostics.counts.get(code, count) - min(count, SHOWN)
            if hidden_count > 0:
                more_text = amount(hidden_count, "more finding")
                screen.print(f"{screen.paint(code, bold=True)}: {more_text} (-v lists them)")
    screen.print(f"{printable(capture.name)}: {_verdict(session, capture, records)}")


def _verdict(session: Session, capture: Capture, records: int) -> str:
    """Return whether a capture is sound, and its numbers of records and findings."""
    count_by_severity: Counter[Severity] = Counter()
    for code, count in capture.diagnostics.counts.items():
        count_by_severity[capture.diagnostics.severity(code)] += count
    if max(count_by_severity, default=Severity.INFO) < Severity.WARNING:
        verdict = session.screen.paint("sound", fg="green", bold=True)
    else:
        verdict = session.screen.paint("departs from the format", fg="red", bold=True)
    text = f"{verdict}, {amount(records, 'record')}"
    by_severity = [
        f"{amount(count_by_severity[severity])} {severity.word}"
        for severity in reversed(Severity)
        if count_by_severity[severity]
    ]
    if by_severity:
        text += f"; findings: {', '.join(by_severity)}"
        if count_by_severity[Severity.INFO] and not session.settings.verbose:
            text += " (-v lists the info)"
    return text
