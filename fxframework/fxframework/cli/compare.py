"""``fxf compare``: what two runs, or many runs of two sides, did differently."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from fxframework.cli import complete
from fxframework.cli.calls import read_each, write_dot
from fxframework.cli.filters import place_options
from fxframework.cli.graph import figure_options
from fxframework.cli.options import CaptureCommand, Number
from fxframework.cli.options import command as _command
from fxframework.cli.session import Session, worst
from fxframework.cli.text import fields, optional_fields
from fxframework.errors import ExitCode, UsageError
from fxframework.kit.json_fields import finite
from fxframework.kit.shown import amount

if TYPE_CHECKING:
    from fxframework.analysis.changes import Change, Measures
    from fxframework.analysis.comparison import Comparison
    from fxframework.analysis.moves import Move
    from fxframework.dataset.inputs import Item
    from fxframework.model.capture import Capture
    from fxframework.model.selection import Selection

SIDES = ("BEFORE", "AFTER")
WITH = "--with"
Extras = tuple[list[Any], list[Any]]
"""What an output needs of the captures of both sides, beside their comparison."""
OUTPUTS = (".html", ".svg", ".csv", ".parquet", ".dot")
COLOURS = {"slower": "red", "more": "red", "higher": "red", "new": "red", "faster": "green",
           "fewer": "green", "lower": "green", "gone": "green"}  # fmt: skip


class CompareCommand(CaptureCommand):
    """A command whose option ``--with`` takes all words up to the next option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeat ``--with`` before each of its words."""
        # `--with a b --top 3` becomes `--with a --with b --top 3`.
        words: list[str] = []
        follows_with = False
        for word in args:
            if word == WITH:
                follows_with = True
                continue
            if word.startswith(f"{WITH}="):
                follows_with = True
                word = word.removeprefix(f"{WITH}=")
            if word.startswith("-") and word != "-":
                follows_with = False
            if follows_with:
                words.append(WITH)
            words.append(word)
        if args and args[-1] == WITH:
            words.append(WITH)  # click reports that its value is missing
        return super().parse_args(ctx, words)


@_command(
    cls=CompareCommand,
    times=True,
    name="compare",
)
@click.option(WITH, "after", multiple=True, metavar="AFTER...", shell_complete=complete.files,
              help="Captures of the other side: all words up to the next option.")  # fmt: skip
@click.option("--by", default="name", metavar="WHAT",
              help="What identifies a call: name, path, process, thread, category, or another "
                   "column of slices. Default: name.")  # fmt: skip
@click.option("--threshold", default=5.0, type=Number(0, 1000), metavar="PERCENT",
              help="Smaller changes are the same. Default: 5.")  # fmt: skip
@click.option("--fail-on", multiple=True, metavar="VERDICT",
              help="Exit with status 1 for these verdicts only; none: never. Repeatable, or "
                   "separated by commas.")  # fmt: skip
@click.option("--top", default=20, type=click.IntRange(0), metavar="N",
              help="Names in each list. Default: 20.")  # fmt: skip
@click.option("--out", metavar="OUT",
              help="Write a page (.html), a flame graph (.svg), the table (.csv, .parquet) or the "
                   "call graph (.dot).")  # fmt: skip
@click.option("--with-option", multiple=True, metavar="KEY=VALUE",
              help="Option like -o, for AFTER alone; repeatable.")  # fmt: skip
@click.option("--with-map", metavar="FILE",
              help="Source of function names for AFTER, if it is not that of -m.")  # fmt: skip
@click.option("--widths", type=click.Choice(["after", "before"]), default="after",
              help="Side whose times are the widths of the flame graph. Default: "
                   "after.")  # fmt: skip
@click.option("--anchor", metavar="NAME",
              help="Align the timelines of a page at the first slice of this name, not at the "
                   "start.")  # fmt: skip
@click.option("--force", is_flag=True, help="Replace OUT.")
@figure_options(labels="Label in .dot, as a change,", vertex="sum")
@click.argument("before", nargs=-1, required=True, metavar="BEFORE...",
                shell_complete=complete.files)  # fmt: skip
@place_options
def command(
    session: Session,
    before: tuple[str, ...],
    after: tuple[str, ...],
    names: Selection,
    **options: Any,
) -> ExitCode:
    """Show what two runs, or many runs of two sides, did differently, and what is noise.

    Two names alone are one run each. A name may be a folder or a quoted pattern. Calls are
    compared by name: with several runs a side, the runs are the samples, else the calls. A name is
    slower, faster, more, fewer, new, gone, same or unclear. Counters, messages and properties are
    compared, too. `fxf diff` shows what two files contain differently.

    The exit status is 1 if something changed by the threshold or more, and 0 if nothing did. It is
    also 1 if the total time changed, but the runs are too few to tell (the verdict `unclear`).
    """
    from fxframework.analysis.comparison import compared
    from fxframework.analysis.runs import Reader, Side

    sides = _sides(before, after)
    out = _out(options["out"])
    failing_verdicts = _failing_verdicts(options["fail_on"])
    if out is not None and out.endswith(".dot") and any(len(side) > 1 for side in sides):
        raise UsageError("a call graph is of one capture a side", remedy="name two captures")
    reader = Reader.of(options["by"])
    runs = (Side(reader.names), Side(reader.names))
    before_options: list[str] = []
    after_options = list(options["with_option"])
    if options["with_map"] is not None:
        after_options.append(f"{_map_option(session)}={options['with_map']}")
    own_options = (before_options, after_options)
    extras: Extras = ([], [])
    files_by_side: tuple[list[str], list[str]] = ([], [])
    exit_statuses = []
    for side, items in enumerate(sides):
        # What an output needs beside the comparison is collected while the captures are open.
        keep_extra = _extra(out, options["anchor"], extras[side])

        def work(file: str, part: Capture, side: int = side, keep_extra: Any = keep_extra) -> None:
            reader.read(part, runs[side])
            files_by_side[side].append(file)
            if keep_extra is not None:
                keep_extra(part)

        with session.own_options(own_options[side]):
            exit_statuses += read_each(session, items, names, work)
    with session.screen.working("comparing"):
        comparison = compared(reader, *runs, threshold=options["threshold"] / 100)
    if out is not None:
        _write(session, comparison, out, extras, options)
    if session.settings.json:
        session.screen.json("compare", document(comparison, files_by_side))
    elif not session.settings.quiet:
        _print(session, comparison, options["top"])
    for note in comparison.notes:
        session.screen.note(note)
    if comparison.fails(failing_verdicts):
        exit_statuses.append(ExitCode.FAILED)
    return worst(*exit_statuses)


# --- Inputs --------------------------------------------------------------------------------------


def _sides(before: Sequence[str], after: Sequence[str]) -> tuple[list[Item], list[Item]]:
    """Return the files of both sides. Raises UsageError if a side has none."""
    from fxframework.dataset.inputs import expand

    if not after:
        if len(before) != 2:
            raise UsageError(
                f"{len(before)} names, and no {WITH}",
                remedy=f"`fxf compare BEFORE AFTER`, or `fxf compare BEFORE... {WITH} AFTER...`",
            )
        before, after = before[:1], before[1:]
    sides = (expand(before), expand(after))
    for what, words, items in zip(SIDES, (before, after), sides, strict=True):
        if not items:
            raise UsageError(
                f"{what} has no captures: {', '.join(words)} is empty",
                remedy="name at least one capture on each side",
            )
    if [item.file for side in sides for item in side].count("-") > 1:
        raise UsageError("standard input can be read once only", remedy="name a file")
    return sides


def _out(out: str | None) -> str | None:
    """Return the output, if there is one. Raises UsageError for an unknown suffix."""
    if out is not None and not out.endswith(OUTPUTS):
        raise UsageError(
            f"the suffix of {out} names no output", remedy=f"there are {', '.join(OUTPUTS)}"
        )
    return out


def _failing_verdicts(values: Sequence[str]) -> set[str]:
    """Return the verdicts for which the exit status is 1, from the values of ``--fail-on``."""
    from fxframework.analysis.comparison import ANY, check_verdicts

    words = [word for value in values for word in value.split(",") if word]
    return check_verdicts(words) if words else set(ANY)


def _map_option(session: Session) -> str:
    """Return the name of the readers' option for the names of functions."""
    for reader in session.host.readers.values():
        for option in reader.options:
            if "-m" in option.flags:
                return option.name
    raise UsageError("no reader has names of functions", remedy="omit --with-map")


def _extra(out: str | None, anchor: str | None, into: list[Any]) -> Any:
    """Return a function that keeps what an output needs of each capture."""
    if out is None or not out.endswith((".dot", ".html")):
        return None

    def keep(capture: Capture) -> None:
        if out.endswith(".dot"):
            from fxframework.analysis.graph import call_graph

            into.append(call_graph(capture, by="name"))
        elif not into and "slices" in capture.schemas:
            from fxframework.exporters.comparison.timeline import timeline

            into.append(timeline(capture, anchor))

    return keep


# --- Outputs -------------------------------------------------------------------------------------


def _write(
    session: Session,
    comparison: Comparison,
    out: str,
    extras: Extras,
    options: Mapping[str, Any],
) -> None:
    if out.endswith(".dot"):
        from fxframework.analysis.graph import difference, dot_of_difference

        style_names = ("edge_label", "vertex_label", "edge_color", "vertex_color")
        style_options = {name: options[name] for name in style_names}
        dot_lines = dot_of_difference(difference(extras[0][0], extras[1][0]), **style_options)
        write_dot(session, dot_lines, out, force=options["force"])
        return
    from fxframework.exporters.comparison.export import write

    timelines = [*extras[0], *extras[1]]
    with session.sink(out, force=options["force"]) as sink:
        write(comparison, sink, out, widths=options["widths"], timelines=timelines)
    session.screen.note(f"wrote {out}: {amount(sink.written, 'byte')}")


def _print(session: Session, comparison: Comparison, top: int) -> None:
    from fxframework.analysis.comparison_text import styled

    screen = session.screen
    for style, line in styled(comparison, top=top, width=max(screen.width, 60)):
        if style == "head":
            screen.print(screen.paint(line, bold=True))
        elif style in COLOURS:
            screen.print(screen.paint(line, fg=COLOURS[style]))
        else:
            screen.print(line)


def document(comparison: Comparison, files: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Return a comparison as JSON."""
    moves = fields(comparison, "counters logs instants properties=entries waits")
    return {
        "before": list(files[0]),
        "after": list(files[1]),
        **fields(comparison, "by threshold runs"),
        "unclear": comparison.unclear,
        "verdicts": dict(comparison.verdicts),
        "pace": optional_fields(comparison.pace, "ratio names p removed"),
        "calls": map(_change_document, comparison.changes),
        "explained": [
            {
                "path": list(cause.path),
                **fields(cause, "reason change_ns"),
                "share": finite(cause.share),
                **fields(cause, "before after"),
            }
            for cause in comparison.explained
        ],
        **{kind: list(map(_move_document, moves_of_kind)) for kind, moves_of_kind in moves.items()},
        "notes": list(comparison.notes),
    }


def _change_document(change: Change) -> dict[str, Any]:
    document: dict[str, Any] = {"name": change.name}
    if change.path is not None:
        document["path"] = list(change.path)
    return document | {
        "before": _measures(change.before),
        "after": _measures(change.after),
        "ratio": _ratio(change.ratio),
        "median_ratio": _ratio(change.median_ratio),
        **fields(change, "p verdict"),
        "where": list(change.where),
        "asynchronous": change.asynchronous,
    }


def _measures(measures: Measures | None) -> dict[str, Any] | None:
    import attrs

    return None if measures is None else attrs.asdict(measures)


def _ratio(ratio: Any) -> dict[str, float | None] | None:
    if ratio is None:
        return None
    return {name: finite(value) for name, value in ratio._asdict().items()}


def _move_document(move: Move) -> dict[str, Any]:
    return {**move.key, **fields(move, "before after p verdict")}
