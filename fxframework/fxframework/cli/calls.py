"""Options and helpers shared by the commands that analyse calls."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from fxframework.cli.session import Session
from fxframework.conversion import require_readable
from fxframework.errors import ExitCode, FxError, NotACaptureError, UsageError
from fxframework.kit.shown import amount, duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fxframework.dataset.inputs import Item
    from fxframework.model.capture import Capture
    from fxframework.model.selection import Selection

NANOSECONDS = 1_000_000_000
PICTURES = (".svg", ".png", ".pdf", ".ps", ".eps", ".gif", ".jpg", ".jpeg", ".webp")
"""Suffixes of what Graphviz makes of a graph."""

by_option = click.option(
    "--by",
    default="",
    metavar="WHAT",
    help="What identifies a function: id, name, category, or another column of slices. Default: "
    "id, or name for calls that have no id.",
)


def out_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command ``--out`` and ``--force``."""
    force = click.option("--force", is_flag=True, help="Replace OUT.")
    out = click.option(
        "--out", default="-", metavar="OUT", help="Output file. Default: standard output."
    )
    return out(force(command))


@contextlib.contextmanager
def opened(
    session: Session,
    file: str,
    names: Selection,
    *,
    several: bool = False,
) -> Iterator[tuple[Capture, Capture]]:
    """Open a capture; yield it and the part that the options select.

    Raises UnreadableError if nothing in it can be read.
    """
    with session.open(file, several=several) as whole:
        require_readable(whole)
        with session.screen.working(f"reading {whole.name}", whole.source):
            part = session.window(whole, names)
        yield whole, part


def finished(session: Session, whole: Capture, left_out: int = 0) -> ExitCode:
    """Report the asynchronous slices that were left out; return the status of the capture."""
    if left_out:
        session.screen.note(
            f"{whole.name}: {amount(left_out, 'asynchronous slice')} left out: they belong to no "
            "stack; `fxf account` has them"
        )
    whole.scan()
    return session.status(whole)


def read_each(
    session: Session,
    items: Sequence[Item],
    names: Selection,
    work: Callable[[str, Capture], object],
    *,
    skip: tuple[type[FxError], ...] = (),
) -> list[ExitCode]:
    """Give the selected part of each of many captures to ``work``; return their statuses.

    Files of folders and patterns that are not captures are skipped, and counted in a note. A
    capture with an error in ``skip`` is noted and left out.
    """
    from fxframework.dataset.inputs import skipped_text

    statuses = []
    skipped = []
    with session.screen.working(f"reading {len(items)} files") as working:
        for file_number, item in enumerate(items):
            working.count(file_number, len(items), 0, 0)
            if item.skipped_at_once:
                skipped.append(item)
                continue
            try:
                with session.open(item.file, several=True) as whole:
                    require_readable(whole)
                    work(item.file, session.window(whole, names))
                    statuses.append(finished(session, whole))
            except FxError as error:
                session.check_interrupt()
                if isinstance(error, NotACaptureError) and not item.named:
                    skipped.append(item)
                elif isinstance(error, skip):
                    session.screen.note(f"left out: {error}")
                    statuses.append(error.exit_code)
                else:
                    raise
    if skipped:
        session.screen.note(skipped_text(skipped))
    return statuses


def length(exact: float | None, per_second: int) -> str:
    """Format a length of time, rounded to whole ticks, and in ticks if their rate is unknown."""
    if exact is None:
        return "–"
    value = round(exact)
    if not per_second:
        return f"{value:,} ticks"
    return duration(value * NANOSECONDS // per_second)


def write_dot(session: Session, lines: Iterable[str], out: str, *, force: bool) -> None:
    """Write lines of DOT to a file or to standard output.

    Raises UsageError for a file that by its name is a picture.
    """
    if out.lower().endswith(PICTURES):
        stem, _, kind = out.rpartition(".")
        raise UsageError(
            f"{out!r} names a picture, and graphs are written as DOT",
            remedy=f"give --out {stem}.dot, and draw it: `dot -T{kind.lower()} {stem}.dot > {out}`",
        )
    with session.sink(out, force=force) as sink:
        for line in lines:
            sink.write(line.encode("utf-8", "replace") + b"\n")
    if out != "-":
        session.screen.note(f"wrote {out}: {amount(sink.written, 'byte')}")
