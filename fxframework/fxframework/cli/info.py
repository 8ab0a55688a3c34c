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
from fxframework.cli.session import Session
from fxframework.cli.text import fields, sparkline, wrapped
from fxframework.conversion import require_readable
from fxframework.errors import ExitCode
from fxframework.kit.shown import amount, cut, duration, printable

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

    def show(capture: Capture, documents: list[Mapping[str, Any]]) -> ExitCode:
        with session.screen.working(f"reading {capture.name}", capture.source):
            capture.scan()
            summary = capture.summary()
            row_counts = capture.row_counts()
            slow_names = _slowest(capture, row_counts)
        if session.settings.json:
            documents.append(_document(session, capture, summary, row_counts, slow_names))
        else:
            _print(session, capture, summary, row_counts, slow_names)
        require_readable(capture)
        return session.status(capture)

    return session.report("info", files, show)


def _slowest(capture: Capture, rows: Mapping[str, int]) -> Slowest | None:
    """Return the slowest names of a capture that has slices, each of them one call."""
    if not rows.get("slices") or capture.has_summed_calls:
        return None
    from fxframework.analysis.slowest import slowest

    slow_names = slowest(capture, SLOWEST)
    if not slow_names.names:
        return None
    return slow_names


def _document(
    session: Session,
    capture: Capture,
    summary: Summary,
    rows: Mapping[str, int],
    slow: Slowest | None,
) -> dict[str, Any]:
    start_ns = summary.start_ns
    end_ns = summary.end_ns
    diagnostics = capture.diagnostics
    return {
        "path": capture.name,
        "format": capture.format,
        "title": session.host.reader(capture.format).title,
        **fields(capture.source, "size unpacked"),
        **fields(summary, "records kinds"),
        "tables": rows,
        **fields(summary, "start_ns end_ns"),
        "duration_ns": None if start_ns is None or end_ns is None else end_ns - start_ns,
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
    size_text = amount(capture.source.size, "byte")
    if capture.source.unpacked:
        size_text += " unpacked"
    painted_name = screen.paint(printable(capture.name), bold=True)
    screen.print(f"{painted_name}: {title}, {size_text}")
    labelled_lines: list[tuple[str, str]] = []
    if summary.start_ns is not None and summary.end_ns is not None:
        length_text = duration(summary.end_ns - summary.start_ns)
        start_text = duration(summary.start_ns)
        end_text = duration(summary.end_ns)
        labelled_lines.append(("time", f"{length_text}, from {start_text} to {end_text}"))
    labelled_lines.append(("records", f"{amount(summary.records)}{_counts(summary.kinds, ': ')}"))
    labelled_lines.append(("tables", _counts(rows) or "no rows"))
    entry_limit = _entry_limit(screen)
    for fact, value in summary.facts.items():
        labelled_lines.extend(_fact(fact, value, entry_limit))
    if slow:
        labelled_lines.extend(_slow_lines(session, capture, slow))
    # Findings are printed last, but aligned with the other lines.
    label_width = max(len("findings"), *(len(label) for label, _ in labelled_lines)) + 2
    for label, text in labelled_lines:
        for line in wrapped(label, printable(text), indent=label_width, columns=screen.width - 2):
            screen.print(f"  {line}")
    _timeline(screen, summary)
    _findings(screen, capture, label_width)


def _slow_lines(session: Session, capture: Capture, slow: Slowest) -> list[tuple[str, str]]:
    """Return a line for each of the slowest names, and one with the command that shows all."""
    name_texts = []
    for slice_name in slow.names:
        noun = "call"
        if slice_name.asynchronous:
            noun = "asynchronous slice"
        total_time = length(slice_name.sum, slow.per_second)
        text = f"{cut(slice_name.name, NAME)}: {total_time} in {amount(slice_name.count, noun)}"
        if slice_name.count > 1:
            text += f", up to {length(slice_name.max, slow.per_second)}"
        if slice_name.own is None:
            text += " (recursive calls counted within their callers, too)"
        elif slice_name.own != slice_name.sum:
            text += f"; {length(slice_name.own, slow.per_second)} by itself"
        name_texts.append(text)
    hidden_count = slow.count - len(slow.names)
    capture_path = capture.source.path
    shown_file = "FILE" if capture_path is None else str(capture_path)
    last_text = "most time by themselves first"
    if slow.names[0].own is None:
        last_text = "most time in all first"
    if hidden_count > 0:
        last_text = f"… and {amount(hidden_count)} more, {last_text}"
    last_text += f"; all: fxf account --sort self {_arguments(session, shown_file)}"
    name_texts.append(last_text)
    # Asynchronous slices have no thread to ask, and a longer name is nothing to be typed.
    call_names = (
        name.name for name in slow.names if not name.asynchronous and len(name.name) <= NAME
    )
    slowest_name = next(call_names, None)
    if slowest_name is not None:
        name_texts.append(f"why: fxf why {_arguments(session, shown_file, slowest_name)}")
    return _with_label("slowest", name_texts)


def _arguments(session: Session, *words: str) -> str:
    """Return arguments of a command, with the options by which captures are opened here."""
    options: list[str] = []
    if session.settings.format is not None:
        options += ["-f", session.settings.format]
    for key, value in session.settings.options.items():
        options += ["-o", f"{key}={value}"]
    if any(word.startswith("-") for word in words):
        options.append("--")
    return shlex.join([*options, *words])


def _with_label(label: str, texts: Sequence[str]) -> list[tuple[str, str]]:
    """Return lines, the first with a label."""
    line_labels = itertools.chain([label], itertools.repeat(""))
    return list(zip(line_labels, texts, strict=False))


def _counts(counts: Mapping[str, int], before: str = "") -> str:
    """Format the nonzero counts, the greatest first: ``slices 34,592, threads 1``."""
    nonzero_counts = sorted(
        ((count, name) for name, count in counts.items() if count), reverse=True
    )
    text = ", ".join(f"{name} {amount(count)}" for count, name in nonzero_counts)
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
        first_item, *further_items = value.items()
        texts = [_value(*first_item)]
        if further_items:
            texts.append(_words(dict(further_items)))
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
    most_rows = _entry_limit(screen)
    for name, counts in summary.timeline[:most_rows]:
        label = cut(printable(name), label_width)
        bars = screen.paint(sparkline(counts, bar_width), fg="cyan")
        screen.print(f"    {label.ljust(label_width)} ▕{bars}▏")
    if most_rows is not None and len(summary.timeline) > most_rows:
        screen.print(f"    … and {amount(len(summary.timeline) - most_rows)} more (-v shows all)")


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
