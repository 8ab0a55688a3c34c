"""Conversion: plans and runs the conversion of captures to an output.

An output is made by one of four actions (``Action``): the records of a capture are *rewritten* in
its own format; a part of a capture is *extracted*, with everything the part needs; captures are
*merged* into a format by their tables; or captures are *exported*. ``plan`` chooses the target and
the action, and raises errors before anything is written; ``Conversion.run`` carries it out.
"""

from __future__ import annotations

import enum
import itertools
import operator
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from fxframework import rules
from fxframework.errors import (
    Catalogue,
    LimitError,
    MissingExtraError,
    Severity,
    UnreadableError,
    UsageError,
    WriteRefusedError,
    did_you_mean,
    missing_packages,
)
from fxframework.io.budget import Budget
from fxframework.io.folder import names_folder
from fxframework.model.turns import held
from fxframework.registry import (
    EVERY_CAPTURE,
    LIMIT_OPTIONS,
    SHORTEN,
    Exporter,
    Option,
    Writer,
    no_parts,
    parse_options,
)
from fxframework.targets import (
    Target,
    find_target,
    longest_suffix,
    nothing_to_write,
    preferred_writer,
    tables_needed,
    target_name,
    target_names,
    targets_for,
)

if TYPE_CHECKING:
    from fxframework.host import Host
    from fxframework.io.sink import Sink
    from fxframework.io.source import Source
    from fxframework.kit.salvage import Loss
    from fxframework.model.capture import Capture
    from fxframework.model.diagnostics import Diagnostic
    from fxframework.model.selection import Selection
    from fxframework.model.timeline import Alignment, Line

UNREADABLE_KINDS = frozenset({"padding", "damaged", "unknown"})
"""Kinds of records without readable contents; a capture of only these is unreadable."""
RECORDS = "records"
"""The format of records files, whose reader returns captures of other formats."""


class Action(enum.StrEnum):
    """How an output is made."""

    REWRITE = "rewrite"
    """Write every record of a capture in the capture's own format."""
    EXTRACT = "extract"
    """Write a part of a capture in the capture's own format."""
    MERGE = "merge"
    """Write captures in another format, or several into one file, by their tables."""
    EXPORT = "export"
    """Write captures with an exporter."""


@attrs.frozen(kw_only=True)
class InputReport:
    """An input of a conversion."""

    path: str
    format: str
    findings: Mapping[str, int]
    """Findings by code, with counts."""


@attrs.frozen(kw_only=True)
class ConversionReport:
    """What a conversion wrote, and what it omitted."""

    out: str
    to: str
    """The format or exporter that wrote it."""
    action: Action
    nbytes: int
    inputs: tuple[InputReport, ...]
    rows: Mapping[str, int]
    """Rows of each table that the target received; empty for records and for parts."""
    dropped: Mapping[str, int]
    """Counts of what the target cannot represent, by name."""
    outside: Mapping[str, int]
    """Counts of what is outside of the selected part, by name; empty if not counted."""
    findings: tuple[Diagnostic, ...]
    """Findings of the writer, about the output."""
    worst: Severity | None
    """The greatest severity among the findings of the inputs and of the writer."""
    alignments: tuple[Alignment, ...] = ()
    """How each input was aligned to one clock; empty if times are unchanged."""
    skipped: Mapping[str, int] = attrs.field(factory=dict)
    """Counts of the slices of the part that its selection skips, by the reason."""
    renumbered: Mapping[int, int] = attrs.field(factory=dict)
    """Ids in the output, with the original ids that its format cannot represent."""

    @property
    def lossy(self) -> bool:
        """Whether data of an input could not be read or written."""
        return self.worst is not None and self.worst >= Severity.DATA_LOSS


# --- Options -----------------------------------------------------------------------------------


def check_options(
    host: Host,
    given: Iterable[str],
    captures: Sequence[Capture],
    *more: tuple[str, Iterable[Option]],
) -> None:
    """Raise UsageError for an option that does not apply.

    Valid are the options of the captures' readers, the limits, and ``more``: pairs of a title and
    options. The error lists all of them by owner.
    """
    names_by_owner: dict[str, list[str]] = {}
    for capture in captures:
        formats = [capture.format]
        if capture.source.rebuilt:
            formats.append(RECORDS)
        for format in formats:
            reader = host.readers.get(format)
            if reader is not None:
                names_by_owner[f"reader {format}"] = [option.name for option in reader.options]
    for title, options in more:
        names_by_owner[title] = [option.name for option in options]
    names_by_owner["limits"] = [option.name for option in LIMIT_OPTIONS]
    # By owner, because options of several readers and targets may have the same name.
    valid_names = set(itertools.chain.from_iterable(names_by_owner.values()))
    for name in given:
        if name not in valid_names:
            owners = [
                f"{owner}: {', '.join(names)}" for owner, names in names_by_owner.items() if names
            ]
            raise UsageError(
                f"no option {name!r} applies here{did_you_mean(name, valid_names)}",
                remedy=f"options by owner: {'; '.join(owners)}",
            )


def _target_options(
    target: Target, captures: Sequence[Capture], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the values of a target's options.

    Options that are not given have the values that reproduce the bytes of a capture in its own
    format, or else their defaults.
    """
    values: dict[str, Any] = {}
    if isinstance(target, Writer) and target.format == captures[0].format:
        values.update(captures[0].writer_options)
    option_names = {option.name for option in target.options}
    values.update({name: value for name, value in options.items() if name in option_names})
    return parse_options(values, target.options, whose=target_name(target))


# --- Planning ----------------------------------------------------------------------------------


def plan(
    host: Host,
    captures: Sequence[Capture],
    out: str | os.PathLike[str],
    *,
    to: str | None = None,
    parts: Sequence[Selection | None] | None = None,
    options: Mapping[str, Any] | None = None,
    strict: bool = False,
    alignments: Mapping[str, Line | str] | None = None,
) -> Conversion:
    """Plan the conversion of captures to an output.

    The target is named by ``to``, or else by the suffix of ``out``. ``parts`` has a selection for
    each capture, None for all of it. ``options`` are those of the target and the readers, and the
    limits. ``alignments`` relate the clocks of captures that are exported together
    (``fxframework.model.timeline.align``).

    Raises UsageError for an unknown target or option, or if the target does not accept the
    captures or their parts; UnreadableError if nothing in a capture can be read.
    """
    given = dict(options or {})
    chosen_parts = list(parts) if parts is not None else [None] * len(captures)
    target = find_target(host, captures, os.fspath(out), to)
    if names_folder(out) and not (isinstance(target, Exporter) and target.folders):
        with_folders = ", ".join(
            sorted({exporter.name for exporter in host.exporters if exporter.folders})
        )
        raise UsageError(
            f"{target_name(target)} writes one file, but {os.fspath(out)!r} is a folder",
            remedy=f"omit the slash at the end; folders are written by: {with_folders}",
        )
    check_options(host, given, captures, (target_name(target), target.options))
    conversion = _kind_of(target, captures, chosen_parts)(
        host=host,
        captures=tuple(captures),
        parts=tuple(chosen_parts),
        target=target,
        options=_target_options(target, captures, given),
        strict=strict,
        alignments=_alignments(captures, target, alignments),
    )
    conversion.check()
    return conversion


def _kind_of(
    target: Target, captures: Sequence[Capture], parts: Sequence[Selection | None]
) -> type[Conversion]:
    """Return the class of the action that makes the output."""
    if isinstance(target, Exporter):
        return _Export
    if len(captures) > 1 or captures[0].format != target.format:
        return _Merge
    return _Rewrite if parts[0] is None else _Extract


def _alignments(
    captures: Sequence[Capture], target: Target, lines: Mapping[str, Line | str] | None
) -> tuple[Alignment, ...]:
    """Align the clocks of captures, if an exporter takes their tables; ``lines`` are the user's."""
    if not _writes_tables(target):
        if lines:
            raise UsageError(
                f"{target_name(target)} keeps the times of each capture, so none can be aligned",
                remedy="omit --align, or choose an exporter of tables, such as perfetto",
            )
        return ()
    if len(captures) < 2 and not lines:
        return ()
    from fxframework.model.timeline import align

    return tuple(align(captures, lines))


def _writes_tables(target: Target) -> bool:
    """Return whether a target is an exporter of tables, whatever their format."""
    if not isinstance(target, Exporter) or isinstance(target.accepts, str):
        return False
    return target.name != RECORDS


@attrs.frozen(kw_only=True)
class _Outcome:
    """What writing an output gave, for the report."""

    findings: tuple[Diagnostic, ...] = ()
    outside: Mapping[str, int] = attrs.field(factory=dict)
    dropped: Mapping[str, int] = attrs.field(factory=dict)
    rows: Mapping[str, int] = attrs.field(factory=dict)
    renumbered: Mapping[int, int] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class Conversion:
    """A plan: captures or parts of them, and a target. Each action is a class of its own."""

    action: ClassVar[Action]
    host: Host
    captures: tuple[Capture, ...]
    parts: tuple[Selection | None, ...]
    target: Target
    options: Mapping[str, Any]
    strict: bool
    alignments: tuple[Alignment, ...] = ()
    """How the captures are aligned to one clock; empty if their times are unchanged."""

    @property
    def binary(self) -> bool:
        """Whether the output is binary, and not for a terminal."""
        return isinstance(self.target, Writer) or self.target.binary

    @property
    def reads_all(self) -> bool:
        """Whether the target takes every capture, even an unreadable one."""
        return False

    def check(self) -> None:
        """Raise UsageError or UnreadableError if the plan cannot be carried out."""
        from fxframework.model.timeline import spare

        for capture, part in zip(self.captures, self.parts, strict=True):
            if part is not None and part.by_logs:
                self._check_logs(capture, part)
        self._check_target()
        for capture in self.captures:
            if capture.source.rebuilt and not capture.source.size:
                _refuse_lines(capture)
            if not self.reads_all:
                require_readable(capture)
                spare(self.captures, capture)

    def _check_logs(self, capture: Capture, part: Selection) -> None:
        """Raise UsageError if the target cannot write a part that is selected by its logs."""
        capture.select(part)  # which refuses captures without logs
        target = self.target
        if isinstance(target, Writer) and target.extract is not None and capture.row_table is None:
            raise UsageError(
                f"log options cannot select a part of {capture.format} captures that is written as "
                f"{target.format}",
                path=capture.name,
                remedy="omit the log options, or choose an exporter, such as -t csv",
            )

    def _check_target(self) -> None:
        """Raise UsageError if the target cannot do this with the captures."""

    def run(self, sink: Sink) -> ConversionReport:
        """Write the output to a sink, which the caller commits.

        Other threads that share the inputs wait until it is written. Raises WriteRefusedError for
        what the target cannot represent, and the errors of reading.
        """
        with held(self.captures):
            sink.budget = Budget.joint(capture.request.budget for capture in self.captures)
            return self._report(sink, self._write(sink))

    def _write(self, sink: Sink) -> _Outcome:
        """Write the output."""
        raise NotImplementedError

    def _report(self, sink: Sink, outcome: _Outcome) -> ConversionReport:
        severities = [finding.severity for finding in outcome.findings]
        worst_of_inputs = (capture.diagnostics.worst for capture in self.captures)
        severities += [severity for severity in worst_of_inputs if severity is not None]
        inputs = [
            InputReport(
                path=capture.name, format=capture.format, findings=capture.diagnostics.counts
            )
            for capture in self.captures
        ]
        return ConversionReport(
            out=sink.name,
            to=target_name(self.target),
            action=self.action,
            nbytes=sink.written,
            inputs=tuple(inputs),
            rows=outcome.rows,
            dropped=outcome.dropped,
            outside=outcome.outside,
            findings=outcome.findings,
            worst=max(severities, default=None),
            alignments=self.alignments,
            skipped=self._skipped(),
            renumbered=outcome.renumbered,
        )

    def _skipped(self) -> Mapping[str, int]:
        """Count the slices that the parts skip, by the reason."""
        counts: Counter[str] = Counter()
        for capture, part in zip(self.captures, self.parts, strict=True):
            if part is not None and part.skips:
                counts.update(capture.select(part).skipped_counts())
        return counts


# --- One capture, in its own format ------------------------------------------------------------


@attrs.frozen(kw_only=True)
class _Records(Conversion):
    """Writes the records of one capture in its own format."""

    target: Writer

    @property
    def reads_all(self) -> bool:
        """Return True: bytes that are not records are written as they are."""
        return True

    def _write_records(self, capture: Capture, sink: Sink) -> tuple[Diagnostic, ...]:
        target = _RecordTarget(self, capture, sink)
        for record in capture.checked_records():
            target.write(record)
        return target.close()


@attrs.frozen(kw_only=True)
class _Rewrite(_Records):
    """Writes all records of a capture."""

    action = Action.REWRITE

    def _write(self, sink: Sink) -> _Outcome:
        (capture,) = self.captures
        writer = self.target
        defaults = {option.name: option.default for option in writer.options}
        is_unchanged = self.options == {**defaults, **capture.writer_options}
        if is_unchanged and (writer.lossless or capture.source.rebuilt):
            # Each record would be written as the bytes that it was read from.
            _copy(capture.source, sink)
            capture.scan()
            return _Outcome()
        return _Outcome(findings=self._write_records(capture, sink))


@attrs.frozen(kw_only=True)
class _Extract(_Records):
    """Writes a part of a capture, with everything that it needs."""

    action = Action.EXTRACT

    def _check_target(self) -> None:
        (capture,) = self.captures
        if self.target.extract is None and capture.row_table is None:
            names = target_names(targets_for(self.host, capture))
            remedy = f"convert all of it, or name an exporter with -t: {names}"
            raise no_parts(self.target.format, capture.name, remedy)

    def _write(self, sink: Sink) -> _Outcome:
        (capture,) = self.captures
        (part,) = self.parts
        assert part is not None  # noqa: S101 (otherwise it is rewritten)
        if self.target.extract is not None:
            function = self.target.extract
            left_out = self.host.called(self.target, function, capture, part, sink, self.options)
            outside = _counts(self, left_out, "extract()")
            return _Outcome(outside=outside, dropped=getattr(left_out, "dropped", {}))
        window = capture.select(part)
        findings = self._write_records(window, sink)
        name = capture.row_table
        assert name is not None  # noqa: S101 (checked by `_check_target`)
        rows = sum(map(len, capture.batches(name)))
        rows_of_part = sum(map(len, window.batches(name)))
        outside_rows = {name: rows - rows_of_part} if rows > rows_of_part else {}
        return _Outcome(findings=findings, outside=outside_rows)


# --- What plugins do ---------------------------------------------------------------------------


def _opened(plan: Conversion | Salvage, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function of the target opens. Raises PluginError if nothing can be written."""
    session = plan.host.called(plan.target, function, *arguments)
    if not (hasattr(session, "write") and hasattr(session, "close")):
        raise plan.host.faulty(
            plan.target, f"open() returned {session!r}, not an object with write() and close()"
        )
    return session


def _counts(plan: Conversion | Salvage, left_out: Any, function: str) -> Mapping[str, int]:
    """Return the counts that a function of the target returned. Raises PluginError for others."""
    try:
        return {name: operator.index(count) for name, count in (left_out or {}).items()}
    except (AttributeError, TypeError) as error:
        fault = f"{function} returned {left_out!r}, not names with counts"
        raise plan.host.faulty(plan.target, fault) from error


# --- Captures of any formats, by their tables --------------------------------------------------


@attrs.frozen(kw_only=True)
class _Tables(Conversion):
    """Writes the tables of captures in a session of the target."""

    @property
    def _opens(self) -> Callable[..., Any]:
        """The function of the target that opens a session."""
        raise NotImplementedError

    def _write(self, sink: Sink) -> _Outcome:
        """Write the captures, large ones trimmed one after the other."""
        from fxframework.model.timeline import spare

        views = self._views()
        session = _opened(self, self._opens, sink, self.options)
        rows: Counter[str] = Counter()
        expect = getattr(session, "expect", None)
        if expect is not None and len(views) > 1:
            for capture, view in zip(self.captures, views, strict=True):
                expect(view)
                spare(self.captures, capture)
        for capture, view in zip(self.captures, views, strict=True):
            self._write_view(session, view)
            if not self.reads_all:
                # An exporter may have read only some tables, but the report needs all findings.
                capture.scan()
            rows.update(capture.summary().rows)
            spare(self.captures, capture)
        return _Outcome(
            dropped=_counts(self, session.close(), "close()"),
            rows={} if any(self.parts) else rows,
            renumbered=getattr(session, "renumbered", {}),
        )

    def _write_view(self, session: Any, view: Capture) -> None:
        session.write(view)

    def _views(self) -> list[Capture]:
        """Return the parts of the captures, on one clock. Raises WriteRefusedError without rows."""
        from fxframework.model.timeline import aligned

        chosen_parts: list[Capture] = [
            capture if part is None else capture.select(part)
            for capture, part in zip(self.captures, self.parts, strict=True)
        ]
        self._check_rows(chosen_parts)
        if self.options.get(SHORTEN.name):
            from fxframework.kit.short_names import ShortNames

            chosen_parts = [ShortNames(part) for part in chosen_parts]
        if not self.alignments:
            return chosen_parts
        return [
            aligned(part, alignment)
            for part, alignment in zip(chosen_parts, self.alignments, strict=True)
        ]

    def _check_rows(self, chosen_parts: Sequence[Capture]) -> None:
        """Raise WriteRefusedError if no capture has a row that the target could write."""
        reasons = []
        for part in chosen_parts:
            reason = nothing_to_write(self.target, part)
            if not reason:
                return
            reasons.append(reason)
        where = " in the selected part" if any(self.parts) else ""
        raise WriteRefusedError(
            f"there is nothing to write as {target_name(self.target)}: {reasons[0]}{where}",
            path=self.captures[0].name,
            remedy="`fxf convert --list` says what the capture can become",
        )


@attrs.frozen(kw_only=True)
class _Merge(_Tables):
    """Writes the tables of captures, of any formats, as a file of another format."""

    action = Action.MERGE
    target: Writer

    def _check_target(self) -> None:
        target = self.target
        for capture in self.captures:
            if target.merges(capture.format, capture.tables):
                continue
            message = f"{capture.format} captures cannot be written as {target.format}"
            if len(self.captures) > 1 and capture.format == target.format:
                message = f"several {target.format} captures cannot be merged into one file"
            others = [each for each in targets_for(self.host, capture) if each is not target]
            raise UsageError(
                message,
                path=capture.name,
                remedy=f"they can become: {target_names(others)}",
            )

    @property
    def _opens(self) -> Callable[..., Any]:
        assert self.target.merge is not None  # noqa: S101 (checked by `_check_target`)
        return self.target.merge


@attrs.frozen(kw_only=True)
class _Export(_Tables):
    """Writes captures with an exporter."""

    action = Action.EXPORT
    target: Exporter

    @property
    def reads_all(self) -> bool:
        """Whether the exporter takes every capture, even an unreadable one."""
        return self.target.accepts == EVERY_CAPTURE

    def _check_target(self) -> None:
        target = self.target
        for capture in self.captures:
            if not target.takes(capture.format, capture.tables):
                raise UsageError(
                    f"exporter {target.name!r} does not take {capture.format} captures: it needs "
                    f"{tables_needed([target])}",
                    path=capture.name,
                    remedy="convert the inputs one by one",
                )
        missing = missing_packages(target.extra)
        if missing:
            purpose = f"the exporter {target_name(target)}"
            raise MissingExtraError(missing[0], target.extra, purpose=purpose)

    @property
    def _opens(self) -> Callable[..., Any]:
        return self.target.open

    def _write_view(self, session: Any, view: Capture) -> None:
        try:
            session.write(view)
        except LimitError as error:
            if not self.target.streams:
                error.remedy = (
                    f"{self.target.name} needs whole tables: raise the limit, choose a part with "
                    "--since and --until, or choose a streaming exporter, such as perfetto or "
                    "parquet"
                )
            raise


# --- Records -----------------------------------------------------------------------------------


def _copy(source: Source, sink: Sink) -> None:
    """Write all bytes of a source, in bounded memory."""
    start = 0
    for piece in source.pieces():
        sink.write(piece)
        stop = start + len(piece)
        source.release(start, stop)
        start = stop


class _RecordTarget:
    """Writes a capture's records, and adds the offset of the record to errors."""

    def __init__(self, plan: _Records | Salvage, capture: Capture, sink: Sink) -> None:
        from fxframework.model.diagnostics import Diagnostics

        rules = Catalogue([])
        reader = plan.host.readers.get(plan.target.format)
        if reader is not None and reader.rules is not None:
            rules = reader.rules()
        self._capture = capture
        self._findings = Diagnostics(rules, strict=plan.strict, path=sink.name)
        self._target = _opened(plan, plan.target.open, sink, plan.options, self._findings)

    def write(self, record: Any) -> None:
        """Write a record. Raises WriteRefusedError if the format cannot represent it."""
        try:
            self._target.write(record)
        except WriteRefusedError as error:
            error.path = error.path or self._capture.name
            if error.offset is None:
                error.offset = record.offset
            raise

    def close(self) -> tuple[Diagnostic, ...]:
        """Write buffered bytes; return the findings of the writer."""
        self._target.close()
        return tuple(self._findings)


def _refuse_lines(capture: Capture) -> None:
    """Raise UnreadableError for a records file without a valid line."""
    for finding in capture.diagnostics:
        if finding.code == rules.INVALID_LINE.code:
            raise UnreadableError(
                f"no line of the records file is a record of {capture.format}: {finding.message}",
                path=capture.name,
                offset=finding.offset,
                remedy="`fxf verify` lists what is wrong with each line",
            )


def require_readable(capture: Capture, kinds: Mapping[str, int] | None = None) -> None:
    """Raise UnreadableError, with the reason, for a capture without any valid record.

    ``kinds`` are the numbers of its records by kind, by default those of its summary.
    """
    if kinds is None:
        kinds = capture.summary().kinds
    if any(count for kind, count in kinds.items() if kind not in UNREADABLE_KINDS):
        return
    message = f"nothing in it can be read as {capture.format}"
    offset = None
    for finding in capture.diagnostics.sorted():
        if finding.severity >= Severity.DATA_LOSS:
            message += f": {finding.message}"
            offset = finding.offset
            break
    raise UnreadableError(
        message,
        path=capture.name,
        offset=offset,
        remedy=f"`fxf verify -f {capture.format}` lists what is wrong; `fxf cat --records` and "
        "OUT.jsonl keep the bytes",
    )


# --- Salvage -----------------------------------------------------------------------------------


MOST_LOSSES = 10_000
"""Losses that a report lists at most: a hostile file may have one in every four bytes."""


@attrs.define(kw_only=True)
class SalvageReport:
    """What a salvage wrote, and what was lost."""

    path: str
    format: str
    to: str
    size: int
    """Bytes of the input."""
    records: int
    """Records of the input, valid or not."""
    merged: bool
    """Whether the output was made from tables, so that lost records cannot be counted."""
    out: str = ""
    nbytes: int = 0
    written: int | None = None
    """Records of the output, as its reader counts them; None if its format has no reader."""
    remaining: Mapping[str, int] = attrs.field(factory=dict)
    """Findings of lost data that the output still has: their number, by code."""
    dropped: Mapping[str, int] = attrs.field(factory=dict)
    losses: list[tuple[Loss, Severity]] = attrs.field(factory=list)
    """The losses in file order: the first MOST_LOSSES, or the first ``keep``."""
    counts: dict[str, int] = attrs.field(factory=dict)
    """Number of all losses by code, listed or not; the empty code is that of a loss without one."""
    lost_records: int = 0
    lost_bytes: int = 0
    lossy: bool = False
    """Whether data was lost: bytes other than padding, or a loss of severity DATA_LOSS or worse."""
    findings: tuple[Diagnostic, ...] = ()
    """Findings of the writer, about the output."""

    @property
    def count(self) -> int:
        """Number of all losses."""
        return sum(self.counts.values())

    def add(self, loss: Loss, severity: Severity, *, keep: int = MOST_LOSSES) -> None:
        """Count a loss, and list it if fewer than ``keep`` are listed."""
        self.counts[loss.code] = self.counts.get(loss.code, 0) + 1
        self.lost_bytes += loss.nbytes
        if loss.nbytes > 0 and not loss.part:
            self.lost_records += 1
        if loss.nbytes > 0 and loss.what != "padding":
            self.lossy = True
        if severity >= Severity.DATA_LOSS:
            self.lossy = True
        if len(self.losses) < keep:
            self.losses.append((loss, severity))


def plan_salvage(
    host: Host,
    capture: Capture,
    out: str | os.PathLike[str],
    *,
    options: Mapping[str, Any] | None = None,
    strict: bool = False,
) -> Salvage:
    """Plan the salvage of a capture.

    Raises UsageError if the suffix of ``out`` does not belong to a format that can be written from
    the capture, or for an unknown option; UnreadableError if the capture has no valid record.
    """
    options = dict(options or {})
    writer = _salvage_writer(host, capture, os.fspath(out))
    check_options(host, options, [capture], (writer.format, writer.options))
    values = _target_options(writer, [capture], options)
    if writer.format == capture.format:
        require_readable(capture, capture.record_counts())
    else:
        # Tables of another format are made of whole columns, which the summary already reads.
        require_readable(capture)
    return Salvage(host=host, capture=capture, target=writer, options=values, strict=strict)


def _salvage_writer(host: Host, capture: Capture, out: str) -> Writer:
    """Return the writer for the suffix of ``out``. Raises UsageError if it cannot be used."""
    suffix, writers_of_suffix = longest_suffix(host.writers.values(), out)
    possible = [target for target in targets_for(host, capture) if isinstance(target, Writer)]
    suitable = [writer for writer in writers_of_suffix if writer in possible]
    if suitable:
        preferred = preferred_writer(host, suitable, capture)
        if preferred is not None:
            return preferred
    suffixes = dict.fromkeys(suffix for writer in possible for suffix in writer.suffixes)
    choices = ", ".join(suffixes) or "no format"
    remedy = f"{capture.format} captures can be salvaged into files of: {choices}"
    names = target_names(writers_of_suffix)
    if not writers_of_suffix:
        raise UsageError(f"no format has the suffix of {out!r}", remedy=remedy)
    if suitable:
        raise UsageError(f"several formats have the suffix {suffix!r}: {names}", remedy=remedy)
    raise UsageError(
        f"{capture.format} captures cannot be written as {names}",
        path=capture.name,
        remedy=remedy,
    )


@attrs.frozen(kw_only=True)
class Salvage:
    """A plan: write the valid records of a capture with a writer."""

    host: Host
    capture: Capture
    target: Writer
    options: Mapping[str, Any]
    strict: bool

    def run(self, sink: Sink, *, keep: int = MOST_LOSSES) -> SalvageReport:
        """Write the valid records to a sink, which the caller commits, and read them back.

        ``keep`` limits how many losses the report lists; all are counted. Other threads that share
        the capture wait until it is written.
        """
        with held([self.capture]):
            return self._run(sink, keep)

    def _run(self, sink: Sink, keep: int) -> SalvageReport:
        from fxframework.io.sink import Sink
        from fxframework.io.source import Source, spool_file

        capture = self.capture
        sink.budget = capture.request.budget
        report = SalvageReport(
            path=capture.name,
            format=capture.format,
            to=self.target.format,
            size=capture.source.size,
            records=sum(capture.record_counts().values()),
            merged=self.target.format != capture.format,
        )
        report.out = sink.name
        with spool_file() as spool:
            draft = Sink(spool, name=sink.name)
            draft.budget = capture.request.budget
            for loss in self._write(draft, report):
                report.add(loss, self._severity(loss), keep=keep)
            source = Source.spooled(spool, name=sink.name)
        _copy(source, sink)
        report.nbytes = sink.written
        self._read_back(source, report)
        return report

    def _read_back(self, source: Source, report: SalvageReport) -> None:
        """Add to a report what the reader of the output finds; close the source."""
        reader = self.host.readers.get(self.target.format)
        if reader is None:
            source.close()
            return
        options: dict[str, Any] = {}
        if not report.merged:
            # Options that decide how the bytes are read apply to the copy, unless the writer has
            # changed that: then it has an option of the same name after ``write_``.
            for name, value in self.capture.request.options.items():
                options[name] = self.options.get(f"write_{name}") or value
        budget = self.capture.request.budget
        with self.host.read(source, reader, options=options, budget=budget) as copy:
            report.written = sum(copy.record_counts().values())
            report.remaining = {
                code: count
                for code, count in sorted(copy.diagnostics.counts.items())
                if copy.diagnostics.rule(code).severity >= Severity.DATA_LOSS
            }
        if report.remaining:
            report.lossy = True

    def _write(self, sink: Sink, report: SalvageReport) -> Iterator[Loss]:
        """Write the valid records, and yield each loss; the caller takes all of them."""
        from fxframework.kit.salvage import Loss, salvage_records

        if report.merged:
            yield from self._write_tables(sink, report)
            return
        # The writer itself reports what is lost in records.
        yield from self._findings(framework_only=True)
        if self.target.salvage is not None:
            function = self.target.salvage
            losses = self.host.called(self.target, function, self.capture, sink, self.options)
            if not isinstance(losses, Iterable):
                raise self.host.faulty(self.target, f"salvage() returned {losses!r}, not losses")
            for loss in losses:
                if not isinstance(loss, Loss):
                    raise self.host.faulty(self.target, f"salvage() gives {loss!r}, not a Loss")
                yield loss
            return
        target = _RecordTarget(self, self.capture, sink)
        yield from salvage_records(self.capture, target.write)
        report.findings = target.close()
        if any(finding.severity >= Severity.DATA_LOSS for finding in report.findings):
            report.lossy = True

    def _write_tables(self, sink: Sink, report: SalvageReport) -> Iterator[Loss]:
        """Write the tables of the capture in another format."""
        assert self.target.merge is not None  # noqa: S101 (checked by `_salvage_writer`)
        session = _opened(self, self.target.merge, sink, self.options)
        session.write(self.capture)
        report.dropped = _counts(self, session.close(), "close()")
        self.capture.scan()
        yield from self._findings(framework_only=False)

    def _findings(self, *, framework_only: bool) -> Iterator[Loss]:
        """Yield the capture's findings of lost data as losses, or only those of the framework."""
        from fxframework.kit.salvage import Loss

        for finding in self.capture.diagnostics.sorted():
            if finding.severity < Severity.DATA_LOSS:
                continue
            if not framework_only or finding.code in rules.RULES:
                yield Loss(finding.offset or 0, 0, "finding", finding.message, finding.code)

    def _severity(self, loss: Loss) -> Severity:
        """Return the severity of a loss: that of its finding, or WARNING for padding."""
        try:
            return self.capture.diagnostics.rule(loss.code).severity
        except KeyError:
            return Severity.WARNING if loss.what == "padding" else Severity.DATA_LOSS
