"""``fxf why``: where the time of slow calls went, beside a typical call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import click

from fxframework.cli import complete
from fxframework.cli.calls import finished, opened
from fxframework.cli.filters import place_options
from fxframework.cli.options import command as _command
from fxframework.cli.session import Session
from fxframework.cli.text import wrapped
from fxframework.errors import ExitCode, UsageError
from fxframework.kit.shown import amount, brief, padded, printable, widths_of
from fxframework.model.schema import RUNNABLE, RUNNING

if TYPE_CHECKING:
    from fxframework.analysis.why import Call, Flow, Line, Part, Step, Why
    from fxframework.model.selection import Selection

LEAST_SHARE = 0.01
"""Parts with a smaller share of both calls are summed up without -v."""
SHOWN_LINES = 5
"""Flows and log lines of a call that are shown without -v."""
NO_TIME = "–"
IDLE = "idle"
UNKNOWN_WAITS = "waiting cannot be told from running"
WITHOUT_STATES = f"no states of this call, which has no thread that was switched: {UNKNOWN_WAITS}"
"""Of an asynchronous slice, and of a thread without context switches."""


@_command(captures=True, times=True, name="why")
@click.option(
    "--top",
    type=click.IntRange(min=1),
    default=1,
    metavar="N",
    help="The N slowest calls, not the slowest alone.",
)
@click.option("--html", metavar="OUT", help="Also write a page.")
@click.option("--force", is_flag=True, help="Replace OUT.")
@click.argument("file", shell_complete=complete.files)
@click.argument("name")
@place_options
def command(
    session: Session,
    top: int,
    html: str | None,
    force: bool,
    file: str,
    name: str,
    names: Selection,
) -> ExitCode:
    """Show where the time of the slowest call of NAME went, beside the typical call of NAME.

    NAME is the name of slices. The time of a call is split by the innermost slice, and by what the
    thread did. It was running; or runnable, while something else held the CPU that it ran on next;
    or blocked, until a thread woke it. Below that is what the waking thread waited for before. If a
    wakeup has no argument `waker`, its waker is inferred: the thread that ran on the CPU of the
    wakeup. The typical call is the median. Flows from other threads and log lines of the thread
    follow. Without scheduling data, waiting cannot be told from running.
    """
    from fxframework.analysis.why import why

    with opened(session, file, names) as (whole, part):
        with session.screen.working(f"analysing {whole.name}", whole.source):
            try:
                reasons = why(part, name, top=top)
            except UsageError:
                finished(session, whole)  # the name may be in what was lost
                raise
            whole.trim()
        if session.settings.json:
            document = {"path": whole.name, "format": whole.format, **reasons.to_json()}
            session.screen.json("why", document)
        else:
            _print(session, reasons)
        session.screen.flush()
        if html is not None:
            from fxframework.exporters.page import page

            with session.sink(html, force=force) as sink:
                sink.write(page("why", "fxframework: why it is slow", _page_data(reasons)))
            session.screen.note(f"wrote {html}: {amount(sink.written, 'byte')}")
        return finished(session, whole)


def _page_data(reasons: Why) -> dict[str, Any]:
    """Return the data of the page, in the words of the text."""
    typical = reasons.typical
    typical_ns = 0
    typical_text = ""
    if typical is not None:
        typical_ns = typical.dur_ns
        typical_text = brief(typical_ns)
    calls = []
    for call in reasons.slowest:
        parts = [
            {
                "state": row.part.state,
                "ns": row.ns,
                "typical_ns": row.typical_ns,
                "time": _time(row.ns),
                "typical": _time(row.typical_ns),
                "share": _share(row.ns, call),
                "text": _reason(row.part),
                "steps": [_step(step) for step in row.part.steps if row.ns],
            }
            for row in _PartTable.of(call, typical, shows_all=True).rows
        ]
        heading = _heading_of_call(call, None)
        if _lacks_states(reasons, call):
            heading += f"; {WITHOUT_STATES}"
        calls.append(
            {
                "heading": heading,
                "ns": call.dur_ns,
                "time": brief(call.dur_ns),
                "typical_ns": typical_ns,
                "typical": typical_text,
                "parts": parts,
                "flows": [_flow(flow) for flow in call.flows],
                "lines": [_log_line(line) for line in call.lines],
            }
        )
    return {"name": reasons.name, "subtitle": "; ".join(_summary(reasons)), "calls": calls}


def _summary(reasons: Why) -> Iterator[str]:
    """Yield what is to be said before all calls."""
    heading = f"{printable(reasons.name)}: {amount(reasons.count, 'call')}"
    if reasons.unfinished:
        heading += f", and {reasons.unfinished:,} that never ended"
    yield heading
    if not reasons.has_scheduling:
        yield f"no scheduling data: {UNKNOWN_WAITS}"


def _print(session: Session, reasons: Why) -> None:
    screen = session.screen
    for line in _summary(reasons):
        screen.print(line)
    shows_all = session.settings.verbose > 0
    for call in reasons.slowest:
        screen.print("")
        screen.print(_heading_of_call(call, reasons.typical))
        if _lacks_states(reasons, call):
            screen.print(WITHOUT_STATES)
        for line in _PartTable.of(call, reasons.typical, shows_all=shows_all).lines(screen.width):
            screen.print(line)
        for line in _beside(call, width=screen.width, shows_all=shows_all):
            screen.print(line)


def _lacks_states(reasons: Why, call: Call) -> bool:
    """Return whether others have states, but not the thread of this call, if it has a thread."""
    return reasons.has_scheduling and not call.has_states


def _heading_of_call(call: Call, typical: Call | None) -> str:
    start = f"{brief(call.start_ns)} (@{call.start_ns})"
    text = f"{brief(call.dur_ns)} on {printable(call.thread)} from {start}"
    if typical is not None:
        text += f"; the typical call: {brief(typical.dur_ns)}"
    return text


@attrs.frozen
class _Row:
    """A part of a call, of the typical call, or of both."""

    part: Part
    ns: int
    """Its time in the call; 0 if only the typical call has it."""
    typical_ns: int
    """Its time in the typical call."""


@attrs.frozen
class _PartTable:
    """The parts of a call beside those of the typical one."""

    call: Call
    typical: Call | None
    rows: list[_Row]
    small_ns: int
    """Time of the call in parts that are too small to be shown."""
    least_ns: float
    """Of what kept a waker from running: less is not shown."""

    @classmethod
    def of(cls, call: Call, typical: Call | None, *, shows_all: bool) -> _PartTable:
        """Return the table of a call; ``shows_all`` parts, or those that matter."""
        typical_parts: Sequence[Part] = ()
        typical_dur = 0
        if typical is not None:
            typical_parts = typical.parts
            typical_dur = typical.dur_ns
        # Parts are equal if they have state, slice and reason in common, whatever their time.
        typical_times = {part: part.ns for part in typical_parts}
        only_typical = [part for part in typical_parts if part not in call.parts]
        candidates = [_Row(part, part.ns, typical_times.get(part, 0)) for part in call.parts]
        candidates += [_Row(part, 0, part.ns) for part in only_typical]
        rows = []
        small_ns = 0
        for row in candidates:
            is_small = row.ns < LEAST_SHARE * call.dur_ns
            is_small_in_typical = row.typical_ns <= LEAST_SHARE * typical_dur
            if is_small and is_small_in_typical and not shows_all:
                small_ns += row.ns
            else:
                rows.append(row)
        least_ns = 0 if shows_all else LEAST_SHARE * call.dur_ns
        return cls(call, typical, rows, small_ns, least_ns)

    def lines(self, width: int) -> Iterator[str]:
        """Yield the lines of the table."""
        headings = ["state", "time", "share"]
        if self.typical is not None:
            headings.append("typical")
        cells_of_rows = [self._cells(row) for row in self.rows]
        widths = widths_of([headings, *cells_of_rows])
        heading = _aligned(headings, widths)
        indent = len(heading)
        yield heading + "where it went"
        for row, cells in zip(self.rows, cells_of_rows, strict=True):
            label = _aligned(cells, widths)
            yield from wrapped(label, _reason(row.part), indent=indent, columns=width)
            if not row.ns:
                continue
            for step in row.part.steps:
                if step.state == RUNNABLE and step.ns < self.least_ns:
                    continue
                deeper = indent + 2
                yield from wrapped(" " * deeper, _step(step), indent=deeper, columns=width)
        if self.small_ns:
            cells = ["", brief(self.small_ns), *[""] * (len(headings) - 2)]
            yield _aligned(cells, widths) + "less than 1% each: -v"

    def _cells(self, row: _Row) -> list[str]:
        cells = [row.part.state, _time(row.ns), _share(row.ns, self.call)]
        if self.typical is not None:
            cells.append(_time(row.typical_ns))
        return cells


def _time(ns: int) -> str:
    """Return a time, or what stands for none."""
    if not ns:
        return NO_TIME
    return brief(ns)


def _share(ns: int, call: Call) -> str:
    """Return the share of a part in a call, or what stands for none."""
    if not ns:
        return NO_TIME
    return f"{100 * ns / call.dur_ns:.0f}%"


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Return a text and numbers in columns, with a gap behind each."""
    are_numbers = [False, *[True] * (len(cells) - 1)]
    return "  ".join((*padded(cells, widths, are_numbers), ""))


def _beside(call: Call, *, width: int, shows_all: bool) -> Iterator[str]:
    """Yield the flows into a call, and the log lines of its thread."""
    most = SHOWN_LINES
    if shows_all:
        most = max(len(call.flows), len(call.lines))
    for flow in call.flows[:most]:
        yield from wrapped("flow  ", _flow(flow), indent=6, columns=width)
    if most < len(call.flows):
        yield f"flow  … and {len(call.flows) - most:,} more (-v)"
    for line in call.lines[:most]:
        yield from wrapped("log   ", _log_line(line), indent=6, columns=width)
    hidden_count = call.line_count - min(most, len(call.lines))
    if hidden_count > 0:
        yield f"log   … and {hidden_count:,} more"


def _flow(flow: Flow) -> str:
    """Return in words where a flow came from."""
    on_the_way = brief(flow.arrived_ns - flow.sent_ns)
    return f"from {printable(flow.thread)}{_in_slice(flow.slice)}, {on_the_way} on the way"


def _log_line(line: Line) -> str:
    head = brief(line.ns)
    if line.severity is not None:
        head += f" {printable(line.severity)}"
    return f"{head}: {printable(line.message)}"


def _reason(part: Part) -> str:
    """Return in words why a part of a call took its time."""
    where = "itself"
    if part.slice is not None:
        where = printable(part.slice)
    if part.cpu is not None:
        return f"{where}, CPU {part.cpu} {_holder(part.thread)}"
    if part.thread is None:
        return where
    return f"{where}, {_woken(part.thread, part.thread_slice, is_inferred=part.is_inferred)}"


def _holder(thread: str | None) -> str:
    """Return in words what a CPU did while a thread could run."""
    if thread is None:
        return "was held by a thread that is not known"
    if thread == IDLE:
        return "was idle"
    return f"was held by {printable(thread)}"


def _step(step: Step) -> str:
    """Return in words what a thread did before it sent a wakeup."""
    place = ""
    if step.slice is not None:
        place = f" in {printable(step.slice)}"
    if step.state == RUNNING:
        return f"{brief(step.ns)} {printable(step.thread)} ran{place}"
    text = f"{brief(step.ns)} {printable(step.thread)} was {step.state}{place}"
    if step.cpu is not None:
        text += f", CPU {step.cpu} {_holder(step.holder)}"
    if step.waker is not None:
        text += f", {_woken(step.waker, None, is_inferred=step.is_inferred)}"
    return text


def _woken(thread: str, slice_name: str | None, *, is_inferred: bool) -> str:
    """Return in words what ended a wait."""
    if thread == IDLE:
        return "woken while the CPU was idle: by a timer, a device or another CPU"
    text = f"woken by {printable(thread)}{_in_slice(slice_name)}"
    if is_inferred:
        text += ", inferred"
    return text


def _in_slice(name: str | None) -> str:
    """Return in words the slice in which a thread was."""
    if name is None:
        return ""
    return f" (in {printable(name)})"
