"""``fxf why``: where the time of slow calls went, beside a typical call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from fxframework.cli import complete
from fxframework.cli.calls import finished, opened
from fxframework.cli.filters import place_options
from fxframework.cli.options import command as _command
from fxframework.cli.session import Session
from fxframework.cli.text import amount, printable, wrapped
from fxframework.errors import ExitCode
from fxframework.kit.shown import brief

if TYPE_CHECKING:
    from fxframework.analysis.why import Call, Part, Step, Why
    from fxframework.model.selection import Selection

LEAST_SHARE = 100
"""A part below this fraction of both calls is left out without -v."""
SHOWN_LINES = 5
"""Flows and log lines of a call that are shown without -v."""
ITSELF = "itself"
NO_TIME = "–"


@_command(
    captures=True, times=True, name="why", short_help="Show where the time of slow calls went."
)
@click.option(
    "--top",
    type=click.IntRange(min=1),
    default=1,
    metavar="N",
    help="The N slowest calls, not the slowest alone.",
)
@click.argument("file", shell_complete=complete.files)
@click.argument("name")
@place_options
def command(session: Session, top: int, file: str, name: str, names: Selection) -> ExitCode:
    """Show where the time of the slowest call of NAME went, beside the typical call of NAME.

    NAME is that of slices. Time is split by the innermost slice, and by what the thread did:
    running; runnable, with what held the CPU that it ran on next; blocked, with the thread that
    woke it, and what that one waited for before. The waker is that of the wakeup's argument
    `waker`, or else inferred: the thread that ran on the CPU of the wakeup. The typical call is the
    median. Flows from other threads and log lines of the thread follow. Without scheduling data,
    waiting cannot be told from running.
    """
    from fxframework.analysis.why import why

    with opened(session, file, names) as (whole, part):
        with session.screen.working(f"analysing {whole.name}", whole.source):
            found = why(part, name, top=top)
            whole.trim()
        if session.settings.json:
            document = {"path": whole.name, "format": whole.format, **found.to_json()}
            session.screen.json("why", document)
        else:
            _print(session, found)
        session.screen.flush()
        return finished(session, whole)


def _print(session: Session, found: Why) -> None:
    screen = session.screen
    unfinished = f", and {found.unfinished:,} that never ended" if found.unfinished else ""
    screen.print(f"{printable(found.name)}: {amount(found.count, 'call')}{unfinished}")
    if not found.has_scheduling:
        screen.print("no scheduling data: waiting cannot be told from running")
    for call in found.slowest:
        screen.print("")
        for line in _lines(
            call, found.typical, width=screen.width, everything=bool(session.settings.verbose)
        ):
            screen.print(line)


def _lines(call: Call, typical: Call | None, *, width: int, everything: bool) -> Iterator[str]:
    """Yield the lines about one call."""
    beside = "" if typical is None else f"; the typical call: {brief(typical.dur_ns)}"
    yield f"{brief(call.dur_ns)} on {printable(call.thread)} from {brief(call.start_ns)}{beside}"
    usual = {} if typical is None else {part: part for part in typical.parts}
    parts = [*call.parts, *(part for part in usual if part not in call.parts)]
    own = {part: part for part in call.parts}
    heads = ["state", "time", "share", *(["typical"] if typical is not None else [])]
    rows: list[tuple[list[str], str, Sequence[Step]]] = []
    left_out = 0
    for part in parts:
        ns = own[part].ns if part in own else 0
        typical_ns = usual[part].ns if part in usual else 0
        most_of_typical = 0 if typical is None else typical.dur_ns // LEAST_SHARE
        if not everything and ns < call.dur_ns // LEAST_SHARE and typical_ns <= most_of_typical:
            left_out += ns
            continue
        share = f"{100 * ns / call.dur_ns:.0f}%" if call.dur_ns else NO_TIME
        cells = [part.state, brief(ns) if ns else NO_TIME, share if ns else NO_TIME]
        if typical is not None:
            cells.append(brief(typical_ns) if typical_ns else NO_TIME)
        rows.append((cells, _reason(part), own[part].steps if part in own else ()))
    widths = [max(len(cells[place]) for cells in (heads, *(row[0] for row in rows)))
              for place in range(len(heads))]  # fmt: skip

    def aligned(cells: Sequence[str]) -> str:
        state = cells[0].ljust(widths[0])
        numbers = [cell.rjust(size) for cell, size in zip(cells[1:], widths[1:], strict=True)]
        return "  ".join((state, *numbers, ""))

    yield aligned(heads) + "where it went"
    indent = len(aligned(heads))
    for cells, reason, steps in rows:
        yield from wrapped(aligned(cells), reason, indent=indent, columns=width)
        for step in steps:
            yield from wrapped(" " * (indent + 2), _step(step), indent=indent + 2, columns=width)
    if left_out:
        yield aligned(["", brief(left_out), *[""] * (len(heads) - 2)]) + "less than 1% each: -v"
    yield from _beside(call, width=width, everything=everything)


def _beside(call: Call, *, width: int, everything: bool) -> Iterator[str]:
    """Yield the flows into a call, and the log lines of its thread."""
    flows = call.flows if everything else call.flows[:SHOWN_LINES]
    for flow in flows:
        place = "" if flow.slice is None else f" (in {printable(flow.slice)})"
        on_the_way = brief(flow.arrived_ns - flow.sent_ns)
        text = f"from {printable(flow.thread)}{place}, {on_the_way} on the way"
        yield from wrapped("flow  ", text, indent=6, columns=width)
    if len(flows) < len(call.flows):
        yield f"flow  … and {len(call.flows) - len(flows):,} more (-v)"
    lines = call.lines if everything else call.lines[:SHOWN_LINES]
    for line in lines:
        text = f"{brief(line.ns)} {printable(line.severity)}: {printable(line.message)}"
        yield from wrapped("log   ", text, indent=6, columns=width)
    if len(lines) < call.line_count:
        yield f"log   … and {call.line_count - len(lines):,} more"


def _reason(part: Part) -> str:
    """Return in words why a part of a call took its time."""
    where = ITSELF if part.slice is None else printable(part.slice)
    if part.cpu is not None:
        holder = "a thread that is not known" if part.thread is None else printable(part.thread)
        held = "was idle" if part.thread == "idle" else f"was held by {holder}"
        return f"{where}, CPU {part.cpu} {held}"
    if part.thread is None:
        return where
    return f"{where}, {_woken(part.thread, part.thread_slice, inferred=part.is_inferred)}"


def _step(step: Step) -> str:
    """Return in words what a thread did before it sent a wakeup."""
    where = "" if step.slice is None else f" in {printable(step.slice)}"
    if step.state == "running":
        return f"{brief(step.ns)} {printable(step.thread)} ran{where}"
    woken = f", {_woken(step.waker, None, inferred=step.is_inferred)}" if step.waker else ""
    return f"{brief(step.ns)} {printable(step.thread)} was {step.state}{where}{woken}"


def _woken(thread: str, slice_name: str | None, *, inferred: bool) -> str:
    """Return in words what ended a wait."""
    if thread == "idle":
        return "woken while the CPU was idle, as by a timer"
    place = "" if slice_name is None else f" (in {printable(slice_name)})"
    return f"woken by {printable(thread)}{place}{', inferred' if inferred else ''}"
