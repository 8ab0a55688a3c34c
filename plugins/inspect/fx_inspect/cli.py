"""Commands of Inspect, and the snapshot function of `fxf watch`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fxframework.errors import UsageError

if TYPE_CHECKING:
    from fx_inspect.read.snapshot import Snapshot


def add_commands(cli: click.Group) -> None:
    """Add the commands of Inspect to ``fxf``."""
    cli.add_command(selectors)


def snapshot(path: Path) -> Snapshot:
    """Return a consistent copy of a VMO that another program is writing (``registry.Reader``).

    Raises UnreadableError if no consistent copy can be taken.
    """
    from fx_inspect.read.snapshot import Snapshot

    return Snapshot.take(path)


@click.command(name="selectors", short_help="List the selectors of an Inspect file.")
@click.argument("file")
@click.argument("selectors", nargs=-1, metavar="[SELECTOR...]")
@click.pass_obj
def selectors(session: Any, file: str, selectors: tuple[str, ...]) -> int:
    """List the selectors of all properties in FILE, one a line.

    A node that has neither properties nor children has a selector of its own. With SELECTORs,
    only what they match is listed.
    """
    from fx_inspect.export.tree import NAMELESS, SelectorExport
    from fxframework.io.sink import Sink

    with session.open(file) as whole:
        if whole.format != "inspect":
            raise UsageError(
                f"{whole.format} captures have no selectors",
                path=whole.name,
                remedy="name an Inspect file",
            )
        as_json = session.settings.json
        with Sink.memory() if as_json else Sink.open("-") as sink:
            export = SelectorExport(sink, {})
            export.write(whole.choose(selectors) if selectors else whole)
            nameless = export.close().get(NAMELESS)
            if nameless:
                session.screen.note(f"not listed: {NAMELESS} ({nameless:,})")
            if as_json:
                lines = sink.getvalue().decode().splitlines()
                session.screen.json("selectors", {"path": whole.name, "selectors": lines})
        return int(session.status(whole))
