"""Targets: the writers and exporters that can make an output of captures, and how one is chosen."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from fxframework.errors import UsageError, did_you_mean
from fxframework.io.packing import bare_name
from fxframework.registry import Exporter, Option, Reader, Writer

if TYPE_CHECKING:
    from fxframework.host import Host
    from fxframework.model.capture import Capture

Target = Writer | Exporter
T = TypeVar("T", Writer, Exporter)


def target_name(target: Target | Reader) -> str:
    """Return the name of the format of a writer or reader, or of an exporter."""
    return target.name if isinstance(target, Exporter) else target.format


def owned_options(*groups: Iterable[Target | Reader]) -> list[tuple[str, Sequence[Option]]]:
    """Return the options of descriptors, each with whose they are, such as ``reader trace``."""
    return [
        (f"{type(item).__name__.lower()} {target_name(item)}", item.options)
        for group in groups
        for item in group
    ]


def targets_for(host: Host, capture: Capture) -> list[Target]:
    """Return the writers and exporters that can write this capture, those of its format first."""
    writers = [
        writer
        for writer in host.writers.values()
        if writer.format == capture.format or writer.merges(capture.format, capture.tables)
    ]
    writers.sort(key=lambda writer: writer.format != capture.format)
    exporters: dict[str, Exporter] = {}
    for exporter in host.exporters_for(capture.format, capture.tables):
        exporters.setdefault(exporter.name, exporter)
    return [*writers, *exporters.values()]


def nothing_to_write(target: Target, capture: Capture) -> str:
    """Return why a target has nothing to write of a capture; the empty string if it has."""
    tables_written = _tables_written(target, capture)
    if not tables_written or _has_row(capture, tables_written):
        return ""
    table_names = [name for name in capture.schemas if name in tables_written] or sorted(
        tables_written
    )
    text = table_names[-1]
    if len(table_names) > 1:
        text = f"{', '.join(table_names[:-1])} or {text}"
    return f"no rows in {text}"


def _tables_written(target: Target, capture: Capture) -> frozenset[str]:
    """Return the tables that a target writes rows of; none if it writes more than tables."""
    if isinstance(target, Exporter):
        return target.rows
    if target.format == capture.format or isinstance(target.accepts, str):
        return frozenset()
    return frozenset(target.accepts)


def _has_row(capture: Capture, tables: frozenset[str]) -> bool:
    """Return whether a table has a row; of a part, stop at the first."""
    from fxframework.model.capture import View

    if not isinstance(capture, View):
        row_counts = capture.row_counts()
        return any(row_counts.get(name) for name in tables)
    capture_tables = tables & capture.schemas.keys()
    return any(len(batch) for name in capture_tables for batch in capture.batches(name))


def target_names(targets: Iterable[Target]) -> str:
    """Return the names of targets as text."""
    return ", ".join(sorted({target_name(target) for target in targets})) or "none"


def matching_suffix(name: str, target: Target | Reader) -> str:
    """Return the longest suffix of a target that a file name ends in; empty if there is none."""
    name = name.lower()
    bare = bare_name(name)  # without the suffix of a compression
    matching_suffixes = [
        suffix for suffix in target.suffixes if name.endswith(suffix) or bare.endswith(suffix)
    ]
    return max(matching_suffixes, key=len, default="")


def longest_suffix(targets: Iterable[T], name: str) -> tuple[str, list[T]]:
    """Return the longest suffix of any target that a file name ends in, and the targets with it."""
    longest = ""
    targets_with_longest: list[T] = []
    for target in targets:
        suffix = matching_suffix(name, target)
        if len(suffix) > len(longest):
            longest = suffix
            targets_with_longest = [target]
        elif suffix and suffix == longest:
            targets_with_longest.append(target)
    return longest, targets_with_longest


def find_target(host: Host, captures: Sequence[Capture], out: str, to: str | None) -> Target:
    """Return the writer or exporter named by ``to``, or else by the suffix of ``out``.

    Among exporters of the same name, one that takes all captures is preferred. Raises UsageError,
    which lists the possible targets, if none or several match.
    """
    capture = captures[0]
    choices = _choices(host, captures)
    if to is not None:
        return _named_target(host, capture, choices, to)
    remedy = f"name one with -t: {target_names(choices)}"
    if out == "-":
        raise UsageError("standard output has no suffix to choose a target by", remedy=remedy)
    writer_suffix, writers = longest_suffix(host.writers.values(), out)
    exporter_suffix, exporters = longest_suffix(host.exporters, out)
    if writers and len(writer_suffix) >= len(exporter_suffix):
        writer = preferred_writer(host, writers, capture)
        if writer is None:
            raise UsageError(
                f"several formats have the suffix {writer_suffix!r}: {target_names(writers)}",
                remedy=f"name one with -t, for example -t {writers[0].format}",
            )
        return writer
    if not exporters:
        raise _no_suffix(f"{capture.format} captures", out, choices)
    return _exporter_of_suffix(capture, exporter_suffix, exporters, choices)


def _exporter_of_suffix(
    capture: Capture, suffix: str, exporters: Sequence[Exporter], choices: Sequence[Target]
) -> Exporter:
    """Return the one of some exporters with the same suffix that takes the capture.

    Raises UsageError if none does, or several.
    """
    suitable_exporters = [exporter for exporter in exporters if exporter in choices]
    if not suitable_exporters:
        raise _does_not_apply(capture, suffix, exporters, choices)
    # Prefer the exporter named like the suffix: `json` for .json.
    for exporter in suitable_exporters:
        if f".{exporter.name}" == suffix:
            return exporter
    if len({exporter.name for exporter in suitable_exporters}) > 1:
        raise UsageError(
            f"several exporters have the suffix {suffix!r}: {target_names(suitable_exporters)}",
            remedy=f"name one with -t, for example -t {suitable_exporters[0].name}",
        )
    return suitable_exporters[0]


def passed_over(host: Host, captures: Sequence[Capture], out: str, target: Target) -> list[str]:
    """Return the exporters that have the suffix of ``out`` in common with the writer ``target``."""
    suffix = matching_suffix(out, target)
    if not suffix or not isinstance(target, Writer):
        return []
    return sorted(
        choice.name
        for choice in _choices(host, captures)
        if isinstance(choice, Exporter) and matching_suffix(out, choice) == suffix
    )


def _choices(host: Host, captures: Sequence[Capture]) -> list[Target]:
    """Return the targets of the first capture.

    Exporters that take all captures are preferred to others of the same name.
    """

    def takes_all(exporter: Exporter) -> bool:
        return all(exporter.takes(capture.format, capture.tables) for capture in captures)

    general_exporters = {
        exporter.name: exporter for exporter in host.exporters if takes_all(exporter)
    }
    choices: list[Target] = []
    for target in targets_for(host, captures[0]):
        if isinstance(target, Exporter) and not takes_all(target):
            choices.append(general_exporters.get(target.name, target))
        else:
            choices.append(target)
    return choices


def _named_target(host: Host, capture: Capture, choices: Sequence[Target], name: str) -> Target:
    """Return the target of a name. Raises UsageError if there is none for the capture."""
    exporters = [exporter for exporter in host.exporters if exporter.name == name]
    for exporter in exporters:
        if exporter in choices:
            return exporter
    if name in host.writers:
        return host.writers[name]
    remedy = f"{capture.format} captures can become: {target_names(choices)}"
    if exporters:
        raise UsageError(
            f"exporter {name!r} does not take {capture.format} captures: it needs "
            f"{tables_needed(exporters)}",
            path=capture.name,
            remedy=remedy,
        )
    suggestion = did_you_mean(name, {target_name(target) for target in choices})
    raise UsageError(f"no exporter or format is called {name!r}{suggestion}", remedy=remedy)


def tables_needed(exporters: Iterable[Exporter]) -> str:
    """Return the formats and tables that exporters require, as text."""
    formats_needed: set[str] = set()
    tables_read: set[str] = set()
    for exporter in exporters:
        if isinstance(exporter.accepts, str):
            formats_needed.add(exporter.accepts)
        else:
            tables_read |= exporter.accepts
    needs_of_exporters = []
    if formats_needed:
        needs_of_exporters.append(f"the format {' or '.join(sorted(formats_needed))}")
    if tables_read:
        needs_of_exporters.append(f"a table of {' or '.join(sorted(tables_read))}")
    return ", or ".join(needs_of_exporters)


def check_suffix(host: Host, inputs: Iterable[object], out: str) -> None:
    """Raise UsageError if no target has the suffix of an output, before a records file is read.

    Records files are read as a whole when they are opened. For other inputs, ``find_target`` says
    what they can become.
    """
    records = host.readers.get("records")
    names = [os.fspath(path) for path in inputs if isinstance(path, str | os.PathLike)]
    if records is None or not any(matching_suffix(name, records) for name in names):
        return
    targets: list[Target] = [*host.writers.values(), *host.exporters]
    if out != "-" and not any(matching_suffix(out, target) for target in targets):
        raise _no_suffix("captures", out, targets)


def _no_suffix(what: str, out: str, choices: Sequence[Target]) -> UsageError:
    """Return the error for an output whose suffix no writer or exporter has."""
    name = out.replace("\\", "/").rpartition("/")[2]
    suffixes = sorted({suffix for target in choices for suffix in target.suffixes})
    problem = f"{out!r} has no suffix"
    if "." in name:
        whole_suffix = "." + name.partition(".")[2]
        last_suffix = "." + name.rpartition(".")[2]
        problem = f"no target has the suffix {whole_suffix!r}{did_you_mean(last_suffix, suffixes)}"
    return UsageError(
        problem,
        remedy=f"{what} can become {', '.join(suffixes)}; or name the target with -t: "
        f"{target_names(choices)}",
    )


def _does_not_apply(
    capture: Capture, suffix: str, exporters: Sequence[Exporter], choices: Sequence[Target]
) -> UsageError:
    """Return the error for an output whose suffix belongs to exporters that reject the capture."""
    return UsageError(
        f"{suffix!r} is the suffix of {target_names(exporters)}, which needs "
        f"{tables_needed(exporters)}; this is a capture of {capture.format} with "
        f"{', '.join(capture.schemas) or 'no tables'}",
        path=capture.name,
        remedy=f"choose another suffix, or name the target with -t: {target_names(choices)}",
    )


def preferred_writer(host: Host, writers: Sequence[Writer], capture: Capture) -> Writer | None:
    """Choose among writers that share a suffix: that of the capture's format, else the first.

    Returns None if they belong to several plugins, so that their order is arbitrary.
    """
    for writer in writers:
        if writer.format == capture.format:
            return writer
    plugins = {id(host.owner(writer)) for writer in writers}
    return writers[0] if len(plugins) == 1 else None
