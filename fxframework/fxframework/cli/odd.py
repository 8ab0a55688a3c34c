"""``fxf odd``: which of many captures are unlike the rest, and in what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from fxframework.cli import complete
from fxframework.cli.calls import read_each
from fxframework.cli.filters import place_options
from fxframework.cli.options import command as _command
from fxframework.cli.session import Session, worst
from fxframework.cli.text import amount, fields, printable
from fxframework.errors import ExitCode, NoReaderError, UnreadableError

if TYPE_CHECKING:
    from fxframework.analysis.oddity import Odd
    from fxframework.model.capture import Capture
    from fxframework.model.selection import Selection

REASONS = 3
"""Reasons of each capture that are shown without -v."""


@_command(
    captures=True, times=True, name="odd",
    short_help="Show which of many captures are unlike the rest.",
)  # fmt: skip
@click.option("--top", default=5, type=click.IntRange(1), metavar="N",
              help="Captures to show. Default: 5.")  # fmt: skip
@click.option("--html", metavar="OUT", help="Also write a page.")
@click.option("--force", is_flag=True, help="Replace OUT.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...|DATASET",
                shell_complete=complete.files)  # fmt: skip
@place_options
def command(
    session: Session, files: tuple[str, ...], top: int, html: str | None, names: Selection,
    *, force: bool,
) -> ExitCode:  # fmt: skip
    """Show which of many captures are unlike the rest, and in what.

    FILE is a capture, a folder or a quoted pattern; DATASET is what `fxf batch` made, whose tables
    are read instead of the captures. Rows, findings, calls by name (their number, time and p99),
    messages and levels of counters are compared with the medians of all captures. Captures that
    cannot be read are left out. The exit status is 0, whatever is odd.
    """
    from fxframework.analysis.oddity import oddities
    from fxframework.dataset.query import is_dataset

    statuses = [ExitCode.OK]
    if len(files) == 1 and is_dataset(files[0]):
        from fxframework.dataset.figures import figures_of_dataset

        with session.screen.working(f"reading {files[0]}"):
            figures = figures_of_dataset(files[0])
    else:
        figures = _read(session, files, names, statuses)
    with session.screen.working("comparing"):
        found = oddities(figures, top)
    if session.settings.json:
        session.screen.json("odd", {
            "captures": len(figures), "odd": list(map(document, found)),
        })  # fmt: skip
    elif not session.settings.quiet:
        _print(session, found, len(figures))
    if html is not None:
        from fxframework.exporters.page import page

        data = {"captures": len(figures), "odd": list(map(document, found))}
        with session.sink(html, force=force) as sink:
            sink.write(page("fxframework.exporters.oddities", "odd", data))
        session.screen.note(f"wrote {html}: {amount(sink.written, 'byte')}")
    return worst(*statuses)


def _read(
    session: Session, files: Sequence[str], names: Selection, statuses: list[ExitCode]
) -> dict[str, Any]:
    """Return the figures of each capture."""
    from fxframework.analysis.oddity import figures_of
    from fxframework.dataset.inputs import expand

    figures: dict[str, Any] = {}

    def work(file: str, part: Capture) -> None:
        figures[file] = figures_of(part)

    inputs = [item.file for item in expand(files)]
    statuses += read_each(session, inputs, names, work, skip=(UnreadableError, NoReaderError))
    return figures


def _print(session: Session, found: Sequence[Odd], captures: int) -> None:
    screen = session.screen
    if not found:
        screen.print(f"none of {amount(captures, 'capture')} is unlike the rest")
        return
    screen.print(f"{amount(len(found))} of {amount(captures, 'capture')}, the most unlike first:")
    for one in found:
        screen.print(screen.paint(printable(one.capture), bold=True))
        few = one.reasons if session.settings.verbose else one.reasons[:REASONS]
        for reason in few:
            screen.print(f"  {abs(reason.distance):7.1f}  {printable(str(reason))}")
        if len(few) < len(one.reasons):
            screen.print(f"  … and {amount(len(one.reasons) - len(few))} more (-v shows them)")


def document(one: Odd) -> dict[str, Any]:
    """Return an odd capture as JSON."""
    reasons = [
        {**fields(reason, "kind name value usual distance"), "text": str(reason)}
        for reason in one.reasons
    ]
    return {**fields(one, "capture score"), "reasons": reasons}
