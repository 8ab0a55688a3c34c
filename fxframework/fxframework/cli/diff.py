"""``fxf diff``: compares two captures."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from fxframework.cli import complete
from fxframework.cli.options import command as _command
from fxframework.cli.options import side_options
from fxframework.cli.session import Session
from fxframework.cli.text import fields, optional_fields
from fxframework.conversion import require_readable
from fxframework.errors import ExitCode, UsageError
from fxframework.kit.shown import amount, cut, printable
from fxframework.verbs import BY, compared_by

if TYPE_CHECKING:
    from fxframework.cli.render import Screen
    from fxframework.kit.difference import (
        Difference,
        EntryDifference,
        RecordDifference,
        ShownRecord,
    )
    from fxframework.model.capture import Capture, Entry

SIDES = ("A", "B")
LONGEST = 200
"""Characters of a record that are shown without -v."""


class _By(click.Choice[str]):
    """What to compare; the error for anything else names the command that compares runs."""

    def convert(
        self, value: Any, _param: click.Parameter | None, _ctx: click.Context | None
    ) -> str:
        compared_by(value)
        return str(value)


@_command(captures=True, times=True, name="diff")
@click.option(
    "--by",
    type=_By(list(BY)),
    default="all",
    help="What to compare. Default: all.",
)
@click.option(
    "--show",
    type=click.IntRange(0),
    default=10,
    metavar="N",
    help="Entries of each list. Default: 10.",
)
@side_options
@click.argument("first", metavar="A", shell_complete=complete.files)
@click.argument("second", metavar="B", shell_complete=complete.files)
def command(
    session: Session,
    by: str,
    show: int,
    of_a: tuple[str, ...],
    of_b: tuple[str, ...],
    first: str,
    second: str,
) -> ExitCode:
    """Show what differs between two captures of one format.

    Records are equal if their contents are equal, wherever they are and whichever indexes they use.
    Captures of a state, such as a tree of properties, are compared path by path instead. `fxf
    compare` shows what two runs did differently: which names took longer or occurred more often.
    The exit status is 0 if all is equal and 1 if something differs; -q prints nothing but errors.
    """
    from fxframework.kit.difference import compare

    if first == second == "-":
        raise UsageError("standard input can be read once only", remedy="name a file as A or B")
    with contextlib.ExitStack() as stack:
        captures = []
        for text, own_options in ((first, of_a), (second, of_b)):
            with session.own_options(own_options):
                captures.append(stack.enter_context(session.open(text, several=True)))
        capture_a, capture_b = captures
        windows = session.window(capture_a), session.window(capture_b)
        label = f"comparing {capture_a.name} and {capture_b.name}"
        with session.screen.working(label, capture_a.source, capture_b.source):
            difference = compare(*windows, by=BY[by], show=show)
        if not difference.identical:
            for capture in (capture_a, capture_b):
                require_readable(capture)
                session.status(capture)
        if session.settings.json:
            session.screen.json("diff", _document(windows, difference))
        elif not session.settings.quiet:
            _print(session, windows, difference)
        # The exit statuses are those of diff(1): 1 means that something differs.
        if difference.same:
            return ExitCode.OK
        return ExitCode.FAILED


# --- JSON --------------------------------------------------------------------------------------


def _document(pair: Sequence[Capture], difference: Difference) -> dict[str, Any]:
    records = difference.records
    entries = difference.entries
    return {
        "a": pair[0].name,
        "b": pair[1].name,
        "format": pair[0].format,
        "same": difference.same,
        "identical": difference.identical,
        "records": None if records is None else _record_document(records),
        "entries": None if entries is None else _entry_documents(entries),
    }


def _record_document(records: RecordDifference) -> dict[str, Any]:
    def shown(record: ShownRecord | None) -> dict[str, Any] | None:
        return optional_fields(record, "offset said")

    first_a, first_b = records.first or (None, None)
    return {
        **fields(records, "same reordered"),
        "count_a": records.totals[0],
        "count_b": records.totals[1],
        "compared_a": records.counts[0],
        "compared_b": records.counts[1],
        "only_a": records.only[0],
        "only_b": records.only[1],
        "shown_a": [shown(record) for record in records.shown[0]],
        "shown_b": [shown(record) for record in records.shown[1]],
        "first_a": shown(first_a),
        "first_b": shown(first_b),
    }


def _entry_documents(entries: EntryDifference) -> dict[str, Any]:
    return {
        "same": entries.same,
        "count_a": entries.counts[0],
        "count_b": entries.counts[1],
        "only_a": entries.only[0],
        "only_b": entries.only[1],
        "changed": entries.changed,
        "shown_a": [entry_document(entry) for entry in entries.shown[0]],
        "shown_b": [entry_document(entry) for entry in entries.shown[1]],
        "shown_changed": [
            {"path": before.path, "a": entry_document(before), "b": entry_document(after)}
            for before, after in entries.changes
        ],
    }


def entry_document(entry: Entry) -> dict[str, Any]:
    """Return an entry as JSON."""
    return fields(entry, "path type value offset")


# --- Text --------------------------------------------------------------------------------------


def _print(session: Session, pair: Sequence[Capture], difference: Difference) -> None:
    screen = session.screen
    for side, capture in zip(SIDES, pair, strict=True):
        screen.print(f"{side}: {printable(capture.name)}")
    if difference.identical:
        screen.print(f"same: both are the same {amount(pair[0].source.size, 'byte')}")
        return
    if difference.records is not None:
        _print_records(session, difference.records)
    if difference.entries is not None:
        _print_entries(session, difference.entries)
    if difference.same:
        screen.print(screen.paint("same", fg="green", bold=True))
    else:
        screen.print(screen.paint("different", fg="red", bold=True))


def _print_records(session: Session, records: RecordDifference) -> None:
    screen = session.screen
    count_a, count_b = records.totals
    verdict = ""
    if records.same:
        verdict = ", the same"
    elif records.reordered:
        verdict = ", the same in another order"
    screen.print(
        f"records: {amount(count_a, 'record')} in A, {amount(count_b, 'record')} in B{verdict}"
    )
    # Records that only support others, such as entries of an index, are not compared.
    if records.counts != records.totals:
        compared_a, compared_b = records.counts
        screen.print(
            f"  compared: {amount(compared_a)} and {amount(compared_b)}, all but those that only "
            "support others"
        )
    if records.same:
        return
    if records.first is not None:
        screen.print("  first difference")
        for side, record in zip(SIDES, records.first, strict=True):
            screen.print(f"    {side} {_line(session, record) if record else 'has ended'}")
    for side, only, shown in zip(SIDES, records.only, records.shown, strict=True):
        if not only:
            continue
        kinds = ", ".join(f"{printable(kind)} {amount(count)}" for kind, count in only.items())
        total = sum(only.values())
        screen.print(f"  only in {side}: {amount(total)} ({kinds})")
        for record in shown:
            screen.print(f"    {_line(session, record)}")
        _print_rest(screen, total - len(shown), "    ")


def _print_entries(session: Session, entries: EntryDifference) -> None:
    screen = session.screen
    count_a, count_b = (amount(count, "entry", "entries") for count in entries.counts)
    verdict = ""
    if entries.same:
        verdict = ", the same"
    screen.print(f"entries: {count_a} in A, {count_b} in B{verdict}")
    if entries.changed:
        screen.print(f"  changed: {amount(entries.changed)}")
        for before, after in entries.changes:
            screen.print(f"    {change_line(session, before, after)}")
        _print_rest(screen, entries.changed - len(entries.changes), "    ")
    for side, count, shown in zip(SIDES, entries.only, entries.shown, strict=True):
        if not count:
            continue
        screen.print(f"  only in {side}: {amount(count)}")
        for entry in shown:
            screen.print(f"    {entry_line(session, entry)}")
        _print_rest(screen, count - len(shown), "    ")


def entry_line(session: Session, entry: Entry) -> str:
    """Format an entry in one line: its path, its type, and its value if it has one."""
    line = f"{printable(entry.path)}  {entry.type}"
    if entry.value is None:
        return line
    return f"{line} {_json(session, entry.value)}"


def change_line(session: Session, before: Entry, after: Entry) -> str:
    """Format the change of an entry in one line."""
    value = _json(session, after.value)
    if before.type != after.type:
        value = f"{after.type} {value}"
    return f"{entry_line(session, before)} -> {value}"


def _json(session: Session, value: Any) -> str:
    """Format a value as JSON, shortened without -v."""
    text = printable(session.screen.json_line(value).decode().rstrip("\n"))
    return text if session.settings.verbose else cut(text, LONGEST)


def _print_rest(screen: Screen, hidden_count: int, indent: str) -> None:
    if hidden_count > 0:
        screen.print(f"{indent}… and {amount(hidden_count)} more (--show N shows N)")


def _line(session: Session, record: ShownRecord) -> str:
    """Format a record in one line: its offset and its contents."""
    return f"0x{record.offset:08x}  {_json(session, record.said)}"
