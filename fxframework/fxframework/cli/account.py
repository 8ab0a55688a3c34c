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
from fxframework.cli.text import amount, name_first, printable
from fxframework.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from fxframework.analysis.account import Account, Entry
    from fxframework.model.selection import Selection

CSV_HEADER = (
    "funcid,count,min,median,90%ile,99%ile,max,sum,debug,function,self,unfinished,unmatched,kind"
)
"""llvm-xray's columns, followed by ours."""
KINDS = ("call", "async")
"""Kinds of entries: calls, and asynchronous slices."""
UNKNOWN = "(unknown)"
SPARE = ("source", "min", "90%", "99%", "median", "unmatched", "thread")
"""Columns that are left out on a narrow terminal, in this order."""
TIMES = {"sum": "sum", "self": "own", "min": "min", "median": "median", "90%": "p90", "99%": "p99",
         "max": "max"}  # fmt: skip
"""Columns of times, with the fields of a Spread that they show."""
ASCENDING = ("funcid", "func")
"""Sort keys whose default order is ascending."""


@_command(
    captures=True,
    times=True,
    name="account",
    short_help="Show how often functions were called, and for how long.",
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
    unmatched. Calls grouped --by thread or another column count only if none of their group is
    around them. Of n calls sorted by time, the median is number n/2 and the 90th percentile number
    n*0.9, rounded down and counted from 0. Asynchronous slices are marked: they may overlap.
    """  # fmt: skip
    if recursive_calls_only and no_recursion:
        raise UsageError(
            "--recursive-calls-only and --no-recursion exclude each other", remedy="choose one"
        )
    if csv and session.settings.json:
        raise UsageError("--csv and --json exclude each other", remedy="choose one")
    from fxframework.analysis.account import account

    recursion = "only" if recursive_calls_only else "outermost" if no_recursion else "all"
    with opened(session, file, names) as (whole, part):
        with session.screen.working(f"analysing {whole.name}", whole.source):
            found = account(part, by=by, recursion=recursion, per_thread=per_thread)
            whole.trim()
        entries = _sorted(found, "funcid" if csv else "sum", **order)
        if session.settings.json:
            session.screen.json("account", {
                "path": whole.name,
                "format": whole.format,
                "units_per_second": found.per_second,
                "asynchronous": found.asynchronous,
                "functions": map(_document, entries),
            })  # fmt: skip
        elif csv:
            for line in _csv(found, entries, per_thread=per_thread):
                session.screen.print(printable(line) if session.screen.out_is_terminal else line)
        else:
            _print(session, found, entries)
        session.screen.flush()
        return finished(session, whole)


def _sorted(
    found: Account, usual: str, *, sort: str | None, sort_order: str | None, top: int | None
) -> Sequence[Entry]:
    """Return the entries as the options order them, by default by a ``usual`` key."""
    key = sort or usual
    order = sort_order or ("asc" if key in ASCENDING else "dsc")
    return found.sorted(key, descending=order == "dsc", top=top)


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


def _csv(found: Account, entries: Sequence[Entry], *, per_thread: bool) -> Iterator[str]:
    """Yield the lines of llvm-xray's CSV, with our columns appended."""
    yield CSV_HEADER + (",thread" if per_thread else "")

    def seconds(value: int | None) -> str:
        return "" if value is None else f"{value / (found.per_second or 1):e}"

    for entry in entries:
        function, spread = entry.function, entry.spread
        times = spread.min, spread.median, spread.p90, spread.p99, spread.max, spread.sum
        cells = [
            "" if function.id is None else str(function.id),
            str(spread.count),
            *(seconds(value) for value in times),
            _quoted(function.source or UNKNOWN),
            _quoted(function.name),
            seconds(spread.own),
            str(spread.unfinished),
            str(entry.unmatched),
            KINDS[entry.asynchronous],
        ]
        if per_thread:
            cells.append(_quoted(entry.thread or ""))
        yield ",".join(cells)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _print(session: Session, found: Account, entries: Sequence[Entry]) -> None:
    """Print a table without empty columns."""
    if not entries:
        session.screen.note("there are no calls")
        return
    of: dict[str, Callable[[Entry], Any]] = {
        "unfinished": lambda entry: entry.spread.unfinished,
        "unmatched": lambda entry: entry.unmatched,
        "kind": lambda entry: KINDS[entry.asynchronous],
        "thread": lambda entry: entry.thread,
        "source": lambda entry: entry.function.source,
    }
    there = {"thread": entries[0].thread is not None, "kind": found.asynchronous > 0}
    for name in ("unfinished", "unmatched", "source"):
        figure = found.figure(name)
        there[name] = figure is not None and bool((figure > 0).any())
    shown = {name: get for name, get in of.items() if there.get(name)}
    numbers = [get for name, get in shown.items() if name.startswith("un")]
    texts = list(shown.values())[len(numbers) :]

    def cells(entry: Entry) -> list[str]:
        return [
            printable(entry.function.name or "–"),
            amount(entry.spread.count),
            *(length(getattr(entry.spread, name), found.per_second) for name in TIMES.values()),
            *(amount(get(entry)) for get in numbers),
            *(printable(get(entry) or "–") for get in texts),
        ]

    screen = session.screen
    rows = itertools.chain([["function", "calls", *TIMES, *shown]], map(cells, entries))
    lines = name_first(rows, screen.width, spare=SPARE, texts=len(texts))
    screen.print(screen.paint(next(lines), bold=True))
    for line in lines:
        screen.print(line)
