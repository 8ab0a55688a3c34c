"""``fxf account``: how often functions were called, and for how long."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from fxframework.analysis.figures import SORTS
from fxframework.cli import complete
from fxframework.cli.calls import by_option, finished, length, opened
from fxframework.cli.filters import place_options
from fxframework.cli.options import command as _command
from fxframework.cli.session import Session
from fxframework.errors import ExitCode, UsageError
from fxframework.kit.shown import amount, in_quotes, printable

if TYPE_CHECKING:
    from fxframework.analysis.account import Account, Entry
    from fxframework.model.selection import Selection

    Number = Callable[[Entry], int]
    Text = Callable[[Entry], str | None]

CSV_HEADER = (
    "funcid,count,min,median,90%ile,99%ile,max,sum,debug,function,self,unfinished,unmatched,kind,"
    "deviation"
)
"""llvm-xray's columns, followed by ours."""
KINDS = ("call", "async")
"""Kinds of entries: calls, and asynchronous slices."""
UNKNOWN = "(unknown)"
SPARE = ("source", "deviation", "min", "90%", "99%", "median", "unmatched", "thread")
"""Columns that are left out on a narrow terminal, in this order."""
TIMES = {"sum": "sum", "self": "own", "min": "min", "median": "median", "90%": "p90", "99%": "p99",
         "max": "max", "deviation": "deviation"}  # fmt: skip
"""Columns of times, with the fields of a Spread that they show."""
ASCENDING = ("funcid", "func")
"""Sort keys whose default order is ascending."""


@_command(
    captures=True,
    times=True,
    name="account",
)
@by_option
@click.option("--per-thread", is_flag=True, help="Print one line for each function and thread.")
@click.option(
    "--recursive-calls-only",
    is_flag=True,
    help="Count only recursive calls, and the calls around them.",
)
@click.option("--no-recursion", is_flag=True, help="Count only the outermost calls of a function.")
@click.option(
    "--sort",
    type=click.Choice(SORTS),
    metavar="FIGURE",
    help=f"Measure to sort by: {', '.join(SORTS)}. Default: sum; with --csv, funcid.",
)
@click.option(
    "--sort-order",
    type=click.Choice(["asc", "dsc"]),
    help="Ascending or descending. Default: asc for ids and names, else dsc.",
)
@click.option("--top", type=click.IntRange(min=1), metavar="N", help="Only the first N lines.")
@click.option("--csv", is_flag=True, help="Print comma-separated values, times in seconds.")
@click.argument("file", shell_complete=complete.files)
@place_options
def command(
    session: Session,
    by: str,
    per_thread: bool,
    recursive_calls_only: bool,
    no_recursion: bool,
    csv: bool,
    file: str,
    names: Selection,
    **order: Any,
) -> ExitCode:
    """Show how often each function was called, and how long its calls took.

    The time of a call is that from its beginning to its end; self excludes the calls within it.
    Calls that never ended count as unfinished and have no time; ends without a beginning count as
    unmatched. Grouped --by thread or another column, a call counts only if no call of its group
    encloses it. Of n calls sorted by time, the median is number n/2 and the 90th percentile number
    n*0.9, rounded down and counted from 0. Asynchronous slices are marked: they may overlap.
    """  # fmt: skip
    if recursive_calls_only and no_recursion:
        raise UsageError(
            "--recursive-calls-only and --no-recursion exclude each other", remedy="choose one"
        )
    if csv and session.settings.json:
        raise UsageError("--csv and --json exclude each other", remedy="choose one")
    from fxframework.analysis.account import account

    # Two flags on the command line, as llvm-xray has them, for one option with three values.
    recursion = "all"
    if recursive_calls_only:
        recursion = "only"
    elif no_recursion:
        recursion = "outermost"
    with opened(session, file, names) as (whole, part):
        with session.screen.working(f"analysing {whole.name}", whole.source):
            table = account(part, by=by, recursion=recursion, per_thread=per_thread)
            whole.trim()
        entries = _sorted(table, "funcid" if csv else "sum", **order)
        if session.settings.json:
            session.screen.json("account", {
                "path": whole.name,
                "format": whole.format,
                "units_per_second": table.per_second,
                "asynchronous": table.asynchronous,
                "functions": map(_document, entries),
            })  # fmt: skip
        elif csv:
            for line in _csv(table, entries, per_thread=per_thread):
                session.screen.print(printable(line) if session.screen.out_is_terminal else line)
        else:
            _print(session, table, entries)
        session.screen.flush()
        return finished(session, whole)


def _sorted(
    table: Account, default_key: str, *, sort: str | None, sort_order: str | None, top: int | None
) -> Sequence[Entry]:
    """Return the entries as the options order them."""
    key = sort or default_key
    is_descending = key not in ASCENDING
    if sort_order is not None:
        is_descending = sort_order == "dsc"
    return table.sorted(key, descending=is_descending, top=top)


def _document(entry: Entry) -> dict[str, Any]:
    return {
        "id": entry.function.id,
        "name": entry.function.name,
        "source": entry.function.source,
        "thread": entry.thread,
        **entry.spread.to_json(),
        "unmatched_exits": entry.unmatched,
        "asynchronous": entry.asynchronous,
    }


def _csv(table: Account, entries: Sequence[Entry], *, per_thread: bool) -> Iterator[str]:
    """Yield the lines of llvm-xray's CSV, with our columns appended."""
    yield CSV_HEADER + (",thread" if per_thread else "")

    def seconds(value: float | None) -> str:
        return "" if value is None else f"{value / (table.per_second or 1):e}"

    for entry in entries:
        function = entry.function
        spread = entry.spread
        cells = [
            "" if function.id is None else str(function.id),
            str(spread.count),
            seconds(spread.min),
            seconds(spread.median),
            seconds(spread.p90),
            seconds(spread.p99),
            seconds(spread.max),
            seconds(spread.sum),
            in_quotes(function.source or UNKNOWN),
            in_quotes(function.name),
            seconds(spread.own),
            str(spread.unfinished),
            str(entry.unmatched),
            KINDS[entry.asynchronous],
            seconds(spread.deviation),
        ]
        if per_thread:
            cells.append(in_quotes(entry.thread or ""))
        yield ",".join(cells)


def _print(session: Session, table: Account, entries: Sequence[Entry]) -> None:
    """Print a table without empty columns."""
    if not entries:
        session.screen.note("there are no calls")
        return

    def has_any(name: str) -> bool:
        figure = table.figure(name)
        return figure is not None and bool((figure > 0).any())

    # Columns that are shown if there is something in them: numbers first, then texts.
    numbers: dict[str, Number] = {}
    if has_any("unfinished"):
        numbers["unfinished"] = lambda entry: entry.spread.unfinished
    if has_any("unmatched"):
        numbers["unmatched"] = lambda entry: entry.unmatched
    texts: dict[str, Text] = {}
    if table.asynchronous:
        texts["kind"] = lambda entry: KINDS[entry.asynchronous]
    if entries[0].thread is not None:
        texts["thread"] = lambda entry: entry.thread
    if has_any("source"):
        texts["source"] = lambda entry: entry.function.source

    def cells(entry: Entry) -> list[str]:
        return [
            printable(entry.function.name or "–"),
            amount(entry.spread.count),
            *(length(getattr(entry.spread, name), table.per_second) for name in TIMES.values()),
            *(amount(number_of(entry)) for number_of in numbers.values()),
            *(printable(text_of(entry) or "–") for text_of in texts.values()),
        ]

    screen = session.screen
    headings = ["function", "calls", *TIMES, *numbers, *texts]
    rows = itertools.chain([headings], map(cells, entries))
    is_number = [heading not in {"function", *texts} for heading in headings]
    screen.table(rows, is_number, name=0, spare=SPARE)
