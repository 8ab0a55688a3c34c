"""``fxf sql``: queries the tables of captures with SQL, once or at a prompt."""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from fxframework.cli.options import command as _command
from fxframework.cli.session import Session, worst
from fxframework.errors import ExitCode, FxError, UsageError, WriteRefusedError
from fxframework.kit.json_fields import special_double
from fxframework.kit.shown import printable

if TYPE_CHECKING:
    import pyarrow as pa

    from fxframework.model.capture import Capture
    from fxframework.query import Queries

PROMPT = "fxf> "
MORE = "...> "
"""The prompt for further lines of a query."""
SHOWN = 200
"""Rows of a result shown at the prompt and on a terminal."""
HELP = """A query ends with a semicolon. `.tables` lists the views, `.columns VIEW` their columns,
`.quit` ends."""
WRITERS = (".parquet", ".arrow", ".csv")
KEYWORDS = {"select", "from", "where", "group by", "order by", "limit"}
"""Words of SQL that the tab key completes."""


@_command(captures=True, name="sql")
@click.option("--out", metavar="OUT", help="Write the result to a .parquet, .arrow or .csv file.")
@click.option("--force", is_flag=True, help="Replace OUT if it exists.")
@click.argument("words", nargs=-1, required=True, metavar="FILE... [QUERY]")
def command(session: Session, words: tuple[str, ...], out: str | None, force: bool) -> ExitCode:
    """Query the tables of captures with SQL (duckdb's); each table is a view of the same name.

    slices_with_names, instants_with_names, counters_with_names, flows_with_names,
    sched_with_names and logs_with_keys add process, thread and arguments. With several files
    every view has the rows of all, and a column `capture`. FILE may be a dataset that `fxf batch`
    made; its manifest is the view `captures`. Without a QUERY there is a prompt; from a pipe,
    queries end with semicolons.
    """
    session.whole("sql")
    files, query = _split(session, words)
    with contextlib.ExitStack() as stack:
        captures: list[Capture] = []
        database: Queries
        from fxframework.dataset.query import DatasetQueries, is_dataset
        from fxframework.query import Database

        if len(files) == 1 and is_dataset(files[0]):
            database = stack.enter_context(DatasetQueries(files[0]))
        else:
            captures = [
                stack.enter_context(session.open(text, several=len(files) > 1)) for text in files
            ]
            database = stack.enter_context(Database(captures))
        if query is not None:
            _answer(session, database, query, out, force=force)
        elif out is not None:
            raise UsageError("--out OUT writes the result of a query", remedy="add the query")
        elif sys.stdin.isatty():
            _prompt(session, database)
        else:
            for statement in _statements(sys.stdin):
                _answer(session, database, statement, None, force=False)
        return worst(*(session.status(capture) for capture in captures))


def _split(session: Session, words: Sequence[str]) -> tuple[list[str], str | None]:
    """Return the files and the query: the last word if it has a space and is not a file."""
    from pathlib import Path

    last_word = words[-1]
    _, path = session.named(last_word)
    is_file = path == "-" or Path(path).exists()
    if is_file or not any(mark in last_word for mark in " \n\t;"):
        return list(words), None
    if len(words) == 1:
        raise UsageError("no file is given", remedy="fxf sql FILE 'select …'")
    return list(words[:-1]), last_word


def _answer(
    session: Session, database: Queries, query: str, out: str | None, *, force: bool
) -> None:
    with session.screen.working("querying", *(capture.source for capture in database.captures)):
        result = database.query(query)
    if out is not None:
        _write(result, out, force=force)
        session.screen.note(f"wrote {out}: {result.num_rows:,} rows")
    else:
        _show(session, result)


def _show(session: Session, result: pa.Table) -> None:
    """Print a result: aligned on a terminal, else tab-separated; JSON lines with --json."""
    screen = session.screen
    if session.settings.json:
        unique_keys = _keys(result.column_names)
        for row in _rows(result):
            screen.write(
                screen.json_line(dict(zip(unique_keys, map(_json_value, row), strict=True)))
            )
        return
    column_names = [printable(name) for name in result.column_names]
    if not screen.out_is_terminal:
        screen.print("\t".join(column_names))
        for row in _rows(result):
            screen.print("\t".join(map(_cell, row)))
        return
    shown_rows = [list(map(_cell, row)) for row in _rows(result.slice(0, SHOWN))]
    screen.wrapped_columns([column_names, *shown_rows], indent=0)
    if result.num_rows > SHOWN:
        screen.print(f"({result.num_rows:,} rows, {SHOWN} shown; --out OUT.csv writes all of them)")


def _rows(result: pa.Table) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a result. Raises UsageError for a value that Python cannot hold."""
    for batch in result.to_batches(max_chunksize=4096):
        column_values = []
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            try:
                column_values.append(column.to_pylist())
            except (OverflowError, ValueError) as error:
                raise UsageError(
                    f"a value of the column {name!r} cannot be shown: {error}",
                    remedy="convert it to text in the query, as in ts::varchar, or write it to "
                    "OUT.parquet",
                ) from None
        yield from zip(*column_values, strict=True)


def _keys(names: Sequence[str]) -> list[str]:
    """Return the names of columns as keys: of equal names, the second has ``#2``."""
    counts = Counter[str]()
    keys = []
    for name in names:
        counts[name] += 1
        keys.append(name if counts[name] == 1 else f"{name}#{counts[name]}")
    return keys


def _json_value(value: Any) -> Any:
    """Return a value for JSON, as ``fxf cat --json`` shows it: bytes are hex, numbers exact."""
    match value:
        case float():
            return special_double(value) or value
        case bytes():
            return value.hex()
        case Decimal():
            import orjson

            return orjson.Fragment(format(value, "f"))
        case dict():
            return {key: _json_value(item) for key, item in value.items()}
        case tuple() if hasattr(value, "months"):  # an interval
            return {name: getattr(value, name) for name in ("months", "days", "nanoseconds")}
        case list() | tuple():
            return [_json_value(item) for item in value]
        case timedelta():
            return str(value)
        case _:
            return value


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, dict):
        items = [f"{key}={_cell(item)}" for key, item in value.items() if item is not None]
        return printable(", ".join(items))
    return printable(str(value))


def _write(result: pa.Table, out: str, *, force: bool) -> None:
    """Write a result in the format of the suffix. Raises WriteRefusedError for other suffixes."""
    import pyarrow as pa

    from fxframework.exporters.columnar import ROWS, write_arrow, write_csv, write_parquet
    from fxframework.io.sink import Sink

    for suffix, write in zip(WRITERS, (write_parquet, write_arrow, write_csv), strict=True):
        if out.endswith(suffix):
            try:
                with Sink.open(out, force=force) as sink:
                    write(result.unify_dictionaries().to_reader(ROWS), sink)
            except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
                raise WriteRefusedError(
                    f"a {suffix} file cannot hold this result: {error}",
                    path=out,
                    remedy="convert the column to text in the query, as in ts::varchar",
                ) from None
            return
    raise WriteRefusedError(
        "results cannot be written with this suffix", path=out, remedy=f"use {', '.join(WRITERS)}"
    )


def _statements(lines: Iterator[str] | Any) -> Iterator[str]:
    """Split lines into queries, which end with a semicolon at the end of a line."""
    statement_lines: list[str] = []
    try:
        for line in lines:
            statement_lines.append(line)
            if line.rstrip().endswith(";"):
                yield "".join(statement_lines)
                statement_lines.clear()
    except UnicodeDecodeError as error:
        raise UsageError(
            "the queries on standard input are not valid UTF-8", remedy="write them in UTF-8"
        ) from error
    if "".join(statement_lines).strip():
        yield "".join(statement_lines)


def _prompt(session: Session, database: Queries) -> None:
    """Answer queries at a prompt with history and completion, until the input ends."""
    _complete(database)
    statement = ""
    session.handles_interrupts = True
    session.screen.print(HELP)
    while True:
        try:
            line = input(MORE if statement else PROMPT)
        except EOFError:
            session.screen.print()
            return
        except KeyboardInterrupt:
            session.screen.print()
            statement = ""
            continue
        statement = f"{statement}\n{line}".lstrip("\n")
        if not statement.strip():
            statement = ""
            continue
        if statement.startswith("."):
            if statement.strip() in {".quit", ".exit"}:
                return
            _list(session, database, statement.split())
            statement = ""
        elif statement.rstrip().endswith(";"):
            try:
                _answer(session, database, statement, None, force=False)
            except FxError as error:
                session.screen.error(error)
            except KeyboardInterrupt:
                if session.budget.exceeded():  # which interrupts, too
                    raise
                session.screen.print("The query was interrupted.")
            session.screen.flush()
            statement = ""


def _list(session: Session, database: Queries, words: list[str]) -> None:
    views = database.views
    if words[0] == ".tables":
        session.screen.print("  ".join(views))
    elif words[0] == ".columns" and len(words) == 2 and words[1] in views:
        session.screen.print("  ".join(views[words[1]]))
    else:
        session.screen.print(HELP)


def _complete(database: Queries) -> None:
    """Complete views, columns and SQL keywords with the tab key, if readline is available."""
    try:
        import readline
    except ImportError:
        return
    column_names = {name for columns in database.views.values() for name in columns}
    known_words = sorted(column_names | database.views.keys() | KEYWORDS)

    def complete(text: str, state: int) -> str | None:
        matches = [word for word in known_words if word.startswith(text.lower())]
        return matches[state] if state < len(matches) else None

    readline.set_completer(complete)
    readline.set_completer_delims(" \t\n,().;")
    readline.parse_and_bind("tab: complete")
