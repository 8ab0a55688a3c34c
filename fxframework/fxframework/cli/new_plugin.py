"""``fxf new-plugin``: creates the repository of a new plugin."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fxframework.cli.options import command as _command
from fxframework.cli.session import Session
from fxframework.errors import ExitCode, UsageError
from fxframework.templates.repository import KINDS, SMALL, Name, render, write

if TYPE_CHECKING:
    from fxframework.host import Host
    from fxframework.registry import Exporter, Reader

OURS = "fxframework"


@_command(name="new-plugin")
@click.option(
    "--into",
    type=click.Path(path_type=Path),
    default=Path(),
    metavar="DIR",
    help="Folder for the repository. Default: here.",
)
@click.option("--small", is_flag=True, help="One module and its test, for `fxf --plugin`.")
@click.argument("kind", type=click.Choice(list(KINDS)), metavar="KIND")
@click.argument("name", metavar="NAME")
def command(session: Session, into: Path, small: bool, kind: str, name: str) -> ExitCode:
    """Create the repository of a new plugin: a small one that works, for you to change.

    KIND is `format` (a reader and a writer), `exporter`, or `step` or `device` (for scenarios). The
    repository is the folder fx-NAME; it has tests that pass, and a README that says how to run
    them. With --small, a format is one module and its test, in the folder NAME, and needs no
    installation.
    """
    session.whole("new-plugin")
    plugin_name = Name.parse(name)
    _check(session, plugin_name)
    if small and kind not in SMALL:
        raise UsageError(
            f"there is no small template of the kind {kind!r}",
            remedy="`fxf new-plugin format NAME --small`; docs/plugins/module.md has an exporter",
        )
    target = into / (plugin_name.words["prefix"] if small else plugin_name.distribution)
    files = render(kind, plugin_name, small=small)
    write(files, target)
    if session.settings.json:
        body = {"kind": kind, "path": str(target), **plugin_name.words, "files": list(files)}
        session.screen.json("new-plugin", body)
        return ExitCode.OK
    for path in files:
        session.screen.print(str(target / path))
    module = target / f"{plugin_name.words['prefix']}.py"
    if small:
        next_step = f"fxf --plugin {module} plugins --check {module.stem} && pytest {target}"
    else:
        next_step = f"pip install -e '{target}[test]' && pytest {target}"
    session.screen.note(f"next: {next_step}")
    return ExitCode.OK


def _check(session: Session, name: Name) -> None:
    """Raise UsageError for a name that this distribution uses."""
    host = session.host
    used_names = {plugin.name for plugin in host.plugins() if plugin.distribution == OURS}
    used_names |= {name for name, reader in host.readers.items() if _is_ours(host, reader)}
    used_names |= {exporter.name for exporter in host.exporters if _is_ours(host, exporter)}
    if name.slug in used_names:
        raise UsageError(
            f"{name.slug!r} is the name of a plugin, format or exporter of fxframework",
            remedy="choose another name; `fxf plugins` lists those that are taken",
        )


def _is_ours(host: Host, item: Reader | Exporter) -> bool:
    return host.owner(item).distribution == OURS
