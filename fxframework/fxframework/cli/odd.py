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
from fxframework.cli.text import fields
from fxframework.errors import ExitCode, NoReaderError, UnreadableError
from fxframework.kit.shown import amount, printable

if TYPE_CHECKING:
    from fxframework.analysis.oddity import Odd
    from fxframework.model.capture import Capture
    from fxframework.model.selection import Selection

REASONS = 3
"""Reasons of each capture that are shown without -v."""


@_command(
    captures=True, times=True, name="odd",
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
    are read instead of the captures. Files of folders and patterns that are not captures are
    skipped. Rows, findings, calls by name (their number, time and p99), messages and levels of
    counters are compared with the medians of all captures of one format. Captures that cannot be
    read are left out. The exit status is 0, whatever is odd.
    """
    from fxframework.analysis.oddity import by_format, oddities
    from fxframework.dataset.query import is_dataset

    statuses = [ExitCode.OK]
    if len(files) == 1 and is_dataset(files[0]):
        from fxframework.dataset.figures import figures_of_dataset

        with session.screen.working(f"reading {files[0]}"):
            figures, formats = figures_of_dataset(files[0])
    else:
        figures, formats = _read(session, files, names, statuses)
    groups, too_few = by_format(figures, formats)
    for note in too_few:
        session.screen.note(f"left out: {note}")
    with session.screen.working("comparing"):
        odd_captures = [odd for group in groups for odd in oddities(group)]
    odd_captures.sort(key=lambda odd: (-odd.score, odd.capture))
    capture_count = sum(map(len, groups))
    data = {
        "captures": capture_count,
        "unlike": len(odd_captures),
        "odd": [document(odd) for odd in odd_captures[:top]],
    }
    if session.settings.json:
        session.screen.json("odd", data)
    elif not session.settings.quiet:
        _print(session, odd_captures, top, capture_count)
    if html is not None:
        from fxframework.exporters.page import page

        with session.sink(html, force=force) as sink:
            sink.write(page("odd", "fxframework: odd captures", data))
        session.screen.note(f"wrote {html}: {amount(sink.written, 'byte')}")
    return worst(*statuses)


def _read(
    session: Session, files: Sequence[str], names: Selection, statuses: list[ExitCode]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the figures and the format of each capture."""
    from fxframework.analysis.oddity import figures_of
    from fxframework.dataset.inputs import expand

    figures: dict[str, Any] = {}
    formats: dict[str, str] = {}

    def work(file: str, part: Capture) -> None:
        figures[file] = figures_of(part)
        formats[file] = part.format

    skip = (UnreadableError, NoReaderError)
    statuses += read_each(session, expand(files), names, work, skip=skip)
    return figures, formats


def _print(session: Session, odd_captures: Sequence[Odd], top: int, capture_count: int) -> None:
    screen = session.screen
    if not odd_captures:
        screen.print(f"none of {amount(capture_count, 'capture')} is unlike the rest")
        return
    shown = odd_captures[:top]
    unlike = f"{amount(len(odd_captures))} of {amount(capture_count, 'capture')}"
    if len(shown) < len(odd_captures):
        screen.print(f"{unlike} are unlike the rest; the {amount(len(shown))} most unlike:")
    else:
        screen.print(f"{unlike}, the most unlike first:")
    for odd in shown:
        screen.print(screen.paint(printable(odd.capture), bold=True))
        reasons = odd.reasons
        if not session.settings.verbose:
            reasons = reasons[:REASONS]
        for reason in reasons:
            screen.print(f"  {abs(reason.distance):7.1f}  {printable(str(reason))}")
        hidden_count = len(odd.reasons) - len(reasons)
        if hidden_count:
            screen.print(f"  … and {amount(hidden_count)} more (-v shows them)")


def document(odd: Odd) -> dict[str, Any]:
    """Return an odd capture as JSON."""
    reasons = [
        {**fields(reason, "kind name value usual distance"), "text": str(reason)}
        for reason in odd.reasons
    ]
    return {**fields(odd, "capture score"), "reasons": reasons}
