"""``fxf info``: shows what captures contain."""

from __future__ import annotations

import itertools
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from fxframework.cli import complete
from fxframework.cli.calls import length
from fxframework.cli.options import command as _command
from fxframework.cli.session import Session, require_readable
from fxframework.cli.text import amount, duration, fields, printable, sparkline, wrapped
from fxframework.errors import ExitCode, FxError

if TYPE_CHECKING:
    from fxframework.analysis.slowest import Slowest
    from fxframework.cli.render import Screen
    from fxframework.model.capture import Capture, Summary

LISTED = 12
"""Entries of a list that are shown without -v."""
WALL = "wall_ns"
"""Suffix of the names of facts that are nanoseconds since the Unix epoch."""
OFFSET = "utc_offset"
"""Suffix of the names of facts that are offsets of a clock from that epoch, in nanoseconds."""
SLOWEST = 5
"""Names of slices that are shown."""
NAME = 80
"""Characters of such a name."""
NOTHING = "–"
LABEL = 20
"""The most columns for the label of a timeline row."""


@_command(captures=True, name="info")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", shell_complete=complete.files)
def command(session: Session, files: tuple[str, ...]) -> ExitCode:
    """Show what captures contain: records, tables, times, findings.

    FILE is a path, - for standard input, or NAME:PATH to name its format. The default command:
    `fxf FILE` does the same.
    """
    session.whole("info")
    documents: list[Mapping[str, Any]] = []

    def show(text: str) -> ExitCode:
        with session.open(text, several=len(files) > 1) as capture:
            with session.screen.working(f"reading {capture.name}", capture.source):
                capture.scan()
                summary = capture.summary()
                rows = capture.row_counts()
                slow = _slowest(capture, rows)
            if session.settings.json:
                documents.append(_document(session, capture, summary, rows, slow))
            else:
                _print(session, capture, summary, rows, slow)
            require_readable(capture)
            return session.status(capture)

    def show_or_note(text: str) -> ExitCode:
        try:
            return show(text)
        except FxError as error:
            # Of a capture that was opened, the document is there, and says what is wrong.
            if not documents or documents[-1].get("path") != error.path:
                failure = {"code": error.code, "message": error.message}
                documents.append({"path": session.named(text)[1], "error": failure})
            raise

    status = session.each(files, show_or_note)
    if session.settings.json:
        session.screen.json("info", {"captures": documents})
    return status


def _slowest(capture: Capture, rows: Mapping[str, int]) -> Slowest | None:
    """Return the slowest names of a capture that has slices, each of them one call."""
    if not rows.get("slices") or capture.has_summed_calls:
        return None
    from fxframework.analysis.slowest import slowest

    names = slowest(capture, SLOWEST)
    if not names.names:
        return None
    return names


def _document(
    session: Session,
    capture: Capture,
    summary: Summary,
    rows: Mapping[str, int],
    slow: Slowest | None,
) -> dict[str, Any]:
    start = summary.start_ns
    end = summary.end_ns
    diagnostics = capture.diagnostics
    return {
        "path": capture.name,
        "format": capture.format,
        "title": session.host.reader(capture.format).title,
        **fields(capture.source, "size unpacked"),
        **fields(summary, "records kinds"),
        "tables": rows,
        **fields(summary, "start_ns end_ns"),
        "duration_ns": None if start is None or end is None else end - start,
        "facts": summary.facts,
        "slowest": [] if slow is None else _slowest_documents(slow),
        "timeline": [{"name": name, "counts": counts} for name, counts in summary.timeline],
        "findings": [
            {
                "code": code,
                "severity": diagnostics.severity(code).key,
                "count": count,
                "title": diagnostics.rule(code).title,
            }
            for code, count in sorted(diagnostics.counts.items())
        ],
    }


def _slowest_documents(slow: Slowest) -> list[dict[str, Any]]:
    return [
        {
            **fields(slice_name, "name asynchronous count sum max self=own"),
            "units_per_second": slow.per_second,
        }
        for slice_name in slow.names
    ]


def _print(
    session: Session,
    capture: Capture,
    summary: Summary,
    rows: Mapping[str, int],
    slow: Slowest | None,
) -> None:
    screen = session.screen
    title = session.host.reader(capture.format).title
    size = amount(capture.source.size, "byte")
    if capture.source.unpacked:
        size += " unpacked"
    name = screen.paint(printable(capture.name), bold=True)
    screen.print(f"{name}: {title}, {size}")
    lines: list[tuple[str, str]] = []
    if summary.start_ns is not None and summary.end_ns is not None:
        length_text = duration(summary.end_ns - summary.start_ns)
        start = duration(summary.start_ns)
        end = duration(summary.end_ns)
        lines.append(("time", f"{length_text}, from {start} to {end}"))
    lines.append(("records", f"{amount(summary.records)}{_counts(summary.kinds, ': ')}"))
    lines.append(("tables", _counts(rows) or "no rows"))
    entry_limit = _entry_limit(screen)
    for fact, value in summary.facts.items():
        lines.extend(_fact(fact, value, entry_limit))
    if slow:
        lines.extend(_slow_lines(capture, slow))
    # Findings are printed last, but aligned with the other lines.
    width = max(len("findings"), *(len(label) for label, _ in lines)) + 2
    for label, text in lines:
        for line in wrapped(label, printable(text), indent=width, columns=screen.width - 2):
            screen.print(f"  {line}")
    _timeline(screen, summary)
    _findings(screen, capture, width)


def _slow_lines(capture: Capture, slow: Slowest) -> list[tuple[str, str]]:
    """Return a line for each of the slowest names, and one with the command that shows all."""
    texts = []
    for slice_name in slow.names:
        noun = "call"
        if slice_name.asynchronous:
            noun = "asynchronous slice"
        total = length(slice_name.sum, slow.per_second)
        text = f"{_cut(slice_name.name, NAME)}: {total} in {amount(slice_name.count, noun)}"
        if slice_name.count > 1:
            text += f", up to {length(slice_name.max, slow.per_second)}"
        if slice_name.own is None:
            text += " (recursive calls counted within their callers, too)"
        elif slice_name.own != slice_name.sum:
            text += f"; {length(slice_name.own, slow.per_second)} by itself"
        texts.append(text)
    hidden_count = slow.count - len(slow.names)
    path = capture.source.path
    file = "FILE" if path is None else shlex.quote(str(path))
    last_text = f"all: fxf account --sort self {file}"
    if hidden_count > 0:
        last_text = f"… and {amount(hidden_count)} more; {last_text}"
    texts.append(last_text)
    # Asynchronous slices have no thread to ask, and a longer name is nothing to be typed.
    calls = (name.name for name in slow.names if not name.asynchronous and len(name.name) <= NAME)
    slowest_name = next(calls, None)
    if slowest_name is not None:
        arguments = f"{file} {shlex.quote(slowest_name)}"
        if slowest_name.startswith("-"):
            arguments = f"-- {arguments}"
        texts.append(f"why: fxf why {arguments}")
    return _with_label("slowest", texts)


def _with_label(label: str, texts: Sequence[str]) -> list[tuple[str, str]]:
    """Return lines, the first with a label."""
    labels = itertools.chain([label], itertools.repeat(""))
    return list(zip(labels, texts, strict=False))


def _cut(text: str, width: int) -> str:
    if len(text) <= width:
        return text
    return text[: width - 1] + "…"


def _counts(counts: Mapping[str, int], before: str = "") -> str:
    """Format the nonzero counts, the greatest first: ``slices 34,592, threads 1``."""
    nonzero = sorted(((count, name) for name, count in counts.items() if count), reverse=True)
    text = ", ".join(f"{name} {amount(count)}" for count, name in nonzero)
    if not text:
        return ""
    return before + text


def _entry_limit(screen: Screen) -> int | None:
    """Return the most entries of a list to show; None for all of them."""
    if screen.settings.verbose:
        return None
    return LISTED


def _fact(name: str, value: Any, limit: int | None) -> list[tuple[str, str]]:
    """Return the lines of a fact: one per element of a list, none if it is empty."""
    label = name.replace("_", " ")
    if value in ([], {}):
        return []
    if not isinstance(value, list):
        return [(label, _value(name, value))]
    lines = _with_label(label, [_entry(name, entry) for entry in value[:limit]])
    if limit is not None and len(value) > limit:
        lines.append(("", f"… and {amount(len(value) - limit)} more (-v shows all)"))
    return lines


def _entry(name: str, value: Any) -> str:
    """Format a list's element; omit the name of its first value if the list is named after it."""
    if isinstance(value, Mapping) and value and name == f"{next(iter(value))}s":
        first, *further = value.items()
        texts = [_value(*first)]
        if further:
            texts.append(_words(dict(further)))
        return ", ".join(texts)
    return _words(value)


def _value(name: str, value: Any) -> str:
    from fxframework.model.clock import utc_text

    if isinstance(value, int) and not isinstance(value, bool):
        if name.endswith(WALL):
            return utc_text(value)
        if name.endswith(OFFSET):
            return f"{value} ns: time 0 is {utc_text(value)}"
    return _words(value)


def _words(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(
            f"{name.replace('_', ' ')} {_value(name, entry)}"
            for name, entry in value.items()
            if entry is not None
        )
    if isinstance(value, list):
        return "; ".join(map(_words, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return amount(value)
    return NOTHING if value is None or value == "" else str(value)


def _timeline(screen: Screen, summary: Summary) -> None:
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    if not (screen.out_is_terminal and summary.timeline and encoding == "utf8"):
        return
    screen.print("  timeline")
    # Use a third of the terminal for labels, the rest for time.
    longest_label = max(len(printable(name)) for name, _ in summary.timeline)
    label_width = min(max(LABEL, screen.width // 3), longest_label)
    bar_width = max(8, screen.width - label_width - 7)
    limit = _entry_limit(screen)
    for name, counts in summary.timeline[:limit]:
        label = _cut(printable(name), label_width)
        bars = screen.paint(sparkline(counts, bar_width), fg="cyan")
        screen.print(f"    {label.ljust(label_width)} ▕{bars}▏")
    if limit is not None and len(summary.timeline) > limit:
        screen.print(f"    … and {amount(len(summary.timeline) - limit)} more (-v shows all)")


def _findings(screen: Screen, capture: Capture, width: int) -> None:
    diagnostics = capture.diagnostics
    if not diagnostics.counts:
        screen.print(f"  {'findings'.ljust(width)}none")
        return
    label = "findings"
    for code in sorted(diagnostics.counts, key=lambda code: (-diagnostics.severity(code), code)):
        severity = diagnostics.severity(code)
        count = diagnostics.counts[code]
        text = f"{code} {severity.word}: {diagnostics.rule(code).title}, {amount(count, 'time')}"
        for line in wrapped(label, text, indent=width, columns=screen.width - 2):
            screen.print(f"  {line}")
        label = ""
