"""``fxf compare``: what two runs, or many runs of two sides, did differently."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from fxframework.cli import complete
from fxframework.cli.calls import read_each, write_dot
from fxframework.cli.filters import place_options
from fxframework.cli.graph import figure_options
from fxframework.cli.options import CaptureCommand, Number
from fxframework.cli.options import command as _command
from fxframework.cli.session import Session, worst
from fxframework.cli.text import amount, fields
from fxframework.errors import ExitCode, UsageError
from fxframework.kit.json_fields import finite

if TYPE_CHECKING:
    from fxframework.analysis.changes import Change, Measures
    from fxframework.analysis.comparison import Comparison
    from fxframework.analysis.moves import Move
    from fxframework.dataset.inputs import Item
    from fxframework.model.capture import Capture
    from fxframework.model.selection import Selection

SIDES = ("BEFORE", "AFTER")
WITH = "--with"
OUTPUTS = (".html", ".svg", ".csv", ".parquet", ".dot")
COLOURS = {"slower": "red", "more": "red", "higher": "red", "new": "red", "faster": "green",
           "fewer": "green", "lower": "green", "gone": "green"}  # fmt: skip


class CompareCommand(CaptureCommand):
    """A command whose option ``--with`` takes all words up to the next option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeat ``--with`` before each of its words."""
        out: list[str] = []
        words = False
        for word in args:
            if word == WITH:
                words = True
                continue
            if word.startswith(f"{WITH}="):
                words, word = True, word.removeprefix(f"{WITH}=")
            words = words and (word == "-" or not word.startswith("-"))
            out += [WITH, word] if words else [word]
        if args and args[-1] == WITH:
            out.append(WITH)  # click reports that its value is missing
        return super().parse_args(ctx, out)


@_command(
    cls=CompareCommand,
    times=True,
    name="compare",
    short_help="Show what two runs, or many of two sides, did differently.",
)
@click.option(WITH, "after", multiple=True, metavar="AFTER...", shell_complete=complete.files,
              help="Captures of the other side: all words up to the next option.")  # fmt: skip
@click.option("--by", default="name", metavar="WHAT",
              help="Compare calls by name, path, process, thread, category, or another column of "
                   "slices; by name.")  # fmt: skip
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
              help="Source of function names for AFTER; -m: that of BEFORE, or both.")  # fmt: skip
@click.option("--widths", type=click.Choice(["after", "before"]), default="after",
              help="Side whose times are the widths of the flame graph; after.")  # fmt: skip
@click.option("--anchor", metavar="NAME",
              help="Align the timelines of a page at the first slice of this name, not at the "
                   "start.")  # fmt: skip
@click.option("--force", is_flag=True, help="Replace OUT.")
@figure_options(labels="Label in .dot, as a change,", vertex="sum")
@click.argument("before", nargs=-1, required=True, metavar="BEFORE...",
                shell_complete=complete.files)  # fmt: skip
@place_options
def command(
    session: Session, before: tuple[str, ...], after: tuple[str, ...], names: Selection,
    **given: Any,
) -> ExitCode:  # fmt: skip
    """Show what two runs, or many runs of two sides, did differently, and what is noise.

    Two names alone are one run each. A name may be a folder or a quoted pattern. Calls are
    compared by name: with several runs a side, the runs are the samples, else the calls. A name is
    slower, faster, more, fewer, new, gone, same or unclear. Counters, messages and properties are
    compared, too. `fxf diff` shows what two files contain differently.

    The exit status is 0 if nothing changed by the threshold or more, and 1 if something did, or
    if the time in all did and the runs are too few to tell (`--fail-on` has `unclear` for that).
    """
    from fxframework.analysis.comparison import compared
    from fxframework.analysis.runs import Reader, Side

    sides = _sides(before, after)
    out = _out(given["out"])
    fails = _fails(given["fail_on"])
    if out is not None and out.endswith(".dot") and any(len(side) > 1 for side in sides):
        raise UsageError("a call graph is of one capture a side", remedy="name two captures")
    reader = Reader.of(given["by"])
    read = Side(reader.names), Side(reader.names)
    own = list(given["with_option"])
    if given["with_map"] is not None:
        own.append(f"{_map_option(session)}={given['with_map']}")
    extras: tuple[list[Any], list[Any]] = ([], [])
    files: tuple[list[str], list[str]] = ([], [])
    statuses = []
    for number, items in enumerate(sides):
        extra = _extra(out, given["anchor"], extras[number])

        def work(file: str, part: Capture, number: int = number, extra: Any = extra) -> None:
            reader.read(part, read[number])
            files[number].append(file)
            if extra is not None:
                extra(part)

        with session.own_options(own if number else []):
            statuses += read_each(session, items, names, work)
    with session.screen.working("comparing"):
        found = compared(reader, *read, threshold=given["threshold"] / 100)
    if out is not None:
        _write(session, found, out, extras, given)
    if session.settings.json:
        session.screen.json("compare", document(found, files))
    elif not session.settings.quiet:
        _print(session, found, given["top"])
    for note in found.notes:
        session.screen.note(note)
    return worst(*statuses, ExitCode.FAILED if found.fails(fails) else ExitCode.OK)


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
    found = expand(before), expand(after)
    for what, words, items in zip(SIDES, (before, after), found, strict=True):
        if not items:
            raise UsageError(
                f"{what} has no captures: {', '.join(words)} is empty",
                remedy="name at least one capture on each side",
            )
    if [item.file for side in found for item in side].count("-") > 1:
        raise UsageError("standard input can be read once only", remedy="name a file")
    return found


def _out(out: str | None) -> str | None:
    """Return the output, if there is one. Raises UsageError for an unknown suffix."""
    if out is not None and not out.endswith(OUTPUTS):
        raise UsageError(
            f"the suffix of {out} names no output", remedy=f"there are {', '.join(OUTPUTS)}"
        )
    return out


def _fails(given: Sequence[str]) -> set[str]:
    """Return the verdicts for which the exit status is 1."""
    from fxframework.analysis.comparison import ANY, check_verdicts

    words = [word for each in given for word in each.split(",") if word]
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
    session: Session, found: Comparison, out: str, extras: tuple[list[Any], list[Any]], given: Any
) -> None:
    if out.endswith(".dot"):
        from fxframework.analysis.graph import difference, dot_of_difference

        names = ("edge_label", "vertex_label", "edge_color", "vertex_color")
        figures = {name: given[name] for name in names}
        lines = dot_of_difference(difference(extras[0][0], extras[1][0]), **figures)
        write_dot(session, lines, out, force=given["force"])
        return
    from fxframework.exporters.comparison.export import write

    with session.sink(out, force=given["force"]) as sink:
        write(found, sink, out, widths=given["widths"], timelines=[*extras[0], *extras[1]])
    session.screen.note(f"wrote {out}: {amount(sink.written, 'byte')}")


def _print(session: Session, found: Comparison, top: int) -> None:
    from fxframework.analysis.comparison_text import styled

    screen = session.screen
    for style, line in styled(found, top=top, width=max(screen.width, 60)):
        if style == "head":
            screen.print(screen.paint(line, bold=True))
        elif style in COLOURS:
            screen.print(screen.paint(line, fg=COLOURS[style]))
        else:
            screen.print(line)


def document(found: Comparison, files: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Return a comparison as JSON."""
    pace = found.pace
    return {
        "before": list(files[0]),
        "after": list(files[1]),
        **fields(found, "by threshold runs"),
        "unclear": found.unclear,
        "verdicts": dict(found.verdicts),
        "pace": None if pace is None else fields(pace, "ratio names p removed"),
        "calls": map(_change_document, found.changes),
        "explained": [
            {"path": list(one.path), **fields(one, "reason change_ns"),
             "share": finite(one.share), **fields(one, "before after")}
            for one in found.explained
        ],
        **{
            name: list(map(_move_document, moves))
            for name, moves in fields(
                found, "counters logs instants properties=entries waits"
            ).items()
        },
        "notes": list(found.notes),
    }  # fmt: skip


def _change_document(one: Change) -> dict[str, Any]:
    return {
        "name": one.name,
        **({} if one.path is None else {"path": list(one.path)}),
        "before": _measures(one.before),
        "after": _measures(one.after),
        "ratio": _ratio(one.ratio),
        "median_ratio": _ratio(one.median_ratio),
        **fields(one, "p verdict"),
        "where": list(one.where),
        "asynchronous": one.asynchronous,
    }


def _measures(each: Measures | None) -> dict[str, Any] | None:
    import attrs

    return None if each is None else attrs.asdict(each)


def _ratio(ratio: Any) -> dict[str, float | None] | None:
    if ratio is None:
        return None
    return {name: finite(value) for name, value in ratio._asdict().items()}


def _move_document(one: Move) -> dict[str, Any]:
    return {**one.key, **fields(one, "before after p verdict")}
