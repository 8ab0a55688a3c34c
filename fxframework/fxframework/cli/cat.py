"""``fxf cat``: prints a capture as text, as records, or one of its tables."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from fxframework.cli import complete
from fxframework.cli.filters import part_options
from fxframework.cli.options import command as _command
from fxframework.cli.session import Session
from fxframework.conversion import require_readable
from fxframework.errors import ExitCode, UsageError
from fxframework.kit.json_fields import special_double
from fxframework.kit.shown import printable
from fxframework.registry import parse_options

if TYPE_CHECKING:
    from fxframework.cli.render import Screen
    from fxframework.io.sink import Sink
    from fxframework.model.capture import Capture
    from fxframework.model.schema import Column
    from fxframework.model.selection import Selection
    from fxframework.model.table import Table
    from fxframework.registry import Exporter, ExportSession, Option

COLOURS = "color"
"""The option of text exporters that switches colours on."""
PLACES = frozenset({"row", "offset", "ticks", "parent"})
"""Columns that locate a row; a terminal shows them only with -v."""
THREADS = frozenset({"thread", "prev", "next"})
"""Columns that hold the id of a thread."""
LINES = 4096
"""Rows printed at a time."""


@_command(
    captures=True,
    times=True,
    name="cat",
)
@click.option("--records", is_flag=True, help="Every record, lossless, one JSON object per line.")
@click.option(
    "--table", metavar="NAME", help="One table: aligned on a terminal, else separated by tabs."
)
@click.option(
    "-F",
    "--follow",
    is_flag=True,
    help="Keep printing what is appended to FILE, until interrupted.",
)
@click.argument("file", shell_complete=complete.files)
@click.argument("selectors", nargs=-1, metavar="[SELECTOR...]")
@part_options
def command(
    session: Session,
    records: bool,
    table: str | None,
    follow: bool,
    file: str,
    selectors: tuple[str, ...],
    names: Selection,
) -> ExitCode:
    """Print a capture: as text, one line per record; as records; or one of its tables.

    SELECTORs print a part of a tree: the nodes and properties that any of them matches.

    With --json, one JSON object is printed per line: each selected value with its path and type,
    each row with --table, and otherwise each record.

    --since, --until and the options under Parts and Log options select a part. An option may be
    repeated: one of its values must match. Different options must all match.
    """
    if records and table is not None:
        raise UsageError("--records and --table exclude each other", remedy="choose one")
    if follow:
        if selectors:
            raise UsageError(
                "--follow cannot be used with selectors",
                remedy="`fxf watch FILE SELECTOR...` shows how a state changes",
            )
        return _follow(session, file, names, table=table, records=records)
    with session.open(file, also=_text_options(session)) as whole_capture:
        chosen_capture = whole_capture
        if selectors:
            chosen_capture = whole_capture.choose(selectors)
        capture = session.window(chosen_capture, names)
        with session.screen.working(
            f"printing {whole_capture.name}", whole_capture.source, prints=True
        ):
            if table is not None:
                _print_table(session, capture, table)
            elif selectors and session.settings.json and not records:
                _print_values(session, capture)
            elif records or session.settings.json:
                _export(session, capture, "records")
            else:
                require_readable(whole_capture)
                if capture is whole_capture or _has_rows(capture):
                    _export(session, capture, "text")
                else:
                    session.screen.note("the selected part is empty")
            session.screen.flush()
        if table is None and (records or (session.settings.json and not selectors)):
            # Report only the findings of `records()`, not those of tables.
            return session.status(whole_capture)
        whole_capture.scan()
        if table is not None and table != "diagnostics":
            require_readable(whole_capture)
        return session.status(whole_capture)


def _text_options(session: Session) -> Callable[[Capture], Sequence[Option]]:
    """Return a function that returns the options of the text exporter for a capture."""

    def options(capture: Capture) -> Sequence[Option]:
        for exporter in session.host.exporters_for(capture.format, capture.tables):
            if exporter.name == "text":
                return exporter.options
        return ()

    return options


# --- Text and records --------------------------------------------------------------------------


def _has_rows(capture: Capture) -> bool:
    """Return whether there is a row in a table with times, or in any table if none has times.

    Text exporters refuse a capture without such rows.
    """
    with_times = [
        name
        for name, schema in capture.schemas.items()
        if any(column.name == "ts" for column in schema.columns)
    ]
    candidate_tables = with_times or capture.schemas
    return any(len(batch) for name in candidate_tables for batch in capture.batches(name))


def _export(session: Session, capture: Capture, name: str) -> None:
    """Export a capture to stdout."""
    exporter, options = _exporter(session, capture, name)
    with _stdout(session, options) as sink:
        export_session = exporter.open(sink, options)
        export_session.write(capture)
        export_session.close()


def _exporter(session: Session, capture: Capture, name: str) -> tuple[Exporter, dict[str, Any]]:
    """Return an exporter for a capture, and its options: those given, and colours."""
    exporter = session.host.exporter(name, format=capture.format, tables=capture.tables)
    own_names = {option.name for option in exporter.options}
    option_values: dict[str, Any] = {
        key: value for key, value in session.settings.options.items() if key in own_names
    }
    if name == "records":
        option_values = {"header": "no"}
    elif COLOURS in own_names:
        option_values.setdefault(COLOURS, session.screen.coloured)
    return exporter, parse_options(option_values, exporter.options, whose=f"exporter {name!r}")


def _stdout(session: Session, options: Mapping[str, Any]) -> Sink:
    """Open standard output for an exporter with these options."""
    # An exporter with colours escapes the control characters of a capture's strings itself.
    return session.sink("-", colours=options.get(COLOURS) is True)


def _follow(
    session: Session, file: str, names: Selection, *, table: str | None, records: bool
) -> ExitCode:
    """Print a capture and what is appended to it, until interrupted."""
    from fxframework.cli import follow

    if table is not None or session.settings.json:
        option = "--json"
        if table is not None:
            option = "--table"
        raise UsageError(
            f"--follow cannot be used with {option}",
            remedy="use --follow alone, which prints text, or with --records",
        )
    # The output is opened with the first capture: without one, there is no exporter to choose.
    open_exports: list[tuple[Sink, ExportSession | None]] = []

    def open_for(capture: Capture) -> tuple[Sink, ExportSession | None]:
        if records:
            _, options = _exporter(session, capture, "records")
            return _stdout(session, options), None
        exporter, options = _exporter(session, capture, "text")
        sink = _stdout(session, options)
        return sink, exporter.open(sink, options)

    def show(capture: Capture) -> None:
        if not open_exports:
            open_exports.append(open_for(capture))
        sink, export_session = open_exports[0]
        if export_session is None:
            for chunk in capture.records_json():
                sink.write(chunk)
        elif _has_rows(capture):
            export_session.write(capture)

    follow.follow(
        session,
        file,
        lambda whole: session.selection(whole, names),
        show,
        also=_text_options(session),
    )
    return ExitCode.OK


# --- Tables ------------------------------------------------------------------------------------


def _print_table(session: Session, capture: Capture, name: str) -> None:
    """Print a table: as JSON, separated by tabs, or, on a terminal, in columns.

    A terminal shows threads by name, no row numbers, and lines cut to fit; with -v, every column
    in full width.
    """
    from fxframework.model.schema import STANDARD_TABLES
    from fxframework.model.tasks import tasks

    screen = session.screen
    if session.settings.json:
        for batch in capture.batches(name):
            _write_lines(screen, _json_rows(screen, batch))
        return
    columns = (capture.schemas.get(name) or STANDARD_TABLES["diagnostics"]).all_columns
    if not screen.out_is_terminal:
        text_rows = _rows(capture, name, columns, {})
        _write_lines(screen, ("\t".join(row).encode() + b"\n" for row in text_rows))
        return
    # A terminal without -v shows what people read: names in place of ids, and no places.
    labels_by_task: dict[int, str] = {}
    if not session.settings.verbose:
        columns = tuple(column for column in columns if column.name not in PLACES)
        labels_by_task = {id: task.label for id, task in tasks(capture).items()}
    is_numeric = [_is_number(column) and column.name not in THREADS for column in columns]
    screen.table(
        _rows(capture, name, columns, labels_by_task), is_numeric, fit=not session.settings.verbose
    )


def _print_values(session: Session, capture: Capture) -> None:
    """Print the selected values as JSON, one per line; nodes have none."""
    screen = session.screen
    entries = capture.entries() or ()
    json_lines = (screen.json_line(entry._asdict()) for entry in entries if entry.value is not None)
    first_line = next(json_lines, None)
    if first_line is None:
        screen.note("the selected part has no values")
        return
    _write_lines(screen, itertools.chain([first_line], json_lines))


def _write_lines(screen: Screen, lines: Iterator[bytes]) -> None:
    """Write lines, many at a time."""
    waiting_lines: list[bytes] = []
    for line in lines:
        waiting_lines.append(line)
        if len(waiting_lines) == LINES:
            screen.write(b"".join(waiting_lines))
            waiting_lines.clear()
    screen.write(b"".join(waiting_lines))


def _rows(
    capture: Capture, name: str, columns: Sequence[Column], labels: Mapping[int, str]
) -> Iterator[list[str]]:
    """Yield the column names, then each row, as texts without tabs and line breaks."""
    batches = capture.batches(name)  # first, because it raises for an unknown table
    yield [column.name for column in columns]
    for batch in batches:
        texts_by_column = []
        for column in columns:
            column_values = batch.plain(column.name)
            if labels and column.name in THREADS:
                column_values = [labels.get(id) for id in column_values]
            texts_by_column.append([_text(value) for value in column_values])
        yield from map(list, zip(*texts_by_column, strict=True))


def _is_number(column: Column) -> bool:
    return column.kind[0] in "iuf" and not column.values


def _text(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, str):
        return printable(value.replace("\\", "\\\\"))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return "+".join(map(str, value))
    return str(value)


def _json_rows(screen: Screen, batch: Table) -> Iterator[bytes]:
    column_names = list(batch.columns)
    exact_columns = [_exact(batch, name) for name in column_names]
    for row in zip(*exact_columns, strict=True):
        yield screen.json_line(dict(zip(column_names, row, strict=True)))


def _exact(batch: Table, name: str) -> list[Any]:
    """Return a column's values; doubles that JSON cannot hold are named as in record JSON."""
    plain_values = batch.plain(name)
    if batch.schema.column(name).kind[0] != "f":
        return plain_values
    return [special_double(value) or value for value in plain_values]
