"""``fxf view``: shows captures in the Perfetto UI, in a browser on this machine."""

from __future__ import annotations

import contextlib
import html
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fxframework.cli.convert import carry_out, note_dropped, planned
from fxframework.cli.filters import part_options
from fxframework.cli.options import command as _command
from fxframework.cli.session import Session, worst
from fxframework.errors import ExitCode, NoReaderError, UsageError
from fxframework.foreign import CHROME, PERFETTO, foreign
from fxframework.registry import HEAD, Probe

if TYPE_CHECKING:
    from fxframework.model.selection import Selection
    from fxframework.viewer import Viewer

LOOK = 0.1
"""Seconds between two checks whether the UI has loaded."""
NAME = 60
"""The most characters of the inputs' names that the UI shows."""

REDIRECT = """<!DOCTYPE html>
<meta charset="utf-8"><meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={url}">
<title>fxf view</title><a href="{url}">Open the Perfetto UI</a>
"""
"""The page that the browser is started with."""


@_command(captures=True, times=True, name="view")
@click.option(
    "--align",
    multiple=True,
    metavar="NAME:HOW",
    help="Align an input's clock, as for convert; repeatable.",
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="PORT",
              help="Listen on this port. Default: a free one.")  # fmt: skip
@click.option("--no-open", is_flag=True, help="Print the URL, but open no browser.")
@click.option(
    "--keep", is_flag=True, help="Serve until interrupted, not only until the trace is loaded."
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@part_options
def command(
    session: Session,
    align: tuple[str, ...],
    port: int,
    no_open: bool,
    keep: bool,
    files: tuple[str, ...],
    names: Selection,
) -> ExitCode:
    """Show captures on one timeline in the Perfetto UI.

    FILEs become one Perfetto trace, as `fxf convert FILE... OUT.pftrace` writes it. A Perfetto
    trace is shown as it is. The UI is served to this machine alone, at a URL that cannot be
    guessed, until the trace has loaded or Ctrl-C is pressed.
    """
    from fxframework.io.pending import scratch_folder
    from fxframework.viewer import Viewer, find_ui

    ui = find_ui()
    with scratch_folder("view") as folder:
        trace_path = folder / "trace"
        exit_status = _make(session, files, align, names, trace_path)
        file_stems = dict.fromkeys(Path(text).name.partition(".")[0] or "capture" for text in files)
        with Viewer(ui, trace_path, f"{'-'.join(file_stems)[:NAME]}.pftrace", port=port) as viewer:
            _show(session, viewer, trace_path, opens=not no_open)
            session.handles_interrupts = True
            with contextlib.suppress(KeyboardInterrupt):
                while keep or not viewer.loaded():
                    time.sleep(LOOK)
                session.screen.note("the UI has the trace; to serve it again: --keep")
    return exit_status


def _make(
    session: Session,
    files: tuple[str, ...],
    align: tuple[str, ...],
    names: Selection,
    trace: Path,
) -> ExitCode:
    """Write the trace for the UI; a single file that Perfetto reads stays as it is."""
    if len(files) == 1 and _copy_perfetto_file(session, files[0], trace):
        return ExitCode.OK
    with contextlib.ExitStack() as stack:
        captures = []
        for text in files:
            try:
                captures.append(stack.enter_context(session.open(text, also=None)))
            except NoReaderError:
                if not _copy_perfetto_file(session, text, trace):
                    raise
                raise UsageError(
                    "a Perfetto trace cannot be merged with captures",
                    path=text,
                    remedy="show it alone",
                ) from None
        conversion = planned(session, captures, str(trace), "perfetto", align, names)
        report = carry_out(session, conversion, str(trace), force=False)
        note_dropped(session, report.to, report.dropped)
        return worst(*(session.status(capture) for capture in captures))


def _copy_perfetto_file(session: Session, text: str, trace: Path) -> bool:
    """Copy a file that Perfetto reads directly; return False for other files."""
    format, path = session.named(text)
    if format is not None:
        return False
    source = session.host.source(path, options=session.settings.options)
    with contextlib.closing(source):
        first_bytes = source.read(0, HEAD)
        trace_format = foreign(Probe(head=first_bytes, size=source.size, name=source.name))
        if trace_format not in {PERFETTO, CHROME}:
            return False
        with trace.open("wb") as file:
            file.writelines(source.pieces())
    return True


def _show(session: Session, viewer: Viewer, trace: Path, *, opens: bool) -> None:
    """Print the URL of the UI, and open it in a browser if one is found.

    The browser is started with a page in the private folder of the trace, which leads to the URL:
    the arguments of a process are visible to everyone on this machine.
    """
    screen = session.screen
    if session.settings.json:
        screen.json("view", {"url": viewer.url, "bytes": trace.stat().st_size})
    else:
        screen.print(viewer.url)
    screen.flush()
    page_path = trace.with_name("open.html")
    page_path.write_text(REDIRECT.format(url=html.escape(viewer.url)), "utf-8")
    if opens and not open_browser(page_path.as_uri()):
        screen.note("no browser was found; open the URL in one on this machine")


def open_browser(url: str) -> bool:
    """Open a URL in a graphical browser; return whether there is one."""
    has_browser = sys.platform in {"darwin", "win32"} or any(
        os.environ.get(name) for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
    )
    if not has_browser:  # a text browser could not run the UI
        return False
    import webbrowser

    try:
        return webbrowser.open(url)
    except (webbrowser.Error, OSError):
        return False
