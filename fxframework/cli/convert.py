"""``fxf convert``: captures into another form."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fxframework.cli.app import command as _command
from fxframework.cli.filters import part_options
from fxframework.cli.render import amount
from fxframework.cli.session import LIMIT_NAMES, Session, require_readable, worst
from fxframework.errors import (
    Catalogue,
    ExitCode,
    Severity,
    UsageError,
    WriteRefusedError,
    did_you_mean,
)
from fxframework.registry import EVERY_CAPTURE, Exporter, Writer, parse_options

if TYPE_CHECKING:
    from fxframework.host import Host
    from fxframework.io.sink import Sink
    from fxframework.model.capture import Capture
    from fxframework.model.window import Selection

Target = Writer | Exporter
T = TypeVar("T", Writer, Exporter)


@_command(captures=True, name="convert", short_help="Put captures into another form.")
@click.option("-t", "--to", metavar="EXPORTER", help="Exporter or format, instead of OUT's suffix.")
@click.option("--force", is_flag=True, help="Replace OUT; print binary output to a terminal.")
@click.argument("paths", nargs=-1, required=True, metavar="IN... OUT")
@part_options
def command(
    session: Session, to: str | None, force: bool, paths: tuple[str, ...], names: Selection
) -> ExitCode:
    """Put captures into another form, which OUT's suffix or -t names.

    An OUT whose suffix is that of a format is written in that format; any other suffix names an
    exporter (`fxf plugins` lists both). - is standard input or output. OUT appears whole or not
    at all, compressed where it ends in .gz, and never over an existing file without --force.

    --since, --until and the options under Parts and Log options take a part of each capture; in
    a capture's own format, the part comes with all that it needs.
    """
    *inputs, out = paths
    if not inputs:
        raise UsageError(
            f"convert takes IN and OUT, and {out!r} is only one of them",
            remedy="name the output last; - is standard output",
        )
    if session.settings.json and out == "-":
        raise UsageError(
            "--json reports on standard output, where the output goes", remedy="name a file as OUT"
        )
    with contextlib.ExitStack() as stack:
        wholes = [
            stack.enter_context(session.open(text, also=option_names(session.host), several=True))
            for text in inputs
        ]
        target = _target(session.host, wholes, out, to)
        options = target_options(session, wholes, target)
        parts = [session.selection(whole, names) for whole in wholes]
        _check(session, wholes, parts, target, out, force=force)
        result = _convert(session, wholes, parts, target, options, out, force=force)
        _report(session, wholes, target, result)
        return worst(*(session.status(whole) for whole in wholes), result.status)


class _Result:
    """What came of it."""

    def __init__(self) -> None:
        self.out = ""
        self.nbytes = 0
        self.dropped: Mapping[str, int] = {}
        """What the form has no place for."""
        self.left_out: Mapping[str, int] = {}
        """What is outside of the part that was asked for."""
        self.status = ExitCode.OK


# --- what to write -----------------------------------------------------------------------------


def _target(host: Host, captures: Sequence[Capture], out: str, to: str | None) -> Target:
    """The writer or exporter that ``-t`` or the suffix of OUT names."""
    first = captures[0]
    if to is not None:
        return _named(host, first, to)
    if out == "-":
        raise UsageError(
            "standard output has no suffix that would name a form",
            remedy=f"say which with -t: {_choices(host, first)}",
        )
    writers = by_suffix(host.writers.values(), out)
    if writers:
        meant = meant_by_suffix(host, writers, first)
        if meant is None:
            names = ", ".join(writer.format for writer in writers)
            raise UsageError(
                f"the suffix of {out} is that of several formats: {names}",
                remedy=f"say which with -t {writers[0].format}",
            )
        return meant
    exporters = by_suffix(host.exporters_for(first.format, first.tables), out)
    if len(exporters) > 1:
        suffix = out.removesuffix(".gz").rpartition(".")[2].lower()
        exporters = [exporter for exporter in exporters if exporter.name == suffix] or exporters
    names = ", ".join(sorted({exporter.name for exporter in exporters}))
    if len({exporter.name for exporter in exporters}) > 1:
        raise UsageError(
            f"several exporters write {out}: {names}",
            remedy=f"say which with -t {exporters[0].name}",
        )
    if exporters:
        return exporters[0]
    suffixes = {suffix for exporter in host.exporters for suffix in exporter.suffixes}
    suffixes |= {suffix for writer in host.writers.values() for suffix in writer.suffixes}
    suffix = "." + out.rpartition("/")[2].partition(".")[2]
    raise UsageError(
        f"no format or exporter for a {first.format} capture has the suffix of {out!r}"
        f"{did_you_mean(suffix, suffixes)}",
        remedy=f"say which with -t: {_choices(host, first)}",
    )


def _named(host: Host, capture: Capture, name: str) -> Target:
    exporters = {exporter.name for exporter in host.exporters}
    fitting = [
        exporter
        for exporter in host.exporters_for(capture.format, capture.tables)
        if exporter.name == name
    ]
    if fitting:
        return fitting[0]
    if name in host.writers:
        return host.writers[name]
    if name in exporters:
        return host.exporter(name, format=capture.format, tables=capture.tables)
    raise UsageError(
        f"there is no exporter or format {name!r}"
        f"{did_you_mean(name, exporters | host.writers.keys())}",
        remedy=f"for a {capture.format} capture there are: {_choices(host, capture)}",
    )


def _choices(host: Host, capture: Capture) -> str:
    exporters = {e.name for e in host.exporters_for(capture.format, capture.tables)}
    writers = {
        writer.format
        for writer in host.writers.values()
        if writer.format == capture.format or writer.composes(capture.tables)
    }
    return ", ".join(sorted(exporters | writers))


def by_suffix(known: Iterable[T], out: str) -> list[T]:
    """Those of some writers or exporters whose suffix the name of an output has, the longest."""
    name = out.lower()
    bare = name.removesuffix(".gz")

    def length(one: T) -> int:
        fitting = (s for s in one.suffixes if name.endswith(s) or bare.endswith(s))
        return max(map(len, fitting), default=0)

    found = [(length(one), one) for one in known]
    longest = max((nbytes for nbytes, _ in found), default=0)
    return [one for nbytes, one in found if nbytes and nbytes == longest]


def meant_by_suffix(host: Host, writers: Sequence[Writer], capture: Capture) -> Writer | None:
    """Of writers that share a suffix, the one of the capture's format, or else the first.

    None where they are of several plugins, so that none of them is the first.
    """
    mine = [writer for writer in writers if writer.format == capture.format]
    if mine or len({id(host.owner(writer)) for writer in writers}) == 1:
        return (mine or writers)[0]
    return None


def option_names(host: Host) -> set[str]:
    """The names of all options that writers and exporters have."""
    targets: list[Target] = [*host.exporters, *host.writers.values()]
    return {option.name for target in targets for option in target.options}


def target_options(session: Session, captures: Sequence[Capture], target: Target) -> dict[str, Any]:
    """The target's options; UsageError for one that neither it nor a reader has."""
    own = {option.name for option in target.options}
    readers = session.host.readers
    known = set(own) | LIMIT_NAMES
    for capture in captures:
        known |= {option.name for option in readers[capture.format].options}
    known |= (
        {option.name for option in readers["records"].options} if "records" in readers else set()
    )
    session.check_options(known, f"converting to {_name(target)}")
    given: dict[str, Any] = {}
    if isinstance(target, Writer) and target.format == captures[0].format:
        given.update(captures[0].writer_options)
    given.update({name: value for name, value in session.settings.options.items() if name in own})
    return parse_options(given, target.options, whose=_name(target))


def _name(target: Target) -> str:
    return target.format if isinstance(target, Writer) else target.name


# --- writing -----------------------------------------------------------------------------------


def _check(
    session: Session,
    captures: Sequence[Capture],
    parts: Sequence[Selection | None],
    target: Target,
    out: str,
    *,
    force: bool,
) -> None:
    """Refuse what would come out wrong, before anything is written."""
    binary = isinstance(target, Writer) or target.binary
    if out == "-" and binary and session.screen.out_is_terminal and not force:
        raise UsageError(
            f"{_name(target)} is binary, and standard output is a terminal",
            remedy="send it to a file or a pipe, or give --force",
        )
    for capture, part in zip(captures, parts, strict=True):
        if part is not None and part.by_logs:
            _check_logs(capture, part, target)
    if isinstance(target, Writer) and _keeps_format(captures, target):
        if parts[0] is not None and target.cut is None and captures[0].row_table is None:
            raise UsageError(
                f"a {target.format} file cannot be cut: what the records of a part depend on "
                "would be missing",
                remedy="take all of it, or choose an exporter: "
                f"{_choices(session.host, captures[0])}",
            )
        return
    for capture in captures:
        if isinstance(target, Writer):
            if not target.composes(capture.tables):
                raise UsageError(
                    f"a {capture.format} capture cannot be written as {target.format}"
                    + (", nor several into one file" if len(captures) > 1 else ""),
                    path=capture.name,
                    remedy=f"there are: {_choices(session.host, capture)}",
                )
        elif not target.takes(capture.format, capture.tables):
            raise UsageError(
                f"exporter {target.name!r} does not take a {capture.format} capture",
                path=capture.name,
                remedy="convert the inputs one by one",
            )
        # What takes every capture also takes one of which nothing could be read.
        if isinstance(target, Writer) or target.accepts != EVERY_CAPTURE:
            require_readable(capture)


def _check_logs(capture: Capture, part: Selection, target: Target) -> None:
    """Refuse where logs are chosen and there are none, or the records could not follow."""
    capture.select(part)
    if isinstance(target, Writer) and target.cut is not None and capture.row_table is None:
        raise UsageError(
            f"what a part of a {capture.format} capture has as {target.format} cannot be chosen "
            "by its logs",
            path=capture.name,
            remedy="leave out the log options, or choose an exporter, such as -t csv",
        )


def _keeps_format(captures: Sequence[Capture], target: Writer) -> bool:
    """Whether one capture is written in its own format, so that its records are."""
    return len(captures) == 1 and captures[0].format == target.format


def _convert(
    session: Session,
    captures: Sequence[Capture],
    parts: Sequence[Selection | None],
    target: Target,
    options: Mapping[str, Any],
    out: str,
    *,
    force: bool,
) -> _Result:
    result = _Result()
    with session.host.sink(out, force=force) as sink:
        result.out = sink.name
        names = ", ".join(capture.name for capture in captures)
        with session.screen.working(f"converting {names}", "written") as working:
            working.watch(lambda: sink.written)
            if isinstance(target, Writer) and _keeps_format(captures, target):
                whole, part = captures[0], parts[0]
                if part is None:
                    result.status = _rewrite(session, whole, target, options, sink)
                elif target.cut is not None:
                    result.left_out = target.cut(whole, part, sink, options)
                    result.dropped = getattr(result.left_out, "dropped", {})
                else:
                    window = whole.select(part)
                    result.status = _write_records(session, window, target, options, sink)
                    result.left_out = _rows_left_out(whole, window)
            else:
                open_export = target.compose if isinstance(target, Writer) else target.open
                assert open_export is not None  # noqa: S101 (`_check` has asked)
                export = open_export(sink, options)
                for capture, part in zip(captures, parts, strict=True):
                    export.write(capture if part is None else capture.select(part))
                result.dropped = export.close()
                if isinstance(target, Writer) or target.accepts != EVERY_CAPTURE:
                    # An exporter may have read a part only. Of records all are read, and who asks
                    # for them is told what they have; tables have findings of their own.
                    for capture in captures:
                        capture.scan()
        result.nbytes = sink.written
    return result


def _rewrite(
    session: Session, capture: Capture, writer: Writer, options: Mapping[str, Any], sink: Sink
) -> ExitCode:
    """Write a capture's records in its own format."""
    from fxframework.io.source import CHUNK

    usual = {option.name: option.default for option in writer.options}
    if capture.source.rebuilt and options == {**usual, **capture.writer_options}:
        # This very writer has just made them, of a records file.
        for at in range(0, capture.source.size, CHUNK):
            sink.write(capture.source.read(at, CHUNK))
        capture.scan()
        return ExitCode.OK
    return _write_records(session, capture, writer, options, sink)


def _write_records(
    session: Session, capture: Capture, writer: Writer, options: Mapping[str, Any], sink: Sink
) -> ExitCode:
    """Write a capture's records through a writer."""
    target = RecordTarget(session, capture, writer, options, sink)
    for record in capture.records():
        target.write(record)
    return target.close()


def _rows_left_out(whole: Capture, window: Capture) -> dict[str, int]:
    """How many of the rows that the records have are outside of a part."""
    name = whole.row_table
    assert name is not None  # noqa: S101 (`_check` has asked)
    rows, kept = (sum(len(batch) for batch in capture.batches(name)) for capture in (whole, window))
    return {name: rows - kept} if rows > kept else {}


class RecordTarget:
    """A writer of a capture's records: a refusal says where the record stood."""

    def __init__(
        self,
        session: Session,
        capture: Capture,
        writer: Writer,
        options: Mapping[str, Any],
        sink: Sink,
    ) -> None:
        from fxframework.model.diagnostics import Diagnostics

        reader = session.host.readers.get(writer.format)
        rules = Catalogue([]) if reader is None or reader.rules is None else reader.rules()
        self._session = session
        self._capture = capture
        self._found = Diagnostics(rules, strict=session.settings.strict, path=sink.name)
        self._target = writer.open(sink, options, self._found)

    def write(self, record: Any) -> None:
        """Write a record; WriteRefusedError where the format cannot hold it."""
        try:
            self._target.write(record)
        except WriteRefusedError as error:
            error.path = error.path or self._capture.name
            error.offset = record.offset if error.offset is None else error.offset
            raise

    def close(self) -> ExitCode:
        """Write what is held back, and tell what the writer found."""
        self._target.close()
        found = self._found
        for finding in found:
            if finding.severity >= Severity.WARNING:
                self._session.screen.warn(finding.code, finding.message)
        lost = found.worst is not None and found.worst >= Severity.DATA_LOSS
        return ExitCode.FINDINGS if lost else ExitCode.OK


def tell_dropped(session: Session, name: str, dropped: Mapping[str, int]) -> None:
    """Tell what a form had no place for."""
    if dropped:
        some = ", ".join(f"{what} ({count:,})" for what, count in dropped.items())
        session.screen.note(f"{name} has no place for: {some}")


def _report(session: Session, captures: Sequence[Capture], target: Target, result: _Result) -> None:
    screen = session.screen
    tell_dropped(session, _name(target), result.dropped)
    if result.left_out:
        rest = ", ".join(f"{count:,} {what}" for what, count in result.left_out.items())
        screen.detail(f"outside of the part: {rest}")
    screen.detail(f"wrote {result.out}: {amount(result.nbytes, 'byte')} as {_name(target)}")
    if session.settings.json:
        screen.json(
            "convert",
            {
                "inputs": [
                    {
                        "path": capture.name,
                        "format": capture.format,
                        "findings": capture.diagnostics.counts,
                    }
                    for capture in captures
                ],
                "out": result.out,
                "to": _name(target),
                "bytes": result.nbytes,
                "dropped": result.dropped,
                "left_out": result.left_out,
            },
        )
