"""Targets: the writers and exporters that can make an output of captures, and how one is chosen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from fxframework.errors import UsageError, did_you_mean
from fxframework.io.packing import bare_name
from fxframework.registry import Exporter, Writer

if TYPE_CHECKING:
    from fxframework.host import Host
    from fxframework.model.capture import Capture

__all__ = [
    "Target",
    "find_target",
    "longest_suffix",
    "matching_suffix",
    "nothing_to_write",
    "passed_over",
    "preferred_writer",
    "tables_needed",
    "target_name",
    "target_names",
    "targets_for",
]

Target = Writer | Exporter
T = TypeVar("T", Writer, Exporter)


def target_name(target: Target) -> str:
    """Return the name of a writer's format, or of an exporter."""
    return target.format if isinstance(target, Writer) else target.name


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
    if isinstance(target, Exporter):
        wanted = target.rows
    else:
        by_tables = target.format != capture.format and not isinstance(target.accepts, str)
        wanted = frozenset(target.accepts) if by_tables else frozenset()
    if not wanted or _has_row(capture, wanted):
        return ""
    tables = [name for name in capture.schemas if name in wanted] or sorted(wanted)
    names = f"{', '.join(tables[:-1])} or {tables[-1]}" if len(tables) > 1 else tables[0]
    return f"no rows in {names}"


def _has_row(capture: Capture, tables: frozenset[str]) -> bool:
    """Return whether a table has a row; of a part, stop at the first."""
    from fxframework.model.capture import View

    if not isinstance(capture, View):
        counts = capture.row_counts()
        return any(counts.get(name) for name in tables)
    mine = tables & capture.schemas.keys()
    return any(len(batch) for name in mine for batch in capture.batches(name))


def target_names(targets: Iterable[Target]) -> str:
    """Return the names of targets as text."""
    return ", ".join(sorted({target_name(target) for target in targets})) or "none"


def matching_suffix(name: str, target: Target) -> str:
    """Return the longest suffix of a target that a file name ends in; empty if there is none."""
    bare = bare_name(name.lower())
    fitting = (s for s in target.suffixes if name.lower().endswith(s) or bare.endswith(s))
    return max(fitting, key=len, default="")


def longest_suffix(targets: Iterable[T], name: str) -> tuple[str, list[T]]:
    """Return the longest suffix of any target that a file name ends in, and the targets with it."""
    found = [(suffix, target) for target in targets if (suffix := matching_suffix(name, target))]
    longest = max((suffix for suffix, _ in found), key=len, default="")
    return longest, [target for suffix, target in found if len(suffix) == len(longest)]


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
    suffix, writers = longest_suffix(host.writers.values(), out)
    longer, exporters = longest_suffix(host.exporters, out)
    if writers and len(suffix) >= len(longer):
        writer = preferred_writer(host, writers, capture)
        if writer is None:
            raise UsageError(
                f"several formats have the suffix {suffix!r}: {target_names(writers)}",
                remedy=f"name one with -t, for example -t {writers[0].format}",
            )
        return writer
    if not exporters:
        raise _no_suffix(capture, out, choices)
    fitting = [one for one in exporters if one in choices]
    if not fitting:
        raise _does_not_apply(capture, longer, exporters, choices)
    if len({exporter.name for exporter in fitting}) > 1:
        # Prefer the exporter named like the suffix: `json` for .json.
        fitting = [one for one in fitting if f".{one.name}" == longer] or fitting
    if len({exporter.name for exporter in fitting}) > 1:
        raise UsageError(
            f"several exporters have the suffix {longer!r}: {target_names(fitting)}",
            remedy=f"name one with -t, for example -t {fitting[0].name}",
        )
    return fitting[0]


def passed_over(host: Host, captures: Sequence[Capture], out: str, target: Target) -> list[str]:
    """Return the exporters that have the suffix of ``out`` in common with the writer ``target``."""
    suffix = matching_suffix(out, target)
    if not suffix or not isinstance(target, Writer):
        return []
    exporters = (one for one in _choices(host, captures) if isinstance(one, Exporter))
    return sorted(one.name for one in exporters if matching_suffix(out, one) == suffix)


def _choices(host: Host, captures: Sequence[Capture]) -> list[Target]:
    """Return the targets of the first capture; of a name, prefer one that takes all captures."""

    def takes_all(exporter: Exporter) -> bool:
        return all(exporter.takes(each.format, each.tables) for each in captures)

    general = {one.name: one for one in host.exporters if takes_all(one)}
    return [
        one if isinstance(one, Writer) or takes_all(one) else general.get(one.name, one)
        for one in targets_for(host, captures[0])
    ]


def _named_target(host: Host, capture: Capture, choices: Sequence[Target], name: str) -> Target:
    exporters = [one for one in host.exporters if one.name == name]
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
    known = {target_name(target) for target in choices}
    raise UsageError(
        f"no exporter or format is called {name!r}{did_you_mean(name, known)}", remedy=remedy
    )


def tables_needed(exporters: Iterable[Exporter]) -> str:
    """Return the formats and tables that exporters require, as text."""
    formats = sorted({one.accepts for one in exporters if isinstance(one.accepts, str)})
    tables = {
        table for one in exporters if not isinstance(one.accepts, str) for table in one.accepts
    }
    parts = []
    if formats:
        parts.append(f"the format {' or '.join(formats)}")
    if tables:
        parts.append(f"a table of {' or '.join(sorted(tables))}")
    return ", or ".join(parts)


def _no_suffix(capture: Capture, out: str, choices: Sequence[Target]) -> UsageError:
    """Return the error for an output whose suffix no writer or exporter has."""
    name = out.replace("\\", "/").rpartition("/")[2]
    suffix = "." + name.partition(".")[2] if "." in name else ""
    known = sorted({known for target in choices for known in target.suffixes})
    hint = did_you_mean("." + name.rpartition(".")[2], known) if suffix else ""
    what = f"no target has the suffix {suffix!r}" if suffix else f"{out!r} has no suffix"
    return UsageError(
        f"{what}{hint}",
        remedy=f"{capture.format} captures can become {', '.join(known)}; or name the target "
        f"with -t: {target_names(choices)}",
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
    mine = [writer for writer in writers if writer.format == capture.format]
    if mine or len({id(host.owner(writer)) for writer in writers}) == 1:
        return (mine or writers)[0]
    return None
