"""``fxf diff``: compares two captures."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from fxframework.cli import complete
from fxframework.cli.options import command as _command
from fxframework.cli.options import side_options
from fxframework.cli.session import Session, require_readable
from fxframework.cli.text import amount, fields, printable
from fxframework.errors import ExitCode, UsageError
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


@_command(
    captures=True, times=True, name="diff", short_help="Show what differs between two captures."
)
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

    Records are equal if their contents are, wherever they are and whichever indexes they use.
    Captures of a state, such as a tree of properties, are compared path by path instead. `fxf
    compare` shows what two runs did differently: which names took longer or occurred more often.
    The exit status is 0 if all is equal and 1 if something differs; -q prints nothing but errors.
    """
    from fxframework.kit.difference import compare

    if first == second == "-":
        raise UsageError("standard input can be read once only", remedy="name a file as A or B")
    with contextlib.ExitStack() as stack:
        captures = []
        for text, own in ((first, of_a), (second, of_b)):
            with session.own_options(own):
                captures.append(stack.enter_context(session.open(text, several=True)))
        a, b = captures
        pair = session.window(a), session.window(b)
        with session.screen.working(f"comparing {a.name} and {b.name}", a.source, b.source):
            found = compare(*pair, by=BY[by], show=show)
        if not found.identical:
            for capture in (a, b):
                require_readable(capture)
                session.status(capture)
        if session.settings.json:
            session.screen.json("diff", _document(pair, found))
        elif not session.settings.quiet:
            _print(session, pair, found)
        # The exit statuses are those of diff(1): 1 means that something differs.
        return ExitCode.OK if found.same else ExitCode.FAILED


# --- JSON --------------------------------------------------------------------------------------


def _document(pair: Sequence[Capture], found: Difference) -> dict[str, Any]:
    records = found.records
    return {
        "a": pair[0].name,
        "b": pair[1].name,
        "format": pair[0].format,
        "same": found.same,
        "identical": found.identical,
        "records": None if records is None else _record_document(records),
        "entries": None if found.entries is None else _entry_documents(found.entries),
    }


def _record_document(records: RecordDifference) -> dict[str, Any]:
    def shown(one: ShownRecord | None) -> dict[str, Any] | None:
        return None if one is None else fields(one, "offset said")

    return {
        **fields(records, "same reordered"),
        "count_a": records.totals[0],
        "count_b": records.totals[1],
        "compared_a": records.counts[0],
        "compared_b": records.counts[1],
        "only_a": records.only[0],
        "only_b": records.only[1],
        "shown_a": [shown(one) for one in records.shown[0]],
        "shown_b": [shown(one) for one in records.shown[1]],
        "first_a": None if records.first is None else shown(records.first[0]),
        "first_b": None if records.first is None else shown(records.first[1]),
    }


def _entry_documents(entries: EntryDifference) -> dict[str, Any]:
    return {
        "same": entries.same,
        "count_a": entries.counts[0],
        "count_b": entries.counts[1],
        "only_a": entries.only[0],
        "only_b": entries.only[1],
        "changed": entries.changed,
        "shown_a": [entry_document(one) for one in entries.shown[0]],
        "shown_b": [entry_document(one) for one in entries.shown[1]],
        "shown_changed": [
            {"path": a.path, "a": entry_document(a), "b": entry_document(b)}
            for a, b in entries.changes
        ],
    }


def entry_document(one: Entry) -> dict[str, Any]:
    """Return an entry as JSON."""
    return fields(one, "path type value offset")


# --- Text --------------------------------------------------------------------------------------


def _print(session: Session, pair: Sequence[Capture], found: Difference) -> None:
    screen = session.screen
    for side, capture in zip(SIDES, pair, strict=True):
        screen.print(f"{side}: {printable(capture.name)}")
    if found.identical:
        screen.print(f"same: both are the same {amount(pair[0].source.size, 'byte')}")
        return
    if found.records is not None:
        _print_records(session, found.records)
    if found.entries is not None:
        _print_entries(session, found.entries)
    colour = "green" if found.same else "red"
    screen.print(screen.paint("same" if found.same else "different", fg=colour, bold=True))


def _print_records(session: Session, records: RecordDifference) -> None:
    screen = session.screen
    a, b = records.totals
    verdict = ", the same in another order" if records.reordered else ""
    verdict = ", the same" if records.same else verdict
    screen.print(f"records: {amount(a, 'record')} in A, {amount(b, 'record')} in B{verdict}")
    if records.counts != records.totals:
        compared, other = records.counts
        screen.print(
            f"  compared: {amount(compared)} and {amount(other)}, all but those that only support "
            "others"
        )
    if records.same:
        return
    if records.first is not None:
        screen.print("  first difference")
        for side, first in zip(SIDES, records.first, strict=True):
            screen.print(f"    {side} {_line(session, first) if first else 'has ended'}")
    for side, only, shown in zip(SIDES, records.only, records.shown, strict=True):
        if not only:
            continue
        kinds = ", ".join(f"{printable(kind)} {amount(count)}" for kind, count in only.items())
        screen.print(f"  only in {side}: {amount(sum(only.values()))} ({kinds})")
        for one in shown:
            screen.print(f"    {_line(session, one)}")
        _print_rest(screen, sum(only.values()) - len(shown), "    ")


def _print_entries(session: Session, entries: EntryDifference) -> None:
    screen = session.screen
    a, b = (amount(count, "entry", "entries") for count in entries.counts)
    screen.print(f"entries: {a} in A, {b} in B{', the same' if entries.same else ''}")
    if entries.changed:
        screen.print(f"  changed: {amount(entries.changed)}")
        for one, other in entries.changes:
            screen.print(f"    {change_line(session, one, other)}")
        _print_rest(screen, entries.changed - len(entries.changes), "    ")
    for side, count, shown in zip(SIDES, entries.only, entries.shown, strict=True):
        if not count:
            continue
        screen.print(f"  only in {side}: {amount(count)}")
        for one in shown:
            screen.print(f"    {entry_line(session, one)}")
        _print_rest(screen, count - len(shown), "    ")


def entry_line(session: Session, one: Entry) -> str:
    """Format an entry in one line: its path, its type, and its value if it has one."""
    value = "" if one.value is None else f" {_json(session, one.value)}"
    return f"{printable(one.path)}  {one.type}{value}"


def change_line(session: Session, one: Entry, other: Entry) -> str:
    """Format the change of an entry in one line."""
    value = _json(session, other.value)
    kind = "" if one.type == other.type else f"{other.type} "
    return f"{entry_line(session, one)} -> {kind}{value}"


def _json(session: Session, value: Any) -> str:
    """Format a value as JSON, shortened without -v."""
    text = printable(session.screen.json_line(value).decode().rstrip("\n"))
    if len(text) > LONGEST and not session.settings.verbose:
        text = text[: LONGEST - 1] + "…"
    return text


def _print_rest(screen: Screen, more: int, indent: str) -> None:
    if more > 0:
        screen.print(f"{indent}… and {amount(more)} more (--show N shows N)")


def _line(session: Session, one: ShownRecord) -> str:
    """Format a record in one line: its offset and its contents."""
    return f"0x{one.offset:08x}  {_json(session, one.said)}"
