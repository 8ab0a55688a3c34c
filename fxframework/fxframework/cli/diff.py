"""``fxf diff``: compares two captures."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from fxframework.cli import complete
from fxframework.cli.options import command as _command
from fxframework.cli.options import side_options
from fxframework.cli.session import Session, require_readable
from fxframework.cli.text import amount, duration, printable
from fxframework.errors import ExitCode, UsageError
from fxframework.verbs import BY

if TYPE_CHECKING:
    from fxframework.cli.render import Screen
    from fxframework.kit.difference import (
        Difference,
        EntryDifference,
        NameDifference,
        Person,
        PersonDifference,
        RecordDifference,
        ShownRecord,
        Stats,
    )
    from fxframework.model.capture import Capture, Entry

SIDES = ("A", "B")
LONGEST = 200
"""Characters of a record that are shown without -v."""


@_command(
    captures=True, times=True, name="diff", short_help="Show what differs between two captures."
)
@click.option(
    "--by",
    type=click.Choice(list(BY)),
    default="all",
    help="Compare records, entries, names, or all; all.",
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
    Captures of a state, such as a tree of properties, are compared path by path instead. By name,
    rows of the tables are counted, slices and counters also measured, and processes and threads
    compared. The exit status is 0 if all is equal and 1 if something differs; -q prints nothing
    but errors.
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
            _print(session, pair, found, show)
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
        "names": {
            table: [_name_document(one) for one in names] for table, names in found.names.items()
        },
        "people": {
            each.table: {
                "only_a": [_person_document(one) for one in each.only[0]],
                "only_b": [_person_document(one) for one in each.only[1]],
            }
            for each in found.people
        },
    }


def _record_document(records: RecordDifference) -> dict[str, Any]:
    def shown(one: ShownRecord | None) -> dict[str, Any] | None:
        return None if one is None else {"offset": one.offset, "said": one.said}

    return {
        "same": records.same,
        "reordered": records.reordered,
        "count_a": records.counts[0],
        "count_b": records.counts[1],
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
    return {"path": one.path, "type": one.type, "value": one.value, "offset": one.offset}


def _name_document(one: NameDifference) -> dict[str, Any]:
    return {
        **one.key,
        "a": _stats_document(one.table, one.a),
        "b": _stats_document(one.table, one.b),
        "ratio": one.ratio,
    }


def _stats_document(table: str, stats: Stats | None) -> dict[str, Any] | None:
    if stats is None:
        return None
    shown: dict[str, Any] = {"count": stats.count}
    if table == "slices":
        shown |= {
            "total_ns": stats.total_ns,
            "mean_ns": stats.mean_ns,
            "unclosed": stats.unclosed,
        }
    if table == "counters":
        shown |= {"min": stats.least, "max": stats.most, "last": stats.last}
    return shown


def _person_document(one: Person) -> dict[str, Any]:
    tid = {} if one.tid is None else {"tid": one.tid}
    return {"pid": one.pid, **tid, "name": one.name}


# --- Text --------------------------------------------------------------------------------------


def _print(session: Session, pair: Sequence[Capture], found: Difference, show: int) -> None:
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
    for table, names in found.names.items():
        if names:
            _print_names(session, table, names, show)
    for people in found.people:
        _print_people(screen, people, show)
    colour = "green" if found.same else "red"
    screen.print(screen.paint("same" if found.same else "different", fg=colour, bold=True))


def _print_records(session: Session, records: RecordDifference) -> None:
    screen = session.screen
    a, b = records.counts
    verdict = ", the same in another order" if records.reordered else ""
    verdict = ", the same" if records.same else verdict
    screen.print(f"records: {amount(a, 'record')} in A, {amount(b, 'record')} in B{verdict}")
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


def _print_names(
    session: Session, table: str, names: tuple[NameDifference, ...], show: int
) -> None:
    """Print the names of a table that differ: figures first, then names, cut without -v."""
    screen = session.screen
    gone = [one for one in names if one.b is None]
    come = [one for one in names if one.a is None]
    changed = len(names) - len(gone) - len(come)
    counts = {"only in A": len(gone), "only in B": len(come), "changed": changed}
    some = ", ".join(f"{amount(count)} {what}" for what, count in counts.items() if count)
    screen.print(f"{table}: {amount(len(names), 'name')} ({some})")
    shown = names[:show]
    measures = dict(_MEASURES.get(table, {"count": _count}))
    if any(_unclosed(one.a) != _unclosed(one.b) for one in shown):
        measures["unclosed"] = _unclosed
    if shown:
        head = [f"{measure} {side}" for measure in measures for side in SIDES]
        rows = [[*head, "B/A", *shown[0].key], *(_row(one, measures) for one in shown)]
        numeric = [True] * (2 * len(measures) + 1) + [False] * len(shown[0].key)
        screen.table(rows, numeric, indent=2, fit=not session.settings.verbose)
    _print_rest(screen, len(names) - len(shown), "  ")


def _row(one: NameDifference, measures: Mapping[str, Any]) -> list[str]:
    cells = [
        "–" if stats is None else measure(stats)
        for measure in measures.values()
        for stats in (one.a, one.b)
    ]
    cells.append("–" if one.ratio is None else f"{one.ratio:.2f}")
    return cells + ["–" if value is None else printable(value) for value in one.key.values()]


def _unclosed(stats: Stats | None) -> str:
    return amount(0 if stats is None else stats.unclosed)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.6g}"


def _count(stats: Stats) -> str:
    return amount(stats.count)


_MEASURES: Mapping[str, Mapping[str, Callable[[Stats], str]]] = {
    "slices": {
        "count": _count,
        "total": lambda stats: duration(stats.total_ns or 0),
        "mean": lambda stats: "–" if stats.mean_ns is None else duration(round(stats.mean_ns)),
    },
    "counters": {
        "count": _count,
        "min": lambda stats: _number(stats.least),
        "max": lambda stats: _number(stats.most),
        "last": lambda stats: _number(stats.last),
    },
}
"""The measures to show for a name, by table."""


def _print_people(screen: Screen, people: PersonDifference, show: int) -> None:
    for side, only in zip(SIDES, people.only, strict=True):
        if not only:
            continue
        screen.print(f"{people.table}: {amount(len(only))} only in {side}")
        for one in only[:show]:
            number = f"{one.pid}" if one.tid is None else f"{one.pid}/{one.tid}"
            screen.print(f"  {number}  {'–' if one.name is None else printable(one.name)}")
        _print_rest(screen, len(only) - show, "  ")
