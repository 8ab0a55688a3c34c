"""The operations of the command line as functions: convert, verify, diff, compare and so on."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from mmap import mmap
from types import NoneType
from typing import TYPE_CHECKING, Any, cast

import attrs

from fxframework.conversion import check_options, plan, plan_salvage
from fxframework.errors import ClosedError, NotACaptureError, UsageError, checked_type
from fxframework.host import Host, Input, default_host
from fxframework.model.capture import Capture, Window
from fxframework.model.selection import Selection
from fxframework.targets import check_suffix, owned_options

if TYPE_CHECKING:
    import pyarrow as pa

    from fxframework.analysis.comparison import Comparison
    from fxframework.analysis.why import Why
    from fxframework.conversion import ConversionReport, SalvageReport
    from fxframework.kit.difference import Difference
    from fxframework.model.diagnostics import Diagnostic
    from fxframework.model.timeline import Line

SINGLE = (str, os.PathLike, bytes, bytearray, memoryview, mmap, Capture)
"""Types of a single input, beside open files."""
BY = {
    "record": ("record",),
    "entry": ("entry",),
    "all": ("record", "entry"),
}
"""Comparisons for each value of ``by`` in ``diff``."""


def convert(
    inputs: Input | Capture | Iterable[Input | Capture],
    out: str | os.PathLike[str],
    *,
    to: str | None = None,
    select: Selection | None = None,
    align: Mapping[str, Line | str] | None = None,
    format: str | None = None,
    strict: bool = False,
    force: bool = False,
    **options: Any,
) -> ConversionReport:
    """Convert captures to one output, whose target is named by ``to`` or the suffix of ``out``.

    ``inputs`` are one or several paths, bytes or open captures; captures stay open. ``select``
    chooses a part of each; ``align`` relates the clocks of captures that are exported together,
    by name (``fxframework.model.timeline``); ``format`` names the reader of inputs that are not
    open yet. The output is written atomically, and replaces an existing file only with ``force``.
    ``options`` are those of the readers and the target, and the limits.

    Raises UsageError for unknown targets and options, and for captures that the target does not
    accept; UnreadableError, NoReaderError; WriteRefusedError if the output cannot be written.
    """
    checked_type(select, (Selection, NoneType), "select", "a Selection or None")
    checked_type(align, (Mapping, NoneType), "align", "a dict of lines by name, or None")
    input_list = _listed(inputs)
    if not input_list:
        raise UsageError("convert needs at least one input", remedy="give a path or a capture")
    if to is None:
        check_suffix(default_host(), input_list, os.fspath(out))
    with contextlib.ExitStack() as stack:
        captures: list[Capture] = []
        parts: list[Selection | None] = []
        for single_input in input_list:
            capture = stack.enter_context(_opened(single_input, format, options, strict=strict))
            part = select
            # Convert a Window from its whole capture, so that what the part refers to is written.
            if select is None and type(capture) is Window:
                part = capture.selection
                capture = capture.whole
            captures.append(capture)
            parts.append(part)
        host = _host(captures[0])
        conversion = plan(
            host, captures, out, to=to, parts=parts, options=options,
            strict=strict, alignments=align,
        )  # fmt: skip
        with host.sink(out, force=force) as sink:
            report = conversion.run(sink)
        # A compressing sink knows its size only after it is closed.
        return attrs.evolve(report, nbytes=sink.written)


def split(
    input: Input | Capture,
    out: str | os.PathLike[str],
    into: str | int,
    *,
    to: str | None = None,
    select: Selection | None = None,
    format: str | None = None,
    strict: bool = False,
    force: bool = False,
    **options: Any,
) -> list[ConversionReport]:
    """Convert a capture to several outputs, each of which can be opened by itself.

    ``into`` is the size of a part (``100MB``), its length in time (``10s``), or the number of parts
    (8). The part with number 1 of ``part.fxt`` is ``part-001.fxt``. All of them get their names at
    the end, or none does. The rest is as in ``convert``, and so are the errors, with UsageError for
    a capture without times and for too many parts, and WriteRefusedError where a part of that size
    cannot hold what begins at one time.
    """
    from fxframework.splitting import Split
    from fxframework.splitting import split as split_capture

    checked_type(select, (Selection, NoneType), "select", "a Selection or None")
    checked_type(into, (str, int), "into", "a str or an int")
    with _opened(input, format, options, strict=strict) as capture:
        host = _host(capture)
        return split_capture(
            host,
            capture,
            out,
            Split.parse(into),
            to=to,
            part=select,
            options=options,
            strict=strict,
            open_sink=lambda name: host.sink(name, force=force),
        )


def salvage(
    input: Input | Capture,
    out: str | os.PathLike[str],
    *,
    format: str | None = None,
    force: bool = False,
    **options: Any,
) -> SalvageReport:
    """Write the valid records of a damaged capture; the report lists what was lost, and where.

    The suffix of ``out`` names the capture's format, whose records are rewritten, or a format that
    can be made from its tables. Raises the errors of ``convert``; UnreadableError if there is no
    valid record.
    """
    with _opened(input, format, options) as capture:
        host = _host(capture)
        conversion = plan_salvage(host, capture, out, options=options)
        with host.sink(out, force=force) as sink:
            report = conversion.run(sink)
        report.nbytes = sink.written
        return report


def verify(
    input: Input | Capture, *, format: str | None = None, **options: Any
) -> list[Diagnostic]:
    """Read a whole capture; return all kept findings in file order.

    ``options`` are those of the reader and the limits. Raises the errors of ``fxframework.open``.
    """
    with _opened(input, format, options, only=True) as capture:
        capture.scan()
        return capture.diagnostics.sorted()


def sql(
    captures: Input | Capture | Iterable[Input | Capture],
    query: str,
    *,
    format: str | None = None,
    **options: Any,
) -> pa.Table:
    """Run a query over the tables of captures or of a dataset; return an Arrow table.

    ``captures`` are one or several paths, bytes or open captures, which stay open; a single path
    or address may be that of a dataset made by ``batch``. Every table is a view of its name;
    ``slices_with_names``, ``sched_with_names``, ``logs_with_keys`` and so on
    (``fxframework.query.JOINED``) add names, ids and arguments. With several captures, a view has
    the rows of all of them and a column ``capture``. ``format`` and ``options`` are those of the
    readers. The query cannot read or write files.

    Raises UsageError, with the place, for a query that duckdb rejects, MissingExtraError without
    duckdb or pyarrow, and the errors of ``fxframework.open``.
    """
    from fxframework.dataset.query import DatasetQueries, is_dataset
    from fxframework.query import Database, Queries

    checked_type(query, str, "the query", "a str")
    inputs = _listed(captures)
    if not inputs:
        raise UsageError("sql needs at least one capture", remedy="give a path or a capture")
    with contextlib.ExitStack() as stack:
        database: Queries
        first = inputs[0]
        if len(inputs) == 1 and isinstance(first, str | os.PathLike) and is_dataset(first):
            database = DatasetQueries(os.fspath(first))
        else:
            opened_captures = (_opened(item, format, options, several=True) for item in inputs)
            database = Database([stack.enter_context(context) for context in opened_captures])
        return stack.enter_context(database).query(query)


def diff(
    first: Input | Capture,
    second: Input | Capture,
    *,
    by: str = "all",
    show: int = 10,
    format: str | None = None,
    of_a: Mapping[str, Any] | None = None,
    of_b: Mapping[str, Any] | None = None,
    **options: Any,
) -> Difference:
    """Compare two captures of one format.

    ``by`` is ``record``, ``entry`` or ``all``; ``show`` limits the entries of each list.
    ``format`` and ``options`` are those of the readers; ``of_a`` and ``of_b`` are options for one
    of the two. Raises UsageError for another ``by`` and for captures of two formats, and the errors
    of ``fxframework.open``.
    """
    from fxframework.kit.difference import compare

    comparisons = compared_by(by)
    checked_type(show, int, "show", "an int")
    first_options = {**options, **(of_a or {})}
    second_options = {**options, **(of_b or {})}
    with (
        _opened(first, format, first_options, several=True) as first_capture,
        _opened(second, format, second_options, several=True) as second_capture,
    ):
        return compare(first_capture, second_capture, by=comparisons, show=show)


def compared_by(by: str) -> Collection[str]:
    """Return the comparisons that ``diff`` makes for ``by``. Raises UsageError unless in ``BY``."""
    if by not in BY:
        raise UsageError(
            f"captures cannot be compared by {by!r}",
            remedy=f"by: {', '.join(BY)}; `fxf compare` shows what two runs did differently, "
            "by name, path, process and others",
        )
    return BY[by]


def compare(
    before: Input | Capture | Iterable[Input | Capture],
    after: Input | Capture | Iterable[Input | Capture],
    *,
    by: str = "name",
    threshold: float = 0.05,
    select: Selection | None = None,
    format: str | None = None,
    of_after: Mapping[str, Any] | None = None,
    **options: Any,
) -> Comparison:
    """Compare what two runs, or many runs of two sides, did: which calls took longer, and so on.

    Each side is one or several paths, bytes or open captures; a path may be a folder or a pattern,
    whose files that are not captures are skipped. Captures of several formats are those of the
    same runs: the first of each format are the first run, and so on.
    ``by`` is ``name``, ``path``, ``process``, ``thread``, ``category`` or another column of
    `slices`; smaller relative changes than ``threshold`` are the same; ``select`` chooses a part
    of each capture. ``options`` are those of the readers, ``of_after`` those that differ on
    the other side, such as the map of another build.

    Raises UsageError for captures that have nothing in common to compare, and the errors of
    ``fxframework.open``.
    """
    from fxframework.analysis.comparison import compared
    from fxframework.analysis.runs import Reader, Side

    checked_type(by, str, "by", "a str")
    checked_type(threshold, (int, float), "threshold", "a number")
    checked_type(select, (Selection, NoneType), "select", "a Selection or None")
    reader = Reader.of(by)
    side_before = Side(reader.names)
    side_after = Side(reader.names)
    options_after = {**options, **(of_after or {})}
    for side, inputs, side_options in (
        (side_before, before, options),
        (side_after, after, options_after),
    ):
        for single_input, is_named in _expanded(inputs):
            with contextlib.ExitStack() as stack:
                try:
                    context = _opened(single_input, format, side_options, several=True)
                    capture = stack.enter_context(context)
                except NotACaptureError:
                    if is_named:
                        raise
                    continue  # some file of a folder
                reader.read(capture if select is None else capture.select(select), side)
    return compared(reader, side_before, side_after, threshold=threshold)


def why(
    input: Input | Capture,
    name: str,
    *,
    top: int = 1,
    select: Selection | None = None,
    format: str | None = None,
    **options: Any,
) -> Why:
    """Return where the time of the ``top`` slowest slices of a name went, and of a typical one.

    ``select`` chooses the slices; all of the capture says what happened meanwhile. ``options`` are
    those of the reader. Raises UsageError if no slice of the name ended, and the errors of
    ``fxframework.open``.
    """
    from fxframework.analysis import why as reasons

    checked_type(select, (Selection, NoneType), "select", "a Selection or None")
    with _opened(input, format, options, only=True) as capture:
        part = capture if select is None else capture.select(select)
        return reasons.why(part, name, top=top)


def _expanded(
    inputs: Input | Capture | Iterable[Input | Capture],
) -> list[tuple[Input | Capture, bool]]:
    """Return the inputs, each with whether it was named itself.

    A path that is a folder or a pattern becomes its files, but not pipes, sockets and devices.
    """
    from fxframework.dataset.inputs import expand

    expanded_inputs: list[tuple[Input | Capture, bool]] = []
    for single_input in _listed(inputs):
        if isinstance(single_input, str | os.PathLike):
            files_of_input = expand([os.fspath(single_input)])
            expanded_inputs += [
                (file.file, file.named) for file in files_of_input if not file.skipped_at_once
            ]
        else:
            expanded_inputs.append((single_input, True))
    return expanded_inputs


def _listed(inputs: Input | Capture | Iterable[Input | Capture]) -> list[Input | Capture]:
    """Return one or several inputs as a list. Raises BadTypeError for anything else."""
    if isinstance(inputs, SINGLE) or hasattr(inputs, "read"):
        return [cast("Input | Capture", inputs)]
    checked_type(inputs, Iterable, "the input", "a path, bytes, a capture, or several of these")
    return list(cast("Iterable[Any]", inputs))


def _host(capture: Capture) -> Host:
    """Return the host that opened a capture."""
    host: Host | None = capture.request.host
    return host or default_host()


@contextlib.contextmanager
def _opened(
    what: Input | Capture,
    format: str | None,
    options: Mapping[str, Any],
    *,
    strict: bool = False,
    only: bool = False,
    several: bool = False,
) -> Iterator[Capture]:
    """Yield an open capture as it is, or open an input with those options that its reader has.

    With ``only``, raise UsageError for options that the reader does not have; with ``several``
    inputs, which may have several readers, for options that no installed reader has.
    """
    if isinstance(what, Capture):
        if what.closed:
            raise ClosedError(what.name)
        yield what
        return
    host = default_host()
    with host.open(what, format=format, strict=strict, options=options, others=True) as capture:
        if only or several:
            other_readers = host.readers.values() if several else ()
            check_options(host, options, [capture], *owned_options(other_readers))
        yield capture
